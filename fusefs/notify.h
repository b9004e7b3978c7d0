/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_NOTIFY_H
#define FUSEFS_NOTIFY_H

/*
 * What the kernel is told to forget, soon and from another thread.  A serving
 * thread must not tell it itself: the kernel may hold the directory's lock for
 * a request that waits for a serving thread.
 *
 * Thread: any; start and stop from the loop.
 */

#include <time.h>

#include "fusefs/fs_priv.h"

/* A name: drop what it leads to. */
void fs_notify_entry(struct fs *fs, struct fs_inode *dir, const char *name);
/*
 * A name that should lead to this inode: ask anew before it is used, and keep
 * it if it does.  Before Linux 6.2 drop it, if that is no directory: somebody
 * may be in it, or have mounted something on it.
 */
void fs_notify_doubt(struct fs *fs, struct fs_inode *dir, const char *name,
		     const struct fs_inode *inode);
/*
 * A file's pages, and its attributes; where the kernel may be learning of it at
 * this moment, by the name that it was last seen by.
 */
void fs_notify_pages(struct fs *fs, struct fs_inode *inode);
void fs_notify_attr(struct fs *fs, struct fs_inode *inode);
/* The same, by this name. */
void fs_notify_child(struct fs *fs, struct fs_inode *dir, const char *name,
		     struct fs_inode *inode, bool pages);

/* How much is queued and not yet told. */
size_t fs_notify_pending(struct fs *fs);
/* Until all that is queued now is told; -ETIMEDOUT (monotonic clock). */
int fs_notify_wait(struct fs *fs, const struct timespec *deadline);

int fs_notify_start(struct fs *fs);
void fs_notify_stop(struct fs *fs);
fuse_ino_t fs_node_id(const struct fs *fs, const struct fs_inode *inode);

#endif
