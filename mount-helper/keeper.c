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
 *	the CLI of a standing world, after GO, is gone  ->  nothing
 *	warden, usher or init is stopped          ->  it is continued
 *	the observer keeps an inmate waiting      ->  listener.h stands in
 *
 * A command runs only after GO, and GO is said in one place.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/tree.h"
#include "mount-helper/advice.h"
#include "mount-helper/children.h"
#include "mount-helper/groups.h"
#include "mount-helper/helper.h"
#include "mount-helper/keeper_commands.h"
#include "mount-helper/listener.h"
#include "mount-helper/steps.h"
#include "mount-helper/sweep.h"

/* How long the warden may take to bring its records home. */
#define WARDEN_END_MS 10000

/* How often those that should be dead are looked at. */
#define OVERDUE_MS 100

/* Of signals, the CLI, the warden, init and the listener. */
#define OWN_POLLS     5
#define POLL_CLI      1
#define POLL_WARDEN   2
#define POLL_LISTENER 4

/* How long the killed of a tree are given before their heirs are looked for. */
#define TREE_MS 2

struct keeper {
	struct helper *h;
	struct children kids;
	struct groups groups;
	struct keeper_commands commands;
	struct pollfd *polls;
	size_t polls_room;
	int signals;
	struct listener listener;
	bool ready, serving, gone;
	uint32_t world_flags;	/* WORLD_* */
	bool ending;		/* nothing more happens in the world */
	bool killed;		/* init was sent its death */
	struct wire_msg ended;	/* how the world ended, for the warden */
	struct wire_msg unsent; /* the last word, where `has_unsent` */
	bool has_unsent;
	int64_t deadline_ns;
};

/*
 * A caller that somebody has stopped reads nothing, and the world does not
 * wait for it.  What finds no room is left out, but for the last word, which
 * is sent when there is some.
 */
static void
send_to_cli(struct keeper *k, const struct wire_msg *msg)
{
	if (k->has_unsent)
		return;
	if (send(k->h->control, msg, sizeof(*msg),
		 MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
	    errno != EAGAIN)
		return;
	if (msg->type != WIRE_EXITED && msg->type != WIRE_FAILED)
		return;
	k->unsent = *msg;
	k->has_unsent = true;
}

static void
send_unsent(struct keeper *k)
{
	k->has_unsent = false;
	if (k->h->control >= 0)
		send_to_cli(k, &k->unsent);
}

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
		send_to_cli(k, msg);
}

static bool
is_standing(const struct keeper *k)
{
	return k->h->plan.flags & PLAN_STANDING;
}

/* Who dies before init sees to it leaves his own to us. */
static bool
takes_heirs(const struct helper *h)
{
	return (h->plan.flags & PLAN_LANDLOCK) ||
	       (helper_is_tree(h) && (h->plan.flags & PLAN_STANDING));
}

static void
kill_world(struct keeper *k)
{
	if (k->killed)
		return;
	k->killed = true;

	/* One without a pid namespace has a tree to sweep: it sees the end. */
	if (k->kids.init_sock >= 0)
		(void)shutdown(k->kids.init_sock, SHUT_RDWR);
	if (k->kids.init > 0 && !helper_is_tree(k->h))
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
		(void)fd_send(k->kids.warden_sock, &k->ended, sizeof(k->ended),
			      NULL, 0);
}

/* The first reason is the reason. */
static void
note_end(struct keeper *k, const char *why)
{
	size_t room = sizeof(k->ended.text) - 1;

	if (!k->ending && !k->ended.text[0])
		memcpy(k->ended.text, why, strnlen(why, room));
}

static void
fail(struct keeper *k, int r, const struct errmsg *why)
{
	struct wire_msg msg;

	wire_failed(&msg, r, why);
	if (!k->ending)
		tell_cli(k, &msg);
	note_end(k, why->text);
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
			 (k->h->no_ioctl ? WORLD_NO_IOCTL : 0) |
			 (k->h->observer ? 0 : WORLD_NO_OBSERVER) |
			 (k->h->scoped ? 0 : WORLD_NO_SCOPE) |
			 (k->h->home_tmpfs ? WORLD_HOME_TMPFS : 0);

	struct wire_msg up = { .type = WIRE_STARTED, .flags = k->world_flags };

	if (k->kids.warden_sock >= 0)
		(void)fd_send(k->kids.warden_sock, &up, sizeof(up), NULL, 0);
	(void)wire_send(k->kids.init_sock, WIRE_GO, 0, 0, -1);
	if (is_standing(k))
		tell_cli(k, &up);
}

