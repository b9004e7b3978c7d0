/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_USHER_SOCKET_H
#define MOUNT_HELPER_USHER_SOCKET_H

/*
 * Which socket does an address name, and does it belong to the world?
 *
 * A socket file is *let in* (the operator named it), *born* in the world (it
 * lies on a file system that only the world has: its private temporary areas,
 * its FUSE mount), or doubtful (a writable directory of the host).  On a
 * read-only mount it is the host's and refused.  For the doubtful ones the
 * listener is looked for among the world's processes beforehand: a wrong one
 * must not receive what another thread of the inmate writes the moment it is
 * connected, nor be told of a connection at all.
 *
 * Thread: any, many at once; usher_world_* of the receiving thread only, and
 * the lists grow in a way that readers may watch.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/limits.h"
#include "base/wire.h"

struct usher_object {
	dev_t dev;
	ino_t ino;
};

struct usher_world {
	int proc;     /* the host's /proc; also the working directory */
	ino_t pid_ns; /* our own, the parent of the world's */
	uint64_t root_mount;
	struct usher_object root;
	bool scoped; /* Landlock keeps abstract names apart */
	struct usher_object let_in[LIMIT_LET_IN];
	atomic_size_t n_let_in;
	dev_t born[LIMIT_LET_IN];
	atomic_size_t n_born;
	/* Mounts that commands have for their "/", which is ours; 0: free. */
	_Atomic uint64_t homes[LIMIT_COMMANDS];
	atomic_size_t n_homes;
};

/* One connect(2) of an inmate, arguments copied. */
struct usher_call {
	uint64_t notified; /* its id at the world's listener; 0: another's */
	int holder;	   /* of another's: a pidfd of the thread; -1: none */
	uint64_t id;
	pid_t pid; /* of the thread */
	int fd;
	int proc; /* as in usher_world */
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		char bytes[WIRE_ADDRESS];
	} address;
	socklen_t address_len;
};

struct usher_target {
	int fd; /* O_PATH on the socket file; -1: not a path */
	bool let_in;
	bool born;    /* or its listener is known to be the world's */
	bool refused; /* by the fence, to be put on record */
	struct sockaddr_un address;
	socklen_t address_len;
	char path[WIRE_TEXT]; /* of the file; "" where there is none */
};

int usher_world_init(struct usher_world *world, int proc, bool scoped);
void usher_world_let_in(struct usher_world *world, const char *path);
void usher_world_born(struct usher_world *world, const char *path);
void usher_world_home(struct usher_world *world, uint64_t mount, bool there);

/*
 * Finds and judges what `call` names for the AF_UNIX socket `fd`.  Returns 0
 * with an address to connect to, or the negative errno for the inmate.
 */
int usher_target_find(const struct usher_world *world,
		      const struct usher_call *call, int fd,
		      struct usher_target *ret_target);
void usher_target_fini(struct usher_target *target);

/* Whether what `fd` is connected to may be: to be asked after connect(). */
bool usher_target_is_ours(const struct usher_world *world,
			  const struct usher_call *call, int fd,
			  const struct usher_target *target);

/* The process of a pidfd, or the thread. */
bool usher_has_exited(int pidfd);

/* From /proc/PID/status: the leader's pid, or `pid` itself. */
pid_t usher_thread_group(int proc, pid_t pid);

/* The thread is dead, or has a signal that it does not block or ignore. */
bool usher_is_interrupted(int proc, pid_t pid);

#endif
