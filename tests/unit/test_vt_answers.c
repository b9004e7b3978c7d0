/* SPDX-License-Identifier: MIT */

/* What the model answers, tells its owner, and keeps from attached people. */

#include <check.h>

#include "tests/unit/suite.h"
#include "tests/unit/vt_check.h"

/* Everything that came out, as text. */
static struct buf replies, events, passed;
static const char *fed;
static size_t passed_to;
static struct vt *vt;

static void
on_reply(void *data, const void *bytes, size_t len)
{
	(void)data;
	buf_put(&replies, bytes, len);
}

static void
pass(size_t to)
{
	if (fed && to > passed_to)
		buf_put(&passed, fed + passed_to, to - passed_to);
	passed_to = to;
}

static void
on_cut(void *data, uint64_t from, uint64_t to, enum vt_cut why)
{
	(void)data;
	(void)why;
	ck_assert_uint_ge(from, passed_to);
	pass(from);
	passed_to = to;
}

static void
on_event(void *data, const struct vt_event *e)
{
	static const char *const kinds[] = { "title",  "cwd",	    "bell",
					     "mark",   "clipboard", "notify",
					     "screen", "reset",	    "repaint" };

	(void)data;
	buf_putf(&events, "%s", kinds[e->kind]);
	if (e->kind == VT_EVENT_MARK)
		buf_putf(&events, " %c %d%s%s", e->mark, e->exit_code,
			 e->trusted ? " trusted" : "",
			 e->secondary ? " secondary" : "");
	if (e->text) {
		buf_puts(&events, " ");
		buf_put(&events, e->text, e->len);
	}
	buf_puts(&events, "\n");
	ck_assert_uint_le(e->from, e->to);
}

static const struct vt_ops ops = { on_reply, on_cut, on_event };

static void
setup(void)
{
	replies = events = passed = (struct buf){ 0 };
	passed_to = 0;
	fed = NULL;
	ck_assert_int_eq(vt_new(80, 24, NULL, &ops, NULL, &vt), 0);
}

static void
teardown(void)
{
	buf_fini(&replies);
	buf_fini(&events);
	buf_fini(&passed);
	vt = vt_free(vt);
}

static void
feed(const char *text)
{
	vt_feed(vt, text, strlen(text));
}

static const char *
text_of(struct buf *b)
{
	buf_put(b, "", 1);
	ck_assert_int_eq(buf_error(b), 0);
	b->len = 0;
	return (const char *)b->data;
}

static const struct {
	const char *query, *reply;
} answers[] = {
	{ "\033[c", "\033[?62;22c" },
	{ "\033[0c", "\033[?62;22c" },
	{ "\033Z", "\033[?62;22c" },
	{ "\033[>c", "\033[>1;100;0c" },
	{ "\033[=c", "\033P!|50414c45\033\\" },
	{ "\033[5n", "\033[0n" },
	{ "\033[3;7H\033[6n", "\033[3;7R" },
	{ "\033[3;7H\033[?6n", "\033[?3;7R" },
	{ "\033[5;9r\033[?6h\033[2;4H\033[6n", "\033[2;4R" },
	{ "\033[?996n", "\033[?997;1n" },
	{ "\033]11;#ffffff\a\033[?996n", "\033[?997;2n" },
	{ "\033[?7$p", "\033[?7;1$y" },
	{ "\033[?2026$p", "\033[?2026;2$y" },
	{ "\033[?2026h\033[?2026$p", "\033[?2026;1$y" },
	{ "\033[?1049h\033[?1049$p", "\033[?1049;1$y" },
	{ "\033[?3$p", "\033[?3;4$y" },
	{ "\033[?4242$p", "\033[?4242;0$y" },
	{ "\033[4$p", "\033[4;2$y" },
	{ "\033P$qm\033\\", "\033P1$r0m\033\\" },
	{ "\033[1;38;5;9;48;2;1;2;3;4:3m\033P$qm\033\\",
	  "\033P1$r0;1;4:3;91;48;2;1;2;3m\033\\" },
	{ "\033[2;9r\033P$qr\033\\", "\033P1$r2;9r\033\\" },
	{ "\033[5 q\033P$q q\033\\", "\033P1$r5 q\033\\" },
	{ "\033P$qevil\033\\", "\033P0$r\033\\" },
	{ "\033[>q", "\033P>|pale(" VERSION ")\033\\" },
	{ "\033[?u", "\033[?0u" },
	{ "\033[14t", "\033[4;384;640t" },
	{ "\033[16t", "\033[6;16;8t" },
	{ "\033[18t", "\033[8;24;80t" },
	{ "\033]10;?\a", "\033]10;rgb:e5e5/e5e5/e5e5\a" },
	{ "\033]11;?\033\\", "\033]11;rgb:0000/0000/0000\033\\" },
	{ "\033]10;?;?\a", "\033]10;rgb:e5e5/e5e5/e5e5\a"
			   "\033]11;rgb:0000/0000/0000\a" },
	{ "\033]12;rgb:f/80/0000\a\033]12;?\a",
	  "\033]12;rgb:ffff/8080/0000\a" },
	{ "\033]4;1;?\a", "\033]4;1;rgb:cdcd/0000/0000\a" },
	{ "\033]4;1;#123456\a\033]4;1;?\a", "\033]4;1;rgb:1212/3434/5656\a" },
	{ "\033]4;1;#123456\a\033]104;1\a\033]4;1;?\a",
	  "\033]4;1;rgb:cdcd/0000/0000\a" },
	{ "\033P+q544E;beef\033\\",
	  "\033P1+r544e=787465726d2d323536636f6c6f72\033\\"
	  "\033P0+r\033\\" },
	/* Never: the title, the clipboard, the screen's own text, ENQ. */
	{ "\033]2;echo evil\a\033[21t\033[20t", "" },
	{ "\033]52;c;?\a", "" },
	{ "secret\033[1;1;1;1;1;6*y", "" },
	{ "\005", "" },
	{ "\033[x", "" },
};

