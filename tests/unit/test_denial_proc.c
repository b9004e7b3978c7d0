/* SPDX-License-Identifier: MIT */

/* Who it was, asked again and again: kept descriptors never answer wrongly. */

#include "policy/denial_priv.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/unit/suite.h"

static struct denial_cache cache;

static void
setup(void)
{
	denial_cache_init(&cache);
}

static void
teardown(void)
{
	denial_cache_fini(&cache);
}

static struct denial
look_up(pid_t pid, struct denial_origin *room)
{
	struct denial denial = { .pid = pid };

	denial_look_up(&cache, &denial, room);
	return denial;
}

/* A child that reads one byte for each step of `act`. */
struct child {
	pid_t pid;
	int orders, answers;
};

static struct child
child_new(void (*act)(int orders, int answers))
{
	int orders[2], answers[2];
	struct child child;

	ck_assert_int_eq(pipe2(orders, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(answers, O_CLOEXEC), 0);
	child.pid = fork();
	ck_assert_int_ge(child.pid, 0);
	if (child.pid == 0) {
		(void)close(orders[1]);
		(void)close(answers[0]);
		act(orders[0], answers[1]);
		_exit(0);
	}
	(void)close(orders[0]);
	(void)close(answers[1]);
	child.orders = orders[1];
	child.answers = answers[0];
	return child;
}

static void
child_end(struct child *child)
{
	(void)close(child->orders);
	(void)close(child->answers);
	ck_assert_int_eq(kill(child->pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(child->pid, NULL, 0), child->pid);
}

static void
just_wait(int orders, int answers)
{
	char byte;

	(void)answers;
	(void)!read(orders, &byte, 1);
}

static void
become_cat(int orders, int answers)
{
	char byte;

	(void)!read(orders, &byte, 1);
	(void)dup2(orders, 0);
	(void)dup2(answers, 1);
	execlp("cat", "cat", (char *)NULL);
}

/* Tells the pid of a child of its own, and ends when ordered. */
static void
have_a_child(int orders, int answers)
{
	pid_t pid = fork();
	char byte;

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	(void)!write(answers, &pid, sizeof(pid));
	(void)!read(orders, &byte, 1);
}

START_TEST(a_process_is_told_the_same_each_time)
{
	struct child child = child_new(just_wait);
	struct denial_origin first, again;
	struct denial a = look_up(child.pid, &first);
	struct denial b = look_up(child.pid, &again);

	ck_assert_str_eq(a.comm, "test_denial_pro");
	ck_assert_str_eq(b.comm, a.comm);
	ck_assert_str_eq(b.exe, a.exe);
	ck_assert_int_eq(a.ppid, getpid());
	ck_assert_int_eq(b.ppid, a.ppid);
	ck_assert_int_eq(a.inner_pid, child.pid);
	ck_assert_int_eq(b.inner_pid, a.inner_pid);
	child_end(&child);
}
END_TEST

START_TEST(exec_is_seen)
{
	struct child child = child_new(become_cat);
	struct denial_origin room;
	struct denial denial = look_up(child.pid, &room);
	char byte;

	ck_assert_str_eq(denial.comm, "test_denial_pro");
	ck_assert_int_eq(write(child.orders, "go", 2), 2);
	ck_assert_int_eq(read(child.answers, &byte, 1), 1);
	denial = look_up(child.pid, &room);
	ck_assert_str_eq(denial.comm, "cat");
	ck_assert_ptr_nonnull(strstr(denial.exe, "/cat"));
	child_end(&child);
}
END_TEST

START_TEST(a_parent_that_ended_is_the_parent_no_more)
{
	struct child child = child_new(have_a_child);
	struct denial_origin room;
	struct denial denial;
	pid_t pid = 0;

	ck_assert_int_eq(read(child.answers, &pid, sizeof(pid)), sizeof(pid));
	denial = look_up(pid, &room);
	ck_assert_int_eq(denial.ppid, child.pid);
	child_end(&child);
	denial = look_up(pid, &room);
	ck_assert_int_ne(denial.ppid, child.pid);
	ck_assert_int_gt(denial.ppid, 0);
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
}
END_TEST

START_TEST(another_process_of_the_same_number_is_another)
{
	struct child gone = child_new(just_wait), cat = child_new(become_cat);
	struct denial_origin room;
	struct denial denial;
	char byte;

	ck_assert_int_eq(write(cat.orders, "go", 2), 2);
	ck_assert_int_eq(read(cat.answers, &byte, 1), 1);
	(void)look_up(gone.pid, &room);
	child_end(&gone);
	for (unsigned int i = 0; i < DENIAL_KNOWN; i++)
		if (cache.known[i].pid == gone.pid)
			cache.known[i].pid = cat.pid;
	denial = look_up(cat.pid, &room);
	ck_assert_str_eq(denial.comm, "cat");
	ck_assert_int_eq(denial.inner_pid, cat.pid);
	child_end(&cat);
}
END_TEST

START_TEST(who_is_gone_leaves_the_fields_empty)
{
	struct child child = child_new(just_wait);
	struct denial_origin room;
	struct denial denial;

	(void)look_up(child.pid, &room);
	child_end(&child);
	denial = look_up(child.pid, &room);
	ck_assert_ptr_null(denial.comm);
	ck_assert_ptr_null(denial.exe);
	ck_assert_int_eq(denial.ppid, 0);
	ck_assert_int_eq(denial.inner_pid, 0);
}
END_TEST

static int
count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

START_TEST(of_many_processes_the_last_few_stay_open)
{
	struct child children[4 * DENIAL_KNOWN];
	const int n = 4 * DENIAL_KNOWN;
	struct denial_origin room;
	int before;

	for (int i = 0; i < n; i++)
		children[i] = child_new(just_wait);
	before = count_fds();
	for (int round = 0; round < 3; round++)
		for (int i = 0; i < n; i++)
			ck_assert_int_eq(
				look_up(children[i].pid, &room).inner_pid,
				children[i].pid);
	ck_assert_int_le(count_fds(), before + 3 * (int)DENIAL_KNOWN);
	denial_cache_fini(&cache);
	ck_assert_int_eq(count_fds(), before);
	denial_cache_init(&cache);
	for (int i = 0; i < n; i++)
		child_end(&children[i]);
}
END_TEST

static void *
look_up_often(void *data)
{
	const struct child *children = data;
	struct denial_origin room;

	for (int i = 0; i < 2000; i++) {
		pid_t pid = children[i % (2 * (int)DENIAL_KNOWN)].pid;
		struct denial denial = look_up(pid, &room);

		ck_assert_int_eq(denial.inner_pid, pid);
		ck_assert_int_eq(denial.ppid, getpid());
	}
	return NULL;
}

START_TEST(threads_never_take_one_process_for_another)
{
	struct child children[2 * DENIAL_KNOWN];
	pthread_t threads[4];

	for (unsigned int i = 0; i < 2 * DENIAL_KNOWN; i++)
		children[i] = child_new(just_wait);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
						look_up_often, children),
				 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	for (unsigned int i = 0; i < 2 * DENIAL_KNOWN; i++)
		child_end(&children[i]);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_process_is_told_the_same_each_time);
	tcase_add_test(tc, exec_is_seen);
	tcase_add_test(tc, a_parent_that_ended_is_the_parent_no_more);
	tcase_add_test(tc, another_process_of_the_same_number_is_another);
	tcase_add_test(tc, who_is_gone_leaves_the_fields_empty);
	tcase_add_test(tc, of_many_processes_the_last_few_stay_open);
	tcase_add_test(tc, threads_never_take_one_process_for_another);
	return suite_run("policy/denial_proc", tc);
}
