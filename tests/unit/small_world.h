/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_SMALL_WORLD_H
#define TESTS_UNIT_SMALL_WORLD_H

/*
 * A small world for the tests of the observer and of the connect broker: a
 * process in new user, mount and pid namespaces where all but three
 * directories is read-only, under a filter that notifies every call.
 *
 *   /mnt/ws   the workspace (FUSE in a real world: never recorded here)
 *   /mnt/rw   a writable root; the host is in it too
 *   /tmp      private
 *   /mnt/out  everything else
 *
 * What the inmate does is a function that returns the errno it saw.
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
#include <stdatomic.h>
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
#include "base/strv.h"
#include "base/wire.h"
#include "mount-helper/usher_connect.h"
#include "policy/denial.h"
#include "policy/rules.h"
#include "tests/unit/suite.h"
#include "warden/observer_priv.h"

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
static struct strv let_in; /* host sockets of the next world */
static int storm_size = 20000;

/* Closes what a world must not inherit; NULL: nothing. */
static void (*close_host)(void);

/* A copy made by clone(2) has nothing to say to a sanitizer. */
static inline _Noreturn void
leave(int status)
{
	for (;;)
		(void)syscall(SYS_exit_group, status);
}

static inline int
result(long r)
{
	return r < 0 ? errno : 0;
}

/* ---- the world's side ---- */

static inline void
require(bool ok, const char *what)
{
	if (ok)
		return;
	(void)dprintf(2, "test world: %s: %s\n", what, strerror(errno));
	leave(99);
}

static inline void
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

static inline void
open_place(const char *path)
{
	require(mount(path, path, NULL, MS_BIND, NULL) == 0, path);
	set_readonly(path, false, 0);
}

static inline void
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

static inline int
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
		NOTIFY(inotify_init1),
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

static inline void
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
	leave(act());
}

static inline _Noreturn void
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
	const struct usher_place place = { .world_sock = sock,
					   .host_proc_fd = proc,
					   .init_pid = -1,
					   .listener = -1,
					   .scoped = true };

	require(usher_serve(&place) == 0, "serve");
	leave(0);
}

/* ---- the warden's side ---- */

static inline struct policy *
policy_get(void *data)
{
	return policy_ref(data);
}

static atomic_uint watches; /* that inmates were about to make */

static inline void
count_watch(void *data)
{
	(void)data;
	atomic_fetch_add(&watches, 1);
}

static inline struct policy *
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

static inline void
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

static inline void
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
static inline void
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

/* Who is nested is known from the usher's first message on. */
static inline void
await_hello(struct observer *o)
{
	for (int ms = 0; ms < 20000 && atomic_load(&o->look.ns_ino) == 0; ms++)
		(void)usleep(1000);
	ck_assert_uint_ne(atomic_load(&o->look.ns_ino), 0);
}

static inline void
world_start(enum policy_mode mode, act_fn act)
{
	const struct denials_config records = { .dir = "/mnt/state",
						.db_path = "/mnt/state/pale.db",
						.session = "default",
						.world = "testworld" };
	struct observer_config config = { .init_pid = -1,
					  .policy_get = policy_get,
					  .watched = count_watch };
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
		if (close_host)
			close_host();
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
	ck_assert_int_eq(strv_extend(&w->policy->sockets, &let_in), 0);
	ck_assert_msg(denials_open(&records, &w->denials, &why) == 0, "%s",
		      why.text);
	config.listener = w->listener;
	config.usher_sock = w->sock;
	config.data = w->policy;
	config.denials = w->denials;
	ck_assert_msg(observer_start(&config, &w->observer, &why) == 0, "%s",
		      why.text);
	await_hello(w->observer);
}

/* Lets the inmate act; what it returned. */
static inline int
world_go(void)
{
	char byte = 0;
	int status;

	ck_assert_int_eq(write(world.control, &byte, 1), 1);
	ck_assert_int_eq(waitpid(world.inmate, &status, 0), world.inmate);
	ck_assert_msg(WIFEXITED(status), "status %x", status);
	return WEXITSTATUS(status);
}

static inline void
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

/* ---- a private /mnt for all of it ---- */

static inline void
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

static inline void
make_file(const char *path, mode_t mode)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, mode);

	require(fd >= 0, path);
	(void)close(fd);
}

static inline void
make_files(void)
{
	static const char *const dirs[] = { "/mnt/ws", "/mnt/rw", "/mnt/out",
					    "/mnt/out/dir", "/mnt/state" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		require(mkdir(dirs[i], 0755) == 0, dirs[i]);

	/* A file system apart from the workspace's, which is the world's own. */
	require(mount("rw", "/mnt/rw", "tmpfs", 0, NULL) == 0, "/mnt/rw");
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

/* First thing in main(): what is mounted is this process' own. */
static inline void
small_world_prepare(void)
{
	own_mounts();
	make_files();
	if (getenv("PALE_BENCH"))
		storm_size = 100000;
}

#endif
