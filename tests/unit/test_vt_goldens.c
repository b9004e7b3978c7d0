/* SPDX-License-Identifier: MIT */

/*
 * Screens that were compared with those of other terminals, in
 * tests/goldens/vt.txt: the size, and then for each a stream with \xHH for what
 * is not plain, its lines behind '|' without trailing empty ones, and the
 * cursor behind '@'.  tests/tools/vt-oracle --freeze makes them.
 */

#include <check.h>
#include <stdio.h>

#include "tests/unit/suite.h"
#include "tests/unit/vt_check.h"

#define GOLDENS "tests/goldens/vt.txt"

struct golden {
	char input[8192];
	size_t len;
	char screen[8192];
	unsigned int x, y;
};

static FILE *file;
static unsigned int cols, rows;

static void
setup(void)
{
	file = fopen(GOLDENS, "re");
	ck_assert_msg(file != NULL, "no " GOLDENS " from here");
	ck_assert_int_eq(fscanf(file, "%ux%u\n", &cols, &rows), 2);
}

static void
teardown(void)
{
	(void)fclose(file);
}

static size_t
unescape(char *text)
{
	char *to = text;
	unsigned int byte;

	for (const char *at = text; *at; at++) {
		if (*at == '\\' && sscanf(at + 2, "%2x", &byte) == 1) {
			*to++ = (char)byte;
			at += 3;
		} else {
			*to++ = *at;
		}
	}
	return (size_t)(to - text);
}

static bool
next_golden(struct golden *g)
{
	char line[8192];
	unsigned int n = 0;

	if (!fgets(g->input, sizeof(g->input), file))
		return false;
	g->input[strcspn(g->input, "\n")] = '\0';
	g->len = unescape(g->input);
	g->screen[0] = '\0';
	while (fgets(line, sizeof(line), file) && line[0] == '|') {
		strncat(g->screen, line + 1,
			sizeof(g->screen) - strlen(g->screen) - 1);
		n++;
	}
	for (; n < rows; n++)
		strncat(g->screen, "\n",
			sizeof(g->screen) - strlen(g->screen) - 1);
	ck_assert_int_eq(sscanf(line, "@%u %u", &g->x, &g->y), 2);
	return true;
}

static struct vt *
feed(const struct golden *g, size_t split)
{
	struct vt *vt = NULL;

	ck_assert_int_eq(vt_new(cols, rows, NULL, NULL, NULL, &vt), 0);
	vt_feed(vt, g->input, split);
	vt_feed(vt, g->input + split, g->len - split);
	return vt;
}

START_TEST(every_golden_stream_gives_its_screen)
{
	static struct golden g;
	unsigned int count = 0;

	for (; next_golden(&g); count++) {
		struct vt *vt = feed(&g, g.len);
		struct buf text = { 0 };
		struct vt_state state;

		vt_text(vt, 0, &text);
		buf_put(&text, "", 1);
		vt_state(vt, &state);
		ck_assert_msg(strcmp((char *)text.data, g.screen) == 0,
			      "golden %u:\n%s\ninstead of\n%s", count,
			      (char *)text.data, g.screen);
		ck_assert_msg(state.x == g.x && state.y == g.y,
			      "golden %u: cursor %u %u", count, state.x,
			      state.y);
		ck_assert(vt_is_sound(vt));
		buf_fini(&text);
		(void)vt_free(vt);
	}
	ck_assert_uint_gt(count, 150);
}
END_TEST

START_TEST(every_split_of_every_golden_stream_gives_the_same)
{
	static struct golden g;

	while (next_golden(&g)) {
		struct vt *whole = feed(&g, g.len);

		for (size_t i = 0; i < g.len; i++) {
			struct vt *vt = feed(&g, i);

			ck_assert(vt_same(vt, whole));
			(void)vt_free(vt);
		}
		(void)vt_free(whole);
	}
}
END_TEST

/* Save anywhere, go on with what was restored: as if nothing had been. */
START_TEST(a_golden_stream_goes_on_after_a_restore)
{
	static struct golden g;

	for (unsigned int n = 0; next_golden(&g); n++) {
		size_t split = g.len * (n % 7 + 1) / 8;
		struct vt *whole = feed(&g, g.len), *vt = NULL, *again = NULL;
		struct buf saved = { 0 };

		ck_assert_int_eq(vt_new(cols, rows, NULL, NULL, NULL, &vt), 0);
		vt_feed(vt, g.input, split);
		vt_save(vt, &saved);
		ck_assert_int_eq(vt_restore(saved.data, saved.len, NULL, NULL,
					    NULL, &again),
				 0);
		ck_assert(vt_same(vt, again));
		vt_feed(again, g.input + split, g.len - split);
		ck_assert(vt_same(again, whole));
		buf_fini(&saved);
		(void)vt_free(vt);
		(void)vt_free(again);
		(void)vt_free(whole);
	}
}
END_TEST

/* Another terminal that is painted shows the same text, cursor and looks. */
START_TEST(a_painted_terminal_shows_every_golden_screen)
{
	static struct golden g;

	while (next_golden(&g)) {
		struct vt *vt = feed(&g, g.len), *shown = NULL;
		struct buf paint = { 0 }, a = { 0 }, b = { 0 };
		struct vt_state x, y;

		ck_assert_int_eq(vt_new(cols, rows, NULL, NULL, NULL, &shown),
				 0);
		vt_repaint(vt, 0, 0, &paint);
		vt_feed(shown, "junk \033[31;1m\033[?1003h\033[4h", 25);
		vt_feed(shown, paint.data, paint.len);
		vt_text(vt, 0, &a);
		vt_text(shown, 0, &b);
		ck_assert_uint_eq(a.len, b.len);
		ck_assert_mem_eq(a.data, b.data, a.len);
		vt_state(vt, &x);
		vt_state(shown, &y);
		ck_assert_uint_eq(x.x, y.x);
		ck_assert_uint_eq(x.y, y.y);
		ck_assert_uint_eq(x.mouse, y.mouse);
		ck_assert(x.alt == y.alt);
		/* What the program prints next comes out the same. */
		vt_feed(vt, "next\r\n\033[2Lx", 11);
		vt_feed(shown, "next\r\n\033[2Lx", 11);
		a.len = b.len = 0;
		vt_text(vt, 0, &a);
		vt_text(shown, 0, &b);
		ck_assert_uint_eq(a.len, b.len);
		ck_assert_mem_eq(a.data, b.data, a.len);
		buf_fini(&paint);
		buf_fini(&a);
		buf_fini(&b);
		(void)vt_free(vt);
		(void)vt_free(shown);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("vt_goldens");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, every_golden_stream_gives_its_screen);
	tcase_add_test(tc, every_split_of_every_golden_stream_gives_the_same);
	tcase_add_test(tc, a_golden_stream_goes_on_after_a_restore);
	tcase_add_test(tc, a_painted_terminal_shows_every_golden_screen);
	return suite_run("vt_goldens", tc);
}
