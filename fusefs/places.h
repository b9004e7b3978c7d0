/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_PLACES_H
#define FUSEFS_PLACES_H

/*
 * Which inodes were last seen under a name of a directory: the way from an
 * event of the host's to what the kernel knows by that name.  Usually one; a
 * replaced file and its successor are both there until one is seen elsewhere.
 *
 * An inode's place must not change while it is in here: whoever moves it takes
 * it out before and puts it in after, under its shard's lock.  Locks: one of
 * PLACES_SHARDS, innermost.
 *
 * Thread: any.
 */

#include "fusefs/fs_priv.h"

int fs_places_init(struct fs *fs);
void fs_places_fini(struct fs *fs);
/* The memory of the table, without the inodes. */
size_t fs_places_bytes(struct fs *fs);

/* Both do nothing for an inode without a place. */
void fs_places_add(struct fs *fs, struct fs_inode *inode);
void fs_places_remove(struct fs *fs, struct fs_inode *inode);

/* References what is found, at most `max`; returns how many. */
size_t fs_places_find(struct fs *fs, const struct fs_inode *parent,
		      const char *name, struct fs_inode *ret_found[],
		      size_t max);

#endif
