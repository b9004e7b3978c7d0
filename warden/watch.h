/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_WATCH_H
#define WARDEN_WATCH_H

/*
 * Whether the workspace is still where it was.  A host that renames it, or a
 * directory above it, that removes or unmounts it, ends the world: its name
 * means something else from then on.
 *
 * Thread: loop.
 */

#include <stdbool.h>
#include <uv.h>

#include "base/errmsg.h"

struct watch {
	char *path;
	int root;   /* O_PATH, the directory itself; −1: not open */
	int names;  /* inotify; −1: none to be had */
	int mounts; /* /proc/self/mountinfo, for its poll(2) */
	bool gaps;  /* something above cannot be watched: look now and then */
	uv_poll_t names_poll, mounts_poll;
	uv_timer_t timer;
	void (*gone)(void *data, const struct errmsg *why);
	void *data;
};

#define WATCH_NONE ((struct watch){ .root = -1, .names = -1, .mounts = -1 })

/*
 * Opens `path`, canonical, and begins to listen; what happens from here on is
 * seen by watch_check().  To be called before the service opens the same path:
 * a name that changes hands in between is then told as well.
 * Errors, with a sentence.
 */
int watch_open(struct watch *watch, const char *path, struct errmsg *why);

/* -ESTALE, with a sentence: it is not there any more. */
int watch_check(const struct watch *watch, struct errmsg *why);

/* Calls `gone` once, when that is so. */
int watch_start(struct watch *watch, uv_loop_t *loop,
		void (*gone)(void *data, const struct errmsg *why), void *data);

/* Closes the handles; watch_fini() after the loop has closed them. */
void watch_close(struct watch *watch);
void watch_fini(struct watch *watch);

#endif
