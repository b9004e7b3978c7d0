/* SPDX-License-Identifier: MIT */

#include "policy/world_plan.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "policy/policy_priv.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static struct policy *policy;
static struct plan plan;
static struct strv own, env;
static struct world_plan_input in;

static void
setup(void)
{
	policy = calloc(1, sizeof(*policy));
	ck_assert_ptr_nonnull(policy);
	policy->refs = 1;
	policy->mode = POLICY_WORKSPACE_WRITE;
	policy->tmp_writable = true;
	policy->nest = true;
	policy->session = strdup("default");
	policy->mode_source = strdup("default");
	policy->home_path = strdup("/home/u");
	ck_assert_int_eq(rules_new(&policy->rules), 0);
	plan = (struct plan){ 0 };
	own = env = (struct strv){ 0 };
	in = (struct world_plan_input){ .world = "w",
					.own_dirs = &own,
					.env = &env };
}

static void
teardown(void)
{
	policy = policy_unref(policy);
	plan_fini(&plan);
	strv_fini(&own);
	strv_fini(&env);
}

static void
root(enum policy_root_kind kind, const char *path)
{
	ck_assert_int_eq(policy_add_root(policy, kind, path), 0);
}

static void
build(void)
{
	struct errmsg why = { "" };

	plan_fini(&plan);
	ck_assert_msg(world_plan_build(policy, &in, &plan, &why) == 0, "%s",
		      why.text);
}

/* The place in the order of the first such entry, or -1. */
static int
place(enum plan_mount_kind kind, const char *target)
{
	for (size_t i = 0; i < plan.n_mounts; i++)
		if (plan.mounts[i].kind == kind &&
		    strcmp(plan.mounts[i].target, target) == 0)
			return (int)i;
	return -1;
}

START_TEST(a_plan_survives_its_own_encoding)
{
	struct buf bytes = { 0 };
	struct plan got;

	root(POLICY_ROOT_WORKSPACE, "/home/u/p");
	build();
	ck_assert_int_eq(plan_encode(&plan, &bytes), 0);
	ck_assert_int_eq(plan_decode(bytes.data, bytes.len, &got, NULL), 0);
	ck_assert_uint_eq(got.n_mounts, plan.n_mounts);
	plan_fini(&got);
	buf_fini(&bytes);
}
END_TEST

START_TEST(a_workspace_below_a_private_area_is_mounted_over_it)
{
	root(POLICY_ROOT_WORKSPACE, "/tmp/x");
	build();
	ck_assert_int_ge(place(PLAN_TMPFS, "/tmp"), 0);
	ck_assert_int_lt(place(PLAN_TMPFS, "/tmp"), place(PLAN_FUSE, "/tmp/x"));
}
END_TEST

START_TEST(areas_end_read_only_in_read_only_after_all_is_mounted)
{
	policy->mode = POLICY_READ_ONLY;
	policy->tmp_writable = false;
	root(POLICY_ROOT_WORKSPACE, "/tmp/x");
	build();
	ck_assert_int_gt(place(PLAN_REMOUNT_RO, "/tmp"),
			 place(PLAN_FUSE, "/tmp/x"));
	ck_assert_int_ge(place(PLAN_REMOUNT_RO, "/dev/shm"), 0);
	ck_assert_int_ge(place(PLAN_REMOUNT_RO, "/var/tmp"), 0);
	policy->tmp_writable = true;
	build();
	ck_assert_int_eq(place(PLAN_REMOUNT_RO, "/tmp"), -1);
	ck_assert_int_ge(place(PLAN_REMOUNT_RO, "/run"), 0);
}
END_TEST

START_TEST(outer_roots_come_before_inner_ones)
{
	policy->home = POLICY_HOME_PRIVATE;
	in.home_upper = "/var/lib/up";
	in.home_work = "/var/lib/work";
	root(POLICY_ROOT_WORKSPACE, "/home/u/p");
	root(POLICY_ROOT_GIT, "/srv/repo/.git");
	root(POLICY_ROOT_RW, "/home/u/cache");
	root(POLICY_ROOT_RW, "/home");
	root(POLICY_ROOT_RW, "/srv/repo/.git/deep");
	build();
	ck_assert_int_lt(place(PLAN_BIND, "/home"),
			 place(PLAN_OVERLAY, "/home/u"));
	ck_assert_int_lt(place(PLAN_OVERLAY, "/home/u"),
			 place(PLAN_BIND, "/home/u/cache"));
	ck_assert_int_lt(place(PLAN_OVERLAY, "/home/u"),
			 place(PLAN_FUSE, "/home/u/p"));
	ck_assert_int_lt(place(PLAN_FUSE, "/home/u/p"),
			 place(PLAN_FUSE, "/srv/repo/.git"));
	ck_assert_int_lt(place(PLAN_FUSE, "/srv/repo/.git"),
			 place(PLAN_BIND, "/srv/repo/.git/deep"));
	ck_assert_uint_eq(plan.mounts[place(PLAN_FUSE, "/srv/repo/.git")].index,
			  1);
}
END_TEST

START_TEST(pale_s_own_places_are_covered_after_everything)
{
	int cover;

	ck_assert_int_eq(strv_add(&own, "/home/u/.local/state/pale"), 0);
	ck_assert_int_eq(strv_add(&own, "/run/pale"), 0);
	ck_assert_int_eq(strv_add(&policy->sockets, "/run/docker.sock"), 0);
	ck_assert_int_eq(strv_add(&policy->hide_paths, "/home/u/.ssh"), 0);
	root(POLICY_ROOT_WORKSPACE, "/home/u");
	build();
	cover = place(PLAN_COVER, "/home/u/.local/state/pale");
	ck_assert_int_gt(cover, place(PLAN_FUSE, "/home/u"));
	ck_assert_int_gt(cover, place(PLAN_SOCKET, "/run/docker.sock"));
	ck_assert_int_gt(cover, place(PLAN_COVER, "/home/u/.ssh"));
	/* Nothing of the host is in the world's own /run. */
	ck_assert_int_eq(place(PLAN_COVER, "/run/pale"), -1);
}
END_TEST

