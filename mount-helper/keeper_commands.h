/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_KEEPER_COMMANDS_H
#define MOUNT_HELPER_KEEPER_COMMANDS_H

/*
 * The commands of a standing world, as its keeper holds them: a socket to the
 * first process of each and a pidfd, by which the tree is killed and its end
 * is seen.  What the warden reads of a command's output the keeper holds too:
 * should the warden die, what the pipes still have is saved in files.
 *
 *	SPAWN ──▶ (socket) ──BORN──▶ (socket, pidfd) ──pidfd ends──▶ gone
 *
 * An entry lives until its tree is gone and the warden has said FORGET.
 */

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "mount-helper/groups.h"
#include "mount-helper/helper.h"
#include "mount-helper/listener.h"

struct keeper_command;

struct keeper_commands {
	struct keeper_command *first;
	size_t count;
	struct helper *h;
	const struct groups *groups;
	int init_sock, warden_sock;  /* borrowed; -1: gone */
	const struct listener *main; /* init's, whose observer has all */
	bool ending;		     /* nobody is stood in for any more */
};

/*
 * An order of the warden; takes the descriptors.  False: it is none about a
 * command.
 */
bool keeper_commands_order(struct keeper_commands *all,
			   const struct wire_msg *msg, int *fds, size_t nfds);

/* How many entries keeper_commands_poll() fills in, at most. */
size_t keeper_commands_polled(const struct keeper_commands *all);
void keeper_commands_poll(struct keeper_commands *all, struct pollfd *polls);
/* How long that may take at most; -1: for ever. */
int keeper_commands_timeout(const struct keeper_commands *all);
/* After poll(2) of what was filled in last. */
void keeper_commands_serve(struct keeper_commands *all,
			   const struct pollfd *polls);

/* Lets those go on to die who wait for an observer. */
void keeper_commands_release(const struct keeper_commands *all);

/* When no process is left: saves what was not forgotten, frees all. */
void keeper_commands_fini(struct keeper_commands *all);

#endif
