/* SPDX-License-Identifier: MIT */

/*
 * A directory that is not empty is moved up beside the others, under a number:
 * so no depth is ever descended, and two descriptors are enough.
 */

#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static int
is_name(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 &&
	       strcmp(entry->d_name, "..") != 0;
}

/* What it does not help with is told by what comes after. */
static void
open_up(int dirfd, const char *name)
{
	(void)!fchmodat(dirfd, name, 0700, AT_SYMLINK_NOFOLLOW);
}

/* Somebody else may be removing the same. */
static int
or_gone(int r)
{
	return r == -ENOENT ? 0 : r;
}

/* A number may be taken: by what is to be removed as well. */
static int
move_up(int fd, const char *child, int top, unsigned long *serial)
{
	char number[32];
	int r;

	/* To be moved, it must be open to us itself. */
	open_up(fd, child);
	do {
		(void)snprintf(number, sizeof(number), "%lu", (*serial)++);
		r = renameat(fd, child, top, number) < 0 ? -errno : 0;
	} while (r == -ENOTDIR || r == -ENOTEMPTY || r == -EEXIST);
	return or_gone(r);
}

static int
flatten(int top, const char *name, unsigned long *serial)
{
	_cleanup_(closep) int fd = -1;
	struct dirent **names;
	int n, r = 0;

	open_up(top, name);
	fd = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return or_gone(-errno);
	n = scandirat(fd, ".", &names, is_name, NULL);
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		const char *child = names[i]->d_name;

		if (r == 0 && unlinkat(fd, child, 0) < 0 &&
		    unlinkat(fd, child, AT_REMOVEDIR) < 0)
			r = move_up(fd, child, top, serial);
		free(names[i]);
	}
	free(names);
	if (r == 0 && unlinkat(top, name, AT_REMOVEDIR) < 0)
		r = or_gone(-errno);
	return r;
}

int
tree_empty(int dirfd)
{
	unsigned long serial = 0;
	int n = 0, r = 0;

	do {
		struct dirent **names;

		n = scandirat(dirfd, ".", &names, is_name, NULL);
		if (n < 0)
			return -errno;
		for (int i = 0; i < n; i++) {
			if (r == 0 && unlinkat(dirfd, names[i]->d_name, 0) < 0)
				r = flatten(dirfd, names[i]->d_name, &serial);
			free(names[i]);
		}
		free(names);
	} while (n > 0 && r == 0);
	return r;
}
