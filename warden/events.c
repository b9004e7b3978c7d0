/* SPDX-License-Identifier: MIT */

/*
 * The events of one world: session.created (once for a workspace and a name),
 * world.started, mode.set, world.ended.
 *
 * Opening the database takes longer than most commands, so no command waits
 * for it: the start is written beside the command when that takes its time,
 * and with the end otherwise.  A warden that is killed leaves its spool, and
 * who imports that writes the end (policy/denial_import.c).
 */

#include "warden/warden_priv.h"

#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "policy/store.h"

/* A world that lives for so long has its start on record at once. */
#define RECORD_MS 300

static int
put_start(struct warden *warden, struct store *store,
	  const struct policy *policy)
{
	_cleanup_(buf_fini) struct buf body = { 0 };
	int r;

	r = store_session(store, policy->session, policy->roots[0].path);
	jsonw_begin(&body, '{');
	world_dir_members(warden, &body);
	if (warden->opt.call)
		jsonw_pair(&body, "call", warden->opt.call);
	jsonw_end(&body, '}');
	buf_put(&body, "", 1);
	if (r == 0)
		r = buf_error(&body);
	return r < 0 ? r
		     : store_event(store, policy->session, warden->opt.world,
				   "world.started", (const char *)body.data);
}

/*
 * The start, unless it is there, and one more event, in one transaction.  Lock
 * held.
 */
static int
put(struct warden *warden, const char *kind, struct buf *body,
    struct errmsg *why)
{
	_cleanup_(store_closep) struct store *store = NULL;
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);
	int r = 0;

	if (kind) {
		buf_put(body, "", 1);
		r = buf_error(body);
	}
	if (r == 0)
		r = store_open(warden->places.db, &store, why);
	if (r == 0)
		r = store_begin(store);
	if (r < 0)
		return r;
	if (!warden->recorded)
		r = put_start(warden, store, policy);
	if (r == 0 && kind)
		r = store_event(store, policy->session, warden->opt.world, kind,
				(const char *)body->data);
	r = store_end(store, r);
	warden->recorded |= r == 0;
	return r;
}

static void
record(struct warden *warden, const char *kind, struct buf *body)
{
	struct errmsg why = { "" };
	int r = 0;

	(void)pthread_mutex_lock(&warden->record_lock);
	if (kind || !warden->recorded)
		r = put(warden, kind, body, &why);
	(void)pthread_mutex_unlock(&warden->record_lock);
	if (r < 0)
		log_line(warden->log, LOG_ERROR, "'%s' is not on record: %s %s",
			 kind ? kind : "world.started", strerror(-r), why.text);
}

void
warden_record_start(struct warden *warden)
{
	record(warden, NULL, NULL);
}

void
warden_record_event(struct warden *warden, const char *kind, struct buf *body)
{
	record(warden, kind, body);
}

void
warden_record_end(struct warden *warden)
{
	_cleanup_(buf_fini) struct buf body = { 0 };
	bool exited = warden->has_status && WIFEXITED(warden->status);
	bool killed = warden->has_status && WIFSIGNALED(warden->status);

	jsonw_begin(&body, '{');
	jsonw_pair(&body, "reason", warden->end_reason.text);
	jsonw_pair_known(&body, "exit_status", exited,
			 exited ? WEXITSTATUS(warden->status) : 0);
	jsonw_pair_known(&body, "signal", killed,
			 killed ? WTERMSIG(warden->status) : 0);
	jsonw_end(&body, '}');
	record(warden, "world.ended", &body);
}

/* ---- beside the command ---- */

static void
work(uv_work_t *request)
{
	warden_record_start(request->data);
}

static void
worked(uv_work_t *request, int status)
{
	(void)request;
	(void)status;
}

static void
on_timer(uv_timer_t *timer)
{
	struct warden *warden = timer->data;

	warden->record_work.data = warden;
	(void)uv_queue_work(&warden->loop, &warden->record_work, work, worked);
}

int
events_start(struct warden *warden)
{
	bool now = warden->opt.standing || warden->opt.mountpoint;
	int r = uv_timer_init(&warden->loop, &warden->record_timer);

	warden->record_timer.data = warden;
	if (r == 0)
		r = uv_timer_start(&warden->record_timer, on_timer,
				   now ? 0 : RECORD_MS, 0);
	return r;
}
