/* SPDX-License-Identifier: MIT */

/*
 * init: the first process of the world.
 *
 * It mounts /proc, gives up what can be given up, says READY, waits for GO,
 * starts the command and from then on reaps.  When the command has ended (and
 * the time to linger is over) it kills what is left, says EXITED and ends; the
 * kernel would kill the rest anyway, but then nobody could say that it is so.
 *
 * It shares its descriptor table with the usher until the seccomp listener has
 * been handed over, which it cannot do itself: from the filter on, it makes
 * no call that the filter watches, for a watched init could wait for itself.
 *
 * Without a pid namespace (danger-full-access, Landlock alone) it is an ordinary
 * process that takes orphans in; it kills by descending from itself.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "mount-helper/commands.h"
#include "mount-helper/helper.h"
#include "mount-helper/landlock.h"
#include "mount-helper/lockdown.h"
#include "mount-helper/mounts.h"
#include "mount-helper/spawn.h"
#include "mount-helper/steps.h"
#include "mount-helper/sweep.h"

/* How long the killed may take to die: one may sit in a slow disk's call. */
#define REAP_MS 5000

/* Above 0, 1, 2 and what init numbers itself. */
#define RULESET_MIN 10

struct init {
	struct helper *h;
	bool confined;
	bool tree; /* no pid namespace: kill(-1) would reach the host */
	int sock, signals;
	pid_t command; /* 0: none (any more) */
	struct wire_msg exited;
	bool done; /* `exited` is filled in */
};

static _Noreturn void
die(struct init *init, int r, const struct errmsg *why)
{
	(void)wire_send_failed(init->sock, r, why);
	_exit(125);
}

/* Everything but 0, 1, 2, what they were, and what init lives by. */
static int
keep_descriptors(struct init *init, struct errmsg *why)
{
	int keep[STDFILES + NAMESPACE_COUNT + 1], r;

	r = step_begin(STEP_DESCRIPTORS, why);
	if (r < 0)
		return r;
	if (dup3(init->sock, 3, O_CLOEXEC) < 0 && init->sock != 3)
		return errmsg_set(why, -errno, "cannot move descriptors: %s",
				  strerror(errno));
	init->sock = 3;
	memcpy(keep, init->h->stdfiles.original,
	       sizeof(init->h->stdfiles.original));
	memcpy(keep + STDFILES, init->h->namespaces.fd,
	       sizeof(init->h->namespaces.fd));
	keep[STDFILES + NAMESPACE_COUNT] = init->h->ruleset;
	return fd_close_others(4, keep, sizeof(keep) / sizeof(keep[0]));
}

static int
confine(struct init *init, int listener_pipe, struct errmsg *why)
{
	const struct plan *plan = &init->h->plan;
	unsigned long long keep = 1ULL << CAP_SYS_ADMIN | 1ULL << CAP_KILL;
	int listener, r;

	r = proc_mount(geteuid() == 0, init->h->userns, why);
	if (r < 0)
		return r;
	r = lockdown_inherited(why);
	if (r < 0)
		return r;
	if (plan->flags & PLAN_STANDING) {
		r = namespaces_open(&init->h->namespaces, why);
		if (r < 0)
			return r;
		/* What it takes to join a mount namespace. */
		keep |= 1ULL << CAP_SYS_CHROOT;
		/* In a world of one command the usher was in it before. */
		r = lockdown_scope(&init->h->scoped, why);
		if (r < 0)
			return r;
	}
	r = lockdown_capabilities(keep);
	if (r < 0)
		return errmsg_set(why, r, "cannot drop capabilities: %s",
				  strerror(-r));
	r = lockdown_filter(lockdown_wishes(plan), &listener, why);
	if (r < 0)
		return r;
	/* The usher changes its table once it has read the number. */
	if (unshare(CLONE_FILES) < 0)
		return errmsg_set(why, -errno,
				  "cannot leave the shared descriptors: %s",
				  strerror(errno));
	r = fd_write_all(listener_pipe, &listener, sizeof(listener));
	if (r < 0)
		return errmsg_set(why, r, "cannot hand on the listener: %s",
				  strerror(-r));
	return 0;
}

/*
 * With Landlock alone.  The rules are for the children only: init stays outside
 * their scope, so that none of them can signal it.
 */
