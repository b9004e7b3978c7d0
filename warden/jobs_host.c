/* SPDX-License-Identifier: MIT */

#include "warden/jobs_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/clock.h"
#include "base/limits.h"
#include "warden/spawn.h"

/* ---- making it ---- */

void
jobs_fault(struct jobs_host *host, const char *point)
{
	fault_here(&host->fault, point);
}

static void
on_timer(uv_timer_t *timer)
{
	struct jobs_host *host = timer->data;

	jobs_tick(host->core);
	jobs_store_tick(host);
	jobs_host_rearm(host);
}

void
jobs_host_rearm(struct jobs_host *host)
{
	int64_t at = jobs_deadline(host->core);
	int64_t store_at = jobs_store_deadline(host), left;

	if (host->closed)
		return;
	if (store_at < at)
		at = store_at;
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

static struct jobs_host *
host_new(struct warden *warden)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);
	struct jobs_limits limits = { .running = JOBS_RUNNING,
				      .queued = LIMIT_JOBS_QUEUED };
	struct jobs_host *host = calloc(1, sizeof(*host));

	if (!host)
		return NULL;
	if (policy->limits.jobs)
		limits.running = (size_t)policy->limits.jobs;
	host->kept = policy->limits.jobs_kept;
	host->kept_bytes = policy->limits.jobs_bytes;
	host->workspace = strdup(policy->roots[0].path);
	host->session = strdup(policy->session);
	if (!host->workspace || !host->session ||
	    jobs_new(&limits, &jobs_run_ops, host, &host->core) < 0) {
		free(host->workspace);
		free(host->session);
		free(host);
		return NULL;
	}
	host->warden = warden;
	host->root = -1;
	(void)pthread_mutex_init(&host->store_lock, NULL);
	TAILQ_INIT(&host->dirty);
	LIST_INIT(&host->listeners);
	fault_read(&host->fault, "PALE_FAIL_JOB");
	return host;
}

int
jobs_host_get(struct warden *warden, struct jobs_host **ret_host)
{
	struct jobs_host *host = warden->jobs;

	if (!host) {
		if (!warden->opt.standing)
			return -ENOTSUP;
		host = host_new(warden);
		if (!host)
			return -ENOMEM;
		(void)uv_timer_init(&warden->loop, &host->timer);
		host->timer.data = host;
		/* A world ends though its jobs are watched. */
		uv_unref((uv_handle_t *)&host->timer);
		warden->jobs = host;
	}
	*ret_host = host;
	return 0;
}

/* ---- listening ---- */

int
jobs_listen(struct warden *warden,
	    void (*told)(uint64_t id, enum jobs_event event, void *data),
	    void *data, struct jobs_listener **ret_listener)
{
	struct jobs_listener *listener;
	struct jobs_host *host;
	int r = jobs_host_get(warden, &host);

	if (r < 0)
		return r;
	listener = calloc(1, sizeof(*listener));
	if (!listener)
		return -ENOMEM;
	listener->told = told;
	listener->data = data;
	LIST_INSERT_HEAD(&host->listeners, listener, link);
	*ret_listener = listener;
	return 0;
}

void
jobs_unlisten(struct jobs_listener *listener)
{
	if (!listener)
		return;
	LIST_REMOVE(listener, link);
	free(listener);
}

void
jobs_host_tell(struct jobs_host *host, uint64_t id, enum jobs_event event)
{
	struct jobs_listener *listener;

	LIST_FOREACH(listener, &host->listeners, link)
	listener->told(id, event, listener->data);
}

/* ---- one job ---- */

void
asked_free(struct asked *asked)
{
	if (!asked)
		return;
	strv_fini(&asked->argv);
	strv_fini(&asked->env);
	free(asked->cwd);
	closep(&asked->stdin_fd);
	free(asked);
}

void
wjob_forget_asked(struct wjob *job)
{
	if (job->asked)
		job->host->asked_bytes -= job->asked->bytes;
	asked_free(job->asked);
	job->asked = NULL;
}

void
wjob_free(struct wjob *job)
{
	if (!job)
		return;
	wjob_forget_asked(job);
	free(job->name);
	free(job->token);
	free(job->label);
	free(job->core.reason);
	output_free(job->output);
	closep(&job->dir);
	closep(&job->stdin_pipe);
	free(job);
}

struct wjob *
jobs_host_find(const struct jobs_host *host, uint64_t id)
{
	struct job *job = host ? jobs_find(host->core, id) : NULL;

	return job ? job->data : NULL;
}

