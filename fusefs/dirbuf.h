/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_DIRBUF_H
#define FUSEFS_DIRBUF_H

/*
 * The read position of one open directory: entries as getdents64(2) gave
 * them, not yet handed on.
 *
 * Positions are the backing file system's own (d_off), so each name that is
 * there all the time is seen exactly once while others come and go, and
 * telldir/seekdir work as on the disk.  A reader that goes on where it stopped
 * finds the rest of the buffer; any other position seeks.
 *
 * Thread: fuse; the caller holds fs_dirbuf_lock() for a whole reply.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct fs_dirbuf;

struct fs_dirent {
	uint64_t ino;
	off_t next;	    /* the position after this entry */
	unsigned char type; /* DT_* */
	const char *name;   /* valid until the next fs_dirbuf_peek() */
};

int fs_dirbuf_new(struct fs_dirbuf **ret_dirbuf);
struct fs_dirbuf *fs_dirbuf_free(struct fs_dirbuf *dirbuf);

void fs_dirbuf_lock(struct fs_dirbuf *dirbuf);
void fs_dirbuf_unlock(struct fs_dirbuf *dirbuf);

/*
 * The entry at `position` (0, or some entry's `next`) of the directory `fd`.
 * Returns 1, 0 at the end, or a negative errno.
 */
int fs_dirbuf_peek(struct fs_dirbuf *dirbuf, int fd, off_t position,
		   struct fs_dirent *ret_entry);

#endif
