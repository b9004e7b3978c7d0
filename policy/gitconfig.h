/* SPDX-License-Identifier: MIT */
#ifndef POLICY_GITCONFIG_H
#define POLICY_GITCONFIG_H

/*
 * The content guard of git's configuration files: may the bytes NEW replace
 * the bytes OLD, given that git outside the fence will read them?
 *
 * Both texts are parsed as git parses them.  An entry is *safe* when its key
 * is on a closed list (docs: "The content guard") and its value is harmless
 * for that key.  All entries that are not safe must be the same in both texts,
 * in the same order: so they can be neither added, changed, removed nor moved
 * before one another.  What cannot be parsed is refused.
 *
 * Pure functions on bytes.  Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>

/* What only the directory's place can judge. */
struct gitconfig_place {
	/* Whether the value of core.worktree is where git would look anyway. */
	bool (*worktree_ok)(void *data, const char *value);
	void *data;
	/*
	 * Whether extensions.objectFormat may differ: the names in an index
	 * that was judged lie elsewhere in it once objects have longer names.
	 */
	bool format_ok;
};

/*
 * Judges.  `old_bytes` NULL: there is no file yet.  `place` NULL: core.worktree
 * and extensions.objectFormat are not safe.  Returns 0, or -EACCES with the key at fault in ret_key (cut to
 * `size`; "syntax" when a text cannot be parsed), or -ENOMEM.
 */
struct gitconfig_text {
	const char *bytes;
	size_t len;
};
int gitconfig_judge(const struct gitconfig_text *old_text,
		    const struct gitconfig_text *new_text,
		    const struct gitconfig_place *place, char *ret_key,
		    size_t size);

/*
 * Calls `entry` for each entry in order: the key as git names it (section and
 * variable in lower case), value NULL for a key without "=".  A non-zero
 * return ends the walk and is returned.  Errors: -EINVAL (not parsable),
 * -ENOMEM.
 */
int gitconfig_walk(const struct gitconfig_text *text,
		   int (*entry)(void *data, const char *key, const char *value),
		   void *data);

/* Whether one entry is on the safe list; `place` as above. */
bool gitconfig_is_safe(const char *key, const char *value,
		       const struct gitconfig_place *place);

#endif
