/* SPDX-License-Identifier: MIT */
#ifndef POLICY_STORE_PRIV_H
#define POLICY_STORE_PRIV_H

/* What the files of the store share. */

#include <sqlite3.h>

#include "policy/store.h"

/* Prepared once per connection, by need. */
enum store_statement {
	STORE_INSERT,
	STORE_RAISE,
	STORE_EVENT,
	STORE_EVENT_ONCE,
	STORE_SESSION,
	STORE_JOB_ADD,
	STORE_JOB_SPEC,
	STORE_JOB_UPDATE,
	STORE_JOB_SIZES,
	STORE_JOB_OTHERS,
	STORE_TERM_ADD,
	STORE_TERM_SPEC,
	STORE_TERM_UPDATE,
	STORE_TERM_SIZES,
	STORE_STATEMENTS
};

struct store {
	sqlite3 *db;
	sqlite3_stmt *statements[STORE_STATEMENTS];
};

/* SQLite's result as a negative errno; SQLITE_OK, ROW and DONE are 0. */
int store_errno(int rc);

/* Runs SQL that yields nothing. */
int store_exec(struct store *store, const char *sql);

/* The statement, ready to be bound; NULL and *ret_error on failure. */
sqlite3_stmt *store_prepared(struct store *store, enum store_statement which,
			     const char *sql, int *ret_error);

/*
 * Runs it, and makes it ready to be bound again.  `ret_id` (NULL allowed) is
 * what RETURNING id says, and stays as it is where that is nothing.
 */
int store_step(sqlite3_stmt *stmt, uint64_t *ret_id);

/* NULL stays NULL; borrowed until the statement has run. */
void store_bind_bytes(sqlite3_stmt *stmt, int index, const char *text);
/* NULL for 0: what is not known yet. */
void store_bind_time(sqlite3_stmt *stmt, int index, int64_t ns);
/* A column of bytes; SQLite puts a NUL behind texts, not behind blobs. */
const char *store_bytes(sqlite3_stmt *stmt, int column);

/* What was asked for, beside a record that changes often. */
int store_put_spec(struct store *store, enum store_statement which,
		   const char *sql, uint64_t id, const char *spec);

/* The record of this id; `table` is ours. */
int store_remove(struct store *store, const char *table, uint64_t id);

/* The SQL function pale_dir(path): the directory part of a path. */
int store_add_functions(struct store *store);

#endif
