/* SPDX-License-Identifier: MIT */

/*
 * The keeper's table between a warden and an init that the test plays.  First
 * processes are children of the test that sleep.
 */

#include "mount-helper/keeper_commands.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "mount-helper/commands.h"
#include "tests/unit/suite.h"

static struct helper helper;
static struct groups groups;
static struct keeper_commands all;
static int warden, init; /* our ends */
static int theirs[2];	 /* the table's */
static int pipes[2][2];	 /* the command's output; [i][0] is drained */
static char dir[] = "/var/tmp/pale-kc.XXXXXX";
static int dir_fd;

static void
setup(void)
{
	int pair[2];

	memset(&helper, 0, sizeof(helper));
	namespaces_init(&helper.namespaces);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	warden = pair[0];
	theirs[0] = pair[1];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	init = pair[0];
	theirs[1] = pair[1];
	all = (struct keeper_commands){ .h = &helper,
					.groups = &groups,
					.warden_sock = theirs[0],
					.init_sock = theirs[1] };
	memset(dir + strlen(dir) - 6, 'X', 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pipe2(pipes[i], O_CLOEXEC), 0);
}

static void
remove_in(const char *name)
{
	(void)unlinkat(dir_fd, name, 0);
}

static void
teardown(void)
{
	keeper_commands_fini(&all);
	remove_in("stdout.tail");
	remove_in("stderr.tail");
	remove_in("exit");
	ck_assert_int_eq(rmdir(dir), 0);
	(void)close(dir_fd);
	(void)close(warden);
	(void)close(init);
	(void)close(theirs[0]);
	(void)close(theirs[1]);
	for (int i = 0; i < 4; i++)
		(void)close(pipes[i / 2][i % 2]);
}

/* One round of the keeper's loop. */
static void
turn(void)
{
	struct pollfd polls[32];
	size_t n = keeper_commands_polled(&all);

	ck_assert_uint_le(n, 32);
	keeper_commands_poll(&all, polls);
	(void)poll(polls, n, 1000);
	keeper_commands_serve(&all, polls);
}

static void
order(enum wire_type type, uint64_t id, uint32_t flags, int *fds, size_t n)
{
	struct wire_msg msg = { .type = type, .id = id, .flags = flags };
	int copies[FD_PASS_MAX];

	for (size_t i = 0; i < n; i++)
		copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
	ck_assert(keeper_commands_order(&all, &msg, copies, n));
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(copies[i], -1);
}

/* Orders a command with pipes; returns its socket, as init gets it. */
static int
spawn(uint64_t id)
{
	int given[] = { dir_fd,	     dir_fd,	  pipes[0][1], pipes[1][1],
			pipes[0][0], pipes[1][0], dir_fd };
	int fds[FD_PASS_MAX];
	struct wire_msg msg;
	size_t n = 0;

	order(WIRE_SPAWN, id, WIRE_SPAWN_OUT | WIRE_SPAWN_ERR | WIRE_SPAWN_DIR,
	      given, 7);
	ck_assert_int_eq(wire_recv_all(init, &msg, fds, &n), 1);
	ck_assert_uint_eq(msg.type, WIRE_SPAWN);
	ck_assert_uint_eq(msg.id, id);
	ck_assert_uint_eq(n, COMMAND_FDS);
	for (size_t i = 0; i < COMMAND_KEEPER; i++)
		(void)close(fds[i]);
	return fds[COMMAND_KEEPER];
}

static pid_t
sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	return pid;
}

static void
say(int sock, enum wire_type type, int value, int status, int fd)
{
	const struct wire_msg msg = { .type = type,
				      .value = value,
				      .status = status };

	ck_assert_int_eq(fd_send(sock, &msg, sizeof(msg), &fd, fd >= 0), 0);
	turn();
}

static struct wire_msg
hear(enum wire_type type, uint64_t id)
{
	struct pollfd one = { .fd = warden, .events = POLLIN };
	struct wire_msg msg = { .type = WIRE_NONE };
	int fd = -1;

	/* A socket ends before its process does. */
	for (int i = 0; i < 10 && poll(&one, 1, 0) == 0; i++)
		turn();
	ck_assert_int_eq(wire_recv(warden, &msg, &fd), 1);
	closep(&fd);
	ck_assert_uint_eq(msg.type, type);
	ck_assert_uint_eq(msg.id, id);
	return msg;
}

