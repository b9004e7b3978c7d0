/* SPDX-License-Identifier: MIT */

/*
 * Requests about jobs that are answered when something has happened, and the
 * notifications.  Each has a timer of its own, which frees it in the end.
 */

#include "warden/jobs_rpc.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "warden/jobs_priv.h"
#include "warden/spawn.h"
#include "warden/survivors.h"

static void
on_timer_closed(uv_handle_t *handle)
{
	struct job_wait *wait = handle->data;

	wait->closed = true;
	if (!wait->pending)
		free(wait);
}

void
job_wait_ref(struct job_wait *wait)
{
	wait->pending = true;
}

void
job_wait_unref(struct job_wait *wait)
{
	wait->pending = false;
	if (wait->closed)
		free(wait);
}

/* It is in no list from here on. */
static void
leave(struct job_wait *wait)
{
	if (!wait->client)
		return;
	LIST_REMOVE(wait, link);
	wait->client->n_job_waits--;
	wait->client->n_waited_ids -= wait->n_ids;
	wait->client = NULL;
	uv_close((uv_handle_t *)&wait->timer, on_timer_closed);
}

void
job_wait_answer(struct job_wait *wait, int result, const struct buf *json,
		struct rpc_fault *fault)
{
	struct client *client = wait->client;

	leave(wait);
	if (client && wait->rpc_id.json[0])
		client_answer(client, &wait->rpc_id, result, json, fault);
}

/* ---- is it due? ---- */

static bool
is_told(const struct warden *warden, uint64_t id)
{
	const struct wjob *job = jobs_host_find(warden->jobs, id);

	/* A removed one has ended, too. */
	return !job || job->told;
}

static bool
is_over(const struct warden *warden, uint64_t id)
{
	bool over = true;

	(void)jobs_is_over(warden, id, &over);
	return over;
}

static bool
has_more(const struct job_wait *wait)
{
	uint64_t end = 0;
	bool final = true;

	return jobs_output_end(wait->warden, wait->read.id, wait->read.stream,
			       &end, &final) < 0 ||
	       final || end > wait->read.offset;
}

static bool
is_due(const struct job_wait *wait)
{
	size_t due = 0;

	if (wait->kind == JOB_WAIT_MORE)
		return has_more(wait);
	if (wait->kind == JOB_WAIT_CALL)
		return false;
	for (size_t i = 0; i < wait->n_ids; i++)
		due += wait->kind == JOB_WAIT_GONE
			       ? is_over(wait->warden, wait->ids[i])
			       : is_told(wait->warden, wait->ids[i]);
	return due == wait->n_ids || (wait->any && due > 0);
}

/* ---- answers ---- */

static void
put_jobs(const struct job_wait *wait, struct buf *out)
{
	jsonw_key(out, "jobs");
	jsonw_begin(out, '[');
	for (size_t i = 0; i < wait->n_ids; i++) {
		struct buf row = { 0 };

		if (jobs_state_json(wait->warden, wait->ids[i], &row) == 0)
			jsonw_raw(out, row.data, row.len);
		buf_fini(&row);
	}
	jsonw_end(out, ']');
}

static void
answer_end(struct job_wait *wait, bool timed_out)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	struct rpc_fault fault = { 0 };

	jsonw_begin(&json, '{');
	put_jobs(wait, &json);
	jsonw_pair_bool(&json, "timed_out", timed_out);
	jsonw_end(&json, '}');
	job_wait_answer(wait, buf_error(&json), &json, &fault);
}

static void
answer_gone(struct job_wait *wait, bool timed_out)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	struct rpc_fault fault = { 0 };
	const struct wjob *job =
		jobs_host_find(wait->warden->jobs, wait->ids[0]);
	char names[200] = "";
	int r;

	if (timed_out) {
		if (job && job->spawned)
			survivors_text(spawn_first(wait->warden, job->spawn),
				       names, sizeof(names));
		r = rpc_fault_set(&fault, RPC_FAILED, JOB_SURVIVORS,
				  "something of the job outlives SIGKILL: %s",
				  names[0] ? names : "nobody can say who");
	} else {
		r = jobs_state_json(wait->warden, wait->ids[0], &json);
		/* Removed by somebody else in the meantime. */
		if (r == -ENOENT)
			r = rpc_fault_set(&fault, RPC_FAILED, JOB_NOT_FOUND,
					  "the job was removed");
	}
	job_wait_answer(wait, r, &json, &fault);
}

static void
answer_more(struct job_wait *wait)
{
	struct client *client = wait->client;
	struct rpc_fault fault = { 0 };
	int r;

	leave(wait);
	r = jobs_rpc_read(client, &wait->rpc_id, &wait->read);
	if (r < 0)
		client_answer(client, &wait->rpc_id, r, NULL, &fault);
}

