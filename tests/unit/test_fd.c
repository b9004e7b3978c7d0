/* SPDX-License-Identifier: MIT */

#include "base/fd.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/unit/suite.h"

START_TEST(a_memory_file_is_sealed_and_reads_back)
{
	_cleanup_(closep) int fd = -1;
	_cleanup_(freep) char *data = NULL;
	size_t len;

	ck_assert_int_eq(fd_memfile("t", "hello", 5, &fd), 0);
	ck_assert_int_lt(write(fd, "x", 1), 0);
	ck_assert_int_eq(fd_read_file(fd, 100, &data, &len), 0);
	ck_assert_uint_eq(len, 5);
	ck_assert_str_eq(data, "hello");
}
END_TEST

START_TEST(a_file_over_the_limit_is_told)
{
	_cleanup_(closep) int fd = -1;
	char *data = NULL;
	size_t len;

	ck_assert_int_eq(fd_memfile("t", "hello", 5, &fd), 0);
	ck_assert_int_eq(fd_read_file(fd, 4, &data, &len), -EFBIG);
	ck_assert_ptr_null(data);
}
END_TEST

START_TEST(descriptors_travel_and_arrive_close_on_exec)
{
	int pair[2], p[2], got[FD_PASS_MAX];
	size_t n_got;
	char text[8];

	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	ck_assert_int_eq(fd_send(pair[0], "hi", 2, p, 2), 0);
	ck_assert_int_eq(fd_recv(pair[1], text, sizeof(text), got, &n_got), 2);
	ck_assert_uint_eq(n_got, 2);
	ck_assert_int_ne(fcntl(got[0], F_GETFD) & FD_CLOEXEC, 0);
	ck_assert_int_eq(write(got[1], "z", 1), 1);
	ck_assert_int_eq(read(p[0], text, 1), 1);
	ck_assert_int_eq(text[0], 'z');

	/* A message that does not fit loses nothing but itself. */
	ck_assert_int_eq(fd_send(pair[0], "too long", 8, p, 1), 0);
	ck_assert_int_eq(fd_recv(pair[1], text, 2, got, &n_got), -EMSGSIZE);
	close(pair[0]);
	ck_assert_int_eq(fd_recv(pair[1], text, 2, got, &n_got), 0);
	close(pair[1]);
	close(p[0]);
	close(p[1]);
}
END_TEST

START_TEST(last_words_are_heard_before_the_end)
{
	int pair[2], got[FD_PASS_MAX];
	size_t n_got;
	char text[8];

	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(fd_send(pair[0], "unread", 6, NULL, 0), 0);
	ck_assert_int_eq(fd_send(pair[1], "bye", 3, NULL, 0), 0);
	close(pair[1]);
	ck_assert_int_eq(fd_recv(pair[0], text, sizeof(text), got, &n_got), 3);
	ck_assert_int_eq(fd_recv(pair[0], text, sizeof(text), got, &n_got), 0);
	close(pair[0]);
}
END_TEST

/* What a child sees of us: exactly 0, 1 and 2. */
START_TEST(closing_from_three_leaves_three)
{
	int status;
	pid_t pid;

	ck_assert_int_ge(dup2(0, 77), 0);
	pid = fork();
	if (pid == 0) {
		fd_close_from(3);
		for (int fd = 3; fd < 256; fd++)
			if (fcntl(fd, F_GETFD) >= 0)
				_exit(1);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(77);
}
END_TEST

START_TEST(closing_others_keeps_those_that_are_named)
{
	int keep[] = { 80, -1, 78, 3 };
	pid_t pid;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		for (int fd = 77; fd <= 81; fd++)
			dup2(0, fd);
		if (fd_close_others(77, keep, 4) < 0)
			_exit(1);
		for (int fd = 77; fd < 256; fd++)
			if ((fcntl(fd, F_GETFD) >= 0) != (fd == 78 || fd == 80))
				_exit(2);
		_exit(fcntl(0, F_GETFD) < 0 ? 3 : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("fd");

	tcase_add_test(tc, a_memory_file_is_sealed_and_reads_back);
	tcase_add_test(tc, a_file_over_the_limit_is_told);
	tcase_add_test(tc, descriptors_travel_and_arrive_close_on_exec);
	tcase_add_test(tc, last_words_are_heard_before_the_end);
	tcase_add_test(tc, closing_from_three_leaves_three);
	tcase_add_test(tc, closing_others_keeps_those_that_are_named);
	return suite_run("base/fd", tc);
}
