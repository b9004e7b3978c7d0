/* SPDX-License-Identifier: MIT */

/*
 * The observer and the connect broker against a small world of the test's own:
 * a process in new user, mount and pid namespaces where all but three
 * directories is read-only, under a filter that notifies every call.
 *
 *   /mnt/ws   the workspace (FUSE in a real world: never recorded here)
 *   /mnt/rw   a writable root; the host is in it too
 *   /tmp      private
 *   /mnt/out  everything else
 *
 * What the inmate does is a function that returns the errno it saw; the test
 * holds it against what is on record.  PALE_BENCH=1 prints the cost of a call.
 */

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/fd.h"
#include "mount-helper/usher_connect.h"
#include "policy/denial.h"
#include "policy/rules.h"
#include "tests/unit/suite.h"
#include "warden/observer.h"

#define OUT  "/mnt/out/"
#define SLOW 60

/* The inmate's part; returns 0, or the positive errno of its call. */
typedef int (*act_fn)(void);

struct world {
	int sock;    /* the warden's end of "world" */
	int control; /* to the inmate */
	pid_t usher, inmate;
	int listener;
	struct policy *policy;
	struct denials *denials;
	struct observer *observer;
};

static struct world world;
static int tcp_port;

/* ---- the world's side ---- */

static void
require(bool ok, const char *what)
{
	if (ok)
		return;
	(void)dprintf(2, "test world: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static void
set_readonly(const char *path, bool readonly, unsigned int flags)
{
	struct mount_attr attr = { 0 };

	if (readonly)
		attr.attr_set = MOUNT_ATTR_RDONLY;
	else
		attr.attr_clr = MOUNT_ATTR_RDONLY;
	require(syscall(SYS_mount_setattr, AT_FDCWD, path, flags, &attr,
			sizeof(attr)) == 0,
		path);
}

static void
open_place(const char *path)
{
	require(mount(path, path, NULL, MS_BIND, NULL) == 0, path);
	set_readonly(path, false, 0);
}

static void
scope_abstract_names(void)
{
	struct {
		uint64_t fs, net, scoped;
	} attr = { .scoped = 1 };
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr),
			      0);

	require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no_new_privs");
	if (fd >= 0)
		(void)syscall(SYS_landlock_restrict_self, fd, 0);
	closep(&fd);
}

static int
install_filter(void)
{
#define NOTIFY(name)                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		NOTIFY(openat),
		NOTIFY(openat2),
		NOTIFY(mkdirat),
		NOTIFY(mknodat),
		NOTIFY(symlinkat),
		NOTIFY(unlinkat),
		NOTIFY(renameat2),
		NOTIFY(linkat),
		NOTIFY(truncate),
		NOTIFY(fchmodat),
		NOTIFY(fchownat),
		NOTIFY(utimensat),
		NOTIFY(setxattr),
		NOTIFY(removexattr),
		NOTIFY(connect),
#ifdef SYS_open
		NOTIFY(open),
		NOTIFY(creat),
		NOTIFY(mkdir),
		NOTIFY(unlink),
		NOTIFY(rmdir),
		NOTIFY(rename),
		NOTIFY(link),
		NOTIFY(symlink),
		NOTIFY(chmod),
		NOTIFY(chown),
#endif
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]),
				      .filter = code };

	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void
inmate_main(int control, act_fn act)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	int listener;
	char byte = 0;

	/* A masked /proc (a container's) forbids it: then there is the old. */
	(void)mount("proc", "/proc", "proc", 0, NULL);
	require(syscall(SYS_capset, &header, none) == 0, "capset");
	listener = install_filter();
	require(listener >= 0, "filter");
	require(fd_send(control, &byte, 1, &listener, 1) == 0, "send");
	(void)close(listener);
	require(read(control, &byte, 1) == 1, "go");
	_exit(act());
}

