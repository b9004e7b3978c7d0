/* SPDX-License-Identifier: MIT */
#ifndef POLICY_STORE_H
#define POLICY_STORE_H

/*
 * The durable records of one user: pale.db (SQLite, WAL), shared by all wardens
 * and commands.
 *
 * A row of `denials` is keyed by (world, seq, time), so that putting the same
 * record twice is putting it once, and by `id`, which is given inside an
 * immediate transaction: whoever sees id N has seen, or will never see, all
 * below it.  `events` only grows; triggers refuse anything else.
 *
 * Errors: -EBUSY (another writer for 5 s), -ENOSPC, -EBADMSG (not our database,
 * or damaged), -EPROTO (written by a later pale), -EIO, -EACCES, -ENOMEM.
 * Thread: one at a time per struct store.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/errmsg.h"
#include "policy/denial.h"

struct store;

/*
 * Opens the database, creating it (0600; its directory must exist) or bringing
 * its schema up to date.
 */
int store_open(const char *path, struct store **ret_store, struct errmsg *why);
struct store *store_close(struct store *store);
static inline void
store_closep(struct store **store)
{
	store_close(*store);
}

/*
 * Writes records in one transaction.  denial.id 0: a new row (or the row that
 * is already there), whose id is set in `denials`; otherwise count and last
 * time of that row are raised.  On failure nothing is written and no id set.
 */
int store_put_denials(struct store *store, struct denial *denials, size_t n);

/*
 * Appends one event, by chapter 60's names ("world.started", "mode.set" …).
 * `body` is a JSON object.  That of world.started has "workspace" (made with
 * base/json.h), by which denials are found by workspace.  `world` may be NULL.
 */
int store_event(struct store *store, const char *session, const char *world,
		const char *kind, const char *body);

/* The same, unless the world has an event of this kind. */
int store_event_once(struct store *store, const char *session,
		     const char *world, const char *kind, const char *body);

/*
 * "session.created", unless that is on record: a session is known by its
 * workspace and its name.
 */
int store_session(struct store *store, const char *session,
		  const char *workspace);

/* Makes several calls one transaction; `end` with a failure undoes them. */
int store_begin(struct store *store);
int store_end(struct store *store, int r);

/* Zero and NULL: no such restriction. */
struct store_query {
	uint64_t since; /* ids greater than this */
	uint64_t last;	/* only the newest N */
	const char *world, *session, *origin, *call;
	const char *workspace; /* its worlds, and paths inside it */
};

/*
 * Calls `each` for every matching row, oldest first, until it returns
 * non-zero, which is then returned.  Strings are valid for the call.
 */
int store_each_denial(struct store *store, const struct store_query *query,
		      int (*each)(const struct denial *denial, void *data),
		      void *data);

/* Matching events, oldest first, likewise; `origin` and `call` play no part. */
struct store_event_row {
	uint64_t id;
	int64_t time_ns;
	const char *session, *world, *kind; /* world: NULL for a session's */
	const char *body;		    /* a JSON object */
};
int store_each_event(struct store *store, const struct store_query *query,
		     int (*each)(const struct store_event_row *row, void *data),
		     void *data);

/* Matching rows grouped by rule, operation, directory and program. */
struct store_group {
	const char *rule, *op, *directory, *program;
	uint64_t count; /* sum of counts */
	uint64_t rows;
	uint64_t last_id;
};
int store_each_group(struct store *store, const struct store_query *query,
		     int (*each)(const struct store_group *group, void *data),
		     void *data);

/* A number that changes when another connection has written. */
int store_version(struct store *store, int64_t *ret_version);

/* Keeps 30 days and 10^6 rows; *ret_removed (NULL allowed) went. */
int store_prune(struct store *store, uint64_t *ret_removed);

#endif
