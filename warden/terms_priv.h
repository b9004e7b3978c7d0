/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_PRIV_H
#define WARDEN_TERMS_PRIV_H

/*
 * What the files of the terminals share.
 *
 *	terms_host.c	the set, its listeners, who looks and who acts
 *	terms_pty.c	one pty: output to the log, the queue of its input
 *	terms_run.c	the program: events of spawn.h, the machine of jobs/
 *	terms_screen.c	the model: feeding, replies, cuts, checkpoints
 *	terms_start.c	from a request to a terminal: preflight, record, files
 *	terms_events.c	what happened, as lines
 *	terms_store.c	records, written by the pool, one batch at a time
 *	terms_rpc.c	the methods; terms_rpc_wait.c: answered later
 *
 * A terminal is a job (jobs/jobs.h: states, grace, the wait for the rest of
 * the output) whose output is one stream.  It is `held` from its start until
 * nothing of it can change any more: settled, its tree gone, nobody with its
 * pty open.  Then pty, files and model are closed and a small record stays.
 *
 * Thread: loop, but for `store`, which is the pool's under its lock.
 */

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

#include "jobs/jobs.h"
#include "policy/policy.h"
#include "pty/vt.h"
#include "warden/fault.h"
#include "warden/terms.h"
#include "warden/terms_row.h"
#include "warden/terms_shell.h"
#include "warden/warden_priv.h"

#define TERMS_LIVE  32
#define TERMS_COLS  80
#define TERMS_ROWS  24
#define TERMS_INPUT (64u << 10) /* bytes that wait for the program */

struct wterm;

/* The pty; lives until its handles have closed. */
struct term_pty {
	uv_poll_t poll;
	uv_timer_t timer;
	unsigned int handles;
	struct wterm *term; /* NULL: abandoned */
	int master;
	int pipe[2]; /* what the keeper saves when we die */
	bool hung;   /* nobody has the other end open now */
	bool wants_out;
	struct buf input; /* waits from `input_at` on */
	size_t input_at;
	size_t line;		   /* bytes since the last end of a line */
	int64_t again_at, term_at; /* monotonic; 0: not */
};

struct cut {
	uint64_t from, to;
};

/* The model of a terminal that is held. */
struct term_screen {
	struct vt *vt;
	struct segments_file file;
	uint64_t saved;		  /* of the checkpoint */
	int64_t fed_ns, saved_ns; /* monotonic */
	bool resized;		  /* since the checkpoint */
	bool feeding;		  /* in host->behind */
	bool silent;		  /* what it says is not asked for */
	struct cut *cuts;
	size_t n_cuts, cuts_room;
	uint64_t cuts_from;
};

/* What happened to it: lines, of which the first begins at `from`. */
struct term_events {
	struct buf lines;
	uint64_t from;
	uint64_t output_from;	     /* of the command that runs; 0: none */
	uint64_t last_from, last_to; /* … that ended last */
};

/* What was asked for, until it runs. */
struct term_asked {
	struct strv argv, env;
	char *cwd;
	int umask;
};

struct wterm {
	struct job core;
	struct terms_host *host;
	char *name, *label, *title;
	struct term_asked *asked;
	unsigned int cols, rows;
	bool pinned;
	int dir; /* locked; −1: closed */
	struct segments *raw;
	struct term_pty *pty;
	struct term_screen screen;
	struct term_shell shell;
	struct term_events events;
	TAILQ_ENTRY(wterm) behind;
	uint64_t spawn;
	bool spawned; /* spawn_forget() is due */
	bool held;
	bool told;	/* that it is settled, and on record */
	bool dirty;	/* its record is behind */
	bool recording; /* … and is just being written */
	bool has_grown; /* since that was told */
	bool removing;
	TAILQ_ENTRY(wterm) next_dirty;
	int64_t created_ns, started_ns, ended_ns; /* real */
	uint64_t bytes, stored;			  /* once closed */
	uint64_t recorded;			  /* `stored`, as on record */
	uint64_t user_us, sys_us, max_rss_kib;
	void (*started)(const struct terms_started *result, void *data);
	void *started_data;
};

struct terms_listener {
	LIST_ENTRY(terms_listener) link;
	struct terms_host *host;
	/* NULL: it has gone, and is freed when nobody is told any more. */
	void (*told)(uint64_t id, enum terms_event event,
		     const struct vt_event *model, void *data);
	void *data;
};

struct term_start;
struct terms_batch;