static _Noreturn void
usher_main(int sock, int control, act_fn act)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	pid_t inmate;
	char byte = 0;

	require(write(control, &byte, 1) == 1 && read(control, &byte, 1) == 1,
		"maps");
	require(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "/");
	set_readonly("/", true, AT_RECURSIVE);
	open_place("/mnt/ws");
	open_place("/mnt/rw");
	require(mount("tmp", "/tmp", "tmpfs", 0, NULL) == 0, "/tmp");
	scope_abstract_names();

	inmate =
		(pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_PARENT | SIGCHLD,
			       NULL, NULL, NULL, NULL);
	if (inmate == 0) {
		(void)close(sock);
		inmate_main(control, act);
	}
	require(inmate > 0, "clone");
	require(fd_send(control, &inmate, sizeof(inmate), NULL, 0) == 0, "pid");
	(void)close(control);
	(void)prctl(PR_SET_DUMPABLE, 0);

	/* No inmate has the number that init has; this one connects. */
	require(usher_serve(sock, proc, -1) == 0, "serve");
	_exit(0);
}

/* ---- the warden's side ---- */

static struct policy *
policy_get(void *data)
{
	return policy_ref(data);
}

static struct policy *
make_policy(enum policy_mode mode)
{
	static const struct {
		enum policy_root_kind kind;
		const char *path;
	} roots[] = { { POLICY_ROOT_WORKSPACE, "/mnt/ws" },
		      { POLICY_ROOT_RW, "/mnt/rw" } };
	struct policy *policy = calloc(1, sizeof(*policy));

	ck_assert_ptr_nonnull(policy);
	policy->refs = 1;
	policy->mode = mode;
	policy->tmp_writable = true;
	policy->roots = calloc(2, sizeof(*policy->roots));
	ck_assert_int_eq(rules_new(&policy->rules), 0);
	for (size_t i = 0; i < 2; i++) {
		policy->roots[i].kind = roots[i].kind;
		policy->roots[i].path = strdup(roots[i].path);
	}
	policy->n_roots = 2;
	return policy;
}

static void
write_map(pid_t pid, const char *name, const char *text)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	(void)close(fd);
}

static void
write_maps(pid_t pid)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%d %d 1", (int)getuid(),
		       (int)getuid());
	write_map(pid, "uid_map", text);
	write_map(pid, "setgroups", "deny");
	(void)snprintf(text, sizeof(text), "%d %d 1", (int)getgid(),
		       (int)getgid());
	write_map(pid, "gid_map", text);
}

/* Two messages of the usher and its child, in either order. */
static void
take_inmate(struct world *w)
{
	w->listener = -1;
	w->inmate = 0;
	while (w->listener < 0 || w->inmate == 0) {
		int fds[FD_PASS_MAX];
		size_t nfds = 0;
		pid_t pid = 0;
		ssize_t n = fd_recv(w->control, &pid, sizeof(pid), fds, &nfds);

		ck_assert_int_gt(n, 0);
		if (n == (ssize_t)sizeof(pid))
			w->inmate = pid;
		else if (nfds == 1)
			w->listener = fds[0];
	}
}

static void
world_start(enum policy_mode mode, act_fn act)
{
	const struct denials_config records = { .dir = "/mnt/state",
						.db_path = "/mnt/state/pale.db",
						.session = "default",
						.world = "testworld" };
	struct observer_config config = { .init_pid = -1,
					  .policy_get = policy_get };
	int socks[2], control[2];
	struct errmsg why = { "" };
	struct world *w = &world;
	char byte = 0;

	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks),
		0);
	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control),
		0);
	/* A sanitizer's own thread forbids unshare(CLONE_NEWUSER). */
	w->usher =
		(pid_t)syscall(SYS_clone, CLONE_NEWUSER | CLONE_NEWNS | SIGCHLD,
			       NULL, NULL, NULL, NULL);
	ck_assert_int_ge(w->usher, 0);
	if (w->usher == 0) {
		(void)close(socks[0]);
		(void)close(control[0]);
		usher_main(socks[1], control[1], act);
	}
	(void)close(socks[1]);
	(void)close(control[1]);
	w->sock = socks[0];
	w->control = control[0];
	ck_assert_int_eq(read(w->control, &byte, 1), 1);
	write_maps(w->usher);
	ck_assert_int_eq(write(w->control, &byte, 1), 1);
	take_inmate(w);

	/* What a failed test left. */
	(void)unlink("/mnt/state/denials.spool");
	w->policy = make_policy(mode);
	ck_assert_msg(denials_open(&records, &w->denials, &why) == 0, "%s",
		      why.text);
	config.listener = w->listener;
	config.usher_sock = w->sock;
	config.data = w->policy;
	config.denials = w->denials;
	ck_assert_msg(observer_start(&config, &w->observer, &why) == 0, "%s",
		      why.text);
}

