/* SPDX-License-Identifier: MIT */

#include "cli/term_tty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* How long a tty may take to show the last words. */
#define LAST_WORDS_MS 300

/* How long one write may wait where it cannot be told not to. */
#define BLOCKED_US 50000

/*
 * Whatever state a terminal is in: cancels a sequence that was cut, ends a
 * synchronized update and a link, and takes back mouse, focus, paste, the
 * protocols of keys, then margins and origin (both home the cursor, hence
 * around them the saving), the rest softly, wrap, charsets, the shape of the
 * cursor and colours.
 */
static const char leave_alt[] = "\030\033[?1049l";
static const char leave_rest[] =
	"\030\033[?2026l\033]8;;\033\\"
	"\033[?9l\033[?1000l\033[?1002l\033[?1003l\033[?1005l\033[?1006l"
	"\033[?1015l\033[?1004l\033[?2004l\033[=0u\033[>4m\033[?1l\033>"
	"\0337\033[?6l\033[?69l\033[r\0338\033[!p\033[?7h\033[4l"
	"\033(B\017\033[0 q\033[?25h\033[m\r\n\033[J";

/* For the signals of a crash, whose handlers get nothing else. */
static struct term_tty *crashing;

/* ---- opening ---- */

/* A master would open a new pair of the kind. */
static bool
is_master(int fd)
{
	unsigned int number;

	return ioctl(fd, TIOCGPTN, &number) == 0;
}

static int
open_again(int fd, int flags)
{
	char path[32];

	if (is_master(fd))
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* Not for a terminal that belongs to another user, as after su(1). */
static int
open_or_dup(int fd, int flags, bool *ret_blocks)
{
	int own = open_again(fd, flags);

	*ret_blocks = own < 0;
	return own >= 0 ? own : fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

int
term_tty_open(struct term_tty *tty, struct errmsg *why)
{
	bool in_blocks;

	*tty = (struct term_tty){ .in = -1, .out = -1 };
	if (tcgetattr(STDIN_FILENO, &tty->modes) < 0 || !isatty(STDOUT_FILENO))
		return errmsg_set(why, -ENOTTY,
				  "attaching needs a terminal on stdin and "
				  "stdout; see term send, term read and term "
				  "screen");
	tty->in = open_or_dup(STDIN_FILENO, O_RDONLY, &in_blocks);
	tty->out = open_or_dup(STDOUT_FILENO, O_WRONLY, &tty->out_blocks);
	if (tty->in < 0 || tty->out < 0)
		return errmsg_set(why, -errno, "cannot use the terminal: %s",
				  strerror(errno));
	return 0;
}

void
term_tty_fini(struct term_tty *tty)
{
	term_tty_leave(tty, true, true);
	closep(&tty->in);
	closep(&tty->out);
	*tty = (struct term_tty){ .in = -1, .out = -1 };
}

/* ---- writing ---- */

static void
on_alarm(int signal)
{
	(void)signal;
}

/*
 * A tty says that it can be written to when there is room for a byte, and
 * waits for the rest.  A signal makes it give back what it has taken.
 */
static ssize_t
write_for_a_moment(int fd, const void *bytes, size_t len)
{
	const struct sigaction action = { .sa_handler = on_alarm };
	const struct itimerval moment = { { 0, BLOCKED_US },
					  { 0, BLOCKED_US } };
	const struct itimerval never = { 0 };
	struct pollfd polled = { .fd = fd, .events = POLLOUT };
	ssize_t n;

	if (poll(&polled, 1, 0) == 0)
		return -EAGAIN;
	(void)sigaction(SIGALRM, &action, NULL);
	(void)setitimer(ITIMER_REAL, &moment, NULL);
	n = write(fd, bytes, len);
	if (n < 0)
		n = -errno;
	(void)setitimer(ITIMER_REAL, &never, NULL);
	return n == -EINTR ? -EAGAIN : n;
}

ssize_t
term_tty_write(const struct term_tty *tty, const void *bytes, size_t len)
{
	ssize_t n;

	if (tty->out_blocks)
		return write_for_a_moment(tty->out, bytes, len);
	n = write(tty->out, bytes, len);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return n;
}

static void
put(const struct term_tty *tty, const char *bytes, size_t len)
{
	int64_t until = clock_mono_ns() + LAST_WORDS_MS * 1000000LL;

	while (len > 0 && clock_mono_ns() < until) {
		struct pollfd polled = { .fd = tty->out, .events = POLLOUT };
		ssize_t n = term_tty_write(tty, bytes, len);

		if (n < 0 && n != -EAGAIN)
			return;
		if (n < 0)
			(void)poll(&polled, 1, clock_left_ms(until));
		else
			bytes += n, len -= (size_t)n;
	}
}

void
term_tty_say(const struct term_tty *tty, const char *format, ...)
{
	char text[512];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n > 0)
		put(tty, text,
		    (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

/* ---- modes ---- */

static void
on_crash(int signal)
{
	struct term_tty *tty = crashing;

	if (tty && tty->is_raw) {
		(void)tcsetattr(tty->in, TCSANOW, &tty->modes);
		(void)!write(tty->out, leave_alt, sizeof(leave_alt) - 1);
		(void)!write(tty->out, leave_rest, sizeof(leave_rest) - 1);
	}
	(void)raise(signal);
}

static void
catch_crashes(struct term_tty *tty)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE,
				       SIGABRT };
	const struct sigaction action = { .sa_handler = on_crash,
					  .sa_flags = (int)SA_RESETHAND };

	crashing = tty;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)sigaction(signals[i], &action, NULL);
}

/* Whose it is now; one that is no controlling terminal is nobody's. */
static bool
is_ours(const struct term_tty *tty)
{
	pid_t group = tcgetpgrp(tty->in);

	return group < 0 || group == getpgrp();
}

int
term_tty_enter(struct term_tty *tty)
{
	struct termios raw = tty->modes;

	cfmakeraw(&raw);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	/* In the background, this is where the process stops until `fg`. */
	while (tcsetattr(tty->in, TCSANOW, &raw) < 0)
		if (errno != EINTR)
			return -errno;
	tty->is_raw = true;
	catch_crashes(tty);
	return 0;
}

void
term_tty_leave(struct term_tty *tty, bool paint_back, bool alt)
{
	sigset_t stops, before;

	if (!tty->is_raw)
		return;
	tty->is_raw = false;
	crashing = NULL;
	/* A shell has it back already: nothing of it is ours to change. */
	if (!is_ours(tty))
		return;
	(void)sigemptyset(&stops);
	(void)sigaddset(&stops, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &stops, &before);
	/* Not after the output: that may never be taken. */
	(void)tcsetattr(tty->in, TCSANOW, &tty->modes);
	if (paint_back && alt)
		put(tty, leave_alt, sizeof(leave_alt) - 1);
	if (paint_back)
		put(tty, leave_rest, sizeof(leave_rest) - 1);
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
}

void
term_tty_lift(struct term_tty *tty)
{
	unsigned int cols, rows;

	term_tty_size(tty, &cols, &rows);
	for (; rows > 0; rows--)
		put(tty, "\n", 1);
}

void
term_tty_size(const struct term_tty *tty, unsigned int *ret_cols,
	      unsigned int *ret_rows)
{
	struct winsize size = { 0 };

	if (ioctl(tty->out, TIOCGWINSZ, &size) < 0 || size.ws_col == 0 ||
	    size.ws_row == 0)
		(void)ioctl(tty->in, TIOCGWINSZ, &size);
	*ret_cols = size.ws_col;
	*ret_rows = size.ws_row;
}
