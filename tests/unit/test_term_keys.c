/* SPDX-License-Identifier: MIT */

#include "cli/term_keys.h"

#include <check.h>
#include <errno.h>
#include <string.h>

#include "tests/unit/suite.h"

static struct keys keys;
static struct buf out;
static uint64_t now = 1000;

static void
setup(void)
{
	ck_assert_int_eq(keys_init(&keys, NULL, NULL), 0);
	out = (struct buf){ 0 };
}

static void
teardown(void)
{
	buf_fini(&out);
}

static enum keys_found
type(const char *text)
{
	size_t taken;

	return keys_feed(&keys, text, strlen(text), now, &out, &taken);
}

static void
went(const char *text)
{
	ck_assert_uint_eq(out.len, strlen(text));
	if (out.len > 0)
		ck_assert_mem_eq(out.data, text, out.len);
	buf_drop(&out, out.len);
}

START_TEST(what_is_typed_goes_to_the_terminal)
{
	ck_assert_int_eq(type("ls -l\r\003\032\033[A"), KEYS_NONE);
	went("ls -l\r\003\032\033[A");
}
END_TEST

START_TEST(prefix_and_key_detach)
{
	size_t taken;

	ck_assert_int_eq(keys_feed(&keys, "ab\034dcd", 6, now, &out, &taken),
			 KEYS_DETACH);
	ck_assert_uint_eq(taken, 4);
	went("ab");
}
END_TEST

START_TEST(they_may_come_apart)
{
	ck_assert_int_eq(type("\034"), KEYS_NONE);
	went("");
	ck_assert_int_eq(keys_wait_ms(&keys, now), -1);
	now += 100000;
	ck_assert_int_eq(type("d"), KEYS_DETACH);
	went("");
}
END_TEST

START_TEST(a_doubled_prefix_is_one)
{
	ck_assert_int_eq(type("\034\034d"), KEYS_NONE);
	went("\034d");
	ck_assert_int_eq(type("\034"), KEYS_NONE);
	ck_assert_int_eq(type("\034"), KEYS_NONE);
	went("\034");
}
END_TEST

START_TEST(another_key_passes_with_the_prefix)
{
	ck_assert_int_eq(type("\034x"), KEYS_NONE);
	went("\034x");
	ck_assert_int_eq(type("\034\033"), KEYS_NONE);
	went("\034\033");
	ck_assert_int_eq(type("\034\033[A"), KEYS_NONE);
	went("\034\033[A");
}
END_TEST

START_TEST(prefix_and_control_z_suspend)
{
	ck_assert_int_eq(type("\034\032"), KEYS_SUSPEND);
	went("");
	ck_assert_int_eq(type("d"), KEYS_NONE);
	went("d");
}
END_TEST

/* Cut at every place. */
START_TEST(nothing_in_a_paste_is_for_pale)
{
	static const char paste[] = "\033[200~a\034d\034\034\033[201x\034d"
				    "\033[201~";

	for (size_t cut = 0; cut < sizeof(paste); cut++) {
		size_t taken;

		ck_assert_int_eq(
			keys_feed(&keys, paste, cut, now, &out, &taken),
			KEYS_NONE);
		ck_assert_int_eq(type(paste + cut), KEYS_NONE);
		went(paste);
		ck_assert_int_eq(type("\034d"), KEYS_DETACH);
	}
}
END_TEST

START_TEST(a_paste_without_end_is_over_after_a_while)
{
	ck_assert_int_eq(type("\033[200~abc"), KEYS_NONE);
	now += KEYS_PASTE_MS + 1;
	ck_assert_int_eq(type("\034d"), KEYS_DETACH);
	went("\033[200~abc");
}
END_TEST