void
wjob_row(const struct wjob *job, struct store_job *ret_row)
{
	const struct job *core = &job->core;
	const struct warden *warden = job->host->warden;
	struct store_job row = {
		.id = core->id,
		.world = warden->opt.world,
		.workspace = job->host->workspace,
		.session = job->host->session,
		.token = job->token,
		.name = job->name,
		.label = job->label,
		.state = job_state_name(core->state),
		.value = core->value,
		.reason = core->reason,
		.pid = core->pid,
		.attempt = core->attempt,
		.created_ns = job->created_ns,
		.started_ns = job->started_ns,
		.ended_ns = job->ended_ns,
		.out_bytes = job->sizes[0],
		.err_bytes = job->sizes[1],
		.stored_bytes = job->stored,
		.user_us = job->user_us,
		.sys_us = job->sys_us,
		.max_rss_kib = job->max_rss_kib,
	};

	if (job->output) {
		row.out_bytes = output_end(job->output, OUTPUT_STDOUT);
		row.err_bytes = output_end(job->output, OUTPUT_STDERR);
		row.stored_bytes = output_stored(job->output);
	}
	if (core->stop_requested)
		row.flags |= STORE_JOB_STOP_REQUESTED;
	if (core->output_open)
		row.flags |= STORE_JOB_OUTPUT_OPEN;
	if (core->by_exec)
		row.flags |= STORE_JOB_BY_EXEC;
	if (core->may_execute)
		row.flags |= STORE_JOB_MAY_EXECUTE;
	*ret_row = row;
}

void
wjob_tell_start(struct wjob *job)
{
	const struct jobs_started result = { .id = job->core.id };
	void (*started)(const struct jobs_started *result, void *data) =
		job->started;

	job->started = NULL;
	if (started)
		started(&result, job->started_data);
}

/* ---- looking ---- */

uint64_t
jobs_next_id(const struct warden *warden, uint64_t after)
{
	const struct job *job =
		warden->jobs ? jobs_after(warden->jobs->core, after) : NULL;

	return job ? job->id : 0;
}

int
jobs_get_row(const struct warden *warden, uint64_t id,
	     struct store_job *ret_row)
{
	const struct wjob *job = jobs_host_find(warden->jobs, id);

	if (!job)
		return -ENOENT;
	wjob_row(job, ret_row);
	return 0;
}

int
jobs_status_line(const struct warden *warden, uint64_t id, char *text,
		 size_t size)
{
	struct store_job row;
	int r = jobs_get_row(warden, id, &row);

	if (r == 0)
		jobs_row_line(&row, text, size);
	return r;
}

int
jobs_state_json(const struct warden *warden, uint64_t id, struct buf *out)
{
	struct store_job row;
	int r = jobs_get_row(warden, id, &row);

	if (r < 0)
		return r;
	jobs_row_json(&row, out);
	return buf_error(out);
}

static int
copy_spec(const struct store_job *row, void *data)
{
	*(char **)data = strdup(row->spec);
	return 1;
}

int
jobs_read_spec(const struct warden *warden, uint64_t id, char **ret_spec)
{
	struct jobs_host *host = warden->jobs;
	const struct store_jobs_query query = { .id = id };
	struct errmsg why = { "" };
	char *spec = NULL;
	int r;

	if (!host)
		return -ENOENT;
	(void)pthread_mutex_lock(&host->store_lock);
	r = jobs_store_open(host, &why);
	if (r == 0)
		r = store_each_job(host->store, &query, copy_spec, &spec);
	(void)pthread_mutex_unlock(&host->store_lock);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	if (!spec)
		return -ENOMEM;
	*ret_spec = spec;
	return 0;
}

/* ---- output ---- */

int
jobs_read(struct warden *warden, uint64_t id, struct output_cursor *cursor,
	  const struct jobs_span *span, struct segments_view *ret_view)
{
	struct wjob *job = jobs_host_find(warden->jobs, id);
	struct output *output = NULL;
	bool mine = false;
	int r;

	if (!job)
		return -ENOENT;
	r = jobs_run_output(job, &output, &mine);
	if (r < 0)
		return r;
	r = output_read(output, cursor, span->offset, span->buf, span->size,
			ret_view);
	if (mine)
		output_free(output);
	return r;
}

