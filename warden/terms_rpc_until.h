/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_RPC_UNTIL_H
#define WARDEN_TERMS_RPC_UNTIL_H

/*
 * Requests that wait for what a terminal does: for conditions (term.wait), or
 * until it is ready for more (term.send with `wait`, term.run).
 *
 * Thread: loop.
 */

#include "warden/terms_ready.h"
#include "warden/terms_rpc.h"
#include "warden/terms_until.h"

struct vt_event;

/* What was written, and what of the answer is wanted. */
struct sending {
	uint64_t id;
	struct buf bytes; /* taken, and so is: */
	char *command;	  /* of run: typed when the shell is ready */
	uint64_t timeout_ms, max;
	bool whole; /* all of it or nothing */
	bool plain;
};

#define SEND_TIMEOUT_MS 30000
#define SEND_MAX	(64 << 10)
#define SEND_MAX_MAX	(256 << 10)

/* Writes, and answers when the terminal is ready.  CALL_LATER. */
int terms_rpc_send_wait(struct client *client,
			const struct rpc_message *message,
			struct sending *sending, struct rpc_fault *fault);

/* What became of a write, as a fault; 0: all was taken. */
int terms_rpc_check_written(const struct terms_written *written, size_t len,
			    struct rpc_fault *fault);

/* Something happened to a terminal; `model` of TERMS_MODEL. */
void terms_until_event(struct warden *warden, uint64_t id,
		       enum terms_event event, const struct vt_event *model);

#endif
