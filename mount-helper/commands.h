/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_COMMANDS_H
#define MOUNT_HELPER_COMMANDS_H

/*
 * init's part of a standing world: a first process for each command that it is
 * sent.  What becomes of them they tell the keeper themselves; init reaps.
 */

#include "mount-helper/helper.h"

/* The descriptors of a SPAWN as init gets it. */
enum {
	COMMAND_SPEC,
	COMMAND_STDIN,
	COMMAND_STDOUT,
	COMMAND_STDERR,
	COMMAND_KEEPER, /* a socket */
	COMMAND_FDS
};

/* Takes the descriptors; a failure is told on the command's socket. */
void commands_spawn(struct helper *h, const struct wire_msg *msg, int *fds,
		    size_t nfds);

/*
 * A child has ended.  Where there is no pid namespace, what falls to init was
 * left by a first process that somebody has killed: it goes, too.
 */
void commands_ended(const struct helper *h, pid_t pid);

#endif
