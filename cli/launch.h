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
#include "base/world_flags.h"
#include "cli/worlds.h"
#include "policy/policy.h"

/* wire_msg.flags besides those of base/world_flags.h; mount-helper/helper.h. */
#define LAUNCH_EXEC_FAILED (1u << 8)

/* wire_msg.flags of WIRE_FAILED: there may be a way without namespaces. */
#define LAUNCH_NO_WORLD (1u << 0)

/* wire_msg.flags of WIRE_SIGNAL: to every process of the world. */
#define LAUNCH_SIGNAL_ALL (1u << 0)

struct launch {
	char world[WORLD_ID_LEN + 1];
	pid_t helper;
	int control;   /* base/wire.h; -1 when it has ended */
	int summary;   /* -1: none (unconfined) */
	bool no_world; /* it failed because none can be made here */
};

#define LAUNCH_NONE                           \
	{                                     \
		.control = -1, .summary = -1, \
	}

struct launch_request {
	const struct policy *policy;
	const char *cwd; /* absolute, as the command shall find itself in */
	const struct strv *argv, *env;
	const char *call;    /* the caller's id of it; NULL: none */
	const char *console; /* path of the caller's terminal; NULL: none */
	bool passthrough;    /* the mode is fixed, so data may pass by */
	bool standing;	     /* no command: a world for those to come */
	bool for_mount;	     /* standing: goes with its mount, if unused */
	uint64_t idle_ms;    /* standing: ends when unused for so long */
	const char *temp;    /* removed at the end; with Landlock alone */
};

/*
 * Starts the helper; what becomes of it is said on `control`.
 * Errors, with a sentence: nothing runs then.
 */
int launch_start(const struct launch_request *request,
		 struct launch *ret_launch, struct errmsg *why);

/*
 * A standing world's: waits until it is up; it needs us no more then.  Errors
 * with a sentence: it is not, and nothing of it is left.
 */
int launch_await_standing(struct launch *launch, struct errmsg *why);

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

/* The mount helper: beside this program, else where it is installed. */
int launch_helper(char **ret_helper, struct errmsg *why);

/*
 * A configuration directory that is not there is made, but only where an
 * inmate could make it instead.  -ENOMEM.
 */
int launch_config_dir(const struct policy *policy);

/* Where the private home of a workspace is kept; there or not.  -ENOMEM. */
int launch_home_dir(const char *workspace, char **ret_dir);

#endif
