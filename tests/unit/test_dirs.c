/* SPDX-License-Identifier: MIT */

#include "base/dirs.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strv.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static char top[64];

static void
setup(void)
{
	strcpy(top, "/tmp/pale-dirs.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
}

static void
teardown(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf %s", top);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(xdg_names_win_over_home)
{
	_cleanup_(freep) char *state = NULL;
	_cleanup_(freep) char *config = NULL;
	_cleanup_(freep) char *runtime = NULL;

	setenv("HOME", "/h", 1);
	setenv("XDG_STATE_HOME", "/s", 1);
	unsetenv("XDG_CONFIG_HOME");
	setenv("XDG_RUNTIME_DIR", top, 1);
	ck_assert_int_eq(dirs_state(&state), 0);
	ck_assert_str_eq(state, "/s/pale");
	ck_assert_int_eq(dirs_config(&config), 0);
	ck_assert_str_eq(config, "/h/.config/pale");
	ck_assert_int_eq(dirs_runtime(&runtime), 0);
	ck_assert_ptr_nonnull(strstr(runtime, top));
}
END_TEST

/* One store per user, whatever a harness sets HOME to. */
START_TEST(state_does_not_move_with_home)
{
	_cleanup_(freep) char *a = NULL;
	_cleanup_(freep) char *b = NULL;

	unsetenv("XDG_STATE_HOME");
	setenv("HOME", "/one", 1);
	ck_assert_int_eq(dirs_state(&a), 0);
	setenv("HOME", "/other", 1);
	ck_assert_int_eq(dirs_state(&b), 0);
	ck_assert_str_eq(a, b);
}
END_TEST

START_TEST(a_runtime_directory_that_is_not_there_is_as_good_as_none)
{
	_cleanup_(freep) char *runtime = NULL;

	setenv("XDG_RUNTIME_DIR", "/no/such/directory", 1);
	ck_assert_int_eq(dirs_runtime(&runtime), 0);
	ck_assert_ptr_null(strstr(runtime, "/no/such"));
}
END_TEST

START_TEST(make_refuses_what_others_may_write)
{
	char path[128];
	struct errmsg why;

	(void)snprintf(path, sizeof(path), "%s/a/b", top);
	ck_assert_int_eq(dirs_make(path, &why), 0);
	ck_assert_int_eq(dirs_make(path, &why), 0);
	ck_assert_int_eq(chmod(path, 0777), 0);
	ck_assert_int_eq(dirs_make(path, &why), -EPERM);
	ck_assert_ptr_nonnull(strstr(why.text, path));
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(symlink(top, path), 0);
	ck_assert_int_eq(dirs_make(path, &why), -EPERM);
}
END_TEST

START_TEST(a_vector_is_terminated_and_survives_want_of_memory)
{
	struct strv v = { 0 };

	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(strv_addf(&v, "n%d", i), 0);
	ck_assert_uint_eq(v.count, 100);
	ck_assert_ptr_null(v.items[100]);
	ck_assert(strv_has(&v, "n42") && !strv_has(&v, "n100"));
	for (int i = 0; i < 12; i++)
		ck_assert_int_eq(strv_add(&v, "x"), 0);
	oom_arm(1);
	for (int i = 0; i < 200; i++)
		(void)strv_add(&v, "y");
	(void)oom_disarm();
	strv_fini(&v);
	ck_assert_ptr_null(v.items);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("dirs");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, xdg_names_win_over_home);
	tcase_add_test(tc, state_does_not_move_with_home);
	tcase_add_test(
		tc, a_runtime_directory_that_is_not_there_is_as_good_as_none);
	tcase_add_test(tc, make_refuses_what_others_may_write);
	tcase_add_test(tc, a_vector_is_terminated_and_survives_want_of_memory);
	return suite_run("base/dirs", tc);
}
