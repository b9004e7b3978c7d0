/* SPDX-License-Identifier: MIT */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

/*
 * Protect and hide rules: gitignore patterns, decided one path component at a
 * time while a name is looked up, so that a rule holds for files that do not
 * exist yet and nothing is ever scanned.
 *
 * A `rule_state` is what the matcher knows at a directory: for each pattern
 * that could still match below, how far it has come, and whether the directory
 * itself lies under a protected or hidden name.  States are interned: equal
 * states are one pointer, so two places where the same rules hold compare
 * equal, which is how a directory rename is judged without a scan.  States
 * live as long as their rules.
 *
 * Rules come in lists, one per source.  Inside a list the last match wins
 * (`!` lifts); across lists deny wins.  Only the operator's --allow list lifts
 * a rule of another list.
 *
 * Thread: any.  rules_step() takes a short lock only to intern a new state.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/errmsg.h"

enum rule_kind {
	RULE_PROTECT,
	RULE_HIDE,
	RULE_ALLOW
};

struct rules;
struct rule_state;

/* One matched rule; text and source are owned by the rules. */
struct rule_hit {
	const char *text;   /* the pattern; NULL when nothing matched */
	const char *source; /* "built-in", "config", "command line", … */
};

struct rule_match {
	struct rule_hit protect; /* protects this name or one above it */
	struct rule_hit hide;	 /* hides it */
};

int rules_new(struct rules **ret_rules);
struct rules *rules_free(struct rules *rules);
DEFINE_CLEANUP(rules)

/*
 * Adds one pattern to the list of `source`.  Call before the first
 * rules_root().  Errors with a sentence: -EINVAL (pattern), -E2BIG, -ENOMEM.
 */
int rules_add(struct rules *rules, enum rule_kind kind, const char *pattern,
	      const char *source, struct errmsg *why);

/* Adds the built-in protect set (chapter 20). */
int rules_add_builtin(struct rules *rules);

bool rules_empty(const struct rules *rules);

/*
 * The state at the top of a FUSE root.  The first call builds what the steps
 * need, some 2,400 instructions a rule; without memory for it, every step
 * fails.
 */
const struct rule_state *rules_root(struct rules *rules);

/*
 * One step: what holds for `name` in directory `dir`, and (for a directory)
 * the state below it.  `ret_below` may be NULL for a non-directory.  On
 * -ENOMEM the caller must refuse: *ret_match then protects and hides.
 */
int rules_step(struct rules *rules, const struct rule_state *dir,
	       const char *name, bool is_dir, struct rule_match *ret_match,
	       const struct rule_state **ret_below);

/*
 * Whether a rule goes on below `name` that does not go on below any other name
 * of `dir`: then a symlink of that name would lead around it.
 */
int rules_go_through(struct rules *rules, const struct rule_state *dir,
		     const char *name, bool *ret_through);

/* Walks a relative path ("a/b/c", "" for the root) from the root. */
int rules_match_path(struct rules *rules, const char *path, bool is_dir,
		     struct rule_match *ret_match);

/*
 * For encoding: the i-th rule in order of addition; false past the end.
 */
bool rules_get(const struct rules *rules, size_t i, enum rule_kind *ret_kind,
	       const char **ret_pattern, const char **ret_source);

#endif
