/* SPDX-License-Identifier: MIT */

/*
 * A policy for Landlock alone: what it refuses, what it grants, and that the
 * verdicts by which the observer answers are the grants of the plan.
 */

#include <check.h>
#include <errno.h>
#include <string.h>

#include "base/plan.h"
#include "policy/policy_priv.h"
#include "policy/world_plan.h"
#include "tests/unit/suite.h"

static struct policy *policy, *alone;
static struct plan plan;
static struct strv given, env, own;
static struct errmsg why;

static void
setup(void)
{
	policy = calloc(1, sizeof(*policy));
	ck_assert_ptr_nonnull(policy);
	policy->refs = 1;
	policy->mode = POLICY_WORKSPACE_WRITE;
	policy->tmp_writable = true;
	policy->session = strdup("default");
	policy->mode_source = strdup("default");
	policy->home_path = strdup("/home/u");
	ck_assert_int_eq(rules_new(&policy->rules), 0);
	ck_assert_int_eq(policy_add_root(policy, POLICY_ROOT_WORKSPACE, "/ws"),
			 0);
	ck_assert_int_eq(policy_add_root(policy, POLICY_ROOT_RW, "/srv/rw"), 0);
	ck_assert_int_eq(strv_add(&given, "/dev/pts/7"), 0);
	alone = NULL;
}

static void
teardown(void)
{
	policy = policy_unref(policy);
	alone = policy_unref(alone);
	plan_fini(&plan);
	strv_fini(&given);
	strv_fini(&env);
	strv_fini(&own);
}

static int
make(void)
{
	alone = policy_unref(alone);
	return policy_with_landlock(policy, "/tmp/pale-x/tmp", &given, &alone,
				    &why);
}

static int
build(void)
{
	const struct world_plan_input in = { .world = "w",
					     .own_dirs = &own,
					     .env = &env,
					     .temp = "/tmp/pale-x" };

	plan_fini(&plan);
	return world_plan_build(alone, &in, &plan, &why);
}

static bool
granted(enum plan_mount_kind kind, const char *target)
{
	for (size_t i = 0; i < plan.n_mounts; i++)
		if (plan.mounts[i].kind == kind &&
		    strcmp(plan.mounts[i].target, target) == 0)
			return true;
	return false;
}

static int
verdict(enum policy_op op, const char *path)
{
	return policy_decide_path(alone, op, path, false).error;
}

START_TEST(what_landlock_cannot_keep_is_refused)
{
	ck_assert_int_eq(make(), 0);

	policy->git_guard = true;
	ck_assert_int_eq(make(), -ENOTSUP);
	policy->mode = POLICY_READ_ONLY;
	ck_assert_int_eq(make(), 0);
	policy->mode = POLICY_WORKSPACE_WRITE;
	policy->git_guard = false;

	ck_assert_int_eq(strv_add(&policy->sockets, "/run/x.sock"), 0);
	ck_assert_int_eq(make(), -ENOTSUP);
	strv_fini(&policy->sockets);
	ck_assert_int_eq(strv_add(&policy->hide_paths, "/home/u/.ssh"), 0);
	ck_assert_int_eq(make(), -ENOTSUP);
	strv_fini(&policy->hide_paths);

	ck_assert_int_eq(rules_add(policy->rules, RULE_PROTECT, "*.lock",
				   "config", &why),
			 0);
	ck_assert_int_eq(make(), -ENOTSUP);
	policy->mode = POLICY_READ_ONLY;
	ck_assert_int_eq(make(), 0);
	ck_assert_int_eq(
		rules_add(policy->rules, RULE_HIDE, ".env", "config", &why), 0);
	ck_assert_int_eq(make(), -ENOTSUP);
	policy->mode = POLICY_DANGER_FULL_ACCESS;
	ck_assert_int_eq(make(), -EINVAL);
}
END_TEST