START_TEST(the_keys_of_other_protocols_are_known)
{
	static const char *const texts[] = {
		"\033[92;5u\033[100;1u",
		"\033[92;5ud",
		"\033[92;5:1u\033[92;5:3u\033[100u",
		"\033[92:124;5ud",
		"\033[27;5;92~d",
		"\033[57442;5u\033[92;5u\033[57442;5:3u\033[100;65u",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		buf_drop(&out, out.len);
		ck_assert_int_eq(type(texts[i]), KEYS_DETACH);
	}
	went("\033[57442;5u");
	ck_assert_int_eq(type("\033[92;5u\033[92;5u"), KEYS_NONE);
	went("\033[92;5u");
	ck_assert_int_eq(type("\033[92;5u\033[100;2u"), KEYS_NONE);
	went("\033[92;5u\033[100;2u");
	ck_assert_int_eq(type("\033[100;5u\033[3;5~\033[1;5:3A"), KEYS_NONE);
	went("\033[100;5u\033[3;5~\033[1;5:3A");
}
END_TEST

START_TEST(half_a_sequence_is_held_for_a_moment)
{
	ck_assert_int_eq(type("\033"), KEYS_NONE);
	went("\033");
	ck_assert_int_eq(type("\033[92"), KEYS_NONE);
	went("");
	ck_assert_int_eq(keys_wait_ms(&keys, now), KEYS_HOLD_MS);
	ck_assert_int_eq(type(";5ud"), KEYS_DETACH);
	went("");
	ck_assert_int_eq(type("\033[9"), KEYS_NONE);
	now += KEYS_HOLD_MS;
	ck_assert_int_eq(keys_wait_ms(&keys, now), 0);
	ck_assert_int_eq(keys_tick(&keys, now, &out), KEYS_NONE);
	went("\033[9");
	ck_assert_int_eq(keys_wait_ms(&keys, now), -1);
}
END_TEST

START_TEST(no_sequence_is_held_without_end)
{
	char text[3 * KEYS_SEQUENCE];

	memset(text, '1', sizeof(text));
	text[0] = '\033';
	text[1] = '[';
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(type(text), KEYS_NONE);
	went(text);
}
END_TEST

START_TEST(the_keys_can_be_chosen)
{
	ck_assert_int_eq(keys_init(&keys, "^A C-d", NULL), 0);
	ck_assert_int_eq(type("\034d\001x\001\004"), KEYS_DETACH);
	went("\034d\001x");
	ck_assert_int_eq(keys_init(&keys, "C-b d", NULL), 0);
	ck_assert_int_eq(type("\002d"), KEYS_DETACH);
	ck_assert_int_eq(keys_init(&keys, "none", NULL), 0);
	ck_assert_int_eq(type("\034d"), KEYS_NONE);
	went("\034d");
}
END_TEST

START_TEST(what_are_no_keys_is_refused)
{
	static const char *const texts[] = {
		"",	 "d",	  "a b",    "C-a",	  "C-a C-a", "C-a bc",
		"C-[ d", "C-@ d", "C-a C-", "\xc3\xa9 d", "C-a C-[", "C-1 d",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct errmsg why = { "" };

		ck_assert_int_eq(keys_init(&keys, texts[i], &why), -EINVAL);
		ck_assert_ptr_nonnull(strstr(why.text, "--detach-key"));
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("term_keys");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_typed_goes_to_the_terminal);
	tcase_add_test(tc, prefix_and_key_detach);
	tcase_add_test(tc, they_may_come_apart);
	tcase_add_test(tc, a_doubled_prefix_is_one);
	tcase_add_test(tc, another_key_passes_with_the_prefix);
	tcase_add_test(tc, prefix_and_control_z_suspend);
	tcase_add_test(tc, nothing_in_a_paste_is_for_pale);
	tcase_add_test(tc, a_paste_without_end_is_over_after_a_while);
	tcase_add_test(tc, the_keys_of_other_protocols_are_known);
	tcase_add_test(tc, half_a_sequence_is_held_for_a_moment);
	tcase_add_test(tc, no_sequence_is_held_without_end);
	tcase_add_test(tc, the_keys_can_be_chosen);
	tcase_add_test(tc, what_are_no_keys_is_refused);
	return suite_run("term_keys", tc);
}
