/* SPDX-License-Identifier: MIT */
#ifndef POLICY_IGNORE_H
#define POLICY_IGNORE_H

/*
 * What git ignores, along a walk from a top directory down: each directory
 * knows the patterns of its own .gitignore and of those above it, the deeper
 * ones last, since the last that matches wins.  They are the rules' own patterns
 * (rules.h), each below the directory that it was found in.
 *
 * Thread: any.
 */

#include <stdbool.h>

#include "base/strv.h"
#include "policy/rules.h"

struct ignore {
	struct strv patterns; /* all that hold here; empty: the parent's */
	struct rules *own;    /* made of them; NULL: the parent's */
	struct rules *rules;  /* borrowed, or `own`; NULL: none */
	const struct rule_state *state;
	const struct ignore *above; /* borrowed; whose patterns hold */
};

/*
 * For a directory: `parent` is the one above (NULL: this is the top), which
 * must live longer; `path` is relative to the top, "" for it.  Errors: -ENOMEM.
 */
int ignore_enter(const struct ignore *parent, int dirfd, const char *path,
		 struct ignore *ret_ignore);
/*
 * The lines of a file in the directory `path`, as patterns to be read at the
 * top; appended, at most LIMIT_RULES in all.  Errors: -ENOMEM.
 */
int ignore_parse(const char *path, const char *text, size_t len,
		 struct strv *ret_patterns);

void ignore_leave(struct ignore *ignore);

/* When in doubt it is not ignored. */
bool ignore_has(const struct ignore *ignore, const char *name, bool is_dir);

#endif
