/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_PASSTHROUGH_H
#define FUSEFS_PASSTHROUGH_H

/*
 * Data without us: for an open file that passes through, the kernel reads,
 * writes and maps the backing file itself.
 *
 * What was opened so cannot be taken back, so it is for mounts whose mode is
 * fixed.  All opens of an inode at one time are of one kind, or the kernel
 * fails them with EIO: the first open decides, and the others share its
 * backing (fs_inode_add_handle()).
 *
 * Never passed through: names whose content the git guard may have to judge at
 * each write, and files with setuid or setgid bits, whose loss we would not
 * see.  Nor what is first opened with O_APPEND, which the kernel's own open of
 * the backing file keeps whatever fcntl(2) says later.
 *
 * Thread: fuse, unless a function says otherwise.
 */

#include "fusefs/fs_priv.h"

/* FUSE_INIT: the second word of flags. */
#define FS_INIT_PASSTHROUGH (1u << 5)
#define FS_INIT_EXT	    (1u << 30)
#define FS_STACK_DEPTH	    1
#define FS_OPEN_PASSTHROUGH (1u << 7)

enum fs_passing {
	FS_PASSING_OFF,	   /* not asked for */
	FS_PASSING_WANTED, /* the kernel has not answered yet */
	FS_PASSING_ON,
	FS_PASSING_LACKING, /* the kernel does not offer it */
	FS_PASSING_REFUSED, /* no privilege for it */
};

/* A file that the kernel knows by a number. */
struct fs_backing {
	atomic_uint refs;
	int id;
	struct fs_backing *next; /* in fs->unbacked */
};

struct fs_backing *fs_backing_ref(struct fs_backing *backing);
/* NULL allowed.  With the last one goes the number, soon.  Returns NULL. */
struct fs_backing *fs_backing_put(struct fs *fs, struct fs_backing *backing);

/* When the connection has ended, and the numbers with it. */
bool fs_backing_forget(struct fs_backing *backing);

/* Gives numbers back that nobody has; the manager of the serving threads. */
void fs_backing_drain(struct fs *fs, bool connected);

/*
 * What an open file of this inode, by this descriptor, passes through to, as a
 * reference; NULL: nothing.
 */
struct fs_backing *fs_backing_open(struct fs *fs, struct fs_inode *inode,
				   int fd, const struct statx *stx, int flags);

/*
 * What a process writes past us looks to the watch like a change of the host's.
 * The kernel that it went through knows, so it is not to be told.  Who opened
 * or wrote something is remembered for some seconds, too short for its number
 * to come back as another process.
 */
void fs_writer_note(struct fs *fs, pid_t pid);
bool fs_writer_is(struct fs *fs, pid_t pid);

/* The kernel's offer in FUSE_INIT; returns whether it is to be taken. */
bool fs_passthrough_offered(struct fs *fs, bool offered);

#endif
