/* SPDX-License-Identifier: MIT */

#include "base/buf.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static struct buf b;

static void
setup(void)
{
	b = (struct buf){ 0 };
}

static void
teardown(void)
{
	buf_fini(&b);
}

START_TEST(what_is_put_is_read_back)
{
	struct bufread r;
	char *text;

	buf_u32(&b, 0xdeadbeef);
	buf_u64(&b, 0x0123456789abcdefULL);
	buf_str(&b, "a name");
	ck_assert_int_eq(buf_error(&b), 0);

	r = (struct bufread){ .at = b.data, .left = b.len };
	ck_assert_uint_eq(bufread_u32(&r), 0xdeadbeef);
	ck_assert_uint_eq(bufread_u64(&r), 0x0123456789abcdefULL);
	text = bufread_str(&r);
	ck_assert_str_eq(text, "a name");
	ck_assert_int_eq(r.bad, 0);
	ck_assert_uint_eq(r.left, 0);
	free(text);
}
END_TEST

START_TEST(reading_past_the_end_is_bad_and_stays_bad)
{
	struct bufread r;

	buf_u32(&b, 100); /* a string of 100 bytes that are not there */
	r = (struct bufread){ .at = b.data, .left = b.len };
	ck_assert_ptr_null(bufread_str(&r));
	ck_assert_int_eq(r.bad, 1);
	ck_assert_uint_eq(bufread_u64(&r), 0);
	ck_assert_int_eq(r.bad, 1);
}
END_TEST

START_TEST(a_string_with_a_nul_inside_is_refused)
{
	struct bufread r;

	buf_u32(&b, 3);
	buf_put(&b, "a\0b", 3);
	r = (struct bufread){ .at = b.data, .left = b.len };
	ck_assert_ptr_null(bufread_str(&r));
	ck_assert_int_eq(r.bad, 1);
}
END_TEST

START_TEST(out_of_memory_is_sticky)
{
	oom_arm(1);
	buf_puts(&b, "x");
	ck_assert_int_ne(oom_disarm(), 0);
	buf_puts(&b, "y");
	ck_assert_int_eq(buf_error(&b), -ENOMEM);
	ck_assert_uint_eq(b.len, 0);
}
END_TEST

START_TEST(growing_keeps_every_byte)
{
	for (int i = 0; i < 10000; i++)
		buf_putf(&b, "%d,", i % 10);
	ck_assert_uint_eq(b.len, 20000);
	for (size_t i = 0; i < b.len; i += 2)
		ck_assert_int_eq(b.data[i], '0' + (int)(i / 2 % 10));
	buf_drop(&b, 19998);
	ck_assert_uint_eq(b.len, 2);
	ck_assert_int_eq(b.data[0], '9');
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("buf");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_put_is_read_back);
	tcase_add_test(tc, reading_past_the_end_is_bad_and_stays_bad);
	tcase_add_test(tc, a_string_with_a_nul_inside_is_refused);
	tcase_add_test(tc, out_of_memory_is_sticky);
	tcase_add_test(tc, growing_keeps_every_byte);
	return suite_run("base/buf", tc);
}
