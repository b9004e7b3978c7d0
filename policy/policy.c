/* SPDX-License-Identifier: MIT */

/*
 * The life of a policy: made by policy_resolve() or policy_decode(), shared by
 * reference, copied only to change the mode.  A copy shares the rules, so that
 * rule states held by an inode table stay valid and comparable across a live
 * change.
 */

#include <string.h>

#include "base/limits.h"
#include "policy/policy_priv.h"

static const char *const root_kind_names[] = {
	[POLICY_ROOT_WORKSPACE] = "workspace",
	[POLICY_ROOT_GIT] = "git",
	[POLICY_ROOT_RW] = "rw",
};

const char *
policy_root_kind_name(enum policy_root_kind kind)
{
	return root_kind_names[kind];
}

struct policy *
policy_ref(struct policy *policy)
{
	__atomic_add_fetch(&policy->refs, 1, __ATOMIC_RELAXED);
	return policy;
}

struct policy *
policy_unref(struct policy *policy)
{
	if (!policy ||
	    __atomic_sub_fetch(&policy->refs, 1, __ATOMIC_ACQ_REL) > 0)
		return NULL;
	for (size_t i = 0; i < policy->n_roots; i++)
		free(policy->roots[i].path);
	free(policy->roots);
	free(policy->mode_source);
	free(policy->session);
	free(policy->home_path);
	free(policy->tmp_dir);
	rules_free(policy->rules);
	strv_fini(&policy->hide_paths);
	strv_fini(&policy->sockets);
	strv_fini(&policy->name_sockets);
	strv_fini(&policy->devices);
	strv_fini(&policy->env_hide);
	free(policy);
	return NULL;
}

int
policy_add_root(struct policy *policy, enum policy_root_kind kind,
		const char *path)
{
	struct policy_root *roots;
	char *copy;

	if (policy->n_roots >= LIMIT_ROOTS)
		return -E2BIG;
	roots = realloc(policy->roots, (policy->n_roots + 1) * sizeof(*roots));
	if (!roots)
		return -ENOMEM;
	policy->roots = roots;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	roots[policy->n_roots].kind = kind;
	roots[policy->n_roots].path = copy;
	policy->n_roots++;
	return 0;
}

static int
copy_lists(const struct policy *from, struct policy *to)
{
	int r = 0;

	for (size_t i = 0; i < from->n_roots && r == 0; i++)
		r = policy_add_root(to, from->roots[i].kind,
				    from->roots[i].path);
	if (r == 0)
		r = strv_extend(&to->hide_paths, &from->hide_paths);
	if (r == 0)
		r = strv_extend(&to->sockets, &from->sockets);
	if (r == 0)
		r = strv_extend(&to->name_sockets, &from->name_sockets);
	if (r == 0)
		r = strv_extend(&to->devices, &from->devices);
	if (r == 0)
		r = strv_extend(&to->env_hide, &from->env_hide);
	return r;
}

int
policy_with_mode(const struct policy *policy, enum policy_mode mode,
		 struct policy **ret_policy)
{
	_cleanup_(policy_unrefp) struct policy *copy = calloc(1, sizeof(*copy));
	int r;

	if (!copy)
		return -ENOMEM;
	*copy = (struct policy){
		.refs = 1,
		.mode = mode,
		.rules = rules_ref(policy->rules),
		.git_guard = policy->git_guard,
		.tmp_writable = policy->tmp_writable,
		.nest = policy->nest,
		.require_full = policy->require_full,
		.require_limits = policy->require_limits,
		.net = policy->net,
		.home = policy->home,
		.limits = policy->limits,
		.landlock = policy->landlock,
	};
	copy->mode_source = strdup(policy->mode_source);
	copy->session = strdup(policy->session);
	if (policy->home_path)
		copy->home_path = strdup(policy->home_path);
	if (policy->tmp_dir)
		copy->tmp_dir = strdup(policy->tmp_dir);
	if (!copy->mode_source || !copy->session ||
	    (policy->home_path && !copy->home_path) ||
	    (policy->tmp_dir && !copy->tmp_dir))
		return -ENOMEM;
	r = copy_lists(policy, copy);
	if (r < 0)
		return r;
	*ret_policy = take_ptr(&copy);
	return 0;
}
