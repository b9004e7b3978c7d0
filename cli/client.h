/* SPDX-License-Identifier: MIT */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

/*
 * The command line's end of a world's socket: one request at a time, answers
 * waited for with a deadline, notifications kept in order in between.
 *
 * Thread: main.
 */

#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/errmsg.h"
#include "rpc/rpc.h"

struct rpc_client;

/*
 * Connects to the socket in `world_dir` (RUNTIME/worlds/ID) and says hello as
 * `role`.  Errors, with a sentence: -ECONNREFUSED, -ENOENT (nobody serves it),
 * -EPROTO (the warden speaks another protocol), -ETIMEDOUT.
 */
int rpc_client_open(const char *world_dir, enum rpc_role role,
		    struct rpc_client **ret_client, struct errmsg *why);
struct rpc_client *rpc_client_close(struct rpc_client *client);
static inline void
rpc_client_closep(struct rpc_client **client)
{
	rpc_client_close(*client);
}

/*
 * One request and its answer; `params` may be NULL.  *ret_result (NULL
 * allowed) is a new reference.  -EREMOTEIO: the warden refused, the sentence
 * is its own; -ECONNRESET: it went away; -ETIMEDOUT.
 */
int rpc_client_call(struct rpc_client *client, enum rpc_method method,
		    const struct buf *params, int timeout_ms,
		    json_t **ret_result, struct errmsg *why);

#endif
