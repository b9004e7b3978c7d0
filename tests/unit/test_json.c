/* SPDX-License-Identifier: MIT */

#include "base/json.h"

#include <check.h>
#include <jansson.h>
#include <string.h>

#include "tests/unit/suite.h"

static struct buf out;

static void
setup(void)
{
	out = (struct buf){ 0 };
}

static void
teardown(void)
{
	buf_fini(&out);
}

static const char *
written(void)
{
	buf_put(&out, "", 1);
	ck_assert_int_eq(buf_error(&out), 0);
	return (const char *)out.data;
}

START_TEST(commas_stand_between_members_and_nowhere_else)
{
	jsonw_begin(&out, '{');
	jsonw_key(&out, "a");
	jsonw_begin(&out, '[');
	jsonw_int(&out, -1);
	jsonw_text(&out, ":");
	jsonw_text(&out, "[");
	jsonw_begin(&out, '{');
	jsonw_end(&out, '}');
	jsonw_end(&out, ']');
	jsonw_key(&out, "b");
	jsonw_bool(&out, true);
	jsonw_key(&out, "c");
	jsonw_text(&out, NULL);
	jsonw_end(&out, '}');
	buf_puts(&out, "\n");
	jsonw_uint(&out, UINT64_MAX);
	ck_assert_str_eq(written(), "{\"a\":[-1,\":\",\"[\",{}],\"b\":true,"
				    "\"c\":null}\n18446744073709551615");
}
END_TEST

START_TEST(bytes_that_are_no_utf8_are_escaped)
{
	jsonw_text(&out, "a\xff\xc3\xa4\xed\xa0\x80\xc0\xaf");
	ck_assert_str_eq(written(), "\"a\\\\xff\xc3\xa4\\\\xed\\\\xa0\\\\x80"
				    "\\\\xc0\\\\xaf\"");
}
END_TEST

START_TEST(a_backslash_stays_unless_it_would_be_read_as_an_escape)
{
	jsonw_text(&out, "a\\b \\xfg \\xFf");
	ck_assert_str_eq(written(), "\"a\\\\b \\\\xfg \\\\x5cxFf\"");
}
END_TEST

START_TEST(a_terminal_sees_no_control_character)
{
	static const char text[] = "\x1b[2J\n\xc2\x9b\x7f\xc3\xa4";

	escape_controls(&out, text, strlen(text));
	ck_assert_str_eq(written(), "\\x1b[2J\\x0a\\xc2\\x9b\\x7f\xc3\xa4");
}
END_TEST

/* Random strings over an alphabet in which every escape's parts are likely. */
START_TEST(any_bytes_come_back_through_a_strict_parser)
{
	static const char alphabet[] = "\\\\xx5cFfa\"\n\x01\xff\xc3\xa4\xe2\x82"
				       "\xac\xf0\x9f\x98\x80\xed\xa0/";
	unsigned int seed = (unsigned int)_i + 1;

	for (int round = 0; round < 20000; round++) {
		char bytes[17];
		char *back;
		size_t len = (size_t)rand_r(&seed) % 16;
		json_t *value;

		for (size_t i = 0; i < len; i++)
			bytes[i] = alphabet[(size_t)rand_r(&seed) %
					    (sizeof(alphabet) - 1)];
		bytes[len] = '\0';
		buf_fini(&out);
		jsonw_text(&out, bytes);
		value = json_loadb((const char *)out.data, out.len,
				   JSON_DECODE_ANY, NULL);
		ck_assert_ptr_nonnull(value);
		back = json_unescape(json_string_value(value));
		if (strcmp(back, bytes) != 0)
			ck_abort_msg("%.*s", (int)out.len, out.data);
		free(back);
		json_decref(value);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("json");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, commas_stand_between_members_and_nowhere_else);
	tcase_add_test(tc, bytes_that_are_no_utf8_are_escaped);
	tcase_add_test(tc,
		       a_backslash_stays_unless_it_would_be_read_as_an_escape);
	tcase_add_test(tc, a_terminal_sees_no_control_character);
	tcase_add_loop_test(tc, any_bytes_come_back_through_a_strict_parser, 0,
			    5);
	return suite_run("json", tc);
}
