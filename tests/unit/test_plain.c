/* SPDX-License-Identifier: MIT */

#include "pty/plain.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

/* The text of a whole stream, fed in pieces of `piece` bytes; static. */
static const char *
text_of(const char *bytes, size_t len, unsigned int cols, size_t piece)
{
	static char text[1 << 16];
	_cleanup_(plain_freep) struct plain *plain = NULL;
	_cleanup_(buf_fini) struct buf out = { 0 };

	ck_assert_int_eq(plain_new(cols, &plain), 0);
	for (size_t at = 0; at < len; at += piece)
		plain_feed(plain, bytes + at,
			   len - at < piece ? len - at : piece, &out);
	plain_end(plain, &out);
	ck_assert_int_eq(buf_error(&out), 0);
	ck_assert_uint_lt(out.len, sizeof(text));
	if (out.len > 0)
		memcpy(text, out.data, out.len);
	text[out.len] = '\0';
	return text;
}

struct row {
	const char *bytes, *text;
	unsigned int cols;
};

static void
check_rows(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(rows[i].bytes);

		for (size_t piece = 1; piece <= len + 1; piece++)
			ck_assert_msg(strcmp(text_of(rows[i].bytes, len,
						     rows[i].cols, piece),
					     rows[i].text) == 0,
				      "row %zu, pieces of %zu: '%s'", i, piece,
				      text_of(rows[i].bytes, len, rows[i].cols,
					      piece));
	}
}

#define CHECK_ROWS(rows) check_rows((rows), sizeof(rows) / sizeof((rows)[0]))

START_TEST(a_line_is_as_it_stood_in_the_end)
{
	static const struct row rows[] = {
		{ "one\r\ntwo\r\n", "one\ntwo\n", 0 },
		{ "one\ntwo", "one\ntwo", 0 },
		{ "  0%\r 50%\r100%\r\ndone", "100%\ndone", 0 },
		{ "longer\rxy\n", "xynger\n", 0 },
		{ "longer\r\033[Kxy\n", "xy\n", 0 },
		{ "longer\033[2K\rxy\n", "xy\n", 0 },
		{ "longer\033[3D\033[1Kx\n", "   xer\n", 0 },
		{ "a\bb\n", "b\n", 0 },
		{ "N\bNA\bAM\bM\n", "NAM\n", 0 },
		{ "abc\b \b\b \b\n", "a  \n", 0 },
		{ "abc\b\b\bxyz\n", "xyz\n", 0 },
		{ "\b\bx\n", "x\n", 0 },
		{ "ab\033[2Ccd\n", "ab  cd\n", 0 },
		{ "ab\033[10Gcd\n", "ab       cd\n", 0 },
		{ "abcd\033[3D\033[2@x\n", "ax bcd\n", 0 },
		{ "abcd\033[3D\033[2Px\n", "ax\n", 0 },
		{ "abcd\033[3D\033[2Xx\n", "ax d\n", 0 },
		{ "abcd\033[3D\033[J\n", "a\n", 0 },
	};

	CHECK_ROWS(rows);
}
END_TEST

START_TEST(sequences_leave_no_trace)
{
	static const struct row rows[] = {
		{ "\033[1;31mred\033[0m\n", "red\n", 0 },
		{ "wo\033[38;2;1;2;3mrd\n", "word\n", 0 },
		{ "\033]0;title\acafe\n", "cafe\n", 0 },
		{ "\033]133;A\033\\$ \033]133;B\033\\ls\n", "$ ls\n", 0 },
		{ "\033Pq#0;2~~\033\\x\n", "x\n", 0 },
		{ "\033(B\033)0\033=\033>x\n", "x\n", 0 },
		{ "\033[?2004hx\033[?2004l\033[>4;1m\033[!p\n", "x\n", 0 },
		{ "\033]8;;http://x/\033\\link\033]8;;\033\\\n", "link\n", 0 },
		/* What is broken off ends there. */
		{ "\033[1\030x\n", "x\n", 0 },
		{ "\033[1\033[2mx\n", "x\n", 0 },
		{ "\033]2;t\032x\n", "x\n", 0 },
		{ "\033[1\303\251x\n", "\303\251x\n", 0 },
		/* A control inside acts. */
		{ "ab\033[3\r1mx\n", "xb\n", 0 },
		{ "x\033[", "x", 0 },
		{ "x\033]0;never ended", "x", 0 },
	};

	CHECK_ROWS(rows);
}
END_TEST

