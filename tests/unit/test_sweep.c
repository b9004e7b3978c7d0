/* SPDX-License-Identifier: MIT */

#include "mount-helper/sweep.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/suite.h"

#define SECOND_NS INT64_C(1000000000)

static int ready[2]; /* each of a tree writes one byte into it */

static void
setup(void)
{
	ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
}

static void
teardown(void)
{
	(void)close(ready[0]);
	(void)close(ready[1]);
}

static _Noreturn void
stay(void)
{
	(void)!write(ready[1], "", 1);
	for (;;)
		(void)pause();
}

static void
await(size_t n)
{
	char byte;

	while (n-- > 0)
		ck_assert_int_eq(read(ready[0], &byte, 1), 1);
}

static pid_t
child(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		stay();
	return pid;
}

/* A process, its child in a session of its own, and so on. */
static void
chain(int depth)
{
	pid_t pid = fork();

	if (pid != 0)
		return;
	(void)setsid();
	if (depth > 1)
		chain(depth - 1);
	stay();
}

static bool
is_alive(pid_t pid)
{
	return waitpid(pid, NULL, WNOHANG) == 0;
}

/* Whether nobody is left, soon. */
static bool
kill_all(void)
{
	int64_t begin = clock_mono_ns();

	while (waitpid(-1, NULL, WNOHANG) >= 0) {
		if (clock_mono_ns() - begin > 20 * SECOND_NS)
			return false;
		sweep_kill(false, begin);
		(void)usleep(1000);
	}
	return errno == ECHILD;
}

START_TEST(all_of_a_tree_dies_whatever_sessions_it_has)
{
	chain(40);
	(void)child();
	await(41);
	ck_assert(kill_all());
}
END_TEST

/* Below one who does not die, as if he sat in a call of a dead disk. */
START_TEST(after_a_while_those_below_are_killed_directly)
{
	int64_t begin = clock_mono_ns() - SECOND_NS;

	chain(3);
	await(3);
	sweep_kill(false, begin);
	/* All at once, not only ours: nobody comes to us alive. */
	for (int i = 0; i < 3; i++) {
		int status;

		ck_assert_int_gt(waitpid(-1, &status, 0), 0);
		ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	}
}
END_TEST

START_TEST(the_spared_live)
{
	pid_t spared[] = { child(), child() };
	pid_t other = child();

	await(3);
	sweep_heirs(spared, 2);
	ck_assert_int_eq(waitpid(other, NULL, 0), other);
	ck_assert(is_alive(spared[0]));
	ck_assert(is_alive(spared[1]));
	sweep_descendants(spared[0], SIGKILL);
	ck_assert_int_eq(waitpid(spared[1], NULL, 0), spared[1]);
	ck_assert(is_alive(spared[0]));
	ck_assert(kill_all());
}
END_TEST

static void *
fork_in_thread(void *data)
{
	pid_t pid = fork();

	(void)data;
	if (pid == 0)
		stay();
	/* With the thread, the child would be another one's. */
	(void)pause();
	return NULL;
}

START_TEST(a_signal_reaches_the_child_of_a_thread_below)
{
	int status;
	pid_t pid = fork(), heir;

	if (pid == 0) {
		pthread_t thread;

		/* It outlives the signal; what its thread has made does not. */
		(void)signal(SIGTERM, SIG_IGN);
		(void)pthread_create(&thread, NULL, fork_in_thread, NULL);
		stay();
	}
	await(2);
	/* Ignored is inherited: KILL it is, for the one below alone. */
	sweep_descendants(0, SIGTERM);
	ck_assert(is_alive(pid));
	sweep_descendants(0, SIGKILL);
	heir = waitpid(-1, &status, 0);
	ck_assert_int_gt(heir, 0);
	ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	ck_assert(kill_all());
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("sweep");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, all_of_a_tree_dies_whatever_sessions_it_has);
	tcase_add_test(tc, after_a_while_those_below_are_killed_directly);
	tcase_add_test(tc, the_spared_live);
	tcase_add_test(tc, a_signal_reaches_the_child_of_a_thread_below);
	return suite_run("sweep", tc);
}
