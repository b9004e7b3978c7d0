/* SPDX-License-Identifier: MIT */

#include "pty/waits.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pty/window.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static uint64_t
clock_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static uint64_t deadline_ms = UINT64_MAX;

static unsigned int searches;

static void
count_search(void *data)
{
	(void)data;
	searches++;
}

static bool
is_late(void *data)
{
	(void)data;
	return clock_ms() >= deadline_ms;
}

static int
start_at(const struct wait_condition *conditions, size_t n, uint64_t offset,
	 struct waits **ret, struct errmsg *why)
{
	const struct waits_start start = {
		.conditions = conditions,
		.n_conditions = n,
		.offset = offset,
		.now_ms = 1000,
		.begin = count_search,
		.spent = is_late,
	};

	return waits_new(&start, ret, why);
}

static struct waits *
start(const struct wait_condition *conditions, size_t n)
{
	struct waits *waits = NULL;
	struct errmsg why = { "" };

	deadline_ms = UINT64_MAX;
	ck_assert_msg(start_at(conditions, n, 0, &waits, &why) == 0, "%s",
		      why.text);
	return waits;
}

static struct waits *
start_pattern(const char *pattern)
{
	const struct wait_condition condition = { WAIT_FOR_PATTERN, pattern,
						  0 };

	return start(&condition, 1);
}

static int
feed(struct waits *waits, const char *bytes, uint64_t now_ms)
{
	return waits_feed(waits, bytes, strlen(bytes), now_ms);
}

static void
check_match(const struct waits *waits, const char *text, uint64_t from,
	    uint64_t to)
{
	const struct waits_result *result = waits_result(waits);

	ck_assert_uint_eq(result->text.len, strlen(text));
	ck_assert_mem_eq(result->text.data, text, strlen(text));
	ck_assert_uint_eq(result->from, from);
	ck_assert_uint_eq(result->to, to);
}

START_TEST(a_match_may_straddle_chunks_and_colours)
{
	static const char bytes[] = "x wo\033[1;31mr\033[0md y";

	for (size_t piece = 1; piece < sizeof(bytes); piece++) {
		_cleanup_(waits_freep) struct waits *w = start_pattern("word");
		int r = 0;

		for (size_t at = 0; at < strlen(bytes) && r == 0; at += piece)
			r = waits_feed(w, bytes + at,
				       strlen(bytes) - at < piece
					       ? strlen(bytes) - at
					       : piece,
				       1000);
		ck_assert_int_eq(r, 1);
		check_match(w, "word", 2, 17);
	}
}
END_TEST

/* The owner's clock is for searches, not for what makes text of the bytes. */
START_TEST(each_search_is_told_of)
{
	_cleanup_(waits_freep) struct waits *w = start_pattern("word");

	searches = 0;
	ck_assert_int_eq(feed(w, "some wo", 1), 0);
	ck_assert_uint_ge(searches, 1);
	searches = 0;
	ck_assert_int_eq(feed(w, "rd", 2), 1);
	ck_assert_uint_ge(searches, 1);
}
END_TEST

START_TEST(what_is_before_the_start_is_not_seen)
{
	_cleanup_(waits_freep) struct waits *w = NULL;
	const struct wait_condition condition = { WAIT_FOR_PATTERN, "abc", 0 };

	ck_assert_int_eq(start_at(&condition, 1, 500, &w, NULL), 0);
	ck_assert_uint_eq(waits_offset(w), 500);
	ck_assert_int_eq(feed(w, "bc", 1), 0);
	ck_assert_int_eq(feed(w, "abc", 1), 1);
	check_match(w, "abc", 502, 505);
}
END_TEST

