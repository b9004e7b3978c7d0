/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_CHILDREN_H
#define MOUNT_HELPER_CHILDREN_H

/*
 * The keeper's children and its connections to them.  Pids are 0 and
 * descriptors -1 where there is none (any more).
 */

#include <stdbool.h>
#include <sys/types.h>

#include "mount-helper/groups.h"
#include "mount-helper/helper.h"

struct children {
	pid_t warden, usher, init;
	int warden_sock; /* to the warden */
	int init_sock;	 /* to usher and init */
};

#define CHILDREN_NONE                               \
	{                                           \
		.warden_sock = -1, .init_sock = -1, \
	}

/*
 * The launcher forks the warden and then becomes the keeper by execve(2), so
 * that the warden is the keeper's child and needs no execve of its own.
 */
int children_adopt_warden(struct children *kids, struct helper *h,
			  struct errmsg *why);

/* Each with a sentence in `why`; what was started before stays started. */
int children_start_usher(struct children *kids, struct helper *h,
			 const struct groups *groups, struct errmsg *why);
/* An init without namespaces: unconfined, or with Landlock alone. */
int children_start_init(struct children *kids, struct helper *h,
			const struct groups *groups, struct errmsg *why);

/* The process has been waited for. */
void children_forget(struct children *kids, pid_t pid);
bool children_left(const struct children *kids);
void children_kill(const struct children *kids);

bool children_has_message(int sock);

#endif
