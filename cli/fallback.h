/* SPDX-License-Identifier: MIT */
#ifndef CLI_FALLBACK_H
#define CLI_FALLBACK_H

/*
 * Where no world can be made: the second and last attempt, with Landlock alone
 * over the host's own files.
 *
 * Thread: main.
 */

#include "base/errmsg.h"
#include "policy/policy.h"

struct fallback {
	struct policy *policy; /* owned */
	char *temp;	       /* a directory of this run's own; "" : none */
};

/*
 * Whether `policy` may be fenced so, and how.  An error with a sentence: it
 * cannot, or the operator wants none of it.
 */
int fallback_prepare(const struct policy *policy, const char *console,
		     struct fallback *ret_fallback, struct errmsg *why);
void fallback_fini(struct fallback *fallback);

#endif