/* Lets the inmate act; what it returned. */
static int
world_go(void)
{
	char byte = 0;
	int status;

	ck_assert_int_eq(write(world.control, &byte, 1), 1);
	ck_assert_int_eq(waitpid(world.inmate, &status, 0), world.inmate);
	ck_assert_msg(WIFEXITED(status), "status %x", status);
	return WEXITSTATUS(status);
}

static void
world_end(void)
{
	struct world *w = &world;

	w->observer = observer_stop(w->observer);
	(void)close(w->listener);
	(void)close(w->sock);
	(void)close(w->control);
	ck_assert_int_eq(waitpid(w->usher, NULL, 0), w->usher);
	w->denials = denials_close(w->denials);
	w->policy = policy_unref(w->policy);
}

/* ---- what inmates do ---- */

static char long_path[8192];

static int
result(long r)
{
	return r < 0 ? errno : 0;
}

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

static int storm_size = 20000;
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

/* ---- sockets ---- */

static int host_out = -1, host_rw = -1, host_name = -1, host_tcp = -1;
static char abstract_name[32];

static socklen_t
name_socket(struct sockaddr_un *un, const char *path)
{
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (path[0] == '@') {
		memcpy(un->sun_path + 1, path + 1, strlen(path) - 1);
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				   strlen(path));
	}
	(void)snprintf(un->sun_path, sizeof(un->sun_path), "%s", path);
	return sizeof(*un);
}

static int
listen_at(const char *path)
{
	struct sockaddr_un un;
	socklen_t len = name_socket(&un, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (path[0] != '@')
		(void)unlink(path);
	if (bind(fd, (struct sockaddr *)&un, len) < 0 || listen(fd, 100) < 0)
		return -1;
	return fd;
}

static int
connect_at(const char *path)
{
	struct sockaddr_un un;
	socklen_t len = name_socket(&un, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = result(connect(fd, (struct sockaddr *)&un, len));

	(void)close(fd);
	return r;
}

static int
connect_tcp(int port, int flags)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), r;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r = result(connect(fd, (struct sockaddr *)&in, sizeof(in)));
	if (r == EINPROGRESS) {
		struct pollfd pfd = { .fd = fd, .events = POLLOUT };
		socklen_t len = sizeof(r);

		(void)poll(&pfd, 1, 5000);
		(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &r, &len);
	}
	(void)close(fd);
	return r;
}

static void
start_host(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);

	(void)snprintf(abstract_name, sizeof(abstract_name), "@pale-test-%d",
		       (int)getpid());
	host_out = listen_at(OUT "host.sock");
	host_rw = listen_at("/mnt/rw/host.sock");
	host_name = listen_at(abstract_name);
	host_tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(host_tcp, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(listen(host_tcp, 1000), 0);
	ck_assert_int_eq(getsockname(host_tcp, (struct sockaddr *)&in, &len),
			 0);
	tcp_port = ntohs(in.sin_port);
	ck_assert(host_out >= 0 && host_rw >= 0 && host_name >= 0);
}

static void
stop_host(void)
{
	closep(&host_out);
	closep(&host_rw);
	closep(&host_name);
	closep(&host_tcp);
}

static int
reach_out(void)
{
	return connect_at(OUT "host.sock");
}

static int
reach_relative(void)
{
	return chdir("/mnt/out") < 0 ? 98 : connect_at("../out/host.sock");
}

static int
reach_by_link(void)
{
	return connect_at("/mnt/ws/chain/host.sock");
}

static int
reach_rw(void)
{
	return connect_at("/mnt/rw/host.sock");
}

static int
reach_name(void)
{
	return connect_at(abstract_name);
}

static int
reach_nested(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 98;
	return connect_at(OUT "host.sock");
}

