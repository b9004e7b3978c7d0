/* SPDX-License-Identifier: MIT */

/*
 * Records go to the store in batches, one at a time, on the pool: a batch holds
 * the state of every job that changed while the one before was written.  A
 * change is told when it is on record, so that who has heard of an end finds it
 * there.  A store that fails is told in the log and keeps nobody waiting.
 */

#include "warden/jobs_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "warden/spool_dir.h"

#define BATCH_MAX 256
#define PRUNE_NS  1000000000LL
/* How soon a place that came free in another world is found. */
#define LOOK_NS	  100000000LL
#define SETTLE_NS 2000000000LL

struct batch {
	struct jobs_host *host;
	struct store_job rows[BATCH_MAX];
	char *reasons[BATCH_MAX];
	size_t count;
	bool prune, look, settle;
	uint64_t *gone;
	struct store_job_others others;
	size_t n_gone;
	int error, prune_error;
};

/* ---- the store, on the pool ---- */

int
jobs_store_open(struct jobs_host *host, struct errmsg *why)
{
	int r = 0;

	if (!host->store) {
		r = store_open(host->warden->places.db, &host->store, why);
		if (r < 0)
			return r;
		/* What others left behind is settled by whoever comes by. */
		(void)jobs_settle_dead(host->store, host->warden->places.state,
				       0, NULL);
	}
	if (host->root < 0)
		r = spool_dir_make_root(host->warden->places.state,
					host->warden->opt.world, "jobs",
					&host->root, &host->root_path, why);
	return r;
}

static void
note_gone(uint64_t id, void *data)
{
	struct batch *batch = data;
	uint64_t *gone;

	jobs_fault(batch->host, "pruned");
	gone = realloc(batch->gone, (batch->n_gone + 1) * sizeof(*batch->gone));

	if (!gone)
		return;
	batch->gone = gone;
	gone[batch->n_gone++] = id;
}

/* Of the session's places, which worlds share. */
static void
look_at_others(struct batch *batch)
{
	struct jobs_host *host = batch->host;
	const struct store_job ours = { .world = host->warden->opt.world,
					.workspace = host->workspace,
					.session = host->session };

	if (batch->settle)
		(void)jobs_settle_dead(host->store, host->warden->places.state,
				       0, NULL);
	batch->look =
		store_jobs_others(host->store, &ours, &batch->others) == 0;
}

static void
write_batch(struct batch *batch)
{
	struct jobs_host *host = batch->host;
	struct errmsg why = { "" };

	(void)pthread_mutex_lock(&host->store_lock);
	batch->error = jobs_store_open(host, &why);
	if (batch->error == 0 && batch->count > 0)
		batch->error = store_jobs_update(host->store, batch->rows,
						 batch->count);
	if (batch->error == 0 && batch->look)
		look_at_others(batch);
	if (batch->error == 0 && batch->prune) {
		jobs_fault(host, "prune");
		int n = jobs_prune(host->store, host->warden->places.state,
				   host->kept, host->kept_bytes, note_gone,
				   batch);

		batch->prune_error = n < 0 ? n : 0;
	}
	(void)pthread_mutex_unlock(&host->store_lock);
}

/* ---- batches ---- */

static bool
is_look_due(const struct jobs_host *host)
{
	return jobs_wait_for_others(host->core) &&
	       host->look_at <= clock_mono_ns();
}

static bool
fill_batch(struct jobs_host *host, struct batch *batch)
{
	struct wjob *job;

	batch->host = host;
	while (batch->count < BATCH_MAX && (job = TAILQ_FIRST(&host->dirty))) {
		struct store_job *row = &batch->rows[batch->count];

		TAILQ_REMOVE(&host->dirty, job, next_dirty);
		job->dirty = false;
		wjob_row(job, row);
		/* Texts that may change under the pool. */
		if (row->reason)
			row->reason = batch->reasons[batch->count] =
				strdup(row->reason);
		row->name = row->token = row->label = NULL;
		job->recorded = row->stored_bytes;
		batch->count++;
	}
	batch->prune = host->prune_at && host->prune_at <= clock_mono_ns();
	if (batch->prune) {
		host->prune_at = 0;
		host->pruned_ns = clock_mono_ns();
	}
	batch->settle = is_look_due(host) &&
			clock_mono_ns() - host->settled_ns > SETTLE_NS;
	if (batch->settle)
		host->settled_ns = clock_mono_ns();
	/* Places are shared: what is known of others must not grow old. */
	batch->look = jobs_some_wait(host->core);
	if (batch->look)
		host->look_at = clock_mono_ns() + LOOK_NS;
	return batch->count > 0 || batch->prune || batch->look;
}

