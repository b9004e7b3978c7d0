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
#include <sys/queue.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "base/errmsg.h"
#include "base/wire.h"
#include "fusefs/fs.h"
#include "policy/denial.h"
#include "policy/policy.h"
#include "warden/log.h"
#include "warden/watch.h"

struct observer;
struct server;
struct jobs_host;
struct spawner;
struct terms_host;
struct warden_tree;

struct warden_options {
	int policy_fd, world_fd, keeper_fd, client_fd; /* −1: none */
	bool policy_here;			       /* warden_inherit() */
	const char *call;  /* the caller's id of a run; NULL: none */
	int guard_fd;	   /* only held open: its end is what it says */
	const char *world; /* id */
	const char *socket_dir, *state_dir; /* NULL: default */
	const char *mountpoint;		    /* NULL: a run's world */
	bool own_mounts;
	bool standing;	  /* commands come by request */
	bool passthrough; /* the mode is fixed: see fusefs/fs.h */
	bool for_mount;	  /* made by `pale mount` */
	uint64_t idle_ms; /* … and it ends when for so long nobody wants it */
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
	struct policy *policy; /* in force; policy_lock, see mode.c */
	char digest[POLICY_DIGEST_LEN + 1]; /* of the policy it began with */
	pthread_mutex_t mode_lock; /* one change at a time; before the other */
	struct denials *denials;
	struct fs *fs;
	struct observer *observer;
	struct spawner *spawner;  /* of a standing world; NULL: none */
	struct jobs_host *jobs;	  /* NULL: none was asked for */
	struct terms_host *terms; /* likewise */
	int devpts;		  /* of the world, O_PATH; −1: none */
	struct server *server;
	struct warden_tree *tree; /* at `.pale` of every mount */
	struct log *log;
	int world_dir_fd; /* locked while this warden lives; −1: not made */
	int64_t started_ns;

	uv_loop_t loop;
	uv_poll_t world_poll, keeper_poll;
	uv_async_t wake; /* from any thread: look at the flags below */
	uv_signal_t term;
	uv_timer_t end_timer;
	uv_timer_t idle_timer;
	unsigned int wanted_by;		  /* see warden_hold() */
	bool used;			  /* a command was started by request */
	LIST_HEAD(face_list, face) faces; /* mounts for the host */
	pthread_mutex_t faces_lock;	  /* the list, and face->fs */
	struct watch watch;		  /* of the workspace */
	atomic_bool fs_ended;	 /* the connection is gone; any thread sets */
	atomic_bool new_denials; /* rows came into the store; audit sets */
	int listener;		 /* the observer's, while it runs; −1: none */
	pid_t parent;		 /* when we started */
	pid_t init_pid;		 /* of a run's world, once it is locked down */
	dev_t mount_dev;	 /* of a host-visible mount */
	uint32_t world_flags;	 /* base/world_flags.h */
	pthread_mutex_t record_lock; /* one event at a time, and `recorded` */
	bool recorded;		     /* warden_record_start() is done */
	uv_timer_t record_timer;
	uv_work_t record_work;
	struct errmsg end_reason;
	bool has_status;
	int status; /* of the command, as wait(2) tells it */
	bool watching;
	bool keeper_gone;
	bool ending;
};

/* Starts the end; `reason` goes to the log.  Again: nothing. */
void warden_end(struct warden *warden, const char *reason);
/* The same, where it is a failure that whoever waits for the world is told. */
void warden_fail(struct warden *warden, int r, const struct errmsg *why);

/*
 * idle.c: a standing world ends when for opt.idle_ms nobody has held it.  Who
 * needs it (a client, a command, a mount) holds it once and releases it.
 */
int idle_start(struct warden *warden);
void warden_hold(struct warden *warden);
void warden_release(struct warden *warden);

/* main.c: opens the roots under the policy in force; not served yet. */
struct warden_fs {
	const char *origin; /* of its denials */
	bool host_visible;
	pid_t helper_pid; /* who may look further roots up; 0: nobody */
	void (*ended)(void *data);
	void *data;
};
int warden_open_fs(struct warden *warden, const struct warden_fs *how,
		   struct fs **ret_fs, struct errmsg *why);

/* "run", "standing" or "mount". */
const char *warden_kind(const struct warden *warden);

/* methods.c: whether nothing of the fence is missing. */
bool warden_is_full(struct warden *warden);

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
/* Tells why: who subscribed to the world, and who holds a mount of it. */
void server_ending(struct server *server, const char *reason, bool failed);
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
 * events.c: what of this world is durable besides its denials; what cannot be
 * written is told in the log.  All may wait for the store.  Thread: any.
 *
 * The start is written by the first that needs it: a denial, which is found by
 * workspace through it, a change of the mode, a world that lives for a while
 * (events_start()), or the end, when nobody waits for us any more.
 */
void warden_record_start(struct warden *warden);
/* `body` is a JSON object; it gets its NUL here. */
void warden_record_event(struct warden *warden, const char *kind,
			 struct buf *body);
void warden_record_end(struct warden *warden);
/* Has the start written soon, off the loop.  Thread: loop. */
int events_start(struct warden *warden);
/*
 * "on"; "degraded": what was refused outside the workspace is not all on
 * record; "off": no listener.
 */
const char *warden_observer_name(const struct warden *warden);
/* The counters of the service, as one JSON object. */
void warden_stats_json(struct warden *warden, struct buf *out);

#endif
