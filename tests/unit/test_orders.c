/* SPDX-License-Identifier: MIT */

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "jobs/orders.h"
#include "tests/unit/suite.h"

static struct job_order orders[JOB_ORDERS_MAX];
static size_t count;
static const char *wrong;

static int
parse(const char *text)
{
	count = 99;
	wrong = NULL;
	return job_orders_parse(text, strlen(text), orders, &count, &wrong);
}

START_TEST(signals_have_numbers_and_names)
{
	static const struct {
		const char *text;
		int want;
	} rows[] = { { "15", SIGTERM },	   { "TERM", SIGTERM },
		     { "term", SIGTERM },  { "SIGTERM", SIGTERM },
		     { "sigint", SIGINT }, { "9", SIGKILL },
		     { "0", 0 },	   { "-1", 0 },
		     { "64", 0 },	   { "99999999999999999999", 0 },
		     { "9x", 0 },	   { "", 0 },
		     { "SIG", 0 },	   { "nonsense", 0 },
		     { "sigsigint", 0 } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		ck_assert_msg(job_signal_parse(rows[i].text) == rows[i].want,
			      "'%s'", rows[i].text);
}
END_TEST

START_TEST(orders_are_lines)
{
	ck_assert_int_eq(parse("kill\n"), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(orders[0].kind, JOB_ORDER_KILL);
	ck_assert_int_eq(orders[0].signal, SIGTERM);
	ck_assert_int_eq(parse(" signal\tINT \r\n\n  \nclose-stdin"), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(orders[0].kind, JOB_ORDER_SIGNAL);
	ck_assert_int_eq(orders[0].signal, SIGINT);
	ck_assert_int_eq(orders[1].kind, JOB_ORDER_CLOSE_STDIN);
	ck_assert_int_eq(parse(""), 0);
	ck_assert_uint_eq(count, 0);
}
END_TEST

static const char seventeen[] = "kill\nkill\nkill\nkill\nkill\nkill\n"
				"kill\nkill\nkill\nkill\nkill\nkill\n"
				"kill\nkill\nkill\nkill\nkill";

START_TEST(one_bad_line_spoils_all)
{
	static const char *const rows[] = {
		"kill\nbogus",	   "kill 15 16", "signal",
		"close-stdin 1",   "kill what",	 "Kill",
		"kill\nkill\nkil", "signal 0",	 seventeen,
	};
	char large[JOB_ORDERS_BYTES + 1];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_msg(parse(rows[i]) == -EINVAL, "'%s'", rows[i]);
		ck_assert_ptr_nonnull(wrong);
		ck_assert_uint_eq(count, 99);
	}
	memset(large, '\n', sizeof(large));
	ck_assert_int_eq(
		job_orders_parse(large, sizeof(large), orders, &count, &wrong),
		-EINVAL);
	ck_assert_int_eq(job_orders_parse("kill\0", 5, orders, &count, &wrong),
			 -EINVAL);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("orders");

	tcase_add_test(tc, signals_have_numbers_and_names);
	tcase_add_test(tc, orders_are_lines);
	tcase_add_test(tc, one_bad_line_spoils_all);
	return suite_run("orders", tc);
}
