/* SPDX-License-Identifier: MIT */

#include "fusefs/journal.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "fusefs/temp.h"
#include "tests/unit/suite.h"

#define TEMP TEMP_PREFIX "0123456789abcdef"

static char top[64], journals[80];
static int dir = -1;
static char kept_path[256];

static void
setup(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/test_journal.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(journals, sizeof(journals), "%s/edits", top);
	ck_assert_int_eq(mkdir(journals, 0700), 0);
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	kept_path[0] = '\0';
}

static void
teardown(void)
{
	static const char *const names[] = {
		"f", "g", TEMP, "f.pale-conflict-0123456789abcdef"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(dir, names[i], 0);
	(void)unlinkat(dir, "edits/x", 0);
	ck_assert_int_eq(rmdir(journals), 0);
	ck_assert_int_eq(rmdir(top), 0);
	(void)close(dir);
}

static void
put(const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	(void)close(fd);
}

static struct stat
look(const char *name)
{
	struct stat st;

	ck_assert_int_eq(fstatat(dir, name, &st, 0), 0);
	return st;
}

static bool
says(const char *name, const char *text)
{
	_cleanup_(freep) char *data = NULL;
	size_t len;

	return fd_read_path(dir, name, 4096, &data, &len) == 0 &&
	       strcmp(data, text) == 0;
}

static void
note_kept(const char *path)
{
	(void)snprintf(kept_path, sizeof(kept_path), "%s", path);
}

/* As if the maker were killed: the file stays, its lock goes. */
static void
die_with(enum journal_kind kind, const struct stat *old, const struct stat *new)
{
	const struct journal_about about = { .dir = journals,
					     .parent = top,
					     .name = "f",
					     .temp = TEMP,
					     .dirfd = dir };
	struct journal journal = JOURNAL_NONE;

	ck_assert_int_eq(journal_begin(&about, &journal), 0);
	if (old)
		ck_assert_int_eq(journal_say(&journal, kind, old, new), 0);
	(void)close(journal.fd);
	journal_sweep(journals, note_kept);
	/* Nothing is left to be done. */
	ck_assert_int_lt(access(journal.path, F_OK), 0);
}

START_TEST(what_was_never_named_goes)
{
	put("f", "old");
	put(TEMP, "new");
	die_with(JOURNAL_MAKING, NULL, NULL);
	ck_assert(says("f", "old"));
	ck_assert_int_lt(faccessat(dir, TEMP, F_OK, 0), 0);
}
END_TEST

START_TEST(before_and_after_the_exchange_what_has_the_name_keeps_it)
{
	struct stat old, new;

	put("f", "old");
	put(TEMP, "new");
	old = look("f");
	new = look(TEMP);
	if (_i == 1)
		ck_assert_int_eq(
			renameat2(dir, TEMP, dir, "f", RENAME_EXCHANGE), 0);
	die_with(JOURNAL_EXCHANGING, &old, &new);
	ck_assert(says("f", _i == 1 ? "new" : "old"));
	ck_assert_int_lt(faccessat(dir, TEMP, F_OK, 0), 0);
}
END_TEST

START_TEST(what_others_put_there_meanwhile_gets_its_name_back)
{
	struct stat old, new;

	put("f", "new");
	new = look("f");
	put("g", "old");
	old = look("g");
	put(TEMP, "theirs");
	die_with(JOURNAL_EXCHANGING, &old, &new);
	ck_assert(says("f", "theirs"));
	ck_assert_int_lt(faccessat(dir, TEMP, F_OK, 0), 0);
}
END_TEST

START_TEST(what_has_no_place_any_more_is_kept_and_told)
{
	const struct stat gone = { .st_ino = 1 }, other = { .st_ino = 2 };

	put("f", "later");
	put(TEMP, "theirs");
	die_with(JOURNAL_EXCHANGING, &gone, &other);
	ck_assert(says("f", "later"));
	ck_assert(says("f.pale-conflict-0123456789abcdef", "theirs"));
	ck_assert_ptr_nonnull(strstr(kept_path, "f.pale-conflict-"));
}
END_TEST

START_TEST(a_file_that_was_being_filled_is_filled)
{
	struct stat old, new;

	put("f", "half of it");
	put(TEMP, "whole");
	old = look("f");
	new = look(TEMP);
	die_with(JOURNAL_FILLING, &old, &new);
	ck_assert(says("f", "whole"));
	ck_assert_uint_eq(look("f").st_ino, old.st_ino);
	ck_assert_int_lt(faccessat(dir, TEMP, F_OK, 0), 0);
}
END_TEST

START_TEST(one_that_lives_is_left_alone)
{
	const struct journal_about about = { .dir = journals,
					     .parent = top,
					     .name = "f",
					     .temp = TEMP,
					     .dirfd = dir };
	struct journal journal = JOURNAL_NONE;

	put(TEMP, "new");
	ck_assert_int_eq(journal_begin(&about, &journal), 0);
	journal_sweep(journals, note_kept);
	ck_assert_int_eq(access(journal.path, F_OK), 0);
	ck_assert(says(TEMP, "new"));
	journal_end(&journal);
	ck_assert_int_lt(access(journal.path, F_OK), 0);
}
END_TEST

/* A torn one, and one that names what is no temporary of ours. */
START_TEST(nonsense_does_nothing_and_goes)
{
	put("f", "mine");
	put("edits/x", _i == 0 ? "" : "1edpale1 and then nothing");
	journal_sweep(journals, note_kept);
	ck_assert_int_lt(faccessat(dir, "edits/x", F_OK, 0), 0);
	ck_assert(says("f", "mine"));
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("journal");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_was_never_named_goes);
	tcase_add_loop_test(
		tc, before_and_after_the_exchange_what_has_the_name_keeps_it, 0,
		2);
	tcase_add_test(tc, what_others_put_there_meanwhile_gets_its_name_back);
	tcase_add_test(tc, what_has_no_place_any_more_is_kept_and_told);
	tcase_add_test(tc, a_file_that_was_being_filled_is_filled);
	tcase_add_test(tc, one_that_lives_is_left_alone);
	tcase_add_loop_test(tc, nonsense_does_nothing_and_goes, 0, 2);
	return suite_run("journal", tc);
}