static int
reach_file(void)
{
	return connect_at(OUT "file");
}

static int
reach_missing(void)
{
	return connect_at("/tmp/missing.sock");
}

/* A listener of the world's own, by path and by name. */
static int
reach_own(void)
{
	if (listen_at("/tmp/own.sock") < 0 || listen_at("@pale-own") < 0 ||
	    listen_at("/mnt/rw/own.sock") < 0 || listen_at("/mnt/ws/s") < 0)
		return 97;
	if (connect_at("/tmp/own.sock") || connect_at("/mnt/ws/s"))
		return 96;
	if (connect_at("/mnt/rw/own.sock"))
		return 95;
	if (connect_at("/proc/self/root/tmp/own.sock"))
		return 94;
	if (chdir("/tmp") < 0 || connect_at("own.sock"))
		return 93;
	return connect_at("@pale-own");
}

/* A listener that forks and leaves, as ssh-agent does. */
static int
reach_orphan(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)listen_at("/tmp/orphan.sock");
		if (fork() == 0)
			(void)pause();
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	return connect_at("/tmp/orphan.sock");
}

static int
reach_datagram(void)
{
	struct sockaddr_un un;
	socklen_t len = name_socket(&un, OUT "host.sock");
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return result(connect(fd, (struct sockaddr *)&un, len));
}

static int
reach_tcp(void)
{
	int r = connect_tcp(tcp_port, 0);

	if (r == 0)
		r = connect_tcp(tcp_port, SOCK_NONBLOCK);
	if (r == 0 && connect_tcp(1, 0) != ECONNREFUSED)
		r = 97;
	if (r == 0 && connect_tcp(1, SOCK_NONBLOCK) != ECONNREFUSED)
		r = 96;
	return r;
}

static int
reach_garbage(void)
{
	char bytes[600] = { 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (void *)bytes, 600) == 0 || errno != EINVAL)
		return 97;
	if (connect(fd, (void *)8, 16) == 0 || errno != EFAULT)
		return 96;
	if (connect(4000, (void *)bytes, 16) == 0 || errno != EBADF)
		return 95;
	if (connect(fd, (void *)bytes, 0) == 0 || errno != EINVAL)
		return 94;
	if (connect(open("/dev/null", O_RDONLY | O_CLOEXEC), (void *)bytes,
		    16) == 0 ||
	    errno != ENOTSOCK)
		return 93;
	return 0;
}

static int
reach_parallel(void)
{
	int failed = 0, status;

	for (int i = 0; i < 100; i++)
		if (fork() == 0)
			_exit(connect_tcp(tcp_port, 0));
	while (wait(&status) > 0)
		failed += status != 0;
	return failed;
}

static void
on_alarm(int sig)
{
	(void)sig;
}

/* A full backlog blocks; a signal must end that, and others go on. */
static int
reach_full(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval timer = { .it_value = { .tv_usec = 300000 } };
	struct sockaddr_un un;
	socklen_t len = name_socket(&un, "/tmp/full.sock");
	int server = listen_at("/tmp/full.sock"), fds[4];
	int r = 0;

	(void)listen(server, 0);
	(void)sigaction(SIGALRM, &action, NULL);
	(void)setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < 4 && r == 0; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = result(connect(fds[i], (struct sockaddr *)&un, len));
	}
	return r == EINTR ? connect_tcp(tcp_port, 0) : 97;
}

struct reach {
	const char *name;
	act_fn act;
	int error;
	const char *path; /* on record; NULL: nothing is */
};

static const struct reach reaches[] = {
	{ "out", reach_out, EACCES, OUT "host.sock" },
	{ "relative", reach_relative, EACCES, OUT "host.sock" },
	{ "by link", reach_by_link, EACCES, OUT "host.sock" },
	{ "rw", reach_rw, EACCES, "/mnt/rw/host.sock" },
	{ "name", reach_name, EPERM, abstract_name },
	{ "nested", reach_nested, EACCES, OUT "host.sock" },
	{ "file", reach_file, ECONNREFUSED, NULL },
	{ "missing", reach_missing, ENOENT, NULL },
	{ "own", reach_own, 0, NULL },
	{ "orphan", reach_orphan, 0, NULL },
	{ "datagram", reach_datagram, EACCES, OUT "host.sock" },
	{ "tcp", reach_tcp, 0, NULL },
	{ "garbage", reach_garbage, 0, NULL },
	{ "parallel", reach_parallel, 0, NULL },
	{ "full", reach_full, 0, NULL },
};
#define N_REACHES (int)(sizeof(reaches) / sizeof(reaches[0]))

