/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_STEPS_H
#define MOUNT_HELPER_STEPS_H

/*
 * The steps that make a world, by name.  Each process of the helper notes the
 * step that it is at, so that a failure says where it happened.  The variable
 * PALE_FAIL_STEP in the environment makes the named step fail: a test loops
 * over all of them and asserts that no command ever ran.  It can do nothing
 * but make pale fail closed, so it is there in every build.
 */

#include "base/errmsg.h"

#define STEPS(X)                                                           \
	X(PLAN, "plan")			/* read and check the plan */      \
	X(LIMITS, "limits")		/* control groups */               \
	X(WARDEN, "warden")		/* take the warden over */         \
	X(NAMESPACES, "namespaces")	/* the usher, in new ones */       \
	X(ID_MAP, "id-map")		/* user and group ids */           \
	X(USHER, "usher")		/* the usher tied to the keeper */ \
	X(CGROUP_NS, "cgroup-ns")	/* below the limits' group */      \
	X(LOOPBACK, "loopback")		/* of a network of its own */      \
	X(STDIO, "stdio")		/* what is open for reading */     \
	X(FUSE_OPEN, "fuse-open")	/* /dev/fuse */                    \
	X(SOURCES, "sources")		/* what is bound in later */       \
	X(READ_ONLY, "read-only")	/* the host's mounts */            \
	X(FUSE_MOUNT, "fuse-mount")	/* the workspace */                \
	X(FUSE_SEND, "fuse-send")	/* its descriptor to the warden */ \
	X(FUSE_ROOT, "fuse-root")	/* a git directory outside it */   \
	X(TMPFS, "tmpfs")		/* private temporary area */       \
	X(BIND, "bind")			/* a writable root */              \
	X(SOCKET, "socket")		/* a host socket let in */         \
	X(DEVICE, "device")		/* a host device let in */         \
	X(COVER, "cover")		/* a hidden path */                \
	X(OVERLAY, "overlay")		/* the private home */             \
	X(DEV, "dev")			/* the fresh /dev */               \
	X(DEVPTS, "devpts")		/* its terminals */                \
	X(REMOUNT, "remount")		/* read-only from now on */        \
	X(SCOPE, "scope")		/* Landlock: signals, abstract */  \
	X(INIT, "init")			/* the world's first process */    \
	X(LANDLOCK, "landlock")		/* where nothing can be mounted */ \
	X(PROC, "proc")			/* the fresh /proc */              \
	X(PROC_COVER, "proc-cover")	/* its dangerous files, as root */ \
	X(BOUNDING, "bounding")		/* no capability to be gained */   \
	X(SECUREBITS, "securebits")	/* uid 0 is nobody special */      \
	X(NO_NEW_PRIVS, "no-new-privs") /* setuid programs gain nothing */ \
	X(SECCOMP, "seccomp")		/* the filter */                   \
	X(LISTENER, "listener")		/* its notifications, handed on */ \
	X(DESCRIPTORS, "descriptors")	/* none but three stay open */     \
	X(READY, "ready")		/* init says so */                 \
	X(CWD, "cwd")			/* the command's directory */      \
	X(SERVING, "serving")		/* the warden says so */           \
	X(GO, "go")			/* keeper lets init run it */      \
	X(SPAWN, "spawn")		/* the command's process */        \
	X(CHILD_CAPS, "child-caps")	/* it holds no capability */       \
	X(CHILD_LIMITS, "child-limits") /* its resource limits */

enum step {
#define X(id, name) STEP_##id,
	STEPS(X)
#undef X
	STEP_COUNT
};

/* Reads PALE_FAIL_STEP; once, at start.  -EINVAL: no such step. */
int step_setup(struct errmsg *why);

/*
 * Notes that this step begins.  -ECANCELED with a sentence when it is the one
 * that shall fail.
 */
int step_begin(enum step step, struct errmsg *why);

enum step step_current(void);
const char *step_name(enum step step);

#endif
