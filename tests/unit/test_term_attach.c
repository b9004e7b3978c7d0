/* SPDX-License-Identifier: MIT */

/*
 * The attached person's side against a warden that we play: their tty is one
 * that we hold the other end of.
 */

#include "cli/term_attach.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "rpc/frames.h"
#include "tests/unit/suite.h"

#define WAIT_MS 10000

static char dir[64];
static int listener, sock, tty, slave;
static pid_t pid;
static struct termios before;
static struct buf seen; /* on the person's screen */
static struct frames frames;
static struct frame frame;
static struct rpc_lines lines;
static struct person_options options;
static bool is_another_s; /* the tty: it cannot be opened again */

static void
setup(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	(void)snprintf(dir, sizeof(dir), "/tmp/pale-attach-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/sock", dir);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&addr, sizeof(addr)),
			 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	sock = -1;
	seen = (struct buf){ 0 };
	frames = (struct frames){ 0 };
	lines = (struct rpc_lines){ 0 };
	options = (struct person_options){ .id = "t1" };
	is_another_s = false;
}

/* As after su(1). */
static void
setup_another_s(void)
{
	setup();
	is_another_s = true;
}

static void
teardown(void)
{
	char path[80];

	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	pid = 0;
	closep(&sock);
	closep(&listener);
	closep(&tty);
	closep(&slave);
	buf_fini(&seen);
	frames_fini(&frames);
	rpc_lines_fini(&lines);
	(void)snprintf(path, sizeof(path), "%s/sock", dir);
	(void)unlink(path);
	(void)rmdir(dir);
}

/* ---- the person ---- */

static void
be_the_person(void)
{
	struct rpc_client *client = NULL;
	struct errmsg why = { "" };

	closep(&listener);
	if (rpc_client_open(dir, RPC_OPERATOR, &client, &why) < 0)
		_exit(99);
	if (is_another_s &&
	    (fchmod(STDIN_FILENO, 0) < 0 ||
	     (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))))
		_exit(98);
	_exit(person_attach(client, &options));
}

/* What appeared on the screen; false: nothing more will. */
static bool
look(int timeout_ms)
{
	struct pollfd polled = { .fd = tty, .events = POLLIN };
	char bytes[65536];
	ssize_t n;

	if (poll(&polled, 1, timeout_ms) <= 0)
		return true;
	n = read(tty, bytes, sizeof(bytes));
	if (n > 0)
		buf_put(&seen, bytes, (size_t)n);
	return n > 0;
}

static bool
has_seen(const char *text)
{
	return seen.len > 0 && memmem(seen.data, seen.len, text, strlen(text));
}

static void
sees(const char *text)
{
	for (int i = 0; i < WAIT_MS / 10 && !has_seen(text); i++)
		(void)look(10);
	ck_assert_msg(has_seen(text), "the screen does not show '%s' but %.*s",
		      text, (int)seen.len, (const char *)seen.data);
}

static void
type(const char *keys)
{
	ck_assert_int_eq(write(tty, keys, strlen(keys)), (int)strlen(keys));
}

static bool
is_raw(void)
{
	struct termios now;

	ck_assert_int_eq(tcgetattr(slave, &now), 0);
	return !(now.c_lflag & ICANON);
}

static void
same_modes(void)
{
	struct termios now;

	ck_assert_int_eq(tcgetattr(slave, &now), 0);
	ck_assert_uint_eq(now.c_iflag, before.c_iflag);
	ck_assert_uint_eq(now.c_oflag, before.c_oflag);
	ck_assert_uint_eq(now.c_cflag, before.c_cflag);
	ck_assert_uint_eq(now.c_lflag, before.c_lflag);
	ck_assert_mem_eq(now.c_cc, before.c_cc, sizeof(now.c_cc));
}

/* Its wait status; what it shows meanwhile is seen. */
static int
ends(void)
{
	int status;

	for (int i = 0; i < WAIT_MS / 10; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			pid = 0;
			(void)look(0);
			return status;
		}
		(void)look(10);
	}
	ck_abort_msg("it does not end");
	return -1;
}

static void
ends_with(int code)
{
	int status = ends();

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), code);
	same_modes();
}

