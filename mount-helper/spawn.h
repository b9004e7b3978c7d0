/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_SPAWN_H
#define MOUNT_HELPER_SPAWN_H

/*
 * The command's process: locked down, in its directory, with the environment
 * of the plan and descriptors 0, 1 and 2.
 */

#include <sys/types.h>

#include "mount-helper/helper.h"

/*
 * Starts the plan's command.  On success *ret_pid is its pid.  When execve(2)
 * itself failed *ret_exec_error is its (positive) errno, 0 is returned and
 * there is no process; any other failure is an error with a sentence.
 */
int spawn_command(const struct helper *h, pid_t *ret_pid, int *ret_exec_error,
		  struct errmsg *why);

#endif
