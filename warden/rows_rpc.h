/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_ROWS_RPC_H
#define WARDEN_ROWS_RPC_H

/*
 * Answers that are made of records, of jobs and of terminals alike.
 * Thread: loop.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct client;
struct rpc_message;
struct warden;

/* A list that ends where the answer would become too long for a line. */
struct listing {
	struct buf *out;
	int64_t left; /* as many as were asked for */
	bool full;
};

static inline bool
listing_goes_on(const struct listing *listing)
{
	return listing->left > 0 && !listing->full;
}

/* One more; `one` is empty afterwards. */
void listing_add(struct listing *listing, struct buf *one);

/*
 * Answers by the object in `row`, which is taken, and the members of what
 * `read_spec` says on the pool: what was asked for, a fresh JSON object.
 */
int rows_show(struct client *client, const struct rpc_message *message,
	      struct buf *row, uint64_t id,
	      int (*read_spec)(const struct warden *warden, uint64_t id,
			       char **ret_spec));

#endif
