/* SPDX-License-Identifier: MIT */

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "policy/policy.h"
#include "tests/unit/suite.h"

START_TEST(every_operation_is_found_by_its_name)
{
	for (int i = 0; i < POLICY_OP_COUNT; i++) {
		enum policy_op op;

		ck_assert_int_eq(
			policy_op_parse(policy_op_name((enum policy_op)i), &op),
			0);
		ck_assert_int_eq((int)op, i);
	}
}
END_TEST

START_TEST(every_mode_is_found_by_its_name_and_the_ladder_ascends)
{
	static const char *const names[] = { "read-only", "workspace-write",
					     "danger-full-access" };
	int before = -1;

	for (int i = 0; i < 3; i++) {
		enum policy_mode mode;

		ck_assert_int_eq(policy_mode_parse(names[i], &mode), 0);
		ck_assert_str_eq(policy_mode_name(mode), names[i]);
		ck_assert_int_gt((int)mode, before);
		before = (int)mode;
	}
}
END_TEST

START_TEST(an_unknown_name_is_refused)
{
	enum policy_mode mode;
	enum policy_op op;

	ck_assert_int_eq(policy_mode_parse("full", &mode), -EINVAL);
	ck_assert_int_eq(policy_mode_parse("", &mode), -EINVAL);
	ck_assert_int_eq(policy_op_parse("destroy", &op), -EINVAL);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, every_operation_is_found_by_its_name);
	tcase_add_test(tc,
		       every_mode_is_found_by_its_name_and_the_ladder_ascends);
	tcase_add_test(tc, an_unknown_name_is_refused);
	return suite_run("policy/mode", tc);
}
