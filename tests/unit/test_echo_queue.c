/* SPDX-License-Identifier: MIT */

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "fusefs/echo_priv.h"
#include "suite.h"

static struct echo_queue queue;
static struct fs_inode dirs[2];
static struct statx file = { .stx_mode = S_IFREG | 0644 };
static struct statx program = { .stx_mode = S_IFREG | 0755 };
static struct statx directory = { .stx_mode = S_IFDIR | 0755 };

static void
setup(void)
{
	echo_queue_init(&queue);
	for (int i = 0; i < 2; i++)
		atomic_init(&dirs[i].refs, 1000000);
}

static void
teardown(void)
{
	/* Never the last reference: the directories are not in a table. */
	echo_queue_fini(NULL, &queue);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(atomic_load(&dirs[i].refs), 1000000);
}

static int
add(int dir, const char *name, unsigned int mask, const struct statx *now,
    uint64_t object)
{
	const struct fs_echo_change change = { .dir = &dirs[dir],
					       .name = name,
					       .mask = mask,
					       .now = now,
					       .object = object };

	return echo_queue_add(&queue, &change, 0);
}

/* The next one, after every wait, as "WHAT dir/name[ dir/name]". */
static const char *
next(void)
{
	static const char *const names[] = { "remove", "make", "content",
					     "close",  "meta", "rename" };
	static char text[1024];
	struct echo_item *item;
	int64_t wait_ns;
	int n = 0;

	item = echo_queue_take(&queue, ECHO_MOVE_NS, &wait_ns);
	if (!item)
		return "none";
	for (size_t i = 0; i < 6; i++)
		if (item->what & 1u << i)
			n += snprintf(text + n, sizeof(text) - (size_t)n, "%s ",
				      names[i]);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "%d/%s",
		      (int)(item->dir - dirs), item->name);
	if (item->dir2)
		(void)snprintf(text + n, sizeof(text) - (size_t)n, " %d/%s",
			       (int)(item->dir2 - dirs), item->name2);
	echo_item_free(NULL, item);
	return text;
}

START_TEST(changes_of_one_name_are_told_together)
{
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(add(0, "f", IN_MODIFY, &file, 0), 0);
	(void)add(0, "f", IN_CLOSE_WRITE, &file, 0);
	(void)add(1, "f", IN_ATTRIB, &file, 0);
	ck_assert_uint_eq(queue.count, 2);
	ck_assert_str_eq(next(), "content close 0/f");
	(void)add(0, "f", IN_MODIFY, &file, 0);
	ck_assert_str_eq(next(), "meta 1/f");
	ck_assert_str_eq(next(), "content 0/f");
	ck_assert_str_eq(next(), "none");
}
END_TEST

START_TEST(what_has_gone_again_is_only_gone)
{
	(void)add(0, "f", IN_CREATE | IN_MODIFY, &file, 0);
	(void)add(0, "f", IN_DELETE, NULL, 0);
	ck_assert_str_eq(next(), "remove 0/f");
	/* Both in one event, and nothing there. */
	(void)add(0, "g", IN_CREATE | IN_MODIFY, NULL, 0);
	ck_assert_str_eq(next(), "none");
	(void)add(0, "f", IN_DELETE, &file, 0);
	(void)add(0, "f", IN_CREATE, &file, 0);
	ck_assert_str_eq(next(), "remove make 0/f");
}
END_TEST

START_TEST(a_program_is_not_opened_for_writing)
{
	(void)add(0, "p", IN_MODIFY | IN_CLOSE_WRITE, &program, 0);
	ck_assert_str_eq(next(), "content 0/p");
	(void)add(0, "d", IN_CREATE | IN_MODIFY | IN_ISDIR, &directory, 0);
	ck_assert_str_eq(next(), "make 0/d");
}
END_TEST

