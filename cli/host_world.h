/* SPDX-License-Identifier: MIT */
#ifndef CLI_HOST_WORLD_H
#define CLI_HOST_WORLD_H

/*
 * A world that the whole host sees: `pale mount`.
 *
 * It is the face of the standing world of its workspace, session and policy,
 * which is made when there is none.  Where that cannot be had (no namespaces,
 * or a mount point inside what is mounted, which a world's warden must not
 * see) it is a world of its own, in which no command runs:
 *
 *   pale mount ──fork──▶ keeper ──exec──▶ warden
 *        ◀── status pipe ──┘ │ ◀─ wire.h ─┘ │
 *                            └───▶ guard ◀──┘   a pipe that both hold
 *
 * The keeper mounts, hands the descriptor to the warden, and from then on
 * waits for one thing: the warden's end, however it comes.  Then it detaches
 * the mount, within milliseconds, so that a dead mount never lies over the
 * files.  When the keeper dies first, the warden does the same; when both are
 * killed at once, the guard does, whose only business is the end of its pipe.
 *
 * Thread: main.
 */

#include <stdbool.h>

#include "base/errmsg.h"
#include "policy/policy.h"

struct host_world {
	const struct policy_request *request;
	struct policy *policy;	/* the request's, resolved */
	const char *mountpoint; /* any spelling; must be a directory */
	bool foreground;	/* stay until it is unmounted */
	bool quiet;
};

/*
 * Mounts and returns when it serves; in the foreground, when it is over.
 * Errors with a sentence.
 */
int host_world_start(const struct host_world *world, struct errmsg *why);

#endif
