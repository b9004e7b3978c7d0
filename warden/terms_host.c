/* SPDX-License-Identifier: MIT */

#include "warden/terms_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/clock.h"
#include "warden/spawn.h"

/* ---- making it ---- */

void
terms_fault(struct terms_host *host, const char *point)
{
	fault_here(&host->fault, point);
}

/* In order of ids, from `at` on, one that is held; NULL: no more. */
static struct wterm *
next_held(const struct terms_host *host, size_t *at)
{
	const struct job *core;

	while ((core = jobs_at(host->core, (*at)++))) {
		struct wterm *term = core->data;

		if (term->held)
			return term;
	}
	return NULL;
}

static void
on_timer(uv_timer_t *timer)
{
	struct terms_host *host = timer->data;
	struct wterm *term;
	size_t at = 0;

	jobs_tick(host->core);
	terms_store_tick(host);
	while ((term = next_held(host, &at)))
		term_screen_tick(term);
	terms_host_rearm(host);
}

void
terms_host_rearm(struct terms_host *host)
{
	int64_t at = jobs_deadline(host->core), one, left;
	const struct wterm *term;
	size_t i = 0;

	if (host->closed)
		return;
	one = terms_store_deadline(host);
	at = one < at ? one : at;
	while ((term = next_held(host, &i))) {
		one = term_screen_deadline(term);
		at = one < at ? one : at;
	}
	if (at == JOBS_NEVER) {
		(void)uv_timer_stop(&host->timer);
		return;
	}
	left = at - clock_mono_ns();
	uv_update_time(&host->warden->loop);
	/* Never 0: a timer that is due again at once starves the loop. */
	(void)uv_timer_start(
		&host->timer, on_timer,
		left > 1000000 ? (uint64_t)(left + 999999) / 1000000 : 1, 0);
}

static struct terms_host *
host_new(struct warden *warden)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);
	struct jobs_limits limits = { .running = TERMS_LIVE };
	struct terms_host *host = calloc(1, sizeof(*host));

	if (!host)
		return NULL;
	if (policy->limits.terminals)
		limits.running = (size_t)policy->limits.terminals;
	host->kept = policy->limits.terminals_kept;
	host->workspace = strdup(policy->roots[0].path);
	host->session = strdup(policy->session);
	if (!host->workspace || !host->session ||
	    jobs_new(&limits, &terms_run_ops, host, &host->core) < 0) {
		free(host->workspace);
		free(host->session);
		free(host);
		return NULL;
	}
	host->warden = warden;
	host->root = -1;
	(void)pthread_mutex_init(&host->store_lock, NULL);
	TAILQ_INIT(&host->dirty);
	TAILQ_INIT(&host->behind);
	LIST_INIT(&host->listeners);
	LIST_INIT(&host->starts);
	fault_read(&host->fault, "PALE_FAIL_TERM");
	return host;
}

int
terms_host_get(struct warden *warden, struct terms_host **ret_host)
{
	struct terms_host *host = warden->terms;

	if (!host) {
		if (!warden->opt.standing)
			return -ENOTSUP;
		host = host_new(warden);
		if (!host)
			return -ENOMEM;
		(void)uv_timer_init(&warden->loop, &host->timer);
		(void)uv_timer_init(&warden->loop, &host->notify);
		(void)uv_idle_init(&warden->loop, &host->idle);
		host->timer.data = host->notify.data = host;
		host->idle.data = host;
		/* A world ends though its terminals are watched. */
		uv_unref((uv_handle_t *)&host->timer);
		uv_unref((uv_handle_t *)&host->notify);
		uv_unref((uv_handle_t *)&host->idle);
		warden->terms = host;
	}
	*ret_host = host;
	return 0;
}

/* ---- listening ---- */

int
terms_listen(struct warden *warden,
	     void (*told)(uint64_t id, enum terms_event event,
			  const struct vt_event *model, void *data),
	     void *data, struct terms_listener **ret_listener)
{
	struct terms_listener *listener;
	struct terms_host *host;
	int r = terms_host_get(warden, &host);

	if (r < 0)
		return r;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->host = host;
	listener->told = told;
	listener->data = data;
	LIST_INSERT_HEAD(&host->listeners, listener, link);
	*ret_listener = listener;
	return 0;
}

static void
sweep(struct terms_host *host)
{
	struct terms_listener *listener, *next;

	host->sweep = false;
	for (listener = LIST_FIRST(&host->listeners); listener;
	     listener = next) {
		next = LIST_NEXT(listener, link);
		if (listener->told)
			continue;
		LIST_REMOVE(listener, link);
		free(listener);
	}
}

void
terms_unlisten(struct terms_listener *listener)
{
	struct terms_host *host;

	if (!listener)
		return;
	host = listener->host;
	listener->told = NULL;
	host->sweep = true;
	if (host->telling == 0)
		sweep(host);
}