static int
confine_alone(struct init *init, struct errmsg *why)
{
	struct helper *h = init->h;
	struct wire_msg msg = { .type = WIRE_LISTENER, .pid = getpid() };
	_cleanup_(closep) int ruleset = -1;
	int abi, listener, r;

	r = landlock_prepare(&h->plan, &ruleset, &abi, why);
	if (r == 0)
		r = lockdown_alone(why);
	if (r < 0)
		return r;
	/* Out of the way of the number that init gives its socket. */
	h->ruleset = fcntl(ruleset, F_DUPFD_CLOEXEC, RULESET_MIN);
	if (h->ruleset < 0)
		return errmsg_set(why, -errno, "cannot move descriptors: %s",
				  strerror(errno));
	r = lockdown_capabilities(0);
	if (r < 0)
		return errmsg_set(why, r, "cannot drop capabilities: %s",
				  strerror(-r));
	r = lockdown_filter(lockdown_wishes(&h->plan), &listener, why);
	if (r < 0)
		return r;
	msg.value = abi >= LANDLOCK_SCOPE;
	msg.flags = abi >= LANDLOCK_IOCTL ? 0 : WORLD_NO_IOCTL;
	r = step_begin(STEP_LISTENER, why);
	if (r < 0)
		return r;
	r = fd_send(init->sock, &msg, sizeof(msg), &listener,
		    listener >= 0 ? 1 : 0);
	if (r == 0 && listener >= 0)
		r = fd_send(h->world_sock, &msg, sizeof(msg), &listener, 1);
	closep(&listener);
	return r < 0 ? errmsg_set(why, r, "cannot hand on the listener: %s",
				  strerror(-r))
		     : 0;
}

/*
 * Until its attributes are asked for, the kernel takes the root of a FUSE mount
 * for root's.  In a user namespace without root that is nobody, and nothing may
 * be made or removed there.
 */
static void
look_at_roots(const struct plan *plan)
{
	struct stat st;

	for (size_t i = 0; i < plan->n_mounts; i++)
		if (plan->mounts[i].kind == PLAN_FUSE)
			(void)stat(plan->mounts[i].target, &st);
}

/*
 * Before GO: the first request to the mount waits for the warden, which is
 * still coming up.  init has no capability that would open a directory which
 * is closed to the command.
 */
static int
enter_directory(const struct helper *h, struct errmsg *why)
{
	int r = step_begin(STEP_CWD, why);

	if (r < 0)
		return r;
	if (chdir(h->plan.cwd) < 0)
		return errmsg_set(why, -errno,
				  "cannot enter '%s' in the world: %s",
				  h->plan.cwd, strerror(errno));
	look_at_roots(&h->plan);
	return 0;
}

static void
start_command(struct init *init)
{
	const struct spawn_what what = { .argv = &init->h->plan.argv,
					 .env = &init->h->plan.env };
	struct errmsg why = { "" };
	int exec_error = 0, r;

	r = spawn_command(init->h, &what, &init->command, &exec_error, &why);
	if (r < 0)
		die(init, r, &why);
	if (init->command > 0) {
		(void)wire_send(init->sock, WIRE_STARTED, init->command, 0, -1);
	} else {
		init->exited = (struct wire_msg){
			.type = WIRE_EXITED,
			.value = exec_error,
			.flags = EXITED_EXEC_FAILED,
			.status = spawn_exec_status(exec_error),
		};
		init->done = true;
	}
	/* The pipes belong to the command alone. */
	stdfiles_keep(&init->h->stdfiles);
	release_stdio();
}

static uint64_t
usec(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000000u + (uint64_t)time->tv_usec;
}

static void
on_change(struct init *init, pid_t pid, int status, const struct rusage *usage)
{
	if (pid != init->command)
		return;
	if (WIFSTOPPED(status)) {
		(void)wire_send(init->sock, WIRE_STOPPED, 0, WSTOPSIG(status),
				-1);
		return;
	}
	init->command = 0;
	init->done = true;
	init->exited = (struct wire_msg){
		.type = WIRE_EXITED,
		.status = status,
		.user_us = usec(&usage->ru_utime),
		.sys_us = usec(&usage->ru_stime),
		.max_rss_kib = (uint64_t)usage->ru_maxrss,
	};
}

/* False when there is no child left. */
static bool
reap(struct init *init)
{
	bool standing = init->h->plan.flags & PLAN_STANDING;
	struct rusage usage;
	int status;
	pid_t pid;

	while ((pid = wait4(-1, &status, WNOHANG | WUNTRACED | __WALL,
			    &usage)) > 0) {
		on_change(init, pid, status, &usage);
		if (standing && !WIFSTOPPED(status))
			commands_ended(init->h, pid);
	}
	return pid == 0;
}

static void
on_order(struct init *init, const struct wire_msg *msg)
{
	if (msg->type == WIRE_SIGNAL && msg->value > 0 && msg->value < NSIG) {
		if (msg->flags & SIGNAL_ALL)
			sweep_signal(!init->tree, msg->value);
		else if (init->command > 0)
			(void)kill(init->command, msg->value);
	} else if (msg->type == WIRE_CONTINUE && init->command > 0) {
		/* A shell with groups of its own leads one. */
		(void)kill(init->command, SIGCONT);
		if (getpgid(init->command) == init->command)
			(void)kill(-init->command, SIGCONT);
	}
}

