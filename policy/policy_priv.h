/* SPDX-License-Identifier: MIT */
#ifndef POLICY_POLICY_PRIV_H
#define POLICY_POLICY_PRIV_H

/*
 * What the files of this folder share: the pattern compiler, configuration as
 * layers of requests, and lexical path helpers.  Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "policy/policy.h"
#include "policy/rules.h"

/* ---- match.c: one path component against one glob ---- */

/* 0, or -EINVAL for an unclosed "[" or a backslash at the end. */
int glob_check(const char *glob);

/*
 * Whether `name` matches: * ? [a-z] [!a-z] [[:alpha:]] \x.  Bytes, not
 * characters, as git does; `fold` ignores ASCII case.  Time is bounded by the
 * product of the lengths.
 */
bool glob_match(const char *glob, const char *name, bool fold);

/*
 * One step through a glob: sets *ret_byte to the literal byte there (escapes
 * resolved) or to -1 for a wildcard, and returns the rest; NULL at the end.
 */
const char *glob_next(const char *glob, int *ret_byte);

/* It is the one name that it matches. */
bool glob_is_plain(const char *glob);

/* The components of a pattern, in one block with their texts. */
struct pattern_parts {
	const char **items;
	size_t count;
};

/* A pattern taken apart.  "**" is a component of its own. */
struct pattern {
	bool negated;
	bool anchored; /* written with a "/" in front */
	bool dir_only;
	bool floating; /* may begin at any depth */
	struct pattern_parts parts;
};

/* Says what pattern_parse() would, and takes no memory. */
int pattern_check(const char *text, struct errmsg *why);
int pattern_parse(const char *text, struct pattern *ret_pattern,
		  struct errmsg *why);
void pattern_fini(struct pattern *pattern);

/* The pattern that means just this path below the root, or NULL. */
char *pattern_quote(const char *rest);

/* ---- rules.c ---- */

/* A further owner; the states stay comparable between all of them. */
struct rules *rules_ref(struct rules *rules);

#define RULES_SOURCE_BUILTIN "built-in"
#define RULES_SOURCE_OOM     "memory"

/* ---- config.c and presets.c: layers of one request ---- */

enum config_kind {
	CONFIG_DEFAULT,
	CONFIG_PRESET,
	CONFIG_WORKSPACE,
	CONFIG_RC, /* .palerc: only protect and hide */
};

/* A section; the strings of `request` are owned. */
struct config_section {
	enum config_kind kind;
	char *name; /* preset name or workspace path, "" otherwise */
	struct policy_request request;
};

struct config {
	struct config_section *sections;
	size_t count;
};

enum config_syntax {
	CONFIG_SYNTAX_FILE,
	CONFIG_SYNTAX_RC,      /* a .palerc: no sections, may only tighten */
	CONFIG_SYNTAX_BUILTIN, /* our own presets */
};

/*
 * Parses configuration bytes; `name` is for messages ("file:line: …").
 * Errors with a sentence: -EINVAL, -E2BIG, -ENOMEM.
 */
int config_parse(const char *bytes, size_t len, const char *name,
		 enum config_syntax syntax, struct config *ret_config,
		 struct errmsg *why);
void config_fini(struct config *config);

/* The section of that kind and name, or NULL. */
const struct config_section *config_find(const struct config *config,
					 enum config_kind kind,
					 const char *name);

/*
 * The nearest of `names` (NULL-terminated) to what was written, or NULL when
 * none is near enough to be meant.
 */
const char *config_nearest(const char *text, const char *const *names);

/* The empty request: nothing asked for. */
struct policy_request policy_request_none(void);

/* The built-in presets as configuration text, and whether `name` is one. */
extern const char preset_builtin_text[];
bool preset_is_builtin(const char *name);

/* ---- gitroot.c ---- */

/*
 * The git directory that belongs to `workspace` but lies outside it (a linked
 * worktree's common directory, a submodule's), when both sides name each
 * other; *ret_path is NULL when there is none.  Errors: -ENOMEM.
 */
int gitroot_find(const char *workspace, char **ret_path);

/*
 * The repository that git finds from a directory up: where its work tree
 * begins, its git directory and the common one.  All are NULL when there is
 * none.  Errors: -ENOMEM.
 */
struct gitroot_near {
	char *top, *git_dir, *common;
};
int gitroot_near(const char *dir, struct gitroot_near *ret_near);
void gitroot_near_fini(struct gitroot_near *near);

/* ---- githost.c ---- */

/*
 * Adds a protect rule for each place in a served root that the host's git
 * configuration names.  Errors with a sentence: -E2BIG, -ENOMEM.
 */
int githost_protect(const struct policy *policy, struct rules *rules,
		    struct errmsg *why);

/* ---- decide.c ---- */

/*
 * The deepest root that the world of this mode mounts around `path`, or -1: in
 * read-only, --rw directories are like everything else.  Otherwise as
 * policy_root_of().
 */
int policy_mounted_root(const struct policy *policy, const char *path,
			const char **ret_rest);

/* The private area that `path` lies in ("/tmp" …), or NULL. */
const char *policy_temp_area(const char *path);

/* ---- policy.c ---- */

int policy_add_root(struct policy *policy, enum policy_root_kind kind,
		    const char *path);
bool policy_session_is_valid(const char *name);
const char *policy_root_kind_name(enum policy_root_kind kind);

#endif
