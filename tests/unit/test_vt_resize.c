/* SPDX-License-Identifier: MIT */

/* Lines, history and the cursor when the size changes. */

#include <check.h>
#include <stdio.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"
#include "tests/unit/vt_check.h"

static struct vt *vt;
static struct buf out;

static void
make(unsigned int cols, unsigned int rows)
{
	vt = vt_free(vt);
	ck_assert_int_eq(vt_new(cols, rows, NULL, NULL, NULL, &vt), 0);
}

static void
setup(void)
{
	out = (struct buf){ 0 };
	vt = NULL;
}

static void
teardown(void)
{
	vt = vt_free(vt);
	buf_fini(&out);
}

static void
feed(const char *text)
{
	vt_feed(vt, text, strlen(text));
}

static const char *
lines(void)
{
	out.len = 0;
	(void)vt_lines(vt, 0, 100000, &out);
	buf_put(&out, "", 1);
	ck_assert_int_eq(buf_error(&out), 0);
	return (const char *)out.data;
}

static const char *
screen(unsigned int scrollback)
{
	out.len = 0;
	vt_text(vt, scrollback, &out);
	buf_put(&out, "", 1);
	ck_assert_int_eq(buf_error(&out), 0);
	return (const char *)out.data;
}

static void
resize(unsigned int cols, unsigned int rows)
{
	ck_assert_int_eq(vt_resize(vt, cols, rows), 0);
	ck_assert(vt_is_sound(vt));
}

/* The character that the cursor stands on. */
static uint32_t
under_cursor(void)
{
	return grid_row(vt->grid, vt->cursor.y)->cells[vt->cursor.x].ch;
}

START_TEST(a_wrapped_prompt_comes_back_as_it_was)
{
	char prompt[200], before[8192];
	struct vt_state was, is;

	make(120, 24);
	for (int i = 0; i < 30; i++) {
		(void)snprintf(prompt, sizeof(prompt), "line %d\r\n", i);
		feed(prompt);
	}
	memset(prompt, 'p', 150);
	(void)snprintf(prompt + 150, 40, "$ edit\033[2DX\033[D");
	feed(prompt);
	(void)snprintf(before, sizeof(before), "%s", screen(50));
	vt_state(vt, &was);
	ck_assert_uint_eq(under_cursor(), 'X');

	resize(40, 24);
	ck_assert_uint_eq(under_cursor(), 'X');
	resize(7, 10);
	ck_assert_uint_eq(under_cursor(), 'X');
	resize(40, 24);
	resize(120, 24);
	ck_assert_str_eq(screen(50), before);
	vt_state(vt, &is);
	ck_assert_uint_eq(is.x, was.x);
	ck_assert_uint_eq(is.y, was.y);
}
END_TEST

START_TEST(lines_are_the_same_at_every_width)
{
	char text[4096], before[65536];
	unsigned int seed = (unsigned int)_i + 1;

	make(31, 6);
	for (int i = 0; i < 60; i++) {
		int len = rand_r(&seed) % 100, n = 0;

		for (int x = 0; x < len; x++)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s",
				      rand_r(&seed) % 5	  ? "a"
				      : rand_r(&seed) % 2 ? "\xe4\xb8\xad"
							  : "e\xcc\x81");
		(void)snprintf(text + n, sizeof(text) - (size_t)n, ".\r\n");
		feed(text);
	}
	(void)snprintf(before, sizeof(before), "%s", lines());
	for (int i = 0; i < 40; i++) {
		resize(2 + (unsigned int)rand_r(&seed) % 60,
		       1 + (unsigned int)rand_r(&seed) % 20);
		ck_assert_str_eq(lines(), before);
	}
}
END_TEST

START_TEST(what_was_cleared_is_not_joined_to_what_scrolled_off)
{
	make(10, 3);
	feed("aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd");
	feed("\033[H\033[2Jnew");
	resize(40, 3);
	ck_assert_str_eq(screen(0), "new\n\n\n");
	ck_assert_ptr_nonnull(strstr(lines(), "aaaaaaaaaa\nnew\n"));
}
END_TEST

START_TEST(a_full_screen_stays_full_and_a_cleared_one_stays_clear)
{
	make(20, 4);
	feed("1\r\n2\r\n3\r\n4\r\n5\r\n6");
	resize(20, 6);
	ck_assert_str_eq(screen(0), "1\n2\n3\n4\n5\n6\n");
	resize(20, 2);
	ck_assert_str_eq(screen(0), "5\n6\n");
	feed("\033[H\033[Jx");
	resize(20, 4);
	ck_assert_str_eq(screen(0), "x\n\n\n\n");
	ck_assert_str_eq(screen(2), "3\n4\nx\n\n\n\n");
}
END_TEST