START_TEST(only_what_is_granted_may_be_written)
{
	static const struct {
		const char *path;
		bool tree, file; /* granted as */
	} rows[] = {
		{ "/ws", true, false },
		{ "/srv/rw", true, false },
		{ "/tmp/pale-x/tmp", true, false },
		{ "/dev/null", false, true },
		{ "/dev/tty", false, true },
		{ "/dev/pts/7", false, true },
		{ "/dev/pts/8", false, false },
		{ "/dev/ptmx", false, false },
		{ "/dev/console", false, false },
		{ "/tmp/f", false, false },
		{ "/tmp/pale-x/run", false, false },
		{ "/dev/shm/f", false, false },
		{ "/var/tmp/f", false, false },
		{ "/proc/self/comm", false, false },
		{ "/home/u/f", false, false },
		{ "/etc/passwd", false, false },
	};

	policy->home = POLICY_HOME_PRIVATE;
	ck_assert_int_eq(make(), 0);
	ck_assert_int_eq(build(), 0);
	ck_assert_uint_eq(plan.flags & PLAN_LANDLOCK, PLAN_LANDLOCK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const char *path = rows[i].path;

		ck_assert_msg(granted(PLAN_GRANT_TREE, path) == rows[i].tree,
			      "%s as a tree", path);
		ck_assert_msg(granted(PLAN_GRANT_FILE, path) == rows[i].file,
			      "%s as a file", path);
		ck_assert_msg((verdict(POLICY_OP_OPEN_WRITE, path) == 0) ==
				      (rows[i].tree || rows[i].file),
			      "%s to be written", path);
		ck_assert_msg((verdict(POLICY_OP_CHMOD, path) == 0) ==
				      rows[i].tree,
			      "mode of %s", path);
	}
	ck_assert(granted(PLAN_TEMP, "/tmp/pale-x"));
}
END_TEST

START_TEST(read_only_grants_sinks_alone)
{
	policy->mode = POLICY_READ_ONLY;
	policy->tmp_writable = false;
	ck_assert_int_eq(make(), 0);
	ck_assert_int_eq(build(), 0);
	for (size_t i = 0; i < plan.n_mounts; i++)
		ck_assert_int_ne(plan.mounts[i].kind, PLAN_GRANT_TREE);
	ck_assert_int_eq(verdict(POLICY_OP_CREATE, "/ws/f"), -EROFS);
	ck_assert_int_eq(verdict(POLICY_OP_CREATE, "/srv/rw/f"), -EROFS);
}
END_TEST

START_TEST(pales_own_directories_are_not_granted)
{
	ck_assert_int_eq(make(), 0);
	ck_assert_int_eq(strv_add(&own, "/srv/rw/state/pale"), 0);
	ck_assert_int_eq(build(), -ENOTSUP);
	policy->mode = POLICY_READ_ONLY;
	ck_assert_int_eq(make(), 0);
	ck_assert_int_eq(build(), 0);
}
END_TEST

START_TEST(the_policy_and_the_plan_travel)
{
	_cleanup_(policy_unrefp) struct policy *copy = NULL;
	_cleanup_(freep) char *json = NULL;
	struct plan decoded;
	struct buf bytes = { 0 };

	ck_assert_int_eq(make(), 0);
	ck_assert_int_eq(policy_encode(alone, &json), 0);
	ck_assert_int_eq(policy_decode(json, strlen(json), &copy, &why), 0);
	ck_assert(copy->landlock);
	ck_assert_str_eq(copy->tmp_dir, "/tmp/pale-x/tmp");

	ck_assert_int_eq(build(), 0);
	ck_assert_int_eq(plan_encode(&plan, &bytes), 0);
	ck_assert_int_eq(plan_decode(bytes.data, bytes.len, &decoded, &why), 0);
	plan_fini(&decoded);
	buf_fini(&bytes);

	/* A grant in a world of mounts, and the other way round. */
	plan.flags &= ~PLAN_LANDLOCK;
	ck_assert_int_eq(plan_encode(&plan, &bytes), 0);
	ck_assert_int_eq(plan_decode(bytes.data, bytes.len, &decoded, &why),
			 -EINVAL);
	buf_fini(&bytes);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("landlock");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_landlock_cannot_keep_is_refused);
	tcase_add_test(tc, only_what_is_granted_may_be_written);
	tcase_add_test(tc, read_only_grants_sinks_alone);
	tcase_add_test(tc, pales_own_directories_are_not_granted);
	tcase_add_test(tc, the_policy_and_the_plan_travel);
	return suite_run("policy/landlock", tc);
}
