/* SPDX-License-Identifier: MIT */
#ifndef TOOLS_ANALYZER_H
#define TOOLS_ANALYZER_H

/*
 * Included before every file that an analyzer looks at (tools/lint-file), never
 * in a build.
 *
 * A failed system call sets errno to something positive.  The analyzers do not
 * know, follow the path on which `return -errno` returns 0, and report that
 * what is only set on success was not set.  The same holds for errmsg_set() and
 * rpc_fault_set(), which return the error that they were given.
 */

#include <errno.h>

#include "base/errmsg.h"
#include "rpc/rpc.h"

static inline int *
analyzer_errno(void)
{
	int *location = __errno_location();

	if (*location <= 0)
		__builtin_unreachable();
	return location;
}

#undef errno
#define errno (*analyzer_errno())

static inline int
analyzer_error(int r)
{
	if (r >= 0)
		__builtin_unreachable();
	return r;
}

/* Not in the files that define them. */
#ifndef ANALYZER_DEFINES
#define errmsg_set(why, r, ...) \
	((void)(errmsg_set)(why, r, __VA_ARGS__), analyzer_error(r))
#define rpc_fault_set(...) ((void)(rpc_fault_set)(__VA_ARGS__), -EBADMSG)
#endif

#endif
