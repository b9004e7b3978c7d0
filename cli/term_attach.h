/* SPDX-License-Identifier: MIT */
#ifndef CLI_TERM_ATTACH_H
#define CLI_TERM_ATTACH_H

/*
 * A person at a terminal: their tty is the terminal's until they detach, it
 * ends, or its warden does.
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "cli/client.h"

struct person_options {
	const char *id;		/* or name */
	const char *called;	/* to people; NULL: the same */
	const char *detach_key; /* NULL: the default */
	uint64_t scrollback;	/* lines that are shown before */
	bool read_only;
	bool titles, clipboard; /* of the terminal reach this one */
	bool quiet;
};

/* Our own failure, or the terminal is lost. */
#define PERSON_EXIT_FAILED 125

/* What can be told before anything is shown.  -EINVAL, -ENOTTY. */
int person_check(const struct person_options *options, struct errmsg *why);

/*
 * Attaches on the connection, which is closed in any case.  Returns the exit
 * status: 0 when detached, the terminal's when it ended.
 */
int person_attach(struct rpc_client *client,
		  const struct person_options *options);

#endif
