/* SPDX-License-Identifier: MIT */
#ifndef CLI_STANDING_H
#define CLI_STANDING_H

/*
 * The standing world of a workspace: found, or made on first use.
 *
 * It belongs to (user, workspace, session).  A call whose options say nothing
 * about the fence joins the oldest that lives, whatever its mode; one whose
 * options do joins the world that began with that very policy, or makes it.
 * --world overrides both.
 *
 * Thread: main.
 */

#include <stdbool.h>

#include "cli/client.h"
#include "cli/worlds.h"
#include "policy/policy.h"

struct standing_request {
	const struct policy_request *request; /* as the caller typed it */
	struct policy *policy; /* the request's, resolved; NULL: not yet */
	const char *world;     /* --world: an id, a place; NULL: none */
	bool make;	       /* when there is none */
	bool for_mount;	       /* one that is made goes with its mount */
};

struct standing {
	struct rpc_client *client; /* NULL: of standing_open() */
	int sock;		   /* of standing_open(); owned */
	char world[WORLD_ID_LEN + 1];
	bool made; /* by this very call */
};

/*
 * Connects as the operator.  Two that come at once get the same world.
 * Errors with a sentence: -ENOENT (there is none and `make` is false, or no
 * such --world), -ENOTSUP (a policy without a fence has no world), what making
 * a world can say.
 */
int standing_connect(const struct standing_request *request,
		     struct standing *ret_standing, struct errmsg *why);
/* The same, but nothing has been said on the connection yet. */
int standing_open(const struct standing_request *request,
		  struct standing *ret_standing, struct errmsg *why);
void standing_fini(struct standing *standing);

#endif
