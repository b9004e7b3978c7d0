/* SPDX-License-Identifier: MIT */

/*
 * `pale why`: the fence's verdict for a path, asked from outside the mount.
 *
 * Mode and rules are functions of the path, and policy/ decides them.  What
 * only the disk knows is looked up with directory descriptors, as a request
 * would have it: whether a directory is empty or moves between rule states,
 * and whether git structure is at stake.  Nothing is changed or recorded.
 */

#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "fusefs/fence.h"
#include "fusefs/fs.h"
#include "fusefs/gitguard.h"
#include "policy/rules.h"

/* One path inside a FUSE root, as far as it is there. */
struct place {
	char parent[PATH_MAX]; /* of the name, relative to the root */
	const char *name;
	int dirfd; /* of the parent; -1 when it is not there */
	unsigned char below;
	bool is_dir, is_symlink;
	const struct rule_state *above, *state; /* of the parent, and below */
};

static void
place_fini(struct place *place)
{
	closep(&place->dirfd);
}

/* Walks the parents' names: what the rules and the guard know there. */
static int
walk(struct policy *policy, struct place *place)
{
	const struct rule_state *state = rules_root(policy->rules);
	struct rule_match match;
	char names[PATH_MAX];
	char *at = names, *name;
	int r;

	if (!state)
		return -ENOMEM;
	(void)snprintf(names, sizeof(names), "%s", place->parent);
	while ((name = strsep(&at, "/"))) {
		if (*name == '\0')
			continue;
		place->below = gitguard_below(place->below, name);
		r = rules_step(policy->rules, state, name, true, &match,
			       &state);
		if (r < 0)
			return r;
	}
	place->above = state;
	return rules_step(policy->rules, state, place->name, true, &match,
			  &place->state);
}

/* 1: found a place; 0: not inside a FUSE root, or a root itself. */
static int
find_place(struct policy *policy, const char *path, struct place *ret_place)
{
	const char *rest = NULL, *slash;
	struct stat st;
	int root, r;

	root = policy_root_of(policy, path, &rest);
	if (root < 0 || policy->roots[root].kind == POLICY_ROOT_RW ||
	    *rest == '\0')
		return 0;
	if (strlen(rest) >= sizeof(ret_place->parent))
		return -ENAMETOOLONG;

	slash = strrchr(rest, '/');
	ret_place->name = slash ? slash + 1 : rest;
	(void)snprintf(ret_place->parent, sizeof(ret_place->parent), "%.*s",
		       slash ? (int)(slash - rest) : 0, rest);
	r = walk(policy, ret_place);
	if (r < 0)
		return r;
	r = fd_open_beneath(policy->roots[root].path, 0, ret_place->parent);
	if (r < 0)
		return 1;
	ret_place->dirfd = r;
	if (fstatat(r, ret_place->name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		ret_place->is_dir = S_ISDIR(st.st_mode);
		ret_place->is_symlink = S_ISLNK(st.st_mode);
	}
	return 1;
}

static int
ask_git(const struct policy *policy, enum policy_op op,
	const struct place *from, const struct place *to,
	struct gitguard_check *check)
{
	const struct gitguard_at at = { .dirfd = from->dirfd,
					.name = from->name,
					.below = from->below };
	const struct gitguard_at at2 = { .dirfd = to->dirfd,
					 .name = to->name,
					 .below = to->below };

	if (!policy->git_guard || from->dirfd < 0)
		return 0;
	if (to->name && to->dirfd < 0)
		return 0;
	if (to->name && op == POLICY_OP_RENAME)
		return gitguard_rename(NULL, policy, &at, &at2, 0, check);
	if (to->name && op == POLICY_OP_LINK)
		return gitguard_link(NULL, policy, &at, &at2, check);
	if (!gitguard_cares(op, &at))
		return 0;
	return gitguard_check(NULL, policy, op, &at, check);
}

/* Names that are not there yet are what the operation would make of them. */
static bool
would_be_dir(enum policy_op op, const struct place *place)
{
	return op == POLICY_OP_MKDIR || op == POLICY_OP_RMDIR ||
	       place->is_dir ||
	       (place->is_symlink &&
		(op == POLICY_OP_RENAME || op == POLICY_OP_LINK));
}

/* Whether it would put a symlink where a rule goes on below the name. */
static int
leads_around(struct policy *policy, enum policy_op op, const struct place *from,
	     const struct place *to, bool *ret_around)
{
	const struct place *new = op == POLICY_OP_SYMLINK ? from : to;

	*ret_around = false;
	if (!new->name || (op != POLICY_OP_SYMLINK && !from->is_symlink))
		return 0;
	return rules_go_through(policy->rules, new->above, new->name,
				ret_around);
}

static int
ask_disk(struct policy *policy, enum policy_op op, const struct place *from,
	 const struct place *to, struct fence_answer *answer)
{
	_cleanup_(gitguard_end) struct gitguard_check check = { 0 };
	bool around;
	int r;

	if (op == POLICY_OP_RENAME && to->name && from->is_dir &&
	    from->state != to->state &&
	    !fence_dir_is_empty(from->dirfd, from->name)) {
		answer->verdict = (struct policy_verdict){
			.error = -EACCES,
			.code = POLICY_CODE_PROTECTED,
			.rule = "rules differ below the moved directory",
			.source = "fence"
		};
		return 0;
	}
	r = leads_around(policy, op, from, to, &around);
	if (r < 0)
		return r;
	if (around) {
		answer->verdict = policy_deny_symlink();
		return 0;
	}
	r = ask_git(policy, op, from, to, &check);
	answer->by_content = r == 0 && check.action != GITGUARD_PLAIN;
	if (r == 0)
		return 0;
	if (check.verdict.error == 0)
		return r;
	/* The guard's text lives in `check`. */
	(void)snprintf(answer->rule, sizeof(answer->rule), "%s",
		       check.verdict.rule ? check.verdict.rule : "git-dir");
	answer->verdict = check.verdict;
	answer->verdict.rule = answer->rule;
	return 0;
}

/*
 * Mode and rules.  The kernel looks up what is to be renamed or linked, and the
 * directories on the way to both names, before it asks for anything: what is
 * hidden of these is not there.
 */
static struct policy_verdict
decide_names(const struct policy *policy, enum policy_op op, const char *path,
	     const char *path2, const struct place *from)
{
	bool is_dir = would_be_dir(op, from);
	struct policy_verdict verdict, verdict2;

	if (!path2)
		return policy_decide_path(policy, op, path, is_dir);
	verdict = policy_decide_path(policy, POLICY_OP_READ, path, is_dir);
	if (verdict.error != 0)
		return verdict;
	verdict = policy_decide_path(policy, op, path, is_dir);
	verdict2 = policy_decide_path(policy, op, path2, is_dir);
	if (verdict.error == 0 || verdict2.error == -ENOENT)
		return verdict2;
	return verdict;
}

int
fence_why(struct policy *policy, enum policy_op op, const char *path,
	  const char *path2, struct fence_answer *ret_answer)
{
	_cleanup_(place_fini) struct place from = { .dirfd = -1 };
	_cleanup_(place_fini) struct place to = { .dirfd = -1 };
	int inside, inside2 = 0;

	inside = find_place(policy, path, &from);
	if (inside < 0)
		return inside;
	if (path2)
		inside2 = find_place(policy, path2, &to);
	if (inside2 < 0)
		return inside2;

	ret_answer->verdict = decide_names(policy, op, path, path2, &from);
	if (ret_answer->verdict.error != 0 || !inside || op == POLICY_OP_READ)
		return 0;
	return ask_disk(policy, op, &from, &to, ret_answer);
}
