/* SPDX-License-Identifier: MIT */

/*
 * Names that matter to the git guard.  A name is first reduced to what a file
 * system might take it for: ASCII case folded, invisible characters dropped
 * (case-folding ext4 and HFS ignore them), the two letters outside ASCII that
 * fold into it replaced, trailing dots and spaces and a stream suffix cut (FAT,
 * NTFS).  On an ordinary file system such a look-alike is refused where the
 * real name would be, which hurts nobody.
 */

#include <string.h>

#include "fusefs/gitguard_priv.h"

/* Longer than the longest name of the table, with its NUL. */
#define REDUCED_MAX 17

static const struct {
	const char *name;
	enum gg_name class;
} names[] = {
	{ "head", GG_HEAD },
	{ "objects", GG_OBJECTS },
	{ "refs", GG_REFS },
	{ "config", GG_CONFIG },
	{ "config.worktree", GG_CONFIG },
	{ "commondir", GG_COMMONDIR },
	{ "gitdir", GG_GITDIR },
	{ "index", GG_INDEX },
	{ "hooks", GG_HOOKS },
	{ "branches", GG_HOOKS },
	{ "remotes", GG_HOOKS },
	{ "info", GG_INFO },
	{ "attributes", GG_ATTRIBUTES },
	{ ".git", GG_DOTGIT },
	{ "git~1", GG_DOTGIT },
	{ "git-rebase-todo", GG_TODO },
	{ "rebase-merge", GG_PICKS },
	{ "sequencer", GG_PICKS },
	{ "strategy", GG_STRATEGY },
	{ "opts", GG_STRATEGY },
};

/*
 * The sequence at `s` outside ASCII: its length in *ret_len, and the letter it
 * folds to, 0 for an ignored character, -1 for any other.
 */
static int
fold_wide(const unsigned char *s, size_t *ret_len)
{
	if (s[0] == 0xc5 && s[1] == 0xbf) { /* long s */
		*ret_len = 2;
		return 's';
	}
	if (s[0] == 0xc2 && s[1] == 0xad) { /* soft hyphen */
		*ret_len = 2;
		return 0;
	}
	*ret_len = 3;
	if (s[0] == 0xe2 && s[1] == 0x84 && s[2] == 0xaa) /* Kelvin */
		return 'k';
	if (s[0] == 0xef && s[1] == 0xbb && s[2] == 0xbf)
		return 0;
	if (s[0] == 0xef && s[1] == 0xb8 && s[2] >= 0x80 && s[2] <= 0x8f)
		return 0; /* variation selectors */
	if (s[0] == 0xe2 && s[1] == 0x80 &&
	    ((s[2] >= 0x8b && s[2] <= 0x8f) || (s[2] >= 0xaa && s[2] <= 0xae)))
		return 0;
	if (s[0] == 0xe2 && s[1] == 0x81 && s[2] >= 0xa0 && s[2] <= 0xaf)
		return 0;
	return -1;
}

/* Returns the length, or 0 when the name cannot be one of the table. */
static size_t
reduce(const char *name, char reduced[REDUCED_MAX])
{
	const unsigned char *s = (const unsigned char *)name;
	size_t len = 0, kept = 0, step;

	while (*s && *s != ':') {
		int c = *s;

		step = 1;
		if (c >= 0x80)
			c = fold_wide(s, &step);
		else if (c >= 'A' && c <= 'Z')
			c += 'a' - 'A';
		if (c < 0)
			return 0;
		s += step;
		if (c == 0)
			continue;
		if (len + 1 >= REDUCED_MAX) {
			/* Only what will be cut may still follow. */
			if (c != '.' && c != ' ')
				return 0;
			continue;
		}
		reduced[len++] = (char)c;
		if (c != '.' && c != ' ')
			kept = len;
	}
	reduced[kept] = '\0';
	return kept;
}

enum gg_name
gg_classify(const char *name)
{
	char reduced[REDUCED_MAX];

	if (reduce(name, reduced) < sizeof(".git") - 1)
		return GG_OTHER;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (names[i].name[0] == reduced[0] &&
		    strcmp(names[i].name, reduced) == 0)
			return names[i].class;
	}
	return GG_OTHER;
}

bool
gg_is_sample(const char *name)
{
	static const char suffix[] = ".sample";
	size_t len = strlen(name);

	return len > sizeof(suffix) - 1 &&
	       strcmp(name + len - (sizeof(suffix) - 1), suffix) == 0;
}

unsigned char
gitguard_below(unsigned char parent_below, const char *name)
{
	if (parent_below)
		return parent_below == UCHAR_MAX ? UCHAR_MAX : parent_below + 1;
	return gg_classify(name) == GG_HOOKS;
}

bool
gitguard_cares(enum policy_op op, const struct gitguard_at *at)
{
	if (op == POLICY_OP_SYMLINK || op == POLICY_OP_LINK ||
	    op == POLICY_OP_RENAME)
		return true;
	return at->below || gg_classify(at->name) != GG_OTHER;
}
