/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <string.h>

#include "tests/unit/suite.h"
#include "warden/warden_priv.h"

static struct warden_options opt;
static struct errmsg why;
static int fds[3];
static char numbers[3][16];

static void
setup(void)
{
	for (int i = 0; i < 3; i++) {
		fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
		ck_assert_int_ge(fds[i], 3);
		ck_assert_int_eq(fcntl(fds[i], F_SETFD, 0), 0);
		(void)snprintf(numbers[i], sizeof(numbers[i]), "%d", fds[i]);
	}
}

static void
teardown(void)
{
	for (int i = 0; i < 3; i++)
		(void)close(fds[i]);
}

/* The needed options, and two more words. */
static int
parse(const char *more, const char *value)
{
	const char *argv[] = { "warden",     "--policy-fd", numbers[0],
			       "--world-fd", numbers[1],    "--keeper-fd",
			       numbers[2],   "--world",	    "abcd2345",
			       more,	     value,	    NULL };
	int argc = more ? value ? 11 : 10 : 9;

	return warden_options_parse(argc, (char **)(uintptr_t)argv, &opt, &why);
}

START_TEST(the_needed_options_are_enough)
{
	ck_assert_int_eq(parse(NULL, NULL), 0);
	ck_assert_int_eq(opt.policy_fd, fds[0]);
	ck_assert_int_eq(opt.keeper_fd, fds[2]);
	ck_assert_int_eq(opt.client_fd, -1);
	ck_assert_str_eq(opt.world, "abcd2345");
	ck_assert_ptr_null(opt.mountpoint);
	ck_assert(!opt.own_mounts);
}
END_TEST

START_TEST(a_descriptor_does_not_outlive_an_exec)
{
	ck_assert_int_eq(parse(NULL, NULL), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(fcntl(fds[i], F_GETFD) & FD_CLOEXEC,
				 FD_CLOEXEC);
}
END_TEST

START_TEST(a_mount_has_its_options)
{
	ck_assert_int_eq(parse("--mountpoint=/mnt/p", "--own-mounts"), 0);
	ck_assert_str_eq(opt.mountpoint, "/mnt/p");
	ck_assert(opt.own_mounts);
}
END_TEST

static const char *const bad[][2] = {
	{ "--client-fd", "x" },	    { "--client-fd", "-1" },
	{ "--client-fd", "1" },	    { "--client-fd", "99999" },
	{ "--client-fd", "7x" },    { "--world", "../etc" },
	{ "--world", "ab" },	    { "--world", "ABCD2345" },
	{ "--nothing", "x" },	    { "operand", NULL },
	{ "--mountpoint", NULL },   { "--world", "" },
	{ "--own-mounts", "more" },
};

START_TEST(a_bad_option_is_told)
{
	ck_assert_int_lt(parse(bad[_i][0], bad[_i][1]), 0);
	ck_assert_ptr_nonnull(strstr(why.text, "warden: "));
}
END_TEST

START_TEST(what_is_needed_is_missed)
{
	char *argv[] = { (char *)(uintptr_t) "warden",
			 (char *)(uintptr_t) "--world=abcd2345", NULL };

	ck_assert_int_eq(warden_options_parse(2, argv, &opt, &why), -EINVAL);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("options");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_needed_options_are_enough);
	tcase_add_test(tc, a_descriptor_does_not_outlive_an_exec);
	tcase_add_test(tc, a_mount_has_its_options);
	tcase_add_loop_test(tc, a_bad_option_is_told, 0,
			    sizeof(bad) / sizeof(bad[0]));
	tcase_add_test(tc, what_is_needed_is_missed);
	return suite_run("warden options", tc);
}
