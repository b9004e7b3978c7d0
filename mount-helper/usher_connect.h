/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_USHER_CONNECT_H
#define MOUNT_HELPER_USHER_CONNECT_H

/*
 * The broker for connect(2): the only way by which an inmate's socket gets
 * connected to anything.
 *
 * A read-only mount does not stop connect(), and a system call that was looked
 * at and then allowed to go on reads its arguments again.  So connect is never
 * continued: the observer copies the address once and sends it here
 * (WIRE_CONNECT, base/wire.h); the usher fetches a duplicate of the inmate's
 * socket (pidfd_getfd), finds the named socket as the inmate would, judges
 * what it found, connects the duplicate and says the result (WIRE_CONNECTED).
 *
 * Judged: a socket that lies on a read-only mount is the host's and is refused
 * unless it was let in; whoever listens must live in the world's pid
 * namespace or below.  Everything that cannot be told is refused.
 */

#include <stdbool.h>
#include <sys/types.h>

struct usher_place {
	int world_sock, host_proc_fd;
	pid_t init_pid;
	int listener; /* to ask whether a call is waited for; -1: do not */
	bool scoped;  /* under the Landlock scope of the world */
};

/*
 * Serves until the warden closes `world_sock`; returns 0 then, or a negative
 * errno when serving cannot begin.  Called once, when the process is where it
 * stays: in the world's user, mount and network namespaces, in the host's pid
 * namespace, with CAP_SYS_PTRACE in the world's user namespace; `scoped`: under
 * the Landlock scope of the world, so that the kernel refuses abstract names of
 * the host.  Else they are looked for among the listeners first, as files are.  `host_proc_fd` is a directory of the *host's* /proc
 * (O_PATH or not), opened before the world's covered it; it becomes the
 * working directory.  `init_pid` is init's pid as the host sees it.
 * SIGUSR1 and SIGCHLD are taken.  Starts threads: nothing may be forked
 * afterwards but an echo.
 */
int usher_serve(const struct usher_place *place);

#endif
