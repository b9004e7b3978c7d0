/* SPDX-License-Identifier: MIT */
#ifndef CLI_LAUNCH_PRIV_H
#define CLI_LAUNCH_PRIV_H

/* The two halves of a launch: what a plan must know, and the processes. */

#include <stdbool.h>

#include "base/errmsg.h"
#include "base/strv.h"
#include "cli/launch.h"
#include "policy/policy.h"

struct launch_places {
	struct strv own_dirs;	      /* pale's, canonical */
	struct strv host_mounts;      /* only when a private home needs them */
	char *resolv_conf;	      /* canonical; NULL: none */
	char *home_upper, *home_work; /* NULL: the home is read-only */
};

/* Makes what must be there. */
int launch_places_find(const struct policy *policy,
		       struct launch_places *places, struct errmsg *why);
void launch_places_fini(struct launch_places *places);

/*
 * Starts the processes:
 *
 *	CLI ──vfork──▶ child ──fork──▶ warden (this program, no execve)
 *	                 └──execve──▶ keeper (pale-mount-helper)
 *
 * The warden, the slowest to come up, has everything linked already and starts
 * while the helper is still being executed; and it is the keeper's child.
 * Descriptors are owned; texts are borrowed.
 */
struct launch_child {
	const char *helper, *world_id, *call;
	bool has_warden, require_limits, require_full;
	bool standing, for_mount, passthrough;
	uint64_t idle_ms;
	const struct policy *policy;	  /* the warden's, by fork */
	int plan;			  /* a memory file */
	int control;			  /* the keeper's end */
	int keeper_warden, warden_keeper; /* keeper <-> warden */
	int usher_warden, warden_usher;	  /* usher <-> warden */
	int client;			  /* the warden's last line */
};

#define LAUNCH_CHILD_NONE                                                    \
	{                                                                    \
		.plan = -1, .control = -1, .keeper_warden = -1,              \
		.warden_keeper = -1, .usher_warden = -1, .warden_usher = -1, \
		.client = -1,                                                \
	}

/* A connected pair, SOCK_SEQPACKET and close-on-exec. */
int launch_pair(int *ret_a, int *ret_b, struct errmsg *why);

/* Makes the connections and starts; fills in control and summary. */
int launch_child_start(struct launch_child *child, struct launch *launch,
		       struct errmsg *why);
void launch_child_fini(struct launch_child *child);

#endif
