/* SPDX-License-Identifier: MIT */

/*
 * The connect broker: an inmate reaches what listens in its world and on the
 * network, and nothing of the host.  PALE_BENCH=1 prints the cost of a call.
 */

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/clock.h"
#include "tests/unit/small_world.h"
#include "tests/unit/suite.h"

static int tcp_port;

static int host_out = -1, host_rw = -1, host_name = -1, host_tcp = -1;
static char abstract_name[32];

static socklen_t
name_socket(struct sockaddr_un *un, const char *path)
{
	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (path[0] == '@') {
		memcpy(un->sun_path + 1, path + 1, strlen(path) - 1);
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
				   strlen(path));
	}
	(void)snprintf(un->sun_path, sizeof(un->sun_path), "%s", path);
	return sizeof(*un);
}

static int
listen_at(const char *path)
{
	struct sockaddr_un un;
	socklen_t len = name_socket(&un, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (path[0] != '@')
		(void)unlink(path);
	if (bind(fd, (struct sockaddr *)&un, len) < 0 || listen(fd, 100) < 0)
		return -1;
	return fd;
}

static int
connect_at(const char *path)
{
	struct sockaddr_un un;
	socklen_t len = name_socket(&un, path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r = result(connect(fd, (struct sockaddr *)&un, len));

	(void)close(fd);
	return r;
}

static int
connect_tcp(int port, int flags)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), r;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r = result(connect(fd, (struct sockaddr *)&in, sizeof(in)));
	if (r == EINPROGRESS) {
		struct pollfd pfd = { .fd = fd, .events = POLLOUT };
		socklen_t len = sizeof(r);

		(void)poll(&pfd, 1, 5000);
		(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &r, &len);
	}
	(void)close(fd);
	return r;
}

static void
start_host(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	socklen_t len = sizeof(in);

	(void)snprintf(abstract_name, sizeof(abstract_name), "@pale-test-%d",
		       (int)getpid());
	host_out = listen_at(OUT "host.sock");
	host_rw = listen_at("/mnt/rw/host.sock");
	host_name = listen_at(abstract_name);
	host_tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(host_tcp, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(listen(host_tcp, 1000), 0);
	ck_assert_int_eq(getsockname(host_tcp, (struct sockaddr *)&in, &len),
			 0);
	tcp_port = ntohs(in.sin_port);
	ck_assert(host_out >= 0 && host_rw >= 0 && host_name >= 0);
}

static void
stop_host(void)
{
	closep(&host_out);
	closep(&host_rw);
	closep(&host_name);
	closep(&host_tcp);
}

static int
reach_out(void)
{
	return connect_at(OUT "host.sock");
}

static int
reach_relative(void)
{
	return chdir("/mnt/out") < 0 ? 98 : connect_at("../out/host.sock");
}

static int
reach_by_link(void)
{
	return connect_at("/mnt/ws/chain/host.sock");
}

static int
reach_rw(void)
{
	return connect_at("/mnt/rw/host.sock");
}

static int
reach_name(void)
{
	return connect_at(abstract_name);
}

static int
reach_nested(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return 98;
	return connect_at(OUT "host.sock");
}

static int
reach_file(void)
{
	return connect_at(OUT "file");
}

static int
reach_missing(void)
{
	return connect_at("/tmp/missing.sock");
}

/* A listener of the world's own, by path and by name. */
static int
reach_own(void)
{
	if (listen_at("/tmp/own.sock") < 0 || listen_at("@pale-own") < 0 ||
	    listen_at("/mnt/rw/own.sock") < 0 || listen_at("/mnt/ws/s") < 0)
		return 97;
	if (connect_at("/tmp/own.sock") || connect_at("/mnt/ws/s"))
		return 96;
	if (connect_at("/mnt/rw/own.sock"))
		return 95;
	if (connect_at("/proc/self/root/tmp/own.sock"))
		return 94;
	if (chdir("/tmp") < 0 || connect_at("own.sock"))
		return 93;
	return connect_at("@pale-own");
}

/* A listener that forks and leaves, as ssh-agent does. */
static int
reach_orphan_at(const char *path)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)listen_at(path);
		if (fork() == 0)
			(void)pause();
		leave(0);
	}
	(void)waitpid(pid, NULL, 0);
	return connect_at(path);
}

