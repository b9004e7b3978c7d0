/* SPDX-License-Identifier: MIT */

#include "warden/server_priv.h"

#include <string.h>

#include "base/cleanup.h"

static void
call_free(struct call *call)
{
	buf_fini(&call->json);
	free(call);
}

int
call_new(struct client *client, const struct rpc_id *id,
	 int (*run)(struct call *call), struct call **ret_call)
{
	struct call *call = calloc(1, sizeof(*call));

	if (!call)
		return -ENOMEM;
	call->client = client;
	call->role = client->role;
	call->warden = client->server->warden;
	call->id = *id;
	call->run = run;
	call->work.data = call;
	*ret_call = call;
	return 0;
}

static void
on_work(uv_work_t *work)
{
	struct call *call = work->data;

	call->result = call->run(call);
	if (call->result == 0)
		call->result = buf_error(&call->json);
}

static void
on_worked(uv_work_t *work, int status)
{
	struct call *call = work->data;
	struct client *client = call->client;

	if (status == UV_ECANCELED)
		call->result = rpc_fault_set(&call->fault, RPC_FAILED,
					     "CANCELLED", "cancelled");
	if (call->done)
		call->done(call);
	LIST_REMOVE(call, link);
	client->n_calls--;
	/* A notification ("") and a feed of our own are not answered. */
	if (call->id.json[0])
		client_answer(client, &call->id, call->result, &call->json,
			      &call->fault);
	call_free(call);
	client_resume(client);
}

int
call_start(struct call *call)
{
	struct client *client = call->client;
	int r;

	LIST_INSERT_HEAD(&client->calls, call, link);
	client->n_calls++;
	r = uv_queue_work(&call->warden->loop, &call->work, on_work, on_worked);
	if (r == 0)
		return CALL_LATER;
	LIST_REMOVE(call, link);
	client->n_calls--;
	call_free(call);
	return r;
}

void
call_cancel_all(struct client *client)
{
	for (struct call *call = LIST_FIRST(&client->calls); call;
	     call = LIST_NEXT(call, link))
		(void)uv_cancel((uv_req_t *)&call->work);
}

bool
call_cancel(struct client *client, const char *id_json)
{
	for (struct call *call = LIST_FIRST(&client->calls); call;
	     call = LIST_NEXT(call, link)) {
		if (strcmp(call->id.json, id_json) != 0)
			continue;
		/* One that works already comes to its end and answers. */
		(void)uv_cancel((uv_req_t *)&call->work);
		return true;
	}
	return false;
}
