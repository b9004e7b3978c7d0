/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_SPOOL_DIR_H
#define WARDEN_SPOOL_DIR_H

/*
 * The directory of one job or terminal, STATE/worlds/WORLD/KIND/ID, and who
 * owns it: the warden holds flock(2) on STATE/worlds/WORLD/KIND, and with its
 * keeper, by one open file, that of each directory in it.  Whoever can have
 * both locks may settle what is in there, and nobody trusts a process id.
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"

/* KIND is "jobs" or "terminals", ID of a job is "j3"; fresh, NULL: no memory. */
char *spool_dir_path(const char *state, const char *world, const char *kind,
		     const char *id);

/* Locks a directory that has no owner.  -EBUSY: it has one; -ENOENT. */
int spool_dir_lock(int parent, const char *path, int *ret_fd);

/*
 * Locks the directory `path` and the one that it lies in.  -EBUSY; -ENOENT:
 * there is none, which is as good.
 */
int spool_dir_own(const char *path, int *ret_parent, int *ret_dir);

/* No warden of this world lives. */
bool spool_dir_is_orphan(const char *state, const char *world,
			 const char *kind);

/* How it ended whose warden died; texts are static. */
struct spool_fate {
	const char *state; /* "exited", "killed", or "lost" */
	int value;	   /* of the two first; else as it was */
	const char *reason;
};

/* As the keeper wrote it down in `dir`; -1: there are no files. */
void spool_dir_fate(int dir, struct spool_fate *fate);

/*
 * With all its files, and what it lay in, of a world that has nothing left and
 * no warden.  -EBUSY: it has an owner.
 */
int spool_dir_remove(const char *path);

/*
 * Makes STATE/worlds/WORLD/KIND and takes its lock: while it is held, what is
 * in there has an owner.  Both are the caller's.
 */
int spool_dir_make_root(const char *state, const char *world, const char *kind,
			int *ret_fd, char **ret_path, struct errmsg *why);

#endif
