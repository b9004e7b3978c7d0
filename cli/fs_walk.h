/* SPDX-License-Identifier: MIT */
#ifndef CLI_FS_WALK_H
#define CLI_FS_WALK_H

/*
 * All regular files below a directory, each directory by the bytes of its names,
 * without what is hidden, what git ignores, and .git itself.  Symlinks are not
 * followed.
 *
 * Thread: main.
 */

#include "cli/fs.h"

struct fs_file {
	int dirfd;
	const char *name;
	const char *path; /* below the start */
	const struct stat *st;
};

struct fs_walk {
	struct fs_verb *verb;
	bool no_ignore;
	/* Non-zero ends the walk and is returned. */
	int (*file)(void *data, const struct fs_file *file);
	void *data;
	uint64_t unread; /* directories that could not be */
};

/* `path` is canonical; `dirfd` is open on it. */
int fs_walk(struct fs_walk *walk, const char *path, int dirfd);

/* The names in a directory, sorted by their bytes; takes `dirfd`. */
int fs_names(int dirfd, struct strv *ret_names);

#endif
