/* SPDX-License-Identifier: MIT */
#ifndef CLI_WORLDS_H
#define CLI_WORLDS_H

/*
 * The worlds of this user: RUNTIME/worlds/ID, one directory each (see
 * warden/world_dir.c).  A directory whose lock can be had belongs to a warden
 * that is dead; whoever finds one brings its spool to the store and removes
 * it.
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errmsg.h"

struct world_info {
	char *id, *dir; /* dir: RUNTIME/worlds/ID */
	char *kind;	/* "run", "standing" or "mount" */
	char *digest;	/* of the policy it began with */
	char *workspace, *session, *mode;
	char *mountpoint; /* NULL: none */
	char *json;	  /* info.json as it is, without newline */
	pid_t pid;
	int64_t started_ns;
};

struct world_list {
	struct world_info *items; /* oldest first */
	size_t count;
};

/*
 * All living worlds; dead ones are cleaned up on the way.
 * Errors with a sentence; no runtime directory is an empty list.
 */
int worlds_list(struct world_list *ret_list, struct errmsg *why);
void world_list_fini(struct world_list *list);

/*
 * The world that `name` means: an id, the path of a mount point, or the path
 * of a workspace (then the oldest there of `session`, NULL: any).  NULL name:
 * the current directory's.  -ENOENT with a sentence.  Borrowed from `list`.
 */
int worlds_find(const struct world_list *list, const char *name,
		const char *session, const struct world_info **ret_world,
		struct errmsg *why);

/*
 * Cleans up after one dead warden: its records go to the store, its runtime
 * directory and spool go away.  -EBUSY: it lives.
 */
int worlds_reap(const char *id, struct errmsg *why);

/* The same for what a dead machine left, which has no runtime directory. */
void worlds_import_left(void);

/* A fresh id; room for WORLD_ID_LEN and a NUL. */
#define WORLD_ID_LEN 8
int worlds_new_id(char *ret_id);

/* Waits until the world in `dir` is gone; -ETIMEDOUT. */
int worlds_await_end(const char *dir, int timeout_ms);

#endif
