/* SPDX-License-Identifier: MIT */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

/*
 * Fixed-size records between the processes of one world, over SOCK_SEQPACKET
 * pairs; descriptors ride along (base/fd.h).  Every record is one struct
 * wire_msg; `text` is NUL-terminated by the receiver's check.
 *
 *   CLI    <-> keeper   "control"  (STARTED, FAILED, STOPPED, EXITED; SIGNAL)
 *   keeper <-> warden   "keeper"   (SERVING, ENDED, DONE)
 *   warden <-> usher    "world"    (FUSE, LISTENER; CONNECT, CONNECTED)
 *   keeper <-> init     "init"     (READY, GO, STARTED, STOPPED, EXITED)
 */

#include <stdint.h>

enum wire_type {
	WIRE_NONE,
	WIRE_FUSE,	/* + the /dev/fuse descriptor */
	WIRE_LISTENER,	/* + seccomp listener; pid: host pid of init */
	WIRE_SERVING,	/* the FUSE threads run */
	WIRE_READY,	/* init is locked down */
	WIRE_GO,	/* run the command */
	WIRE_STARTED,	/* pid: host pid of the command */
	WIRE_STOPPED,	/* the command stopped; value: signal */
	WIRE_CONTINUE,	/* continue it */
	WIRE_SIGNAL,	/* value: signal for the command */
	WIRE_EXITED,	/* the command ended and the world is empty */
	WIRE_FAILED,	/* value: errno; text: the sentence; step: which */
	WIRE_ENDED,	/* keeper → warden: flush and go; back: stop it */
	WIRE_DONE,	/* warden → keeper: all is in the store */
	WIRE_CONNECT,	/* observer → usher; flags: enum wire_connect */
	WIRE_CONNECTED, /* usher → observer; flags: WIRE_CONNECTED_* */
};

/*
 * CONNECT: what the observer says to the usher.  An address is raw bytes in
 * `text`, `status` is its length.
 */
enum wire_connect {
	WIRE_CONNECT_CALL,   /* id, pid, value: socket of the inmate; address */
	WIRE_CONNECT_LET_IN, /* text: a host socket that may be reached */
	WIRE_CONNECT_BORN,   /* text: all sockets of its file system are ours */
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

struct wire_msg {
	uint32_t type; /* enum wire_type */
	int32_t pid;
	int32_t value;
	int32_t status; /* EXITED: the wait status */
	uint32_t step;	/* FAILED: enum of mount-helper/steps.h */
	uint32_t flags;
	uint64_t user_us, sys_us, max_rss_kib; /* EXITED */
	uint64_t id;			       /* CONNECT: notification id */
	char text[WIRE_TEXT];
};

#endif