static int
reach_orphan(void)
{
	int r = reach_orphan_at("/tmp/orphan.sock");

	return r ? r : reach_orphan_at("/mnt/rw/orphan.sock");
}

/* The file stays, its listener is gone. */
static int
reach_deserted(void)
{
	(void)close(listen_at("/tmp/deserted.sock"));
	return connect_at("/tmp/deserted.sock");
}

static int
reach_datagram(void)
{
	struct sockaddr_un un;
	socklen_t len = name_socket(&un, OUT "host.sock");
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return result(connect(fd, (struct sockaddr *)&un, len));
}

static int
reach_tcp(void)
{
	int r = connect_tcp(tcp_port, 0);

	if (r == 0)
		r = connect_tcp(tcp_port, SOCK_NONBLOCK);
	if (r == 0 && connect_tcp(1, 0) != ECONNREFUSED)
		r = 97;
	if (r == 0 && connect_tcp(1, SOCK_NONBLOCK) != ECONNREFUSED)
		r = 96;
	return r;
}

static int
reach_garbage(void)
{
	char bytes[600] = { 0 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (void *)bytes, 600) == 0 || errno != EINVAL)
		return 97;
	if (connect(fd, (void *)8, 16) == 0 || errno != EFAULT)
		return 96;
	if (connect(4000, (void *)bytes, 16) == 0 || errno != EBADF)
		return 95;
	if (connect(fd, (void *)bytes, 0) == 0 || errno != EINVAL)
		return 94;
	if (connect(open("/dev/null", O_RDONLY | O_CLOEXEC), (void *)bytes,
		    16) == 0 ||
	    errno != ENOTSOCK)
		return 93;
	return 0;
}

static int
reach_parallel(void)
{
	int failed = 0, status;

	for (int i = 0; i < 100; i++)
		if (fork() == 0)
			leave(connect_tcp(tcp_port, 0));
	while (wait(&status) > 0)
		failed += status != 0;
	return failed;
}

static void
on_alarm(int sig)
{
	(void)sig;
}

/* A full backlog blocks; a signal must end that, and others go on. */
static int
reach_full(void)
{
	struct sigaction action = { .sa_handler = on_alarm };
	struct itimerval timer = { .it_value = { .tv_usec = 300000 } };
	struct sockaddr_un un;
	socklen_t len = name_socket(&un, "/tmp/full.sock");
	int server = listen_at("/tmp/full.sock"), fds[4];
	int r = 0;

	(void)listen(server, 0);
	(void)sigaction(SIGALRM, &action, NULL);
	(void)setitimer(ITIMER_REAL, &timer, NULL);
	for (int i = 0; i < 4 && r == 0; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = result(connect(fds[i], (struct sockaddr *)&un, len));
	}
	return r == EINTR ? connect_tcp(tcp_port, 0) : 97;
}

/* The price of the detour through the broker. */
static int
reach_often(void)
{
	int64_t start = clock_mono_ns();
	int rounds = storm_size / 20, r = 0;

	for (int i = 0; i < rounds && r == 0; i++) {
		struct sockaddr_in in = { .sin_family = AF_INET };
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		in.sin_port = htons(9);
		in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		r = result(connect(fd, (struct sockaddr *)&in, sizeof(in)));
		(void)close(fd);
	}
	if (getenv("PALE_BENCH"))
		(void)dprintf(2, "%.2f us per connect\n",
			      (double)(clock_mono_ns() - start) / 1000 /
				      rounds);
	return r;
}

struct reach {
	const char *name;
	act_fn act;
	int error;
	const char *path; /* on record; NULL: nothing is */
};

static const struct reach reaches[] = {
	{ "out", reach_out, EACCES, OUT "host.sock" },
	{ "relative", reach_relative, EACCES, OUT "host.sock" },
	{ "by link", reach_by_link, EACCES, OUT "host.sock" },
	{ "rw", reach_rw, EACCES, "/mnt/rw/host.sock" },
	{ "name", reach_name, EPERM, abstract_name },
	{ "nested", reach_nested, EACCES, OUT "host.sock" },
	{ "file", reach_file, ECONNREFUSED, NULL },
	{ "missing", reach_missing, ENOENT, NULL },
	{ "own", reach_own, 0, NULL },
	{ "orphan", reach_orphan, 0, NULL },
	{ "deserted", reach_deserted, ECONNREFUSED, NULL },
	{ "datagram", reach_datagram, EACCES, OUT "host.sock" },
	{ "tcp", reach_tcp, 0, NULL },
	{ "garbage", reach_garbage, 0, NULL },
	{ "parallel", reach_parallel, 0, NULL },
	{ "full", reach_full, 0, NULL },
	{ "often", reach_often, 0, NULL },
};
#define N_REACHES (int)(sizeof(reaches) / sizeof(reaches[0]))

