/* SPDX-License-Identifier: MIT */
#ifndef POLICY_STORE_TERMS_H
#define POLICY_STORE_TERMS_H

/*
 * The records of terminals in pale.db.  A record is there before its program
 * runs, and once `ended` is set only its size and name change: the first to
 * settle it is the last.
 *
 * Errors and thread: as in policy/store.h.
 */

#include <stdbool.h>

#include "policy/store.h"

#define STORE_TERM_STOP_REQUESTED (1u << 0)
#define STORE_TERM_OUTPUT_OPEN	  (1u << 1)
#define STORE_TERM_BY_EXEC	  (1u << 2) /* failed: the program ... */
#define STORE_TERM_MAY_EXECUTE	  (1u << 3) /* ... is there */
#define STORE_TERM_PINNED	  (1u << 4)

/* Texts are borrowed. */
struct store_term {
	uint64_t id;
	const char *world, *workspace, *session;
	const char *name;  /* NULL: none */
	const char *label; /* the command in one short line */
	const char *spec;  /* what was asked for, a JSON object */

	const char *state; /* a name of jobs/state.h */
	int64_t value;
	const char *reason;
	const char *title; /* NULL: none was set */
	int64_t pid;
	unsigned int flags;
	unsigned int cols, rows;
	int64_t created_ns, started_ns, ended_ns; /* real; 0: not yet */
	uint64_t bytes, stored_bytes;
	uint64_t user_us, sys_us, max_rss_kib;
};

/* A new record; its id is never used again. */
int store_term_add(struct store *store, const struct store_term *term,
		   uint64_t *ret_id);

/*
 * Writes what became of `n` terminals, in one transaction.  What has ended
 * stays as it is, but for its name, output_open and sizes.
 */
int store_terms_update(struct store *store, const struct store_term *terms,
		       size_t n);

/* Zero and NULL: no such restriction. */
struct store_terms_query {
	uint64_t id;
	const char *world, *workspace, *session, *name;
	bool open; /* that have not ended, or whose output has not */
	bool newest_first;
	uint64_t limit;
};

/* In order of ids, until `each` returns non-zero, which is then returned. */
int store_each_term(struct store *store, const struct store_terms_query *query,
		    int (*each)(const struct store_term *term, void *data),
		    void *data);

int store_term_remove(struct store *store, uint64_t id);

/*
 * Calls `each` for the ended terminals that shall go: older than `oldest_ns`,
 * or not among the newest `kept` of their workspace and session.
 */
int store_terms_excess(struct store *store, int64_t oldest_ns, uint64_t kept,
		       int (*each)(const struct store_term *term, void *data),
		       void *data);

#endif
