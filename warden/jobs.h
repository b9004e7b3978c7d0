/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_JOBS_H
#define WARDEN_JOBS_H

/*
 * The jobs of this warden's world, for whoever serves them to others: the
 * methods of the socket and the control tree.
 *
 * A job is on record before its command runs, writes into pipes that are
 * emptied into its output (jobs/output.h), and is published as ended when its
 * record says so.  The first use makes what is needed; a world that takes no
 * commands has no jobs (-ENOTSUP).
 *
 * Thread: loop, for all of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/errmsg.h"
#include "base/segments.h"
#include "base/strv.h"
#include "jobs/output.h"
#include "policy/store_jobs.h"

struct warden;

/* ---- looking ---- */

/* The ids in order, from the first above `after`; 0: no more. */
uint64_t jobs_next_id(const struct warden *warden, uint64_t after);

/*
 * The record as it is now; its texts are the job's until the next call of this
 * header.  `spec` is NULL: it is in the store.  -ENOENT.
 */
int jobs_get_row(const struct warden *warden, uint64_t id,
		 struct store_job *ret_row);

/* "running 1234 since …Z".  -ENOENT. */
int jobs_status_line(const struct warden *warden, uint64_t id, char *text,
		     size_t size);
/* The object of `job.show`, but for what was asked for.  -ENOENT. */
int jobs_state_json(const struct warden *warden, uint64_t id, struct buf *out);

/* What was asked for, as it is on record: a JSON object, fresh.  Any thread. */
int jobs_read_spec(const struct warden *warden, uint64_t id, char **ret_spec);

/* ---- output ---- */

/* Where to read, and into what. */
struct jobs_span {
	uint64_t offset;
	void *buf;
	size_t size;
};

/* Reads as output_read(), of the cursor's stream.  -ENOENT, -ERANGE. */
int jobs_read(struct warden *warden, uint64_t id, struct output_cursor *cursor,
	      const struct jobs_span *span, struct segments_view *ret_view);

/* The length of a stream now; *ret_final: it will not change.  -ENOENT. */
int jobs_output_end(struct warden *warden, uint64_t id,
		    enum output_stream stream, uint64_t *ret_end,
		    bool *ret_final);

/* ---- listening ---- */

enum jobs_event {
	JOBS_CHANGED, /* another state, on record, but not the last */
	JOBS_DONE,    /* settled and on record; once for each job */
	JOBS_GONE,    /* nothing of its tree is left */
	JOBS_GREW,    /* there is more output, or none will come */
	JOBS_REMOVED, /* it is forgotten */
};

struct jobs_listener;

/*
 * Calls `told` for every event of every job until jobs_unlisten().  It may call
 * anything of this header but jobs_unlisten().  -ENOMEM, -ENOTSUP.
 */
int jobs_listen(struct warden *warden,
		void (*told)(uint64_t id, enum jobs_event event, void *data),
		void *data, struct jobs_listener **ret_listener);
void jobs_unlisten(struct jobs_listener *listener);

/* ---- doing ---- */

enum jobs_stdin {
	JOBS_STDIN_NULL,
	JOBS_STDIN_PIPE,
	JOBS_STDIN_FD,
};

/* What is asked for; texts borrowed, `stdin_fd` taken. */
struct jobs_request {
	const struct strv *argv;
	const struct strv
		*env;	 /* before the policy's word; NULL: a small one */
	const char *cwd; /* NULL: the workspace */
	const char *name, *token; /* NULL: none */
	const char *profile;	  /* "agent", "plain"; NULL: plain */
	enum jobs_stdin stdin_kind;
	int stdin_fd;
	int umask; /* −1: the world's */
	bool merge, queue;
	uint64_t timeout_ms, after;
	unsigned int retry;
};

/* Closed set of refusals, beside negative errnos. */
#define JOB_NOT_FOUND	 "JOB_NOT_FOUND"
#define JOB_LIMIT	 "JOB_LIMIT"
#define JOB_NOT_RUNNING	 "JOB_NOT_RUNNING"
#define JOB_SPAWN_FAILED "JOB_SPAWN_FAILED"
#define JOB_BAD_OFFSET	 "JOB_BAD_OFFSET"
#define JOB_SURVIVORS	 "JOB_SURVIVORS"

/* What became of a start. */
struct jobs_started {
	uint64_t id;	  /* 0: refused, nothing is on record */
	bool known;	  /* by its token */
	const char *code; /* of a refusal; NULL: by the errno */
	int error;	  /* of a refusal, negative */
	struct errmsg why;
};

/*
 * Starts a job; `done` is called once, perhaps before this returns: with its
 * id as soon as it runs, waits for a place or has failed to start, or with why
 * it was refused.  -ENOMEM, -ENOTSUP: `done` is not called.
 */
int jobs_start(struct warden *warden, const struct jobs_request *request,
	       void (*done)(const struct jobs_started *result, void *data),
	       void *data);

/*
 * Ends it: `signal` to its tree, SIGKILL after the grace.  -ENOENT, -EALREADY:
 * nothing of it lives.
 */
int jobs_kill(struct warden *warden, uint64_t id, int signal,
	      uint64_t grace_ms);

/* Any signal, nothing else follows.  -ENOENT, -EALREADY. */
int jobs_signal(struct warden *warden, uint64_t id, int signal);

/* Nothing of its tree is left and its end is on record.  -ENOENT. */
int jobs_is_over(const struct warden *warden, uint64_t id, bool *ret_over);

/*
 * Into its stdin; *ret_taken may be less than `len` (0: it is full).  `close`:
 * nothing more will come, once all is taken.  -ENOENT, -EPIPE (it has none, or
 * has closed it), -EALREADY.
 */
int jobs_write(struct warden *warden, uint64_t id, const void *bytes,
	       size_t len, bool close, size_t *ret_taken);

/* How far a removal came. */
struct jobs_removed {
	size_t count;	 /* of the ids, in their order */
	uint64_t failed; /* the next one, where `error` is negative */
	int error;
};

/*
 * Forgets ended jobs, on the pool; `done` is called once, later.  Errors are
 * of all, nothing is removed then and `done` not called: -ENOENT; -EBUSY,
 * something of one lives; -ENOMEM.
 */
int jobs_remove(struct warden *warden, const uint64_t *ids, size_t n_ids,
		void (*done)(const struct jobs_removed *result, void *data),
		void *data);

/* The same of all that can go but the newest `keep`. */
int jobs_remove_ended(struct warden *warden, uint64_t keep,
		      void (*done)(const struct jobs_removed *result,
				   void *data),
		      void *data);

/* ---- for life.c ---- */

/* The world begins to end: settles everything that lives. */
void jobs_end(struct warden *warden);
/* It has ended: takes the last output; closes the handles. */
void jobs_finish(struct warden *warden);
/* After the loop has ended. */
void jobs_free_all(struct warden *warden);

#endif
