/* SPDX-License-Identifier: MIT */
#ifndef POLICY_STORE_JOBS_H
#define POLICY_STORE_JOBS_H

/*
 * The records of jobs in pale.db.  A record is there before its command runs,
 * and once `ended` is set only its sizes change: the first to settle it is the
 * last.
 *
 * Errors and thread: as in policy/store.h.
 */

#include <stdbool.h>

#include "policy/store.h"

#define STORE_JOB_STOP_REQUESTED (1u << 0)
#define STORE_JOB_OUTPUT_OPEN	 (1u << 1)
#define STORE_JOB_BY_EXEC	 (1u << 2) /* failed: the program ... */
#define STORE_JOB_MAY_EXECUTE	 (1u << 3) /* ... is there */

/* Texts are borrowed. */
struct store_job {
	uint64_t id;
	const char *world, *workspace, *session;
	const char *token, *name; /* NULL: none */
	const char *label;	  /* the command in one short line */
	const char *spec;	  /* what was asked for, a JSON object */

	const char *state; /* a name of jobs/state.h */
	int64_t value;
	const char *reason;
	int64_t pid;
	int64_t attempt;
	unsigned int flags;
	int64_t created_ns, started_ns, ended_ns; /* real; 0: not yet */
	uint64_t out_bytes, err_bytes, stored_bytes;
	uint64_t user_us, sys_us, max_rss_kib;
};

/* Of this workspace and session, on record for other worlds. */
struct store_job_others {
	uint64_t live;	  /* have not ended */
	uint64_t started; /* of these */
};

struct store_job_added {
	uint64_t id;
	bool known; /* by its token: the id is that of then */
	struct store_job_others others; /* not of a known one */
};

/*
 * A new record; its id is never used again.  Where its token was used before
 * in this workspace and session, there is none.  -EAGAIN: more than `others`
 * jobs of the session live in other worlds.
 */
int store_job_add(struct store *store, const struct store_job *job,
		  uint64_t others, struct store_job_added *ret_added);

/* Of other worlds than that of `job`, which names workspace and session. */
int store_jobs_others(struct store *store, const struct store_job *job,
		      struct store_job_others *ret_others);

/*
 * Writes what became of `n` jobs, in one transaction: state … max_rss_kib but
 * `created`.  What has ended stays as it is, but for output_open and sizes.
 */
int store_jobs_update(struct store *store, const struct store_job *jobs,
		      size_t n);

/* Zero and NULL: no such restriction. */
struct store_jobs_query {
	uint64_t id;
	const char *world, *workspace, *session, *token;
	bool live;  /* that have not ended */
	bool open;  /* that have not ended, or whose output has not */
	bool ended; /* that have */
	bool newest_first;
	uint64_t limit;
	bool light; /* without `spec`, which is NULL then */
};

/* In order of ids, until `each` returns non-zero, which is then returned. */
int store_each_job(struct store *store, const struct store_jobs_query *query,
		   int (*each)(const struct store_job *job, void *data),
		   void *data);

int store_job_remove(struct store *store, uint64_t id);

/*
 * Calls `each` for the ended jobs that shall go: older than `oldest_ns`, not
 * among the newest `kept` of their workspace and session, or, oldest first,
 * until all together hold no more than `bytes`.
 */
int store_jobs_excess(struct store *store, int64_t oldest_ns, uint64_t kept,
		      uint64_t bytes,
		      int (*each)(const struct store_job *job, void *data),
		      void *data);

#endif
