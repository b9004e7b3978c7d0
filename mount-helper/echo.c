/* SPDX-License-Identifier: MIT */

/*
 * Forked from a process with threads, so it makes no call but system calls, and
 * takes no lock.
 */

#include "mount-helper/echo.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/echo.h"
#include "base/fd.h"
#include "mount-helper/lockdown.h"

unsigned long long
echo_capabilities(void)
{
	/* An ordinary user's mount asks for no mode bits. */
	if (geteuid() != 0)
		return 0;
	return 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_DAC_READ_SEARCH |
	       1ULL << CAP_FOWNER;
}

/* The server's paths have no symlinks; what has become one is not it. */
static int
open_dir(const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS
	};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

/* Of the mount.  On another file system it would be done, not told. */
static uint32_t device[2];

static int
check_dir(int dir, bool learn)
{
	struct statx stx;

	if (statx(dir, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE,
		  &stx) < 0)
		return -errno;
	if (learn) {
		device[0] = stx.stx_dev_major;
		device[1] = stx.stx_dev_minor;
	}
	return device[0] == stx.stx_dev_major && device[1] == stx.stx_dev_minor
		       ? 0
		       : -EXDEV;
}

static int
make(int dir, const char *name, mode_t type)
{
	if (S_ISDIR(type))
		return mkdirat(dir, name, 0700);
	if (S_ISLNK(type))
		return symlinkat("echo", dir, name);
	return mknodat(dir, name, type | 0600, 0);
}

/* Which of the times are set is what counts; the server keeps its own. */
static int
touch(int dir, const char *name, bool both)
{
	const struct timespec times[2] = { { .tv_nsec = both ? 1 : UTIME_OMIT },
					   { .tv_nsec = 1 } };

	return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

static int
open_and_close(int dir, const char *name)
{
	int fd = openat(dir, name,
			O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				O_CLOEXEC);

	return fd < 0 ? -1 : close(fd);
}

static int
move(int dir, const char *const text[ECHO_STRINGS])
{
	_cleanup_(closep) int to = open_dir(text[2]);

	if (to < 0 || check_dir(to, false) < 0)
		return -1;
	return (int)syscall(SYS_renameat2, dir, text[1], to, text[3], 0);
}

static int
do_step(const struct echo_order *order, const char *const text[ECHO_STRINGS])
{
	_cleanup_(closep) int dir = -1;
	struct stat st;
	int r = 0;

	if (order->step == ECHO_NOTHING)
		return 0;
	dir = open_dir(text[0]);
	if (dir < 0)
		return -errno;
	r = check_dir(dir, order->step == ECHO_PROBE);
	if (r < 0)
		return r;
	switch ((enum echo_step)order->step) {
	case ECHO_PROBE:
		r = fstatat(dir, text[1], &st, AT_SYMLINK_NOFOLLOW);
		break;
	case ECHO_REMOVE:
		r = unlinkat(dir, text[1],
			     S_ISDIR(order->type) ? AT_REMOVEDIR : 0);
		break;
	case ECHO_RENAME:
		r = move(dir, text);
		break;
	case ECHO_MAKE:
		r = make(dir, text[1], order->type & S_IFMT);
		break;
	case ECHO_CONTENT:
	case ECHO_META:
		r = touch(dir, text[1], order->step == ECHO_META);
		break;
	case ECHO_CLOSE:
		r = open_and_close(dir, text[1]);
		break;
	case ECHO_NOTHING:
		break;
	}
	return r < 0 ? -errno : 0;
}

/* The strings of an order, "" where there is none. */
static void
split(struct echo_order *order, size_t len, const char *text[ECHO_STRINGS])
{
	size_t at = 0, end = len - offsetof(struct echo_order, text);

	order->text[ECHO_TEXT - 1] = '\0';
	for (size_t i = 0; i < ECHO_STRINGS; i++) {
		text[i] = at < end ? order->text + at : "";
		at += strlen(text[i]) + 1;
	}
}

static _Noreturn void
serve(int sock)
{
	struct echo_answer answer = { 0 };
	struct echo_order order;

	for (;;) {
		const char *text[ECHO_STRINGS];
		ssize_t n;

		if (send(sock, &answer, sizeof(answer), MSG_NOSIGNAL) < 0)
			_exit(0);
		memset(&order, 0, sizeof(order));
		n = recv(sock, &order, sizeof(order), 0);
		if (n < (ssize_t)offsetof(struct echo_order, text))
			_exit(0);
		split(&order, (size_t)n, text);
		answer.result = do_step(&order, text);
		answer.id = order.id;
	}
}

int
echo_fork(int sock)
{
	pid_t parent = getpid();
	long pid =
		syscall(SYS_clone, (unsigned long)SIGCHLD, 0UL, 0UL, 0UL, 0UL);

	if (pid != 0)
		return pid < 0 ? -errno : 0;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(1);
	(void)prctl(PR_SET_NAME, "pale-echo");
	(void)prctl(PR_SET_DUMPABLE, 0);
	(void)signal(SIGUSR1, SIG_IGN);
	if (chdir("/") < 0 || fd_close_others(3, &sock, 1) < 0 ||
	    lockdown_capabilities(echo_capabilities()) < 0)
		_exit(1);
	serve(sock);
}
