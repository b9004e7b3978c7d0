/* SPDX-License-Identifier: MIT */

/*
 * The end of a command's first process is the end of its pid namespace, and
 * its pidfd says so only when all the others have gone.  The socket ends a
 * little earlier, and a command that was killed says nothing on it: what is
 * missing then is said here.
 *
 * Nothing here waits: a first process that does not read loses orders.
 */

#include "mount-helper/keeper_commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "mount-helper/commands.h"
#include "mount-helper/listener.h"
#include "mount-helper/miniinit.h"

/* Its socket, its pidfd, its listener. */
#define POLLS_EACH 3

enum {
	DRAIN_OUT,
	DRAIN_ERR,
	DRAINS
};

struct keeper_command {
	struct keeper_command *next;
	uint64_t id;
	int sock, pidfd;	  /* -1: none (any more) */
	struct listener listener; /* of a filter of its own */
	int drains[DRAINS], dir;  /* -1: none */
	size_t poll_at;		  /* of `sock`; the others follow */
	bool polled;
	bool entered;  /* a client is its parent */
	bool killing;  /* as soon as there is a pidfd */
	bool failed;   /* said */
	bool terminal; /* its drains are one stream */
	bool started, exited, gone, forgotten;
	int status; /* exited */
};

static void
drop(int *fd)
{
	closep(fd);
	*fd = -1;
}

static struct keeper_command *
find(struct keeper_commands *all, uint64_t id)
{
	for (struct keeper_command *c = all->first; c; c = c->next)
		if (c->id == id)
			return c;
	return NULL;
}

static void
command_free(struct keeper_command *c)
{
	closep(&c->sock);
	closep(&c->pidfd);
	closep(&c->listener.fd);
	for (int i = 0; i < DRAINS; i++)
		closep(&c->drains[i]);
	closep(&c->dir);
	free(c);
}

/* Frees those of whom nobody wants to know more. */
static void
sweep(struct keeper_commands *all)
{
	struct keeper_command **at = &all->first;

	while (*at) {
		struct keeper_command *c = *at;

		if (!c->gone || !c->forgotten) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		all->count--;
		command_free(c);
	}
}

static void
tell_warden(const struct keeper_commands *all, const struct wire_msg *msg,
	    const int *fds, size_t nfds)
{
	if (all->warden_sock >= 0)
		(void)fd_send(all->warden_sock, msg, sizeof(*msg), fds, nfds);
}

static void
refuse(const struct keeper_commands *all, uint64_t id, int r,
       const char *sentence)
{
	struct errmsg why = { "" };

	(void)errmsg_set(&why, r, "%s", sentence);
	if (all->warden_sock >= 0)
		miniinit_send_failure(all->warden_sock, id, r, &why);
}

/* ---- orders ---- */

/* What the keeper keeps: the descriptors after the first `at`. */
static int
take_kept(struct keeper_command *c, const struct wire_msg *msg, int *fds,
	  size_t nfds, size_t at)
{
	int *const kept[] = { &c->drains[DRAIN_OUT], &c->drains[DRAIN_ERR],
			      &c->dir };
	const uint32_t bits[] = { WIRE_SPAWN_OUT, WIRE_SPAWN_ERR,
				  WIRE_SPAWN_DIR };

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (!(msg->flags & bits[i]))
			continue;
		if (at >= nfds)
			return -EPROTO;
		*kept[i] = take_fd(&fds[at++]);
	}
	return at == nfds ? 0 : -EPROTO;
}

/* To init: the spec, the command's descriptors, and its socket to us. */
static int
hand_to_init(struct keeper_commands *all, struct keeper_command *c,
	     const struct wire_msg *msg, const int *fds)
{
	int pair[2], send[COMMAND_FDS], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	memcpy(send, fds, COMMAND_KEEPER * sizeof(int));
	send[COMMAND_KEEPER] = pair[1];
	c->sock = pair[0];
	r = fd_send(all->init_sock, msg, sizeof(*msg), send, COMMAND_FDS);
	(void)close(pair[1]);
	return r;
}

