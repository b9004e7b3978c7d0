/* SPDX-License-Identifier: MIT */

/*
 * denial.list and denial.subscribe: the records of this world, out of the
 * store.  They are read on the pool, through a connection of the call's own.
 *
 * A subscriber is fed by its last id: when rows came in, a call without an
 * answer reads what is newer and sends each row as one notification.  One
 * such call at a time, else a row would be sent twice; and no more than
 * LIMIT_FEED_BYTES ahead of what it reads, however many rows there are.
 */

#include "warden/server_priv.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "policy/store.h"

/* Rows that are asked for when nothing is said. */
#define LIST_DEFAULT 100

/* What an answer is besides its rows. */
#define ANSWER_HEAD 1024

/* The reading has stopped before the end. */
#define MORE_ROWS 1

struct reading {
	struct call *call;
	bool as_lines; /* notifications; else elements of an array */
	uint64_t rows;
};

static int
add_row(const struct denial *denial, void *data)
{
	struct reading *reading = data;
	struct call *call = reading->call;
	_cleanup_(buf_fini) struct buf row = { 0 };

	call->last = denial->id;
	reading->rows++;
	denial_to_json(denial, &row);
	if (reading->as_lines) {
		rpc_write_notification(&call->json, "denial", &row);
	} else {
		if (reading->rows > 1)
			buf_puts(&call->json, ",");
		buf_put(&call->json, row.data, row.len);
	}
	if (buf_error(&row) < 0 || buf_error(&call->json) < 0)
		return -ENOMEM;
	if (reading->as_lines)
		return call->json.len > LIMIT_FEED_BYTES ? MORE_ROWS : 0;
	if (call->json.len > LIMIT_RPC_LINE - ANSWER_HEAD)
		return rpc_fault_set(&call->fault, RPC_FAILED, "TOO_LARGE",
				     "the answer would have more than %u "
				     "bytes; ask with a smaller 'last'",
				     LIMIT_RPC_LINE);
	return 0;
}

static int
read_rows(struct call *call, struct reading *reading)
{
	_cleanup_(store_closep) struct store *store = NULL;
	const struct store_query query = {
		.since = call->since,
		.last = call->limit,
		.world = call->warden->opt.world,
	};
	struct errmsg why = { "" };
	int r;

	/* What is recorded but still in the spool belongs to the answer. */
	denials_flush(call->warden->denials);
	r = store_open(call->warden->places.db, &store, &why);
	if (r < 0)
		return rpc_fault_set(&call->fault, RPC_FAILED, "STORE", "%s",
				     why.text);
	return store_each_denial(store, &query, add_row, reading);
}

static int
run_list(struct call *call)
{
	struct reading reading = { .call = call };
	int r;

	call->last = call->since;
	buf_puts(&call->json, "{\"denials\":[");
	r = read_rows(call, &reading);
	buf_putf(&call->json, "],\"last\":%llu}",
		 (unsigned long long)call->last);
	return r;
}

int
records_list(struct client *client, const struct rpc_message *message,
	     struct buf *ret_json, struct rpc_fault *ret_fault)
{
	int64_t since = 0, last = LIST_DEFAULT;
	const struct rpc_field fields[] = {
		{ "since", RPC_INTEGER, false, &since },
		{ "last", RPC_INTEGER, false, &last },
	};
	struct call *call;
	int r;

	(void)ret_json;
	r = rpc_params(message, fields, 2, ret_fault);
	if (r < 0)
		return r;
	if (since < 0 || last < 1 || last > LIMIT_LIST_ROWS)
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				     "since is an id, last is 1 to %d",
				     LIMIT_LIST_ROWS);
	r = call_new(client, &message->id, run_list, &call);
	if (r < 0)
		return r;
	call->since = (uint64_t)since;
	call->limit = (uint64_t)last;
	return call_start(call);
}

/* ---- the feed ---- */

static int
run_feed(struct call *call)
{
	struct reading reading = { .call = call, .as_lines = true };

	int r;

	call->last = call->since;
	r = read_rows(call, &reading);
	call->more = r == MORE_ROWS;
	return r < 0 ? r : 0;
}

static void
feed_done(struct call *call)
{
	struct client *client = call->client;

	client->feeding = false;
	if (client->closing || call->result < 0)
		return;
	client->last_denial = call->last;
	if (call->json.len > 0)
		client_send(client, &call->json);
	if (client->feed_again || call->more)
		records_changed(client);
}

static bool
is_behind(const struct client *client)
{
	return uv_stream_get_write_queue_size(
		       (const uv_stream_t *)&client->pipe) > LIMIT_FEED_BYTES;
}

void
records_drained(struct client *client)
{
	if (client->feed_waits && !is_behind(client))
		records_changed(client);
}

void
records_changed(struct client *client)
{
	const struct rpc_id none = { "" };
	struct call *call;

	if (client->closing)
		return;
	client->feed_again = client->feeding;
	client->feed_waits = !client->feeding && is_behind(client);
	if (client->feeding || client->feed_waits ||
	    call_new(client, &none, run_feed, &call) < 0)
		return;
	call->since = client->last_denial;
	call->done = feed_done;
	client->feeding = true;
	if (call_start(call) < 0)
		client->feeding = false;
}

int
records_subscribe(struct client *client, const struct rpc_message *message,
		  struct buf *ret_json, struct rpc_fault *ret_fault)
{
	int64_t since = 0;
	const struct rpc_field fields[] = {
		{ "since", RPC_INTEGER, false, &since },
	};
	int r = rpc_params(message, fields, 1, ret_fault);

	if (r < 0)
		return r;
	if (since < 0)
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				     "since is an id");
	client->last_denial = (uint64_t)since;
	client->wants_denials = true;
	jsonw_begin(ret_json, '{');
	jsonw_end(ret_json, '}');
	/* What is there already comes after this answer. */
	records_changed(client);
	return 0;
}
