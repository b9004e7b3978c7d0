/* SPDX-License-Identifier: MIT */

#include "pty/shell_integration.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static enum shell_kind
kind_of(const char *command, const char *variable)
{
	_cleanup_(strv_fini) struct strv argv = { 0 }, env = { 0 };
	_cleanup_(freep) char *words = strdup(command);
	char *rest = words;

	for (char *word; (word = strsep(&rest, " "));)
		ck_assert_int_eq(strv_add(&argv, word), 0);
	ck_assert_int_eq(strv_add(&env, variable), 0);
	return shell_kind_of(&argv, &env);
}

START_TEST(plain_interactive_shells_are_known)
{
	static const struct {
		const char *command;
		enum shell_kind kind;
	} rows[] = {
		{ "bash", SHELL_BASH },
		{ "/bin/bash -i", SHELL_BASH },
		{ "/usr/bin/zsh -i", SHELL_ZSH },
		{ "zsh -l", SHELL_ZSH },
		{ "fish --login -i", SHELL_FISH },
		/* What was asked for in detail is done so. */
		{ "bash --norc -i", SHELL_OTHER },
		{ "bash -l", SHELL_OTHER },
		{ "bash -c ls", SHELL_OTHER },
		{ "bash script", SHELL_OTHER },
		{ "zsh -f", SHELL_OTHER },
		{ "sh -i", SHELL_OTHER },
		{ "bashful", SHELL_OTHER },
		{ "python3 -i", SHELL_OTHER },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_int_eq(kind_of(rows[i].command, "A=1"), rows[i].kind);
		ck_assert_int_eq(
			kind_of(rows[i].command, "PALE_SHELL_INTEGRATION=0"),
			SHELL_OTHER);
	}
}
END_TEST

static const char *const names[] = { "", "bash", "zsh", "fish" };

START_TEST(the_nonce_is_in_the_lines_and_nowhere_else)
{
	_cleanup_(buf_fini) struct buf lines = { 0 };
	_cleanup_(strv_fini) struct strv argv = { 0 }, start = { 0 };
	enum shell_kind kind = (enum shell_kind)_i;
	const char *text;

	shell_lines(kind, "N0NCE", &lines);
	buf_put(&lines, "", 1);
	ck_assert_int_eq(buf_error(&lines), 0);
	text = (const char *)lines.data;
	ck_assert_ptr_nonnull(strstr(text, "N0NCE"));
	/* In one place alone: everything else names the variable. */
	ck_assert_ptr_null(strstr(strstr(text, "N0NCE") + 1, "N0NCE"));
	ck_assert_uint_lt(lines.len, 4096);

	ck_assert_int_eq(strv_add(&argv, names[_i]), 0);
	ck_assert_int_eq(strv_add(&argv, "-i"), 0);
	ck_assert_int_eq(shell_wrap(kind, &argv, &start), 0);
	ck_assert_str_eq(start.items[0], "/bin/sh");
	ck_assert_str_eq(start.items[start.count - 2], names[_i]);
	ck_assert_str_eq(start.items[start.count - 1], "-i");
	for (size_t i = 0; i < start.count; i++)
		ck_assert_ptr_null(strstr(start.items[i], "N0NCE"));
}
END_TEST

/* Each shell that is here takes its lines. */
START_TEST(the_lines_are_of_the_language)
{
	_cleanup_(buf_fini) struct buf lines = { 0 };
	char path[] = "/tmp/test_shell.XXXXXX", command[256];
	int fd = mkstemp(path), status;

	shell_lines((enum shell_kind)_i, "N0NCE", &lines);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, lines.data, lines.len), (int)lines.len);
	(void)close(fd);
	(void)snprintf(command, sizeof(command),
		       "command -v %s >/dev/null || exit 0; %s -n %s",
		       names[_i], names[_i], path);
	status = system(command);
	(void)unlink(path);
	ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(no_memory_is_an_error)
{
	_cleanup_(strv_fini) struct strv argv = { 0 };

	ck_assert_int_eq(strv_add(&argv, "bash"), 0);
	for (unsigned int nth = 1; nth < 100; nth++) {
		_cleanup_(strv_fini) struct strv start = { 0 };
		int r;

		oom_arm(nth);
		r = shell_wrap(SHELL_BASH, &argv, &start);
		if (!oom_disarm()) {
			ck_assert_int_eq(r, 0);
			return;
		}
		ck_assert_int_eq(r, -ENOMEM);
	}
	ck_abort();
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("shell_integration");

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, plain_interactive_shells_are_known);
	tcase_add_loop_test(tcase, the_nonce_is_in_the_lines_and_nowhere_else,
			    1, 4);
	tcase_add_loop_test(tcase, the_lines_are_of_the_language, 1, 4);
	tcase_add_test(tcase, no_memory_is_an_error);
	return suite_run("shell_integration", tcase);
}
