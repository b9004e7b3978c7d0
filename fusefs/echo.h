/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_ECHO_H
#define FUSEFS_ECHO_H

/*
 * The host's changes, for inotify and fanotify inside.
 *
 * Those tell of what the kernel was asked to do on this mount, not of what
 * happened on the disk below it.  So a process of our own in the world, the
 * "echo" (mount-helper/echo.h), asks for the same change again, and its
 * requests are answered here as if it were made: without the disk, the fence
 * or the records, and with what is on the disk by now.  The kernel then tells
 * whoever watches:
 *
 *   content      utimensat() of the time of change alone: IN_MODIFY; and after
 *                the last close open() and close(): IN_CLOSE_WRITE
 *   attributes   utimensat() of both times: IN_ATTRIB
 *   a new name   mknodat(), mkdirat(), symlinkat(): IN_CREATE.  LOOKUP of the
 *                name says before that there is none
 *   a name gone  unlinkat(), rmdir(): IN_DELETE.  LOOKUP before that finds what
 *                was known by the name (then IN_DELETE_SELF, too), or a ghost
 *   a rename     renameat2(): IN_MOVED_FROM and IN_MOVED_TO with one cookie
 *
 * It works only when somebody inside has asked for watches (fs_echo()), and only
 * for directories that the kernel knows: nobody can watch others.  Orders wait
 * in a queue of ECHO_QUEUE_MAX, in which equal ones are one; what does not find
 * room is not told.  One order at a time; an echo that does not answer is
 * killed, and the next order makes another.  Nobody waits for it.
 *
 * A request is the echo's when it has its pid and its pidfd says that it lives;
 * and it must be what was ordered.
 *
 * Thread: as each function says.
 */

#include "fusefs/fs_priv.h"

struct fs_echo;

/* One change that the watch has seen. */
struct fs_echo_change {
	struct fs_inode *dir;
	const char *name;
	unsigned int mask; /* bits that inotify and fanotify have alike */
	uint64_t object;   /* names what was moved, in both events; or 0 */
	bool replaced;	   /* something else was known by the name */
	bool may_be_ours;  /* an inmate may have done it, through us */
	pid_t pid;	   /* who has; 0: not told */
	const struct statx *now;      /* what is there; NULL: nothing */
	const struct fs_inode *inode; /* … if it is known */
};

int fs_echo_new(struct fs *fs);
/* No change comes any more, and no request.  NULL session is fine. */
void fs_echo_stop(struct fs *fs);
void fs_echo_free(struct fs *fs);

/* How many changes were too many to be told. */
uint64_t fs_echo_dropped(struct fs *fs);

/* The operations of a mount that may have an echo. */
void fs_echo_take_over(struct fs *fs, struct fuse_lowlevel_ops *ops);

/* Whether changes are told to the inside, too. */
static inline bool
fs_echo_is_on(const struct fs *fs)
{
	return atomic_load_explicit(&fs->echoing, memory_order_relaxed);
}

/* Thread: the watch's.  Never waits. */
void fs_echo_changed(struct fs *fs, const struct fs_echo_change *change);

#endif
