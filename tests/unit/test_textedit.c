/* SPDX-License-Identifier: MIT */

#include "fusefs/textedit.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

#define ROOM 4096

static int
apply(const char *text, const char *old, const char *new, bool all,
      char ret_text[ROOM], size_t *ret_count)
{
	const struct textedit edit = { .old = old,
				       .new = new,
				       .old_len = strlen(old),
				       .new_len = strlen(new),
				       .all = all };
	_cleanup_(buf_fini) struct buf out = { 0 };
	int r = textedit_apply(&edit, text, strlen(text), ROOM - 1, &out,
			       ret_count);

	if (r == 0) {
		ck_assert_uint_lt(out.len, ROOM);
		if (out.len > 0)
			memcpy(ret_text, out.data, out.len);
		ret_text[out.len] = '\0';
	}
	return r;
}

static const struct {
	const char *text, *old, *new, *want;
	bool all;
} rows[] = {
	{ "a\nb\nc\n", "b", "B", "a\nB\nc\n", false },
	{ "a\nb\nc", "c", "C", "a\nb\nC", false },
	{ "a\r\nb\r\nc\r\n", "b", "B\nB2", "a\r\nB\r\nB2\r\nc\r\n", false },
	{ "a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n", false },
	{ "a\r\nb\r\nc\r\n", "b\r\n", "", "a\r\nc\r\n", false },
	{ "a\r\nb\r\nc\r\n", "\nc", "!\nc", "a\r\nb!\r\nc\r\n", false },
	{ "a\nb\n", "a\r\nb", "c\r\nd", "c\nd\n", false },
	{ "a\r\nb\nc", "c", "C\nD", "a\r\nb\nC\nD", false },
	{ "a\r\nb\nc", "a", "A\nD", "A\r\nD\r\nb\nc", false },
	{ "one", "one", "1\r\n2", "1\r\n2", false },
	{ "\xef\xbb\xbfx\n", "x", "y", "\xef\xbb\xbfy\n", false },
	{ "caf\xe9 one\f\rx\n", "one", "two", "caf\xe9 two\f\rx\n", false },
	{ "aaa", "aa", "b", "ba", true },
	{ "x x x", "x", "yy", "yy yy yy", true },
	{ "a\r\r\nb", "a\r\nb", "-", NULL, false },
	{ "$1 & \\0", "$1", "& $&", "& $& & \\0", false },
};

START_TEST(each_place_keeps_its_line_ends)
{
	char got[ROOM];
	size_t count;
	int r = apply(rows[_i].text, rows[_i].old, rows[_i].new, rows[_i].all,
		      got, &count);

	if (!rows[_i].want) {
		ck_assert_int_eq(r, -ENOENT);
		return;
	}
	ck_assert_int_eq(r, 0);
	ck_assert_str_eq(got, rows[_i].want);
}
END_TEST

START_TEST(what_is_not_there_once_is_told_with_its_count)
{
	char got[ROOM];
	size_t count;

	ck_assert_int_eq(apply("abc", "x", "y", false, got, &count), -ENOENT);
	ck_assert_uint_eq(count, 0);
	ck_assert_int_eq(apply("abc", "", "y", true, got, &count), -ENOENT);
	ck_assert_int_eq(apply("", "x", "y", true, got, &count), -ENOENT);
	ck_assert_int_eq(apply("aXbXcX", "X", "y", false, got, &count),
			 -ENOTUNIQ);
	ck_assert_uint_eq(count, 3);
}
END_TEST

START_TEST(a_result_that_is_too_large_is_refused)
{
	const struct textedit edit = { .old = "a",
				       .new = "bbbb",
				       .old_len = 1,
				       .new_len = 4,
				       .all = true };
	_cleanup_(buf_fini) struct buf out = { 0 };
	size_t count;

	ck_assert_int_eq(textedit_apply(&edit, "aaaa", 4, 15, &out, &count),
			 -EFBIG);
	buf_fini(&out);
	out = (struct buf){ 0 };
	ck_assert_int_eq(textedit_apply(&edit, "aaaa", 4, 16, &out, &count), 0);
}
END_TEST

