/* SPDX-License-Identifier: MIT */

#include "base/plan.h"

#include <check.h>
#include <string.h>

#include "base/limits.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static struct plan plan;
static struct buf bytes;

static void
add(enum plan_mount_kind kind, const char *target)
{
	struct plan_mount m = { .kind = kind,
				.source = (char *)(uintptr_t) "/src",
				.target = (char *)(uintptr_t)target };

	ck_assert_int_eq(plan_add(&plan, &m), 0);
}

static void
setup(void)
{
	plan = (struct plan){ .uid = 1000, .gid = 100, .memory = 7 };
	bytes = (struct buf){ 0 };
	plan.flags = PLAN_OBSERVE | PLAN_TTY;
	plan.world = strdup("abcd2345");
	add(PLAN_TMPFS, "/tmp");
	add(PLAN_BIND, "/a/b");
	ck_assert_int_eq(strv_add(&plan.argv, "sh"), 0);
	ck_assert_int_eq(strv_add(&plan.env, "A=b"), 0);
}

static void
teardown(void)
{
	plan_fini(&plan);
	buf_fini(&bytes);
}

/* Decodes what `plan` encodes to. */
static int
round_trip(struct plan *ret_plan)
{
	ck_assert_int_eq(plan_encode(&plan, &bytes), 0);
	return plan_decode(bytes.data, bytes.len, ret_plan, NULL);
}

START_TEST(what_is_encoded_is_decoded)
{
	struct plan got;

	ck_assert_int_eq(round_trip(&got), 0);
	ck_assert_uint_eq(got.flags, plan.flags);
	ck_assert_uint_eq(got.uid, 1000);
	ck_assert_uint_eq(got.memory, 7);
	ck_assert_str_eq(got.world, "abcd2345");
	ck_assert_str_eq(got.cwd, "");
	ck_assert_uint_eq(got.n_mounts, 2);
	ck_assert_str_eq(got.mounts[1].target, "/a/b");
	ck_assert_str_eq(got.mounts[1].source, "/src");
	ck_assert_str_eq(got.argv.items[0], "sh");
	ck_assert_str_eq(got.env.items[0], "A=b");
	ck_assert_uint_eq(got.warden.count, 0);
	plan_fini(&got);
}
END_TEST

START_TEST(a_cut_or_longer_plan_is_refused)
{
	struct plan got;
	struct errmsg why;

	ck_assert_int_eq(plan_encode(&plan, &bytes), 0);
	for (size_t len = 0; len < bytes.len; len++) {
		why.text[0] = '\0';
		ck_assert_int_eq(plan_decode(bytes.data, len, &got, &why),
				 -EINVAL);
		ck_assert(why.text[0] != '\0');
	}
	buf_put(&bytes, "x", 1);
	ck_assert_int_eq(plan_decode(bytes.data, bytes.len, &got, &why),
			 -EINVAL);
}
END_TEST

START_TEST(a_target_that_is_not_one_clean_place_is_refused)
{
	static const char *const bad[] = { "",	   "a",	  "/a/",   "/a/../b",
					   "/./a", "//a", "/a//b", "/.." };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct plan got;

		teardown();
		setup();
		add(PLAN_TMPFS, bad[i]);
		ck_assert_int_eq(round_trip(&got), -EINVAL);
	}
}
END_TEST

START_TEST(values_that_are_not_known_are_refused)
{
	struct plan got;

	plan.mounts[0].kind = PLAN_MOUNT_KINDS;
	ck_assert_int_eq(round_trip(&got), -EINVAL);
	buf_fini(&bytes);
	plan.mounts[0].kind = PLAN_TMPFS;
	plan.mounts[0].flags = 1u << 9;
	ck_assert_int_eq(round_trip(&got), -EINVAL);
	buf_fini(&bytes);
	plan.mounts[0].flags = 0;
	plan.flags = 1u << 20;
	ck_assert_int_eq(round_trip(&got), -EINVAL);
}
END_TEST

START_TEST(an_unconfined_plan_has_no_mounts)
{
	struct plan got;

	plan.flags = PLAN_UNCONFINED;
	ck_assert_int_eq(round_trip(&got), -EINVAL);
}
END_TEST

START_TEST(the_number_of_mounts_is_bounded)
{
	struct plan_mount m = { .kind = PLAN_DEV };

	while (plan.n_mounts < LIMIT_PLAN_MOUNTS)
		ck_assert_int_eq(plan_add(&plan, &m), 0);
	ck_assert_int_eq(plan_add(&plan, &m), -E2BIG);
}
END_TEST

START_TEST(decoding_reports_that_memory_is_out)
{
	ck_assert_int_eq(plan_encode(&plan, &bytes), 0);
	for (unsigned int nth = 1;; nth++) {
		struct plan got;
		int r;

		oom_arm(nth);
		r = plan_decode(bytes.data, bytes.len, &got, NULL);
		if (!oom_disarm()) {
			ck_assert_int_eq(r, 0);
			plan_fini(&got);
			break;
		}
		ck_assert_int_lt(r, 0);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, what_is_encoded_is_decoded);
	tcase_add_test(tc, a_cut_or_longer_plan_is_refused);
	tcase_add_test(tc, a_target_that_is_not_one_clean_place_is_refused);
	tcase_add_test(tc, values_that_are_not_known_are_refused);
	tcase_add_test(tc, an_unconfined_plan_has_no_mounts);
	tcase_add_test(tc, the_number_of_mounts_is_bounded);
	tcase_add_test(tc, decoding_reports_that_memory_is_out);
	return suite_run("base/plan", tc);
}
