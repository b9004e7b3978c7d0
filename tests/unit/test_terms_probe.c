/* SPDX-License-Identifier: MIT */

#include "tests/unit/suite.h"
#include "warden/terms_probe.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * In place of the library's, which the probe would call: a file that a program
 * has open may be one that the prober itself serves, and must not be asked for.
 */
static unsigned int looks, questions;

int
statx(int dir, const char *restrict path, int flags, unsigned int mask,
      struct statx *restrict ret)
{
	looks++;
	if (!(flags & AT_STATX_DONT_SYNC))
		questions++;
	return (int)syscall(SYS_statx, dir, path, flags, mask, ret);
}

int
stat(const char *restrict path, struct stat *restrict ret)
{
	questions++;
	return fstatat(AT_FDCWD, path, ret, 0);
}

/* ---- programs that wait, each in its way ---- */

static int other[2];

static void
by_read(void)
{
	char c;

	while (read(0, &c, 1) > 0)
		;
}

static void
by_tty(void)
{
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
	char c;

	while (read(fd, &c, 1) > 0)
		;
}

static void
by_poll(void)
{
	struct pollfd fd = { .fd = 0, .events = POLLIN };

	(void)poll(&fd, 1, 60000);
}

static void
by_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(0, &set);
	(void)select(1, &set, NULL, NULL, NULL);
}

static void
by_mixed_select(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(0, &set);
	FD_SET(other[0], &set);
	(void)select(other[0] + 1, &set, NULL, NULL, NULL);
}

static void
by_epoll(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fd = epoll_create1(EPOLL_CLOEXEC);

	(void)epoll_ctl(fd, EPOLL_CTL_ADD, 0, &event);
	(void)epoll_ctl(fd, EPOLL_CTL_ADD, other[0], &event);
	(void)epoll_wait(fd, &event, 1, -1);
}

static void
by_other(void)
{
	char c;

	while (read(other[0], &c, 1) > 0)
		;
}

static void
by_child(void)
{
	if (fork() == 0) {
		by_read();
		_exit(0);
	}
	(void)wait(NULL);
}

static void
by_sleep(void)
{
	(void)sleep(60);
}

static const struct {
	void (*run)(void);
	enum probe_state state;
} programs[] = {
	{ by_read, PROBE_READS },	  { by_tty, PROBE_READS },
	{ by_poll, PROBE_READS },	  { by_select, PROBE_READS },
	{ by_mixed_select, PROBE_MIXED }, { by_epoll, PROBE_MIXED },
	{ by_other, PROBE_BUSY },	  { by_child, PROBE_READS },
	{ by_sleep, PROBE_BUSY },
};

static int master;

static pid_t
start(void (*run)(void))
{
	pid_t pid;

	ck_assert_int_eq(pipe2(other, O_CLOEXEC), 0);
	pid = forkpty(&master, NULL, NULL, NULL);
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		run();
		_exit(0);
	}
	return pid;
}

static void
stop(pid_t pid)
{
	(void)kill(-pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)close(master);
	(void)close(other[0]);
	(void)close(other[1]);
}

static void
pause_ms(long ms)
{
	const struct timespec pause = { .tv_nsec = ms * 1000000 };

	(void)nanosleep(&pause, NULL);
}

/* Until it is so and stays so. */
static void
await(pid_t pid, enum probe_state state, struct probe *ret_probe)
{
	struct probe probe = { 0 };
	int times = 0;

	for (int i = 0; i < 2000 && times < 5; i++) {
		probe_group(pid, pid, &probe);
		times = probe.state == state ? times + 1 : 0;
		pause_ms(5);
	}
	ck_assert_int_eq(probe.state, state);
	ck_assert_int_eq(probe.group, pid);
	*ret_probe = probe;
}

START_TEST(who_waits_for_the_terminal_is_seen)
{
	pid_t pid = start(programs[_i].run);
	struct probe probe;

	looks = questions = 0;
	await(pid, programs[_i].state, &probe);
	if (programs[_i].state == PROBE_READS)
		ck_assert_uint_gt(looks, 0);
	ck_assert_uint_eq(questions, 0);
	stop(pid);
}
END_TEST

START_TEST(the_next_wait_is_another)
{
	pid_t pid = start(by_read);
	struct probe before, after;

	await(pid, PROBE_READS, &before);
	probe_group(pid, pid, &after);
	ck_assert(probe_is_same(&before, &after));
	ck_assert_int_eq(write(master, "x\n", 2), 2);
	for (int i = 0; i < 1000 && probe_is_same(&before, &after); i++) {
		pause_ms(5);
		probe_group(pid, pid, &after);
	}
	ck_assert(!probe_is_same(&before, &after));
	stop(pid);
}
END_TEST

START_TEST(of_nobody_nothing_is_known)
{
	pid_t pid = start(by_read);
	struct probe probe;

	await(pid, PROBE_READS, &probe);
	probe_group(pid, pid + 1, &probe);
	ck_assert_int_eq(probe.state, PROBE_UNKNOWN);
	probe_group(0, 0, &probe);
	ck_assert_int_eq(probe.state, PROBE_UNKNOWN);
	stop(pid);
	probe_group(pid, pid, &probe);
	ck_assert_int_eq(probe.state, PROBE_UNKNOWN);
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("terms_probe");

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, who_waits_for_the_terminal_is_seen, 0,
			    sizeof(programs) / sizeof(programs[0]));
	tcase_add_test(tcase, the_next_wait_is_another);
	tcase_add_test(tcase, of_nobody_nothing_is_known);
	return suite_run("terms_probe", tcase);
}
