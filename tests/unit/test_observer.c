/* SPDX-License-Identifier: MIT */

/*
 * Each refused call is on record with the errno that the kernel gave, each
 * other one is not.  PALE_BENCH=1 prints the cost of a notified call.
 */

#include <check.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/inotify.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "tests/unit/small_world.h"
#include "tests/unit/suite.h"
#include "warden/observer_priv.h"

/* ---- what inmates do ---- */

static char long_path[8192];

static int
try_open(const char *path, int flags)
{
	return result(open(path, flags | O_CLOEXEC, 0644));
}

#define ACT(name, call)              \
	static int name(void)        \
	{                            \
		return result(call); \
	}
#define OPEN(name, path, flags)               \
	static int name(void)                 \
	{                                     \
		return try_open(path, flags); \
	}

OPEN(write_file, OUT "file", O_WRONLY)
OPEN(truncate_file, OUT "file", O_WRONLY | O_TRUNC)
OPEN(read_truncate, OUT "file", O_RDONLY | O_TRUNC)
OPEN(write_closed, OUT "closed", O_RDWR)
OPEN(truncate_closed, OUT "closed", O_RDWR | O_TRUNC)
OPEN(create_file, OUT "new", O_WRONLY | O_CREAT)
OPEN(create_odd, OUT "n\xff\x01w", O_WRONLY | O_CREAT)
OPEN(create_exists, OUT "file", O_WRONLY | O_CREAT | O_EXCL)
OPEN(create_read, OUT "file", O_RDONLY | O_CREAT)
OPEN(write_missing, OUT "missing", O_WRONLY)
OPEN(write_nowhere, OUT "no/where", O_WRONLY | O_CREAT)
OPEN(write_below_file, OUT "file/x", O_WRONLY | O_CREAT)
OPEN(write_dir, OUT "dir", O_WRONLY)
OPEN(tmpfile_dir, OUT "dir", O_WRONLY | O_TMPFILE)
OPEN(write_through, "/mnt/ws/out", O_WRONLY)
OPEN(write_two_links, "/mnt/ws/chain/file", O_WRONLY)
OPEN(create_dangling, "/mnt/ws/dangling", O_WRONLY | O_CREAT)
OPEN(nofollow_link, OUT "link", O_WRONLY | O_NOFOLLOW)
OPEN(write_dotdot, "/mnt/ws/../out/file", O_WRONLY)
OPEN(dotdot_inside, "/mnt/out/../ws/fresh2", O_WRONLY | O_CREAT)
OPEN(create_inside, "/mnt/ws/fresh", O_WRONLY | O_CREAT)
OPEN(create_in_rw, "/mnt/rw/fresh", O_WRONLY | O_CREAT)
OPEN(create_in_tmp, "/tmp/fresh", O_WRONLY | O_CREAT)
OPEN(write_null, "/dev/null", O_WRONLY)
OPEN(write_fifo, OUT "fifo", O_RDWR | O_NONBLOCK)
OPEN(read_fifo, OUT "fifo", O_RDONLY | O_NONBLOCK)
OPEN(write_long, long_path, O_WRONLY)
OPEN(write_path_only, OUT "file", O_PATH | O_WRONLY)
ACT(write_unreadable, syscall(SYS_openat, AT_FDCWD, 8, O_WRONLY, 0))
ACT(make_dir, mkdir(OUT "newdir", 0755))
ACT(make_dir_slash, mkdir(OUT "newdir/", 0755))
ACT(make_dir_exists, mkdir(OUT "dir", 0755))
ACT(make_node, syscall(SYS_mknodat, AT_FDCWD, OUT "p", S_IFIFO | 0644, 0))
ACT(make_link, symlink("file", OUT "newlink"))
ACT(hard_link, link(OUT "file", OUT "hard"))
ACT(hard_link_missing, link(OUT "missing", OUT "hard"))
ACT(remove_file, unlink(OUT "file"))
ACT(remove_missing, unlink(OUT "missing"))
ACT(remove_dir, rmdir(OUT "dir"))
ACT(remove_dir_file, rmdir(OUT "file"))
ACT(rename_file, rename(OUT "file", OUT "other"))
ACT(rename_missing, rename(OUT "missing", OUT "other"))
ACT(rename_out, rename("/mnt/ws/inner", OUT "inner"))
ACT(rename_tmp, rename("/mnt/ws/inner", "/tmp/inner"))
ACT(cut_file, truncate(OUT "file", 0))
ACT(cut_dir, truncate(OUT "dir", 0))
ACT(change_mode, chmod(OUT "file", 0600))
ACT(change_owner, chown(OUT "file", getuid(), getgid()))
ACT(change_times, utimensat(AT_FDCWD, OUT "file", NULL, 0))
ACT(change_xattr, setxattr(OUT "file", "user.x", "y", 1, 0))
ACT(drop_xattr, removexattr(OUT "link", "user.x"))

