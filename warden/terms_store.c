/* SPDX-License-Identifier: MIT */

/*
 * Records go to the store as those of jobs do (jobs_store.c): in batches, one
 * at a time, on the pool.  A change is told when it is on record, so that who
 * has heard of an end finds it there.
 */

#include "warden/terms_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "warden/spool_dir.h"

#define BATCH_MAX 256
#define PRUNE_NS  1000000000LL
#define TEXTS	  3

struct terms_batch {
	struct terms_host *host;
	struct store_term rows[BATCH_MAX];
	char *texts[BATCH_MAX][TEXTS];
	size_t count;
	bool prune;
	uint64_t *gone;
	size_t n_gone;
	int error, prune_error;
};

/* ---- the store, on the pool ---- */

int
terms_store_open(struct terms_host *host, struct errmsg *why)
{
	int r = 0;

	if (!host->store) {
		r = store_open(host->warden->places.db, &host->store, why);
		if (r < 0)
			return r;
		/* What others left behind is settled by whoever comes by. */
		(void)terms_settle_dead(host->store, host->warden->places.state,
					0);
	}
	if (host->root < 0)
		r = spool_dir_make_root(host->warden->places.state,
					host->warden->opt.world, "terminals",
					&host->root, &host->root_path, why);
	return r;
}

static void
note_gone(uint64_t id, void *data)
{
	struct terms_batch *batch = data;
	uint64_t *gone = realloc(batch->gone,
				 (batch->n_gone + 1) * sizeof(*batch->gone));

	if (!gone)
		return;
	batch->gone = gone;
	gone[batch->n_gone++] = id;
}

static void
write_batch(struct terms_batch *batch)
{
	struct terms_host *host = batch->host;
	struct errmsg why = { "" };

	(void)pthread_mutex_lock(&host->store_lock);
	batch->error = terms_store_open(host, &why);
	if (batch->error == 0 && batch->count > 0)
		batch->error = store_terms_update(host->store, batch->rows,
						  batch->count);
	if (batch->error == 0 && batch->prune) {
		int n = terms_prune(host->store, host->warden->places.state,
				    host->kept, note_gone, batch);

		batch->prune_error = n < 0 ? n : 0;
	}
	(void)pthread_mutex_unlock(&host->store_lock);
}

/* ---- batches ---- */

static const char *
copy(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return *ret_copy;
}

/* Texts may change under the pool. */
static void
add_row(struct terms_batch *batch, const struct wterm *term)
{
	struct store_term *row = &batch->rows[batch->count];
	char **texts = batch->texts[batch->count];

	wterm_row(term, row);
	row->reason = copy(row->reason, &texts[0]);
	row->name = copy(row->name, &texts[1]);
	row->title = copy(row->title, &texts[2]);
	row->label = NULL;
	batch->count++;
}

static bool
is_prune_due(const struct terms_host *host)
{
	return host->prune_at && host->prune_at <= clock_mono_ns();
}

static void
fill_batch(struct terms_host *host, struct terms_batch *batch)
{
	struct wterm *term;

	batch->host = host;
	while (batch->count < BATCH_MAX && (term = TAILQ_FIRST(&host->dirty))) {
		TAILQ_REMOVE(&host->dirty, term, next_dirty);
		term->dirty = false;
		term->recording = true;
		add_row(batch, term);
		term->recorded = batch->rows[batch->count - 1].stored_bytes;
	}
	batch->prune = is_prune_due(host);
	if (batch->prune) {
		host->prune_at = 0;
		host->pruned_ns = clock_mono_ns();
	}
}

static void
free_batch(struct terms_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		for (size_t k = 0; k < TEXTS; k++)
			free(batch->texts[i][k]);
	free(batch->gone);
	free(batch);
}

static void
tell(struct terms_host *host, const struct store_term *row)
{
	struct wterm *term = terms_host_find(host, row->id);

	if (!term)
		return;
	term->recording = false;
	/* Whoever asked for it finds it as he is told. */
	if (row->started_ns > 0 || row->ended_ns > 0)
		wterm_tell_start(term);
	if (row->ended_ns == 0 || term->told) {
		terms_host_tell(host, row->id, TERMS_CHANGED, NULL);
		return;
	}
	terms_fault(host, "stored");
	term->told = true;
	/* It looks at all that there is, so not for each. */
	if (!host->prune_at)
		host->prune_at = host->pruned_ns + PRUNE_NS;
	terms_host_tell(host, row->id, TERMS_EXITED, NULL);
}

