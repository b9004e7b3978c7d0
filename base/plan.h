/* SPDX-License-Identifier: MIT */
#ifndef BASE_PLAN_H
#define BASE_PLAN_H

/*
 * The mount plan: everything that the mount helper does, in order, decided
 * beforehand by policy/world_plan.c and carried in a sealed memory file.  The
 * helper decodes it, checks it again, and makes no decision of its own.
 *
 * Little-endian, length-prefixed; PLAN_MAGIC and PLAN_VERSION first.  The
 * decoder takes hostile bytes.
 * Thread: the owner's.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/errmsg.h"
#include "base/strv.h"

#define PLAN_MAGIC   0x454c4150u /* "PALE" */
#define PLAN_VERSION 1u

enum plan_mount_kind {
	PLAN_TMPFS,  /* target; size, mode (07777), flags RO */
	PLAN_FUSE,   /* target; index: root of the session, 0 is the mount */
	PLAN_BIND,   /* source → target, recursive; flags RO */
	PLAN_SOCKET, /* source → target: one host socket let in */
	PLAN_DEVICE, /* source → target: one host device let in */
	PLAN_COVER,  /* target: an empty unreadable directory or file over it */
	PLAN_OVERLAY, /* private home: source lower → target; upper, work */
	PLAN_DEV,     /* the fresh /dev */
	PLAN_PROC,    /* the fresh /proc, made by init */
	PLAN_REMOUNT_RO, /* target: read-only from now on */
	/* With PLAN_LANDLOCK these and no others. */
	PLAN_GRANT_TREE, /* target: it and all below may be changed */
	PLAN_GRANT_FILE, /* target: may be opened for writing */
	PLAN_TEMP,	 /* target: a directory, removed at the end */
	PLAN_MOUNT_KINDS
};

#define PLAN_F_RO	(1u << 0)
#define PLAN_F_OPTIONAL (1u << 1) /* a source that is not there is no failure */

struct plan_mount {
	uint32_t kind; /* enum plan_mount_kind */
	uint32_t flags;
	uint32_t index;
	uint32_t mode;
	uint64_t size;
	char *source, *target, *upper, *work; /* "" where unused */
};

#define PLAN_NET_NONE	(1u << 0)
#define PLAN_NO_NEST	(1u << 1)
#define PLAN_OBSERVE	(1u << 2) /* seccomp listener wanted */
#define PLAN_TTY	(1u << 3) /* stdio has a terminal */
#define PLAN_UNCONFINED (1u << 4) /* danger-full-access: only spawn */
#define PLAN_NO_USERNS	(1u << 5) /* root where userns are refused */
#define PLAN_STANDING	(1u << 6) /* no command: they come by request */
#define PLAN_LANDLOCK	(1u << 7) /* no namespace to be had: Landlock alone */

struct plan {
	uint32_t flags;
	uint32_t uid, gid; /* of the caller */
	uint64_t memory, pids, cpu_percent, timeout_ms, linger_ms;
	char *world;	    /* id */
	char *fuse_options; /* fs_mount_options() */
	char *cwd;
	char *console; /* path of the caller's tty, "" for none */
	struct plan_mount *mounts;
	size_t n_mounts;
	struct strv argv, env; /* the command of a `run`; argv empty: none */
	struct strv warden;    /* argv of the warden */
};

/* Appends an entry (strings copied, NULL means "").  Errors: -ENOMEM, -E2BIG. */
int plan_add(struct plan *plan, const struct plan_mount *mount);

int plan_encode(const struct plan *plan, struct buf *ret_bytes);
/* Errors: -EINVAL (with a sentence), -E2BIG, -ENOMEM. */
int plan_decode(const void *bytes, size_t len, struct plan *ret_plan,
		struct errmsg *why);
void plan_fini(struct plan *plan);

#endif