START_TEST(only_the_worlds_own_sockets_are_reached)
{
	const struct reach *reach = &reaches[_i];
	struct denials_summary summary;
	int error;

	start_host();
	world_start(POLICY_WORKSPACE_WRITE, reach->act);
	error = world_go();
	ck_assert_msg(error == reach->error, "%s: errno %d", reach->name,
		      error);
	denials_summarize(world.denials, &summary);
	ck_assert_msg(summary.count == (reach->path ? 1 : 0), "%s: %d records",
		      reach->name, (int)summary.count);
	if (reach->path) {
		ck_assert_str_eq(summary.first[0].path, reach->path);
		ck_assert_int_eq(summary.first[0].op, POLICY_OP_CONNECT);
		ck_assert_int_eq(summary.first[0].error, reach->error);
	}
	ck_assert_int_lt(accept(host_out, NULL, NULL), 0);
	ck_assert_int_lt(accept(host_rw, NULL, NULL), 0);
	world_end();
	stop_host();
}
END_TEST

START_TEST(a_socket_let_in_is_reached_and_no_other)
{
	struct denials_summary summary;

	start_host();
	ck_assert_int_eq(strv_add(&let_in, OUT "host.sock"), 0);
	ck_assert_int_eq(strv_add(&let_in, OUT "file"), 0);
	world_start(POLICY_READ_ONLY, _i == 0 ? reach_out : reach_rw);
	ck_assert_int_eq(world_go(), _i == 0 ? 0 : EACCES);
	denials_summarize(world.denials, &summary);
	ck_assert_uint_eq(summary.count, _i == 0 ? 0 : 1);
	world_end();
	strv_fini(&let_in);
	stop_host();
}
END_TEST

static void
send_garbage(int sock, unsigned int seed)
{
	/* No number of a living process: their sockets are not ours. */
	static const pid_t pids[] = { -1, 0, INT32_MAX, INT32_MAX - 1 };
	struct wire_msg msg;

	for (size_t i = 0; i < sizeof(msg); i++)
		((unsigned char *)&msg)[i] = (unsigned char)rand_r(&seed);
	if (seed % 8 != 0)
		msg.type = WIRE_CONNECT;
	if (seed % 4 != 0)
		msg.flags = seed % 3;
	if (seed % 2 != 0)
		msg.status = (int32_t)(seed % 140);
	msg.pid = pids[(seed >> 4) % 4];
	ck_assert_int_eq(fd_send(sock, &msg,
				 seed % 16 == 0 ? seed % 100 + 1 : sizeof(msg),
				 &sock, seed % 32 == 1),
			 0);
}

/* An usher in no world, but with a listener; its socket is the caller's. */
static pid_t
start_usher(int listener, int *ret_sock)
{
	int socks[2];
	pid_t usher;

	ck_assert_int_eq(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks),
		0);
	usher = fork();
	ck_assert_int_ge(usher, 0);
	if (usher == 0) {
		const struct usher_place place = {
			.world_sock = socks[1],
			.host_proc_fd =
				open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
			.init_pid = -1,
			.listener = listener,
			.scoped = true,
		};

		(void)close(socks[0]);
		leave(-usher_serve(&place));
	}
	(void)close(socks[1]);
	*ret_sock = socks[0];
	return usher;
}