/* What the end could still change is told after a pause, or at the end. */
START_TEST(a_number_that_is_torn_is_waited_for)
{
	_cleanup_(waits_freep) struct waits *w = start_pattern("exit (\\d+)");

	ck_assert_int_eq(feed(w, "exit 1", 1000), 0);
	ck_assert_uint_eq(waits_due(w), 1000 + WAITS_SETTLE_MS);
	ck_assert_int_eq(waits_tick(w, 1049), 0);
	ck_assert_int_eq(feed(w, "27", 1040), 0);
	ck_assert_int_eq(waits_tick(w, 1060), 0);
	ck_assert_int_eq(waits_tick(w, 1090), 1);
	check_match(w, "exit 127", 0, 8);
	ck_assert_uint_eq(waits_result(w)->groups.count, 1);
	ck_assert_str_eq(waits_result(w)->groups.items[0], "127");
}
END_TEST

START_TEST(a_partial_match_outlives_a_pause)
{
	_cleanup_(waits_freep) struct waits *w = start_pattern("abcdef");

	ck_assert_int_eq(feed(w, "xabc", 1000), 0);
	ck_assert_int_eq(waits_tick(w, 2000), 0);
	ck_assert_uint_eq(waits_due(w), UINT64_MAX);
	ck_assert_int_eq(feed(w, "de", 3000), 0);
	ck_assert_int_eq(waits_tick(w, 4000), 0);
	ck_assert_int_eq(feed(w, "f", 5000), 1);
	check_match(w, "abcdef", 1, 7);
}
END_TEST

START_TEST(a_prompt_at_the_end_matches_after_a_pause)
{
	_cleanup_(waits_freep) struct waits *w = start_pattern(">>> $");

	ck_assert_int_eq(feed(w, "Python 3\r\n>>> ", 1000), 0);
	ck_assert_int_eq(waits_tick(w, 1100), 1);
	check_match(w, ">>> ", 10, 14);
}
END_TEST

/* One that could still grow does not hide a complete one behind it. */
START_TEST(a_longer_hope_hides_nothing)
{
	_cleanup_(waits_freep) struct waits *w =
		start_pattern("begin[^!]*end|DONE");

	ck_assert_int_eq(feed(w, "begin ... DONE and more", 1000), 1);
	check_match(w, "DONE", 10, 14);
}
END_TEST

