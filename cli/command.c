/* SPDX-License-Identifier: MIT */

#include "cli/command.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/units.h"
#include "policy/denial.h"

static int
set_variable(struct strv *env, const char *entry)
{
	size_t len = strcspn(entry, "=") + 1;

	for (size_t i = 0; i < env->count; i++) {
		char *copy;

		if (strncmp(env->items[i], entry, len) != 0)
			continue;
		copy = strdup(entry);
		if (!copy)
			return -ENOMEM;
		free(env->items[i]);
		env->items[i] = copy;
		return 0;
	}
	return strv_add(env, entry);
}

int
command_env(const struct strv *set, bool clear, struct strv *ret_env,
	    struct errmsg *why)
{
	int r = 0;

	for (char **at = environ; *at && r == 0 && !clear; at++)
		r = strv_add(ret_env, *at);
	for (size_t i = 0; i < set->count && r == 0; i++) {
		const char *entry = set->items[i];

		if (entry[0] == '=' || !strchr(entry, '='))
			return errmsg_set(why, -EINVAL,
					  "--env takes NAME=VALUE, not '%s'",
					  entry);
		r = set_variable(ret_env, entry);
	}
	return r < 0 ? errmsg_set(why, r, "out of memory") : 0;
}

int
command_argv(char **operands, struct strv *ret_argv, struct errmsg *why)
{
	const char *shell = getenv("SHELL");
	int r = 0;

	for (; *operands && r == 0; operands++)
		r = strv_add(ret_argv, *operands);
	if (r == 0 && ret_argv->count == 0)
		r = strv_add(ret_argv, shell && *shell ? shell : "/bin/sh");
	return r < 0 ? errmsg_set(why, r, "out of memory") : 0;
}

int
command_cwd(const char *wanted, char **ret_cwd, struct errmsg *why)
{
	*ret_cwd = realpath(wanted ? wanted : ".", NULL);
	if (*ret_cwd)
		return 0;
	return errmsg_set(why, -errno, "cannot use '%s' as the directory: %s",
			  wanted ? wanted : ".", strerror(errno));
}

int
command_check_call(const char *call, struct errmsg *why)
{
	if (!call || denial_call_is_valid(call))
		return 0;
	return errmsg_set(why, -EINVAL,
			  "--call takes one line of UTF-8, at most %d bytes",
			  LIMIT_CALL);
}

int
command_open_report(const char *where, int *ret_fd, struct errmsg *why)
{
	uint64_t number;
	int fd;

	if (!where)
		return 0;
	if (strncmp(where, "fd:", 3) != 0) {
		fd = open(where, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			  0666);
	} else if (units_number(where + 3, &number) < 0 || number > 65535) {
		return errmsg_set(why, -EINVAL, "--report fd:N needs a number");
	} else {
		fd = fcntl((int)number, F_DUPFD_CLOEXEC, 3);
		/* Neither the world nor its warden shall hold it open. */
		if (fd >= 0 && number > 2)
			(void)fcntl((int)number, F_SETFD, FD_CLOEXEC);
	}
	if (fd < 0)
		return errmsg_set(why, -errno,
				  "cannot write the report to '%s': %s", where,
				  strerror(errno));
	*ret_fd = fd;
	return 0;
}

mode_t
command_umask(void)
{
	mode_t mask = umask(0);

	(void)umask(mask);
	return mask;
}

int
command_begin_params(const struct command_options *options, int argc,
		     char **argv, struct buf *params, struct errmsg *why)
{
	_cleanup_(strv_fini) struct strv words = { 0 }, env = { 0 };
	_cleanup_(freep) char *cwd = NULL;
	int r = command_cwd(options->cwd, &cwd, why);

	if (r == 0)
		r = command_env(&options->env, options->clear_env, &env, why);
	for (int i = 0; r == 0 && i < argc; i++)
		r = strv_add(&words, argv[i]);
	if (r < 0)
		return r;
	jsonw_begin(params, '{');
	if (words.count > 0)
		jsonw_pair_strv(params, "argv", &words);
	jsonw_pair_strv(params, "env", &env);
	jsonw_pair(params, "cwd", cwd);
	jsonw_pair_uint(params, "umask", command_umask());
	return 0;
}

int
command_exit_code(const struct run_result *result)
{
	if (result->failed)
		return COMMAND_EXIT_PALE;
	if (result->timed_out)
		return COMMAND_EXIT_TIMEOUT;
	if (WIFSIGNALED(result->status))
		return 128 + WTERMSIG(result->status);
	return WEXITSTATUS(result->status);
}

void
command_let_go_of_stdio(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= 1 && fd >= 0; i++)
		(void)dup2(fd, i);
	closep(&fd);
}
