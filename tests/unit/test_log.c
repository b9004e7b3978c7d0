/* SPDX-License-Identifier: MIT */

#include "warden/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static char path[64];
static struct log *log_;

static void
setup(void)
{
	(void)snprintf(path, sizeof(path), "/tmp/pale-test-log.%d", getpid());
	(void)unlink(path);
	ck_assert_int_eq(log_new(path, &log_), 0);
}

static void
teardown(void)
{
	log_ = log_free(log_);
	(void)unlink(path);
}

START_TEST(nothing_is_made_until_a_line_is_written)
{
	log_line(log_, LOG_NOTE, "not asked for");
	ck_assert_int_lt(access(path, F_OK), 0);
	log_line(log_, LOG_ERROR, "here");
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_line_has_its_level_and_text)
{
	_cleanup_(freep) char *text = NULL;
	struct stat st;
	size_t len;

	log_set_level(log_, LOG_DEBUG);
	log_line(log_, LOG_DEBUG, "number %d", 7);
	ck_assert_int_eq(fd_read_path(AT_FDCWD, path, 4096, &text, &len), 0);
	ck_assert_ptr_nonnull(strstr(text, "Z debug number 7\n"));
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

START_TEST(the_file_never_outgrows_its_limit)
{
	char big[900];
	struct stat st;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	for (int i = 0; i < 3000; i++) {
		log_line(log_, LOG_ERROR, "%s", big);
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_int_le(st.st_size, LIMIT_LOG_BYTES);
	}
}
END_TEST

START_TEST(levels_have_names)
{
	enum log_level level;

	for (int i = 0; i < LOG_LEVELS; i++) {
		const char *name = log_level_name((enum log_level)i);

		ck_assert_int_eq(log_level_parse(name, &level), 0);
		ck_assert_int_eq((int)level, i);
	}
	ck_assert_int_eq(log_level_parse("loud", &level), -EINVAL);
}
END_TEST

START_TEST(no_memory_is_an_error)
{
	struct log *other = NULL;
	int r;

	/* The copy of the path is the C library's own allocation. */
	oom_arm(1);
	r = log_new(path, &other);
	ck_assert_int_eq(oom_disarm(), 1);
	ck_assert_int_eq(r, -ENOMEM);
	log_line(NULL, LOG_ERROR, "no log, no harm");
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("log");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, nothing_is_made_until_a_line_is_written);
	tcase_add_test(tc, a_line_has_its_level_and_text);
	tcase_add_test(tc, the_file_never_outgrows_its_limit);
	tcase_add_test(tc, levels_have_names);
	tcase_add_test(tc, no_memory_is_an_error);
	return suite_run("log", tc);
}
