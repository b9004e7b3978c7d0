/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_WARDEN_PRIV_H
#define WARDEN_WARDEN_PRIV_H

/*
 * One warden, one world.  The life of it:
 *
 *   start   policy, spool, roots opened; wait for the mounter's descriptor
 *   serve   FUSE threads run; the loop answers the socket
 *   ending  asked to go: the socket is closed, the mounter takes the mount
 *           away (a bounded wait, END_WAIT_MS)
 *   over    the loop has returned: threads are joined, records flushed,
 *           the last line written, the runtime directory removed
 *
 * Thread: loop, unless a field says otherwise.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "base/errmsg.h"
#include "base/wire.h"
#include "fusefs/fs.h"
#include "policy/denial.h"
#include "policy/policy.h"
#include "warden/log.h"

struct observer;
struct server;

struct warden_options {
	int policy_fd, world_fd, keeper_fd, client_fd; /* −1: none */
	int guard_fd;	   /* only held open: its end is what it says */
	const char *world; /* id */
	const char *socket_dir, *state_dir; /* NULL: default */
	const char *mountpoint;		    /* NULL: a run's world */
	bool own_mounts;
};

/* Where this world keeps its things; all owned strings. */
struct warden_places {
	char *runtime;	       /* RUNTIME */
	char *state;	       /* STATE */
	char *config;	       /* CONFIG */
	char *runtime_world;   /* RUNTIME/worlds/ID; made by world_dir_make() */
	char *state_world;     /* STATE/worlds/ID, else runtime_world */
	char *db;	       /* STATE/pale.db */
	bool state_is_runtime; /* nothing durable could be made */
};

struct warden {
	struct warden_options opt;
	struct warden_places places;
	pthread_mutex_t policy_lock;
	struct policy *policy;	   /* in force; policy_lock, see mode.c */
	pthread_mutex_t mode_lock; /* one change at a time; before the other */
	struct denials *denials;
	struct fs *fs;
	struct observer *observer;
	struct server *server;
	struct log *log;
	int world_dir_fd; /* locked while this warden lives; −1: not made */
	int64_t started_ns;

	uv_loop_t loop;
	uv_poll_t world_poll, keeper_poll;
	uv_async_t wake; /* from any thread: look at the flags below */
	uv_signal_t term;
	uv_timer_t end_timer;
	atomic_bool fs_ended;	 /* the connection is gone; any thread sets */
	atomic_bool new_denials; /* rows came into the store; audit sets */
	int listener;		 /* the observer's, while it runs; −1: none */
	pid_t parent;		 /* when we started */
	pid_t init_pid;		 /* of a run's world, once it is locked down */
	dev_t mount_dev;	 /* of a host-visible mount */
	atomic_bool recorded; /* warden_record_start() is done, or on its way */
	bool watching;
	bool keeper_gone;
	bool ending;
};

/* Starts the end; `reason` goes to the log.  Again: nothing. */
void warden_end(struct warden *warden, const char *reason);

/* mode.c: a reference to the policy in force.  Thread: any. */
struct policy *warden_policy_get(struct warden *warden);

/* options.c: errors with a sentence. */
int warden_options_parse(int argc, char **argv, struct warden_options *ret_opt,
			 struct errmsg *why);

/* places.c */
int warden_places_init(struct warden_places *places,
		       const struct warden_options *opt, struct errmsg *why);
void warden_places_fini(struct warden_places *places);

/* world_dir.c: the directory by which others find this world. */
int world_dir_make(struct warden *warden, struct errmsg *why);
/* Writes info.json anew (start, change of mode). */
int world_dir_describe(struct warden *warden);
/* Appends what it says, as members of an object. */
void world_dir_members(struct warden *warden, struct buf *out);
/* A listening socket of mode 0600 in it. */
int world_dir_listen(struct warden *warden, int *ret_fd, struct errmsg *why);
void world_dir_remove(struct warden *warden);

/* server.c */
int server_start(struct warden *warden, int listen_fd,
		 struct server **ret_server);
/* Stops listening and drops the clients; memory goes with the loop's end. */
void server_close(struct server *server);
/* After the loop has ended.  Returns NULL. */
struct server *server_free(struct server *server);
/* The store has new rows: tells who subscribed. */
void server_denials(struct server *server);
void server_mode_changed(struct server *server, enum policy_mode before,
			 enum policy_mode after);

/* summary.c: the last line, for whoever waits for the run. */
void warden_summarize(struct warden *warden, int fd);
/*
 * Writes the event that the world began, by which its denials are found by
 * workspace.  Most worlds have none, and most runs would pay for a database
 * that nobody needs: so the first denial brings it.  Thread: any.
 */
void warden_record_start(struct warden *warden);
/*
 * Puts an event of this world on record; what cannot be is told in the log.
 * `body` is a JSON object; it gets its NUL here.  May wait for the store.
 * Thread: any.
 */
void warden_record_event(struct warden *warden, const char *kind,
			 struct buf *body);
/* The counters of the service, as one JSON object. */
void warden_stats_json(struct warden *warden, struct buf *out);

#endif