static void
free_batch(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		free(batch->reasons[i]);
	free(batch->gone);
	free(batch);
}

static void
tell(struct jobs_host *host, const struct store_job *row)
{
	struct wjob *job = jobs_host_find(host, row->id);

	if (!job)
		return;
	if (row->ended_ns == 0) {
		jobs_host_tell(host, row->id, JOBS_CHANGED);
	} else if (!job->told) {
		jobs_fault(host, "stored");
		job->told = true;
		/* It looks at all that there is, so not for each. */
		if (!host->prune_at)
			host->prune_at = host->pruned_ns + PRUNE_NS;
		jobs_host_tell(host, row->id, JOBS_DONE);
	}
}

static void
tell_batch(struct batch *batch)
{
	struct jobs_host *host = batch->host;

	if (batch->error < 0)
		log_line(host->warden->log, LOG_ERROR,
			 "records of jobs cannot be written: %s",
			 strerror(-batch->error));
	if (batch->prune_error < 0)
		log_line(host->warden->log, LOG_ERROR,
			 "old jobs cannot be removed: %s",
			 strerror(-batch->prune_error));
	for (size_t i = 0; i < batch->count; i++)
		tell(host, &batch->rows[i]);
	if (batch->error == 0 && batch->look)
		jobs_set_others(host->core, batch->others.started);
	for (size_t i = 0; i < batch->n_gone; i++) {
		struct wjob *job = jobs_host_find(host, batch->gone[i]);

		if (job && !job->held && !job->dirty && job->told)
			jobs_host_remove(host, job);
	}
}

static void start_batch(struct jobs_host *host);

static bool
is_prune_due(const struct jobs_host *host)
{
	return host->prune_at && host->prune_at <= clock_mono_ns();
}

int64_t
jobs_store_deadline(const struct jobs_host *host)
{
	int64_t at = JOBS_NEVER;

	/* With a batch on its way, its end will lead here. */
	if (host->batch)
		return at;
	if (host->prune_at)
		at = host->prune_at;
	if (jobs_wait_for_others(host->core) && host->look_at < at)
		at = host->look_at;
	return at;
}

void
jobs_store_tick(struct jobs_host *host)
{
	if (is_prune_due(host) || is_look_due(host))
		start_batch(host);
}

static void
on_work(uv_work_t *work)
{
	struct jobs_host *host = work->data;

	write_batch(host->batch);
}

static void
on_worked(uv_work_t *work, int status)
{
	struct jobs_host *host = work->data;
	struct batch *batch = host->batch;

	(void)status;
	host->batch = NULL;
	jobs_fault(host, "recorded");
	tell_batch(batch);
	free_batch(batch);
	start_batch(host);
	jobs_host_rearm(host);
}

static void
start_batch(struct jobs_host *host)
{
	struct batch *batch;

	if (host->batch || (TAILQ_EMPTY(&host->dirty) && !is_prune_due(host) &&
			    !is_look_due(host)))
		return;
	batch = calloc(1, sizeof(*batch));
	/* With the next change, then. */
	if (!batch || !fill_batch(host, batch)) {
		free(batch);
		return;
	}
	host->batch = batch;
	host->work.data = host;
	if (uv_queue_work(&host->warden->loop, &host->work, on_work,
			  on_worked) < 0) {
		host->batch = NULL;
		free_batch(batch);
	}
}

void
jobs_store_mark(struct wjob *job)
{
	struct jobs_host *host = job->host;

	if (!job->dirty) {
		job->dirty = true;
		TAILQ_INSERT_TAIL(&host->dirty, job, next_dirty);
	}
	start_batch(host);
}

void
jobs_store_flush(struct jobs_host *host)
{
	while (!TAILQ_EMPTY(&host->dirty)) {
		struct batch *batch = calloc(1, sizeof(*batch));

		if (!batch || !fill_batch(host, batch)) {
			free(batch);
			return;
		}
		write_batch(batch);
		free_batch(batch);
	}
}