START_TEST(controls_are_shown)
{
	static const struct row rows[] = {
		{ "^C is \003\n", "^C is ^C\n", 0 },
		{ "a\177b\n", "a^?b\n", 0 },
		{ "bell\a\n", "bell\n", 0 },
		{ "\302\233x\n", "M-^[x\n", 0 },
		{ "a\tb\n", "a\tb\n", 0 },
		{ "abcdefghijk\r\tX\n", "abcdefghXjk\n", 0 },
		/* A tab that is written into is blank for the rest. */
		{ "a\tb\rxy\n", "xy      b\n", 0 },
		{ "one\vtwo\fthree\n", "one\ntwo\nthree\n", 0 },
	};

	CHECK_ROWS(rows);
	ck_assert_str_eq(text_of("a\0b", 3, 0, 3), "a^@b");
}
END_TEST

START_TEST(characters_are_whole_and_well_formed)
{
	static const struct row rows[] = {
		{ "\303\251\342\202\254\360\237\230\200\n",
		  "\303\251\342\202\254\360\237\230\200\n", 0 },
		{ "\377\n", "\357\277\275\n", 0 },
		{ "\303x\n", "\357\277\275x\n", 0 },
		{ "\342\202x\n", "\357\277\275x\n", 0 },
		{ "\355\240\200\n", "\357\277\275\357\277\275\357\277\275\n",
		  0 },
		{ "\300\200\n", "\357\277\275\357\277\275\n", 0 },
		{ "\364\220\200\200\n",
		  "\357\277\275\357\277\275\357\277\275\357\277\275\n", 0 },
		{ "\342\202", "\357\277\275", 0 },
		{ "\342\202\033[mx", "\357\277\275x", 0 },
		/* Combining ones stay with theirs; wide ones go as a whole. */
		{ "e\314\201\bx\n", "x\n", 0 },
		{ "e\314\201x\n", "e\314\201x\n", 0 },
		{ "\344\270\255\bx\n", " x\n", 0 },
		{ "\344\270\255\rx\n", "x \n", 0 },
	};

	CHECK_ROWS(rows);
}
END_TEST

START_TEST(a_wrapped_line_is_one_line)
{
	static const struct row rows[] = {
		{ "abcdefghijKL\n", "abcdefghijKL\n", 10 },
		/* Line editors write a blank to get to the next row. */
		{ "abcdefghij \rKL\n", "abcdefghijKL\n", 10 },
		{ "abcdefghij\rX\n", "Xbcdefghij\n", 10 },
		{ "abcdefghijkl\rX\n", "abcdefghijXl\n", 10 },
		{ "abcdefghij\bX\n", "abcdefghXj\n", 10 },
		{ "abcdefghijkl\033[AX\n", "abXdefghijkl\n", 10 },
		{ "abcdefghijkl\033[5AX\n", "abcdefghijkl\nX\n", 10 },
		{ "abcdefghijkl\r\033[KX\n", "abcdefghijX\n", 10 },
		/* zsh's mark of a line without end. */
		{ "%         \r \r$ ls\n", "$ ls      \n", 10 },
		{ "%         \r \r\033[J$ ls\n", "$ ls\n", 10 },
		{ "ab\033[99Cx\n", "ab       x\n", 10 },
		{ "abcdefghi\344\270\255\n", "abcdefghi \344\270\255\n", 10 },
	};

	CHECK_ROWS(rows);
}
END_TEST

START_TEST(another_row_is_another_line)
{
	static const struct row rows[] = {
		{ "\033[2J\033[1;1Hone\033[2;1Htwo\033[4;3Hthree",
		  "one\ntwo\n  three", 80 },
		{ "one\033[Btwo\033[Athree", "one\ntwo\nthree", 80 },
		{ "one\033[5dtwo\033Mthree\033[Efour", "one\ntwo\nthree\nfour",
		  80 },
		{ "one\033[2Jtwo", "   two", 80 },
	};

	CHECK_ROWS(rows);
}
END_TEST

START_TEST(a_line_without_end_is_bounded)
{
	_cleanup_(plain_freep) struct plain *plain = NULL;
	_cleanup_(buf_fini) struct buf out = { 0 };
	char piece[1000];
	size_t total = 0;

	memset(piece, 'x', sizeof(piece));
	ck_assert_int_eq(plain_new((unsigned int)_i * 77, &plain), 0);
	for (size_t i = 0; i < 1000; i++) {
		plain_feed(plain, piece, sizeof(piece), &out);
		total += out.len;
		ck_assert_uint_ge(total + PLAIN_LINE_MAX,
				  (i + 1) * sizeof(piece));
		out.len = 0;
	}
	plain_end(plain, &out);
	ck_assert_uint_le(out.len, PLAIN_LINE_MAX);
	ck_assert_uint_eq(total + out.len, 1000 * sizeof(piece));
}
END_TEST

