/* SPDX-License-Identifier: MIT */

#include "mount-helper/sweep.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define SWEEP_DEPTH 64
#define SWEEP_BYTES (1u << 20)

static void
signal_children(pid_t parent, int sig, int depth)
{
	_cleanup_(freep) char *text = NULL;
	char path[64], *at, *end;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children",
		       (int)parent, (int)parent);
	if (fd_read_path(AT_FDCWD, path, SWEEP_BYTES, &text, &len) < 0)
		return;
	for (at = text;; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at || pid <= 1)
			return;
		/* Below first: a dead parent's children change hands. */
		if (depth < SWEEP_DEPTH)
			signal_children((pid_t)pid, sig, depth + 1);
		(void)kill((pid_t)pid, sig);
	}
}

void
sweep_signal(bool confined, int sig)
{
	if (confined)
		(void)kill(-1, sig);
	else
		signal_children(getpid(), sig, 0);
}
