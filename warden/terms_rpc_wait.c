/* SPDX-License-Identifier: MIT */

/*
 * Requests about terminals that are answered when something has happened, and
 * the notifications.  Each has a timer of its own, which frees it in the end.
 *
 * That there is more output is told at most every NOTIFY_MS: who wants each
 * byte at once attaches.
 */

#include "warden/terms_rpc.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "warden/terms_priv.h"
#include "warden/terms_rpc_until.h"

#define NOTIFY_MS 50

static void
on_timer_closed(uv_handle_t *handle)
{
	struct term_wait *wait = handle->data;

	wait->closed = true;
	if (!wait->pending)
		free(wait);
}

void
term_wait_ref(struct term_wait *wait)
{
	wait->pending = true;
}

void
term_wait_unref(struct term_wait *wait)
{
	wait->pending = false;
	if (wait->closed)
		free(wait);
}

/* It is in no list from here on. */
static void
leave(struct term_wait *wait)
{
	if (!wait->client)
		return;
	LIST_REMOVE(wait, link);
	wait->client->n_term_waits--;
	wait->client = NULL;
	if (wait->ops->gone)
		wait->ops->gone(wait);
	uv_close((uv_handle_t *)&wait->timer, on_timer_closed);
}

void
term_wait_answer(struct term_wait *wait, int result, const struct buf *json,
		 struct rpc_fault *fault)
{
	struct client *client = wait->client;

	leave(wait);
	if (client && wait->rpc_id.json[0])
		client_answer(client, &wait->rpc_id, result, json, fault);
}

static void
on_timer(uv_timer_t *timer)
{
	struct term_wait *wait = timer->data;

	wait->ops->answer(wait, true);
}

void
term_wait_check(struct term_wait *wait)
{
	if (wait->ops->is_due && wait->ops->is_due(wait))
		wait->ops->answer(wait, false);
}

int
term_wait_new(struct client *client, const struct rpc_message *message,
	      const struct term_wait_ops *ops, uint64_t id,
	      struct term_wait **ret_wait)
{
	struct term_wait *wait;

	if (client->n_term_waits >= LIMIT_CLIENT_WAITS)
		return -ENOBUFS;
	wait = calloc(1, sizeof(*wait));
	if (!wait)
		return -ENOMEM;
	wait->ops = ops;
	wait->client = client;
	wait->warden = client->server->warden;
	wait->rpc_id = message->id;
	wait->id = id;
	(void)uv_timer_init(&wait->warden->loop, &wait->timer);
	wait->timer.data = wait;
	LIST_INSERT_HEAD(&client->term_waits, wait, link);
	client->n_term_waits++;
	*ret_wait = wait;
	return 0;
}

void
term_wait_limit(struct term_wait *wait, uint64_t timeout_ms)
{
	if (timeout_ms > 0)
		(void)uv_timer_start(&wait->timer, on_timer, timeout_ms, 0);
}

/* ---- what is waited for ---- */

static bool
is_over(const struct term_wait *wait)
{
	bool over = true;

	(void)terms_is_over(wait->warden, wait->id, &over);
	return over;
}

static void
answer_over(struct term_wait *wait, bool timed_out)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	struct rpc_fault fault = { 0 };
	struct store_term row = { .state = "" };
	int r;

	if (timed_out) {
		(void)terms_get_row(wait->warden, wait->id, &row);
		r = rpc_fault_set(&fault, RPC_FAILED, TERM_SURVIVORS,
				  "something of the terminal outlives SIGKILL; "
				  "its program was process %lld",
				  (long long)row.pid);
	} else {
		r = terms_state_json(wait->warden, wait->id, &json);
		/* Removed by somebody else in the meantime. */
		if (r == -ENOENT)
			r = rpc_fault_set(&fault, RPC_FAILED, TERM_NOT_FOUND,
					  "the terminal was removed");
	}
	term_wait_answer(wait, r, &json, &fault);
}

const struct term_wait_ops term_wait_over = { .is_due = is_over,
					      .answer = answer_over };

static bool
is_recorded(const struct term_wait *wait)
{
	const struct wterm *term =
		terms_host_find(wait->warden->terms, wait->id);

	return !term || (!term->dirty && !term->recording);
}

const struct term_wait_ops term_wait_recorded = { .is_due = is_recorded,
						  .answer = answer_over };

static bool
has_more(const struct term_wait *wait)
{
	uint64_t end = 0;
	bool final = true;

	return terms_end(wait->warden, wait->id, &end, &final) < 0 || final ||
	       end > wait->read.offset;
}

static void
answer_more(struct term_wait *wait, bool timed_out)
{
	struct client *client = wait->client;
	struct rpc_fault fault = { 0 };
	int r;

	(void)timed_out;
	leave(wait);
	r = terms_rpc_read_now(client, &wait->rpc_id, &wait->read);
	if (r < 0)
		client_answer(client, &wait->rpc_id, r, NULL, &fault);
}

const struct term_wait_ops term_wait_more = { .is_due = has_more,
					      .answer = answer_more };

/* ---- what happened ---- */

/*
 * Answering may end the client and with it what it waits for: whoever was
 * answered begins anew.
 */
