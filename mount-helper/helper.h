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
#include "base/world_flags.h"
#include "mount-helper/namespaces.h"
#include "mount-helper/stdfiles.h"

/*
 * wire_msg.flags of WIRE_STARTED and WIRE_EXITED to the CLI, besides those of
 * base/world_flags.h.  Their text is groups_name().
 */
#define EXITED_EXEC_FAILED (1u << 8) /* value: errno of execve(2) */

/* wire_msg.flags of WIRE_FAILED: there may be a way without namespaces. */
#define FAILED_NO_WORLD (1u << 0)

/* wire_msg.flags of WIRE_SIGNAL */
#define SIGNAL_ALL WIRE_CMD_TREE /* to every process of the world */

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
	bool grouped;  /* a control group limits it, not rlimits */
	bool no_ioctl; /* Landlock does not know ioctl(2) on devices */
	int ruleset;   /* of Landlock, with PLAN_LANDLOCK; -1: none */
	mode_t umask;  /* the caller's */
	struct stdfiles stdfiles;
	struct namespaces namespaces; /* of a standing world */
};

/* Runs until the world has ended; returns the exit status. */
int keeper_run(struct helper *h);

/* A plan whose world is a process tree and no pid namespace. */
static inline bool
helper_is_tree(const struct helper *h)
{
	return h->plan.flags & (PLAN_UNCONFINED | PLAN_LANDLOCK);
}

/* The usher's and init's lives, each after its clone(2). */
_Noreturn void usher_main(struct helper *h);
_Noreturn void init_main(struct helper *h, int listener_pipe);

/* Sends a record without text, or with a sentence; errors are the caller's. */
int wire_send(int sock, enum wire_type type, int32_t pid, int32_t value,
	      int fd);
void wire_failed(struct wire_msg *ret_msg, int r, const struct errmsg *why);
int wire_send_failed(int sock, int r, const struct errmsg *why);

/*
 * Receives one record; 1, 0 at the end of the connection, or an error.  At
 * most one descriptor is taken, others are closed; *ret_fd may be -1.
 */
int wire_recv(int sock, struct wire_msg *ret_msg, int *ret_fd);

/* The same with all its descriptors, room for FD_PASS_MAX. */
int wire_recv_all(int sock, struct wire_msg *ret_msg, int *ret_fds,
		  size_t *ret_nfds);

/* Points 0, 1 and 2 at /dev/null, so that no pipe of the caller is held. */
void release_stdio(void);

#endif