static void
on_message(struct init *init, const struct wire_msg *msg, int *fds, size_t nfds)
{
	if (msg->type == WIRE_SPAWN && !init->done) {
		commands_spawn(init->h, msg, fds, nfds);
		return;
	}
	for (size_t i = 0; i < nfds; i++)
		closep(&fds[i]);
	if (msg->type == WIRE_ENDED) {
		init->done = true;
		init->exited.type = WIRE_EXITED;
	} else {
		on_order(init, msg);
	}
}

/* Waits up to `timeout_ms`; false when the keeper is gone. */
static bool
turn(struct init *init, int timeout_ms)
{
	int fds[FD_PASS_MAX];
	size_t nfds = 0;

	struct pollfd polls[2] = { { .fd = init->sock, .events = POLLIN },
				   { .fd = init->signals, .events = POLLIN } };
	struct signalfd_siginfo info;
	struct wire_msg msg;

	if (poll(polls, 2, timeout_ms) <= 0)
		return true;
	if (polls[1].revents)
		(void)!read(init->signals, &info, sizeof(info));
	if (!polls[0].revents)
		return true;
	if (wire_recv_all(init->sock, &msg, fds, &nfds) <= 0)
		return false;
	on_message(init, &msg, fds, nfds);
	return true;
}

/* Lets what the command left behind live a little, then nobody. */
static void
empty_world(struct init *init, bool alive)
{
	int64_t begin, end;

	end = clock_mono_ns() + (int64_t)init->h->plan.linger_ms * 1000000;
	while (alive && clock_left_ms(end) > 0) {
		if (!turn(init, clock_left_ms(end)))
			break;
		alive = reap(init);
	}
	begin = clock_mono_ns();
	end = begin + REAP_MS * 1000000LL;
	while (alive && clock_mono_ns() < end) {
		sweep_kill(!init->tree, begin);
		(void)turn(init, init->tree ? 5 : 100);
		alive = reap(init);
	}
}

static void
live(struct init *init)
{
	bool alive = true;

	while (!init->done) {
		if (!turn(init, -1)) {
			/* In a world of its own, its end is everybody's. */
			if (init->tree)
				empty_world(init, true);
			_exit(125);
		}
		alive = reap(init);
	}
	empty_world(init, alive && reap(init));
	stdfiles_settle(&init->h->stdfiles);
	(void)fd_send(init->sock, &init->exited, sizeof(init->exited), NULL, 0);
}

/* With what a client of a standing world needs to come in. */
static void
send_ready(struct init *init)
{
	struct wire_msg msg = { .type = WIRE_READY };
	int fds[FD_PASS_MAX];
	size_t nfds;

	msg.flags = namespaces_pack(&init->h->namespaces, fds, &nfds);
	(void)fd_send(init->sock, &msg, sizeof(msg), fds, nfds);
}

_Noreturn void
init_main(struct helper *h, int listener_pipe)
{
	struct init init = {
		.h = h,
		.confined = !(h->plan.flags & PLAN_UNCONFINED),
		.tree = helper_is_tree(h),
		.sock = h->init_sock,
	};
	bool standing = h->plan.flags & PLAN_STANDING;
	struct errmsg why = { "" };
	struct wire_msg msg = { .type = WIRE_NONE };
	sigset_t chld;
	int fd = -1, r = 0;

	(void)prctl(PR_SET_NAME, "pale-init");
	if (init.tree)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (init.confined)
		r = init.tree ? confine_alone(&init, &why)
			      : confine(&init, listener_pipe, &why);
	if (r == 0)
		r = keep_descriptors(&init, &why);
	if (r == 0)
		r = step_begin(STEP_READY, &why);
	if (r < 0)
		die(&init, r, &why);

	(void)sigemptyset(&chld);
	(void)sigaddset(&chld, SIGCHLD);
	init.signals = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (init.signals < 0) {
		r = errmsg_set(&why, -errno, "cannot hear of children: %s",
			       strerror(errno));
		die(&init, r, &why);
	}
	(void)umask(h->umask);
	/* Last, after every change of credentials, which would undo it. */
	if (init.confined)
		(void)prctl(PR_SET_DUMPABLE, 0);
	if (!init.tree)
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	send_ready(&init);
	spawn_default_signals();
	r = enter_directory(h, &why);
	if (r < 0)
		die(&init, r, &why);
	if (!init.tree)
		stdfiles_enter_world();

	do {
		if (wire_recv(init.sock, &msg, &fd) <= 0)
			_exit(125);
		closep(&fd);
	} while (msg.type != WIRE_GO);
	if (!standing)
		start_command(&init);
	live(&init);
	_exit(0);
}
