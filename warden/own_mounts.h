/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_OWN_MOUNTS_H
#define WARDEN_OWN_MOUNTS_H

#include "base/errmsg.h"

/*
 * Enters a private copy of the mount tree, for a warden whose mount will lie
 * inside the workspace it serves: a lookup of that name would otherwise ask
 * the warden itself and wait for ever.  In the copy the name stays the plain
 * directory that it was.  An ordinary user pays with a user namespace of its
 * own, in which it keeps its ids and holds no capability.
 *
 * Single-threaded callers only.  Errors with a sentence: -EPERM and others.
 */
int own_mounts_enter(struct errmsg *why);

#endif
