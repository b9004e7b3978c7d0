/* SPDX-License-Identifier: MIT */
#ifndef CLI_LAUNCH_PRIV_H
#define CLI_LAUNCH_PRIV_H

/* The places of the machine that a plan must know. */

#include "base/errmsg.h"
#include "base/strv.h"
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

#endif
