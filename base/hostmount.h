/* SPDX-License-Identifier: MIT */
#ifndef BASE_HOSTMOUNT_H
#define BASE_HOSTMOUNT_H

/*
 * FUSE mounts in the host's own tree: making one, finding it, taking it away.
 * Root asks the kernel; an ordinary user asks fusermount3, which is setuid.
 * (Its auto_unmount is no help: without allow_other it may not even look at
 * the dead mount that it should take away, and leaves it.)
 *
 * A mount is known by its device number, for as long as it is served, so that
 * what somebody has mounted over it since is never taken away in its place.
 *
 * Thread: any; not with SIGCHLD ignored.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/errmsg.h"

#define HOSTMOUNT_TYPE "fuse.pale"

struct hostmount_spec {
	const char *source;	/* what mount(8) shows as the device */
	const char *mountpoint; /* canonical */
	const char *options;	/* root: for the kernel, without fd= */
};

/*
 * Mounts; *ret_fuse_fd is the caller's, *ret_dev the mount's device number.
 * Errors, with a sentence: what mount(2) says; -EIO (fusermount3 refused).
 */
int hostmount_make(const struct hostmount_spec *spec, dev_t *ret_dev,
		   int *ret_fuse_fd, struct errmsg *why);

/*
 * The topmost mount on a canonical path: its device and its type (of `size`
 * bytes).  -ENOENT: nothing is mounted there.
 */
int hostmount_find(const char *mountpoint, dev_t *ret_dev, char *ret_type,
		   size_t size);

/* In place: /proc/self/mountinfo writes blanks and backslashes as \ooo. */
void hostmount_unescape(char *text);

/* -EBUSY: in use; `lazy` detaches it all the same. */
int hostmount_remove(const char *mountpoint, bool lazy, struct errmsg *why);

/* Detaches it if the topmost mount there is still `dev`. */
int hostmount_detach(const char *mountpoint, dev_t dev, struct errmsg *why);

/* Does nobody serve it any more? */
bool hostmount_is_dead(const char *mountpoint);

/*
 * The same for a mount that may be gone already: only if it is dead.  The
 * kernel gives the number of a mount that is gone to the next one, which may
 * be on the same place.
 */
int hostmount_bury(const char *mountpoint, dev_t dev, struct errmsg *why);

/*
 * The canonical form of a path whose last part may be a dead mount, which
 * realpath(3) cannot look at.  A fresh string, the caller's.
 */
int hostmount_canonical(const char *path, char **ret_path);

#endif