START_TEST(a_workspace_in_pale_s_own_place_is_refused)
{
	struct errmsg why = { "" };

	ck_assert_int_eq(strv_add(&own, "/run/pale"), 0);
	root(POLICY_ROOT_WORKSPACE, "/run/pale/worlds");
	ck_assert_int_eq(world_plan_build(policy, &in, &plan, &why), -EINVAL);
	ck_assert(why.text[0] != '\0');
}
END_TEST

START_TEST(no_directory_with_sockets_is_bound_into_run)
{
	root(POLICY_ROOT_WORKSPACE, "/srv/p");
	in.resolv_conf = "/run/odd/resolv.conf";
	build();
	ck_assert_int_eq(place(PLAN_BIND, "/run/systemd/resolve"), -1);
	ck_assert_int_ge(place(PLAN_BIND, "/run/odd/resolv.conf"), 0);
	for (size_t i = 0; i < plan.n_mounts; i++)
		if (plan.mounts[i].kind == PLAN_BIND)
			ck_assert_uint_eq(plan.mounts[i].flags,
					  PLAN_F_RO | PLAN_F_OPTIONAL);
}
END_TEST

START_TEST(sockets_for_names_may_be_gone)
{
	const char *path = "/run/nscd/socket";

	ck_assert_int_eq(strv_add(&policy->name_sockets, path), 0);
	root(POLICY_ROOT_WORKSPACE, "/srv/p");
	build();
	ck_assert_int_gt(place(PLAN_SOCKET, path), place(PLAN_TMPFS, "/run"));
	ck_assert_int_lt(place(PLAN_SOCKET, path),
			 place(PLAN_REMOUNT_RO, "/run"));
	ck_assert_uint_eq(plan.mounts[place(PLAN_SOCKET, path)].flags,
			  PLAN_F_OPTIONAL);
}
END_TEST

START_TEST(a_cwd_below_an_area_is_there_all_the_same)
{
	root(POLICY_ROOT_WORKSPACE, "/srv/p");
	in.cwd = "/tmp/here";
	build();
	ck_assert_int_gt(place(PLAN_TMPFS, "/tmp/here"),
			 place(PLAN_TMPFS, "/tmp"));
	in.cwd = "/tmp";
	build();
	ck_assert_str_eq(plan.cwd, "/tmp");
}
END_TEST

START_TEST(secrets_leave_the_environment_and_ours_are_put)
{
	ck_assert_int_eq(strv_add(&env, "API_KEY=1"), 0);
	ck_assert_int_eq(strv_add(&env, "PALE_MODE=lie"), 0);
	ck_assert_int_eq(strv_add(&env, "TMPDIR=/home/u/tmp"), 0);
	ck_assert_int_eq(strv_add(&env, "PATH=/bin"), 0);
	ck_assert_int_eq(strv_add(&policy->env_hide, "*KEY*"), 0);
	root(POLICY_ROOT_WORKSPACE, "/srv/p");
	in.tree = true;
	build();
	ck_assert(!strv_has(&plan.env, "API_KEY=1"));
	ck_assert(!strv_has(&plan.env, "PALE_MODE=lie"));
	ck_assert(strv_has(&plan.env, "PALE_MODE=workspace-write"));
	ck_assert(strv_has(&plan.env, "PALE_TREE=/srv/p/.pale"));
	ck_assert(strv_has(&plan.env, "TMPDIR=/tmp"));
	ck_assert(strv_has(&plan.env, "PATH=/bin"));
}
END_TEST

START_TEST(without_a_fence_nothing_is_mounted)
{
	policy->mode = POLICY_DANGER_FULL_ACCESS;
	root(POLICY_ROOT_WORKSPACE, "/srv/p");
	in.tree = true;
	build();
	ck_assert_uint_eq(plan.n_mounts, 0);
	ck_assert_uint_eq(plan.flags, PLAN_UNCONFINED);
	ck_assert(!strv_has(&plan.env, "PALE_TREE=/srv/p/.pale"));
}
END_TEST

START_TEST(building_reports_that_memory_is_out)
{
	root(POLICY_ROOT_WORKSPACE, "/srv/p");
	for (unsigned int nth = 1;; nth++) {
		int r;

		oom_arm(nth);
		r = world_plan_build(policy, &in, &plan, NULL);
		if (!oom_disarm()) {
			ck_assert_int_eq(r, 0);
			break;
		}
		ck_assert_int_eq(r, -ENOMEM);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_plan_survives_its_own_encoding);
	tcase_add_test(tc, a_workspace_below_a_private_area_is_mounted_over_it);
	tcase_add_test(tc,
		       areas_end_read_only_in_read_only_after_all_is_mounted);
	tcase_add_test(tc, outer_roots_come_before_inner_ones);
	tcase_add_test(tc, pale_s_own_places_are_covered_after_everything);
	tcase_add_test(tc, a_workspace_in_pale_s_own_place_is_refused);
	tcase_add_test(tc, no_directory_with_sockets_is_bound_into_run);
	tcase_add_test(tc, sockets_for_names_may_be_gone);
	tcase_add_test(tc, a_cwd_below_an_area_is_there_all_the_same);
	tcase_add_test(tc, secrets_leave_the_environment_and_ours_are_put);
	tcase_add_test(tc, without_a_fence_nothing_is_mounted);
	tcase_add_test(tc, building_reports_that_memory_is_out);
	return suite_run("policy/world_plan", tc);
}
