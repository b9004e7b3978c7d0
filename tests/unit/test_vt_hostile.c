/* SPDX-License-Identifier: MIT */

/* Whatever comes: time in proportion to its length, memory within bounds. */

#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"
#include "tests/unit/vt_check.h"

static struct vt *vt;

static void
setup(void)
{
	ck_assert_int_eq(vt_new(80, 24, NULL, NULL, NULL, &vt), 0);
}

static void
teardown(void)
{
	vt = vt_free(vt);
}

static double
seconds(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* `unit` over and over, `total` bytes of it. */
static double
feed_many(const char *begin, const char *unit, size_t total)
{
	struct buf text = { 0 };
	double start;

	while (text.len < 65536)
		buf_puts(&text, unit);
	start = seconds();
	vt_feed(vt, begin, strlen(begin));
	for (size_t fed = 0; fed < total; fed += text.len)
		vt_feed(vt, text.data, text.len);
	buf_fini(&text);
	return seconds() - start;
}

static const struct {
	const char *begin, *unit;
} storms[] = {
	{ "\033[", "1;" }, /* parameters without end */
	{ "\033[", "9" },  /* digits without end */
	{ "\033[", "1:" },
	{ "", "\033" },
	{ "", "\033[" },
	{ "\033P", "x" }, /* DCS without end */
	{ "\033]0;", "x" },
	{ "\033]52;c;", "QUFB" },
	{ "\033]8;;http://x/", "y" },
	{ "\033_", "x" },
	{ "", "\033]0;a\033[" },
	{ "e", "\xcc\x81" }, /* marks on one cell */
	{ "", "e\xcc\x81" },
	{ "", "\xff\xc3\xe4\xb8" },
	{ "", "x\033[99999999b" },
	{ "", "\033[99999999L\033[99999999M" },
	{ "", "\033[99999999@\033[99999999P" },
	{ "", "\033[99999S\033[99999T" },
	{ "", "\033[2J" },
	{ "\033[41m", "\033[2J" },
	{ "", "\033#8" },
	{ "", "\033[?1049h\033[?1049l" },
	{ "", "\033[99999999I\033[99999999Z" },
	{ "", "\033c" },
	{ "", "\033[c\033[6n\033]11;?\a" },
	{ "", "\033P+q544e;436f;beef\033\\" },
	{ "", "\033]4;1;?;2;?;3;?;4;?\a" },
	{ "\033[3g", "\t\b" },
};

/* Ten times the bytes may take ten times the time, with room for noise. */
START_TEST(no_storm_takes_more_than_time_in_proportion)
{
	const char *begin = storms[_i].begin, *unit = storms[_i].unit;
	double once = feed_many(begin, unit, 64u << 10), more;

	more = feed_many("", unit, 640u << 10);
	ck_assert_msg(more < 60 * once + 0.2, "%f s after %f s", more, once);
	/* The study's bound: 10 ms a KiB; five times for a busy machine. */
	ck_assert_msg(more < 0.05 * 640, "%f s", more);
	ck_assert(vt_is_sound(vt));
	ck_assert_uint_le(vt->parser.text.len, PARSER_TEXT_MAX);
}
END_TEST

/* Each cell another style, another mark, another link: tables are full. */
START_TEST(full_tables_are_bounded_and_lose_only_looks)
{
	char text[200];

	vt = vt_free(vt);
	ck_assert_int_eq(vt_new(500, 200, NULL, NULL, NULL, &vt), 0);
	for (unsigned int i = 0; i < 300000; i++) {
		int n = snprintf(
			text, sizeof(text),
			"\033[38;2;%u;%u;%um\033]8;;http://x/%u\033\\a",
			i >> 16 & 255, i >> 8 & 255, i & 255, i);

		text[n++] = (char)0xcc;
		text[n++] = (char)(0x80 + i % 0x30);
		text[n++] = (char)0xcc;
		text[n++] = (char)(0x80 + i / 0x30 % 0x30);
		text[n++] = (char)0xcc;
		text[n++] = (char)(0x80 + i / 0x900 % 0x30);
		vt_feed(vt, text, (size_t)n);
	}
	ck_assert(vt_is_sound(vt));
	ck_assert_uint_le(vt->lex.styles.live, vt->lex.styles.max);
	ck_assert_uint_le(vt->lex.links.arena_len, vt->lex.links.bytes_max);
	ck_assert_uint_le(vt->history.bytes, (8u << 20) + (64u << 10));
	/* When they leave the screen their places are free again. */
	vt_feed(vt, "\033[m\033]8;;\a\033[2J\033[H", 16);
	vt_collect(vt);
	ck_assert_uint_eq(vt->lex.clusters.live, 0);
	ck_assert_uint_le(vt->lex.styles.live, 1);
}
END_TEST

START_TEST(an_idle_model_is_small)
{
	struct mallinfo2 before = mallinfo2(), after;
	struct vt *idle = NULL;

	ck_assert_int_eq(vt_new(80, 24, NULL, NULL, NULL, &idle), 0);
	vt_feed(idle, "$ ", 2);
	after = mallinfo2();
	ck_assert_uint_lt(after.uordblks - before.uordblks, 30000);
	(void)vt_free(idle);
}
END_TEST

START_TEST(a_history_of_plain_lines_takes_a_byte_a_character)
{
	char line[81];

	for (int i = 0; i < 12000; i++) {
		memset(line, 'a' + i % 26, 70);
		memcpy(line + 70, "\r\n", 3);
		vt_feed(vt, line, 72);
	}
	ck_assert_uint_eq(vt->history.count, 10000);
	ck_assert_uint_lt(vt->history.bytes, 10000 * (70 + 8) + 65536);
}
END_TEST

/* ---- what was saved, and changed on the way ---- */

static void
make_screen(void)
{
	static const char stream[] =
		"plain\r\n\033[1;31mred\033[m \xe4\xb8\xad e\xcc\x81\r\n"
		"\033]8;id=a;http://x\033\\link\033]8;;\033\\\033]2;title\a"
		"\033]7;file://h/cwd\a\033]4;3;#abcdef\a\033[?69h\033[2;70s"
		"\033[2;20r\033[?1049halt\033[5;5H\0337\033[1\"qprot";

	for (int i = 0; i < 40; i++)
		vt_feed(vt, "scrolled off \xe4\xb8\xad\r\n", 18);
	vt_feed(vt, stream, sizeof(stream) - 1);
	/* In the middle of a string. */
	vt_feed(vt, "\033]2;half", 8);
}

START_TEST(what_was_saved_is_restored_and_goes_on)
{
	struct buf saved = { 0 };
	struct vt *again = NULL;

	make_screen();
	vt_save(vt, &saved);
	ck_assert_int_eq(buf_error(&saved), 0);
	ck_assert_int_eq(
		vt_restore(saved.data, saved.len, NULL, NULL, NULL, &again), 0);
	ck_assert(vt_same(vt, again));
	vt_feed(vt, " and half\a\033[?1049l", 18);
	vt_feed(again, " and half\a\033[?1049l", 18);
	ck_assert_str_eq(vt_title(again), "half and half");
	ck_assert_str_eq(vt_cwd(again), "/cwd");
	ck_assert(vt_same(vt, again));
	(void)vt_free(again);
	buf_fini(&saved);
}
END_TEST

START_TEST(no_change_of_what_was_saved_breaks_the_reader)
{
	struct buf saved = { 0 };
	unsigned int seed = 1, good = 0;
	size_t len;

	make_screen();
	vt_save(vt, &saved);
	len = saved.len;
	ck_assert_uint_gt(len, 1000);
	for (size_t cut = 0; cut < len; cut += 1 + cut / 50) {
		struct vt *again = NULL;

		ck_assert_int_lt(
			vt_restore(saved.data, cut, NULL, NULL, NULL, &again),
			0);
	}
	for (int i = 0; i < 20000; i++) {
		size_t at = (size_t)rand_r(&seed) % len;
		unsigned char was = saved.data[at];
		struct vt *again = NULL;
		int r;

		saved.data[at] = (unsigned char)rand_r(&seed);
		r = vt_restore(saved.data, saved.len, NULL, NULL, NULL, &again);
		ck_assert(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT);
		if (r == 0) {
			good++;
			vt_feed(again, "x\xcc\x81\r\n\033[3L\xe4\xb8\xad", 13);
			ck_assert(vt_is_sound(again));
		}
		(void)vt_free(again);
		saved.data[at] = was;
	}
	ck_assert_uint_gt(good, 100);
	buf_fini(&saved);
}
END_TEST

START_TEST(another_version_is_told_apart)
{
	struct buf saved = { 0 };
	struct vt *again = NULL;

	vt_save(vt, &saved);
	saved.data[4]++;
	ck_assert_int_eq(
		vt_restore(saved.data, saved.len, NULL, NULL, NULL, &again),
		-EPROTONOSUPPORT);
	saved.data[0]++;
	ck_assert_int_eq(
		vt_restore(saved.data, saved.len, NULL, NULL, NULL, &again),
		-EBADMSG);
	buf_fini(&saved);
}
END_TEST

/* Any allocation may fail at any time: something is not shown, that is all. */
START_TEST(without_memory_it_stays_sound)
{
	static const char stream[] =
		"\033[31mred\033[m\xe4\xb8\xad e\xcc\x81\r\n\033[?1049hx"
		"\033]8;;http://x\033\\l\033]8;;\033\\\033]2;t\a\033[?1049l"
		"\033]7;file://h/c\a\033]4;3;#abcdef\a\033P$qm\033\\\n\n\n\n";

	for (unsigned int n = 1; n < 60; n++) {
		struct vt *small = NULL;
		struct buf out = { 0 };

		ck_assert_int_eq(vt_new(9, 2, NULL, NULL, NULL, &small), 0);
		oom_arm(n);
		vt_feed(small, stream, sizeof(stream) - 1);
		vt_json(small, 5, &out);
		(void)vt_lines(small, 0, 10, &out);
		(void)oom_disarm();
		ck_assert(vt_is_sound(small));
		(void)vt_free(small);
		buf_fini(&out);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("vt_hostile");
	int count = sizeof(storms) / sizeof(*storms);

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_loop_test(tc, no_storm_takes_more_than_time_in_proportion, 0,
			    count);
	tcase_add_test(tc, full_tables_are_bounded_and_lose_only_looks);
	tcase_add_test(tc, an_idle_model_is_small);
	tcase_add_test(tc, a_history_of_plain_lines_takes_a_byte_a_character);
	tcase_add_test(tc, what_was_saved_is_restored_and_goes_on);
	tcase_add_test(tc, no_change_of_what_was_saved_breaks_the_reader);
	tcase_add_test(tc, another_version_is_told_apart);
	tcase_add_test(tc, without_memory_it_stays_sound);
	return suite_run("vt_hostile", tc);
}
