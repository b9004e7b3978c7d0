/* SPDX-License-Identifier: MIT */

/*
 * Two interpretations of one policy are an escape.  Over generated policies
 * and paths, three must agree where a mutation is possible: the verdict, the
 * list of writable roots, and the mounts of the plan, read as the kernel will
 * lay them over each other.
 */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "policy/policy_priv.h"
#include "policy/world_plan.h"
#include "tests/unit/suite.h"

static unsigned int seed;

static unsigned int
pick(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

/* A few names only, so that places contain each other often. */
static void
random_path(char *path, size_t size)
{
	static const char *const tops[] = { "/tmp",    "/var/tmp", "/dev/shm",
					    "/run",    "/home/u",  "/srv",
					    "/home",   "/etc",	   "/tmpx",
					    "/usr/lib" };
	static const char *const names[] = { "a", "b", "ab", "u", "run" };
	size_t len;

	(void)snprintf(path, size, "%s", tops[pick(10)]);
	for (unsigned int n = pick(4); n > 0; n--) {
		len = strlen(path);
		(void)snprintf(path + len, size - len, "/%s", names[pick(5)]);
	}
}

static bool
is_taken(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_roots; i++)
		if (strcmp(policy->roots[i].path, path) == 0)
			return true;
	return false;
}

/* What policy_resolve() can yield: see the checks there. */
static void
random_roots(struct policy *policy)
{
	char path[128];

	do
		random_path(path, sizeof(path));
	while (strcmp(path, "/dev/shm") == 0);
	ck_assert_int_eq(policy_add_root(policy, POLICY_ROOT_WORKSPACE, path),
			 0);
	random_path(path, sizeof(path));
	if (!path_is_in(path, policy->roots[0].path, NULL) &&
	    !path_is_in(policy->roots[0].path, path, NULL) &&
	    strcmp(path, "/dev/shm") != 0)
		ck_assert_int_eq(policy_add_root(policy, POLICY_ROOT_GIT, path),
				 0);
	for (unsigned int n = pick(4); n > 0; n--) {
		random_path(path, sizeof(path));
		if (path_is_in(path, policy->roots[0].path, NULL) ||
		    is_taken(policy, path) || strcmp(path, "/dev/shm") == 0)
			continue;
		ck_assert_int_eq(policy_add_root(policy, POLICY_ROOT_RW, path),
				 0);
	}
}

static struct policy *
random_policy(void)
{
	struct policy *policy = calloc(1, sizeof(*policy));

	ck_assert_ptr_nonnull(policy);
	policy->refs = 1;
	policy->mode = pick(2) ? POLICY_WORKSPACE_WRITE : POLICY_READ_ONLY;
	policy->tmp_writable = policy->mode != POLICY_READ_ONLY || pick(2);
	policy->session = strdup("s");
	policy->mode_source = strdup("default");
	policy->home_path = strdup("/home/u");
	ck_assert_int_eq(rules_new(&policy->rules), 0);
	random_roots(policy);
	if (pick(2) && !path_is_in("/home/u", policy->roots[0].path, NULL))
		policy->home = POLICY_HOME_PRIVATE;
	return policy;
}

/*
 * Whether `path` lies on a writable mount: the last mount made over it is the
 * one seen, and a remount changes the one at its own target.
 */
static bool
plan_writes(const struct policy *policy, const struct plan *plan,
	    const char *path)
{
	const struct plan_mount *seen = NULL;
	bool writable = false;

	for (size_t i = 0; i < plan->n_mounts; i++) {
		const struct plan_mount *m = &plan->mounts[i];
		/* /dev brings its own /dev/shm. */
		bool shm = m->kind == PLAN_DEV &&
			   path_is_in(path, "/dev/shm", NULL);

		if (!path_is_in(path, m->target, NULL))
			continue;
		if (m->kind == PLAN_REMOUNT_RO) {
			if (seen && (strcmp(seen->target, m->target) == 0 ||
				     (seen->kind == PLAN_DEV &&
				      strcmp(m->target, "/dev/shm") == 0)))
				writable = false;
			continue;
		}
		seen = m;
		writable = m->kind == PLAN_TMPFS || m->kind == PLAN_OVERLAY ||
			   (m->kind == PLAN_BIND && !(m->flags & PLAN_F_RO)) ||
			   (m->kind == PLAN_FUSE &&
			    policy_root_writable(policy)) ||
			   shm;
	}
	return writable;
}

static bool
listed(const struct policy *policy, const char *path)
{
	const char *roots[LIMIT_ROOTS];
	size_t n = policy_writable_roots(policy, roots);

	for (size_t i = 0; i < n; i++)
		if (path_is_in(path, roots[i], NULL))
			return true;
	return false;
}

/* The verdict on making `path`, against the other two. */
static void
compare(const struct policy *policy, const struct plan *plan, const char *path)
{
	struct policy_verdict v =
		policy_decide_path(policy, POLICY_OP_CREATE, path, false);
	bool is_listed = listed(policy, path);

	ck_assert_msg((v.error == 0) == plan_writes(policy, plan, path),
		      "%s in %s: verdict %d", path, policy->roots[0].path,
		      v.error);
	/* Outside the roots only what is new in the world takes writes. */
	if (is_listed)
		ck_assert_int_eq(v.error, 0);
	else if (v.error == 0)
		ck_assert(policy_temp_area(path) ||
			  path_is_in(path, "/home/u", NULL));
	else
		ck_assert_int_eq(v.error, -EROFS);
}

START_TEST(verdict_roots_and_mounts_agree)
{
	seed = (unsigned int)_i + 1;
	for (int round = 0; round < 500; round++) {
		struct policy *policy = random_policy();
		struct world_plan_input in = { .world = "w" };
		struct plan plan;
		char path[128];

		if (pick(2)) {
			in.home_upper = "/up";
			in.home_work = "/work";
		}
		ck_assert_int_eq(world_plan_build(policy, &in, &plan, NULL), 0);
		for (int n = 0; n < 100; n++) {
			random_path(path, sizeof(path));
			compare(policy, &plan, path);
		}
		plan_fini(&plan);
		policy_unref(policy);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_set_timeout(tc, 60);
	tcase_add_loop_test(tc, verdict_roots_and_mounts_agree, 0, 8);
	return suite_run("policy: one interpretation", tc);
}
