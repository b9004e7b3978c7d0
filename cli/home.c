/* SPDX-License-Identifier: MIT */

/*
 * pale home diff|reset
 *
 * The private home of a workspace is the upper layer of an overlay, kept in
 * pale's state: what is in it differs from the home below.  A deleted name is
 * a character device 0:0 there, and a directory that took another one's place
 * has the attribute "opaque".
 *
 * Agents wrote all of it: no link is followed, no depth of directories is
 * trusted, and no name steers the terminal.
 */

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/strv.h"
#include "base/tree.h"
#include "cli/cli.h"
#include "cli/launch.h"
#include "cli/verbs.h"
#include "cli/worlds.h"

#define GOING_MS 2000

struct opts {
	struct cli_common common;
	struct cli_policy_options policy;
};

static const struct cli_option rows[] = {
	{ "workspace", 'w', CLI_STRING,
	  offsetof(struct opts, policy.request.workspace), "DIR",
	  "the workspace (default: the current directory)", NULL },
	CLI_END,
};

struct home {
	const struct opts *opts;
	struct policy *policy;
	char *dir;	  /* where it is kept */
	int upper, lower; /* -1: not there */
};

static int
open_below(int dirfd, const char *path, int flags)
{
	const struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (dirfd < 0)
		return -ENOENT;
	fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	return fd < 0 ? -errno : (int)fd;
}

/* ---- diff ---- */

struct diff {
	const struct home *home;
	struct strv todo; /* directories of the upper layer; "": the top */
	struct buf out;
	int error;
};

static void
put_change(struct diff *d, char change, const char *dir, const char *name,
	   bool is_dir)
{
	_cleanup_(buf_fini) struct buf path = { 0 };

	buf_putf(&path, "%s%s%s%s", dir, *dir ? "/" : "", name,
		 is_dir ? "/" : "");
	if (buf_error(&path) < 0) {
		d->error = buf_error(&path);
		return;
	}
	if (d->home->opts->common.json) {
		const char text[2] = { change, '\0' };

		jsonw_begin(&d->out, '{');
		jsonw_pair(&d->out, "change", text);
		jsonw_key(&d->out, "path");
		jsonw_bytes(&d->out, path.data, path.len);
		jsonw_end(&d->out, '}');
	} else {
		buf_putf(&d->out, "%c ", change);
		escape_controls(&d->out, path.data, path.len);
	}
	buf_puts(&d->out, "\n");
	if (buf_error(&d->out) < 0)
		d->error = buf_error(&d->out);
	else
		(void)fwrite(d->out.data, 1, d->out.len, stdout);
	buf_fini(&d->out);
	d->out = (struct buf){ 0 };
}

static bool
is_opaque(int fd)
{
	char value;

	return (fgetxattr(fd, "user.overlay.opaque", &value, 1) == 1 ||
		fgetxattr(fd, "trusted.overlay.opaque", &value, 1) == 1) &&
	       value == 'y';
}

static int
is_name(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 &&
	       strcmp(entry->d_name, "..") != 0;
}

