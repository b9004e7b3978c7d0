/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_TARGET_H
#define FUSEFS_TARGET_H

/*
 * A file that a verb names, by the directory that it is in.  The path is
 * canonical (no symlink in it), which holds when it is opened: a symlink that
 * has come into it meanwhile is an error, so nothing outside a root is reached
 * under a name inside.
 *
 * Thread: any.
 */

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "fusefs/fsfail.h"

struct target {
	struct policy *policy; /* borrowed */
	const char *path;      /* borrowed */
	char parent[PATH_MAX]; /* of it */
	const char *name;      /* in it; "." for a root */
	int dirfd;	       /* the parent, O_PATH; -1 when it is not there */
};
#define TARGET_NONE                     \
	{                               \
		.name = "", .dirfd = -1 \
	}

/*
 * Opens the parent; where that is not there, dirfd is -1 and *ret_missing is
 * true.  Release with target_fini().
 */
int target_open(struct policy *policy, const char *path,
		struct target *ret_target, bool *ret_missing,
		struct fsfail *fail);
void target_fini(struct target *target);

/* Makes what is missing of the parent, each step judged, and opens it. */
int target_make_parents(struct target *target, struct fsfail *fail);

/*
 * Opens the file for reading, only if it is a regular one; a FIFO or a device
 * is never opened.  -ENOENT without a sentence: it is not there.
 */
int target_open_file(const struct target *target, int *ret_fd,
		     struct stat *ret_st, struct fsfail *fail);

#endif
