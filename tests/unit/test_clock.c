/* SPDX-License-Identifier: MIT */

#include "base/clock.h"

#include <check.h>
#include <limits.h>
#include <stdlib.h>

#include "tests/unit/suite.h"

START_TEST(what_is_left_is_rounded_up_and_never_negative)
{
	int64_t now = clock_mono_ns();

	ck_assert_int_eq(clock_left_ms(now - 1), 0);
	ck_assert_int_eq(clock_left_ms(INT64_MIN / 2), 0);
	ck_assert_int_gt(clock_left_ms(now + 10000000000), 9000);
	ck_assert_int_le(clock_left_ms(now + 10000000000), 10000);
}
END_TEST

START_TEST(what_is_far_is_as_long_as_poll_can_wait)
{
	ck_assert_int_eq(clock_left_ms(INT64_MAX / 2), INT_MAX);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("clock");

	tcase_add_test(tc, what_is_left_is_rounded_up_and_never_negative);
	tcase_add_test(tc, what_is_far_is_as_long_as_poll_can_wait);
	return suite_run("base/clock", tc);
}