/* The obvious model: LF texts, one place after the other. */
static size_t
model(const char *text, const char *old, const char *new, char *ret_text)
{
	size_t n = 0;

	while (*text) {
		if (strncmp(text, old, strlen(old)) == 0) {
			ret_text = stpcpy(ret_text, new);
			text += strlen(old);
			n++;
		} else {
			*ret_text++ = *text++;
		}
	}
	*ret_text = '\0';
	return n;
}

static void
random_text(unsigned int *seed, size_t most, char *ret_text)
{
	size_t len = (size_t)rand_r(seed) % most;

	for (size_t i = 0; i < len; i++)
		ret_text[i] = "ab\n"[rand_r(seed) % 3];
	ret_text[len] = '\0';
}

static void
with_crlf(const char *text, char *ret_text)
{
	for (; *text; text++) {
		if (*text == '\n')
			*ret_text++ = '\r';
		*ret_text++ = *text;
	}
	*ret_text = '\0';
}

START_TEST(any_replacement_is_the_models_with_either_line_end)
{
	unsigned int seed = (unsigned int)_i + 1;
	char text[64], old[8], new[8], crlf[128], got[ROOM];
	char want[ROOM], want_crlf[ROOM];
	size_t count, n;

	for (int step = 0; step < 2000; step++) {
		random_text(&seed, sizeof(text), text);
		random_text(&seed, 4, old);
		random_text(&seed, sizeof(new), new);
		/* New line ends in a text without any stay as given. */
		if (!*old || !strchr(text, '\n'))
			continue;
		n = model(text, old, new, want);
		ck_assert_int_eq(apply(text, old, new, true, got, &count),
				 n ? 0 : -ENOENT);
		ck_assert_uint_eq(count, n);
		if (n == 0)
			continue;
		ck_assert_str_eq(got, want);
		with_crlf(text, crlf);
		with_crlf(want, want_crlf);
		ck_assert_int_eq(apply(crlf, old, new, true, got, &count), 0);
		ck_assert_str_eq(got, want_crlf);
	}
}
END_TEST

START_TEST(without_memory_it_is_told)
{
	const struct textedit edit = {
		.old = "a\n", .new = "c\r\n", .old_len = 2, .new_len = 3
	};
	int r = -ENOMEM;

	for (unsigned int n = 1; r != 0 && n < 20; n++) {
		_cleanup_(buf_fini) struct buf out = { 0 };
		size_t count;

		oom_arm(n);
		r = textedit_apply(&edit, "a\r\nb\r\n", 6, ROOM, &out, &count);
		(void)oom_disarm();
		ck_assert(r == 0 || r == -ENOMEM);
		ck_assert(r != 0 || out.len == 6);
	}
	ck_assert_int_eq(r, 0);
}
END_TEST

START_TEST(text_is_utf8_without_nul)
{
	ck_assert(textedit_is_text("", 0));
	ck_assert(textedit_is_text("h\xc3\xa4\n", 4));
	ck_assert(!textedit_is_text("a\0b", 3));
	ck_assert(!textedit_is_text("\xff", 1));
	ck_assert(!textedit_is_text("\xc3", 1));
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("textedit");

	tcase_add_loop_test(tc, each_place_keeps_its_line_ends, 0,
			    (int)(sizeof(rows) / sizeof(rows[0])));
	tcase_add_test(tc, what_is_not_there_once_is_told_with_its_count);
	tcase_add_test(tc, a_result_that_is_too_large_is_refused);
	tcase_add_loop_test(
		tc, any_replacement_is_the_models_with_either_line_end, 0, 8);
	tcase_add_test(tc, without_memory_it_is_told);
	tcase_add_test(tc, text_is_utf8_without_nul);
	return suite_run("textedit", tc);
}
