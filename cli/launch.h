/* SPDX-License-Identifier: MIT */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

/*
 * Starts a world for one command: from a policy to a running mount helper,
 * and the conversation with it (base/wire.h, "control").
 *
 *	CLI ──control── keeper (pale-mount-helper)
 *	 └───summary─── warden: one line of JSON at its end
 *
 * The command's stdio is the caller's: descriptors 0, 1 and 2 as they are.
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/errmsg.h"
#include "base/strv.h"
#include "base/wire.h"
#include "cli/worlds.h"
#include "policy/policy.h"

/* What of the fence is missing; wire_msg.flags, as mount-helper/helper.h. */
#define LAUNCH_NO_USERNS   (1u << 0)
#define LAUNCH_NO_OBSERVER (1u << 1)
#define LAUNCH_NO_SCOPE	   (1u << 2)
#define LAUNCH_HOME_TMPFS  (1u << 3)
#define LAUNCH_EXEC_FAILED (1u << 8)

/* wire_msg.flags of WIRE_SIGNAL: to every process of the world. */
#define LAUNCH_SIGNAL_ALL (1u << 0)

struct launch {
	char world[WORLD_ID_LEN + 1];
	pid_t helper;
	int control; /* base/wire.h; -1 when it has ended */
	int summary; /* -1: none (unconfined) */
};

#define LAUNCH_NONE                           \
	{                                     \
		.control = -1, .summary = -1, \
	}

struct launch_request {
	const struct policy *policy;
	const char *cwd; /* absolute, as the command shall find itself in */
	const struct strv *argv, *env;
	const char *console; /* path of the caller's terminal; NULL: none */
};

/*
 * Starts the helper; what becomes of it is said on `control`.
 * Errors, with a sentence: nothing runs then.
 */
int launch_start(const struct launch_request *request,
		 struct launch *ret_launch, struct errmsg *why);

/* Errors: the helper is gone. */
int launch_signal(struct launch *launch, int signal, bool all);
int launch_continue(struct launch *launch);

/* Receives one record; 1, 0 when the helper is gone, or an error. */
int launch_receive(struct launch *launch, struct wire_msg *ret_msg);

/*
 * Waits for the warden's last line; *ret_json is the caller's.
 * -ETIMEDOUT; -EPIPE: it died, and what it left was brought to the store.
 */
int launch_summary(struct launch *launch, int timeout_ms, char **ret_json);

void launch_fini(struct launch *launch);

/*
 * A configuration directory that is not there is made, but only where an
 * inmate could make it instead.  -ENOMEM.
 */
int launch_config_dir(const struct policy *policy);

/* Where the private home of a workspace is kept; there or not.  -ENOMEM. */
int launch_home_dir(const char *workspace, char **ret_dir);

#endif
