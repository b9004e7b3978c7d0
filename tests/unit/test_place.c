/* SPDX-License-Identifier: MIT */

#include "cli/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static char top[128];

/* d/ is a directory, d/f a file, l a symlink to d, d/up one to "..". */
static void
setup(void)
{
	char dir[] = "/tmp/placeXXXXXX", *real;

	ck_assert_ptr_nonnull(mkdtemp(dir));
	real = realpath(dir, NULL);
	snprintf(top, sizeof(top), "%s", real);
	free(real);
	ck_assert_int_eq(chdir(top), 0);
	ck_assert_int_eq(mkdir("d", 0700), 0);
	ck_assert_int_eq(mkdir("d/e", 0700), 0);
	ck_assert_int_eq(symlink("d/e", "l"), 0);
	ck_assert_int_eq(symlink("nowhere", "dangling"), 0);
}

static void
teardown(void)
{
	char command[256];

	ck_assert_int_eq(chdir("/"), 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", top);
	ck_assert_int_eq(system(command), 0);
}

/* `want` is relative to the top; NULL: -EINVAL is expected. */
static void
check_place(const char *path, bool follow, const char *want)
{
	char full[512], *got = NULL;
	int r = place_canonical(path, follow, &got);

	if (!want) {
		ck_assert_int_eq(r, -EINVAL);
		return;
	}
	snprintf(full, sizeof(full), "%s%s", top, want);
	ck_assert_msg(r == 0, "%s: %d", path, r);
	ck_assert_str_eq(got, full);
	free(got);
}

START_TEST(symlinks_are_resolved_before_dot_dot)
{
	check_place("l/../x", true, "/d/x");
	check_place("l/../x/y/z", true, "/d/x/y/z");
	check_place("./d//e/.", true, "/d/e");
}
END_TEST

START_TEST(the_last_name_is_kept_unless_followed)
{
	check_place("l", true, "/d/e");
	check_place("l", false, "/l");
	check_place("d/..", false, "");
	check_place(".", false, "");
	check_place("dangling", true, "/dangling");
}
END_TEST

START_TEST(what_is_not_there_is_kept_as_spelled)
{
	check_place("new", true, "/new");
	check_place("new/./a//b", false, "/new/a/b");
	check_place("new/../a", true, NULL);
	check_place("", true, NULL);
}
END_TEST

START_TEST(the_root_has_no_name)
{
	char *got = NULL;

	ck_assert_int_eq(place_canonical("/", false, &got), 0);
	ck_assert_str_eq(got, "/");
	free(got);
	ck_assert_int_eq(place_canonical("//no such dir", false, &got), 0);
	ck_assert_str_eq(got, "/no such dir");
	free(got);
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("place");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, symlinks_are_resolved_before_dot_dot);
	tcase_add_test(tcase, the_last_name_is_kept_unless_followed);
	tcase_add_test(tcase, what_is_not_there_is_kept_as_spelled);
	tcase_add_test(tcase, the_root_has_no_name);
	return suite_run("place", tcase);
}