int
jobs_output_end(struct warden *warden, uint64_t id, enum output_stream stream,
		uint64_t *ret_end, bool *ret_final)
{
	const struct wjob *job = jobs_host_find(warden->jobs, id);

	if (!job)
		return -ENOENT;
	if (job->output)
		*ret_end = output_end(job->output, stream);
	else if (stream == OUTPUT_BOTH)
		*ret_end = job->sizes[0] + job->sizes[1];
	else
		*ret_end = job->sizes[stream];
	/* Also while something of it lives that has closed its output. */
	*ret_final = !job->held || (job_state_is_final(job->core.state) &&
				    !job->drains[0] && !job->drains[1]);
	return 0;
}

/* ---- doing ---- */

int
jobs_kill(struct warden *warden, uint64_t id, int signal, uint64_t grace_ms)
{
	struct wjob *job = jobs_host_find(warden->jobs, id);
	int r;

	if (!job)
		return -ENOENT;
	jobs_fault(job->host, "kill-asked");
	r = jobs_stop(job->host->core, &job->core, signal, grace_ms);
	jobs_fault(job->host, "kill-begun");
	jobs_host_rearm(job->host);
	return r;
}

int
jobs_signal(struct warden *warden, uint64_t id, int signal)
{
	struct wjob *job = jobs_host_find(warden->jobs, id);

	if (!job)
		return -ENOENT;
	if (!job->spawned || !job->core.tree_alive)
		return -EALREADY;
	return spawn_signal(warden, job->spawn, signal, true);
}

int
jobs_is_over(const struct warden *warden, uint64_t id, bool *ret_over)
{
	const struct wjob *job = jobs_host_find(warden->jobs, id);

	if (!job)
		return -ENOENT;
	*ret_over = job->told && !job->core.tree_alive;
	return 0;
}

int
jobs_write(struct warden *warden, uint64_t id, const void *bytes, size_t len,
	   bool close, size_t *ret_taken)
{
	struct wjob *job = jobs_host_find(warden->jobs, id);
	ssize_t n = 0;

	if (!job)
		return -ENOENT;
	if (job_state_is_final(job->core.state))
		return -EALREADY;
	if (job->stdin_pipe < 0)
		return -EPIPE;
	if (len > 0)
		n = write(job->stdin_pipe, bytes, len);
	jobs_fault(job->host, "fed");
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		return -errno;
	*ret_taken = n < 0 ? 0 : (size_t)n;
	if (close && *ret_taken == len) {
		closep(&job->stdin_pipe);
		job->stdin_pipe = -1;
		jobs_fault(job->host, "stdin-closed");
	}
	return 0;
}

void
jobs_host_remove(struct jobs_host *host, struct wjob *job)
{
	uint64_t id = job->core.id;

	jobs_host_tell(host, id, JOBS_REMOVED);
	if (job->dirty)
		TAILQ_REMOVE(&host->dirty, job, next_dirty);
	jobs_forget(host->core, &job->core);
	wjob_free(job);
}

/* ---- the end ---- */

void
jobs_end(struct warden *warden)
{
	struct jobs_host *host = warden->jobs;

	if (!host || host->ending)
		return;
	host->ending = true;
	jobs_close(host->core);
}

void
jobs_finish(struct warden *warden)
{
	struct jobs_host *host = warden->jobs;
	struct job *core;

	if (!host || host->closed)
		return;
	jobs_end(warden);
	for (size_t i = 0; (core = jobs_at(host->core, i)); i++) {
		struct wjob *job = core->data;

		if (!job->held)
			continue;
		jobs_run_drain(job);
		jobs_run_abandon(job);
		core->tree_alive = false;
		jobs_run_release(job);
	}
	host->closed = true;
	uv_close((uv_handle_t *)&host->timer, NULL);
}

void
jobs_free_all(struct warden *warden)
{
	struct jobs_host *host = warden->jobs;
	struct jobs_listener *listener;
	struct job *core;

	if (!host)
		return;
	jobs_store_flush(host);
	for (size_t i = 0; (core = jobs_at(host->core, i)); i++)
		wjob_free(core->data);
	while ((listener = LIST_FIRST(&host->listeners)))
		jobs_unlisten(listener);
	host->core = jobs_free(host->core);
	host->store = store_close(host->store);
	/* Without a job of its own it is not needed any more. */
	if (host->root >= 0)
		(void)rmdir(host->root_path);
	closep(&host->root);
	free(host->root_path);
	free(host->workspace);
	free(host->session);
	free(host);
	warden->jobs = NULL;
}