void
terms_host_tell(struct terms_host *host, uint64_t id, enum terms_event event,
		const struct vt_event *model)
{
	struct terms_listener *listener;
	struct wterm *term = NULL;

	if (event == TERMS_MODEL || event == TERMS_RESIZED ||
	    event == TERMS_EXITED)
		term = terms_host_find(host, id);
	if (term)
		term_events_note(term, event, model);
	host->telling++;
	LIST_FOREACH(listener, &host->listeners, link)
	if (listener->told)
		listener->told(id, event, model, listener->data);
	if (--host->telling == 0 && host->sweep)
		sweep(host);
}

/* ---- one terminal ---- */

void
term_asked_free(struct term_asked *asked)
{
	if (!asked)
		return;
	strv_fini(&asked->argv);
	strv_fini(&asked->env);
	free(asked->cwd);
	free(asked);
}

void
wterm_free(struct wterm *term)
{
	if (!term)
		return;
	term_asked_free(term->asked);
	free(term->name);
	free(term->label);
	free(term->title);
	free(term->core.reason);
	segments_file_fini(&term->screen.file);
	vt_free(term->screen.vt);
	free(term->screen.cuts);
	buf_fini(&term->events.lines);
	segments_free(term->raw);
	closep(&term->dir);
	free(term);
}

struct wterm *
terms_host_find(const struct terms_host *host, uint64_t id)
{
	struct job *core = host ? jobs_find(host->core, id) : NULL;

	return core ? core->data : NULL;
}

void
wterm_row(const struct wterm *term, struct store_term *ret_row)
{
	const struct job *core = &term->core;
	struct store_term row = {
		.id = core->id,
		.world = term->host->warden->opt.world,
		.workspace = term->host->workspace,
		.session = term->host->session,
		.name = term->name,
		.label = term->label,
		.title = term->title,
		.state = job_state_name(core->state),
		.value = core->value,
		.reason = core->reason,
		.pid = core->pid,
		.cols = term->cols,
		.rows = term->rows,
		.created_ns = term->created_ns,
		.started_ns = term->started_ns,
		.ended_ns = term->ended_ns,
		.bytes = term->raw ? segments_end(term->raw) : term->bytes,
		.stored_bytes =
			term->raw ? segments_stored(term->raw) : term->stored,
		.user_us = term->user_us,
		.sys_us = term->sys_us,
		.max_rss_kib = term->max_rss_kib,
	};

	if (core->stop_requested)
		row.flags |= STORE_TERM_STOP_REQUESTED;
	if (core->output_open)
		row.flags |= STORE_TERM_OUTPUT_OPEN;
	if (core->by_exec)
		row.flags |= STORE_TERM_BY_EXEC;
	if (core->may_execute)
		row.flags |= STORE_TERM_MAY_EXECUTE;
	if (term->pinned)
		row.flags |= STORE_TERM_PINNED;
	*ret_row = row;
}

void
wterm_tell_start(struct wterm *term)
{
	const struct terms_started result = { .id = term->core.id };
	void (*started)(const struct terms_started *result, void *data) =
		term->started;

	term->started = NULL;
	if (started)
		started(&result, term->started_data);
}

void
terms_host_remove(struct terms_host *host, struct wterm *term)
{
	uint64_t id = term->core.id;

	terms_host_tell(host, id, TERMS_GONE, NULL);
	if (term->dirty)
		TAILQ_REMOVE(&host->dirty, term, next_dirty);
	if (host->past_id == id)
		host->past = vt_free(host->past);
	jobs_forget(host->core, &term->core);
	wterm_free(term);
}

/* ---- the end ---- */

void
terms_end_all(struct warden *warden)
{
	struct terms_host *host = warden->terms;

	if (!host || host->ending)
		return;
	host->ending = true;
	jobs_close(host->core);
}

void
terms_finish(struct warden *warden)
{
	struct terms_host *host = warden->terms;
	struct wterm *term;
	size_t at = 0;

	if (!host || host->closed)
		return;
	terms_end_all(warden);
	host->closed = true;
	while ((term = next_held(host, &at))) {
		term_pty_drain(term);
		term_pty_close(term);
		term->core.tree_alive = false;
		terms_run_release(term);
	}
	uv_close((uv_handle_t *)&host->timer, NULL);
	uv_close((uv_handle_t *)&host->notify, NULL);
	uv_close((uv_handle_t *)&host->idle, NULL);
}

void
terms_free_all(struct warden *warden)
{
	struct terms_host *host = warden->terms;
	struct terms_listener *listener;
	const struct job *core;

	if (!host)
		return;
	terms_store_flush(host);
	for (size_t i = 0; (core = jobs_at(host->core, i)); i++)
		wterm_free(core->data);
	while ((listener = LIST_FIRST(&host->listeners)))
		terms_unlisten(listener);
	host->core = jobs_free(host->core);
	host->store = store_close(host->store);
	host->past = vt_free(host->past);
	/* Without a terminal of its own it is not needed any more. */
	if (host->root >= 0)
		(void)rmdir(host->root_path);
	closep(&host->root);
	free(host->root_path);
	free(host->workspace);
	free(host->session);
	free(host);
	warden->terms = NULL;
}
