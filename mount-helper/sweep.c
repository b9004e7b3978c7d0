/* SPDX-License-Identifier: MIT */

/*
 * Where there is no pid namespace to be killed as one, a tree is who descends
 * from this process: it takes orphans in, so nobody leaves it by a fork.  It is
 * killed from above, our own children again and again: the next are ours when
 * these are gone.  Only below one who does not die is another way.
 *
 * Who is not our own child may be gone, and his number another's, before the
 * signal is sent.  So he is held by a pidfd first, and signalled when he is
 * seen, while he lives, to have the parent at whom he was found.
 */

#include "mount-helper/sweep.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/children.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

#define SWEEP_DEPTH 64
#define SWEEP_BYTES (1u << 20)

/* After this, those who were killed wait for something. */
#define DEEP_NS 50000000

struct sweep {
	const pid_t *spared; /* children of ours */
	size_t n_spared;
	int sig;
	bool deep;
};

static bool
is_spared(const struct sweep *sweep, pid_t pid)
{
	for (size_t i = 0; i < sweep->n_spared; i++)
		if (sweep->spared[i] == pid)
			return true;
	return false;
}

static pid_t
parent_of(pid_t pid)
{
	_cleanup_(freep) char *text = NULL;
	const char *after;
	char path[32];
	size_t len;
	int parent;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (fd_read_path(AT_FDCWD, path, 4096, &text, &len) < 0)
		return 0;
	/* A name may hold anything, also what looks like its end. */
	after = strrchr(text, ')');
	return after && sscanf(after, ") %*c %d", &parent) == 1 ? parent : 0;
}

static void
signal_one(pid_t parent, pid_t pid, int sig)
{
	_cleanup_(closep) int fd = -1;
	struct pollfd polled;

	/* Nobody else reaps our own, so the number stays theirs. */
	if (parent == getpid()) {
		(void)kill(pid, sig);
		return;
	}
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 || parent_of(pid) != parent)
		return;
	/* Alive, it was the one that was looked at. */
	polled = (struct pollfd){ .fd = fd, .events = POLLIN };
	if (poll(&polled, 1, 0) == 0)
		(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
}

struct level {
	const struct sweep *sweep;
	int depth;
};

static void
signal_child(pid_t parent, pid_t pid, void *data)
{
	const struct level *level = data;
	const struct sweep *sweep = level->sweep;
	struct level below = { sweep, level->depth + 1 };

	if (level->depth == 0 && is_spared(sweep, pid))
		return;
	/* Below first: a dead parent's children change hands. */
	if (sweep->deep && level->depth < SWEEP_DEPTH)
		children_each(pid, SWEEP_BYTES, signal_child, &below);
	signal_one(parent, pid, sweep->sig);
}

static void
signal_children(const struct sweep *sweep)
{
	struct level level = { .sweep = sweep };

	children_each(getpid(), SWEEP_BYTES, signal_child, &level);
}

void
sweep_heirs(const pid_t *spared, size_t n)
{
	const struct sweep sweep = { .spared = spared,
				     .n_spared = n,
				     .sig = SIGKILL };

	signal_children(&sweep);
}

void
sweep_descendants(pid_t spared, int sig)
{
	const struct sweep sweep = {
		.spared = &spared, .n_spared = 1, .sig = sig, .deep = true
	};

	signal_children(&sweep);
}

void
sweep_kill(bool namespaced, int64_t since_ns)
{
	const struct sweep sweep = {
		.sig = SIGKILL,
		.deep = clock_mono_ns() - since_ns > DEEP_NS,
	};

	if (namespaced)
		(void)kill(-1, SIGKILL);
	else
		signal_children(&sweep);
}

void
sweep_signal(bool namespaced, int sig)
{
	if (namespaced)
		(void)kill(-1, sig);
	else
		sweep_descendants(0, sig);
}
