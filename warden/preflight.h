/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_PREFLIGHT_H
#define WARDEN_PREFLIGHT_H

/*
 * What is known of a command before it is started, so that one that cannot run
 * leaves no record; and how it is called in lists.  Thread: any.
 */

#include "base/errmsg.h"
#include "base/strv.h"
#include "policy/policy.h"

struct preflight {
	const char *cwd;
	const struct strv *argv, *env;
	const char *home; /* a private one; NULL: none */
	const char *face; /* a mount of the world for the host; NULL: none */
};

/* -ENOENT, with a sentence: nothing but a clear no counts as one. */
int preflight_check(const struct preflight *flight, struct errmsg *why);

/* For who says nothing: where programs are, and whose home it is. */
int preflight_default_env(const struct policy *policy, struct strv *env);

/* The command in one short line, fresh; NULL: no memory. */
char *preflight_label(const struct strv *argv);

#endif
