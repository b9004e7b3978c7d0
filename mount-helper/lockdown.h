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
bool lockdown_can_scope(void);

/* Empties the bounding set, locks securebits, sets no_new_privs. */
int lockdown_inherited(struct errmsg *why);

/*
 * The same without a user namespace around, where a process that has no
 * capability cannot change the first two, and needs not.
 */
int lockdown_alone(struct errmsg *why);

/* Keeps only these capabilities (a mask, permitted and effective). */
int lockdown_capabilities(unsigned long long keep);

/* What the filter shall do besides refusing what is never allowed. */
#define FILTER_OBSERVE (1u << 0) /* tell a listener of mutations */
#define FILTER_NO_NEST (1u << 1) /* refuse user namespaces */
#define FILTER_ALONE   (1u << 2) /* no namespace is around: refuse host IPC */
#define FILTER_NO_NET  (1u << 3) /* refuse sockets */

/* FILTER_* of a world made by this plan. */
struct plan;
unsigned int lockdown_wishes(const struct plan *plan);

/*
 * seccomp.c: the filter's program; valid until the next call.
 * Returns its number of instructions.
 */
struct sock_filter;
unsigned short lockdown_program(unsigned int wishes,
				const struct sock_filter **ret_code);

/* seccomp.c: installs the filter; *ret_listener is -1 when there is none. */
int lockdown_filter(unsigned int wishes, int *ret_listener, struct errmsg *why);

#endif
