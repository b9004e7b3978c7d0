/* SPDX-License-Identifier: MIT */
#ifndef POLICY_WORLD_PLAN_H
#define POLICY_WORLD_PLAN_H

/*
 * From a policy to the mounts of a world (base/plan.h), in the order in which
 * they must be made: what contains another place comes before it, covers over
 * pale's own places come after all that could uncover them, and what ends
 * read-only is remounted after its mount points have been made.
 *
 * Sources are host paths as they are before the first mount of the plan: the
 * helper must open them all first, since a target may lie over one.  A target
 * that does not exist lies in a tmpfs of the plan, and is made there.
 *
 * Thread: any.
 */

#include <sys/types.h>

#include "base/errmsg.h"
#include "base/plan.h"
#include "policy/policy.h"

/* Everything is borrowed; NULL or 0 is absent. */
struct world_plan_input {
	uid_t uid;
	gid_t gid;
	const char *world; /* id */
	const char *cwd;   /* absolute */
	const struct strv *argv, *env, *warden;
	const char *console; /* path of the caller's terminal */
	const char *fuse_options;
	/* pale's state, runtime and configuration directories, canonical. */
	const struct strv *own_dirs;
	/* Private home: the layers' place; without them it is a tmpfs. */
	const char *home_upper, *home_work;
	/* Host mount points, canonical: those below a private home are bound. */
	const struct strv *host_mounts;
	const char *resolv_conf; /* canonical path of /etc/resolv.conf */
	uint64_t tmp_size;	 /* bytes of each private area; 0: 2 GiB */
	bool observe;		 /* a seccomp listener is wanted */
	bool no_userns;		 /* root where user namespaces are refused */
	bool tree;		 /* a control tree is served: PALE_TREE */
	bool standing;		 /* commands come later, by request */
	const char *temp;	 /* removed at the end; with Landlock alone */
};

/*
 * On success *ret_plan is the caller's; release with plan_fini().
 * Errors with a sentence: -EINVAL (a workspace inside pale's own directories),
 * -E2BIG, -ENOMEM.
 */
int world_plan_build(const struct policy *policy,
		     const struct world_plan_input *in, struct plan *ret_plan,
		     struct errmsg *why);

/*
 * Appends what a command of world `world` (an id, or NULL) finds in its
 * environment: `env` without what the policy hides, and what tells of the
 * world.  `tree`: a control tree is served.  -ENOMEM, -E2BIG.
 */
int world_plan_env(const struct policy *policy, const char *world, bool tree,
		   const struct strv *env, struct strv *ret_env);

#endif
