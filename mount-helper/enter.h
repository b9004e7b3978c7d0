/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_ENTER_H
#define MOUNT_HELPER_ENTER_H

/*
 * pale-mount-helper enter FD CONTROL
 *
 * The way into a standing world for a client with a terminal.  A controlling
 * terminal is inherited and cannot be handed over, so the command descends
 * from the client, stays in its session and process group, and comes into the
 * world by joining its namespaces.
 *
 *	client ==control== enter ==front== first process ==FD== keeper
 *	                    (a chain of children)
 *
 *   FD       the other end went to the warden, which ordered ENTER
 *   CONTROL  to the client, as a keeper speaks to `pale run`: STARTED,
 *            STOPPED, EXITED, FAILED; SIGNAL, CONTINUE.  EXITED comes when
 *            nothing of the tree is left
 *
 * Descriptors 0, 1 and 2 are the command's.  When the client dies, so does the
 * tree.
 */

int enter_main(int argc, char **argv);

#endif
