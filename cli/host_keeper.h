/* SPDX-License-Identifier: MIT */
#ifndef CLI_HOST_KEEPER_H
#define CLI_HOST_KEEPER_H

/*
 * The process that holds a host-visible mount: see cli/host_world.h.
 * Thread: main, in a process of its own.
 */

#include <stdbool.h>

struct keeper_plan {
	const char *world;	/* id */
	const char *workspace;	/* canonical */
	const char *mountpoint; /* canonical */
	const char *world_dir;	/* of a standing world to attach to; or NULL */
	int policy_fd;		/* policy_encode(); not used when attaching */
	int status_fd;		/* "+" or a sentence goes here */
	bool own_mounts;	/* the mount point is inside the workspace */
	bool foreground;	/* goes with its parent */
};

/* The whole life; returns the exit status. */
int host_keeper_run(const struct keeper_plan *plan);

#endif