static bool
is_silent(void)
{
	struct pollfd one = { .fd = warden, .events = POLLIN };

	return poll(&one, 1, 0) == 0;
}

/* A command that runs; *ret_pid is its first process. */
static int
run(uint64_t id, pid_t *ret_pid)
{
	int sock = spawn(id), pidfd;

	*ret_pid = sleeper();
	pidfd = (int)syscall(SYS_pidfd_open, *ret_pid, 0);
	say(sock, WIRE_CMD_BORN, 0, 0, pidfd);
	(void)hear(WIRE_CMD_BORN, id);
	say(sock, WIRE_SPAWNED, 0, 0, pidfd);
	(void)hear(WIRE_SPAWNED, id);
	(void)close(pidfd);
	return sock;
}

static void
expect_file(const char *name, const char *text)
{
	_cleanup_(freep) char *data = NULL;
	size_t len;
	int r = fd_read_path(dir_fd, name, 4096, &data, &len);

	if (!text)
		ck_assert_int_eq(r, -ENOENT);
	else
		ck_assert_int_eq(r, 0);
	if (text)
		ck_assert_str_eq(data, text);
}

START_TEST(an_end_is_told_before_the_tree_is_gone)
{
	pid_t pid;
	int sock = run(7, &pid);

	say(sock, WIRE_CMD_EXITED, 0, 3 << 8, -1);
	ck_assert_int_eq(hear(WIRE_CMD_EXITED, 7).status, 3 << 8);
	ck_assert(is_silent());
	(void)close(sock);
	turn();
	ck_assert(is_silent());

	(void)kill(pid, SIGKILL);
	turn();
	(void)hear(WIRE_CMD_GONE, 7);
	(void)waitpid(pid, NULL, 0);
	ck_assert_uint_eq(all.count, 1);
	order(WIRE_FORGET, 7, 0, NULL, 0);
	ck_assert_uint_eq(all.count, 0);
}
END_TEST

START_TEST(who_is_killed_has_an_end_all_the_same)
{
	pid_t pid;
	int sock = run(1, &pid);

	order(WIRE_CMD_KILL, 1, 0, NULL, 0);
	turn();
	ck_assert_int_eq(hear(WIRE_CMD_EXITED, 1).status, SIGKILL);
	(void)hear(WIRE_CMD_GONE, 1);
	(void)waitpid(pid, NULL, 0);
	(void)close(sock);
}
END_TEST

START_TEST(who_is_killed_before_it_is_born_dies_at_birth)
{
	int sock = spawn(2), pidfd, status;
	pid_t pid = sleeper();

	order(WIRE_CMD_KILL, 2, 0, NULL, 0);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	say(sock, WIRE_CMD_BORN, 0, 0, pidfd);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status));
	(void)hear(WIRE_CMD_BORN, 2);
	(void)close(sock);
	(void)close(pidfd);
	turn();
	ck_assert_int_lt(hear(WIRE_SPAWNED, 2).value, 0);
	ck_assert(is_silent());
}
END_TEST

START_TEST(who_dies_unborn_has_failed)
{
	int sock = spawn(3);

	(void)close(sock);
	turn();
	ck_assert_int_lt(hear(WIRE_SPAWNED, 3).value, 0);
	ck_assert(is_silent());
}
END_TEST

START_TEST(a_failure_is_the_last_word)
{
	int sock = spawn(4);

	say(sock, WIRE_SPAWNED, -ENOENT, 0, -1);
	ck_assert_int_eq(hear(WIRE_SPAWNED, 4).value, -ENOENT);
	(void)close(sock);
	turn();
	ck_assert(is_silent());
}
END_TEST