/* To a client's `enter`: the spec, the way in, and the limits. */
static int
hand_to_client(struct keeper_commands *all, struct keeper_command *c,
	       const struct wire_msg *msg, int *fds)
{
	const struct helper *h = all->h;
	struct wire_msg out = { .type = WIRE_ENTER,
				.id = msg->id,
				.flags = h->plan.flags &
					 ~(h->observer ? 0 : PLAN_OBSERVE),
				.status = h->grouped,
				.user_us = h->plan.pids };
	int send[FD_PASS_MAX];
	size_t n;

	c->entered = true;
	c->sock = take_fd(&fds[1]);
	out.value = (int32_t)namespaces_pack(&h->namespaces, send + 1, &n);
	send[0] = fds[0];
	return fd_send(c->sock, &out, sizeof(out), send, n + 1);
}

static void
add(struct keeper_commands *all, const struct wire_msg *msg, int *fds,
    size_t nfds)
{
	bool spawn = msg->type == WIRE_SPAWN;
	size_t own = spawn ? COMMAND_KEEPER : 2;
	struct keeper_command *c;
	int r;

	c = all->count < LIMIT_COMMANDS ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		refuse(all, msg->id, -EAGAIN, "too many commands at once");
		return;
	}
	*c = (struct keeper_command){
		.next = all->first,
		.id = msg->id,
		.sock = -1,
		.pidfd = -1,
		.listener = LISTENER_NONE,
		.drains = { -1, -1 },
		.dir = -1,
	};
	c->terminal = msg->flags & WIRE_SPAWN_TERMINAL;
	all->first = c;
	all->count++;
	r = nfds < own ? -EPROTO : take_kept(c, msg, fds, nfds, own);
	if (r == 0)
		r = spawn ? hand_to_init(all, c, msg, fds)
			  : hand_to_client(all, c, msg, fds);
	if (r == 0 && c->sock >= 0)
		r = fcntl(c->sock, F_SETFL, O_RDWR | O_NONBLOCK) < 0 ? -errno
								     : 0;
	if (r < 0) {
		refuse(all, msg->id, r, strerror(-r));
		c->failed = c->gone = true;
	}
}

static void
kill_now(struct keeper_commands *all, struct keeper_command *c)
{
	const struct wire_msg order = { .type = WIRE_CMD_KILL, .id = c->id };

	c->killing = true;
	if (c->pidfd < 0 || c->gone)
		return;
	/*
	 * Where it has no pid namespace, its end would be its own alone.  There
	 * its command may have stopped it, too.
	 */
	if (!(all->h->plan.flags & PLAN_UNCONFINED)) {
		(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL,
			      0);
		return;
	}
	(void)fd_send(c->sock, &order, sizeof(order), NULL, 0);
	(void)syscall(SYS_pidfd_send_signal, c->pidfd, SIGCONT, NULL, 0);
}

bool
keeper_commands_order(struct keeper_commands *all, const struct wire_msg *msg,
		      int *fds, size_t nfds)
{
	struct keeper_command *c;

	if (msg->type == WIRE_SPAWN || msg->type == WIRE_ENTER) {
		add(all, msg, fds, nfds);
		for (size_t i = 0; i < nfds; i++)
			drop(&fds[i]);
		return true;
	}
	if (msg->type != WIRE_GO && msg->type != WIRE_CMD_SIGNAL &&
	    msg->type != WIRE_CMD_KILL && msg->type != WIRE_FORGET)
		return false;
	for (size_t i = 0; i < nfds; i++)
		drop(&fds[i]);
	c = find(all, msg->id);
	if (!c)
		return true;
	if (msg->type == WIRE_CMD_KILL) {
		kill_now(all, c);
	} else if (msg->type == WIRE_FORGET) {
		c->forgotten = true;
		for (int i = 0; i < DRAINS; i++)
			drop(&c->drains[i]);
		drop(&c->dir);
		sweep(all);
	} else if (c->sock >= 0) {
		(void)fd_send(c->sock, msg, sizeof(*msg), NULL, 0);
	}
	return true;
}

