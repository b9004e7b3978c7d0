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
/* The bare connection; nothing is said on it. */
int rpc_client_connect(const char *world_dir, int *ret_sock,
		       struct errmsg *why);
struct rpc_client *rpc_client_close(struct rpc_client *client);
static inline void
rpc_client_closep(struct rpc_client **client)
{
	rpc_client_close(*client);
}

/*
 * One request and its answer; `params` may be NULL.  *ret_result (NULL
 * allowed) is a new reference.  A negative time is for ever.  -EREMOTEIO: the
 * warden refused, the sentence is its own; -ECONNRESET: it went away;
 * -ETIMEDOUT.
 */
int rpc_client_call(struct rpc_client *client, enum rpc_method method,
		    const struct buf *params, int timeout_ms,
		    json_t **ret_result, struct errmsg *why);

/* ---- for who waits for more than one answer ---- */

/* The socket, to be polled; the client's. */
int rpc_client_socket(const struct rpc_client *client);

/*
 * Sends a request, with descriptors (borrowed); its answer comes by
 * rpc_client_next() as the message with *ret_id.
 */
int rpc_client_send(struct rpc_client *client, enum rpc_method method,
		    const struct buf *params, const int *fds, size_t n_fds,
		    uint64_t *ret_id);

/* The answer to the last request that was sent, as by rpc_client_call(). */
int rpc_client_await(struct rpc_client *client, enum rpc_method method,
		     int timeout_ms, json_t **ret_result, struct errmsg *why);

/*
 * The next message, whatever it is; the caller's, by rpc_message_fini().
 * 1; 0: none within `timeout_ms` (0: none is there); -ECONNRESET: the warden
 * went away.
 */
int rpc_client_next(struct rpc_client *client, int timeout_ms,
		    struct rpc_message *ret_message);

/*
 * Its socket, for who speaks something else on it from now on, and what has
 * come there already (appended).  The client is closed.
 */
int rpc_client_take(struct rpc_client *client, struct buf *ret_rest);

/* The message is the answer to that request. */
bool rpc_client_answers(const struct rpc_message *message, uint64_t id);

#endif
