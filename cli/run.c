/* SPDX-License-Identifier: MIT */

/*
 * pale run: one command in a fresh world.
 *
 * What the caller typed becomes a policy, the policy a world, and the
 * command's end our own: its status is ours, and whatever goes wrong on pale's
 * side is 125, so that neither can be taken for the other.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/escalate.h"
#include "cli/launch.h"
#include "cli/run_loop.h"
#include "cli/run_report.h"
#include "cli/tty.h"

#define EXIT_PALE    125
#define EXIT_TIMEOUT 124

/* How long the warden may take to say what was refused. */
#define SUMMARY_MS 10000

struct run_options {
	struct cli_common common;
	struct cli_policy_options policy;
	const char *report, *cwd, *escalate, *why;
	bool clear_env;
	struct strv env;
};

#define RUN(field) offsetof(struct run_options, field)

static const struct cli_option run_rows[] = {
	{ "cwd", 'C', CLI_STRING, RUN(cwd), "DIR",
	  "the command's directory (default: the current one)", NULL },
	{ "env", 0, CLI_LIST, RUN(env), "NAME=VALUE",
	  "set an environment variable", NULL },
	{ "clear-env", 0, CLI_FLAG, RUN(clear_env), NULL,
	  "start with an empty environment", NULL },
	{ "report", 0, CLI_STRING, RUN(report), "FILE|fd:N",
	  "write one JSON object about the run when it is done", NULL },
	{ "escalate", 0, CLI_STRING, RUN(escalate), "MODE",
	  "ask the operator for a wider mode, for this call alone", NULL },
	{ "why", 0, CLI_STRING, RUN(why), "TEXT",
	  "what the wider mode is needed for", NULL },
	CLI_END,
};

static const struct cli_usage run_usage = {
	.command = "run",
	.synopsis = "[options] [--] [COMMAND [ARGUMENT]...]",
	.about = "Runs a command (default: $SHELL) in a fresh fenced world.\n"
		 "Exits with its status; 128+N: killed by signal N; 124: timed "
		 "out; 125: pale\nfailed and nothing ran; 126: cannot be "
		 "executed; 127: not found.",
	.usage_status = EXIT_PALE,
	.stop_at_operand = true,
};

/* ---- the command ---- */

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

static int
make_env(const struct run_options *options, struct strv *ret_env,
	 struct errmsg *why)
{
	int r = 0;

	for (char **at = environ; *at && r == 0 && !options->clear_env; at++)
		r = strv_add(ret_env, *at);
	for (size_t i = 0; i < options->env.count && r == 0; i++) {
		const char *entry = options->env.items[i];

		if (entry[0] == '=' || !strchr(entry, '='))
			return errmsg_set(why, -EINVAL,
					  "--env takes NAME=VALUE, not '%s'",
					  entry);
		r = set_variable(ret_env, entry);
	}
	return r < 0 ? errmsg_set(why, r, "out of memory") : 0;
}

static int
make_argv(char **operands, struct strv *ret_argv, struct errmsg *why)
{
	const char *shell = getenv("SHELL");
	int r = 0;

	for (; *operands && r == 0; operands++)
		r = strv_add(ret_argv, *operands);
	if (r == 0 && ret_argv->count == 0)
		r = strv_add(ret_argv, shell && *shell ? shell : "/bin/sh");
	return r < 0 ? errmsg_set(why, r, "out of memory") : 0;
}

static int
find_cwd(const char *wanted, char **ret_cwd, struct errmsg *why)
{
	*ret_cwd = realpath(wanted ? wanted : ".", NULL);
	if (*ret_cwd)
		return 0;
	return errmsg_set(why, -errno, "cannot use '%s' as the directory: %s",
			  wanted ? wanted : ".", strerror(errno));
}

/* ---- the report ---- */

static int
open_report(const char *where, int *ret_fd, struct errmsg *why)
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

static int
exit_code(const struct run_result *result)
{
	if (result->failed)
		return EXIT_PALE;
	if (result->timed_out)
		return EXIT_TIMEOUT;
	if (WIFSIGNALED(result->status))
		return 128 + WTERMSIG(result->status);
	return WEXITSTATUS(result->status);
}

/* ---- the run ---- */

/* The command has them; held here, a pipe would never see its end. */
static void
let_go_of_stdio(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= 1 && fd >= 0; i++)
		(void)dup2(fd, i);
	closep(&fd);
}