struct terms_host {
	struct warden *warden;
	struct jobs *core;
	char *workspace, *session;
	uint64_t kept; /* 0: the default */
	uv_timer_t timer, notify;
	bool notifying;
	uv_idle_t idle; /* while a model is behind */
	LIST_HEAD(, terms_listener) listeners;
	unsigned int telling;
	bool sweep; /* a listener has gone meanwhile */
	TAILQ_HEAD(, wterm) dirty;
	TAILQ_HEAD(, wterm) behind;
	size_t n_behind;
	LIST_HEAD(, term_start) starts; /* on their way; terms_start.c */
	bool ending, closed;
	bool rpc_watches;     /* terms_rpc_wait.c listens */
	unsigned int n_until; /* waits of terms_rpc_until.c */

	/* The model of the ended one that was looked at last. */
	struct vt *past;
	uint64_t past_id;

	/* The store: one batch on its way. */
	uv_work_t work;
	struct terms_batch *batch;
	int64_t prune_at, pruned_ns; /* monotonic; prune_at 0: not wanted */

	pthread_mutex_t store_lock; /* store, root */
	struct store *store;
	int root; /* STATE/worlds/ID/terminals, locked; −1 */
	char *root_path;

	struct fault fault; /* PALE_FAIL_TERM */
};

/* terms_host.c */
int terms_host_get(struct warden *warden, struct terms_host **ret_host);
struct wterm *terms_host_find(const struct terms_host *host, uint64_t id);
void terms_host_tell(struct terms_host *host, uint64_t id,
		     enum terms_event event, const struct vt_event *model);
/* After anything that may have changed a deadline. */
void terms_host_rearm(struct terms_host *host);
/* Forgets a settled terminal that is not held; tells the listeners. */
void terms_host_remove(struct terms_host *host, struct wterm *term);
/* Frees the memory; it is in no set any more. */
void wterm_free(struct wterm *term);
void term_asked_free(struct term_asked *asked);
/* Kills this process when PALE_FAIL_TERM names the point. */
void terms_fault(struct terms_host *host, const char *point);
/* Answers who asked for it, once. */
void wterm_tell_start(struct wterm *term);
void wterm_row(const struct wterm *term, struct store_term *ret_row);

/* terms_start.c: whether one that lives, or comes, has this name. */
bool terms_name_is_taken(const struct terms_host *host, const char *name,
			 const struct wterm *but);
/* Those that have ended let it go. */
void terms_free_name(struct terms_host *host, const char *name);

/* terms_pty.c: errors as of open(2) and ioctl(2). */
int term_pty_open(struct wterm *term, int *ret_slave);
/* Gives it up, whatever it holds. */
void term_pty_close(struct wterm *term);
/* Takes what there is, to the end or to EAGAIN. */
void term_pty_drain(struct wterm *term);
/* Queues bytes; returns how many.  `ahead`: before all that waits. */
size_t term_pty_write(struct wterm *term, const void *bytes, size_t len,
		      bool ahead);
size_t term_pty_room(const struct wterm *term);
/* A line longer than the terminal takes would come of these bytes. */
bool term_pty_is_too_long(const struct wterm *term, const char *bytes,
			  size_t len);
int term_pty_set_size(const struct wterm *term, unsigned int cols,
		      unsigned int rows);
/* SIGTERM for its tree, a moment after it was hung up. */
void term_pty_term_later(struct wterm *term);

/* terms_run.c */
extern const struct jobs_ops terms_run_ops;
/* Nobody has the pty open: what was written is all there. */
void terms_run_written(struct wterm *term);
/* Closes what is over, if it is over. */
void terms_run_release(struct wterm *term);
/* SIGTERM to the tree, if it lives. */
void terms_run_term(struct wterm *term);

/* terms_screen.c */
int term_screen_open(struct wterm *term);
void term_screen_close(struct wterm *term);
/* There is more in the log. */
void term_screen_grew(struct wterm *term);
/* Feeds up to `max` bytes; true: there is more. */
bool term_screen_feed(struct wterm *term, size_t max);
void term_screen_catch_up(struct wterm *term);
int term_screen_resize(struct wterm *term, unsigned int cols,
		       unsigned int rows);
/* When term_screen_tick() is due, monotonic; JOBS_NEVER. */
int64_t term_screen_deadline(const struct wterm *term);
void term_screen_tick(struct wterm *term);
void term_screen_save(struct wterm *term);
/* On every turn of the loop, while some are behind. */
void term_screen_on_idle(uv_idle_t *idle);

/* terms_events.c */
void term_events_note(struct wterm *term, enum terms_event event,
		      const struct vt_event *model);

/* terms_store.c */
void terms_store_mark(struct wterm *term);
/* When the next is due, monotonic: JOBS_NEVER. */
int64_t terms_store_deadline(const struct terms_host *host);
void terms_store_tick(struct terms_host *host);
/* All that is behind, now and here; after the loop. */
void terms_store_flush(struct terms_host *host);
/* Thread: any, with store_lock held: opens what is needed. */
int terms_store_open(struct terms_host *host, struct errmsg *why);

#endif
