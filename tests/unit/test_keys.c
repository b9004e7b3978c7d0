/* SPDX-License-Identifier: MIT */

#include "pty/keys.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "tests/unit/suite.h"

static const struct keys_modes plain_modes, app_modes = { true, true };

static void
check_keys(const char *names, const struct keys_modes *modes, const char *bytes,
	   size_t len)
{
	_cleanup_(buf_fini) struct buf out = { 0 };
	struct errmsg why = { "" };

	ck_assert_msg(keys_encode(names, modes, &out, &why) == 0, "%s: %s",
		      names, why.text);
	ck_assert_int_eq(buf_error(&out), 0);
	ck_assert_msg(out.len == len && memcmp(out.data, bytes, len) == 0,
		      "%s gives %zu bytes", names, out.len);
}

START_TEST(keys_send_what_xterm_sends)
{
	static const struct {
		const char *names, *bytes, *app; /* NULL: the same */
	} rows[] = {
		{ "a", "a", NULL },
		{ "é", "é", NULL },
		{ "-", "-", NULL },
		{ "^", "^", NULL },
		{ "C-c", "\003", NULL },
		{ "C-C", "\003", NULL },
		{ "^C", "\003", NULL },
		{ "^c", "\003", NULL },
		{ "^[", "\033", NULL },
		{ "C-\\", "\034", NULL },
		{ "C-_", "\037", NULL },
		{ "C-/", "\037", NULL },
		{ "C-?", "\177", NULL },
		{ "C-3", "\033", NULL },
		{ "^M", "\r", NULL },
		{ "M-x", "\033x", NULL },
		{ "M--", "\033-", NULL },
		{ "M-é", "\033é", NULL },
		{ "C-M-x", "\033\030", NULL },
		{ "M-^X", "\033\030", NULL },
		{ "S-a", "A", NULL },
		{ "Enter", "\r", NULL },
		{ "return", "\r", NULL },
		{ "M-Enter", "\033\r", NULL },
		{ "Tab", "\t", NULL },
		{ "BTab", "\033[Z", NULL },
		{ "S-Tab", "\033[Z", NULL },
		{ "Space", " ", NULL },
		{ "Escape", "\033", NULL },
		{ "Backspace", "\177", NULL },
		{ "C-Backspace", "\b", NULL },
		{ "Up", "\033[A", "\033OA" },
		{ "Down", "\033[B", "\033OB" },
		{ "Right", "\033[C", "\033OC" },
		{ "Left", "\033[D", "\033OD" },
		{ "Home", "\033[H", "\033OH" },
		{ "End", "\033[F", "\033OF" },
		{ "S-Up", "\033[1;2A", NULL },
		{ "M-Up", "\033[1;3A", NULL },
		{ "C-Left", "\033[1;5D", NULL },
		{ "C-S-M-End", "\033[1;8F", NULL },
		{ "Insert", "\033[2~", NULL },
		{ "Delete", "\033[3~", NULL },
		{ "C-Delete", "\033[3;5~", NULL },
		{ "PgUp", "\033[5~", NULL },
		{ "PAGEDOWN", "\033[6~", NULL },
		{ "F1", "\033OP", NULL },
		{ "F4", "\033OS", NULL },
		{ "S-F1", "\033[1;2P", NULL },
		{ "F5", "\033[15~", NULL },
		{ "F10", "\033[21~", NULL },
		{ "F12", "\033[24~", NULL },
		{ "C-F12", "\033[24;5~", NULL },
		{ "F13", "\033[1;2P", NULL },
		{ "F24", "\033[24;2~", NULL },
		{ "KP7", "7", "\033Ow" },
		{ "KPEnter", "\r", "\033OM" },
		{ "KP+", "+", "\033Ok" },
		{ "C-c Up F5 M-x  Enter\n", "\003\033[A\033[15~\033x\r",
		  "\003\033OA\033[15~\033x\r" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *app = rows[i].app ? rows[i].app : rows[i].bytes;

		check_keys(rows[i].names, &plain_modes, rows[i].bytes,
			   strlen(rows[i].bytes));
		check_keys(rows[i].names, &app_modes, app, strlen(app));
	}
	check_keys("C-Space", &plain_modes, "\0", 1);
	check_keys("C-@", &plain_modes, "\0", 1);
	check_keys("M-C-Space", &plain_modes, "\033\0", 2);
}
END_TEST

START_TEST(a_wrong_key_is_named)
{
	static const struct {
		const char *names, *word;
	} rows[] = {
		{ "Up Foo Down", "'Foo'" },
		{ "C-é", "'C-é'" },
		{ "C-", "'C-'" },
		{ "F25", "'F25'" },
		{ "S-1", "'S-1'" },
		{ "Up,Down", "'Up,Down'" },
		{ "C-9", "'C-9'" },
		{ "KP", "'KP'" },
		{ "\377", "'\377'" },
		{ "", "no key is named" },
		{ "  ", "no key is named" },
	};
	char longest[2000];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		_cleanup_(buf_fini) struct buf out = { 0 };
		struct errmsg why = { "" };

		ck_assert_int_eq(
			keys_encode(rows[i].names, &plain_modes, &out, &why),
			-EINVAL);
		ck_assert_msg(strstr(why.text, rows[i].word) != NULL, "%s",
			      why.text);
		ck_assert_uint_eq(out.len, 0);
	}
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	{
		_cleanup_(buf_fini) struct buf out = { 0 };

		ck_assert_int_eq(keys_encode(longest, &plain_modes, &out, NULL),
				 -EINVAL);
	}
}
END_TEST

static void
check_paste(const char *text, bool bracketed, const char *bytes)
{
	_cleanup_(buf_fini) struct buf out = { 0 };

	keys_paste(text, strlen(text), bracketed, &out);
	buf_put(&out, "", 1);
	ck_assert_int_eq(buf_error(&out), 0);
	ck_assert_str_eq((const char *)out.data, bytes);
}

START_TEST(a_paste_ends_where_it_ends)
{
	check_paste("a\nb\r\nc\n", false, "a\rb\rc\r");
	check_paste("a\nb", true, "\033[200~a\rb\033[201~");
	check_paste("", true, "\033[200~\033[201~");
	check_paste("x\033[201~rm -r /\n", true,
		    "\033[200~xrm -r /\r\033[201~");
	check_paste("x\033[20\033[201~1~y", true, "\033[200~xy\033[201~");
	check_paste("x\302\233201~y", true, "\033[200~xy\033[201~");
	check_paste("x\033[201~y", false, "x\033[201~y");
	/* The one that begins it is no part of the text. */
	check_paste("[201~y", true, "\033[200~[201~y\033[201~");
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("keys");

	tcase_add_test(tcase, keys_send_what_xterm_sends);
	tcase_add_test(tcase, a_wrong_key_is_named);
	tcase_add_test(tcase, a_paste_ends_where_it_ends);
	return suite_run("keys", tcase);
}
