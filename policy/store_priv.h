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

/* The SQL function pale_dir(path): the directory part of a path. */
int store_add_functions(struct store *store);

#endif
