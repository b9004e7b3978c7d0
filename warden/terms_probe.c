/* SPDX-License-Identifier: MIT */

/*
 * All of it is read from /proc, where anything may change or vanish between
 * two reads: what cannot be read is not there.
 *
 *	/proc/PID/task/TID/children	who is below
 *	/proc/PID/stat			of which group
 *	/proc/PID/task/TID/syscall	number, six arguments, in hexadecimal
 *	/proc/PID/fd/N			is it a terminal?
 */

#include "warden/terms_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/cleanup.h"

#define PROCESSES_MAX 256
#define THREADS_MAX   64
#define POLLED_MAX    64
#define PATH_ROOM     96
#define TTY_MAJOR     5 /* minor 0: /dev/tty */
#define PTS_MAJOR     136
#define PTS_MAJORS    8

/* ---- reading ---- */

static ssize_t
read_text(const char *path, char *text, size_t size)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = '\0';
	return n;
}

static bool
read_memory(pid_t pid, unsigned long address, void *to, size_t len)
{
	const struct iovec here = { to, len }, there = { (void *)address, len };

	return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)len;
}

/* Parent and group; the name may hold anything, so the last ')' counts. */
static bool
read_stat(pid_t pid, pid_t *ret_parent, pid_t *ret_group)
{
	char path[PATH_ROOM], text[512], *rest;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (read_text(path, text, sizeof(text)) <= 0)
		return false;
	rest = strrchr(text, ')');
	if (!rest || strlen(rest) < 4)
		return false;
	*ret_parent = (pid_t)strtol(rest + 4, &rest, 10);
	*ret_group = (pid_t)strtol(rest, NULL, 10);
	return true;
}

/*
 * The file may be one of our own mount, where stat(2) would ask this process:
 * killed at that moment, it would wait for itself for ever.  What the kernel
 * has of an inode already tells what kind it is.
 */
static bool
is_tty(pid_t pid, long fd)
{
	char path[PATH_ROOM];
	struct statx stx;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%ld", pid, fd);
	if (fd < 0 ||
	    statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &stx) < 0 ||
	    !S_ISCHR(stx.stx_mode))
		return false;
	return (stx.stx_rdev_major == TTY_MAJOR && stx.stx_rdev_minor == 0) ||
	       (stx.stx_rdev_major >= PTS_MAJOR &&
		stx.stx_rdev_major < PTS_MAJOR + PTS_MAJORS);
}

/* ---- what a thread waits for ---- */

struct sought {
	bool tty, other;
};

static void
note(struct sought *sought, pid_t pid, long fd)
{
	if (is_tty(pid, fd))
		sought->tty = true;
	else
		sought->other = true;
}

static void
look_at_poll(pid_t pid, const unsigned long *args, struct sought *sought)
{
	struct pollfd fds[POLLED_MAX];
	size_t n = args[1] < POLLED_MAX ? args[1] : POLLED_MAX;

	if (n == 0 || !read_memory(pid, args[0], fds, n * sizeof(fds[0])))
		return;
	for (size_t i = 0; i < n; i++)
		if (fds[i].fd >= 0 && (fds[i].events & POLLIN))
			note(sought, pid, fds[i].fd);
}

static void
look_at_select(pid_t pid, const unsigned long *args, struct sought *sought)
{
	unsigned long bits[FD_SETSIZE / (8 * sizeof(unsigned long))] = { 0 };
	const size_t each = 8 * sizeof(bits[0]);
	size_t n = args[0] < FD_SETSIZE ? args[0] : FD_SETSIZE;

	if (n == 0 || args[1] == 0 ||
	    !read_memory(pid, args[1], bits,
			 (n + each - 1) / each * sizeof(bits[0])))
		return;
	for (size_t i = 0; i < n; i++)
		if (bits[i / each] >> (i % each) & 1)
			note(sought, pid, (long)i);
}

static void
look_at_epoll(pid_t pid, const unsigned long *args, struct sought *sought)
{
	char path[PATH_ROOM], text[4096];
	const char *at = text;
	unsigned int events;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%ld", pid,
		       (long)args[0]);
	if (read_text(path, text, sizeof(text)) <= 0)
		return;
	for (; (at = strstr(at, "tfd:")); at++)
		if (sscanf(at, "tfd: %d events: %x", &fd, &events) == 2 &&
		    (events & EPOLLIN))
			note(sought, pid, fd);
}

