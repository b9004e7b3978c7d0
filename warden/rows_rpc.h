/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_ROWS_RPC_H
#define WARDEN_ROWS_RPC_H

/*
 * Answers that are made of records, of jobs and of terminals alike.
 * Thread: loop.
 */

#include <stdint.h>

#include "base/buf.h"

struct client;
struct job;
struct jobs;
struct rpc_fault;
struct rpc_message;
struct warden;

/*
 * job.list and term.list: those that live, newest first, and with `all` the
 * others behind them; as `member`, each as `put` writes it.  It ends where the
 * answer would become too long for a line.
 */
int rows_list(const struct rpc_message *message, const struct jobs *core,
	      const char *member,
	      void (*put)(const struct job *core, struct buf *out),
	      struct buf *ret_json, struct rpc_fault *ret_fault);

/*
 * Answers by the object in `row`, which is taken, and the members of what
 * `read_spec` says on the pool: what was asked for, a fresh JSON object.
 */
int rows_show(struct client *client, const struct rpc_message *message,
	      struct buf *row, uint64_t id,
	      int (*read_spec)(const struct warden *warden, uint64_t id,
			       char **ret_spec));

#endif
