/* SPDX-License-Identifier: MIT */

#include "pty/window.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "tests/unit/suite.h"

static void
feed(struct window *window, const char *bytes, size_t len, size_t piece)
{
	for (size_t at = 0; at < len; at += piece)
		ck_assert_int_eq(
			window_feed(window, bytes + at,
				    len - at < piece ? len - at : piece),
			0);
}

static void
check_text(const char *bytes, const char *text)
{
	size_t len = strlen(bytes);

	for (size_t piece = 1; piece <= len; piece++) {
		_cleanup_(window_fini) struct window window = { 0 };

		feed(&window, bytes, len, piece);
		ck_assert_msg(window.text.len == strlen(text) &&
				      memcmp(window.text.data, text,
					     strlen(text)) == 0,
			      "'%s' is '%.*s'", text, (int)window.text.len,
			      (const char *)window.text.data);
		ck_assert_uint_eq(window.offset, len);
	}
}

START_TEST(output_becomes_text_to_search_in)
{
	static const struct {
		const char *bytes, *text;
	} rows[] = {
		{ "one\r\ntwo\r\r\nthree\n", "one\ntwo\nthree\n" },
		{ "\033[1mwo\033[0;31mrd\033[m", "word" },
		{ " 50%\r 99%\rdone", " 50%\n 99%\ndone" },
		{ "ab\b \bc", "ac" },
		{ "\303\251\bx", "x" },
		{ "x\n\b\by", "x\ny" },
		{ "a\033[3Cb\033[20Gc", "a   b c" },
		{ "a\033[2;1Hb\033[3;1Hc", "a\nb\nc" },
		{ "\033]0;title\aa\002b\tc", "ab\tc" },
		{ "a\r\033[Kb", "a\nb" },
		{ "\377a", "\357\277\275a" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_text(rows[i].bytes, rows[i].text);
}
END_TEST

START_TEST(a_place_in_the_text_has_one_in_the_output)
{
	static const char bytes[] = "ab\033[1mcd\r\nef\033[0m\377gh";
	_cleanup_(window_fini) struct window window = { .offset = 1000 };
	/* text:  a b c d \n e f U+FFFD g h */
	static const unsigned int starts[] = { 0, 1, 6, 7, 9, 10, 11 };

	feed(&window, bytes, strlen(bytes), 3);
	ck_assert_uint_eq(window.text.len, 12);
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		ck_assert_uint_eq(window_start_of(&window, i),
				  1000 + starts[i]);
	ck_assert_uint_eq(window_end_of(&window, 2), 1002);
	ck_assert_uint_eq(window_end_of(&window, 3), 1007);
	ck_assert_uint_eq(window_end_of(&window, 5), 1010);
	ck_assert_uint_eq(window_start_of(&window, 7), 1016);
	ck_assert_uint_eq(window_end_of(&window, 10), 1017);
	ck_assert_uint_eq(window_start_of(&window, 10), 1017);
	ck_assert_uint_eq(window_end_of(&window, 12), 1019);
	ck_assert_uint_eq(window_start_of(&window, 12), 1019);

	window_skip(&window, 5000);
	ck_assert_uint_eq(window.text.len, 0);
	feed(&window, "x", 1, 1);
	ck_assert_uint_eq(window_start_of(&window, 0), 5000);
}
END_TEST

/* One of the worst for the places, one of the worst for the text. */
START_TEST(memory_is_bounded_and_places_stay_right)
{
	static const char *const pieces[] = { "\033[mx", "0123456789",
					      "\303\251", "\377" };
	const char *piece = pieces[_i];
	size_t len = strlen(piece);
	_cleanup_(window_fini) struct window window = { 0 };
	_cleanup_(buf_fini) struct buf chunk = { 0 };

	while (chunk.len + len <= WINDOW_FEED_MAX)
		buf_put(&chunk, piece, len);
	for (unsigned int i = 0; i < 200; i++) {
		size_t at;

		feed(&window, (const char *)chunk.data, chunk.len, chunk.len);
		ck_assert_uint_le(window.text.len, (size_t)2 * WINDOW_BYTES);
		ck_assert_uint_eq(window.offset, (i + 1) * chunk.len);
		ck_assert_ptr_nonnull(window.text.data);
		ck_assert_uint_gt(utf8_length(window.text.data, 4), 0);
		at = window.text.len / 2;
		while ((window.text.data[at] & 0xc0) == 0x80)
			at++;
		ck_assert_uint_eq(
			(window.offset - window_start_of(&window, at)) % len,
			_i == 1	  ? (window.text.len - at) % len
			: _i == 0 ? 1
				  : 0);
	}
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("window");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, output_becomes_text_to_search_in);
	tcase_add_test(tcase, a_place_in_the_text_has_one_in_the_output);
	tcase_add_loop_test(tcase, memory_is_bounded_and_places_stay_right, 0,
			    4);
	return suite_run("window", tcase);
}
