/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_TEMP_H
#define FUSEFS_TEMP_H

/*
 * The new content of a file before it has the file's name: in the same
 * directory, without a name where the file system can do that.
 *
 * Thread: any.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "base/cleanup.h"

#define TEMP_PREFIX ".pale-edit-"

struct temp {
	int dirfd; /* borrowed */
	int fd;
	bool named; /* it has the name below */
	char name[NAME_MAX + 1];
};
#define TEMP_NONE                                 \
	{                                         \
		.dirfd = -1, .fd = -1, .name = "" \
	}

/* Chooses the name; nothing is made. */
int temp_init(int dirfd, struct temp *ret_temp);
/* Makes it.  A umask is applied to `mode`, as to any new file. */
int temp_make(struct temp *temp, mode_t mode, const void *data, size_t len);
/* Mode, owner, extended attributes and ACLs of `old`; -EPERM: owner. */
int temp_dress(const struct temp *temp, int old, const struct stat *st);
/* Gives it its own name, unless it has it. */
int temp_name(struct temp *temp);
/* Gives it a new name where there is nothing: -EEXIST. */
int temp_link(struct temp *temp, const char *name);
/* It is closed, and has no name of its own any more. */
void temp_fini(struct temp *temp);

/*
 * One change at a time in one directory, whoever makes it: flock(2) on the
 * directory itself, which every user and every world that can read it shares.
 * -EBUSY: somebody has held it for seconds.  Held until `dirfd` is closed.
 */
int temp_lock(int dirfd);

#endif
