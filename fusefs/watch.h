/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_WATCH_H
#define FUSEFS_WATCH_H

/*
 * The host's changes, and for how long the kernel may therefore answer by
 * itself.
 *
 * Each directory that the kernel is told anything of is watched, from before
 * the disk is looked at for that reply: by fanotify(7), which tells our own
 * changes from the host's, else by inotify(7).  What changed is looked up in
 * places.c, and the kernel is told to forget it (notify.c).
 *
 * A reply must not bring to the kernel, for long, what a change has made wrong
 * in the meantime.  There are three cases:
 *   - The change is seen here before the inode of the reply was in the table.
 *     So the counter of changes is read before the disk is, and again when the
 *     inode is in the table; when it has moved, all time-outs are 0.
 *   - It is seen after that, and the kernel is told to forget before it has
 *     taken in the reply.  A name's notification waits for the directory, which
 *     is locked for as long as the request takes; the reply to GETATTR has a
 *     version, which the notification outdates; and for a node that is not
 *     there yet fs_notify_child() waits by the name.
 *   - SETATTR has neither: it is answered with time-out 0.
 *
 * Not told of, and left to the time-outs: stores through mappings of the host
 * (until they are unmapped), access times, and writes through another link of
 * a file that the host gave it later, in a directory that is not watched.
 *
 * Thread: any; start and stop from the loop.
 */

#include "fusefs/fs_priv.h"

int fs_watch_start(struct fs *fs);
void fs_watch_stop(struct fs *fs);

static inline bool
fs_watch_is_settled(const struct fs_inode *dir)
{
	return dir->flags & (FS_INODE_WATCHED | FS_INODE_UNWATCHED);
}

/* Watches a directory, whose descriptor may be O_PATH, unless it cannot be. */
void fs_watch_add(struct fs *fs, struct fs_inode *dir, int fd);
/* The inode is about to be freed; its parent is still there. */
void fs_watch_forget(struct fs *fs, struct fs_inode *inode);

/*
 * A name of the inode is gone, and it may go on by another one that nobody
 * tells of.  Until it is seen again, the kernel asks every time.
 */
void fs_watch_adrift(struct fs *fs, struct fs_inode *inode);

/*
 * Who may search the directory has changed.  For one user alone it is the disk
 * that judges that, and only when it is asked: where we may not any more, the
 * kernel is to ask for what it has in it by name.
 */
void fs_watch_searched(struct fs *fs, struct fs_inode *dir);

/* Something was lost: all that the kernel has may be wrong. */
void fs_watch_lost(struct fs *fs);

void fs_watch_stats(struct fs *fs, struct fs_stats *stats);

/* ---- time-outs ---- */

/*
 * `begun`: fs->changes before the disk was looked at for this reply, usually
 * fs_call.begun.
 */

/* The host has changed them: those of the next replies are new to the kernel. */
void fs_watch_settling(struct fs_inode *inode);
/* For an inode's attributes, which are `stx`. */
double fs_watch_attr_timeout(struct fs *fs, struct fs_inode *inode,
			     const struct statx *stx, unsigned int begun);
/* For a name in `dir`; `stx` NULL: that there is none. */
double fs_watch_entry_timeout(const struct fs *fs, const struct fs_inode *dir,
			      const struct statx *stx, unsigned int begun);

#endif