/* ---- what commands say ---- */

/* Under the limits of the world; its own parent is a client, not init. */
static void
admit(const struct keeper_commands *all, const struct keeper_command *c)
{
	struct errmsg why = { "" };
	pid_t pid = 0;
	int r;

	r = fd_pidfd_pid(c->pidfd, &pid);
	if (r == 0)
		r = groups_enter(all->groups, pid, &why);
	/* Before the warden's GO: what comes first counts. */
	if (r < 0)
		(void)wire_send_failed(c->sock, r, &why);
}

static void
on_born(struct keeper_commands *all, struct keeper_command *c,
	const struct wire_msg *msg, int *fds, size_t nfds)
{
	if (c->pidfd >= 0 || nfds == 0)
		return;
	tell_warden(all, msg, fds, nfds);
	c->pidfd = take_fd(&fds[0]);
	if (nfds > 1) {
		c->listener.fd = take_fd(&fds[1]);
		c->listener.id = c->id;
		listener_join(&c->listener, all->main);
	}
	if (c->entered)
		admit(all, c);
	if (c->killing)
		kill_now(all, c);
}

static void
on_message(struct keeper_commands *all, struct keeper_command *c,
	   struct wire_msg *msg, int *fds, size_t nfds)
{
	/* It speaks of itself alone. */
	msg->id = c->id;
	if (msg->type == WIRE_CMD_BORN) {
		on_born(all, c, msg, fds, nfds);
	} else if (msg->type == WIRE_SPAWNED && !c->started && !c->failed) {
		c->started = msg->value == 0;
		c->failed = !c->started;
		tell_warden(all, msg, fds, nfds);
	} else if (msg->type == WIRE_CMD_EXITED && c->started && !c->exited) {
		c->exited = true;
		c->status = msg->status;
		tell_warden(all, msg, NULL, 0);
	}
}

/* Reads what there is; false when the connection has ended. */
static bool
read_messages(struct keeper_commands *all, struct keeper_command *c)
{
	int fds[FD_PASS_MAX];
	struct wire_msg msg;

	for (;;) {
		size_t nfds = 0;
		int r = wire_recv_all(c->sock, &msg, fds, &nfds);

		if (r == -EAGAIN)
			return true;
		if (r <= 0)
			return false;
		on_message(all, c, &msg, fds, nfds);
		for (size_t i = 0; i < nfds; i++)
			drop(&fds[i]);
	}
}

/* Nothing of the tree is left; who was killed could not say how he ended. */
static void
on_gone(struct keeper_commands *all, struct keeper_command *c)
{
	struct wire_msg msg = { .type = WIRE_CMD_GONE, .id = c->id };

	c->gone = true;
	drop(&c->sock);
	drop(&c->pidfd);
	drop(&c->listener.fd);
	if (!c->started && !c->failed) {
		c->failed = true;
		refuse(all, c->id, -ECHILD,
		       c->killing ? "it was killed before it ran"
				  : "its first process has died");
		return;
	}
	if (!c->started)
		return;
	if (!c->exited) {
		msg.type = WIRE_CMD_EXITED;
		msg.status = SIGKILL;
		tell_warden(all, &msg, NULL, 0);
		msg.type = WIRE_CMD_GONE;
	}
	tell_warden(all, &msg, NULL, 0);
}

size_t
keeper_commands_polled(const struct keeper_commands *all)
{
	return POLLS_EACH * all->count;
}

