/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_MINIINIT_H
#define MOUNT_HELPER_MINIINIT_H

/*
 * The first process of one command of a standing world: pid 1 of the command's
 * own pid namespace, with a /proc of its own, below the world's.  It starts
 * the command, reaps, and ends when nothing of the tree is left.  Who kills it
 * kills all of the tree.
 *
 * It is cloned by init and has init's filter, or by `enter` for a client with
 * a terminal and then installs one of its own.
 *
 *	keeper ==keeper== miniinit ==front== enter
 */

#include <stdbool.h>
#include <stdint.h>

#include "mount-helper/helper.h"
#include "mount-helper/namespaces.h"

struct miniinit {
	struct helper *h; /* flags and limits of its plan count */
	uint64_t id;
	int keeper;	       /* a socket */
	int front;	       /* to `enter`; -1: cloned by init */
	int spec;	       /* base/spawn_spec.h, a memory file */
	int console;	       /* detached mount of the client's terminal; -1 */
	int fds[3];	       /* of the command; -1: they are in place */
	struct namespaces *ns; /* pristine and mnt */
};

/* After clone(2); CLONE_NEWPID unless the world is unconfined. */
_Noreturn void miniinit_main(struct miniinit *m);

/* Where there was no process to say it. */
void miniinit_send_failure(int sock, uint64_t id, int r,
			   const struct errmsg *why);

#endif
