/* SPDX-License-Identifier: MIT */

#include "base/units.h"
#include "tests/unit/suite.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

START_TEST(durations_are_read_in_every_unit)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} rows[] = { { "500ms", 500 },	 { "1.5s", 1500 }, { "5m", 300000 },
		     { "2h", 7200000 },	 { "30", 30000 },  { "0.25h", 900000 },
		     { "1d", 86400000 }, { "0.001s", 1 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t ms;

		ck_assert_int_eq(units_duration_ms(rows[i].text, &ms), 0);
		ck_assert_uint_eq(ms, rows[i].ms);
	}
}
END_TEST

START_TEST(sizes_are_powers_of_1024)
{
	uint64_t size;

	ck_assert_int_eq(units_size("64K", &size), 0);
	ck_assert_uint_eq(size, 65536);
	ck_assert_int_eq(units_size("1.5G", &size), 0);
	ck_assert_uint_eq(size, UINT64_C(1610612736));
	ck_assert_int_eq(units_size("12", &size), 0);
	ck_assert_uint_eq(size, 12);
}
END_TEST

START_TEST(what_is_no_amount_is_refused)
{
	static const char *const bad[] = {
		"",   "x",   "-1",  "+1",  "1 s",
		"1x", ".5s", "1.s", "1e3", "99999999999999999999"
	};
	uint64_t value;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ck_assert_int_eq(units_duration_ms(bad[i], &value), -EINVAL);
		ck_assert_int_eq(units_size(bad[i], &value), -EINVAL);
		ck_assert_int_eq(units_number(bad[i], &value), -EINVAL);
	}
	ck_assert_int_eq(units_number("1.5", &value), -EINVAL);
	ck_assert_int_eq(units_size("18446744073709551615T", &value), -EINVAL);
	/* In nanoseconds, no number any more. */
	ck_assert_int_eq(units_duration_ms("36525d", &value), 0);
	ck_assert_int_eq(units_duration_ms("36526d", &value), -EINVAL);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, durations_are_read_in_every_unit);
	tcase_add_test(tc, sizes_are_powers_of_1024);
	tcase_add_test(tc, what_is_no_amount_is_refused);
	return suite_run("base/units", tc);
}