START_TEST(a_command_speaks_of_itself_alone)
{
	struct wire_msg msg = { .type = WIRE_CMD_EXITED, .id = 6 };
	pid_t pid;
	int sock = run(5, &pid);

	ck_assert_int_eq(fd_send(sock, &msg, sizeof(msg), NULL, 0), 0);
	turn();
	(void)hear(WIRE_CMD_EXITED, 5);
	msg.type = WIRE_LISTENER;
	ck_assert_int_eq(fd_send(sock, &msg, sizeof(msg), NULL, 0), 0);
	turn();
	ck_assert(is_silent());
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)close(sock);
}
END_TEST

START_TEST(what_pipes_hold_is_saved_when_nobody_has_forgotten)
{
	pid_t pid;
	int sock = run(8, &pid);

	ck_assert_int_eq((int)write(pipes[0][1], "out", 3), 3);
	ck_assert_int_eq((int)write(pipes[1][1], "err", 3), 3);
	/* Said, and not yet heard when the end comes. */
	struct wire_msg msg = { .type = WIRE_CMD_EXITED, .status = 5 << 8 };
	ck_assert_int_eq(fd_send(sock, &msg, sizeof(msg), NULL, 0), 0);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	keeper_commands_fini(&all);
	expect_file("stdout.tail", "out");
	expect_file("stderr.tail", "err");
	expect_file("exit", "exited 5\n");
	(void)close(sock);
}
END_TEST

START_TEST(who_was_killed_with_the_world_has_no_end_on_file)
{
	pid_t pid;
	int sock = run(9, &pid);

	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	keeper_commands_fini(&all);
	expect_file("stdout.tail", NULL);
	expect_file("exit", NULL);
	(void)close(sock);
}
END_TEST

START_TEST(what_was_forgotten_is_not_saved)
{
	pid_t pid;
	int sock = run(10, &pid);

	ck_assert_int_eq((int)write(pipes[0][1], "out", 3), 3);
	order(WIRE_FORGET, 10, 0, NULL, 0);
	ck_assert_uint_eq(all.count, 1);
	(void)kill(pid, SIGKILL);
	turn();
	(void)waitpid(pid, NULL, 0);
	ck_assert_uint_eq(all.count, 0);
	keeper_commands_fini(&all);
	expect_file("stdout.tail", NULL);
	(void)close(sock);
}
END_TEST

START_TEST(an_order_without_its_descriptors_is_refused)
{
	order(WIRE_SPAWN, 11, WIRE_SPAWN_DIR, &dir_fd, 1);
	ck_assert_int_lt(hear(WIRE_SPAWNED, 11).value, 0);
	order(WIRE_ENTER, 12, 0, NULL, 0);
	ck_assert_int_lt(hear(WIRE_SPAWNED, 12).value, 0);
	order(WIRE_CMD_KILL, 99, 0, NULL, 0);
	order(WIRE_FORGET, 11, 0, NULL, 0);
	order(WIRE_FORGET, 12, 0, NULL, 0);
	ck_assert_uint_eq(all.count, 0);
}
END_TEST

START_TEST(who_does_not_read_holds_nobody_up)
{
	int sock = spawn(13);

	for (int i = 0; i < 2000; i++)
		order(WIRE_CMD_SIGNAL, 13, 0, NULL, 0);
	(void)close(sock);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_end_is_told_before_the_tree_is_gone);
	tcase_add_test(tc, who_is_killed_has_an_end_all_the_same);
	tcase_add_test(tc, who_is_killed_before_it_is_born_dies_at_birth);
	tcase_add_test(tc, who_dies_unborn_has_failed);
	tcase_add_test(tc, a_failure_is_the_last_word);
	tcase_add_test(tc, a_command_speaks_of_itself_alone);
	tcase_add_test(tc, what_pipes_hold_is_saved_when_nobody_has_forgotten);
	tcase_add_test(tc, who_was_killed_with_the_world_has_no_end_on_file);
	tcase_add_test(tc, what_was_forgotten_is_not_saved);
	tcase_add_test(tc, an_order_without_its_descriptors_is_refused);
	tcase_add_test(tc, who_does_not_read_holds_nobody_up);
	return suite_run("mount-helper/keeper_commands", tc);
}
