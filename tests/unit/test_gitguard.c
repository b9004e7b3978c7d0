/* SPDX-License-Identifier: MIT */

/*
 * The git guard against real directories: each operation is judged and then
 * done as the mount would do it.  `w` is the workspace; `w/host.git` and
 * `w/h/.git` are the host's, and were made behind the guard's back.
 */

#include "fusefs/gitguard.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "tests/unit/suite.h"

#define SAFE   "[core]\n\tbare = false\n"
#define UNSAFE "[core]\n\tfsmonitor = evil\n"

static char top[] = "/tmp/test-gitguard-XXXXXX";
static const char *link_target;
static char rule[GITGUARD_RULE_MAX];
static struct policy_root root = { POLICY_ROOT_WORKSPACE, NULL };
static struct policy policy = {
	.mode = POLICY_WORKSPACE_WRITE,
	.roots = &root,
	.n_roots = 1,
	.git_guard = true,
};
static struct gitguard *guard;

/* ---- the fenced operations ---- */

struct end {
	struct gitguard_at at;
	char dir[PATH_MAX], name[NAME_MAX];
};

static void
open_end(const char *path, struct end *end)
{
	const char *slash = strrchr(path, '/');
	char copy[PATH_MAX], *save = NULL;

	snprintf(end->dir, sizeof(end->dir), "%s/%.*s", root.path,
		 slash ? (int)(slash - path) : 0, path);
	snprintf(end->name, sizeof(end->name), "%s", slash ? slash + 1 : path);
	end->at.name = end->name;
	end->at.below = 0;
	end->at.target = link_target;
	end->at.dirfd = open(end->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_msg(end->at.dirfd >= 0, "no directory %s", end->dir);
	snprintf(copy, sizeof(copy), "%.*s", slash ? (int)(slash - path) : 0,
		 path);
	for (char *c = strtok_r(copy, "/", &save); c;
	     c = strtok_r(NULL, "/", &save))
		end->at.below = gitguard_below(end->at.below, c);
}

static int
told(int r, const struct gitguard_check *check)
{
	if (r == -EACCES)
		snprintf(rule, sizeof(rule), "%s", check->verdict.rule);
	return r;
}

static int
op(enum policy_op what, const char *path)
{
	_cleanup_(gitguard_end) struct gitguard_check check = { 0 };
	struct end end;
	int r;

	open_end(path, &end);
	r = gitguard_check(guard, &policy, what, &end.at, &check);
	if (r < 0) {
		close(end.at.dirfd);
		return told(r, &check);
	}
	if (what == POLICY_OP_MKDIR)
		r = mkdirat(end.at.dirfd, end.name, 0755);
	else if (what == POLICY_OP_SYMLINK)
		r = symlinkat(link_target, end.at.dirfd, end.name);
	else if (what == POLICY_OP_UNLINK)
		r = unlinkat(end.at.dirfd, end.name, 0);
	else if (what == POLICY_OP_RMDIR)
		r = unlinkat(end.at.dirfd, end.name, AT_REMOVEDIR);
	else if (what == POLICY_OP_MKNOD)
		r = mknodat(end.at.dirfd, end.name, S_IFREG | 0644, 0);
	r = r < 0 ? -errno : 0;
	close(end.at.dirfd);
	return r;
}

static int
write_small(struct end *end, const char *data, struct gitguard_check *check)
{
	_cleanup_(gitguard_small_freep) struct gitguard_small *small = NULL;
	ssize_t n;
	int r;

	r = gitguard_small_open(&end->at, O_CREAT | O_TRUNC, 0644, check,
				&small);
	gitguard_end(check);
	if (r < 0)
		return told(r, check);
	n = gitguard_small_write(small, &policy, data, strlen(data), 0, check);
	return n < 0 ? told((int)n, check) : 0;
}

/* open(O_CREAT|O_TRUNC) and one write. */
static int
put(const char *path, const char *data)
{
	_cleanup_(gitguard_end) struct gitguard_check check = { 0 };
	_cleanup_(closep) int fd = -1;
	struct end end;
	struct stat st;
	int r;

	open_end(path, &end);
	r = gitguard_check(
		guard, &policy,
		fstatat(end.at.dirfd, end.name, &st, AT_SYMLINK_NOFOLLOW) < 0
			? POLICY_OP_CREATE
			: POLICY_OP_OPEN_WRITE,
		&end.at, &check);
	if (r < 0) {
		r = told(r, &check);
	} else if (check.action == GITGUARD_SMALL) {
		r = write_small(&end, data, &check);
	} else {
		fd = openat(end.at.dirfd, end.name,
			    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		r = fd < 0 ? -errno : fd_write_all(fd, data, strlen(data));
	}
	close(end.at.dirfd);
	return r;
}

static int
move(const char *from_path, const char *to_path)
{
	_cleanup_(gitguard_end) struct gitguard_check check = { 0 };
	struct end from, to;
	int r;

	open_end(from_path, &from);
	open_end(to_path, &to);
	r = gitguard_rename(guard, &policy, &from.at, &to.at, 0, &check);
	if (r == 0 && check.action == GITGUARD_PUBLISH)
		r = gitguard_publish(&from.at, &to.at, &check);
	else if (r == 0 &&
		 renameat(from.at.dirfd, from.name, to.at.dirfd, to.name) < 0)
		r = -errno;
	close(from.at.dirfd);
	close(to.at.dirfd);
	return told(r, &check);
}

static int
hard_link(const char *from_path, const char *to_path)
{
	_cleanup_(gitguard_end) struct gitguard_check check = { 0 };
	struct end from, to;
	int r;

	open_end(from_path, &from);
	open_end(to_path, &to);
	r = gitguard_link(guard, &policy, &from.at, &to.at, &check);
	if (r == 0 &&
	    linkat(from.at.dirfd, from.name, to.at.dirfd, to.name, 0) < 0)
		r = -errno;
	close(from.at.dirfd);
	close(to.at.dirfd);
	return told(r, &check);
}

/* ---- what is there at first ---- */

static void
sh(const char *script)
{
	char command[1024];

	snprintf(command, sizeof(command), "set -e; cd %s; %s", root.path,
		 script);
	ck_assert_int_eq(system(command), 0);
}

#define MAKE_GITDIR(d)                                       \
	"mkdir -p " d "/objects " d "/refs " d "/hooks " d   \
	"/info; echo ref: refs/heads/m >" d "/HEAD; printf " \
	"'[core]\\n\\tbare = false\\n' >" d "/config; "

static void
setup(void)
{
	char path[64];

	snprintf(top, sizeof(top), "/tmp/test-gitguard-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	snprintf(path, sizeof(path), "%s/w", top);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	root.path = strdup(path);
	ck_assert_int_eq(gitguard_new(&guard), 0);
	sh(MAKE_GITDIR("g") MAKE_GITDIR("h/.git") MAKE_GITDIR(
		"evil.git") "echo '[core] fsmonitor = x' >>evil.git/config; "
			    "mkdir s; echo x >g/hooks/post-checkout");
	rule[0] = '\0';
	link_target = "/nowhere";
}

static void
teardown(void)
{
	char command[128];

	guard = gitguard_free(guard);
	snprintf(command, sizeof(command), "rm -rf %s", top);
	ck_assert_int_eq(system(command), 0);
	free(root.path);
}

static void
refused(int r, const char *want)
{
	ck_assert_int_eq(r, -EACCES);
	ck_assert_str_eq(rule, want);
	rule[0] = '\0';
}

#define ok(expr) ck_assert_int_eq(expr, 0)

/* ---- names ---- */

START_TEST(look_alikes_are_taken_for_what_they_look_like)
{
	static const char *const alike[] = {
		".git",
		".GIT",
		".git.",
		".git ",
		"git~1",
		".g\xe2\x80\x8cit",
		".git::$INDEX",
		"CONFIG",
		"config..............  ",
		"Hoo\xe2\x84\xaas",
		"hook\xc5\xbf",
		"config.worktree",
	};
	static const char *const plain[] = {
		"",
		".",
		"g",
		"git",
		".gitignore",
		".gitmodules",
		"config.lock",
		"configs",
		"main.c",
		"HEAD.lock",
		"a-rather-long-name.tar.gz",
		"\xff\xfe",
		"\xe2",
		"refs2",
	};

	for (size_t i = 0; i < sizeof(alike) / sizeof(*alike); i++) {
		struct gitguard_at at = { .name = alike[i] };

		ck_assert_msg(gitguard_cares(POLICY_OP_CREATE, &at), "%s",
			      alike[i]);
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++) {
		struct gitguard_at at = { .name = plain[i] };

		ck_assert_msg(!gitguard_cares(POLICY_OP_CREATE, &at), "%s",
			      plain[i]);
	}
}
END_TEST

START_TEST(the_names_mean_nothing_in_a_plain_directory)
{
	ok(put("s/config", UNSAFE));
	ok(put("s/commondir", "/elsewhere"));
	ok(op(POLICY_OP_MKDIR, "s/hooks"));
	ok(put("s/hooks/pre-commit", "x"));
	ok(op(POLICY_OP_MKDIR, "s/refs"));
	ok(op(POLICY_OP_SYMLINK, "s/info"));
	ok(move("s/config", "s/config2"));
}
END_TEST

/* ---- hooks, info ---- */

START_TEST(hooks_are_protected_but_for_samples)
{
	refused(put("g/hooks/pre-commit", "x"), "git-dir");
	refused(put("g/hooks/post-checkout", "x"), "git-dir");
	refused(op(POLICY_OP_CHMOD, "g/hooks/post-checkout"), "git-dir");
	refused(op(POLICY_OP_UNLINK, "g/hooks/post-checkout"), "git-dir");
	refused(op(POLICY_OP_SYMLINK, "g/hooks/a.sample"), "git-dir");
	refused(op(POLICY_OP_MKDIR, "g/hooks/d"), "git-dir");
	ok(put("g/hooks/pre-commit.sample", "x"));
	ok(op(POLICY_OP_CHMOD, "g/hooks/pre-commit.sample"));
	refused(move("g/hooks/pre-commit.sample", "g/hooks/pre-commit"),
		"git-dir");
	refused(hard_link("g/hooks/pre-commit.sample", "g/hooks/pre-push"),
		"git-dir");
	ok(put("s/x", "x"));
	refused(move("s/x", "g/hooks/pre-commit"), "git-dir");
	refused(hard_link("s/x", "g/hooks/pre-commit"), "git-dir");
	refused(hard_link("g/hooks/post-checkout", "s/y"), "git-dir");
	refused(move("g/hooks", "g/hooks2"), "git-dir");
	refused(op(POLICY_OP_RMDIR, "g/hooks/d"), "git-dir");
	refused(put("g/remotes", "x"), "git-dir");
	ok(op(POLICY_OP_MKDIR, "g/branches"));
	refused(put("g/branches/origin", "ext::x"), "git-dir");
}
END_TEST

START_TEST(a_directory_that_is_already_in_hooks_is_protected_too)
{
	sh("mkdir g/hooks/post-merge.d");
	refused(put("g/hooks/post-merge.d/a", "x"), "git-dir");
	refused(put("g/hooks/post-merge.d/a.sample", "x"), "git-dir");
}
END_TEST

START_TEST(hooks_can_be_made_but_not_brought)
{
	sh("rm -r g/hooks");
	refused(op(POLICY_OP_SYMLINK, "g/hooks"), "git-dir");
	ok(op(POLICY_OP_MKDIR, "s/d"));
	ok(put("s/d/pre-commit", "x"));
	refused(move("s/d", "g/hooks"), "git-dir");
	ok(op(POLICY_OP_UNLINK, "s/d/pre-commit"));
	ok(move("s/d", "g/hooks"));
	refused(put("g/hooks/pre-commit", "x"), "git-dir");
}
END_TEST

START_TEST(attributes_are_protected)
{
	refused(put("g/info/attributes", "* filter=x"), "git-dir");
	refused(put("g/info/ATTRIBUTES", "* filter=x"), "git-dir");
	ok(put("g/info/exclude", "x"));
	refused(move("g/info/exclude", "g/info/attributes"), "git-dir");
	refused(move("g/info", "g/info2"), "git-dir");
	ok(op(POLICY_OP_UNLINK, "g/info/exclude"));
	ok(op(POLICY_OP_RMDIR, "g/info"));
	refused(op(POLICY_OP_SYMLINK, "g/info"), "git-dir");
	ok(op(POLICY_OP_MKDIR, "s/i"));
	ok(put("s/i/attributes", "x"));
	refused(move("s/i", "g/info"), "git-dir");
}
END_TEST

/* ---- config ---- */

START_TEST(config_is_published_by_content)
{
	ok(put("g/config.lock", SAFE "[user]\nname = x\n"));
	ok(move("g/config.lock", "g/config"));
	ok(put("g/config.lock", SAFE UNSAFE));
	refused(move("g/config.lock", "g/config"), "git-config#core.fsmonitor");
	sh("grep -q name g/config && ! grep -q fsmonitor g/config");
	refused(put("g/config", SAFE), "git-dir");
	refused(op(POLICY_OP_TRUNCATE, "g/config"), "git-dir");
	refused(hard_link("g/config", "s/x"), "git-dir");
	refused(move("g/config.lock", "g/config.worktree"),
		"git-config#core.fsmonitor");
	refused(put("g/config.worktree", UNSAFE), "git-config#core.fsmonitor");
	ok(put("g/config.worktree", SAFE));
	ok(op(POLICY_OP_UNLINK, "g/config"));
	ok(put("g/config", SAFE));
	refused(op(POLICY_OP_UNLINK, "evil.git/config"),
		"git-config#core.fsmonitor");
	refused(move("evil.git/config", "evil.git/c"),
		"git-config#core.fsmonitor");
}
END_TEST

START_TEST(the_published_config_is_nobody_elses_file)
{
	char path[PATH_MAX];
	int fd;

	ok(put("g/config.lock", SAFE));
	ok(hard_link("g/config.lock", "s/kept"));
	snprintf(path, sizeof(path), "%s/g/config.lock", root.path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fchmod(fd, 0640), 0);
	ok(move("g/config.lock", "g/config"));
	ck_assert_int_eq(pwrite(fd, UNSAFE, strlen(UNSAFE), 0),
			 (int)strlen(UNSAFE));
	close(fd);
	sh("! grep -q fsmonitor g/config; grep -q bare g/config");
	sh("test $(stat -c %a%h g/config) = 6401; test ! -e g/config.lock");
	sh("test -z \"$(find . -name '.pale-*')\"");
}
END_TEST

START_TEST(a_config_that_is_no_file_is_refused)
{
	ok(op(POLICY_OP_SYMLINK, "s/l"));
	refused(move("s/l", "g/config"), "git-dir");
	refused(op(POLICY_OP_SYMLINK, "g/config.worktree"), "git-dir");
	refused(op(POLICY_OP_MKDIR, "g/config.worktree"), "git-dir");
	refused(op(POLICY_OP_MKNOD, "g/config.worktree"), "git-dir");
}
END_TEST

/* ---- becoming a git directory ---- */

START_TEST(a_directory_is_completed_only_when_harmless)
{
	static const char *const last[] = { "objects", "refs" };

	for (int i = 0; i < 2; i++) {
		char path[32];

		sh("rm -rf s; mkdir s");
		ok(put("s/config", UNSAFE));
		ok(op(POLICY_OP_MKDIR, "s/HEAD"));
		snprintf(path, sizeof(path), "s/%s", last[!i]);
		ok(op(POLICY_OP_MKDIR, path));
		snprintf(path, sizeof(path), "s/%s", last[i]);
		refused(op(POLICY_OP_MKDIR, path), "git-config#core.fsmonitor");
		refused(op(POLICY_OP_MKNOD, path), "git-config#core.fsmonitor");
		refused(op(POLICY_OP_SYMLINK, path),
			"git-config#core.fsmonitor");
		refused(put(path, "x"), "git-config#core.fsmonitor");
		ok(op(POLICY_OP_MKDIR, "s/d"));
		refused(move("s/d", path), "git-config#core.fsmonitor");
		ok(put("s/f", ""));
		refused(hard_link("s/f", path), "git-config#core.fsmonitor");
		ok(put("s/config", SAFE));
		ok(op(POLICY_OP_MKDIR, "s/hooks"));
		ok(put("s/hooks/pre-commit", "x"));
		refused(op(POLICY_OP_MKDIR, path), "git-dir");
		ok(op(POLICY_OP_UNLINK, "s/hooks/pre-commit"));
		ok(op(POLICY_OP_SYMLINK, "s/logs"));
		refused(op(POLICY_OP_MKDIR, path), "git-dir");
		ok(op(POLICY_OP_UNLINK, "s/logs"));
		ok(op(POLICY_OP_MKDIR, path));
	}
}
END_TEST

/* What came as data has not been judged before it has a HEAD. */
START_TEST(a_directory_of_the_host_comes_alive_only_when_harmless)
{
	sh("mkdir s/objects s/refs");
	refused(put("s/config", UNSAFE), "git-config#core.fsmonitor");
	refused(put("s/commondir", "../evil.git"), "git-dir");
	sh("printf '[core]\n\tfsmonitor = evil\n' > s/config");
	refused(op(POLICY_OP_MKDIR, "s/HEAD"), "git-config#core.fsmonitor");
	refused(put("s/HEAD", "x"), "git-config#core.fsmonitor");
	ok(put("s/f", ""));
	refused(move("s/f", "s/HEAD"), "git-config#core.fsmonitor");
	refused(hard_link("s/f", "s/HEAD"), "git-config#core.fsmonitor");
	sh("rm s/config");
	ok(put("s/HEAD", "ref: refs/heads/m"));
}
END_TEST

START_TEST(what_was_open_before_completion_leads_nowhere)
{
	char path[PATH_MAX];
	int fd;

	ok(op(POLICY_OP_MKDIR, "s/objects"));
	ok(op(POLICY_OP_MKDIR, "s/refs"));
	ok(put("s/config", SAFE));
	snprintf(path, sizeof(path), "%s/s/config", root.path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	ok(put("s/HEAD", "ref: refs/heads/m"));
	ck_assert_int_gt(pwrite(fd, UNSAFE, strlen(UNSAFE), 0), 0);
	close(fd);
	sh("! grep -q fsmonitor s/config; grep -q bare s/config");
	refused(put("s/config", SAFE), "git-dir");
}
END_TEST

START_TEST(taking_a_git_directory_apart_is_no_way_round)
{
	/* A commondir may lead here, and needs no HEAD in it. */
	ok(move("g/HEAD", "g/x"));
	refused(put("g/config", UNSAFE), "git-dir");
	ok(put("s/f", UNSAFE));
	refused(move("s/f", "g/config"), "git-config#core.fsmonitor");
	ok(move("g/refs", "g/y"));
	ok(put("g/config", UNSAFE));
	refused(move("g/y", "g/refs"), "git-config#core.fsmonitor");
}
END_TEST

/* ---- gitfiles and work trees ---- */

static void
gitfile(const char *target, const char *want)
{
	char text[PATH_MAX + 16];

	snprintf(text, sizeof(text), "gitdir: %s\n", target);
	if (want) {
		refused(put("s/.git", text), want);
		ok(put("s/f", text));
		refused(move("s/f", "s/.git"), want);
	} else {
		ok(put("s/.git", text));
	}
	sh("rm -f s/.git s/f");
}

START_TEST(a_gitfile_leads_to_guarded_places_only)
{
	char path[PATH_MAX];

	sh("mkdir -p h/.git/worktrees/s h/.git/modules; ln -s . l; mkdir ../o; "
	   "cp -r evil.git ../o/");
	gitfile("../h/.git/worktrees/s", NULL);
	gitfile("../h/.git/modules/new/one", NULL);
	gitfile("new", NULL);
	snprintf(path, sizeof(path), "%s/h/.git", root.path);
	gitfile(path, NULL);
	snprintf(path, sizeof(path), "%s/g2", root.path);
	gitfile(path, NULL);
	snprintf(path, sizeof(path), "%s/evil.git", root.path);
	gitfile(path, "git-dir");
	snprintf(path, sizeof(path), "%s/../o/evil.git", root.path);
	gitfile(path, "git-dir");
	snprintf(path, sizeof(path), "%s/o/evil.git", top);
	gitfile(path, "git-dir");
	snprintf(path, sizeof(path), "%s/l/h/.git", root.path);
	gitfile(path, "git-dir");
	gitfile("../evil.git", "git-dir");
	gitfile("../../o/evil.git", "git-dir");
	gitfile("../l/h/.git/modules/x", "git-dir");
	gitfile("../h/.git/modules/../../../evil.git", "git-dir");
	gitfile("/tmp/nothing", "git-dir");
	gitfile("", "git-dir");
	refused(put("s/.git", "x"), "git-dir");
	sh("rm -f s/.git");
	refused(op(POLICY_OP_SYMLINK, "s/.git"), "git-dir");
	refused(op(POLICY_OP_MKNOD, "s/.git"), "git-dir");
}
END_TEST

START_TEST(a_directory_becomes_dot_git_by_content)
{
	refused(move("evil.git", "s/.git"), "git-config#core.fsmonitor");
	refused(move("g", "s/.git"), "git-dir"); /* it has a hook */
	sh("rm g/hooks/post-checkout");
	ok(move("g", "s/.git"));
	ok(op(POLICY_OP_MKDIR, "t"));
	ok(move("s/.git", "t/.git"));
	ok(op(POLICY_OP_MKDIR, "p"));
	ok(move("p", "s/.git"));
}
END_TEST

START_TEST(a_linked_work_tree_can_be_made)
{
	char text[PATH_MAX + 16];

	ok(op(POLICY_OP_MKDIR, "h/.git/worktrees"));
	ok(op(POLICY_OP_MKDIR, "h/.git/worktrees/s"));
	snprintf(text, sizeof(text), "%s/s/.git\n", root.path);
	ok(put("h/.git/worktrees/s/gitdir", text));
	snprintf(text, sizeof(text), "gitdir: %s/h/.git/worktrees/s\n",
		 root.path);
	ok(put("s/.git", text));
	ok(put("h/.git/worktrees/s/HEAD", "x\n"));
	refused(put("h/.git/worktrees/s/commondir", "../../../../evil.git\n"),
		"git-dir");
	ok(put("h/.git/worktrees/s/commondir", "../..\n"));
	refused(put("h/.git/worktrees/s/commondir", "../../../../evil.git\n"),
		"git-dir");
	sh("test \"$(cat h/.git/worktrees/s/commondir)\" = ../..");
	refused(put("h/.git/worktrees/s/gitdir", "/etc/.git\n"), "git-dir");
	refused(op(POLICY_OP_TRUNCATE, "h/.git/worktrees/s/commondir"),
		"git-dir");
	ok(op(POLICY_OP_UNLINK, "h/.git/worktrees/s/commondir"));
	ok(op(POLICY_OP_UNLINK, "h/.git/worktrees/s/gitdir"));
}
END_TEST

/* The submodule's config with this core.worktree. */
static int
set_worktree(const char *value)
{
	char text[256];

	snprintf(text, sizeof(text), SAFE "\tworktree = %s\n", value);
	ok(put("h/.git/modules/sub/config.lock", text));
	return move("h/.git/modules/sub/config.lock",
		    "h/.git/modules/sub/config");
}

START_TEST(a_submodule_may_name_its_own_work_tree)
{
	static const char *const bad[] = {
		"../../../t",
		"../../../../g",
		"../../../.git/hooks",
		"../../../l/sub",
		"../../../sub/.",
		"../../..",
		"/tmp",
		"../../hooks",
		"sub",
		"../../../b/refs",
	};

	sh("mkdir -p h/sub h/t; ln -s . h/l; " MAKE_GITDIR("h/.git/modules/sub")
		   MAKE_GITDIR("h/b"));
	ok(put("h/t/.git", "gitdir: ../.git/modules/t\n"));
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		refused(set_worktree(bad[i]), "git-config#core.worktree");
	ok(set_worktree("../../../sub"));
	ok(put("h/sub/.git", "gitdir: ../.git/modules/sub\n"));
	ok(set_worktree("../../../not/yet"));
	ok(set_worktree("../../../sub"));
	ok(op(POLICY_OP_UNLINK, "h/sub/.git"));
	ok(put("h/.git/modules/sub/config.lock", SAFE));
	ok(move("h/.git/modules/sub/config.lock", "h/.git/modules/sub/config"));
	ok(set_worktree("../../../sub"));
	ok(put("h/sub/.git", "gitdir: ../.git/modules/sub\n"));

	/* Moved up, the same words would lead out of the workspace. */
	refused(move("h/.git/modules/sub", "h/x"), "git-dir");
	refused(move("h/.git/modules", "m"), "git-dir");
	ok(move("h", "h2"));
}
END_TEST

START_TEST(there_are_no_symlinks_in_a_git_directory)
{
	sh("mkdir -p g/logs/refs s/d; ln -s / s/d/l; ln -s / s/l");
	refused(op(POLICY_OP_SYMLINK, "g/worktrees"), "git-dir");
	refused(op(POLICY_OP_SYMLINK, "g/logs/refs/x"), "git-dir");
	refused(move("s/l", "g/logs/HEAD"), "git-dir");
	refused(hard_link("s/l", "g/logs/HEAD"), "git-dir");
	refused(move("s/d", "g/worktrees"), "git-dir");
	ok(op(POLICY_OP_SYMLINK, "s/e"));

	/* git tries whether it can make one that says "testing". */
	link_target = "testing";
	ok(op(POLICY_OP_SYMLINK, "g/tAbCdE"));
	refused(op(POLICY_OP_SYMLINK, "g/config.worktree"), "git-dir");
	link_target = "..";
	refused(op(POLICY_OP_SYMLINK, "g/worktrees"), "git-dir");
}
END_TEST

START_TEST(asking_without_a_guard_changes_nothing)
{
	struct gitguard_check check;
	struct gitguard_at at;
	struct end end;

	ok(put("s/config", SAFE));
	ok(op(POLICY_OP_MKDIR, "s/objects"));
	ok(op(POLICY_OP_MKDIR, "s/refs"));
	open_end("s/HEAD", &end);
	at = end.at;
	sh("stat -c %i s/config >../ino");
	ok(gitguard_check(NULL, &policy, POLICY_OP_CREATE, &at, &check));
	ck_assert(!check.replaced);
	sh("test $(stat -c %i s/config) = $(cat ../ino)");
	close(end.at.dirfd);
}
END_TEST

START_TEST(a_descriptor_is_judged_by_its_present_name)
{
	struct gitguard_check check;
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/g/hooks/post-checkout", root.path);
	fd = open(path, O_PATH | O_CLOEXEC);
	ck_assert_int_eq(
		gitguard_check_fd(guard, &policy, POLICY_OP_CHMOD, fd, &check),
		-EACCES);
	sh("mv g/hooks/post-checkout s/x");
	ok(gitguard_check_fd(guard, &policy, POLICY_OP_CHMOD, fd, &check));
	gitguard_end(&check);
	close(fd);
}
END_TEST

START_TEST(without_the_guard_all_is_allowed)
{
	policy.git_guard = false;
	ok(put("g/hooks/pre-commit", "x"));
	ok(put("g/config", UNSAFE));
	policy.git_guard = true;
}
END_TEST

static int
open_index(struct gitguard_small **ret_small)
{
	_cleanup_(gitguard_end) struct gitguard_check check = { 0 };
	struct end end;
	int r;

	open_end("g/index", &end);
	ok(gitguard_check(guard, &policy, POLICY_OP_OPEN_WRITE, &end.at,
			  &check));
	ck_assert_int_eq(check.action, GITGUARD_SMALL);
	r = gitguard_small_open(&end.at, O_RDWR, 0, &check, ret_small);
	close(end.at.dirfd);
	return r;
}

/* An index of 30 MiB, opened again and again. */
START_TEST(what_open_files_keep_in_memory_is_bounded)
{
	enum {
		MOST = LIMIT_GITKEPT / (30u << 20)
	};
	struct gitguard_small *small[MOST + 1];

	sh("truncate -s 30M g/index");
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < MOST; i++)
			ok(open_index(&small[i]));
		ck_assert_int_eq(open_index(&small[MOST]), -ENFILE);
		for (size_t i = 0; i < MOST; i++)
			small[i] = gitguard_small_free(small[i]);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("gitguard");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, look_alikes_are_taken_for_what_they_look_like);
	tcase_add_test(tc, the_names_mean_nothing_in_a_plain_directory);
	tcase_add_test(tc, hooks_are_protected_but_for_samples);
	tcase_add_test(tc,
		       a_directory_that_is_already_in_hooks_is_protected_too);
	tcase_add_test(tc, hooks_can_be_made_but_not_brought);
	tcase_add_test(tc, attributes_are_protected);
	tcase_add_test(tc, config_is_published_by_content);
	tcase_add_test(tc, the_published_config_is_nobody_elses_file);
	tcase_add_test(tc, a_config_that_is_no_file_is_refused);
	tcase_add_test(tc, a_directory_is_completed_only_when_harmless);
	tcase_add_test(tc,
		       a_directory_of_the_host_comes_alive_only_when_harmless);
	tcase_add_test(tc, what_was_open_before_completion_leads_nowhere);
	tcase_add_test(tc, taking_a_git_directory_apart_is_no_way_round);
	tcase_add_test(tc, a_gitfile_leads_to_guarded_places_only);
	tcase_add_test(tc, a_directory_becomes_dot_git_by_content);
	tcase_add_test(tc, a_linked_work_tree_can_be_made);
	tcase_add_test(tc, a_submodule_may_name_its_own_work_tree);
	tcase_add_test(tc, there_are_no_symlinks_in_a_git_directory);
	tcase_add_test(tc, asking_without_a_guard_changes_nothing);
	tcase_add_test(tc, a_descriptor_is_judged_by_its_present_name);
	tcase_add_test(tc, without_the_guard_all_is_allowed);
	tcase_add_test(tc, what_open_files_keep_in_memory_is_bounded);
	return suite_run("fusefs/gitguard", tc);
}