START_TEST(only_the_worlds_own_sockets_are_reached)
{
	const struct reach *reach = &reaches[_i];
	struct denials_summary summary;
	int error;

	start_host();
	world_start(POLICY_WORKSPACE_WRITE, reach->act);
	error = world_go();
	ck_assert_msg(error == reach->error, "%s: errno %d", reach->name,
		      error);
	denials_summarize(world.denials, &summary);
	ck_assert_msg(summary.count == (reach->path ? 1 : 0), "%s: %d records",
		      reach->name, (int)summary.count);
	if (reach->path) {
		ck_assert_str_eq(summary.first[0].path, reach->path);
		ck_assert_int_eq(summary.first[0].op, POLICY_OP_CONNECT);
		ck_assert_int_eq(summary.first[0].error, reach->error);
	}
	ck_assert_int_lt(accept(host_out, NULL, NULL), 0);
	world_end();
	stop_host();
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

/* ---- a private /mnt for all of it ---- */

static void
own_mounts(void)
{
	char text[64];
	int uid = (int)getuid(), gid = (int)getgid();

	require(unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) == 0,
		"unshare");
	if (uid != 0) {
		int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);

		require(write(fd, "deny", 4) == 4, "setgroups");
		(void)close(fd);
		fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
		(void)snprintf(text, sizeof(text), "%d %d 1", uid, uid);
		require(write(fd, text, strlen(text)) > 0, "uid_map");
		(void)close(fd);
		fd = open("/proc/self/gid_map", O_WRONLY | O_CLOEXEC);
		(void)snprintf(text, sizeof(text), "%d %d 1", gid, gid);
		require(write(fd, text, strlen(text)) > 0, "gid_map");
		(void)close(fd);
	}
	require(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "/");
	require(mount("mnt", "/mnt", "tmpfs", 0, NULL) == 0, "/mnt");
}

static void
make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);

	require(fd >= 0, path);
	(void)close(fd);
}

static void
make_files(void)
{
	static const char *const dirs[] = { "/mnt/ws", "/mnt/rw", "/mnt/out",
					    "/mnt/out/dir", "/mnt/state" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		require(mkdir(dirs[i], 0755) == 0, dirs[i]);
	make_file(OUT "file", 0644);
	make_file(OUT "closed", 0444);
	make_file("/mnt/ws/inner", 0644);
	require(mkfifo(OUT "fifo", 0666) == 0, "fifo");
	require(symlink("file", OUT "link") == 0, "link");
	require(symlink(OUT "file", "/mnt/ws/out") == 0, "out");
	require(symlink("up/out", "/mnt/ws/chain") == 0, "chain");
	require(symlink("..", "/mnt/ws/up") == 0, "up");
	require(symlink("../out/made", "/mnt/ws/dangling") == 0, "dangling");
}

int
main(void)
{
	TCase *tc = tcase_create("observer");

	own_mounts();
	make_files();
	memset(long_path, 'x', sizeof(long_path) - 1);
	if (getenv("PALE_BENCH"))
		storm_size = 100000;
	tcase_set_timeout(tc, SLOW);
	tcase_add_test(tc, a_listener_that_is_none_is_refused);
	tcase_add_loop_test(tc,
			    a_refusal_is_recorded_with_the_errno_the_inmate_saw,
			    0, N_ATTEMPTS);
	tcase_add_loop_test(tc, only_the_worlds_own_sockets_are_reached, 0,
			    N_REACHES);
	tcase_add_test(tc, a_storm_costs_few_rows_and_loses_no_count);
	tcase_add_test(tc, a_write_inside_is_not_looked_at_twice);
	return suite_run("observer", tc);
}