static void
tell_batch(const struct terms_batch *batch)
{
	struct terms_host *host = batch->host;

	if (batch->error < 0)
		log_line(host->warden->log, LOG_ERROR,
			 "records of terminals cannot be written: %s",
			 strerror(-batch->error));
	if (batch->prune_error < 0)
		log_line(host->warden->log, LOG_ERROR,
			 "old terminals cannot be removed: %s",
			 strerror(-batch->prune_error));
	for (size_t i = 0; i < batch->count; i++)
		tell(host, &batch->rows[i]);
	for (size_t i = 0; i < batch->n_gone; i++) {
		struct wterm *term = terms_host_find(host, batch->gone[i]);

		if (term && !term->held && !term->dirty && term->told &&
		    !term->removing)
			terms_host_remove(host, term);
	}
}

static void start_batch(struct terms_host *host);

int64_t
terms_store_deadline(const struct terms_host *host)
{
	/* With a batch on its way, its end will lead here. */
	return host->batch || !host->prune_at ? JOBS_NEVER : host->prune_at;
}

void
terms_store_tick(struct terms_host *host)
{
	if (is_prune_due(host))
		start_batch(host);
}

static void
on_work(uv_work_t *work)
{
	const struct terms_host *host = work->data;

	write_batch(host->batch);
}

static void
on_worked(uv_work_t *work, int status)
{
	struct terms_host *host = work->data;
	struct terms_batch *batch = host->batch;

	(void)status;
	host->batch = NULL;
	tell_batch(batch);
	free_batch(batch);
	start_batch(host);
	terms_host_rearm(host);
}

static void
start_batch(struct terms_host *host)
{
	struct terms_batch *batch;

	if (host->batch || (TAILQ_EMPTY(&host->dirty) && !is_prune_due(host)))
		return;
	batch = calloc(1, sizeof(*batch));
	/* With the next change, then. */
	if (!batch)
		return;
	fill_batch(host, batch);
	host->batch = batch;
	host->work.data = host;
	if (uv_queue_work(&host->warden->loop, &host->work, on_work,
			  on_worked) < 0) {
		host->batch = NULL;
		free_batch(batch);
	}
}

void
terms_store_mark(struct wterm *term)
{
	struct terms_host *host = term->host;

	if (!term->dirty) {
		term->dirty = true;
		TAILQ_INSERT_TAIL(&host->dirty, term, next_dirty);
	}
	start_batch(host);
}

void
terms_store_flush(struct terms_host *host)
{
	while (!TAILQ_EMPTY(&host->dirty)) {
		struct terms_batch *batch = calloc(1, sizeof(*batch));

		if (!batch)
			return;
		fill_batch(host, batch);
		write_batch(batch);
		free_batch(batch);
	}
}

/* ---- removing ---- */

struct removal {
	uv_work_t work;
	struct terms_host *host;
	uint64_t id;
	int result;
	void (*done)(uint64_t id, int result, void *data);
	void *data;
};

static void
on_removing(uv_work_t *work)
{
	struct removal *removal = work->data;
	struct terms_host *host = removal->host;
	const struct store_term row = { .id = removal->id,
					.world = host->warden->opt.world };
	struct errmsg why = { "" };

	(void)pthread_mutex_lock(&host->store_lock);
	removal->result = terms_store_open(host, &why);
	if (removal->result == 0)
		removal->result = terms_remove_row(
			host->store, host->warden->places.state, &row);
	(void)pthread_mutex_unlock(&host->store_lock);
}

static void
on_removed(uv_work_t *work, int status)
{
	struct removal *removal = work->data;
	struct terms_host *host = removal->host;
	struct wterm *term = terms_host_find(host, removal->id);

	(void)status;
	if (term) {
		term->removing = false;
		if (removal->result == 0)
			terms_host_remove(host, term);
	}
	removal->done(removal->id, removal->result, removal->data);
	warden_release(host->warden);
	free(removal);
}

/*
 * Nothing of it lives, but that its terminal is at its end has not been looked
 * at: who was told the one does not wait for the other.
 */
static void
let_go(struct wterm *term)
{
	if (!term->held || !term->told || term->core.tree_alive)
		return;
	term_pty_drain(term);
	term_pty_close(term);
	terms_run_release(term);
}

int
terms_remove(struct warden *warden, uint64_t id,
	     void (*done)(uint64_t id, int result, void *data), void *data)
{
	struct wterm *term = terms_host_find(warden->terms, id);
	struct removal *removal;
	int r;

	if (!term)
		return -ENOENT;
	let_go(term);
	/* What else of it is to be recorded need not be. */
	if (term->held || !term->told || term->removing)
		return -EBUSY;
	removal = calloc(1, sizeof(*removal));
	if (!removal)
		return -ENOMEM;
	removal->work.data = removal;
	removal->host = term->host;
	removal->id = id;
	removal->done = done;
	removal->data = data;
	r = uv_queue_work(&warden->loop, &removal->work, on_removing,
			  on_removed);
	if (r < 0) {
		free(removal);
		return r;
	}
	term->removing = true;
	warden_hold(warden);
	return 0;
}
