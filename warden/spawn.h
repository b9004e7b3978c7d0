/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_SPAWN_H
#define WARDEN_SPAWN_H

/*
 * Commands in the standing world of this warden.
 *
 * Each has a first process of its own below the world's init, pid 1 of its own
 * pid namespace, so that its tree is killed whole.  What becomes of it is told
 * by callbacks, in this order and each at most once:
 *
 *	started  exited  gone
 *	failed
 *
 * `exited` is the command itself, `gone` is all of its tree.  After failed()
 * nothing follows but spawn_forget() by the caller, which is due in either
 * case: until then the keeper holds the descriptors to drain.
 *
 * Thread: loop, but for spawn_attribute().
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/errmsg.h"
#include "base/strv.h"

struct warden;
struct wire_msg;

struct spawn_request {
	const char *origin; /* of its denials: "exec", "job j3" */
	const char *call;   /* NULL: none */
	const struct strv *argv, *env;
	const char *cwd; /* absolute, as in the world */
	int umask;	 /* -1: that of the world */
	/* Borrowed until the call returns. */
	int fds[3];   /* 0, 1 and 2 of the command */
	int drain[2]; /* read ends for the keeper to save; -1: none */
	int dir;      /* O_PATH: takes *.tail and exit; -1: none */
	/*
	 * fds[0] becomes its controlling terminal; the drains are the pipe
	 * behind that and its other end, saved as one.
	 */
	bool terminal;
};

struct spawn_events {
	/* NULL: not wanted.  `host_pid` is the command's. */
	void (*started)(void *data, pid_t host_pid);
	/* `error` is a negative errno; `by_exec`: what execve(2) said. */
	void (*failed)(void *data, int error, bool by_exec, const char *why);
	void (*exited)(void *data, int status, const struct rusage *usage);
	void (*gone)(void *data);
};

/*
 * Starts a command; `events` is borrowed until spawn_forget().  No callback
 * comes before this returns.
 * Errors: -EINVAL, -E2BIG, -ENOMEM, -EAGAIN (too many commands), -EPIPE (the
 * world is ending).
 */
int spawn_start(struct warden *warden, const struct spawn_request *request,
		const struct spawn_events *events, void *data,
		uint64_t *ret_id);

/* A client who runs `pale-mount-helper enter` (mount-helper/enter.h). */
struct spawn_terminal {
	int sock; /* whose other end it reads, a SOCK_SEQPACKET; borrowed */
	const char *console; /* path of its terminal, NULL: none */
};

/*
 * The same, but the command's parent is a client with a terminal of its own.
 * The command's descriptors are the client's: fds[] is not looked at.
 */
int spawn_enter(struct warden *warden, const struct spawn_request *request,
		const struct spawn_terminal *terminal,
		const struct spawn_events *events, void *data,
		uint64_t *ret_id);

/* Errors: -ESRCH (no such command, or it has gone), -EPIPE. */
int spawn_signal(struct warden *warden, uint64_t id, int signal, bool tree);

/* To the foreground group of its terminal, else to the command alone. */
int spawn_signal_group(struct warden *warden, uint64_t id, int signal);

/* SIGKILL to all of the tree; gone() follows.  Errors as above. */
int spawn_kill(struct warden *warden, uint64_t id);

/* The host's number of its first process; 0: it has gone, or not come. */
pid_t spawn_first(const struct warden *warden, uint64_t id);

/*
 * No more callbacks; the keeper drops its descriptors.  A tree that still
 * lives goes on living.
 */
void spawn_forget(struct warden *warden, uint64_t id);

/*
 * Which command a process of the world belongs to; false: to none known.
 * `*ret_origin` and `*ret_call` (NULL: none) are the caller's, by free(3).
 * Thread: any.
 */
bool spawn_attribute(struct warden *warden, pid_t host_pid, char **ret_origin,
		     char **ret_call);

/* ---- for life.c ---- */

struct spawner;

int spawner_new(struct warden *warden, struct spawner **ret_spawner);
/* After the loop has ended.  Returns NULL. */
struct spawner *spawner_free(struct spawner *spawner);
/* A record of the keeper; takes the descriptors.  False: not for us. */
bool spawner_take(struct spawner *spawner, struct wire_msg *msg, int *fds,
		  size_t nfds);
/* The listener of a command's own filter, the observer's; -1: none. */
int spawner_listener(const struct spawner *spawner, uint64_t id);
/* The keeper's socket takes more. */
void spawner_flush(struct spawner *spawner);

#endif
