/* SPDX-License-Identifier: MIT */

/*
 * The keeper: parent of warden, usher and init; one poll loop.
 *
 * It is forked in the caller's session and process group, and so are its
 * children: init and the command stay there, which is what makes a terminal
 * work.  Once they are started, keeper and warden leave for sessions of their
 * own, so that no key of the terminal reaches them.
 *
 *	READY from init, SERVING from the warden  ->  GO to init
 *	EXITED from init                          ->  CLI; ENDED to the warden
 *	ENDED from the warden (world stop)        ->  KILL to all, by init
 *	the CLI, the warden or the usher is gone  ->  the world is killed
 *	warden, usher or init is stopped          ->  it is continued
 *
 * A command runs only after GO, and GO is said in one place.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "mount-helper/advice.h"
#include "mount-helper/children.h"
#include "mount-helper/groups.h"
#include "mount-helper/helper.h"
#include "mount-helper/listener.h"
#include "mount-helper/steps.h"

/* How long the warden may take to bring its records home. */
#define WARDEN_END_MS 10000

/* How often those that should be dead are looked at. */
#define OVERDUE_MS 100

struct keeper {
	struct helper *h;
	struct children kids;
	struct groups groups;
	int signals;
	int listener; /* a duplicate; -1: none */
	bool ready, serving, gone;
	uint32_t world_flags; /* WORLD_* */
	bool ending;	      /* nothing more happens in the world */
	bool killed;	      /* init was sent its death */
	int64_t deadline_ns;
};

/* The caller may be gone; there is nobody else to tell. */
static void
tell_cli(struct keeper *k, struct wire_msg *msg)
{
	if (msg->type == WIRE_STARTED || msg->type == WIRE_EXITED) {
		msg->flags |= k->world_flags;
		(void)strncpy(msg->text, groups_name(&k->groups),
			      sizeof(msg->text) - 1);
	}
	if (k->h->control >= 0)
		(void)fd_send(k->h->control, msg, sizeof(*msg), NULL, 0);
}

static void
kill_world(struct keeper *k)
{
	if (k->killed)
		return;
	k->killed = true;

	/* An unconfined init has a tree to sweep first: it sees the end. */
	if (k->kids.init_sock >= 0)
		(void)shutdown(k->kids.init_sock, SHUT_RDWR);
	if (k->kids.init > 0 && !(k->h->plan.flags & PLAN_UNCONFINED))
		(void)kill(k->kids.init, SIGKILL);
}

/* From here on the processes are only waited for. */
static void
begin_end(struct keeper *k)
{
	if (k->ending)
		return;
	k->ending = true;
	k->deadline_ns = clock_mono_ns() + WARDEN_END_MS * 1000000LL;
	if (k->kids.usher > 0)
		(void)kill(k->kids.usher, SIGKILL);
	if (k->kids.warden_sock >= 0)
		(void)wire_send(k->kids.warden_sock, WIRE_ENDED, 0, 0, -1);
}

static void
fail(struct keeper *k, int r, const struct errmsg *why)
{
	if (!k->ending && k->h->control >= 0)
		(void)wire_send_failed(k->h->control, r, why);
	kill_world(k);
	begin_end(k);
}

static void
maybe_go(struct keeper *k)
{
	struct errmsg why = { "" };
	int r;

	/* init is known once the usher has handed on the listener. */
	if (!k->ready || !k->serving || k->kids.init <= 0 || k->gone ||
	    k->ending)
		return;
	r = step_begin(STEP_GO, &why);
	if (r == 0 && k->h->require_full && !k->h->userns)
		r = errmsg_set(&why, -ENOTSUP,
			       "--require full: there is no user namespace to "
			       "be had here%s",
			       advice_userns(-EPERM));
	if (r < 0) {
		fail(k, r, &why);
		return;
	}
	k->gone = true;
	k->world_flags = (k->h->userns ? 0 : WORLD_NO_USERNS) |
			 (k->h->observer ? 0 : WORLD_NO_OBSERVER) |
			 (k->h->scoped ? 0 : WORLD_NO_SCOPE) |
			 (k->h->home_tmpfs ? WORLD_HOME_TMPFS : 0);
	(void)wire_send(k->kids.init_sock, WIRE_GO, 0, 0, -1);
}

static void
on_failed(struct keeper *k, struct wire_msg *msg)
{
	if (!k->ending)
		tell_cli(k, msg);
	kill_world(k);
	begin_end(k);
}

static void on_readable(struct keeper *k, int *sock);

