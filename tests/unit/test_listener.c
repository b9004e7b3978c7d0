/* SPDX-License-Identifier: MIT */

/*
 * The keeper beside an observer that is there, away, or busy: the test is the
 * observer, a child under a filter the inmate.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "mount-helper/listener.h"
#include "tests/unit/suite.h"

#define MS 1000000LL

static struct listener l;
static struct wire_pace *pace;
static int pair[2], page;
static pid_t inmate;

static int
install_filter(void)
{
#define NOTIFY(name)                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF)
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		NOTIFY(mkdirat),
		NOTIFY(connect),
		NOTIFY(inotify_init1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]),
				      .filter = code };

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			    SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

/* A child that does the call `n` times; its exit status is the last errno. */
static void
start_inmate(long call, int n)
{
	int ends[2], fds[FD_PASS_MAX], listener;
	size_t nfds;
	char byte = 'x';

	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	inmate = fork();
	ck_assert_int_ge(inmate, 0);
	if (inmate == 0) {
		int error = 0;

		listener = install_filter();
		if (listener < 0 || fd_send(ends[1], &byte, 1, &listener, 1))
			_exit(99);
		(void)close(listener);
		for (int i = 0; i < n; i++)
			error = syscall(call, -1, "x", 0) < 0 ? errno : 0;
		_exit(error);
	}
	(void)close(ends[1]);
	ck_assert_int_eq(fd_recv(ends[0], &byte, 1, fds, &nfds), 1);
	ck_assert_uint_eq(nfds, 1);
	(void)close(ends[0]);
	l = LISTENER_NONE;
	l.fd = fds[0];
	page = memfd_create("pace", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(page, sizeof(*pace)), 0);
	pace = mmap(NULL, sizeof(*pace), PROT_READ | PROT_WRITE, MAP_SHARED,
		    page, 0);
	ck_assert_ptr_ne(pace, MAP_FAILED);
	ck_assert_int_eq(listener_poll(&l).fd, -1);
	listener_watch(&l, page);
	ck_assert_int_eq(listener_poll(&l).fd, l.fd);
	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

/* One round of the keeper's loop; returns whether the inmate has ended. */
static bool
turn(int *status)
{
	struct pollfd one = listener_poll(&l);
	int timeout_ms = listener_timeout(&l);

	if (waitpid(inmate, status, WNOHANG) == inmate)
		return true;
	if (timeout_ms < 0 || timeout_ms > 5)
		timeout_ms = 5;
	(void)poll(&one, 1, timeout_ms);
	listener_look(&l, one.revents, pair[0]);
	return false;
}

/* Until the inmate ends; its errno. */
static int
run_keeper(void)
{
	int64_t until = clock_mono_ns() + 5000 * MS;
	int status = 0;

	while (!turn(&status))
		ck_assert_int_lt(clock_mono_ns(), until);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool
receive(struct seccomp_notif *notif)
{
	struct pollfd one = { .fd = l.fd, .events = POLLIN };

	memset(notif, 0, sizeof(*notif));
	return poll(&one, 1, 0) > 0 &&
	       ioctl(l.fd, SECCOMP_IOCTL_NOTIF_RECV, notif) == 0;
}

static void
teardown(void)
{
	(void)close(l.fd);
	(void)close(pair[0]);
	(void)close(pair[1]);
	(void)close(page);
	(void)munmap(pace, sizeof(*pace));
}

START_TEST(nobody_waits_for_an_observer_that_is_away)
{
	int64_t began = clock_mono_ns();

	start_inmate(SYS_mkdirat, 100);
	ck_assert_int_eq(run_keeper(), EBADF);
	ck_assert_uint_eq(pace->stood_in, 100);
	/* The first is waited for, the others are not. */
	ck_assert_int_ge(clock_mono_ns() - began, WIRE_PACE_MS * MS);
	ck_assert_int_lt(clock_mono_ns() - began, MS * 20 * WIRE_PACE_MS);
}
END_TEST

START_TEST(a_connect_is_handed_over_and_never_let_go)
{
	struct wire_msg msg = { 0 };
	struct seccomp_notif notif;
	int64_t until = clock_mono_ns() + 2000 * MS;
	struct seccomp_notif_resp refused = { .error = -ETXTBSY };
	int status = 0;

	start_inmate(SYS_connect, 1);
	while (recv(pair[1], &msg, sizeof(msg), MSG_DONTWAIT) < 0) {
		ck_assert(!turn(&status));
		ck_assert_int_lt(clock_mono_ns(), until);
	}
	ck_assert_uint_eq(msg.type, WIRE_CALL);
	memcpy(&notif, msg.text, sizeof(notif));
	ck_assert_int_eq(notif.data.nr, SYS_connect);
	ck_assert_uint_eq(pace->stood_in, 0);
	refused.id = notif.id;
	ck_assert_int_eq(ioctl(l.fd, SECCOMP_IOCTL_NOTIF_SEND, &refused), 0);
	ck_assert_int_eq(run_keeper(), ETXTBSY);
}
END_TEST

START_TEST(a_watch_goes_on_and_is_told)
{
	struct wire_msg msg = { 0 };
	struct seccomp_notif notif;

	start_inmate(SYS_inotify_init1, 1);
	(void)run_keeper();
	ck_assert_uint_eq(pace->stood_in, 1);
	ck_assert_int_gt(recv(pair[1], &msg, sizeof(msg), MSG_DONTWAIT), 0);
	ck_assert_uint_eq(msg.type, WIRE_CALL);
	memcpy(&notif, msg.text, sizeof(notif));
	ck_assert_int_eq(notif.data.nr, SYS_inotify_init1);
}
END_TEST

START_TEST(a_connect_that_nobody_takes_is_refused)
{
	start_inmate(SYS_connect, 3);
	(void)close(pair[1]);
	pair[1] = -1;
	ck_assert_int_eq(run_keeper(), EACCES);
}
END_TEST

START_TEST(the_call_in_hand_goes_on_after_its_time)
{
	struct seccomp_notif notif;

	start_inmate(SYS_mkdirat, 1);
	while (!receive(&notif))
		;
	pace->since_ns = (uint64_t)clock_mono_ns();
	pace->id = notif.id;
	pace->received++;
	ck_assert_int_eq(run_keeper(), EBADF);
	ck_assert_uint_eq(pace->stood_in, 1);
}
END_TEST

START_TEST(an_observer_that_keeps_up_is_left_alone)
{
	struct seccomp_notif_resp answer = { .error = -ETXTBSY };
	struct seccomp_notif notif;
	int64_t next = 0;
	int status = 0;

	start_inmate(SYS_mkdirat, 20);
	/* One in 10 ms: the inmate waits, but never for long. */
	while (!turn(&status)) {
		if (clock_mono_ns() < next || !receive(&notif))
			continue;
		pace->received++;
		answer.id = notif.id;
		(void)ioctl(l.fd, SECCOMP_IOCTL_NOTIF_SEND, &answer);
		next = clock_mono_ns() + 10 * MS;
	}
	ck_assert_int_eq(WEXITSTATUS(status), ETXTBSY);
	ck_assert_uint_eq(pace->stood_in, 0);
}
END_TEST

/* One that would run: a process that does nothing else stands for it. */
START_TEST(a_busy_machine_is_no_reason_to_stand_in_at_once)
{
	int64_t began = clock_mono_ns();
	pid_t spinner = fork();

	if (spinner == 0)
		for (volatile int i = 0;; i++)
			;
	start_inmate(SYS_mkdirat, 1);
	pace->thread = spinner;
	ck_assert_int_eq(run_keeper(), EBADF);
	ck_assert_int_ge(clock_mono_ns() - began, MS * 10 * WIRE_PACE_MS);
	ck_assert_uint_eq(pace->stood_in, 1);
	(void)kill(spinner, SIGKILL);
	(void)waitpid(spinner, NULL, 0);
}
END_TEST

START_TEST(it_is_over_when_no_inmate_is_left)
{
	start_inmate(SYS_mkdirat, 0);
	ck_assert_int_eq(run_keeper(), 0);
	for (int i = 0; i < 100 && listener_poll(&l).fd >= 0; i++) {
		struct pollfd one = { .fd = l.fd, .events = POLLIN };

		(void)poll(&one, 1, 10);
		listener_look(&l, one.revents, pair[0]);
	}
	ck_assert_int_eq(listener_poll(&l).fd, -1);
	ck_assert_int_eq(listener_timeout(&l), -1);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("listener");

	tcase_add_checked_fixture(tc, NULL, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, nobody_waits_for_an_observer_that_is_away);
	tcase_add_test(tc, a_connect_is_handed_over_and_never_let_go);
	tcase_add_test(tc, a_connect_that_nobody_takes_is_refused);
	tcase_add_test(tc, a_watch_goes_on_and_is_told);
	tcase_add_test(tc, the_call_in_hand_goes_on_after_its_time);
	tcase_add_test(tc, an_observer_that_keeps_up_is_left_alone);
	tcase_add_test(tc, a_busy_machine_is_no_reason_to_stand_in_at_once);
	tcase_add_test(tc, it_is_over_when_no_inmate_is_left);
	return suite_run("listener", tc);
}
