/* SPDX-License-Identifier: MIT */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

/*
 * Fixed-size records between the processes of one world, over SOCK_SEQPACKET
 * pairs; descriptors ride along (base/fd.h).  Every record is one struct
 * wire_msg; `text` is NUL-terminated by the receiver's check.
 *
 *   CLI    <-> keeper   "control"  (STARTED, FAILED, STOPPED, EXITED; SIGNAL)
 *   keeper <-> warden   "keeper"   (SERVING, PACE, ENDED, DONE; CALL)
 *   warden <-> usher    "world"    (FUSE, TERMINALS, LISTENER; CONNECT, …)
 *   keeper <-> init     "init"     (READY, GO, STARTED, STOPPED, EXITED)
 *
 * A standing world runs many commands, each told by its `id`.  Its keeper has
 * a socket to the first process of each:
 *
 *   warden  -> keeper -> init      SPAWN
 *   warden  -> keeper -> client    ENTER  (one who brings his own terminal)
 *   warden  -> keeper -> command   GO, CMD_SIGNAL, CMD_KILL; FORGET
 *   command -> keeper -> warden    CMD_BORN, SPAWNED, CMD_EXITED; CMD_GONE
 */

#include <stdatomic.h>
#include <stdint.h>

enum wire_type {
	WIRE_NONE,
	WIRE_FUSE,	 /* + the /dev/fuse descriptor */
	WIRE_LISTENER,	 /* + seccomp listener; pid: host pid of init */
	WIRE_SERVING,	 /* the FUSE threads run */
	WIRE_READY,	 /* init is locked down */
	WIRE_GO,	 /* run the command; after CMD_BORN: its id */
	WIRE_STARTED,	 /* pid: host pid of the command */
	WIRE_STOPPED,	 /* the command stopped; value: signal */
	WIRE_CONTINUE,	 /* continue it */
	WIRE_SIGNAL,	 /* value: signal for the command */
	WIRE_EXITED,	 /* the command ended and the world is empty */
	WIRE_FAILED,	 /* value: errno; text: the sentence; step: which */
	WIRE_ENDED,	 /* keeper → warden: flush and go; back: stop it */
	WIRE_DONE,	 /* warden → keeper: all is in the store */
	WIRE_CONNECT,	 /* observer → usher; flags: enum wire_connect */
	WIRE_CONNECTED,	 /* usher → observer; flags: WIRE_CONNECTED_* */
	WIRE_ECHO,	 /* warden → usher: make an echo; + its socket */
	WIRE_PACE,	 /* warden → keeper: + page of a struct wire_pace */
	WIRE_CALL,	 /* keeper → warden; text: a seccomp_notif */
	WIRE_SPAWN,	 /* start a command; descriptors: see below */
	WIRE_ENTER,	 /* let a client start it in its own session */
	WIRE_CMD_BORN,	 /* its first process; text: struct wire_born */
	WIRE_SPAWNED,	 /* value: 0 + pidfd of the command; or as FAILED */
	WIRE_CMD_EXITED, /* status, usage: the command itself */
	WIRE_CMD_GONE,	 /* nothing of its tree is left */
	WIRE_CMD_SIGNAL, /* value: signal; flags: WIRE_CMD_TREE */
	WIRE_CMD_KILL,	 /* all of the tree; GONE follows */
	WIRE_FORGET,	 /* nothing more about it is wanted */
	WIRE_TERMINALS,	 /* usher → warden; + the world's /dev/pts */
};

/*
 * SPAWN: base/spawn_spec.h in a memory file, then descriptors 0, 1 and 2 of
 * the command.  ENTER: the spec, then the socket that a client's
 * `pale-mount-helper enter` reads.  In both follow, as the flags say and for
 * the keeper alone, the read ends of pipes that it shall save when the warden
 * dies, and the directory that takes what they held.
 */
#define WIRE_SPAWN_OUT (1u << 0)
#define WIRE_SPAWN_ERR (1u << 1)
#define WIRE_SPAWN_DIR (1u << 2)
/*
 * The two are the pipe behind a terminal and the terminal's own end: what is
 * in them, in this order, becomes `raw.tail`.
 */
#define WIRE_SPAWN_TERMINAL (1u << 3)

/* SPAWNED that is a failure: execve(2) itself said so. */
#define WIRE_SPAWNED_EXEC (1u << 0)

/* CMD_SIGNAL: to all of the tree, not to the command alone. */
#define WIRE_CMD_TREE (1u << 0)
/* … but to the foreground group of its terminal. */
#define WIRE_CMD_GROUP (1u << 1)

/*
 * CMD_BORN comes with a pidfd of the first process and, where its filter is
 * its own, the listener.
 */
struct wire_born {
	uint64_t mnt_dev, mnt_ino; /* its mount namespace */
	uint64_t root_mount;	   /* the mount of "/" there */
};

/*
 * CONNECT: what the observer says to the usher.  An address is raw bytes in
 * `text`, `status` is its length.
 */
enum wire_connect {
	WIRE_CONNECT_CALL,   /* id, pid, value: socket of the inmate; address */
	WIRE_CONNECT_LET_IN, /* text: a host socket that may be reached */
	WIRE_CONNECT_BORN,   /* text: all sockets of its file system are ours */
	WIRE_CONNECT_HOME,   /* id: mount of a command's root; value: 0: gone */
};

#define WIRE_ADDRESS 128

/*
 * CONNECTED: id, value (0 or a negative errno for the inmate); with REFUSED
 * the fence said no and text is the object's path ("" if the address tells).
 * HELLO comes once, first: text holds dev and inode of the world's mount
 * namespace, two host-order u64.
 */
#define WIRE_CONNECTED_REFUSED (1u << 0)
#define WIRE_CONNECTED_HELLO   (1u << 1)

#define WIRE_TEXT 768

/* ENDED: `status` is the command's wait status; without it, `text` says why. */
#define WIRE_ENDED_STATUS (1u << 0)

/*
 * Shared by warden and keeper: how the observer gets on with the calls that it
 * is told of, so that the keeper can see when inmates wait for it.
 */
struct wire_pace {
	_Atomic uint64_t received; /* warden: calls that it took, in all */
	_Atomic uint64_t id;	   /* warden: the one in hand; 0: none */
	_Atomic uint64_t since_ns; /* warden: CLOCK_MONOTONIC, of `id` */
	_Atomic uint64_t stood_in; /* keeper: calls that it let go on, in all */
	_Atomic int32_t thread;	   /* warden: the observer's */
};

/* How long an inmate waits for the observer. */
#define WIRE_PACE_MS 50

struct wire_msg {
	uint32_t type; /* enum wire_type */
	int32_t pid;
	int32_t value;
	int32_t status; /* EXITED: the wait status */
	uint32_t step;	/* FAILED: enum of mount-helper/steps.h */
	uint32_t flags;
	/* EXITED; CONNECT: user_us is the call's id at the world's listener */
	uint64_t user_us, sys_us, max_rss_kib;
	uint64_t id; /* CONNECT: notification; else: the command */
	char text[WIRE_TEXT];
};

#endif