/* What a process sent before it died says more than its death. */
static void
take_last_messages(struct keeper *k, int *sock)
{
	while (*sock >= 0 && children_has_message(*sock))
		on_readable(k, sock);
}

/* A number that comes by message is not killed unless it is a child's. */
static bool
is_child(pid_t pid)
{
	siginfo_t info;

	return pid > 0 && waitid(P_PID, (id_t)pid, &info,
				 WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void
on_init_message(struct keeper *k, struct wire_msg *msg, int *fd)
{
	if (msg->type == WIRE_LISTENER) {
		if (k->kids.init > 0 || !is_child(msg->pid))
			return;
		k->kids.init = msg->pid;
		k->h->observer = *fd >= 0;
		k->h->scoped = msg->value != 0;
		if (*fd >= 0)
			k->listener = take_fd(fd);
		k->h->home_tmpfs = msg->flags & WORLD_HOME_TMPFS;
		if (k->killed)
			(void)kill(k->kids.init, SIGKILL);
		maybe_go(k);
	} else if (msg->type == WIRE_READY) {
		k->ready = true;
		maybe_go(k);
	} else if (msg->type == WIRE_STARTED || msg->type == WIRE_STOPPED) {
		tell_cli(k, msg);
	} else if (msg->type == WIRE_EXITED) {
		tell_cli(k, msg);
		begin_end(k);
	} else if (msg->type == WIRE_FAILED) {
		/* Nobody took what it sent: that one's reason is the reason. */
		if (msg->value == EPIPE || msg->value == ECONNRESET)
			take_last_messages(k, &k->kids.warden_sock);
		on_failed(k, msg);
	}
}

/*
 * The warden was asked to end.  It is init that kills, so that the command's
 * end is reported like any other and what it was refused as well.
 */
static void
stop_world(struct keeper *k)
{
	const struct wire_msg order = { .type = WIRE_SIGNAL,
					.value = SIGKILL,
					.flags = SIGNAL_ALL };
	struct errmsg why = { "" };

	if (k->ending)
		return;
	if (k->gone) {
		(void)fd_send(k->kids.init_sock, &order, sizeof(order), NULL,
			      0);
		return;
	}
	(void)errmsg_set(&why, -ECANCELED,
			 "the world was stopped before the command started");
	fail(k, -ECANCELED, &why);
}

static void
on_warden_message(struct keeper *k, struct wire_msg *msg)
{
	struct errmsg why = { "" };
	int r;

	if (msg->type == WIRE_SERVING) {
		r = step_begin(STEP_SERVING, &why);
		if (r < 0) {
			fail(k, r, &why);
			return;
		}
		k->serving = true;
		maybe_go(k);
	} else if (msg->type == WIRE_FAILED) {
		/* It may have failed because the usher did. */
		take_last_messages(k, &k->kids.init_sock);
		on_failed(k, msg);
	} else if (msg->type == WIRE_ENDED) {
		stop_world(k);
	}
}

static void
on_control_message(struct keeper *k, const struct wire_msg *msg)
{
	if ((msg->type == WIRE_SIGNAL || msg->type == WIRE_CONTINUE) &&
	    !k->ending)
		(void)fd_send(k->kids.init_sock, msg, sizeof(*msg), NULL, 0);
}

/* Reads one record; false when the connection has ended and was closed. */
static bool
take_message(int *sock, struct wire_msg *msg, int *fd)
{
	int r = wire_recv(*sock, msg, fd);

	if (r > 0)
		return true;
	(void)close(take_fd(sock));
	return false;
}

static void
on_readable(struct keeper *k, int *sock)
{
	struct wire_msg msg;
	struct errmsg why = { "" };
	_cleanup_(closep) int fd = -1;

	if (!take_message(sock, &msg, &fd)) {
		/* The caller is gone: so is everything that it started. */
		if (sock == &k->h->control) {
			kill_world(k);
			begin_end(k);
		} else if (sock == &k->kids.warden_sock && !k->ending) {
			(void)errmsg_set(&why, -EPIPE,
					 "the world's warden has died, so the "
					 "world was ended");
			fail(k, -EPIPE, &why);
		}
		return;
	}
	if (sock == &k->h->control)
		on_control_message(k, &msg);
	else if (sock == &k->kids.warden_sock)
		on_warden_message(k, &msg);
	else
		on_init_message(k, &msg, &fd);
}

static void
on_child_end(struct keeper *k, pid_t pid, int status)
{
	struct errmsg why = { "" };
	const char *who;

	if (pid == k->kids.warden)
		take_last_messages(k, &k->kids.warden_sock);
	else
		take_last_messages(k, &k->kids.init_sock);

	/* init's pid comes by message, perhaps never. */
	who = pid == k->kids.warden  ? "warden"
	      : pid == k->kids.usher ? "usher"
				     : "init";
	children_forget(&k->kids, pid);
	if (k->ending)
		return;
	(void)errmsg_set(&why, -ECHILD,
			 "the world's %s has ended (%s %d), so the world was "
			 "ended",
			 who, WIFSIGNALED(status) ? "signal" : "status",
			 WIFSIGNALED(status) ? WTERMSIG(status)
					     : WEXITSTATUS(status));
	fail(k, -ECHILD, &why);
}

static void
reap(struct keeper *k)
{
	struct signalfd_siginfo info;
	pid_t pid;
	int status;

	(void)!read(k->signals, &info, sizeof(info));
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
		/* Every inmate would wait for one that somebody stopped. */
		if (WIFSTOPPED(status))
			(void)kill(pid, SIGCONT);
		else
			on_child_end(k, pid, status);
	}
}

/* The records of a dead warden's world still hold up inmates: let them die. */
static void
drain_listener(struct keeper *k)
{
	if (k->listener >= 0)
		listener_release(k->listener);
}

static int
poll_timeout(struct keeper *k)
{
	int left_ms;

	if (!k->ending)
		return -1;
	left_ms = clock_left_ms(k->deadline_ns);
	/* All are killed; one may sit in a slow disk's call. */
	if (left_ms == 0)
		return OVERDUE_MS;
	/* A world that is being killed may wait on its listener. */
	return k->listener >= 0 && k->killed ? 5 : left_ms;
}

static void
keeper_loop(struct keeper *k)
{
	int *const socks[] = { &k->h->control, &k->kids.warden_sock,
			       &k->kids.init_sock };

	while (children_left(&k->kids)) {
		struct pollfd polls[4] = {
			{ .fd = k->signals, .events = POLLIN },
		};

		for (size_t i = 0; i < 3; i++)
			polls[i + 1] = (struct pollfd){ .fd = *socks[i],
							.events = POLLIN };
		if (poll(polls, 4, poll_timeout(k)) < 0 && errno != EINTR)
			break;

		/* Records before deaths: what was said first counts first. */
		for (size_t i = 0; i < 3; i++)
			if (polls[i + 1].revents && *socks[i] >= 0)
				on_readable(k, socks[i]);
		if (polls[0].revents)
			reap(k);
		if (k->killed && k->kids.warden <= 0)
			drain_listener(k);
		if (k->ending && clock_mono_ns() >= k->deadline_ns)
			children_kill(&k->kids);
	}
}

static int
start_world(struct keeper *k, struct errmsg *why)
{
	struct helper *h = k->h;
	bool confined = !(h->plan.flags & PLAN_UNCONFINED);
	int r;

	/* First: whatever fails, it must be told and waited for. */
	if (confined) {
		r = children_adopt_warden(&k->kids, h, why);
		if (r < 0)
			return r;
	}
	r = groups_make(&k->groups, &h->plan, h->require_limits, why);
	if (r < 0)
		return r;
	h->grouped = k->groups.count > 0;
	if (!confined) {
		k->serving = true;
		return children_start_unconfined(&k->kids, h, &k->groups, why);
	}
	return children_start_usher(&k->kids, h, &k->groups, why);
}

int
keeper_run(struct helper *h)
{
	struct keeper k = {
		.h = h, .kids = CHILDREN_NONE, .signals = -1, .listener = -1
	};
	struct errmsg why = { "" };
	sigset_t mask;
	int r;

	(void)prctl(PR_SET_NAME, "pale-keeper");
	(void)sigfillset(&mask);
	(void)sigprocmask(SIG_SETMASK, &mask, NULL);
	(void)sigemptyset(&mask);
	(void)sigaddset(&mask, SIGCHLD);
	k.signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	r = k.signals < 0
		    ? errmsg_set(&why, -errno, "cannot hear of children: %s",
				 strerror(errno))
		    : start_world(&k, &why);
	if (r < 0) {
		/* An usher that died early has said why. */
		take_last_messages(&k, &k.kids.init_sock);
		fail(&k, r, &why);
	}

	(void)setsid();
	release_stdio();
	keeper_loop(&k);
	groups_remove(&k.groups);
	return 0;
}