START_TEST(line_ends_of_a_pattern_are_sane)
{
	static const struct {
		const char *pattern, *bytes;
	} rows[] = {
		{ "one\\ntwo", "one\r\ntwo" },
		{ "one\\r\\ntwo", "one\r\ntwo" },
		{ "one\r\ntwo", "one\r\ntwo" },
		{ "one\\r?\\ntwo", "one\r\ntwo" },
		{ "one\\r\\ntwo", "one\ntwo" },
		{ "one\\Rtwo", "one\r\ntwo" },
		{ "one[\\r\\n]+two", "one\r\ntwo" },
		{ "one\\stwo", "one\r\ntwo" },
		{ "^two$", "one\r\ntwo\r\n" },
		{ "^ 99%$", " 98%\r 99%\r100%" },
		{ "a\\rb", "a\rb" },
		{ "\\Qa\\r\\E", "a\\r" },
		{ "\\\\r", "\\r" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_(waits_freep) struct waits *w =
			start_pattern(rows[i].pattern);
		int r = feed(w, rows[i].bytes, 1000);

		ck_assert_msg(r == 1 || waits_tick(w, 2000) == 1, "%s",
			      rows[i].pattern);
	}
}
END_TEST

START_TEST(backspaces_are_searched_again)
{
	_cleanup_(waits_freep) struct waits *w = start_pattern("foobar");

	ck_assert_int_eq(feed(w, "fooX", 1000), 0);
	ck_assert_int_eq(feed(w, "\bbar", 1000), 1);
	check_match(w, "foobar", 0, 8);
}
END_TEST

START_TEST(a_wrong_pattern_is_told)
{
	struct wait_condition condition = { WAIT_FOR_PATTERN, "a(b", 0 };
	char longest[WAITS_PATTERN + 2];
	struct waits *w = NULL;
	struct errmsg why;

	ck_assert_int_eq(start_at(&condition, 1, 0, &w, &why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why.text, "a(b"));
	ck_assert_ptr_nonnull(strstr(why.text, "parenthesis"));
	condition.pattern = "";
	ck_assert_int_eq(start_at(&condition, 1, 0, &w, &why), -EINVAL);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	condition.pattern = longest;
	ck_assert_int_eq(start_at(&condition, 1, 0, &w, &why), -EINVAL);
	condition.pattern = "\377";
	ck_assert_int_eq(start_at(&condition, 1, 0, &w, &why), -EINVAL);
	ck_assert_int_eq(start_at(&condition, WAITS_MAX + 1, 0, &w, &why),
			 -E2BIG);
}
END_TEST

START_TEST(idle_is_silence_from_the_start_on)
{
	static const struct wait_condition idle = { WAIT_FOR_IDLE, NULL, 200 };
	_cleanup_(waits_freep) struct waits *w = start(&idle, 1);

	ck_assert_uint_eq(waits_due(w), 1200);
	for (uint64_t now = 1150; now < 3000; now += 150) {
		ck_assert_int_eq(waits_tick(w, now), 0);
		ck_assert_int_eq(feed(w, "x", now), 0);
	}
	ck_assert_int_eq(waits_tick(w, 3149), 0);
	ck_assert_uint_eq(waits_due(w), 3150);
	ck_assert_int_eq(waits_tick(w, 3150), 1);
	ck_assert_uint_eq(waits_result(w)->to, 13);
}
END_TEST

START_TEST(the_first_one_wins)
{
	static const struct wait_condition all[] = {
		{ WAIT_FOR_EXIT, NULL, 0 },	{ WAIT_FOR_PATTERN, "two", 0 },
		{ WAIT_FOR_PATTERN, "one", 0 }, { WAIT_FOR_BYTES, NULL, 100 },
		{ WAIT_FOR_PROMPT, NULL, 0 },	{ WAIT_FOR_IDLE, NULL, 500 },
	};
	static const char long_text[] =
		"....................................................."
		".......................................................one";
	struct waits *w = start(all, 6);

	ck_assert_int_eq(feed(w, "one two", 1000), 1);
	ck_assert_uint_eq(waits_result(w)->index, 2);
	waits_free(w);
	w = start(all, 6);
	ck_assert_int_eq(feed(w, long_text, 1000), 1);
	ck_assert_uint_eq(waits_result(w)->index, 3);
	ck_assert_uint_eq(waits_result(w)->to, 100);
	waits_free(w);
	w = start(all, 6);
	ck_assert_int_eq(feed(w, "$ ", 1000), 0);
	ck_assert_int_eq(waits_prompt(w), 1);
	ck_assert_uint_eq(waits_result(w)->index, 4);
	ck_assert_uint_eq(waits_result(w)->to, 2);
	waits_free(w);
	w = start(all, 6);
	ck_assert_int_eq(waits_exit(w), 1);
	ck_assert_uint_eq(waits_result(w)->index, 0);
	waits_free(w);
	w = start(all, 6);
	ck_assert_int_eq(waits_tick(w, 1500), 1);
	ck_assert_uint_eq(waits_result(w)->index, 5);
	/* It stays so. */
	ck_assert_int_eq(waits_exit(w), 1);
	ck_assert_uint_eq(waits_result(w)->index, 5);
	waits_free(w);
}
END_TEST

/* The last words come before the end that follows them. */
START_TEST(an_end_settles_what_waited)
{
	static const struct wait_condition both[] = {
		{ WAIT_FOR_EXIT, NULL, 0 }, { WAIT_FOR_PATTERN, "bye$", 0 }
	};
	_cleanup_(waits_freep) struct waits *w = start(both, 2);

	ck_assert_int_eq(feed(w, "bye", 1000), 0);
	ck_assert_int_eq(waits_exit(w), 1);
	ck_assert_uint_eq(waits_result(w)->index, 1);
}
END_TEST

START_TEST(nothing_matches_across_what_is_lost)
{
	_cleanup_(waits_freep) struct waits *w = start_pattern("abcd");

	ck_assert_int_eq(feed(w, "ab", 1000), 0);
	ck_assert_int_eq(waits_skip(w, 100, 1000), 0);
	ck_assert_int_eq(feed(w, "cd abcd", 1000), 1);
	check_match(w, "abcd", 103, 107);
}
END_TEST

START_TEST(a_catastrophe_is_an_error_in_time)
{
	static const struct {
		const char *pattern, *text;
		char fill;
	} rows[] = {
		{ "(a+)+$", "!", 'a' },
		{ "(a|a)*b", "c", 'a' },
		{ "(?:a*+b)", "c", 'a' },
		{ "(.*)*x", "\n", 'a' },
		{ "(a?){50}a{50}", "b", 'a' },
		{ "^(([a-z])+.)+[A-Z]", "!\n", 'a' },
		{ "(x+x+)+y", "\n", 'x' },
		{ "a.*b.*c.*d.*e", "\n", 'a' },
	};
	static char fill[60000];
	uint64_t began;
	struct waits *w;
	int r = 0;

	memset(fill, rows[_i].fill, sizeof(fill));
	w = start_pattern(rows[_i].pattern);
	began = clock_ms();
	deadline_ms = began + 20;
	r = waits_feed(w, fill, sizeof(fill), 1000);
	if (r == 0)
		r = feed(w, rows[_i].text, 1000);
	for (unsigned int i = 0; i < 20 && r == 0; i++) {
		deadline_ms = clock_ms() + 20;
		began = clock_ms();
		r = waits_feed(w, fill, sizeof(fill), 1000);
		if (r == 0)
			r = feed(w, rows[_i].text, 1000);
	}
	ck_assert_uint_lt(clock_ms() - began, 500);
	waits_free(w);
}
END_TEST

/* 200 MB without a newline: bounded, and the end is found. */
START_TEST(a_line_without_end_is_searched)
{
	static const char *const patterns[] = { "needle", "[0-9]+ needle",
						"^.*needle$" };
	_cleanup_(waits_freep) struct waits *w = start_pattern(patterns[_i]);
	static char chunk[WINDOW_FEED_MAX];
	unsigned int n = 3200;

	memset(chunk, 'x', sizeof(chunk));
	for (unsigned int i = 0; i < n; i++)
		ck_assert_int_eq(waits_feed(w, chunk, sizeof(chunk), 1000), 0);
	ck_assert_int_eq(feed(w, "12 nee", 1000), 0);
	if (feed(w, "dle", 1000) == 0)
		ck_assert_int_eq(waits_tick(w, 2000), 1);
}
END_TEST

START_TEST(no_memory_is_an_error)
{
	static const struct wait_condition condition = { WAIT_FOR_PATTERN, "a",
							 0 };

	for (unsigned int nth = 1; nth < 4; nth++) {
		struct waits *w = NULL;
		int r;

		oom_arm(nth);
		r = start_at(&condition, 1, 0, &w, NULL);
		if (!oom_disarm()) {
			waits_free(w);
			break;
		}
		ck_assert_int_eq(r, -ENOMEM);
	}
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("waits");

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, a_match_may_straddle_chunks_and_colours);
	tcase_add_test(tcase, each_search_is_told_of);
	tcase_add_test(tcase, what_is_before_the_start_is_not_seen);
	tcase_add_test(tcase, a_number_that_is_torn_is_waited_for);
	tcase_add_test(tcase, a_partial_match_outlives_a_pause);
	tcase_add_test(tcase, a_prompt_at_the_end_matches_after_a_pause);
	tcase_add_test(tcase, a_longer_hope_hides_nothing);
	tcase_add_test(tcase, line_ends_of_a_pattern_are_sane);
	tcase_add_test(tcase, backspaces_are_searched_again);
	tcase_add_test(tcase, a_wrong_pattern_is_told);
	tcase_add_test(tcase, idle_is_silence_from_the_start_on);
	tcase_add_test(tcase, the_first_one_wins);
	tcase_add_test(tcase, an_end_settles_what_waited);
	tcase_add_test(tcase, nothing_matches_across_what_is_lost);
	tcase_add_loop_test(tcase, a_catastrophe_is_an_error_in_time, 0, 8);
	tcase_add_loop_test(tcase, a_line_without_end_is_searched, 0, 3);
	tcase_add_test(tcase, no_memory_is_an_error);
	return suite_run("waits", tcase);
}
