/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_LISTENER_H
#define MOUNT_HELPER_LISTENER_H

/*
 * The keeper's duplicate of the seccomp listener: no inmate waits for an
 * observer that does not come, for WIRE_PACE_MS at most.
 *
 * What the keeper takes in the warden's place goes on: the verdict on it is the
 * kernel's, and only its record is lost, which the warden reports.  connect(2)
 * never goes on: it is handed to the warden, to be performed when that is back;
 * when it has died, it is refused.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/wire.h"

struct listener {
	int fd;			/* −1: none */
	struct wire_pace *pace; /* NULL: the observer does not run (yet) */
	enum {
		LISTENER_IDLE,	 /* nothing waits: told of the next call */
		LISTENER_ACTIVE, /* calls come: looked at every WIRE_PACE_MS */
		LISTENER_BEHIND, /* the observer has stalled: we answer */
	} state;
	uint64_t received; /* pace->received when last looked at */
	int64_t since_ns;  /* it has been that for so long */
	int64_t next_ns;   /* when to look again, unless idle */
	uint64_t id;	   /* of the command whose filter it is; 0: init's */
};

#define LISTENER_NONE ((struct listener){ .fd = -1 })

/* Takes the warden's page: we stand in from here on. */
void listener_watch(struct listener *l, int page_fd);

/* The same for one that the same observer reads. */
void listener_join(struct listener *l, const struct listener *other);

/* What to poll(2), and for how many milliseconds at most; −1: for ever. */
struct pollfd listener_poll(const struct listener *l);
int listener_timeout(const struct listener *l);

/* After each poll(2); `revents` is of listener_poll(). */
void listener_look(struct listener *l, int revents, int warden_sock);

/* The warden has died: whatever waits is released, so that it can be killed. */
void listener_release(int fd);

#endif
