/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_LOCKDOWN_H
#define MOUNT_HELPER_LOCKDOWN_H

/*
 * Privileges given up, never to come back.  What is inherited over fork and
 * exec (bounding set, securebits, no_new_privs, filter, Landlock scope) is
 * done once by init; what init itself still needs is dropped in each child.
 */

#include <stdbool.h>

#include "base/errmsg.h"

/* Landlock: no signal and no abstract socket leads out of the world. */
int lockdown_scope(bool *ret_scoped, struct errmsg *why);

/* Empties the bounding set, locks securebits, sets no_new_privs. */
int lockdown_inherited(struct errmsg *why);

/* Keeps only these capabilities (a mask, permitted and effective). */
int lockdown_capabilities(unsigned long long keep);

/*
 * seccomp.c: the filter's program; valid until the next call.
 * Returns its number of instructions.
 */
struct sock_filter;
unsigned short lockdown_program(bool observe, bool no_nest,
				const struct sock_filter **ret_code);

/* seccomp.c: installs the filter; *ret_listener is -1 when there is none. */
int lockdown_filter(bool observe, bool no_nest, int *ret_listener,
		    struct errmsg *why);

#endif
