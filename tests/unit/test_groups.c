/* SPDX-License-Identifier: MIT */

/*
 * Limits by control groups, on trees of files that look like the kernel's: a
 * namespace of our own has them at /sys/fs/cgroup, and a directory made there
 * gets the files that its parent's controllers give it, as the kernel would.
 */

#include "mount-helper/groups.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "tests/unit/suite.h"

#define ROOT  "/sys/fs/cgroup"
#define TABLE "/tmp/table" /* lies over /proc/self/cgroup */

static unsigned int busy; /* so often a group cannot be removed yet */

static void
write_text(const char *path, const char *text)
{
	_cleanup_(closep) int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_msg(fd >= 0, "%s: %s", path, strerror(errno));
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
}

/* "" where there is no such file. */
static const char *
text_of(const char *dir, const char *name)
{
	static char text[256];
	char path[1024];
	_cleanup_(closep) int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* ---- the kernel's part ---- */

struct file {
	const char *controller, *name;
};
static const struct file files_v2[] = {
	{ "memory", "memory.max" },  { "memory", "memory.swap.max" },
	{ "pids", "pids.max" },	     { "cpu", "cpu.max" },
	{ "", "cgroup.procs" },	     { "", "cgroup.subtree_control" },
	{ "", "cgroup.controllers" }
};
static const struct file files_v1[] = { { "/memory/", "memory.limit_in_bytes" },
					{ "/pids/", "pids.max" },
					{ "/cpu/", "cpu.cfs_quota_us" },
					{ "/cpu/", "cpu.cfs_period_us" },
					{ "/", "cgroup.procs" },
					{ "/", "tasks" } };

static void
fill(const char *path, const struct file *files, size_t n, const char *given)
{
	for (size_t i = 0; i < n; i++) {
		char file[1024];

		if (!strstr(given, files[i].controller))
			continue;
		(void)snprintf(file, sizeof(file), "%s/%s", path,
			       files[i].name);
		write_text(file, "");
	}
}

/* In place of the C library's, for what is linked to this test. */
int
mkdir(const char *path, mode_t mode)
{
	char parent[1024], given[256];

	if (mkdirat(AT_FDCWD, path, mode) < 0)
		return -1;
	if (strncmp(path, ROOT "/", strlen(ROOT "/")) != 0)
		return 0;
	(void)snprintf(parent, sizeof(parent), "%s", path);
	*strrchr(parent, '/') = '\0';
	if (access(ROOT "/cgroup.controllers", F_OK) < 0) {
		fill(path, files_v1, sizeof(files_v1) / sizeof(*files_v1),
		     path + strlen(ROOT));
		return 0;
	}
	(void)snprintf(given, sizeof(given), "%s",
		       text_of(parent, "cgroup.subtree_control"));
	fill(path, files_v2, sizeof(files_v2) / sizeof(*files_v2), given);
	return 0;
}

int
rmdir(const char *path)
{
	DIR *dir;
	const struct dirent *entry;

	if (busy > 0) {
		busy--;
		errno = EBUSY;
		return -1;
	}
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		(void)unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		(void)closedir(dir);
	return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

/* ---- the surroundings ---- */

static void
map_ids(void)
{
	unsigned int uid = geteuid(), gid = getegid();
	char text[64];

	ck_assert_int_eq(unshare(CLONE_NEWUSER | CLONE_NEWNS), 0);
	write_text("/proc/self/setgroups", "deny");
	(void)snprintf(text, sizeof(text), "0 %u 1", uid);
	write_text("/proc/self/uid_map", text);
	(void)snprintf(text, sizeof(text), "0 %u 1", gid);
	write_text("/proc/self/gid_map", text);
	ck_assert_int_eq(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
}

static void
setup(void)
{
	static bool entered;

	if (!entered)
		map_ids();
	entered = true;
	busy = 0;
	ck_assert_int_eq(mount("none", ROOT, "tmpfs", 0, NULL), 0);
	ck_assert_int_eq(mount("none", "/tmp", "tmpfs", 0, NULL), 0);
	write_text(TABLE, "");
	ck_assert_int_eq(mount(TABLE, "/proc/self/cgroup", NULL, MS_BIND, NULL),
			 0);
}

static void
teardown(void)
{
	(void)umount2("/proc/self/cgroup", MNT_DETACH);
	(void)umount2("/tmp", MNT_DETACH);
	(void)umount2(ROOT, MNT_DETACH);
}

static void
make_dirs(const char *path)
{
	char part[512];

	for (const char *at = path; (at = strchr(at + 1, '/'));) {
		(void)snprintf(part, sizeof(part), "%.*s", (int)(at - path),
			       path);
		(void)mkdir(part, 0755);
	}
	(void)mkdir(path, 0755);
}

/* A version 2 tree in which `path` is ours; `given` are its controllers. */
static void
make_v2(const char *path, const char *delegated, const char *given)
{
	char table[512], file[512];

	write_text(ROOT "/cgroup.controllers", "cpu memory pids");
	(void)snprintf(table, sizeof(table), "0::%s\n", path);
	write_text(TABLE, table);
	(void)snprintf(file, sizeof(file), ROOT "%s", path);
	make_dirs(file);
	(void)snprintf(file, sizeof(file), ROOT "%s/cgroup.subtree_control",
		       delegated);
	write_text(file, given);
}

static int
make(struct groups *groups, const struct plan *limits, bool required,
     struct errmsg *why)
{
	struct plan plan = *limits;
	char world[] = "abc";

	plan.world = world;
	return groups_make(groups, &plan, required, why);
}

static const struct plan all = { .memory = 64u << 20,
				 .pids = 10,
				 .cpu_percent = 50 };

/* ---- version 2 ---- */

START_TEST(limits_are_written_below_the_nearest_group_that_hands_them_on)
{
	struct errmsg why = { "" };
	struct groups groups;

	make_v2("/user.slice/u1.service/app.scope", "/user.slice/u1.service",
		"cpu memory pids");
	ck_assert_int_eq(make(&groups, &all, true, &why), 0);
	ck_assert_str_eq(groups_name(&groups), "cgroup2");
	ck_assert_uint_eq(groups.count, 1);
	ck_assert_str_eq(groups.paths[0],
			 ROOT "/user.slice/u1.service/pale-abc");
	ck_assert_str_eq(text_of(groups.paths[0], "memory.max"), "67108864");
	ck_assert_str_eq(text_of(groups.paths[0], "memory.swap.max"), "0");
	ck_assert_str_eq(text_of(groups.paths[0], "pids.max"), "12");
	ck_assert_str_eq(text_of(groups.paths[0], "cpu.max"), "50000 100000");
	/* Nothing is left where it did not work. */
	ck_assert_int_lt(access(ROOT "/user.slice/u1.service/app.scope/"
				     "pale-abc",
				F_OK),
			 0);

	ck_assert_int_eq(groups_enter(&groups, 4711, &why), 0);
	ck_assert_str_eq(text_of(groups.paths[0], "cgroup.procs"), "4711");
	groups_remove(&groups);
	ck_assert_int_lt(access(ROOT "/user.slice/u1.service/pale-abc", F_OK),
			 0);
}
END_TEST

START_TEST(a_limit_that_is_not_asked_for_needs_no_controller)
{
	const struct plan only = { .pids = 5 };
	struct groups groups;

	make_v2("/a/b", "/a", "pids");
	ck_assert_int_eq(make(&groups, &only, true, NULL), 0);
	ck_assert_str_eq(groups.paths[0], ROOT "/a/pale-abc");
	ck_assert_str_eq(text_of(groups.paths[0], "pids.max"), "7");
	groups_remove(&groups);

	/* The root of a namespace is "/". */
	teardown();
	setup();
	make_v2("/", "", "pids");
	ck_assert_int_eq(make(&groups, &only, true, NULL), 0);
	ck_assert_str_eq(groups.paths[0], ROOT "/pale-abc");
	groups_remove(&groups);
}
END_TEST

START_TEST(where_one_controller_is_missing_nothing_is_left)
{
	struct errmsg why = { "" };
	struct groups groups;

	make_v2("/a/b/c", "/a", "cpu pids");
	ck_assert_int_eq(make(&groups, &all, true, &why), -ENOTSUP);
	ck_assert_ptr_nonnull(strstr(why.text, "control group"));
	ck_assert_uint_eq(groups.count, 0);
	for (const char *const *dir =
		     (const char *const[]){ ROOT, ROOT "/a", ROOT "/a/b",
					    ROOT "/a/b/c", NULL };
	     *dir; dir++) {
		char path[512];

		(void)snprintf(path, sizeof(path), "%s/pale-abc", *dir);
		ck_assert_int_lt(access(path, F_OK), 0);
	}
	/* Not insisted on: the number of processes is limited by other means. */
	ck_assert_int_eq(make(&groups, &all, false, &why), 0);
	ck_assert_str_eq(groups_name(&groups), "rlimit");
	ck_assert_int_eq(groups_enter(&groups, 1, &why), 0);
}
END_TEST

START_TEST(a_group_is_removed_once_its_last_process_has_left)
{
	const struct plan only = { .pids = 5 };
	struct groups groups;

	make_v2("/a", "/a", "pids");
	ck_assert_int_eq(make(&groups, &only, true, NULL), 0);
	busy = 3;
	groups_remove(&groups);
	ck_assert_int_lt(access(ROOT "/a/pale-abc", F_OK), 0);
	ck_assert_uint_eq(busy, 0);
}
END_TEST

START_TEST(a_group_that_cannot_be_entered_is_told)
{
	const struct plan only = { .pids = 5 };
	struct errmsg why = { "" };
	struct groups groups;

	make_v2("/a", "/a", "pids");
	ck_assert_int_eq(make(&groups, &only, true, NULL), 0);
	ck_assert_int_eq(unlink(ROOT "/a/pale-abc/cgroup.procs"), 0);
	ck_assert_int_eq(groups_enter(&groups, 1, &why), -ENOENT);
	ck_assert_ptr_nonnull(strstr(why.text, "/a/pale-abc"));
	groups_remove(&groups);
}
END_TEST

/* ---- version 1 ---- */

static void
make_v1_tree(void)
{
	write_text(TABLE, "5:cpu,cpuacct:/x\n4:pids:/\n3:memory:/x/y\n"
			  "1:name=systemd:/z\n0::/\n");
	make_dirs(ROOT "/cpu/x");
	make_dirs(ROOT "/pids");
	make_dirs(ROOT "/memory/x/y");
}

START_TEST(each_controller_of_version_1_gets_its_group)
{
	struct errmsg why = { "" };
	struct groups groups;

	make_v1_tree();
	ck_assert_int_eq(make(&groups, &all, true, &why), 0);
	ck_assert_str_eq(groups_name(&groups), "cgroup1");
	ck_assert_uint_eq(groups.count, 3);
	ck_assert_str_eq(
		text_of(ROOT "/memory/x/y/pale-abc", "memory.limit_in_bytes"),
		"67108864");
	ck_assert_str_eq(text_of(ROOT "/pids/pale-abc", "pids.max"), "12");
	ck_assert_str_eq(text_of(ROOT "/cpu/x/pale-abc", "cpu.cfs_quota_us"),
			 "50000");
	ck_assert_int_eq(groups_enter(&groups, 99, &why), 0);
	ck_assert_str_eq(text_of(ROOT "/cpu/x/pale-abc", "cgroup.procs"), "99");
	groups_remove(&groups);
	ck_assert_int_lt(access(ROOT "/pids/pale-abc", F_OK), 0);
}
END_TEST

START_TEST(of_version_1_all_or_none)
{
	struct errmsg why = { "" };
	struct groups groups;

	make_v1_tree();
	write_text(TABLE, "4:pids:/\n3:memory:/x/y\n");
	ck_assert_int_eq(make(&groups, &all, true, &why), -ENOTSUP);
	ck_assert_int_lt(access(ROOT "/pids/pale-abc", F_OK), 0);
	ck_assert_int_lt(access(ROOT "/memory/x/y/pale-abc", F_OK), 0);
}
END_TEST

START_TEST(no_limit_needs_no_group)
{
	const struct plan none = { 0 };
	struct groups groups;

	ck_assert_int_eq(make(&groups, &none, true, NULL), 0);
	ck_assert_str_eq(groups_name(&groups), "none");
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(
		tc,
		limits_are_written_below_the_nearest_group_that_hands_them_on);
	tcase_add_test(tc, a_limit_that_is_not_asked_for_needs_no_controller);
	tcase_add_test(tc, where_one_controller_is_missing_nothing_is_left);
	tcase_add_test(tc, a_group_is_removed_once_its_last_process_has_left);
	tcase_add_test(tc, a_group_that_cannot_be_entered_is_told);
	tcase_add_test(tc, each_controller_of_version_1_gets_its_group);
	tcase_add_test(tc, of_version_1_all_or_none);
	tcase_add_test(tc, no_limit_needs_no_group);
	return suite_run("mount-helper/groups", tc);
}
