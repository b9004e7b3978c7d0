/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_LIFE_H
#define WARDEN_LIFE_H

/*
 * The loop of a warden and its end: what its neighbours (keeper, mounter,
 * kernel, signals) tell it.  Thread: loop.
 */

#include <stdbool.h>

#include "base/errmsg.h"
#include "base/wire.h"

struct warden;

/* The loop itself; nothing is watched yet.  Errors with a sentence. */
int life_init(struct warden *warden, struct errmsg *why);

/* Watches the keeper, the mounter and SIGTERM; asks for the death signal. */
int life_watch(struct warden *warden);

/* Also waits for room in the keeper's socket, or no longer. */
int life_watch_keeper(struct warden *warden, bool writable);

/*
 * Runs the loop until every handle is closed, then stops what serves, brings
 * the record to the store, writes the last line and removes what others could
 * find.  `served`: false when the start failed.
 */
void life_finish(struct warden *warden, bool served);

/* A bare record. */
int life_send(int fd, enum wire_type type);
void life_send_failure(int fd, int r, const struct errmsg *why);

#endif
