/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_JOBS_PRIV_H
#define WARDEN_JOBS_PRIV_H

/*
 * What the files of the jobs share.
 *
 *	jobs_host.c   the set, its timer, its listeners
 *	jobs_run.c    the command of a job: pipes, output, events of spawn.h
 *	jobs_start.c  from a request to a job: preflight, record, place
 *	jobs_store.c  records, written by the pool, one batch at a time
 *	jobs_rpc.c    the methods; jobs_wait.c: those that are answered later
 *
 * A job's life here, beside its state (jobs/jobs.h): it is `held` from its
 * start until nothing of it can change any more: settled, its tree gone, its
 * output at its end.  Then its files are closed and only a small record stays.
 *
 * Thread: loop, but for `store`, which is the pool's under its lock.
 */

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

#include "jobs/jobs.h"
#include "policy/policy.h"
#include "warden/fault.h"
#include "warden/jobs.h"
#include "warden/jobs_row.h"
#include "warden/warden_priv.h"

#define JOBS_RUNNING	10
#define JOBS_PIPE_BYTES (1u << 20)

struct wjob;

/* One read end; lives until its handle has closed. */
struct drain {
	uv_poll_t poll;
	struct wjob *job; /* NULL: abandoned */
	enum output_stream stream;
	int fd;
};

/* What was asked for, until it is certain not to be started again. */
struct asked {
	struct strv argv, env;
	char *cwd;
	enum jobs_stdin stdin_kind;
	int stdin_fd, umask;
	bool merge;
	size_t bytes; /* of its texts; of host->asked_bytes from its start on */
};

struct wjob {
	struct job core;
	struct jobs_host *host;
	char *name, *token, *label;
	struct asked *asked;
	int dir; /* locked; −1: closed */
	struct output *output;
	struct drain *drains[2];
	int stdin_pipe;
	uint64_t spawn;
	bool spawned; /* spawn_forget() is due */
	bool held;
	bool told;  /* that it is settled, and on record */
	bool dirty; /* its record is behind */
	TAILQ_ENTRY(wjob) next_dirty;
	int64_t created_ns, started_ns, ended_ns; /* real */
	uint64_t sizes[2], stored;		  /* once closed */
	uint64_t recorded;			  /* `stored`, as on record */
	uint64_t user_us, sys_us, max_rss_kib;
	void (*started)(const struct jobs_started *result, void *data);
	void *started_data;
};

struct jobs_listener {
	LIST_ENTRY(jobs_listener) link;
	void (*told)(uint64_t id, enum jobs_event event, void *data);
	void *data;
};

struct jobs_host {
	struct warden *warden;
	struct jobs *core;
	char *workspace, *session;
	uint64_t kept, kept_bytes; /* 0: the defaults */
	uint64_t asked_bytes;	   /* of all that may still be started */
	uv_timer_t timer;
	LIST_HEAD(, jobs_listener) listeners;
	TAILQ_HEAD(, wjob) dirty;
	bool ending, closed;
	bool rpc_watches; /* jobs_wait.c listens */

	/* The store: one batch on its way. */
	uv_work_t work;
	struct batch *batch;
	int64_t prune_at, pruned_ns; /* monotonic; prune_at 0: not wanted */
	int64_t look_at, settled_ns; /* at the places of other worlds */

	pthread_mutex_t store_lock; /* store, root */
	struct store *store;
	int root; /* STATE/worlds/ID/jobs, locked; −1 */
	char *root_path;

	struct fault fault; /* PALE_FAIL_JOB */
};

/* jobs_host.c */
int jobs_host_get(struct warden *warden, struct jobs_host **ret_host);
struct wjob *jobs_host_find(const struct jobs_host *host, uint64_t id);
void jobs_host_tell(struct jobs_host *host, uint64_t id, enum jobs_event event);
/* After anything that may have changed a deadline. */
void jobs_host_rearm(struct jobs_host *host);
/* Forgets a settled job that is not held; tells the listeners. */
void jobs_host_remove(struct jobs_host *host, struct wjob *job);
/* Frees the memory; it is in no set any more. */
void wjob_free(struct wjob *job);
void asked_free(struct asked *asked);
/* It is not started again. */
void wjob_forget_asked(struct wjob *job);
/* Kills this process when PALE_FAIL_JOB names the point. */
void jobs_fault(struct jobs_host *host, const char *point);
/* Answers who started it, once. */
void wjob_tell_start(struct wjob *job);
void wjob_row(const struct wjob *job, struct store_job *ret_row);

/* jobs_run.c */
extern const struct jobs_ops jobs_run_ops;
/* Takes what is in the pipes, to their end or to EAGAIN. */
void jobs_run_drain(struct wjob *job);
/* Gives up the pipes, whatever they hold. */
void jobs_run_abandon(struct wjob *job);
/* Closes what is over, if it is over. */
void jobs_run_release(struct wjob *job);
int jobs_run_output(struct wjob *job, struct output **ret_output,
		    bool *ret_own);

/* jobs_store.c */
void jobs_store_mark(struct wjob *job);
/* When the next is due, monotonic: JOBS_NEVER. */
int64_t jobs_store_deadline(const struct jobs_host *host);
/* Removes what is too much, looks at what others have, when it is time. */
void jobs_store_tick(struct jobs_host *host);
/* All that is behind, now and here; after the loop. */
void jobs_store_flush(struct jobs_host *host);
/* Thread: any, with store_lock held: opens what is needed. */
int jobs_store_open(struct jobs_host *host, struct errmsg *why);

#endif
