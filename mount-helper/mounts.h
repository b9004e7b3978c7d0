/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_MOUNTS_H
#define MOUNT_HELPER_MOUNTS_H

/*
 * The mounts of a world, made by the usher in three strokes:
 *
 *   prepare  what stays writable or usable is cloned off the host's tree as
 *            detached mounts (a descriptor each), /dev/fuse is opened
 *   seal     everything the host has mounted becomes read-only and private,
 *            in one system call
 *   apply    the plan's entries in their order, the detached mounts attached
 *
 * A mount point that is not there is made; after the seal that can succeed
 * only inside a fresh tmpfs or a writable root.
 */

#include <stdbool.h>

#include "base/errmsg.h"
#include "base/plan.h"

/* Devices of a fresh /dev, and the caller's terminal. */
enum {
	DEV_NULL,
	DEV_ZERO,
	DEV_FULL,
	DEV_RANDOM,
	DEV_URANDOM,
	DEV_TTY,
	DEV_CONSOLE,
	DEV_COUNT
};

struct mounts {
	const struct plan *plan;
	bool userns;
	int *sources; /* per entry of the plan: its detached mount, or -1 */
	int *sealed;  /* per entry: the mount to make read-only at the end */
	int devices[DEV_COUNT];
	int fuse;	 /* /dev/fuse */
	bool home_tmpfs; /* an overlay was not to be had */
	int covers;	 /* the tmpfs that holds an empty file and directory */
};

int mounts_prepare(struct mounts *m, const struct plan *plan, bool userns,
		   struct errmsg *why);
int mounts_seal(struct errmsg *why);

/*
 * Applies the entries.  `world_sock` takes the /dev/fuse descriptor as soon as
 * the workspace is mounted, so that the warden serves while the rest is made.
 */
int mounts_apply(struct mounts *m, int world_sock, struct errmsg *why);

/* Closes what is left open. */
void mounts_fini(struct mounts *m);

/* dev.c */
int dev_prepare(struct mounts *m, struct errmsg *why);
int dev_apply(struct mounts *m, const struct plan_mount *entry, int *ret_seal,
	      struct errmsg *why);

/*
 * overlay.c: a detached overlay, or a tmpfs where there can be none.  Covers
 * the host's /dev meanwhile.
 */
int overlay_prepare(const struct plan_mount *entry, bool userns, int *ret_fd,
		    bool *ret_tmpfs, struct errmsg *why);

/* proc.c: by init, in its pid namespace. */
int proc_mount(bool root, bool userns, struct errmsg *why);

/*
 * Makes the mount point `path` if it is not there: a directory, or an empty
 * file with its parents.
 */
int mount_point_make(const char *path, bool is_dir, struct errmsg *why);

/* Attaches a detached mount. */
int mount_attach(int fd, const char *target, struct errmsg *why);

#endif
