/* SPDX-License-Identifier: MIT */
#ifndef CLI_RUN_LOOP_H
#define CLI_RUN_LOOP_H

/*
 * A command's life as its caller sees it: signals passed on, the terminal,
 * the time-out, the end.
 *
 * Thread: main.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "cli/launch.h"
#include "cli/tty.h"

struct run_result {
	bool started; /* the command's program ran */
	bool ended;   /* `status` is its wait status */
	bool timed_out;
	bool failed;   /* pale failed; `error` says how */
	bool no_world; /* because no world can be made here */
	int status;
	int exec_error; /* errno of execve(2), or 0 */
	uint32_t world_flags;
	char limits[16]; /* "none", "cgroup2", "cgroup1", "rlimit" */
	uint64_t user_us, sys_us, max_rss_kib;
	int64_t duration_ns;
	struct errmsg error;
};

/*
 * Blocks the signals that are passed on (but those the caller ignores) and
 * returns a descriptor of them, or a negative errno.
 */
int run_signals(void);

/* Returns when the command has ended, or cannot run. */
void run_loop(struct launch *launch, int signals, struct tty *tty,
	      uint64_t timeout_ms, struct run_result *ret_result);

#endif
