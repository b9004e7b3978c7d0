/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_NAMESPACES_H
#define MOUNT_HELPER_NAMESPACES_H

/*
 * The namespaces of a standing world, as descriptors: what a client's process
 * joins, and what a command's first process passes through.
 *
 * The pristine mount namespace is the world's as it was before anything in it
 * was made read-only.  No process lives there.  In it a file that a command is
 * given for reading is opened again on a read-only mount of its own: from the
 * world's mounts its path may not lead to it any more.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/fd.h"

/* The user namespace first: it gives the right to join the others. */
enum {
	NAMESPACE_USER,
	NAMESPACE_IPC,
	NAMESPACE_UTS,
	NAMESPACE_CGROUP,
	NAMESPACE_NET,
	NAMESPACE_PID,
	NAMESPACE_PRISTINE,
	NAMESPACE_MNT,
	NAMESPACE_COUNT
};

struct namespaces {
	int fd[NAMESPACE_COUNT]; /* -1: the host's, or not in this kernel */
};

void namespaces_init(struct namespaces *ns);

/* Those of the calling process, but for the pristine one. */
int namespaces_open(struct namespaces *ns, struct errmsg *why);

/* As an array (room for all) and the mask that says which there are. */
uint32_t namespaces_pack(const struct namespaces *ns, int *fds,
			 size_t *ret_count);
/* Takes the descriptors.  -EPROTO: mask and number do not agree. */
int namespaces_unpack(struct namespaces *ns, uint32_t mask, int *fds,
		      size_t count);

/* Closes those that the calling process is in. */
void namespaces_drop_own(struct namespaces *ns);

/* Joins one; nothing where there is none. */
int namespaces_join(const struct namespaces *ns, int which, struct errmsg *why);

void namespaces_fini(struct namespaces *ns);

#endif
