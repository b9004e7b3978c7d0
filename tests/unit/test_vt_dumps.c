/* SPDX-License-Identifier: MIT */

/* The screen as text, with colours, as JSON, and for another terminal. */

#include <check.h>
#include <jansson.h>
#include <stdio.h>

#include "tests/unit/suite.h"
#include "tests/unit/vt_check.h"

static struct vt *vt;
static struct buf out;

static void
setup(void)
{
	out = (struct buf){ 0 };
	ck_assert_int_eq(vt_new(20, 4, NULL, NULL, NULL, &vt), 0);
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
dumped(void)
{
	buf_put(&out, "", 1);
	ck_assert_int_eq(buf_error(&out), 0);
	out.len = 0;
	return (const char *)out.data;
}

START_TEST(colours_are_told_with_the_text)
{
	static const struct {
		const char *stream, *ansi;
	} cases[] = {
		{ "a\033[31mb\033[mc", "a\033[0;31mb\033[0mc\n\n\n\n" },
		{ "\033[1;3;4:3;9;53mx",
		  "\033[0;1;3;9;53;4:3mx\033[0m\n\n\n\n" },
		{ "\033[38;5;200;48:2::1:2:3;58;5;9mx",
		  "\033[0;38;5;200;48;2;1;2;3;58;5;9mx\033[0m\n\n\n\n" },
		{ "\033[38:2:1:2:3mx", "\033[0;38;2;1;2;3mx\033[0m\n\n\n\n" },
		{ "\033[91;107mx", "\033[0;91;107mx\033[0m\n\n\n\n" },
		{ "\033[1;31m\033[22;39mx", "x\n\n\n\n" },
		{ "\033[38;2;1m\033[38;5mx", "x\n\n\n\n" },
		{ "\033[41m\033[K", NULL },
		{ "\033]8;id=q;http://a/\033\\x\033]8;;\033\\y",
		  "\033]8;id=q;http://a/\033\\x\033]8;;\033\\y\n\n\n\n" },
		{ "\033]8;;javascript:1\033\\x", "x\n\n\n\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		feed(cases[i].stream);
		vt_ansi(vt, 0, &out);
		if (cases[i].ansi)
			ck_assert_str_eq(dumped(), cases[i].ansi);
		else
			ck_assert_str_eq(dumped(), "\033[0;41m"
						   "                    "
						   "\033[0m\n\n\n\n");
		teardown();
		setup();
	}
}
END_TEST

START_TEST(json_tells_text_looks_and_modes)
{
	json_t *root, *line, *run;

	feed("\033]2;the \"title\"\a\033[?2004h\033[?1002;1006h\033[5 q");
	feed("\033[1;31mred\033[m \xe4\xb8\xad\r\n0123456789012345678901");
	vt_json(vt, 0, &out);
	root = json_loads(dumped(), 0, NULL);
	ck_assert_ptr_nonnull(root);
	ck_assert_str_eq(json_string_value(json_object_get(root, "title")),
			 "the \"title\"");
	ck_assert_int_eq(json_integer_value(json_object_get(root, "cols")), 20);
	ck_assert_int_eq(json_integer_value(json_object_get(
				 json_object_get(root, "cursor"), "y")),
			 2);
	ck_assert_int_eq(json_integer_value(json_object_get(
				 json_object_get(root, "modes"), "mouse")),
			 1002);
	line = json_array_get(json_object_get(root, "lines"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(line, "text")),
			 "red \xe4\xb8\xad");
	run = json_array_get(json_object_get(line, "runs"), 0);
	ck_assert_int_eq(json_integer_value(json_object_get(run, "fg")), 1);
	ck_assert_int_eq(json_integer_value(json_object_get(run, "cols")), 3);
	ck_assert(json_is_true(json_object_get(run, "bold")));
	line = json_array_get(json_object_get(root, "lines"), 1);
	ck_assert(json_is_true(json_object_get(line, "wrapped")));
	json_decref(root);
}
END_TEST

START_TEST(scrollback_comes_before_the_screen)
{
	char text[16];

	for (int i = 0; i < 10; i++) {
		(void)snprintf(text, sizeof(text), "%d\r\n", i);
		feed(text);
	}
	vt_text(vt, 3, &out);
	ck_assert_str_eq(dumped(), "4\n5\n6\n7\n8\n9\n\n");
	vt_text(vt, 100, &out);
	ck_assert_str_eq(dumped(), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n\n");
}
END_TEST

/* A program in the alternate screen ends: the person has the shell again. */
START_TEST(under_a_painted_program_is_the_primary_screen)
{
	struct vt *shown = NULL;
	struct vt_state state;

	feed("$ vim\r\n\033[?1049h\033[?1h\033=\033[?1002h\033[2;3r~\033[3;1H");
	feed("\033[31m~");
	vt_repaint(vt, 0, 0, &out);
	ck_assert_int_eq(vt_new(20, 4, NULL, NULL, NULL, &shown), 0);
	vt_feed(shown, out.data, out.len);
	vt_state(shown, &state);
	ck_assert(state.alt && state.app_cursor && state.app_keypad);
	ck_assert_uint_eq(state.mouse, 1002);
	ck_assert_uint_eq(shown->margins.top, 1);
	ck_assert_uint_eq(shown->cursor.pen.fg, COLOR_PALETTE | 1);
	vt_feed(shown, "\033[?1049l", 8);
	out.len = 0;
	vt_text(shown, 0, &out);
	ck_assert_str_eq(dumped(), "$ vim\n\n\n\n");
	vt_state(shown, &state);
	ck_assert_uint_eq(state.y, 1);
	(void)vt_free(shown);
}
END_TEST

/* Its cursor too, told from margins that are on. */
START_TEST(under_a_painted_program_the_cursor_is_where_it_was)
{
	static const char *const streams[] = {
		"\033[2;4r\033[?6h\033[2;5H\033[?1049h",
		"\033[?69h\033[3;9s\033[2;3Haaaaaaa\033[?1049h",
		"\033[?69h\033[?6h\033[1;20Hx\0337\033[1;9s\033[?47h",
	};

	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		struct buf text = { 0 };
		struct vt *shown = NULL;

		feed(streams[i]);
		vt_repaint(vt, 0, 0, &out);
		ck_assert_int_eq(vt_new(20, 4, NULL, NULL, NULL, &shown), 0);
		vt_feed(shown, out.data, out.len);
		vt_feed(shown, "\033[?1049l", 8);
		feed("\033[?1049l");
		ck_assert_uint_eq(shown->cursor.x, vt->cursor.x);
		ck_assert_uint_eq(shown->cursor.y, vt->cursor.y);
		out.len = 0;
		vt_text(vt, 0, &out);
		vt_text(shown, 0, &text);
		buf_put(&text, "", 1);
		ck_assert_str_eq((const char *)text.data, dumped());
		(void)vt_free(shown);
		buf_fini(&text);
		teardown();
		setup();
	}
}
END_TEST

START_TEST(a_smaller_terminal_sees_the_part_around_the_cursor)
{
	struct vt *shown = NULL;
	struct vt_state state;

	feed("0123456789\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad"
	     "abcd\r\n1\r\n2"
	     "\r\n3\033[1;14H");
	vt_repaint(vt, 4, 2, &out);
	ck_assert_int_eq(vt_new(4, 2, NULL, NULL, NULL, &shown), 0);
	vt_feed(shown, out.data, out.len);
	out.len = 0;
	vt_text(shown, 0, &out);
	ck_assert_str_eq(dumped(), "\xe4\xb8\xad\xe4\xb8\xad\n\n");
	vt_state(shown, &state);
	ck_assert_uint_eq(state.x, 3);
	ck_assert_uint_eq(state.y, 0);
	(void)vt_free(shown);
	shown = NULL;
	for (unsigned int cols = 1; cols < 25; cols++) {
		out.len = 0;
		vt_repaint(vt, cols, 1, &out);
		ck_assert_int_eq(vt_new(cols, 1, NULL, NULL, NULL, &shown), 0);
		vt_feed(shown, out.data, out.len);
		ck_assert(vt_is_sound(shown));
		ck_assert_uint_eq(shown->history.count, 0);
		shown = vt_free(shown);
	}
}
END_TEST

/* The cursor that a program saved has looks and charsets of its own. */
START_TEST(a_painted_screen_shows_the_same)
{
	static const char *const streams[] = {
		"\033(0\0337\033(B0123456789012345678e",
		"\033)0\016\0337\0170123456789012345678e",
		"\033[1\"q\033[31m\0337\033[0\"q\033[m0123456789012345678e",
		"0123456789012345678\033]8;id=q;http://a/\033\\x",
		"01234567890123456789a\033[?69;6;45h\033[1;9s\033[2H\b",
	};

	for (size_t i = 0; i < sizeof(streams) / sizeof(*streams); i++) {
		struct buf text = { 0 };
		struct vt *shown = NULL;
		struct vt_state state, other;

		feed(streams[i]);
		vt_repaint(vt, 0, 0, &out);
		ck_assert_int_eq(vt_new(20, 4, NULL, NULL, NULL, &shown), 0);
		vt_feed(shown, out.data, out.len);
		out.len = 0;
		vt_ansi(vt, 0, &out);
		vt_ansi(shown, 0, &text);
		buf_put(&text, "", 1);
		ck_assert_str_eq((const char *)text.data, dumped());
		vt_state(vt, &state);
		vt_state(shown, &other);
		ck_assert_uint_eq(other.x, state.x);
		ck_assert_uint_eq(other.y, state.y);
		ck_assert(shown->cursor.pending == vt->cursor.pending);
		ck_assert_uint_eq(grid_row(shown->grid, 0)->cells[19].flags,
				  grid_row(vt->grid, 0)->cells[19].flags);
		(void)vt_free(shown);
		buf_fini(&text);
		teardown();
		setup();
	}
}
END_TEST

START_TEST(a_terminal_is_given_back_as_it_was)
{
	struct vt *shown = NULL;

	ck_assert_int_eq(vt_new(20, 4, NULL, NULL, NULL, &shown), 0);
	feed("\033[?1049h\033[?1003h\033[?1006h\033[?2004h\033[?25l\033[?7l"
	     "\033[2;3r\033[?6h\033[4h\033[1;31m\033(0\033]8;;http://x\a"
	     "\033]4;1;#123456\a\033[5 q\033[?1h\033=\033[?5h\033[?1004h");
	vt_repaint(vt, 0, 0, &out);
	vt_unpaint(vt, &out);
	vt_feed(shown, out.data, out.len);
	ck_assert(shown->modes == MODES_DEFAULT);
	ck_assert_uint_eq(shown->active, PRIMARY);
	ck_assert(style_same(&shown->cursor.pen, &(struct style){ 0 }));
	ck_assert_uint_eq(shown->margins.bottom - shown->margins.top, 4);
	ck_assert_uint_eq(shown->cursor_shape, 0);
	ck_assert_ptr_null(shown->palette);
	ck_assert_uint_eq(shown->cursor.charset[0], CHARSET_ASCII);
	(void)vt_free(shown);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("vt_dumps");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, colours_are_told_with_the_text);
	tcase_add_test(tc, json_tells_text_looks_and_modes);
	tcase_add_test(tc, scrollback_comes_before_the_screen);
	tcase_add_test(tc, under_a_painted_program_is_the_primary_screen);
	tcase_add_test(tc, under_a_painted_program_the_cursor_is_where_it_was);
	tcase_add_test(tc, a_smaller_terminal_sees_the_part_around_the_cursor);
	tcase_add_test(tc, a_painted_screen_shows_the_same);
	tcase_add_test(tc, a_terminal_is_given_back_as_it_was);
	return suite_run("vt_dumps", tc);
}
