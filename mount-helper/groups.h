/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_GROUPS_H
#define MOUNT_HELPER_GROUPS_H

/*
 * Limits of a world's memory, processes and processor time, by control groups:
 * version 2 where this user was given a part of the tree, the controllers of
 * version 1 for root.  The group is a parent of what the world sees (its
 * control group namespace begins there).  Where there is neither, the number
 * of processes is limited by RLIMIT_NPROC at least, and that is said.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/errmsg.h"
#include "base/plan.h"

#define GROUPS_MAX  4
#define GROUPS_PATH 512

/* usher and init count among the world's processes, but are not the user's. */
#define GROUPS_OWN_PIDS 2

enum groups_kind {
	GROUPS_NONE, /* no limit asked for, or none to be had */
	GROUPS_V2,
	GROUPS_V1,
	GROUPS_RLIMIT,
};

struct groups {
	enum groups_kind kind;
	unsigned int count;
	char paths[GROUPS_MAX][GROUPS_PATH]; /* directories that were made */
};

/*
 * Makes the groups that the plan's limits need.  -ENOTSUP with a sentence when
 * `required` and there is no control group for them.
 */
int groups_make(struct groups *groups, const struct plan *plan, bool required,
		struct errmsg *why);

/* Moves a process, whose children follow. */
int groups_enter(const struct groups *groups, pid_t pid, struct errmsg *why);

/* After the last process has gone. */
void groups_remove(struct groups *groups);

/* "cgroup2", "cgroup1", "rlimit" or "none". */
const char *groups_name(const struct groups *groups);

#endif
