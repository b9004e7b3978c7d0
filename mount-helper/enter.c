/* SPDX-License-Identifier: MIT */

/*
 * This process joins the user namespace first, which gives it the right to
 * join the others, and stays in the host's pid namespace: no inmate can see
 * it.  A pid namespace is joined by children only, and they cannot make one
 * below it in the same step, so there are two:
 *
 *	enter ──fork──▶ a process in the world's pid namespace
 *	  │               └──clone(NEWPID, PARENT)──▶ the first process
 *	  └── is the parent of both, waits and passes on what is said
 *
 * The one in between is seen by nobody: every command of the world has a pid
 * namespace and a /proc of its own.
 */

#include "mount-helper/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "base/spawn_spec.h"
#include "mount-helper/lockdown.h"
#include "mount-helper/miniinit.h"
#include "mount-helper/spawn.h"
#include "mount-helper/steps.h"

struct enter {
	struct helper h;
	struct miniinit first; /* what it shall know */
	int control, front, signals;
	pid_t pid; /* of the first process; 0: none (any more) */
	struct wire_msg end;
};

static int
parse_fd(const char *text)
{
	char *end;
	long fd = strtol(text, &end, 10);

	if (*end || end == text || fd <= STDERR_FILENO || fd > INT_MAX ||
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return (int)fd;
}

/* What the keeper says of the world, and its namespaces. */
static int
await_leave(struct enter *e, struct errmsg *why)
{
	int fds[FD_PASS_MAX], r;
	struct wire_msg msg;
	size_t nfds = 0;

	r = wire_recv_all(e->first.keeper, &msg, fds, &nfds);
	if (r > 0 && (msg.type != WIRE_ENTER || nfds == 0))
		r = 0;
	if (r > 0) {
		e->first.id = msg.id;
		e->first.spec = take_fd(&fds[0]);
		e->h.plan.flags = msg.flags;
		e->h.plan.pids = msg.user_us;
		e->h.grouped = msg.status != 0;
		r = namespaces_unpack(&e->h.namespaces, (uint32_t)msg.value,
				      fds + 1, nfds - 1);
		r = r < 0 ? r : 1;
	}
	for (size_t i = 0; i < nfds; i++)
		closep(&fds[i]);
	return r > 0 ? 0
		     : errmsg_set(why, r < 0 ? r : -EPIPE,
				  "the world does not let anybody in: %s",
				  r < 0 ? strerror(-r) : "it has ended");
}

/* The client's terminal, to be /dev/console in the world: ttyname(3) looks. */
static int
take_console(struct enter *e, struct errmsg *why)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY |
					       MOUNT_ATTR_NOSUID };
	_cleanup_(freep) char *bytes = NULL;
	struct spawn_spec spec;
	size_t len;
	int fd = -1, r;

	r = fd_read_file(e->first.spec, LIMIT_SPAWN_BYTES, &bytes, &len);
	if (r < 0)
		return errmsg_set(why, r, "cannot read the command: %s",
				  strerror(-r));
	r = spawn_spec_decode(bytes, len, &spec, why);
	if (r < 0)
		return r;
	/* A terminal of another /dev/pts has no path here. */
	if (spec.console[0])
		fd = open_tree(AT_FDCWD, spec.console,
			       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	spawn_spec_fini(&spec);
	if (fd >= 0 &&
	    mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0) {
		r = errmsg_set(why, -errno,
			       "cannot restrict the terminal's mount: %s",
			       strerror(errno));
		(void)close(fd);
		return r;
	}
	e->first.console = fd;
	return 0;
}

static int
join(struct enter *e, struct errmsg *why)
{
	static const int rest[] = { NAMESPACE_IPC,    NAMESPACE_UTS,
				    NAMESPACE_CGROUP, NAMESPACE_NET,
				    NAMESPACE_PID,    NAMESPACE_MNT };
	struct namespaces *ns = &e->h.namespaces;
	int r;

	/* One that is ours needs no joining, and could not be joined. */
	namespaces_drop_own(ns);
	r = namespaces_join(ns, NAMESPACE_USER, why);
	if (r == 0)
		r = namespaces_join(ns, NAMESPACE_PRISTINE, why);
	if (r == 0)
		r = take_console(e, why);
	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]) && r == 0; i++)
		r = namespaces_join(ns, rest[i], why);
	return r;
}

/* In the child: its own child is the parent's. */
static _Noreturn void
be_between(struct enter *e, int front)
{
	unsigned long flags = CLONE_NEWPID | CLONE_PARENT | SIGCHLD;
	struct errmsg why = { "" };
	long pid;

	pid = syscall(SYS_clone, flags, 0UL, 0UL, 0UL, 0UL);
	if (pid == 0) {
		e->first.front = front;
		miniinit_main(&e->first);
	}
	if (pid < 0) {
		(void)errmsg_set(&why, -errno,
				 "cannot make a pid namespace: %s",
				 strerror(errno));
		(void)wire_send_failed(front, -errno, &why);
	}
	_exit(pid < 0);
}