static void
run_world(const struct launch_request *request, struct tty *tty,
	  struct run_report *report, struct run_result *result,
	  char **ret_summary, char *ret_world)
{
	struct launch launch = LAUNCH_NONE;
	_cleanup_(closep) int signals = -1;

	signals = run_signals();
	if (signals < 0)
		(void)errmsg_set(&result->error, signals,
				 "cannot wait for signals: %s",
				 strerror(-signals));
	if (signals < 0 || launch_start(request, &launch, &result->error) < 0) {
		result->failed = true;
		return;
	}
	memcpy(ret_world, launch.world, sizeof(launch.world));
	report->world = ret_world;
	let_go_of_stdio();
	run_loop(&launch, signals, tty, request->policy->limits.timeout_ms,
		 result);
	tty_restore(tty);
	if (launch.summary >= 0 && (result->ended || result->started))
		(void)launch_summary(&launch, SUMMARY_MS, ret_summary);
	report->summary = *ret_summary;
	launch_fini(&launch);
}

static void
tell(const struct run_report *report, const char *program, bool quiet)
{
	const struct run_result *result = report->result;

	if (result->failed)
		cli_error("%s%s", report->world ? "SANDBOX_UNAVAILABLE: " : "",
			  result->error.text);
	else if (result->exec_error != 0)
		cli_error("cannot run '%s': %s", program,
			  strerror(result->exec_error));
	else if (result->timed_out && !quiet)
		cli_error("the command was ended: its time was over");
	if (!quiet)
		run_report_markers(report);
}

static int
widen(const struct run_options *options, const struct strv *argv,
      const char *cwd, struct policy **policy, struct errmsg *why)
{
	const struct escalation wanted = { .mode = options->escalate,
					   .why = options->why,
					   .argv = argv,
					   .cwd = cwd };
	struct policy *wider;
	int r;

	if (!options->escalate && !options->why)
		return 0;
	r = escalate(*policy, &wanted, &wider, why);
	if (r < 0)
		return r;
	policy_unref(*policy);
	*policy = wider;
	return 0;
}

static int
check_requirements(const struct policy *policy, struct errmsg *why)
{
	if (policy->require_full && policy->mode == POLICY_DANGER_FULL_ACCESS)
		return errmsg_set(why, -EINVAL,
				  "--require full cannot be had: under "
				  "danger-full-access there is no fence");
	return 0;
}

static int
run(const struct run_options *options, char **operands)
{
	_cleanup_(policy_unrefp) struct policy *policy = NULL;
	_cleanup_(strv_fini) struct strv argv = { 0 }, env = { 0 };
	_cleanup_(tty_fini) struct tty tty = { .fd = -1 };
	_cleanup_(freep) char *cwd = NULL;
	_cleanup_(freep) char *summary = NULL;
	_cleanup_(closep) int report_fd = -1;
	char world[WORLD_ID_LEN + 1] = "";
	struct run_result result = { .limits = "none" };
	struct run_report report = { .result = &result };
	int r;

	r = open_report(options->report, &report_fd, &result.error);
	if (r == 0)
		r = policy_resolve(&options->policy.request, &policy,
				   &result.error);
	if (r == 0)
		r = find_cwd(options->cwd, &cwd, &result.error);
	if (r == 0)
		r = make_env(options, &env, &result.error);
	if (r == 0)
		r = make_argv(operands, &argv, &result.error);
	if (r == 0)
		r = widen(options, &argv, cwd, &policy, &result.error);
	if (r == 0)
		r = check_requirements(policy, &result.error);
	report.policy = policy;
	if (r < 0) {
		result.failed = true;
	} else {
		tty_save(&tty);

		const struct launch_request request = {
			.policy = policy,
			.cwd = cwd,
			.argv = &argv,
			.env = &env,
			.console = tty.path,
		};

		run_world(&request, &tty, &report, &result, &summary, world);
	}
	report.exit_code = exit_code(&result);
	tell(&report, argv.count > 0 ? argv.items[0] : "",
	     options->common.quiet);
	if (report_fd >= 0) {
		r = run_report_write(&report, report_fd);
		if (r < 0)
			cli_error("cannot write the report: %s", strerror(-r));
	}
	return report.exit_code;
}

int
cmd_run(int argc, char **argv)
{
	struct run_options options = { .policy = CLI_POLICY_INIT };
	const struct cli_group groups[] = {
		{ run_rows, &options },
		{ cli_policy_options, &options.policy },
		{ cli_common_options, &options.common },
		{ NULL, NULL },
	};
	int first, status;

	if (cli_parse(&run_usage, groups, argc, argv, &first, &status))
		status = run(&options, argv + first);
	strv_fini(&options.env);
	cli_policy_fini(&options.policy);
	return status;
}
