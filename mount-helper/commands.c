/* SPDX-License-Identifier: MIT */

#include "mount-helper/commands.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mount-helper/miniinit.h"
#include "mount-helper/sweep.h"

/* fork(2), below a pid namespace of its own in a confined world. */
static long
clone_first(const struct helper *h)
{
	unsigned long flags = SIGCHLD;

	if (!(h->plan.flags & PLAN_UNCONFINED))
		flags |= CLONE_NEWPID;
	return syscall(SYS_clone, flags, 0UL, 0UL, 0UL, 0UL);
}

/* All first processes that live. */
static pid_t *firsts;
static size_t n_firsts, firsts_room;

/* Before the clone: one that is not known would be taken for an heir. */
static int
reserve_first(void)
{
	size_t room = firsts_room ? 2 * firsts_room : 16;
	pid_t *more;

	if (n_firsts < firsts_room)
		return 0;
	more = reallocarray(firsts, room, sizeof(*firsts));
	if (!more)
		return -ENOMEM;
	firsts = more;
	firsts_room = room;
	return 0;
}

void
commands_ended(const struct helper *h, pid_t pid)
{
	for (size_t i = 0; i < n_firsts; i++)
		if (firsts[i] == pid)
			firsts[i] = firsts[--n_firsts];
	if (h->plan.flags & PLAN_UNCONFINED)
		sweep_heirs(firsts, n_firsts);
}

static long
start_first(const struct helper *h, struct miniinit *m)
{
	int r = reserve_first();
	long pid;

	if (r < 0)
		return r;
	pid = clone_first(h);
	if (pid == 0)
		miniinit_main(m);
	if (pid < 0)
		return -errno;
	firsts[n_firsts++] = (pid_t)pid;
	return pid;
}

void
commands_spawn(struct helper *h, const struct wire_msg *msg, int *fds,
	       size_t nfds)
{
	struct errmsg why = { "" };
	struct miniinit m = {
		.h = h,
		.id = msg->id,
		.front = -1,
		.console = -1,
		.ns = &h->namespaces,
	};
	long pid;

	if (nfds == COMMAND_FDS) {
		m.spec = fds[COMMAND_SPEC];
		m.keeper = fds[COMMAND_KEEPER];
		memcpy(m.fds, &fds[COMMAND_STDIN], sizeof(m.fds));
		pid = start_first(h, &m);
		if (pid < 0) {
			(void)errmsg_set(&why, (int)pid,
					 "cannot make a pid namespace: %s",
					 strerror(-(int)pid));
			miniinit_send_failure(m.keeper, m.id, (int)pid, &why);
		}
	}
	for (size_t i = 0; i < nfds; i++)
		closep(&fds[i]);
}