static void
on_failed(struct keeper *k, struct wire_msg *msg)
{
	if (!k->ending)
		tell_cli(k, msg);
	note_end(k, msg->text);
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
on_init_message(struct keeper *k, struct wire_msg *msg, int *fds, size_t nfds)
{
	if (msg->type == WIRE_LISTENER) {
		if (k->kids.init > 0 && !helper_is_tree(k->h))
			return;
		if (k->listener.fd >= 0 || !is_child(msg->pid))
			return;
		k->kids.init = msg->pid;
		k->h->no_ioctl = msg->flags & WORLD_NO_IOCTL;
		k->h->observer = nfds > 0;
		k->h->scoped = msg->value != 0;
		if (nfds > 0)
			k->listener.fd = take_fd(&fds[0]);
		k->h->home_tmpfs = msg->flags & WORLD_HOME_TMPFS;
		if (k->killed && !helper_is_tree(k->h))
			(void)kill(k->kids.init, SIGKILL);
		maybe_go(k);
	} else if (msg->type == WIRE_READY) {
		if (is_standing(k) &&
		    namespaces_unpack(&k->h->namespaces, msg->flags, fds,
				      nfds) < 0)
			return;
		k->ready = true;
		maybe_go(k);
	} else if (msg->type == WIRE_STARTED || msg->type == WIRE_STOPPED) {
		tell_cli(k, msg);
	} else if (msg->type == WIRE_EXITED) {
		tell_cli(k, msg);
		k->ended.flags |= WIRE_ENDED_STATUS;
		k->ended.status = msg->status;
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
	if (k->gone && is_standing(k)) {
		(void)wire_send(k->kids.init_sock, WIRE_ENDED, 0, 0, -1);
		return;
	}
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
on_warden_message(struct keeper *k, struct wire_msg *msg, int *fds, size_t nfds)
{
	struct errmsg why = { "" };
	int r;

	if (is_standing(k) && k->gone && !k->ending) {
		k->commands.init_sock = k->kids.init_sock;
		k->commands.warden_sock = k->kids.warden_sock;
		if (keeper_commands_order(&k->commands, msg, fds, nfds))
			return;
	}
	if (msg->type == WIRE_SERVING) {
		r = step_begin(STEP_SERVING, &why);
		if (r < 0) {
			fail(k, r, &why);
			return;
		}
		k->serving = true;
		maybe_go(k);
	} else if (msg->type == WIRE_PACE && nfds > 0) {
		/* Its listener came by the usher, ours may still be there. */
		while (k->listener.fd < 0 && k->kids.init_sock >= 0 &&
		       children_has_message(k->kids.init_sock))
			on_readable(k, &k->kids.init_sock);
		listener_watch(&k->listener, fds[0]);
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
take_message(int *sock, struct wire_msg *msg, int *fds, size_t *nfds)
{
	int r = wire_recv_all(*sock, msg, fds, nfds);

	if (r > 0)
		return true;
	(void)close(take_fd(sock));
	return false;
}

static void
on_connection_end(struct keeper *k, const int *sock)
{
	struct errmsg why = { "" };

	if (sock == &k->h->control) {
		/* It has made the world and is not needed to keep it. */
		if (is_standing(k) && k->gone)
			return;
		/* The caller is gone: so is everything that it started. */
		note_end(k, "the caller is gone");
		kill_world(k);
		begin_end(k);
	} else if (sock == &k->kids.warden_sock && !k->ending) {
		(void)errmsg_set(&why, -EPIPE,
				 "the world's warden has died, so the world "
				 "was ended");
		fail(k, -EPIPE, &why);
	}
}

static void
on_readable(struct keeper *k, int *sock)
{
	int fds[FD_PASS_MAX];
	struct wire_msg msg;
	size_t nfds = 0;

	if (!take_message(sock, &msg, fds, &nfds)) {
		on_connection_end(k, sock);
		return;
	}
	if (sock == &k->h->control)
		on_control_message(k, &msg);
	else if (sock == &k->kids.warden_sock)
		on_warden_message(k, &msg, fds, nfds);
	else
		on_init_message(k, &msg, fds, nfds);
	for (size_t i = 0; i < nfds; i++)
		closep(&fds[i]);
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
	/* What it had taken in has come to us. */
	if (takes_heirs(k->h) && pid != k->kids.warden)
		sweep_descendants(k->kids.warden, SIGKILL);
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
	if (k->listener.fd >= 0)
		listener_release(k->listener.fd);
	keeper_commands_release(&k->commands);
}

/* Of two waits; -1 is for ever. */
static int
sooner(int a_ms, int b_ms)
{
	if (a_ms < 0 || b_ms < 0)
		return a_ms < 0 ? b_ms : a_ms;
	return a_ms < b_ms ? a_ms : b_ms;
}

static int
poll_timeout(struct keeper *k)
{
	int left_ms;

	if (!k->ending)
		return sooner(listener_timeout(&k->listener),
			      keeper_commands_timeout(&k->commands));
	left_ms = clock_left_ms(k->deadline_ns);
	/* All are killed; one may sit in a slow disk's call. */
	if (left_ms == 0)
		return OVERDUE_MS;
	/* A world that is being killed may wait on its listeners. */
	return (k->listener.fd >= 0 || k->commands.count > 0) && k->killed
		       ? 5
		       : left_ms;
}

/* Room for ours and the commands'; without memory the latter wait. */
static size_t
reserve_polls(struct keeper *k)
{
	size_t wanted = OWN_POLLS + keeper_commands_polled(&k->commands);
	struct pollfd *polls;

	if (wanted <= k->polls_room)
		return wanted;
	polls = reallocarray(k->polls, 2 * wanted, sizeof(*polls));
	if (!polls)
		return OWN_POLLS;
	k->polls = polls;
	k->polls_room = 2 * wanted;
	return wanted;
}

static void
fill_polls(struct keeper *k, struct pollfd *polls, size_t n)
{
	const int socks[] = { k->h->control, k->kids.warden_sock,
			      k->kids.init_sock };

	polls[0] = (struct pollfd){ .fd = k->signals, .events = POLLIN };
	for (size_t i = 0; i < 3; i++)
		polls[i + 1] =
			(struct pollfd){ .fd = socks[i], .events = POLLIN };
	/* Commands may be ordered as soon as it serves. */
	if (is_standing(k) && k->serving && !k->gone && !k->ending)
		polls[POLL_WARDEN].fd = -1;
	if (k->has_unsent)
		polls[POLL_CLI].events |= POLLOUT;
	polls[POLL_LISTENER] = listener_poll(&k->listener);
	/* Nobody looks at it any more, and its end would be told for ever. */
	if (k->ending)
		polls[POLL_LISTENER].fd = -1;
	if (n > OWN_POLLS)
		keeper_commands_poll(&k->commands, polls + OWN_POLLS);
}

static void
take_records(struct keeper *k, const struct pollfd *polls, size_t n)
{
	int *const socks[] = { &k->h->control, &k->kids.warden_sock,
			       &k->kids.init_sock };

	if (k->has_unsent && (polls[POLL_CLI].revents & POLLOUT))
		send_unsent(k);
	for (size_t i = 0; i < 3; i++)
		if ((polls[i + 1].revents & ~POLLOUT) && *socks[i] >= 0)
			on_readable(k, socks[i]);
	k->commands.warden_sock = k->kids.warden_sock;
	k->commands.ending = k->ending;
	if (n > OWN_POLLS)
		keeper_commands_serve(&k->commands, polls + OWN_POLLS);
}

static void
keeper_loop(struct keeper *k)
{
	while (children_left(&k->kids) ||
	       (k->has_unsent && k->h->control >= 0)) {
		struct pollfd own[OWN_POLLS], *polls;
		size_t n = reserve_polls(k);

		polls = k->polls ? k->polls : own;
		fill_polls(k, polls, n);
		if (poll(polls, n, poll_timeout(k)) < 0) {
			if (errno != EINTR)
				break;
			continue;
		}

		/* First, so that nobody who waits in it waits for the rest. */
		if (!k->ending)
			listener_look(&k->listener,
				      polls[POLL_LISTENER].revents,
				      k->kids.warden_sock);

		/* Records before deaths: what was said first counts first. */
		take_records(k, polls, n);
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
	if (confined || is_standing(k)) {
		r = children_adopt_warden(&k->kids, h, why);
		if (r < 0)
			return r;
	}
	r = groups_make(&k->groups, &h->plan, h->require_limits, why);
	if (r < 0)
		return r;
	h->grouped = k->groups.count > 0;
	if (!confined && !is_standing(k))
		k->serving = true;
	if (helper_is_tree(h))
		return children_start_init(&k->kids, h, &k->groups, why);
	return children_start_usher(&k->kids, h, &k->groups, why);
}

/* An init that was killed leaves its tree behind, and it comes to us. */
static void
end_tree(void)
{
	int64_t end = clock_mono_ns() + WARDEN_END_MS * 1000000LL;

	while (waitpid(-1, NULL, WNOHANG) >= 0 && clock_mono_ns() < end) {
		sweep_descendants(0, SIGKILL);
		(void)poll(NULL, 0, TREE_MS);
	}
}

/* What was made for this world alone; nobody is left who could add to it. */
static void
remove_temp(const struct plan *plan)
{
	for (size_t i = 0; i < plan->n_mounts; i++) {
		_cleanup_(closep) int fd = -1;

		if (plan->mounts[i].kind != PLAN_TEMP)
			continue;
		fd = open(plan->mounts[i].target,
			  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && tree_empty(fd) == 0)
			(void)rmdir(plan->mounts[i].target);
	}
}

int
keeper_run(struct helper *h)
{
	struct keeper k = {
		.h = h,
		.kids = CHILDREN_NONE,
		.signals = -1,
		.listener = LISTENER_NONE,
	};
	struct errmsg why = { "" };
	sigset_t mask;
	int r;

	k.ended.type = WIRE_ENDED;
	k.commands = (struct keeper_commands){ .h = h,
					       .groups = &k.groups,
					       .init_sock = -1,
					       .warden_sock = -1,
					       .main = &k.listener };
	(void)prctl(PR_SET_NAME, "pale-keeper");
	/* No terminal of the caller's is a standing world's. */
	if (is_standing(&k)) {
		(void)setsid();
		release_stdio();
	}
	if (takes_heirs(h))
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
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
	if (takes_heirs(h))
		end_tree();
	remove_temp(&h->plan);
	keeper_commands_fini(&k.commands);
	namespaces_fini(&h->namespaces);
	free(k.polls);
	groups_remove(&k.groups);
	return 0;
}