/* The number may be another's by now: here it is that of this very test. */
START_TEST(a_call_that_nobody_waits_for_reaches_no_socket)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	struct wire_msg msg = { .type = WIRE_CONNECT,
				.flags = WIRE_CONNECT_CALL,
				.id = 1,
				.user_us = 77 };
	int sock = -1, status, ours, server;
	pid_t usher = start_usher(open("/dev/null", O_RDWR | O_CLOEXEC), &sock);

	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(server, (const struct sockaddr *)&address, len),
			 0);
	ck_assert_int_eq(listen(server, 1), 0);
	ck_assert_int_eq(getsockname(server, (struct sockaddr *)&address, &len),
			 0);
	ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	msg.pid = getpid();
	msg.value = ours;
	msg.status = sizeof(address);
	memcpy(msg.text, &address, sizeof(address));
	ck_assert_int_eq(fd_send(sock, &msg, sizeof(msg), NULL, 0), 0);
	do
		ck_assert_int_eq(recv(sock, &msg, sizeof(msg), 0), sizeof(msg));
	while (msg.flags & WIRE_CONNECTED_HELLO);
	ck_assert_int_eq(msg.value, -ESRCH);
	ck_assert_int_lt(getpeername(ours, (struct sockaddr *)&address, &len),
			 0);
	(void)close(sock);
	ck_assert_int_eq(waitpid(usher, &status, 0), usher);
}
END_TEST

/* The thread that asked, by a descriptor: the number is this test's, again. */
START_TEST(a_call_whose_thread_has_ended_reaches_no_socket)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t len = sizeof(address);
	struct wire_msg call = { .type = WIRE_CONNECT,
				 .flags = WIRE_CONNECT_CALL,
				 .id = 1 },
			msg;
	int sock = -1, status, holders[2], ours, server;
	pid_t usher = start_usher(open("/dev/null", O_RDWR | O_CLOEXEC), &sock),
	      gone = fork();

	if (gone == 0)
		leave(0);
	holders[0] = (int)syscall(SYS_pidfd_open, gone, 0);
	ck_assert_int_eq(waitpid(gone, &status, 0), gone);
	holders[1] = (int)syscall(SYS_pidfd_open, getpid(), 0);
	ck_assert_int_ge(holders[0], 0);
	ck_assert_int_ge(holders[1], 0);
	server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(server, (const struct sockaddr *)&address, len),
			 0);
	ck_assert_int_eq(listen(server, 1), 0);
	ck_assert_int_eq(getsockname(server, (struct sockaddr *)&address, &len),
			 0);
	ours = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	call.pid = getpid();
	call.value = ours;
	call.status = sizeof(address);
	memcpy(call.text, &address, sizeof(address));
	/* The usher is our child and may, unless that is forbidden here. */
	(void)prctl(PR_SET_PTRACER, usher, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(
			fd_send(sock, &call, sizeof(call), &holders[i], 1), 0);
		do
			ck_assert_int_eq(recv(sock, &msg, sizeof(msg), 0),
					 sizeof(msg));
		while (msg.flags & WIRE_CONNECTED_HELLO);
		if (i == 0)
			ck_assert_int_eq(msg.value, -ESRCH);
		ck_assert_int_eq(
			getpeername(ours, (struct sockaddr *)&address, &len),
			msg.value == 0 ? 0 : -1);
	}
	(void)close(sock);
	ck_assert_int_eq(waitpid(usher, &status, 0), usher);
}
END_TEST

START_TEST(garbage_does_not_stop_the_usher)
{
	int socks[1] = { -1 }, status;
	struct wire_msg msg;
	pid_t usher = start_usher(-1, &socks[0]);

	for (unsigned int i = 0; i < 3000; i++) {
		send_garbage(socks[0], (unsigned int)_i * 3000 + i);
		while (recv(socks[0], &msg, sizeof(msg), MSG_DONTWAIT) > 0)
			ck_assert_uint_eq(msg.type, WIRE_CONNECTED);
	}
	(void)close(socks[0]);
	ck_assert_int_eq(waitpid(usher, &status, 0), usher);
	ck_assert_int_eq(status, 0);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("usher_connect");

	small_world_prepare();
	close_host = stop_host;
	tcase_set_timeout(tc, SLOW);
	tcase_add_loop_test(tc, only_the_worlds_own_sockets_are_reached, 0,
			    N_REACHES);
	tcase_add_loop_test(tc, a_socket_let_in_is_reached_and_no_other, 0, 2);
	tcase_add_test(tc, a_call_that_nobody_waits_for_reaches_no_socket);
	tcase_add_test(tc, a_call_whose_thread_has_ended_reaches_no_socket);
	tcase_add_loop_test(tc, garbage_does_not_stop_the_usher, 0, 4);
	return suite_run("usher_connect", tc);
}
