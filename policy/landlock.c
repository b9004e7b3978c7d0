/* SPDX-License-Identifier: MIT */

/*
 * The policy of a world that Landlock alone fences, where no namespaces can be
 * had.  Landlock grants rights on a file or on a directory with all below it,
 * and has no exception: what a rule takes away inside a granted directory
 * cannot be taken away.  So what asks for that is refused here, in words; what
 * is merely weaker is told in the report (`missing`), and nothing is open that
 * the mode closes.
 */

#include <string.h>

#include "policy/policy_priv.h"

static bool
has_rule(const struct policy *policy, enum rule_kind wanted)
{
	const char *pattern, *source;
	enum rule_kind kind;

	for (size_t i = 0;
	     rules_get(policy->rules, i, &kind, &pattern, &source); i++)
		if (kind == wanted)
			return true;
	return false;
}

static int
check(const struct policy *policy, struct errmsg *why)
{
	if (has_rule(policy, RULE_HIDE) || policy->hide_paths.count > 0)
		return errmsg_set(why, -ENOTSUP,
				  "Landlock alone cannot hide files");
	if (policy->sockets.count > 0)
		return errmsg_set(why, -ENOTSUP,
				  "Landlock alone cannot let one socket in and "
				  "keep the others out");
	if (policy_root_writable(policy) &&
	    (policy->git_guard || has_rule(policy, RULE_PROTECT)))
		return errmsg_set(why, -ENOTSUP,
				  "Landlock alone cannot keep protect rules "
				  "(git's hooks and configuration, .envrc and "
				  "the like) in a directory that may be "
				  "written: --protect none gives them up, "
				  "-m read-only needs none");
	return 0;
}

int
policy_with_landlock(const struct policy *policy, const char *tmp_dir,
		     const struct strv *given, struct policy **ret_policy,
		     struct errmsg *why)
{
	_cleanup_(policy_unrefp) struct policy *copy = NULL;
	int r;

	if (policy->mode == POLICY_DANGER_FULL_ACCESS)
		return errmsg_set(why, -EINVAL, "there is nothing to fence");
	r = check(policy, why);
	if (r < 0)
		return r;
	r = policy_with_mode(policy, policy->mode, &copy);
	if (r == 0) {
		copy->landlock = true;
		strv_fini(&copy->name_sockets);
	}
	if (r == 0 && tmp_dir) {
		copy->tmp_dir = strdup(tmp_dir);
		r = copy->tmp_dir ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = strv_extend(&copy->devices, given);
	if (r < 0)
		return errmsg_set(why, r, "out of memory");
	*ret_policy = take_ptr(&copy);
	return 0;
}
