/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_LANDLOCK_H
#define MOUNT_HELPER_LANDLOCK_H

/*
 * The fence where no namespace can be had: every way to make, change or remove
 * a file that Landlock knows is refused, but below what the plan grants.
 */

#include "base/errmsg.h"
#include "base/plan.h"

/* Below this a file can be truncated by its name. */
#define LANDLOCK_LEAST 3

/* The first that know ioctl(2) on devices, and signals. */
#define LANDLOCK_IOCTL 5
#define LANDLOCK_SCOPE 6

/*
 * Makes the rules, for landlock_enter() in each child.  *ret_abi is what the
 * kernel knows.  -ENOTSUP where that is too little.
 */
int landlock_prepare(const struct plan *plan, int *ret_ruleset, int *ret_abi,
		     struct errmsg *why);

/* Puts the calling process, which has no_new_privs, under the rules. */
int landlock_enter(int ruleset);

#endif
