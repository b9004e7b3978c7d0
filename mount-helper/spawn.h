/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_SPAWN_H
#define MOUNT_HELPER_SPAWN_H

/*
 * The command's process: locked down, in our directory and with descriptors 0,
 * 1 and 2.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/strv.h"
#include "mount-helper/helper.h"

struct spawn_what {
	const struct strv *argv, *env; /* borrowed */
	bool own_session;	       /* and process group, to be signalled */
	bool terminal; /* descriptor 0 becomes its controlling terminal */
};

/*
 * Starts a command under the limits of the plan.  On success *ret_pid is its pid.  When execve(2)
 * itself failed *ret_exec_error is its (positive) errno, 0 is returned and
 * there is no process; any other failure is an error with a sentence.
 */
int spawn_command(const struct helper *h, const struct spawn_what *what,
		  pid_t *ret_pid, int *ret_exec_error, struct errmsg *why);

/* The wait status of a command that execve(2) refused, as shells have it. */
int spawn_exec_status(int exec_error);

/* No signal is ignored or handled. */
void spawn_default_signals(void);

#endif
