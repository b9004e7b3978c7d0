/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_ECHO_H
#define MOUNT_HELPER_ECHO_H

/*
 * The echo: a process in the world's mount namespace and the host's pid
 * namespace that does again, through the FUSE mount, what the host has done
 * below it, so that inotify inside tells of it.  The server knows it by its pid
 * and changes nothing for it (fusefs/echo.h).  It does what the warden says on
 * its socket (base/echo.h) and ends with it.
 */

/* What it may do, as root, to objects whose modes say no; else nothing. */
unsigned long long echo_capabilities(void);

/* Makes one for this socket, which stays the caller's; -errno. */
int echo_fork(int sock);

#endif
