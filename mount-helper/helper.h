/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_HELPER_H
#define MOUNT_HELPER_HELPER_H

/*
 * What the processes of the mount helper share.
 *
 *   keeper  parent of all; poll loop; host namespaces; lives as long as
 *           the world
 *   usher   makes the mounts, in the world's namespaces but the host's pid
 *           namespace, so that FUSE requests carry host pids; then brokers
 *           connect(2)
 *   init    pid 1 of the world, cloned by the usher, child of the keeper
 *
 *	CLI ==control== keeper ==init_sock== usher, then init
 *	                  |                    |
 *	              warden_sock          world_sock
 *	                  |                    |
 *	                  +------ warden ------+
 *
 * Each is single-threaded and none parses bytes from inside the world.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/errmsg.h"
#include "base/plan.h"
#include "base/wire.h"
#include "mount-helper/stdfiles.h"

/*
 * wire_msg.flags of WIRE_STARTED and WIRE_EXITED to the CLI, the same bits in
 * cli/launch.c: what of the fence is missing.  Their text is groups_name().
 */
#define WORLD_NO_USERNS	   (1u << 0) /* root, user namespaces refused */
#define WORLD_NO_OBSERVER  (1u << 1) /* no listener: one is there already */
#define WORLD_NO_SCOPE	   (1u << 2) /* Landlock cannot scope */
#define WORLD_HOME_TMPFS   (1u << 3) /* the home could not be layered */
#define EXITED_EXEC_FAILED (1u << 8) /* value: errno of execve(2) */

/* wire_msg.flags of WIRE_SIGNAL */
#define SIGNAL_ALL (1u << 0) /* to every process of the world */

struct helper {
	struct plan plan;
	int control;	 /* to the CLI */
	pid_t warden;	 /* a child already; 0: none */
	int warden_sock; /* to it */
	int world_sock;	 /* usher's end, to the warden */
	int init_sock;	 /* usher's and init's end */
	bool require_limits, require_full;
	bool userns;   /* the world has a user namespace of its own */
	bool observer; /* the listener is there */
	bool scoped;   /* Landlock scopes signals and abstract sockets */
	bool home_tmpfs;
	bool grouped; /* a control group limits it, not rlimits */
	mode_t umask; /* the caller's */
	struct stdfiles stdfiles;
};

/* Runs until the world has ended; returns the exit status. */
int keeper_run(struct helper *h);

/* The usher's and init's lives, each after its clone(2). */
_Noreturn void usher_main(struct helper *h);
_Noreturn void init_main(struct helper *h, int listener_pipe);

/* Sends a record without text, or with a sentence; errors are the caller's. */
int wire_send(int sock, enum wire_type type, int32_t pid, int32_t value,
	      int fd);
int wire_send_failed(int sock, int r, const struct errmsg *why);

/*
 * Receives one record; 1, 0 at the end of the connection, or an error.  At
 * most one descriptor is taken, others are closed; *ret_fd may be -1.
 */
int wire_recv(int sock, struct wire_msg *ret_msg, int *ret_fd);

/* Points 0, 1 and 2 at /dev/null, so that no pipe of the caller is held. */
void release_stdio(void);

#endif
