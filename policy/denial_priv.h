/* SPDX-License-Identifier: MIT */
#ifndef POLICY_DENIAL_PRIV_H
#define POLICY_DENIAL_PRIV_H

/*
 * The living record of one world: the spool, what is known of each record in
 * it, and the audit thread that moves them on.
 *
 * Records are numbered from 1 (`seq`), and those in [first, next) are in the
 * spool.  `runs` is a ring indexed by seq, as large as the spool can ever hold
 * records, so it is allocated once and a record needs no memory.  A run is
 *
 *   dirty    in the dirty list: its count is not what the store has
 *   taken    by the audit thread, which reads its record without the lock
 *   settled  stored == count, neither dirty nor taken: its room may be reused
 *
 * Runs of one key are found through `buckets`: each holds the newest seq, `older`
 * leads on.  Seqs only fall along a chain, so a chain ends where seq < first and
 * nothing is ever unlinked.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "policy/denial.h"
#include "policy/spool.h"
#include "policy/store.h"

#define DENIAL_BUCKETS 4096u /* a power of two */
#define DENIAL_FIRST   5u    /* of struct denials_summary */
#define DENIAL_KNOWN   8u    /* processes that stay open below /proc */

/* Hits further apart than this are two runs. */
#define DENIAL_RUN_NS 1000000000LL

struct denial_run {
	uint64_t offset; /* in the spool */
	uint64_t count;
	uint64_t stored; /* the count that the store has; 0: no row yet */
	uint64_t id;	 /* of the row; 0: none yet */
	int64_t last_mono_ns;
	uint64_t older; /* seq in the same bucket, 0: none */
	uint64_t dirty_next;
	bool dirty, taken;
};

/* A process that was refused something; its descriptors are for it alone. */
struct denial_known {
	pid_t pid; /* 0: nobody */
	pid_t ppid, inner_pid;
	int dir, comm; /* /proc/PID and its file */
	int parent;    /* that file of the parent */
};

struct denial_cache {
	pthread_mutex_t lock; /* innermost; for copies only */
	struct denial_known known[DENIAL_KNOWN];
	unsigned int next; /* the one to leave */
};

struct denials {
	struct denials_config config; /* strings are ours */
	struct spool *spool;
	uint64_t mask;	   /* of `runs` */
	uint64_t hash_key; /* random */
	struct denial_cache cache;

	pthread_mutex_t
		lock; /* innermost; held for no system call that blocks */
	/* All below: guarded by lock. */
	struct denial_run *runs;
	uint64_t buckets[DENIAL_BUCKETS];
	uint64_t first, next;
	uint64_t dirty_head, dirty_tail; /* seqs, oldest first; 0: empty */
	uint64_t n_dirty;
	uint64_t count; /* of all that was refused, lost ones included */
	uint64_t rows;
	struct denial firsts[DENIAL_FIRST]; /* strings are ours */
	unsigned int n_firsts;

	bool idle;	   /* the audit thread waits for a first dirty run */
	bool hurry;	   /* do not wait for more */
	uint64_t gathered; /* spool_end() at the last pass */
	bool stopping;
	bool degraded;
	uint64_t flush_wanted, flush_done;
	pthread_cond_t wake; /* CLOCK_MONOTONIC */
	pthread_cond_t flushed;

	pthread_t thread;
	bool has_thread;
	struct store *store; /* audit thread only */
};

int audit_start(struct denials *denials);
/* Makes the last pass, then ends the thread. */
void audit_stop(struct denials *denials);

/* Puts a run at the end of the dirty list; wakes the thread.  Lock held. */
void audit_mark_dirty(struct denials *denials, uint64_t seq);

static inline struct denial_run *
denial_run_of(struct denials *denials, uint64_t seq)
{
	return &denials->runs[seq & denials->mask];
}

/* "fuse" …; unknown numbers give "". */
const char *denial_source_name(enum denial_source source);
/* "escalate" …; NULL for none. */
const char *denial_remedy_name(enum denial_remedy remedy);

struct denial_origin {
	char comm[64];
	char exe[4096];
};

/*
 * Fills in what the caller left out, from /proc/PID; `room` holds the strings.
 * Never reads the inmate's memory.  Thread: any.
 */
void denial_look_up(struct denial_cache *cache, struct denial *denial,
		    struct denial_origin *room);

void denial_cache_init(struct denial_cache *cache);
void denial_cache_fini(struct denial_cache *cache);

#endif