START_TEST(what_is_unfinished_is_told)
{
	_cleanup_(plain_freep) struct plain *plain = NULL;
	_cleanup_(buf_fini) struct buf out = { 0 };
	char title[PLAIN_UNFINISHED_MAX];

	memset(title, 't', sizeof(title));
	ck_assert_int_eq(plain_new(0, &plain), 0);
	plain_feed(plain, "x", 1, &out);
	ck_assert_uint_eq(plain_unfinished(plain), 0);
	plain_feed(plain, "\342\202", 2, &out);
	ck_assert_uint_eq(plain_unfinished(plain), 2);
	plain_feed(plain, "\254", 1, &out);
	ck_assert_uint_eq(plain_unfinished(plain), 0);
	plain_feed(plain, "\033[3", 3, &out);
	ck_assert_uint_eq(plain_unfinished(plain), 3);
	plain_feed(plain, "1m\033]0;", 6, &out);
	ck_assert_uint_eq(plain_unfinished(plain), 4);
	plain_feed(plain, title, sizeof(title), &out);
	ck_assert_uint_eq(plain_unfinished(plain), 0);
}
END_TEST

/* Anything at all, in any split: the same text, and well-formed. */
START_TEST(any_split_gives_the_same_text)
{
	static const char *const bits[] = { "\033[",
					    "\033]",
					    "\033",
					    "\r",
					    "\n",
					    "\b",
					    "\t",
					    "ab",
					    "\303",
					    "\251",
					    "\344\270\255",
					    "e\314\201",
					    "K",
					    "3",
					    ";",
					    "H",
					    "@",
					    "P",
					    "C",
					    "1000",
					    "J",
					    "m",
					    "\a",
					    "\377",
					    "xxxxxxxxxxxxxxxx" };
	unsigned int seed = (unsigned int)_i + 1;
	char stream[4096];
	static char whole[1 << 16];
	size_t len = 0;

	while (len < sizeof(stream) - 32) {
		const char *bit = bits[(size_t)rand_r(&seed) %
				       (sizeof(bits) / sizeof(bits[0]))];

		memcpy(stream + len, bit, strlen(bit));
		len += strlen(bit);
	}
	(void)snprintf(whole, sizeof(whole), "%s",
		       text_of(stream, len, (unsigned int)_i % 40, len));
	for (size_t at = 0; whole[at];) {
		size_t n = utf8_length((const unsigned char *)whole + at,
				       strlen(whole + at));

		ck_assert_uint_gt(n, 0);
		at += n;
	}
	for (size_t piece = 1; piece < 40; piece += 3)
		ck_assert_str_eq(
			text_of(stream, len, (unsigned int)_i % 40, piece),
			whole);
}
END_TEST

START_TEST(no_memory_is_the_buffer_s_error)
{
	_cleanup_(plain_freep) struct plain *plain = NULL;
	_cleanup_(buf_fini) struct buf out = { 0 };

	oom_arm(1);
	ck_assert_int_eq(plain_new(0, &plain), -ENOMEM);
	ck_assert_int_ne(oom_disarm(), 0);
	ck_assert_int_eq(plain_new(0, &plain), 0);
	oom_arm(1);
	plain_feed(plain, "text", 4, &out);
	ck_assert_int_ne(oom_disarm(), 0);
	ck_assert_int_eq(buf_error(&out), -ENOMEM);
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("plain");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, a_line_is_as_it_stood_in_the_end);
	tcase_add_test(tcase, sequences_leave_no_trace);
	tcase_add_test(tcase, controls_are_shown);
	tcase_add_test(tcase, characters_are_whole_and_well_formed);
	tcase_add_test(tcase, a_wrapped_line_is_one_line);
	tcase_add_test(tcase, another_row_is_another_line);
	tcase_add_loop_test(tcase, a_line_without_end_is_bounded, 0, 3);
	tcase_add_test(tcase, what_is_unfinished_is_told);
	tcase_add_loop_test(tcase, any_split_gives_the_same_text, 0, 100);
	tcase_add_test(tcase, no_memory_is_the_buffer_s_error);
	return suite_run("plain", tcase);
}