static void
diff_entry(struct diff *d, int upper, int lower, const char *dir,
	   const char *name)
{
	struct stat now, old;
	bool was;

	if (fstatat(upper, name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	was = lower >= 0 &&
	      fstatat(lower, name, &old, AT_SYMLINK_NOFOLLOW) == 0;
	if (S_ISCHR(now.st_mode) && now.st_rdev == makedev(0, 0)) {
		if (was)
			put_change(d, 'D', dir, name, S_ISDIR(old.st_mode));
		return;
	}
	if (!S_ISDIR(now.st_mode)) {
		put_change(d, was ? 'M' : 'A', dir, name, false);
		return;
	}
	if (!was || !S_ISDIR(old.st_mode))
		put_change(d, was ? 'M' : 'A', dir, name, true);
	if (strv_addf(&d->todo, "%s%s%s", dir, *dir ? "/" : "", name) < 0)
		d->error = -ENOMEM;
}

/* What an opaque directory hides is gone unless it came again. */
static void
diff_hidden(struct diff *d, int upper, int lower, const char *dir)
{
	struct dirent **names;
	struct stat st;
	int n = lower < 0 ? 0
			  : scandirat(lower, ".", &names, is_name, alphasort);

	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;

		if (fstatat(upper, name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
		    fstatat(lower, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			put_change(d, 'D', dir, name, S_ISDIR(st.st_mode));
		free(names[i]);
	}
	if (n > 0)
		free(names);
}

static int
diff_directory(struct diff *d, const char *dir)
{
	const int flags = O_RDONLY | O_DIRECTORY;
	_cleanup_(closep) int upper = -1, lower = -1;
	const char *at = *dir ? dir : ".";
	struct dirent **names;
	size_t before = d->todo.count;
	int n;

	upper = open_below(d->home->upper, at, flags);
	if (upper < 0)
		return upper;
	lower = open_below(d->home->lower, at, flags);
	n = scandirat(upper, ".", &names, is_name, alphasort);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		diff_entry(d, upper, lower, dir, names[i]->d_name);
		free(names[i]);
	}
	free(names);
	if (is_opaque(upper))
		diff_hidden(d, upper, lower, dir);

	/* The last is taken first: turned round, they come in order. */
	for (size_t a = before, b = d->todo.count; a + 1 < b; a++) {
		char *swap = d->todo.items[a];

		d->todo.items[a] = d->todo.items[--b];
		d->todo.items[b] = swap;
	}
	return d->error;
}

static int
run_diff(const struct home *home, struct errmsg *why)
{
	struct diff d = { .home = home };
	int failed = 0, r = 0;

	if (home->upper < 0)
		return 0;
	if (strv_add(&d.todo, "") < 0)
		r = -ENOMEM;
	while (r == 0 && d.todo.count > 0) {
		_cleanup_(freep) char *dir = NULL;
		int error;

		d.todo.count--;
		dir = take_ptr(&d.todo.items[d.todo.count]);
		error = diff_directory(&d, dir);

		r = d.error;
		if (r == 0 && error < 0 && failed++ == 0)
			(void)errmsg_set(why, error, "cannot list '%.200s': %s",
					 dir, strerror(-error));
	}
	strv_fini(&d.todo);
	buf_fini(&d.out);
	if (r < 0)
		return errmsg_set(why, r, "out of memory");
	return failed > 0 ? -EIO : 0;
}

/* ---- reset ---- */

/* Out of the way first: a run that starts meanwhile makes a new one. */
static int
remove_home(const char *dir)
{
	_cleanup_(freep) char *gone = NULL;
	_cleanup_(closep) int fd = -1;
	int r;

	if (asprintf(&gone, "%s.gone", dir) < 0)
		return -ENOMEM;
	for (int tries = 0; tries < 2; tries++) {
		if (rename(dir, gone) < 0 && errno != ENOENT &&
		    errno != ENOTEMPTY && errno != EEXIST)
			return -errno;
		fd = open(gone,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return errno == ENOENT ? 0 : -errno;
		r = tree_empty(fd);
		closep(&fd);
		fd = -1;
		if (r < 0 || rmdir(gone) < 0)
			return r < 0 ? r : -errno;
	}
	return 0;
}

static int
run_reset(const struct home *home, struct errmsg *why)
{
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	const char *workspace = home->policy->roots[0].path;
	int r = worlds_list(&list, why);

	if (r < 0)
		return r;
	/* The warden of a run that has ended may be on its way out. */
	for (size_t i = 0; i < list.count; i++)
		if (strcmp(list.items[i].workspace, workspace) == 0 &&
		    strcmp(list.items[i].kind, "mount") != 0 &&
		    worlds_await_end(list.items[i].dir, GOING_MS) < 0)
			return errmsg_set(why, -EBUSY,
					  "world %s of '%s' runs: its home is "
					  "in use (pale world stop %s)",
					  list.items[i].id, workspace,
					  list.items[i].id);
	r = remove_home(home->dir);
	return r < 0 ? errmsg_set(why, r, "cannot remove '%s': %s", home->dir,
				  strerror(-r))
		     : 0;
}

/* ---- the verbs ---- */

static const struct verb {
	struct cli_verb verb;
	int (*run)(const struct home *home, struct errmsg *why);
} verb_rows[] = {
	{ { { .command = "home diff",
	      .synopsis = "[options]",
	      .about = "Lists what runs of the workspace with --home private "
		       "have added (A), modified (M)\n"
		       "and deleted (D) in their home.",
	      .usage_status = 2 },
	    .operands = { 0, 0 } },
	  run_diff },
	{ { { .command = "home reset",
	      .synopsis = "[options]",
	      .about = "Removes the private home of the workspace; the next "
		       "run starts from the host's.",
	      .usage_status = 2 },
	    .operands = { 0, 0 } },
	  run_reset },
};

static const struct cli_usage home_usage = {
	.command = "home",
	.synopsis = "diff|reset [options]",
	.about = "The private home of a workspace; see pale home VERB --help.",
	.usage_status = 2,
};

static const struct cli_verbs verbs = CLI_VERBS(&home_usage, verb_rows);

static int
open_home(struct home *home, const struct opts *opts, struct errmsg *why)
{
	_cleanup_(freep) char *upper = NULL;
	int r = policy_resolve(&opts->policy.request, &home->policy, why);

	if (r < 0)
		return r;
	r = launch_home_dir(home->policy->roots[0].path, &home->dir);
	if (r < 0 || asprintf(&upper, "%s/upper", home->dir) < 0)
		return errmsg_set(why, -ENOMEM, "out of memory");
	home->upper = open(upper, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (home->upper < 0 && errno != ENOENT)
		return errmsg_set(why, -errno, "cannot open '%s': %s", upper,
				  strerror(errno));
	if (home->policy->home_path)
		home->lower = open(home->policy->home_path,
				   O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return 0;
}

static int
run_verb(const struct verb *verb, int argc, char **argv)
{
	struct opts opts = { .policy = CLI_POLICY_INIT };
	const struct cli_group groups[] = {
		{ rows, &opts },
		{ cli_common_options, &opts.common },
		{ 0 },
	};
	struct home home = { .opts = &opts, .upper = -1, .lower = -1 };
	struct errmsg why = { "" };
	int first, status, r;

	if (!cli_parse(&verb->verb.usage, groups, argc, argv, &first, &status))
		return status;
	if (argc != first)
		return cli_usage_error(&verb->verb.usage, "takes no operands");
	r = open_home(&home, &opts, &why);
	if (r == 0)
		r = verb->run(&home, &why);
	if (r < 0)
		cli_error("%s", why.text);
	closep(&home.upper);
	closep(&home.lower);
	free(home.dir);
	policy_unref(home.policy);
	cli_policy_fini(&opts.policy);
	return r < 0;
}

int
cmd_home(int argc, char **argv)
{
	int status;
	const struct verb *verb = cli_verbs_find(&verbs, argc, argv, &status);

	return verb ? run_verb(verb, argc - 1, argv + 1) : status;
}