static void
look_at_call(pid_t pid, long number, const unsigned long *args,
	     struct sought *sought)
{
	switch (number) {
	case SYS_read:
	case SYS_readv:
		note(sought, pid, (long)args[0]);
		break;
#ifdef SYS_poll
	case SYS_poll:
#endif
	case SYS_ppoll:
		look_at_poll(pid, args, sought);
		break;
#ifdef SYS_select
	case SYS_select:
#endif
	case SYS_pselect6:
		look_at_select(pid, args, sought);
		break;
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
		look_at_epoll(pid, args, sought);
		break;
	default:
		break;
	}
}

static uint64_t
count_switches(pid_t pid, pid_t thread)
{
	char path[PATH_ROOM], text[4096];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", pid,
		       thread);
	(void)read_text(path, text, sizeof(text));
	at = strstr(text, "\nvoluntary_ctxt_switches:");
	return at ? strtoull(strchr(at, ':') + 1, NULL, 10) : 0;
}

static void
look_at_thread(pid_t pid, pid_t thread, struct probe *probe)
{
	struct sought sought = { 0 };
	unsigned long args[6] = { 0 };
	char path[PATH_ROOM], text[256], *rest;
	enum probe_state state = PROBE_BUSY;
	long number;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid,
		       thread);
	if (read_text(path, text, sizeof(text)) <= 0)
		return;
	number = strtol(text, &rest, 10);
	/* "running", or outside of a call. */
	if (rest > text && number >= 0) {
		for (size_t i = 0; i < 6; i++)
			args[i] = strtoul(rest, &rest, 16);
		look_at_call(pid, number, args, &sought);
	}
	if (sought.tty)
		state = sought.other ? PROBE_MIXED : PROBE_READS;
	if (state <= probe->state)
		return;
	probe->state = state;
	probe->thread = thread;
	probe->switches = count_switches(pid, thread);
}

/* ---- who is in the group ---- */

struct family {
	pid_t pids[PROCESSES_MAX];
	size_t n;
};

static void
add_children(struct family *family, pid_t pid, pid_t thread)
{
	char path[PATH_ROOM], text[4096], *at = text;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid,
		       thread);
	if (read_text(path, text, sizeof(text)) <= 0)
		return;
	while (family->n < PROCESSES_MAX) {
		char *end;
		long child = strtol(at, &end, 10);

		if (end == at || child <= 0)
			return;
		family->pids[family->n++] = (pid_t)child;
		at = end;
	}
}

/* Each thread has children of its own. */
static void
look_at_process(struct family *family, pid_t pid, struct probe *probe)
{
	char path[PATH_ROOM];
	const struct dirent *entry;
	pid_t parent, group = 0;
	unsigned int n = 0;
	bool ours;
	DIR *dir;

	ours = read_stat(pid, &parent, &group) && group == probe->group;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && n < THREADS_MAX && (entry = readdir(dir))) {
		pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

		if (thread <= 0)
			continue;
		n++;
		add_children(family, pid, thread);
		if (ours)
			look_at_thread(pid, thread, probe);
	}
	if (dir)
		(void)closedir(dir);
}

void
probe_group(pid_t pid, pid_t group, struct probe *ret_probe)
{
	struct probe probe = { .state = PROBE_UNKNOWN, .group = group };
	struct family family = { .pids = { pid }, .n = 1 };
	pid_t parent, own;

	/* Who lost his parent is the first process's child. */
	if (read_stat(pid, &parent, &own) && parent > 1)
		family.pids[0] = parent;
	if (pid > 0 && group > 0)
		for (size_t i = 0; i < family.n && probe.state != PROBE_READS;
		     i++)
			look_at_process(&family, family.pids[i], &probe);
	*ret_probe = probe;
}

bool
probe_is_same(const struct probe *a, const struct probe *b)
{
	return a->group == b->group && a->thread == b->thread &&
	       a->switches == b->switches;
}
