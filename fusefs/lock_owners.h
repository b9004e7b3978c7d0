/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_LOCK_OWNERS_H
#define FUSEFS_LOCK_OWNERS_H

/*
 * Who inside holds which POSIX locks.
 *
 * Each (inode, owner) has an open file description of its own on the backing
 * file, and its locks are OFD locks there, so owners exclude each other and
 * the host's processes.  What it holds is noted besides, because the kernel
 * names no holder of an OFD lock: for F_GETLK and for finding deadlocks.
 *
 * A file that is a *border* (locks_target.border) is shared memory: what is
 * mapped inside is another memory than what is mapped outside.  So only one
 * side may use it at a time.  Before the first lock inside, byte BORDER_BYTE is
 * locked exclusively for all owners inside together; their own locks are taken
 * at another place of the file, where they meet only each other.
 *
 * Thread: fuse, many at once.
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

struct lock_owners;

/* One request: whose lock, on what. */
struct locks_target {
	uint64_t ino;	/* FUSE node */
	uint64_t owner; /* fi->lock_owner */
	uint64_t fh;	/* fi->fh, the handle's identity */
	int fd;		/* the handle's own descriptor, borrowed */
	bool border;	/* this lock is the border's */
	bool shared;	/* nothing that the kernel caches depends on it */
	bool through;	/* stores of mappings are in the file at once */
};

/*
 * SQLite's wal-index: bytes 120 to 127 are its locks; 128 says that somebody
 * uses it, and who cannot share that must not map the file.
 */
#define BORDER_FIRST 120
#define BORDER_BYTE  128

int lock_owners_new(struct lock_owners **ret_owners);
struct lock_owners *lock_owners_free(struct lock_owners *owners);
DEFINE_CLEANUP(lock_owners)

/* Takes or drops a lock without waiting; -EAGAIN: somebody else has it. */
int lock_owners_set(struct lock_owners *owners,
		    const struct locks_target *target, pid_t pid,
		    const struct flock *lock);

/*
 * Whether the other side may have changed the file before the lock that was
 * just set: always, but behind a border only once for each time it is taken.
 */
bool lock_owners_take_fresh(struct lock_owners *owners,
			    const struct locks_target *target);

/* Whether this gives up (a part of) a lock for writing. */
bool lock_owners_ends_write(struct lock_owners *owners,
			    const struct locks_target *target,
			    const struct flock *lock);

/* F_GETLK; the holder's pid is 0 if it is not inside. */
int lock_owners_test(struct lock_owners *owners,
		     const struct locks_target *target,
		     const struct flock *lock, struct flock *ret_lock);

/*
 * The owners inside whose locks keep `target` from `lock`: at most `max`;
 * returns how many.
 */
size_t lock_owners_blockers(struct lock_owners *owners,
			    const struct locks_target *target,
			    const struct flock *lock, uint64_t *ret_blockers,
			    size_t max);

/* Ends what the owner, or else the handle, holds on the inode. */
void lock_owners_drop(struct lock_owners *owners, uint64_t ino,
		      const uint64_t *owner, const uint64_t *fh);

#endif