void
keeper_commands_poll(struct keeper_commands *all, struct pollfd *polls)
{
	size_t at = 0;

	for (struct keeper_command *c = all->first; c; c = c->next) {
		c->polled = !c->gone;
		if (c->gone)
			continue;
		c->poll_at = at;
		polls[at++] =
			(struct pollfd){ .fd = c->sock, .events = POLLIN };
		polls[at++] =
			(struct pollfd){ .fd = c->pidfd, .events = POLLIN };
		polls[at] = listener_poll(&c->listener);
		/* As the keeper's own: it is not looked at. */
		if (all->ending)
			polls[at].fd = -1;
		at++;
	}
	while (at < keeper_commands_polled(all))
		polls[at++].fd = -1;
}

int
keeper_commands_timeout(const struct keeper_commands *all)
{
	int least_ms = -1;

	for (const struct keeper_command *c = all->first; c; c = c->next) {
		int ms = listener_timeout(&c->listener);

		if (ms >= 0 && (least_ms < 0 || ms < least_ms))
			least_ms = ms;
	}
	return least_ms;
}

void
keeper_commands_serve(struct keeper_commands *all, const struct pollfd *polls)
{
	for (struct keeper_command *c = all->first; c; c = c->next) {
		if (!c->polled || c->gone)
			continue;
		c->polled = false;
		if (c->listener.fd >= 0 && !all->ending)
			listener_look(&c->listener,
				      polls[c->poll_at + 2].revents,
				      all->warden_sock);
		if (polls[c->poll_at].revents && c->sock >= 0 &&
		    !read_messages(all, c))
			drop(&c->sock);
		if (polls[c->poll_at + 1].revents ||
		    (c->sock < 0 && c->pidfd < 0)) {
			if (c->sock >= 0)
				(void)read_messages(all, c);
			on_gone(all, c);
		}
	}
	sweep(all);
}

void
keeper_commands_release(const struct keeper_commands *all)
{
	for (const struct keeper_command *c = all->first; c; c = c->next)
		if (c->listener.fd >= 0)
			listener_release(c->listener.fd);
}

/* ---- the end ---- */

/* Appends what the pipe holds; a disk that is full loses it. */
static void
save_pipe(int pipe, int dir, const char *name)
{
	_cleanup_(closep) int fd = -1;
	static char chunk[1 << 16];
	ssize_t n;

	/* Nobody else reads it now; a writer outside must not hold us up. */
	if (pipe < 0 || fcntl(pipe, F_SETFL, O_NONBLOCK) < 0)
		return;
	while ((n = read(pipe, chunk, sizeof(chunk))) > 0) {
		if (fd < 0)
			fd = openat(dir, name,
				    O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW |
					    O_CLOEXEC,
				    0600);
		if (fd < 0 || fd_write_all(fd, chunk, (size_t)n) < 0)
			return;
	}
}

static void
save_status(const struct keeper_command *c)
{
	_cleanup_(closep) int fd = -1;
	char text[32];

	if (!c->exited)
		return;
	fd = openat(c->dir, "exit",
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (WIFSIGNALED(c->status))
		(void)snprintf(text, sizeof(text), "killed %d\n",
			       WTERMSIG(c->status));
	else
		(void)snprintf(text, sizeof(text), "exited %d\n",
			       WEXITSTATUS(c->status));
	if (fd >= 0)
		(void)fd_write_all(fd, text, strlen(text));
}

void
keeper_commands_fini(struct keeper_commands *all)
{
	static const char *const tails[DRAINS] = { "stdout.tail",
						   "stderr.tail" };
	struct keeper_command *c;

	all->warden_sock = -1;
	while ((c = all->first)) {
		all->first = c->next;
		if (c->sock >= 0)
			(void)read_messages(all, c);
		if (c->dir >= 0) {
			for (int i = 0; i < DRAINS; i++)
				save_pipe(c->drains[i], c->dir,
					  c->terminal ? "raw.tail" : tails[i]);
			save_status(c);
		}
		command_free(c);
	}
	all->count = 0;
}