START_TEST(two_ends_of_a_rename_are_one)
{
	(void)add(0, "a", IN_MOVED_FROM, NULL, 7);
	(void)add(1, "x", IN_MOVED_FROM, NULL, 8);
	(void)add(1, "b", IN_MOVED_TO, &file, 7);
	(void)add(0, "c", IN_MOVED_TO, &file, 9);
	ck_assert_str_eq(next(), "rename 0/a 1/b");
	ck_assert_str_eq(next(), "remove 1/x");
	ck_assert_str_eq(next(), "make 0/c");
	ck_assert_str_eq(next(), "none");
}
END_TEST

START_TEST(the_first_end_waits_for_the_second)
{
	struct echo_item *item;
	int64_t wait_ns = 0;

	(void)add(0, "a", IN_MOVED_FROM, NULL, 7);
	item = echo_queue_take(&queue, 1000, &wait_ns);
	ck_assert_ptr_null(item);
	ck_assert_int_eq(wait_ns, ECHO_MOVE_NS - 1000);
	ck_assert_str_eq(next(), "remove 0/a");
	ck_assert_ptr_null(echo_queue_take(&queue, 1000, &wait_ns));
	ck_assert_int_eq(wait_ns, -1);
}
END_TEST

/* The name between was merged into one event by the kernel. */
START_TEST(a_name_on_the_way_is_not_told)
{
	(void)add(0, "a", IN_MOVED_FROM, NULL, 7);
	(void)add(0, "b", IN_MOVED_FROM | IN_MOVED_TO, NULL, 7);
	(void)add(0, "c", IN_MOVED_TO, &file, 7);
	ck_assert_str_eq(next(), "rename 0/a 0/c");
	ck_assert_str_eq(next(), "none");
}
END_TEST

START_TEST(nothing_joins_what_was_before_a_rename)
{
	(void)add(0, "b", IN_MODIFY, &file, 0);
	(void)add(0, "a", IN_MOVED_FROM, NULL, 7);
	(void)add(0, "b", IN_MOVED_TO | IN_MODIFY, &file, 7);
	(void)add(0, "a", IN_CREATE, &file, 0);
	ck_assert_str_eq(next(), "content 0/b");
	ck_assert_str_eq(next(), "rename 0/a 0/b");
	ck_assert_str_eq(next(), "content 0/b");
	ck_assert_str_eq(next(), "make 0/a");
}
END_TEST

/* More first ends than are kept: the oldest are names that are gone. */
START_TEST(it_is_bounded)
{
	char name[32];

	for (unsigned int i = 0; i < 3 * ECHO_MOVES; i++) {
		(void)snprintf(name, sizeof(name), "m%u", i);
		(void)add(0, name, IN_MOVED_FROM, NULL, i + 1);
	}
	(void)add(1, "late", IN_MOVED_TO, &file, 1);
	ck_assert_str_eq(next(), "remove 0/m0");
	for (unsigned int i = 0; i < 2 * LIMIT_ECHO; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		(void)add(0, name, IN_MODIFY, &file, 0);
	}
	ck_assert_uint_eq(queue.count, LIMIT_ECHO);
	ck_assert_int_eq(add(0, "more", IN_MODIFY, &file, 0), -ENOSPC);
	/* What waits already still takes more. */
	ck_assert_int_eq(add(0, "f1", IN_ATTRIB, &file, 0), 0);
	ck_assert_uint_gt(queue.dropped, LIMIT_ECHO);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("echo_queue");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, changes_of_one_name_are_told_together);
	tcase_add_test(tc, what_has_gone_again_is_only_gone);
	tcase_add_test(tc, a_program_is_not_opened_for_writing);
	tcase_add_test(tc, two_ends_of_a_rename_are_one);
	tcase_add_test(tc, the_first_end_waits_for_the_second);
	tcase_add_test(tc, a_name_on_the_way_is_not_told);
	tcase_add_test(tc, nothing_joins_what_was_before_a_rename);
	tcase_add_test(tc, it_is_bounded);
	return suite_run("fusefs/echo_queue", tc);
}
