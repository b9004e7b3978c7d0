/* SPDX-License-Identifier: MIT */
#ifndef CLI_LOG_H
#define CLI_LOG_H

/* The durable events of sessions and worlds, shown.  Thread: main. */

#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"

struct log_query {
	uint64_t since, last;
	/* NULL: any.  A workspace may be spelled in any way. */
	const char *world, *session, *workspace;
	bool json;
};

/*
 * Prints them, oldest first, and of one world what its warden has written down
 * besides.  Errors with a sentence.
 */
int log_show(const struct log_query *query, struct errmsg *why);

#endif
