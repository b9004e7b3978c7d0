/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_WARDEN_H
#define WARDEN_WARDEN_H

/*
 * The warden: the trusted process of one world.  It serves the FUSE session,
 * keeps the record of denials and answers the world's socket.
 *
 *   pale warden --policy-fd N --world-fd N --keeper-fd N [--client-fd N]
 *               --world ID [--socket-dir DIR] [--state-dir DIR]
 *               [--mountpoint PATH] [--own-mounts] [--guard-fd N]
 *
 *   --policy-fd   policy_encode() in a memory file
 *   --world-fd    base/wire.h, from the process that mounts
 *   --keeper-fd   base/wire.h, to the parent; its end ends the warden
 *   --client-fd   takes one line of JSON at the end: denials and counters
 *   --socket-dir  the runtime directory (default: dirs_runtime())
 *   --state-dir   the state directory (default: dirs_state())
 *   --mountpoint  a host-visible mount: its place; else a run's world
 *   --own-mounts  enter a mount namespace of its own first, so that a mount
 *                 inside the workspace is never seen by who serves it
 *   --guard-fd    held open until the warden's end: see cli/host_world.h
 *
 * For a host-visible mount the warden says WIRE_READY on the world
 * descriptor once it has opened the workspace; only then may it be covered.
 * A failure to start is WIRE_FAILED on the keeper descriptor.
 *
 * Thread: main; returns the exit status when the world has ended.
 */

int warden_main(int argc, char **argv);

/*
 * --policy-here, for a warden that is forked and not executed: the policy as it
 * was resolved, instead of a copy written down and read again.
 */
struct policy;
void warden_inherit(struct policy *policy);

#endif