static int
write_relative(void)
{
	return chdir("/mnt/out") < 0 ? 98 : try_open("file", O_WRONLY);
}

static int
write_at(void)
{
	int dir = open("/mnt/out", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return result(openat(dir, "./dir/..//file", O_WRONLY | O_CLOEXEC));
}

static int
touch_descriptor(void)
{
	return result(futimens(open(OUT "file", O_RDONLY | O_CLOEXEC), NULL));
}

static int
write_new_call(void)
{
	struct open_how how = { .flags = O_WRONLY | O_CLOEXEC };

	return result(
		syscall(SYS_openat2, AT_FDCWD, OUT "file", &how, sizeof(how)));
}

static int
write_again(void)
{
	char path[64];
	int fd = open(OUT "file", O_RDONLY | O_CLOEXEC);

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return try_open(path, O_WRONLY);
}

static int
write_nested(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 98;
	return write_file();
}

struct attempt {
	const char *name;
	act_fn act;
	const char *path; /* on record; NULL: nothing is */
	int error;	  /* what the inmate sees */
	enum policy_op op;
};

#define SEEN(act, error, op, path)                     \
	{                                              \
#act, act, path, error, POLICY_OP_##op \
	}
#define UNSEEN(act, error)                             \
	{                                              \
#act, act, NULL, error, POLICY_OP_READ \
	}

static const struct attempt attempts[] = {
	SEEN(write_file, EROFS, OPEN_WRITE, OUT "file"),
	SEEN(truncate_file, EROFS, OPEN_WRITE, OUT "file"),
	SEEN(read_truncate, EROFS, OPEN_WRITE, OUT "file"),
	SEEN(write_closed, EACCES, OPEN_WRITE, OUT "closed"),
	SEEN(truncate_closed, EROFS, OPEN_WRITE, OUT "closed"),
	SEEN(create_file, EROFS, CREATE, OUT "new"),
	SEEN(create_odd, EROFS, CREATE, OUT "n\xff\x01w"),
	UNSEEN(create_exists, EEXIST),
	UNSEEN(create_read, 0),
	UNSEEN(write_missing, ENOENT),
	UNSEEN(write_nowhere, ENOENT),
	UNSEEN(write_below_file, ENOTDIR),
	UNSEEN(write_dir, EISDIR),
	SEEN(tmpfile_dir, EROFS, TMPFILE, OUT "dir"),
	SEEN(write_through, EROFS, OPEN_WRITE, OUT "file"),
	SEEN(write_two_links, EROFS, OPEN_WRITE, OUT "file"),
	SEEN(create_dangling, EROFS, CREATE, OUT "made"),
	UNSEEN(nofollow_link, ELOOP),
	SEEN(write_dotdot, EROFS, OPEN_WRITE, OUT "file"),
	UNSEEN(dotdot_inside, 0),
	UNSEEN(create_inside, 0),
	UNSEEN(create_in_rw, 0),
	UNSEEN(create_in_tmp, 0),
	UNSEEN(write_null, 0),
	SEEN(write_fifo, EACCES, OPEN_WRITE, OUT "fifo"),
	UNSEEN(read_fifo, 0),
	UNSEEN(write_long, ENAMETOOLONG),
	UNSEEN(write_path_only, 0),
	UNSEEN(write_unreadable, EFAULT),
	SEEN(make_dir, EROFS, MKDIR, OUT "newdir"),
	SEEN(make_dir_slash, EROFS, MKDIR, OUT "newdir"),
	UNSEEN(make_dir_exists, EEXIST),
	SEEN(make_node, EROFS, MKNOD, OUT "p"),
	SEEN(make_link, EROFS, SYMLINK, OUT "newlink"),
	SEEN(hard_link, EROFS, LINK, OUT "file"),
	UNSEEN(hard_link_missing, ENOENT),
	SEEN(remove_file, EROFS, UNLINK, OUT "file"),
	UNSEEN(remove_missing, EROFS),
	SEEN(remove_dir, EROFS, RMDIR, OUT "dir"),
	UNSEEN(remove_dir_file, EROFS),
	SEEN(rename_file, EROFS, RENAME, OUT "file"),
	UNSEEN(rename_missing, EROFS),
	SEEN(rename_out, EXDEV, RENAME, "/mnt/ws/inner"),
	UNSEEN(rename_tmp, EXDEV),
	SEEN(cut_file, EROFS, TRUNCATE, OUT "file"),
	UNSEEN(cut_dir, EISDIR),
	SEEN(change_mode, EROFS, CHMOD, OUT "file"),
	SEEN(change_owner, EROFS, CHOWN, OUT "file"),
	SEEN(change_times, EROFS, UTIMENS, OUT "file"),
	SEEN(change_xattr, EROFS, SETXATTR, OUT "file"),
	SEEN(drop_xattr, EROFS, REMOVEXATTR, OUT "file"),
	SEEN(write_relative, EROFS, OPEN_WRITE, OUT "file"),
	SEEN(write_at, EROFS, OPEN_WRITE, OUT "file"),
	SEEN(touch_descriptor, EROFS, UTIMENS, OUT "file"),
	SEEN(write_new_call, EROFS, OPEN_WRITE, OUT "file"),
	SEEN(write_again, EROFS, OPEN_WRITE, OUT "file"),
	UNSEEN(write_nested, EROFS),
};
#define N_ATTEMPTS (int)(sizeof(attempts) / sizeof(attempts[0]))

static void
check_record(const struct attempt *attempt)
{
	struct denials_summary summary;

	denials_summarize(world.denials, &summary);
	ck_assert_msg(summary.count == (attempt->path ? 1 : 0),
		      "%s: %d records", attempt->name, (int)summary.count);
	if (!attempt->path)
		return;
	ck_assert_uint_eq(summary.n_first, 1);
	ck_assert_msg(strcmp(summary.first[0].path, attempt->path) == 0,
		      "%s: %s", attempt->name, summary.first[0].path);
	ck_assert_str_eq(policy_op_name(summary.first[0].op),
			 policy_op_name(attempt->op));
	ck_assert_int_eq(summary.first[0].error, attempt->error);
	ck_assert_int_eq(summary.first[0].source, DENIAL_OBSERVED);
	ck_assert_int_eq(summary.first[0].pid, world.inmate);
	ck_assert_int_eq((int)summary.first[0].uid, (int)getuid());
	ck_assert_str_eq(summary.first[0].rule, "mode");
}

START_TEST(a_refusal_is_recorded_with_the_errno_the_inmate_saw)
{
	const struct attempt *attempt = &attempts[_i];
	int error;

	world_start(POLICY_WORKSPACE_WRITE, attempt->act);
	error = world_go();
	ck_assert_msg(error == attempt->error, "%s: errno %d", attempt->name,
		      error);
	check_record(attempt);
	world_end();
}
END_TEST

/* ---- storms ---- */

static const char *storm_path = OUT "file";

static int
storm(void)
{
	int64_t start = clock_mono_ns();

	for (int i = 0; i < storm_size; i++) {
		int fd = open(storm_path, O_WRONLY | O_CLOEXEC);

		if (fd < 0 && errno != EROFS)
			return errno;
		closep(&fd);
	}
	if (getenv("PALE_BENCH"))
		(void)dprintf(2, "%s: %.2f us per notified open\n", storm_path,
			      (double)(clock_mono_ns() - start) / 1000 /
				      storm_size);
	return 0;
}

START_TEST(a_storm_costs_few_rows_and_loses_no_count)
{
	struct denials_summary summary;
	struct observer_stats stats;

	world_start(POLICY_WORKSPACE_WRITE, storm);
	ck_assert_int_eq(world_go(), 0);
	denials_summarize(world.denials, &summary);
	observer_stats(world.observer, &stats);
	ck_assert_uint_eq(summary.count, (unsigned int)storm_size);
	ck_assert_uint_lt(summary.rows, 1000);
	ck_assert_uint_eq(stats.recorded, (unsigned int)storm_size);
	ck_assert_uint_ge(stats.notified, (unsigned int)storm_size);
	ck_assert_uint_eq(stats.lost, 0);
	if (getenv("PALE_BENCH"))
		(void)dprintf(2, "observer: %.2f us each, longest %.0f us\n",
			      (double)stats.busy_ns / 1000 /
				      (double)stats.notified,
			      (double)stats.longest_ns / 1000);
	world_end();
}
END_TEST

START_TEST(a_write_inside_is_not_looked_at_twice)
{
	struct denials_summary summary;

	storm_path = "/mnt/ws/inner";
	world_start(POLICY_WORKSPACE_WRITE, storm);
	ck_assert_int_eq(world_go(), 0);
	denials_summarize(world.denials, &summary);
	ck_assert_uint_eq(summary.count, 0);
	world_end();
	storm_path = OUT "file";
}
END_TEST

/* ---- watches ---- */

static int
watch(void)
{
	int fd = inotify_init1(IN_CLOEXEC);

	if (fd < 0)
		return errno;
	(void)close(fd);
	return 0;
}

START_TEST(who_watches_is_told_of_before_it_can)
{
	struct denials_summary summary;

	atomic_store(&watches, 0);
	world_start(POLICY_READ_ONLY, watch);
	ck_assert_int_eq(world_go(), 0);
	ck_assert_uint_eq(atomic_load(&watches), 1);
	denials_summarize(world.denials, &summary);
	ck_assert_uint_eq(summary.count, 0);
	world_end();
}
END_TEST

static int
touch_inside(void)
{
	int fd = open("/mnt/ws/inner", O_WRONLY | O_CLOEXEC);

	closep(&fd);
	return 0;
}

START_TEST(what_another_let_go_may_have_been_a_watch)
{
	atomic_store(&watches, 0);
	world_start(POLICY_WORKSPACE_WRITE, touch_inside);
	world.observer->pace->stood_in++;
	ck_assert_int_eq(world_go(), 0);
	ck_assert_uint_ge(atomic_load(&watches), 1);
	world_end();
}
END_TEST

START_TEST(a_listener_that_is_none_is_refused)
{
	struct observer_config config = { .listener = 0 };
	struct observer *observer = NULL;
	struct errmsg why = { "" };

	ck_assert_int_lt(observer_start(&config, &observer, &why), 0);
	ck_assert_ptr_null(observer);
	ck_assert_str_ne(why.text, "");
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("observer");

	small_world_prepare();
	memset(long_path, 'x', sizeof(long_path) - 1);
	tcase_set_timeout(tc, SLOW);
	tcase_add_test(tc, a_listener_that_is_none_is_refused);
	tcase_add_loop_test(tc,
			    a_refusal_is_recorded_with_the_errno_the_inmate_saw,
			    0, N_ATTEMPTS);
	tcase_add_test(tc, a_storm_costs_few_rows_and_loses_no_count);
	tcase_add_test(tc, a_write_inside_is_not_looked_at_twice);
	tcase_add_test(tc, who_watches_is_told_of_before_it_can);
	tcase_add_test(tc, what_another_let_go_may_have_been_a_watch);
	return suite_run("observer", tc);
}
