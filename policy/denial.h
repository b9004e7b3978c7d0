/* SPDX-License-Identifier: MIT */
#ifndef POLICY_DENIAL_H
#define POLICY_DENIAL_H

/*
 * The record of one refusal, and the spool that makes it durable before the
 * inmate sees the errno.
 *
 * The spool is one preallocated, memory-mapped file per world: a record is in
 * the page cache when denial_record() returns, so it survives kill -9 of the
 * warden and a full disk.  A repeat of the same (pid, op, path, rule) within
 * one second adds one to the count *in the mapped record*: a storm costs one
 * row and no count is lost, whenever the warden dies.  The audit thread moves
 * finished and changed records on into SQLite (policy/store.h).
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/errmsg.h"
#include "policy/policy.h"

enum denial_source {
	DENIAL_FUSE,
	DENIAL_API,
	DENIAL_OBSERVED
};

enum denial_remedy {
	DENIAL_REMEDY_NONE,
	DENIAL_REMEDY_ESCALATE, /* remedy_text: the mode */
	DENIAL_REMEDY_ALLOW,	/* remedy_text: the glob */
	DENIAL_REMEDY_REREAD,	/* remedy_text: the path */
};

/*
 * Strings are borrowed by denial_record() for the call; those of a record
 * read back belong to it.  NULL: absent.
 */
struct denial {
	uint64_t id;  /* 0 until in the store */
	uint64_t seq; /* the spool's own key, per world */
	int64_t time_ns, last_ns;
	uint64_t count;
	const char *session, *world, *origin, *call;
	enum denial_source source;
	enum policy_code code;
	enum policy_mode mode;
	const char *rule;
	enum policy_op op;
	const char *path, *path2; /* bytes as the inmate spells them */
	int error;		  /* positive errno */
	pid_t pid, ppid, inner_pid;
	uid_t uid;
	gid_t gid;
	const char *comm, *exe;
	enum denial_remedy remedy;
	const char *remedy_text;
};

struct denials;

/*
 * Opens the spool `dir`/denials.spool of a new world and starts the audit
 * thread.  `db_path` is opened only when there is something to move.
 * `notify` (NULL allowed) is called on the audit thread after new rows are in
 * the store.  Errors with a sentence; -ENOSPC when it cannot be preallocated.
 */
struct denials_config {
	const char *dir;     /* the world's state directory; exists */
	const char *db_path; /* pale.db */
	const char *session, *world;
	const char *call; /* of records that say none; NULL: none */
	void (*notify)(void *data);
	/*
	 * Whose a process is (NULL allowed): sets what denial_record() shall
	 * say of it, both the caller's by free(3), or returns false.  On the
	 * thread that records.
	 */
	bool (*attribute)(void *data, pid_t pid, char **ret_origin,
			  char **ret_call);
	void *data;
};
int denials_open(const struct denials_config *config,
		 struct denials **ret_denials, struct errmsg *why);

/*
 * Puts one refusal on record; when this returns 0 it survives the process.
 * Fields session, world, id, seq, times and count are filled in here; ppid,
 * comm, exe and inner_pid are read from /proc when absent.
 * Errors: -ENOSPC (the spool is full and the store does not take: the caller
 * still refuses the request, and `store: degraded` is said).
 * Thread: any, many at once; never blocks on the audit thread or on disk.
 */
int denial_record(struct denials *denials, const struct denial *denial);

/* What a caller may name its call: text of LIMIT_CALL bytes, on one line. */
bool denial_call_is_valid(const char *call);

/* Waits until all that is recorded is in the store (or degraded). */
void denials_flush(struct denials *denials);

/* Totals of this world, exact, and the first few records (for reports). */
struct denials_summary {
	uint64_t count; /* sum of counts */
	uint64_t rows;
	bool degraded;
	struct denial first[5]; /* strings owned by `denials` */
	unsigned int n_first;
};
void denials_summarize(struct denials *denials,
		       struct denials_summary *ret_summary);

/*
 * Flushes, stops the thread and removes the spool file if all is in the store.
 */
struct denials *denials_close(struct denials *denials);

/*
 * Moves what a dead warden left in `dir`/denials.spool into the store; safe
 * when the warden is alive (-EBUSY) and against a torn or hostile file.
 */
int denials_import(const char *dir, const char *db_path, struct errmsg *why);

/* Appends the record as one JSON object (no newline). */
struct buf;
void denial_to_json(const struct denial *denial, struct buf *ret_json);
/*
 * Appends the counters as an object; `first` is the array of records that
 * belongs to them, NULL for none.
 */
void denials_counts_json(const struct denials_summary *summary,
			 const struct buf *first, struct buf *out);

#endif