static void
answer(struct job_wait *wait, bool timed_out)
{
	if (wait->kind == JOB_WAIT_END)
		answer_end(wait, timed_out);
	else if (wait->kind == JOB_WAIT_GONE)
		answer_gone(wait, timed_out);
	else if (wait->kind == JOB_WAIT_MORE)
		answer_more(wait);
}

static void
on_timer(uv_timer_t *timer)
{
	answer(timer->data, true);
}

void
job_wait_check(struct job_wait *wait)
{
	if (is_due(wait))
		answer(wait, false);
}

int
job_wait_new(struct client *client, const struct rpc_message *message,
	     enum job_wait_kind kind, const uint64_t *ids, size_t n_ids,
	     struct job_wait **ret_wait)
{
	struct job_wait *wait;

	if (client->n_job_waits >= LIMIT_CLIENT_WAITS ||
	    client->n_waited_ids + n_ids > LIMIT_WAITED_IDS)
		return -ENOBUFS;
	wait = calloc(1, sizeof(*wait) + n_ids * sizeof(wait->ids[0]));
	if (!wait)
		return -ENOMEM;
	wait->client = client;
	wait->warden = client->server->warden;
	wait->rpc_id = message->id;
	wait->kind = kind;
	wait->n_ids = n_ids;
	for (size_t i = 0; i < n_ids; i++)
		wait->ids[i] = ids[i];
	(void)uv_timer_init(&wait->warden->loop, &wait->timer);
	wait->timer.data = wait;
	LIST_INSERT_HEAD(&client->job_waits, wait, link);
	client->n_job_waits++;
	client->n_waited_ids += n_ids;
	*ret_wait = wait;
	return 0;
}

void
job_wait_limit(struct job_wait *wait, uint64_t timeout_ms)
{
	if (timeout_ms > 0)
		(void)uv_timer_start(&wait->timer, on_timer, timeout_ms, 0);
}

/* ---- what happened ---- */

static bool
concerns(const struct job_wait *wait, uint64_t id, enum jobs_event event)
{
	if (wait->kind == JOB_WAIT_MORE)
		return wait->read.id == id;
	if (event == JOBS_GREW)
		return false;
	for (size_t i = 0; i < wait->n_ids; i++)
		if (wait->ids[i] == id)
			return true;
	return false;
}

/*
 * Answering may end the client and with it what it waits for: whoever was
 * answered begins anew.
 */
static void
wake(struct client *client, uint64_t id, enum jobs_event event)
{
	struct job_wait *wait, *next;

	for (wait = LIST_FIRST(&client->job_waits); wait; wait = next) {
		next = LIST_NEXT(wait, link);
		if (!concerns(wait, id, event) || !is_due(wait))
			continue;
		answer(wait, false);
		if (client->closing)
			return;
	}
}

static void
notify(struct client *client, const struct wjob *job, const char *name)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	struct buf line = { 0 };
	struct store_job row;

	wjob_row(job, &row);
	jobs_row_json(&row, &params);
	rpc_write_notification(&line, name, &params);
	client_send(client, &line);
}

static void
on_event(uint64_t id, enum jobs_event event, void *data)
{
	struct warden *warden = data;
	const struct wjob *job = jobs_host_find(warden->jobs, id);
	const char *name = event == JOBS_CHANGED ? "job.changed"
			   : event == JOBS_DONE	 ? "job.done"
						 : NULL;
	struct client *client, *next;

	if (!warden->server)
		return;
	for (client = LIST_FIRST(&warden->server->clients); client;
	     client = next) {
		next = LIST_NEXT(client, link);
		if (client->closing)
			continue;
		if (client->wants_jobs && name && job)
			notify(client, job, name);
		if (!client->closing)
			wake(client, id, event);
	}
}

int
jobs_rpc_watch(struct warden *warden)
{
	struct jobs_listener *listener;
	struct jobs_host *host;
	int r = jobs_host_get(warden, &host);

	if (r < 0 || host->rpc_watches)
		return r;
	r = jobs_listen(warden, on_event, warden, &listener);
	host->rpc_watches = r == 0;
	return r;
}

/* ---- clients ---- */

void
jobs_client_gone(struct client *client)
{
	struct job_wait *wait;

	while ((wait = LIST_FIRST(&client->job_waits)))
		leave(wait);
}

bool
jobs_cancel(struct client *client, const char *id_json)
{
	struct rpc_fault fault = { 0 };
	struct job_wait *wait;

	LIST_FOREACH(wait, &client->job_waits, link)
	{
		if (strcmp(wait->rpc_id.json, id_json) != 0)
			continue;
		/* The wait ends; the job goes on. */
		job_wait_answer(wait,
				rpc_fault_set(&fault, RPC_FAILED, "CANCELLED",
					      "cancelled"),
				NULL, &fault);
		return true;
	}
	return false;
}
