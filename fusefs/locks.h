/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_LOCKS_H
#define FUSEFS_LOCKS_H

/*
 * File locks, forwarded to the backing file, so that inside and outside
 * exclude each other.
 *
 * POSIX locks belong to an owner (a process's table of descriptors; an open
 * file for F_OFD_*), which FUSE names by a number.  Each (inode, owner) has an
 * open file description of its own on the backing file, and the lock is an OFD
 * lock there: two owners exclude each other like two processes.  flock(2)
 * belongs to the open file: it is taken on the handle's own descriptor.
 *
 * A lock that must be waited for is tried again by one waiter thread: at once
 * when something inside is unlocked, else with a growing pause (1 to 16 ms),
 * since nobody tells when a host process unlocks.  So no serving thread ever
 * blocks, an interrupt is answered at once, and an inmate cannot make threads.
 * Who closes a circle of owners that wait for each other gets EDEADLK.  A
 * circle that leads through a process of the host is not seen, and one of
 * F_OFD_SETLKW is refused too: FUSE does not tell the two kinds apart.
 *
 * A grant is a coherence point: the inode's cached pages and attributes are
 * invalidated before the reply; and so is the end of a lock for writing, where
 * it brings what was stored through a mapping to the disk before the lock is
 * gone (at close the kernel does that itself).  That is done by the waiter thread alone: the
 * kernel may have to write dirty pages back or wait for a page being read, both
 * need a serving thread, and if all of them were invalidating none would be
 * left.
 *
 * The FLUSH handler must exist (and never answer ENOSYS): it is how POSIX locks
 * end when a process closes the file or is killed.
 *
 * Thread: fuse for all functions, many at once; locks_new/free from the loop.
 */

#ifndef FUSE_USE_VERSION
#define FUSE_USE_VERSION 312
#endif
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "fusefs/lock_owners.h"

struct locks;

struct locks_config {
	/*
	 * Drops what the kernel caches of the inode, and, with `border`, of
	 * what belongs to it; on the waiter thread.
	 */
	void (*invalidate)(void *data, uint64_t ino, bool border);
	void *data;
};

int locks_new(const struct locks_config *config, struct locks **ret_locks);

/* Ends every waiting request with ENOTCONN, joins the thread, drops all locks. */
struct locks *locks_free(struct locks *locks);
DEFINE_CLEANUP(locks)

/* Each of the three replies to `req`, exactly once, now or later. */
void locks_getlk(struct locks *locks, fuse_req_t req,
		 const struct locks_target *target, const struct flock *lock);
void locks_setlk(struct locks *locks, fuse_req_t req,
		 const struct locks_target *target, const struct flock *lock,
		 int sleep);
void locks_flock(struct locks *locks, fuse_req_t req,
		 const struct locks_target *target, int op);

/* In FLUSH, before the reply: the owner closed one descriptor of the inode. */
void locks_flush(struct locks *locks, uint64_t ino, uint64_t owner);

/* In RELEASE, after the handle's descriptor is closed: the open file is gone. */
void locks_release(struct locks *locks, uint64_t ino, uint64_t fh);

#endif