START_TEST(a_query_has_its_answer)
{
	feed(answers[_i].query);
	ck_assert_str_eq(text_of(&replies), answers[_i].reply);
}
END_TEST

/* A person's terminal is one more model: of what it gets it answers nothing. */
START_TEST(no_person_is_asked)
{
	size_t len = strlen(answers[_i].query);
	struct vt *theirs = NULL;

	fed = answers[_i].query;
	feed(fed);
	pass(len);
	replies.len = 0;
	ck_assert_int_eq(vt_new(80, 24, NULL, &ops, NULL, &theirs), 0);
	fed = NULL;
	passed_to = 0;
	vt_feed(theirs, passed.data, passed.len);
	ck_assert_uint_eq(replies.len, 0);
	(void)vt_free(theirs);
}
END_TEST

START_TEST(people_get_the_stream_without_what_answers)
{
	static const struct {
		const char *stream, *shown;
	} cases[] = {
		{ "a\033[cb", "ab" },
		{ "a\033[31mb\033[6nc", "a\033[31mbc" },
		{ "\033]0;title\007x", "x" },
		{ "\033]52;c;aGk=\007x", "x" },
		{ "\033]8;;http://a\033\\x", "\033]8;;http://a\033\\x" },
		{ "\033]8;;javascript:1\033\\x", "x" },
		{ "\033P$qm\033\\x", "x" },
		{ "\033_Gi=1\033\\x", "x" },
		{ "\033[?2031hx", "x" },
		{ "\033[>4;2mx", "x" },
		{ "\033[?25lx", "\033[?25lx" },
		{ "\033[12\033[31mx", "\033[31mx" },
		{ "\033[12\030x", "x" },
		{ "\033]0;t\033[cx", "x" },
		{ "\302\233cx\302\205", "cx" },
		{ "\033]8;;a\302\234\033\\x", "x" },
		{ "\0333Jx\033[3Jy", "Jxy" },
		{ "\005x", "x" },
		{ "\033Zx", "x" },
		{ "\xe4\xb8\xad\xff", "\xe4\xb8\xad\xff" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		fed = cases[i].stream;
		feed(fed);
		ck_assert_uint_eq(vt_safe(vt), strlen(fed));
		pass(strlen(fed));
		ck_assert_str_eq(text_of(&passed), cases[i].shown);
		teardown();
		setup();
	}
}
END_TEST

/* Who is given the stream without the cuts sees what the model shows. */
START_TEST(people_see_the_screen_of_the_model)
{
	static const char *const pieces[] = {
		"word ",
		"\r\n",
		"\xe4\xb8\xad",
		"e\xcc\x81",
		"\033[3;3H",
		"\033[31m",
		"\033[c",
		"\033[6n",
		"\033]0;t\a",
		"\033]8;;x:y\a",
		"\033[?1049h",
		"\033[?1049l",
		"\033[99z",
		"\033[3J",
		"\033[2J",
		"\033[>4;1m",
		"\033[?2031h",
		"\033[?7;8888l",
		"\033[1\n2C",
		"\033[",
		"\033",
		"\033]2;",
		"\a",
		"\033\\",
		"\033P$qm\033\\",
		"\302\233",
		"\377",
		"\xe4\xb8",
		"\030",
		"\005",
		"m",
		";5H",
		"\033[2;9r",
		"\033M",
		"\033[?6h",
		"\0337",
		"\0338",
		"\033#3",
		"\033(0",
		"\033(B",
		"\033%G",
		"\033]133;A\a",
		"\033_x\033\\",
	};
	struct buf stream = { 0 }, a = { 0 }, b = { 0 };
	unsigned int seed = (unsigned int)_i + 1;
	struct vt *theirs = NULL;
	struct vt_state x, y;

	for (int i = 0; i < 60; i++)
		buf_puts(&stream, pieces[(size_t)rand_r(&seed) %
					 (sizeof(pieces) / sizeof(*pieces))]);
	buf_puts(&stream, "\030");
	buf_put(&stream, "", 1);
	ck_assert_int_eq(buf_error(&stream), 0);
	fed = (const char *)stream.data;
	feed(fed);
	ck_assert_uint_eq(vt_safe(vt), vt_offset(vt));
	pass(vt_offset(vt));
	buf_put(&events, "", 1);
	/* Those who must be repainted are. */
	if (!strstr((const char *)events.data, "repaint")) {
		ck_assert_int_eq(vt_new(80, 24, NULL, NULL, NULL, &theirs), 0);
		vt_feed(theirs, passed.data, passed.len);
		vt_ansi(vt, 0, &a);
		vt_ansi(theirs, 0, &b);
		ck_assert_uint_eq(a.len, b.len);
		ck_assert_mem_eq(a.data, b.data, a.len);
		vt_state(vt, &x);
		vt_state(theirs, &y);
		ck_assert(x.x == y.x && x.y == y.y && x.alt == y.alt);
	}
	(void)vt_free(theirs);
	buf_fini(&stream);
	buf_fini(&a);
	buf_fini(&b);
}
END_TEST

START_TEST(what_is_unfinished_waits_until_it_is_long)
{
	char part[1000];

	memset(part, 'x', sizeof(part));
	feed("ab\033[3");
	ck_assert_uint_eq(vt_safe(vt), 2);
	feed("1m\xe4\xb8");
	ck_assert_uint_eq(vt_safe(vt), 7);
	feed("\xad\033]0;");
	ck_assert_uint_eq(vt_safe(vt), 10);
	for (int i = 0; i < 6; i++)
		vt_feed(vt, part, sizeof(part));
	/* It is cut as it comes, and its end does not come as text. */
	ck_assert_uint_gt(vt_safe(vt), 5000);
	ck_assert_uint_eq(passed_to, vt_safe(vt));
	feed("\033");
	ck_assert_uint_eq(vt_safe(vt), vt_offset(vt));
	feed("[6n");
	ck_assert_uint_eq(passed_to, vt_offset(vt));
}
END_TEST

START_TEST(what_happens_is_told)
{
	static const struct {
		const char *stream, *told;
	} cases[] = {
		{ "\007", "bell\n" },
		{ "\033]2;a\001b\xc2\x85\xff"
		  "c\007",
		  "title abc\n" },
		{ "\033]0;x;y\033\\", "title x;y\n" },
		{ "\033]7;file://host/a%20b%2F\033\\", "cwd /a b/\n" },
		{ "\033]7;file://h/a%00b\033\\", "" },
		{ "\033]7;/no/scheme\033\\", "" },
		{ "\033]633;P;Cwd=/x\\x20y\007", "cwd /x y\n" },
		{ "\033]52;c;aGVsbG8=\007", "clipboard hello\n" },
		{ "\033]52;c;not base64!\007", "" },
		{ "\033]9;done\007", "notify done\n" },
		{ "\033]9;4;1;50\007", "" },
		{ "\033]777;notify;a;b\007", "notify a;b\n" },
		{ "\033[?1049h\033[?1049l", "screen\nscreen\n" },
		{ "\033c", "reset\n" },
		{ "\033]133;A\007", "mark A -1\n" },
		{ "\033]133;A;k=s;pale=n0nce\007",
		  "mark A -1 trusted secondary\n" },
		{ "\033]133;D;7;pale=n0nce\007", "mark D 7 trusted\n" },
		{ "\033]133;D;0;pale=n0nc\007", "mark D 0\n" },
		{ "\033]133;D;0;pale=n0nce0\007", "mark D 0\n" },
		{ "\033]133;D;0\007", "mark D 0\n" },
		{ "\033]133;D;-1;x\007", "mark D -1\n" },
		{ "\033]133;Dx\007\033]133\007\033]133;\007", "" },
		{ "\033]633;E;ls\\x3b -l\007", "mark E -1 ls; -l\n" },
		/* A line feed inside a query: people must be repainted. */
		{ "\033[\n6n", "repaint\n" },
		{ "\033[?1000;4242h", "repaint\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		vt_set_nonce(vt, "n0nce");
		feed(cases[i].stream);
		ck_assert_str_eq(text_of(&events), cases[i].told);
		teardown();
		setup();
	}
}
END_TEST

START_TEST(with_no_nonce_nothing_is_trusted)
{
	feed("\033]133;D;0;pale=\007");
	ck_assert_str_eq(text_of(&events), "mark D 0\n");
}
END_TEST

START_TEST(answers_to_one_feed_are_bounded)
{
	struct buf many = { 0 };

	for (int i = 0; i < 10000; i++)
		buf_puts(&many, "\033[c");
	vt_feed(vt, many.data, many.len);
	ck_assert_uint_le(replies.len, VT_REPLY_MAX);
	ck_assert_uint_gt(replies.len, VT_REPLY_MAX / 2);
	vt_feed(vt, many.data, 3);
	ck_assert_uint_gt(replies.len, VT_REPLY_MAX - 10);
	buf_fini(&many);
}
END_TEST

START_TEST(a_muted_model_answers_nothing)
{
	vt_set_mute(vt, true);
	feed("\033[c\033[6n");
	vt_set_mute(vt, false);
	ck_assert_uint_eq(replies.len, 0);
	feed("\033[5n");
	ck_assert_str_eq(text_of(&replies), "\033[0n");
}
END_TEST

START_TEST(a_clipboard_beyond_its_bound_is_refused)
{
	size_t len = VT_CLIPBOARD_MAX / 3 * 4 + 4000;
	char *data = malloc(len);

	ck_assert_ptr_nonnull(data);
	memset(data, 'A', len);
	feed("\033]52;c;");
	vt_feed(vt, data, 400000);
	feed("\007");
	ck_assert_uint_gt(events.len, 300000);
	events.len = 0;
	feed("\033]52;c;");
	vt_feed(vt, data, len);
	feed("\007");
	ck_assert_uint_eq(events.len, 0);
	/* Other strings have a much lower one. */
	feed("\033]2;");
	vt_feed(vt, data, VT_OSC_MAX + 1);
	feed("\007after");
	ck_assert_uint_eq(events.len, 0);
	free(data);
}
END_TEST

START_TEST(a_synchronized_update_ends_by_itself)
{
	feed("\033[?2026h");
	vt_tick(vt, 1000);
	vt_tick(vt, 1149);
	ck_assert(vt_in_sync(vt));
	vt_tick(vt, 1150);
	ck_assert(!vt_in_sync(vt));
}
END_TEST

START_TEST(a_checksum_is_for_tests_only)
{
	static const struct vt_limits limits = { .checksums = true };

	vt = vt_free(vt);
	ck_assert_int_eq(vt_new(80, 24, &limits, &ops, NULL, &vt), 0);
	feed("AB\033[7;1;1;1;1;2*y");
	ck_assert_str_eq(text_of(&replies), "\033P7!~0083\033\\");
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("vt_answers");
	int count = sizeof(answers) / sizeof(*answers);

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, a_query_has_its_answer, 0, count);
	tcase_add_loop_test(tc, no_person_is_asked, 0, count);
	tcase_add_test(tc, people_get_the_stream_without_what_answers);
	tcase_add_loop_test(tc, people_see_the_screen_of_the_model, 0, 500);
	tcase_add_test(tc, what_is_unfinished_waits_until_it_is_long);
	tcase_add_test(tc, what_happens_is_told);
	tcase_add_test(tc, with_no_nonce_nothing_is_trusted);
	tcase_add_test(tc, answers_to_one_feed_are_bounded);
	tcase_add_test(tc, a_muted_model_answers_nothing);
	tcase_add_test(tc, a_clipboard_beyond_its_bound_is_refused);
	tcase_add_test(tc, a_synchronized_update_ends_by_itself);
	tcase_add_test(tc, a_checksum_is_for_tests_only);
	return suite_run("vt_answers", tc);
}