static void
wake(struct client *client, uint64_t id)
{
	struct term_wait *wait, *next;

	for (wait = LIST_FIRST(&client->term_waits); wait; wait = next) {
		next = LIST_NEXT(wait, link);
		if (wait->id != id || !wait->ops->is_due ||
		    !wait->ops->is_due(wait))
			continue;
		wait->ops->answer(wait, false);
		if (client->closing)
			return;
	}
}

static void
tell_all(struct warden *warden, const char *name, const struct buf *params)
{
	struct client *client, *next;

	for (client = LIST_FIRST(&warden->server->clients); client;
	     client = next) {
		struct buf line = { 0 };

		next = LIST_NEXT(client, link);
		if (client->closing || !client->wants_terms)
			continue;
		rpc_write_notification(&line, name, params);
		client_send(client, &line);
	}
}

static void
notify_state(struct warden *warden, uint64_t id, const char *name)
{
	_cleanup_(buf_fini) struct buf params = { 0 };

	if (terms_state_json(warden, id, &params) == 0)
		tell_all(warden, name, &params);
}

static void
notify_output(struct warden *warden, const struct wterm *term)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	char id[TERMS_ID_MAX];
	uint64_t end = 0;
	bool final = true;

	(void)terms_end(warden, term->core.id, &end, &final);
	terms_id_text(term->core.id, id);
	jsonw_begin(&params, '{');
	jsonw_pair(&params, "id", id);
	jsonw_pair_uint(&params, "end", end);
	jsonw_pair_bool(&params, "final", final);
	jsonw_end(&params, '}');
	tell_all(warden, "term.output", &params);
}

static void
on_notify(uv_timer_t *timer)
{
	struct terms_host *host = timer->data;
	const struct job *core;

	host->notifying = false;
	for (size_t i = 0; (core = jobs_at(host->core, i)); i++) {
		struct wterm *term = core->data;

		if (!term->has_grown)
			continue;
		term->has_grown = false;
		if (host->warden->server)
			notify_output(host->warden, term);
	}
}

static void
note_output(struct warden *warden, uint64_t id)
{
	struct wterm *term = terms_host_find(warden->terms, id);
	struct terms_host *host = warden->terms;

	if (!term || host->closed)
		return;
	term->has_grown = true;
	if (!host->notifying)
		(void)uv_timer_start(&host->notify, on_notify, NOTIFY_MS, 0);
	host->notifying = true;
}

static bool
is_subscribed(const struct warden *warden)
{
	const struct client *client;

	LIST_FOREACH(client, &warden->server->clients, link)
	if (client->wants_terms && !client->closing)
		return true;
	return false;
}

static void
on_event(uint64_t id, enum terms_event event, const struct vt_event *model,
	 void *data)
{
	struct warden *warden = data;
	struct client *client, *next;

	terms_until_event(warden, id, event, model);
	/* Of the model and of sizes nobody here wants to know. */
	if (!warden->server || event == TERMS_FED || event == TERMS_MODEL ||
	    event == TERMS_RESIZED)
		return;
	if (is_subscribed(warden)) {
		if (event == TERMS_GREW)
			note_output(warden, id);
		else if (event == TERMS_EXITED)
			notify_state(warden, id, "term.exit");
		else if (event == TERMS_CHANGED)
			notify_state(warden, id, "term.changed");
	}
	for (client = LIST_FIRST(&warden->server->clients); client;
	     client = next) {
		next = LIST_NEXT(client, link);
		if (!client->closing)
			wake(client, id);
	}
}

int
terms_rpc_enter(struct client *client, struct rpc_fault *fault)
{
	struct warden *warden = client->server->warden;
	struct terms_listener *listener;
	struct terms_host *host;
	int r = terms_host_get(warden, &host);

	if (r == -ENOTSUP)
		return rpc_fault_set(fault, RPC_FAILED, "NOT_STANDING",
				     "this world runs one command and has no "
				     "terminals");
	if (r < 0 || host->rpc_watches)
		return r;
	r = terms_listen(warden, on_event, warden, &listener);
	host->rpc_watches = r == 0;
	return r;
}

/* ---- clients ---- */

void
terms_client_gone(struct client *client)
{
	struct term_wait *wait;

	while ((wait = LIST_FIRST(&client->term_waits)))
		leave(wait);
}

bool
terms_cancel(struct client *client, const char *id_json)
{
	struct rpc_fault fault = { 0 };
	struct term_wait *wait;

	LIST_FOREACH(wait, &client->term_waits, link)
	{
		if (strcmp(wait->rpc_id.json, id_json) != 0)
			continue;
		/* The wait ends; the terminal goes on. */
		term_wait_answer(wait,
				 rpc_fault_set(&fault, RPC_FAILED, "CANCELLED",
					       "cancelled"),
				 NULL, &fault);
		return true;
	}
	return false;
}

int
terms_rpc_subscribe(struct client *client, const struct rpc_message *message,
		    struct buf *ret_json, struct rpc_fault *ret_fault)
{
	int r = terms_rpc_enter(client, ret_fault);

	if (r == 0)
		r = rpc_params(message, NULL, 0, ret_fault);
	if (r < 0)
		return r;
	client->wants_terms = true;
	jsonw_begin(ret_json, '{');
	jsonw_end(ret_json, '}');
	return 0;
}