/* ---- the warden ---- */

static void
request(const char *answer)
{
	const char *line;
	char bytes[4096];
	size_t len;

	while (rpc_lines_next(&lines, &line, &len) != 1) {
		ssize_t n = read(sock, bytes, sizeof(bytes));

		ck_assert_int_gt(n, 0);
		ck_assert_int_eq(rpc_lines_put(&lines, bytes, (size_t)n), 0);
	}
	ck_assert_int_eq(write(sock, answer, strlen(answer)),
			 (int)strlen(answer));
}

static void
start(void)
{
	const struct winsize size = { .ws_row = 24, .ws_col = 80 };

	ck_assert_int_eq(openpty(&tty, &slave, NULL, NULL, &size), 0);
	ck_assert_int_eq(tcgetattr(slave, &before), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		closep(&tty);
		(void)login_tty(slave);
		be_the_person();
	}
	sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(sock, 0);
	request("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
}

static void
attach(void)
{
	start();
	request("{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n");
	for (int i = 0; i < WAIT_MS / 10 && !is_raw(); i++)
		(void)look(10);
	ck_assert(is_raw());
}

/* A person who reads slowly is looked at meanwhile. */
static void
tell(enum frame_type type, const char *text)
{
	struct buf out = { 0 };

	frame_put(&out, (uint8_t)type, 0, text, strlen(text));
	for (size_t at = 0; at < out.len;) {
		ssize_t n = send(sock, out.data + at, out.len - at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			at += (size_t)n;
		else
			ck_assert(errno == EAGAIN && look(WAIT_MS));
	}
	buf_fini(&out);
}

/* The next frame of this type; others are skipped. */
static void
hears(enum frame_type type)
{
	unsigned char *at;
	size_t size;
	ssize_t n;

	for (;;) {
		while (frames_next(&frames, &frame) == 1)
			if (frame.type == type)
				return;
		ck_assert_int_eq(frames_room(&frames, &at, &size), 0);
		n = read(sock, at, size);
		ck_assert_int_gt(n, 0);
		frames_added(&frames, (size_t)n);
	}
}

static void
hears_text(enum frame_type type, const char *text)
{
	hears(type);
	ck_assert_uint_eq(frame.len, strlen(text));
	ck_assert_mem_eq(frame.payload, text, frame.len);
}

/* ---- the tests ---- */

START_TEST(what_is_sent_is_shown_and_what_is_typed_is_sent)
{
	attach();
	tell(FRAME_DATA, "hello");
	sees("hello");
	type("ls\r\003");
	hears_text(FRAME_DATA, "ls\r\003");
}
END_TEST

START_TEST(detaching_says_so_and_waits_to_be_painted_back)
{
	attach();
	type("\034");
	type("d");
	hears(FRAME_DETACH);
	tell(FRAME_DATA, "painted back");
	tell(FRAME_DETACH, "{\"reason\":\"detached\"}");
	ends_with(0);
	sees("painted back");
	sees("[detached from t1]");
	ck_assert(!has_seen("\033[?25h"));
}
END_TEST

START_TEST(a_warden_that_does_not_answer_cannot_hold_a_person)
{
	attach();
	type("\034d");
	hears(FRAME_DETACH);
	ends_with(0);
	sees("\033[?2004l");
	sees("\033[?25h");
}
END_TEST

START_TEST(the_terminal_s_end_is_ours)
{
	attach();
	tell(FRAME_DATA, "bye");
	tell(FRAME_EXIT, "{\"exit\":7,\"status\":\"exited 7\"}");
	ends_with(7);
	sees("bye");
	sees("[t1: exited 7]");
}
END_TEST

START_TEST(a_warden_that_has_gone_leaves_the_tty_as_it_was)
{
	attach();
	tell(FRAME_STATE, "{\"alt\":true}");
	tell(FRAME_DATA, "\033[?1049hhalf a sequence \033[38;5");
	sees("half a sequence");
	closep(&sock);
	sock = -1;
	ends_with(PERSON_EXIT_FAILED);
	sees("\033[?1049l");
	sees("\033[?1000l");
	sees("the warden has gone");
}
END_TEST

START_TEST(what_are_no_frames_ends_it)
{
	attach();
	ck_assert_int_eq(send(sock, "\001\000\001\000\000\000\000\000", 8, 0),
			 8);
	ends_with(PERSON_EXIT_FAILED);
}
END_TEST

START_TEST(being_sent_off_is_told)
{
	attach();
	tell(FRAME_DETACH, "{\"reason\":\"it was removed\"}");
	ends_with(PERSON_EXIT_FAILED);
	sees("it was removed");
}
END_TEST

START_TEST(a_refusal_leaves_the_tty_alone)
{
	start();
	request("{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32000,"
		"\"message\":\"no such terminal\"}}\n");
	ends_with(PERSON_EXIT_FAILED);
	sees("no such terminal");
	ck_assert(!has_seen("\033"));
}
END_TEST

START_TEST(signals_end_it_after_the_tty_is_as_it_was)
{
	static const int signals[] = { SIGTERM, SIGHUP,	 SIGINT, SIGQUIT,
				       SIGSEGV, SIGABRT, SIGBUS };
	int status;

	attach();
	tell(FRAME_DATA, "here");
	sees("here");
	ck_assert_int_eq(kill(pid, signals[_i]), 0);
	status = ends();
	ck_assert(WIFSIGNALED(status));
	ck_assert_int_eq(WTERMSIG(status), signals[_i]);
	same_modes();
	sees("\033[?25h");
}
END_TEST

START_TEST(sizes_are_told)
{
	const struct winsize size = { .ws_row = 200, .ws_col = 500 };
	unsigned int cols, rows;

	attach();
	ck_assert_int_eq(ioctl(tty, TIOCSWINSZ, &size), 0);
	hears(FRAME_RESIZE);
	ck_assert(frame_get_size(&frame, &cols, &rows));
	ck_assert_uint_eq(cols, 500);
	ck_assert_uint_eq(rows, 200);
}
END_TEST

START_TEST(who_only_looks_types_nothing_and_can_leave)
{
	options.read_only = true;
	attach();
	type("rm -rf\r");
	type("\034d");
	for (;;) {
		unsigned char *at;
		size_t size;
		ssize_t n;

		if (frames_next(&frames, &frame) == 1) {
			ck_assert_uint_ne(frame.type, FRAME_DATA);
			if (frame.type == FRAME_DETACH)
				break;
			continue;
		}
		ck_assert_int_eq(frames_room(&frames, &at, &size), 0);
		n = read(sock, at, size);
		ck_assert_int_gt(n, 0);
		frames_added(&frames, (size_t)n);
	}
	ends_with(0);
}
END_TEST

/* Nobody reads the screen; the keys are read all the same. */
START_TEST(a_screen_that_is_stuck_does_not_hold_a_person)
{
	static char much[FRAME_PAYLOAD];
	struct buf out = { 0 };
	int status;

	attach();
	memset(much, 'x', sizeof(much));
	for (int i = 0; i < 3; i++)
		frame_put(&out, FRAME_DATA, 0, much, sizeof(much));
	for (size_t at = 0; at < out.len;) {
		ssize_t n = send(sock, out.data + at, out.len - at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			break;
		at += (size_t)n;
	}
	buf_fini(&out);
	type("\034d");
	hears(FRAME_DETACH);
	for (int i = 0; i < WAIT_MS / 10; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			pid = 0;
			ck_assert(WIFEXITED(status));
			ck_assert_int_eq(WEXITSTATUS(status), 0);
			same_modes();
			return;
		}
		(void)usleep(10000);
	}
	ck_abort_msg("it does not end");
}
END_TEST

START_TEST(much_comes_whole)
{
	char text[8000];
	size_t n = 0;

	attach();
	for (int i = 0; i < 100; i++) {
		memset(text, 'a' + i % 26, sizeof(text));
		text[sizeof(text) - 1] = '\0';
		tell(FRAME_DATA, text);
	}
	tell(FRAME_DATA, "the end");
	sees("the end");
	for (size_t i = 0; i < seen.len; i++)
		n += seen.data[i] >= 'a' && seen.data[i] <= 'z';
	ck_assert_uint_eq(n, 100 * (sizeof(text) - 1) + 6);
}
END_TEST

START_TEST(after_a_stop_it_is_painted_anew)
{
	attach();
	ck_assert_int_eq(kill(pid, SIGSTOP), 0);
	tell(FRAME_DATA, "old");
	ck_assert_int_eq(tcsetattr(slave, TCSANOW, &before), 0);
	ck_assert_int_eq(kill(pid, SIGCONT), 0);
	hears(FRAME_SYNC);
	tell(FRAME_DATA, "too late");
	tell(FRAME_SYNC, "");
	tell(FRAME_DATA, "new");
	sees("new");
	ck_assert(!has_seen("too late"));
	ck_assert(is_raw());
}
END_TEST

START_TEST(it_answers_a_ping)
{
	attach();
	tell(FRAME_PING, "42");
	hears_text(FRAME_PING, "42");
	ck_assert_uint_eq(frame.flags, FRAME_ANSWER);
	/* And what it does not know, it skips. */
	tell((enum frame_type)99, "later");
	tell(FRAME_DATA, "goes on");
	sees("goes on");
}
END_TEST

START_TEST(a_tty_that_hangs_up_ends_it)
{
	int status;

	attach();
	closep(&tty);
	tty = -1;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	pid = 0;
	ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 129);
}
END_TEST

START_TEST(without_a_tty_there_is_nothing_to_attach)
{
	struct errmsg why = { "" };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int stdin_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);

	ck_assert_int_eq(dup2(null, STDIN_FILENO), STDIN_FILENO);
	ck_assert_int_eq(person_check(&options, &why), -ENOTTY);
	ck_assert_ptr_nonnull(strstr(why.text, "needs a terminal"));
	options.detach_key = "x";
	ck_assert_int_eq(person_check(&options, &why), -EINVAL);
	ck_assert_int_eq(dup2(stdin_fd, STDIN_FILENO), STDIN_FILENO);
	closep(&stdin_fd);
	closep(&null);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("term_attach");
	TCase *other = tcase_create("another_s_tty");
	Suite *suite = suite_create("term_attach");
	SRunner *runner;
	int failed;

	(void)signal(SIGPIPE, SIG_IGN);
	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_sent_is_shown_and_what_is_typed_is_sent);
	tcase_add_test(tc, detaching_says_so_and_waits_to_be_painted_back);
	tcase_add_test(tc, a_warden_that_does_not_answer_cannot_hold_a_person);
	tcase_add_test(tc, the_terminal_s_end_is_ours);
	tcase_add_test(tc, a_warden_that_has_gone_leaves_the_tty_as_it_was);
	tcase_add_test(tc, what_are_no_frames_ends_it);
	tcase_add_test(tc, being_sent_off_is_told);
	tcase_add_test(tc, a_refusal_leaves_the_tty_alone);
	tcase_add_loop_test(tc, signals_end_it_after_the_tty_is_as_it_was, 0,
			    7);
	tcase_add_test(tc, sizes_are_told);
	tcase_add_test(tc, who_only_looks_types_nothing_and_can_leave);
	tcase_add_test(tc, a_screen_that_is_stuck_does_not_hold_a_person);
	tcase_add_test(tc, much_comes_whole);
	tcase_add_test(tc, after_a_stop_it_is_painted_anew);
	tcase_add_test(tc, it_answers_a_ping);
	tcase_add_test(tc, a_tty_that_hangs_up_ends_it);
	tcase_add_test(tc, without_a_tty_there_is_nothing_to_attach);
	tcase_set_timeout(other, 60);
	tcase_add_checked_fixture(other, setup_another_s, teardown);
	tcase_add_test(other, what_is_sent_is_shown_and_what_is_typed_is_sent);
	tcase_add_test(other, a_screen_that_is_stuck_does_not_hold_a_person);
	tcase_add_test(other, a_warden_that_has_gone_leaves_the_tty_as_it_was);
	tcase_add_test(other, much_comes_whole);
	suite_add_tcase(suite, tc);
	suite_add_tcase(suite, other);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
