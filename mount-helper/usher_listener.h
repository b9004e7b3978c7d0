/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_USHER_LISTENER_H
#define MOUNT_HELPER_USHER_LISTENER_H

/*
 * Who listens on a socket file, found out without connecting to it: a
 * connection that is tried is one that the host's service has seen.
 *
 * The kernel lists the listening sockets of this network namespace with the
 * inodes that they are bound to (sock_diag); the processes that hold them are
 * looked for in the world's /proc, which shows no other process.
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>

/*
 * Whether every socket that listens at the file `fd` (O_PATH will do) is held
 * by a process of the world.  False as well when there is none, or it cannot be
 * told.  The working directory is the host's /proc.
 */
bool usher_listener_is_ours(int fd);

/*
 * The same for an abstract name.  -EACCES: no; -ECONNREFUSED: there is no
 * listener at all.
 */
int usher_listener_of_name(const char *name, size_t len);

#endif
