/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_PROBE_H
#define WARDEN_TERMS_PROBE_H

/*
 * Whether a program waits for input from its terminal, seen from outside: one
 * of its threads is inside read(2), poll(2), select(2) or epoll_wait(2) on a
 * descriptor that is a terminal.
 *
 * Of programs that may not be looked at (non-dumpable ones) nothing is known.
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum probe_state {
	PROBE_UNKNOWN, /* nobody of the group can be looked at */
	PROBE_BUSY,
	PROBE_MIXED, /* waits for its terminal, and for other things */
	PROBE_READS, /* for its terminal alone */
};

struct probe {
	enum probe_state state;
	pid_t group;
	pid_t thread;	   /* that waits */
	uint64_t switches; /* how often it has waited so far */
};

/*
 * Looks at the processes of `group` among those below the parent of `pid`, the
 * terminal's first process.
 */
void probe_group(pid_t pid, pid_t group, struct probe *ret_probe);

/* The same wait, and not the next one. */
bool probe_is_same(const struct probe *a, const struct probe *b);

#endif
