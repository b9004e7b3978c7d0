/* SPDX-License-Identifier: MIT */
#ifndef CLI_RECORDS_H
#define CLI_RECORDS_H

/*
 * The user's store, for commands.  Thread: main.
 */

#include <stdbool.h>

#include "base/errmsg.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "policy/store.h"

/* Exit statuses of commands that are about what is kept there. */
#define RECORD_EXIT_FAILED  1
#define RECORD_EXIT_USAGE   2
#define RECORD_EXIT_TIMEOUT 124

/* Tells an error and is the exit status. */
int record_fail(const struct errmsg *why);

/* Where it is, there or not; *ret_path is the caller's. */
int records_path(char **ret_path);

/* Looking makes nothing: where there is none, 0 and *ret_store stays. */
int records_open(const char *path, struct store **ret_store,
		 struct errmsg *why);

/* For who writes to it: what is missing is made. */
int records_make(struct store **ret_store, struct errmsg *why);

/* Where things are; zeroed is closed. */
struct record_places {
	char *state, *runtime;
	struct store *store; /* NULL: there is none yet */
};

/* Errors with a sentence. */
int record_places_open(struct record_places *places, struct errmsg *why);
void record_places_fini(struct record_places *places);

/*
 * The texts of a row that the store shows are gone with it: each that is not
 * NULL becomes a copy, which `owned` has too, for record_free_texts().
 */
int record_own_texts(const char **const *texts, char **owned, size_t count);
void record_free_texts(char **owned, size_t count);

/* To a world's warden.  -ECONNREFUSED, -ENOENT: there is none. */
int record_connect(const struct record_places *places, const char *world,
		   struct rpc_client **ret_client, struct errmsg *why);
bool record_is_nobody(int r);

/* What has a directory in the control tree, such as jobs/j3. */
struct record_path {
	const char *world, *workspace;
	const char *kind, *id;
};

/*
 * Prints where it is in the control tree, as the host sees it where the world
 * is mounted, else as its inmates do; `file`: this file of it, NULL: none.  Is
 * the exit status.
 */
int record_print_path(const struct cli_common *common,
		      const struct record_path *where, const char *file);

/*
 * A connection ends before its warden lets go of the files: whether to try once
 * more what was -EBUSY, after a pause.  `tries` begins as 0.
 */
bool record_again(int r, unsigned int *tries);

#endif
