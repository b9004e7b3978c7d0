/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_LISTENER_H
#define MOUNT_HELPER_LISTENER_H

/*
 * The keeper's duplicate of the seccomp listener.  While a warden lives, the
 * keeper never reads it; when the warden has died, the calls that wait are
 * released so that their callers can be killed: connect(2) is refused, all
 * others go on (the kernel's read-only mounts judge them).
 */
void listener_release(int listener);

#endif
