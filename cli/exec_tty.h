/* SPDX-License-Identifier: MIT */
#ifndef CLI_EXEC_TTY_H
#define CLI_EXEC_TTY_H

/*
 * A command of a standing world that has our terminal: it descends from us,
 * through `pale-mount-helper enter`, and talks to us as a run's keeper does.
 *
 * Thread: main.
 */

#include "base/errmsg.h"
#include "cli/launch.h"

struct exec_tty {
	int world; /* the end that goes to the warden; -1: none */
	struct launch launch;
};

#define EXEC_TTY_NONE                               \
	{                                           \
		.world = -1, .launch = LAUNCH_NONE, \
	}

/* Starts it; it waits until the warden has its end.  Errors, with a sentence. */
int exec_tty_start(struct exec_tty *ret_tty, struct errmsg *why);

void exec_tty_fini(struct exec_tty *tty);

#endif