static int
start_first(struct enter *e, struct errmsg *why)
{
	bool confined = !(e->h.plan.flags & PLAN_UNCONFINED);
	int pair[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return errmsg_set(why, -errno, "cannot make a socket: %s",
				  strerror(errno));
	e->front = pair[0];
	pid = fork();
	if (pid == 0 && confined)
		be_between(e, pair[1]);
	if (pid == 0) {
		e->first.front = pair[1];
		miniinit_main(&e->first);
	}
	(void)close(pair[1]);
	if (pid < 0)
		return errmsg_set(why, -errno, "cannot fork: %s",
				  strerror(errno));
	if (confined)
		(void)waitpid(pid, &status, 0);
	return 0;
}

/* The world's things are the command's; this process only passes on. */
static void
let_go(struct enter *e)
{
	closep(&e->first.keeper);
	closep(&e->first.spec);
	closep(&e->first.console);
	namespaces_fini(&e->h.namespaces);
	for (int i = 0; i < STDFILES; i++)
		(void)close(i);
	(void)lockdown_capabilities(0);
}

/* ---- passing on ---- */

static void
tell_client(struct enter *e, const struct wire_msg *msg)
{
	(void)fd_send(e->control, msg, sizeof(*msg), NULL, 0);
}

/* False when the first process has closed it. */
static bool
take_report(struct enter *e)
{
	_cleanup_(closep) int fd = -1;
	struct wire_msg msg;

	if (wire_recv(e->front, &msg, &fd) <= 0)
		return false;
	if (msg.type == WIRE_EXITED) {
		e->end = msg;
	} else if (msg.type == WIRE_SPAWNED) {
		e->end = (struct wire_msg){
			.type = WIRE_EXITED,
			.value = -msg.value,
			.flags = EXITED_EXEC_FAILED,
			.status = spawn_exec_status(-msg.value),
		};
	} else {
		if (msg.type == WIRE_FAILED)
			e->end.type = WIRE_FAILED;
		tell_client(e, &msg);
	}
	return true;
}

static void
take_order(struct enter *e)
{
	_cleanup_(closep) int fd = -1;
	struct wire_msg msg;

	/* Its end is the end of all that it started. */
	if (wire_recv(e->control, &msg, &fd) <= 0)
		_exit(125);
	if (msg.type == WIRE_SIGNAL || msg.type == WIRE_CONTINUE)
		(void)fd_send(e->front, &msg, sizeof(msg), NULL, 0);
}

static bool
is_over(void)
{
	return waitpid(-1, NULL, WNOHANG) != 0;
}

static void
pass_on(struct enter *e)
{
	struct signalfd_siginfo info;
	bool open = true;

	while (!is_over()) {
		struct pollfd polls[3] = {
			{ .fd = e->signals, .events = POLLIN },
			{ .fd = e->control, .events = POLLIN },
			{ .fd = open ? e->front : -1, .events = POLLIN },
		};

		if (poll(polls, 3, -1) < 0)
			continue;
		if (polls[0].revents)
			(void)!read(e->signals, &info, sizeof(info));
		if (polls[1].revents)
			take_order(e);
		if (polls[2].revents)
			open = take_report(e);
	}
	while (open)
		open = take_report(e);
	/* Who was killed could not say so. */
	if (e->end.type == WIRE_NONE)
		e->end = (struct wire_msg){ .type = WIRE_EXITED,
					    .status = SIGKILL };
	if (e->end.type == WIRE_EXITED)
		tell_client(e, &e->end);
}

static int
prepare(struct enter *e, struct errmsg *why)
{
	int keep[] = { e->first.keeper, e->control };
	sigset_t mask;
	int r;

	(void)prctl(PR_SET_NAME, "pale-enter");
	/* Nobody of this user looks into it, in whatever namespace. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	spawn_default_signals();
	(void)sigfillset(&mask);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGCHLD);
	r = fd_close_others(STDFILES, keep, sizeof(keep) / sizeof(keep[0]));
	if (r == 0)
		e->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r < 0 || e->signals < 0)
		return errmsg_set(why, r < 0 ? r : -errno,
				  "cannot hear of children: %s",
				  strerror(r < 0 ? -r : errno));
	r = step_setup(why);
	if (r == 0)
		r = await_leave(e, why);
	if (r == 0 && !(e->h.plan.flags & PLAN_UNCONFINED))
		r = join(e, why);
	if (r < 0)
		return r;
	/* Undone by the change of credentials until here. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	return start_first(e, why);
}

int
enter_main(int argc, char **argv)
{
	struct enter e = {
		.first = { .h = &e.h,
			   .ns = &e.h.namespaces,
			   .front = -1,
			   .spec = -1,
			   .console = -1,
			   .fds = { -1, -1, -1 } },
		.front = -1,
	};
	struct errmsg why = { "" };
	int r;

	namespaces_init(&e.h.namespaces);
	e.first.keeper = argc == 3 ? parse_fd(argv[1]) : -1;
	e.control = argc == 3 ? parse_fd(argv[2]) : -1;
	if (e.first.keeper < 0 || e.control < 0) {
		fputs("pale-mount-helper: started by pale, not by people\n",
		      stderr);
		return 125;
	}
	r = prepare(&e, &why);
	if (r < 0) {
		/* The warden knows nothing else of why it came to nothing. */
		miniinit_send_failure(e.first.keeper, e.first.id, r, &why);
		(void)wire_send_failed(e.control, r, &why);
		return 125;
	}
	let_go(&e);
	pass_on(&e);
	return 0;
}