START_TEST(the_alternate_screen_is_not_rewrapped)
{
	make(10, 3);
	feed("0123456789abc\033[?1049h\033[HABCDEFGHIJKL");
	resize(5, 3);
	ck_assert_str_eq(screen(0), "ABCDE\nKL\n\n");
	resize(20, 3);
	ck_assert_str_eq(screen(0), "ABCDE\nKL\n\n");
	feed("\033[?1049l!");
	ck_assert_str_eq(screen(0), "0123456789abc!\n\n\n");
}
END_TEST

START_TEST(sizes_are_clamped)
{
	struct vt_state state;

	make(0, 0);
	feed("ab\xe4\xb8\xad\xe4\xb8\xad"
	     "c\033[99;99Hd");
	vt_state(vt, &state);
	ck_assert_uint_eq(state.cols, 2);
	ck_assert_uint_eq(state.rows, 1);
	resize(1, 1);
	resize(65535, 65535);
	vt_state(vt, &state);
	ck_assert_uint_eq(state.cols, VT_COLS_MAX);
	ck_assert_uint_eq(state.rows, VT_ROWS_MAX);
	resize(1, 1);
	feed("\xf0\x9f\x98\x80\033[3@\033[2P\033[4X");
	ck_assert(vt_is_sound(vt));
}
END_TEST

/* The place that is left blank at a margin was the left half of another one. */
START_TEST(a_margin_through_a_wide_character_leaves_no_half)
{
	make(16, 3);
	feed("\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad"
	     "\033[?69h\033[3;7s\033[1;7H\xe4\xb8\xad");
	ck_assert(vt_is_sound(vt));
	ck_assert_str_eq(screen(0), "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\n"
				    "  \xe4\xb8\xad\n\n");
}
END_TEST

START_TEST(without_memory_nothing_changes)
{
	int failed = 0;

	make(20, 4);
	feed("\033[31maaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nb");
	feed("\r\n\r\n\r\n\r\n\033[?1049hx\033[?1049l");
	for (unsigned int n = 1; n < 40; n++) {
		struct buf before = { 0 }, after = { 0 };
		int r;

		vt_save(vt, &before);
		oom_arm(n);
		r = vt_resize(vt, 7 + n % 3, 4);
		(void)oom_disarm();
		vt_save(vt, &after);
		ck_assert(vt_is_sound(vt));
		if (r < 0) {
			failed++;
			ck_assert_int_eq(r, -ENOMEM);
			ck_assert_uint_eq(before.len, after.len);
			ck_assert_mem_eq(before.data, after.data, after.len);
		}
		buf_fini(&before);
		buf_fini(&after);
	}
	ck_assert_int_gt(failed, 3);
}
END_TEST

START_TEST(history_is_paged_by_lines_from_the_newest)
{
	char text[32];

	make(10, 4);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(text, sizeof(text), "%d-1234567890\r\n", i);
		feed(text);
	}
	out.len = 0;
	ck_assert_uint_eq(vt_lines(vt, 1, 3, &out), 3);
	buf_put(&out, "", 1);
	ck_assert_str_eq((char *)out.data,
			 "97-1234567890\n98-1234567890\n99-1234567890\n");
	out.len = 0;
	ck_assert_uint_eq(vt_lines(vt, 99, 5, &out), 2);
	ck_assert_uint_eq(vt_lines(vt, 1000, 5, &out), 0);
}
END_TEST

START_TEST(history_has_its_bounds)
{
	static const struct vt_limits limits = { .history_lines = 100 };
	struct vt_state state;
	char text[64];

	ck_assert_int_eq(vt_new(80, 24, &limits, NULL, NULL, &vt), 0);
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(text, sizeof(text), "\033[38;5;%dm%d\r\n",
			       i % 256, i);
		feed(text);
	}
	vt_state(vt, &state);
	ck_assert_uint_eq(state.history, 100);
	ck_assert_uint_lt(vt->history.bytes, 200000);
	feed("\033[3J");
	vt_state(vt, &state);
	ck_assert_uint_eq(state.history, 100);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("vt_resize");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_wrapped_prompt_comes_back_as_it_was);
	tcase_add_loop_test(tc, lines_are_the_same_at_every_width, 0, 20);
	tcase_add_test(tc, what_was_cleared_is_not_joined_to_what_scrolled_off);
	tcase_add_test(tc,
		       a_full_screen_stays_full_and_a_cleared_one_stays_clear);
	tcase_add_test(tc, the_alternate_screen_is_not_rewrapped);
	tcase_add_test(tc, sizes_are_clamped);
	tcase_add_test(tc, a_margin_through_a_wide_character_leaves_no_half);
	tcase_add_test(tc, without_memory_nothing_changes);
	tcase_add_test(tc, history_is_paged_by_lines_from_the_newest);
	tcase_add_test(tc, history_has_its_bounds);
	return suite_run("vt_resize", tc);
}
