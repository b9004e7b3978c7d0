/* SPDX-License-Identifier: MIT */

/*
 * Forgetting ended jobs: their files and records go on the pool, one after the
 * other, and they leave the set when that is done.  What is asked for twice,
 * or pruned meanwhile, is gone all the same.
 */

#include "warden/jobs_priv.h"

#include <string.h>

struct removal {
	uv_work_t work;
	struct jobs_host *host;
	void (*done)(const struct jobs_removed *result, void *data);
	void *data;
	struct jobs_removed result;
	bool spare_busy;
	size_t n_ids, at; /* those before `at` were done, 0 if spared */
	uint64_t ids[];
};

/* Its end is on record; what else of it is to be recorded need not be. */
static bool
may_go(const struct wjob *job)
{
	return !job->held && job->told;
}

static void
on_work(uv_work_t *work)
{
	struct removal *removal = work->data;
	struct jobs_removed *result = &removal->result;
	struct jobs_host *host = removal->host;
	struct store_job row = { .world = host->warden->opt.world };
	struct errmsg why = { "" };
	int r = 0;

	while (removal->at < removal->n_ids) {
		row.id = removal->ids[removal->at];
		jobs_fault(host, "rm");
		/* Not for all of them at once: others write records, too. */
		(void)pthread_mutex_lock(&host->store_lock);
		r = jobs_store_open(host, &why);
		if (r == 0)
			r = jobs_remove_row(host->store,
					    host->warden->places.state, &row);
		(void)pthread_mutex_unlock(&host->store_lock);
		if (r == -EBUSY && removal->spare_busy)
			removal->ids[removal->at] = 0;
		else if (r < 0)
			break;
		else
			result->count++;
		removal->at++;
	}
	result->error = removal->at < removal->n_ids ? r : 0;
	result->failed = row.id;
}

static void
on_worked(uv_work_t *work, int status)
{
	struct removal *removal = work->data;
	struct jobs_host *host = removal->host;

	(void)status;
	for (size_t i = 0; i < removal->at; i++) {
		struct wjob *job = jobs_host_find(host, removal->ids[i]);

		jobs_fault(host, "removed");
		if (job)
			jobs_host_remove(host, job);
	}
	removal->done(&removal->result, removal->data);
	warden_release(host->warden);
	free(removal);
}

/* NULL: no memory. */
static struct removal *
removal_new(struct warden *warden, size_t n_ids)
{
	struct removal *removal =
		calloc(1, sizeof(*removal) + n_ids * sizeof(removal->ids[0]));

	if (!removal)
		return NULL;
	removal->work.data = removal;
	removal->host = warden->jobs;
	return removal;
}

static int
begin(struct removal *removal,
      void (*done)(const struct jobs_removed *result, void *data), void *data)
{
	struct warden *warden = removal->host->warden;
	int r;

	removal->done = done;
	removal->data = data;
	r = uv_queue_work(&warden->loop, &removal->work, on_work, on_worked);
	if (r < 0)
		free(removal);
	else
		warden_hold(warden);
	return r;
}

int
jobs_remove(struct warden *warden, const uint64_t *ids, size_t n_ids,
	    void (*done)(const struct jobs_removed *result, void *data),
	    void *data)
{
	struct removal *removal;

	for (size_t i = 0; i < n_ids; i++) {
		const struct wjob *job = jobs_host_find(warden->jobs, ids[i]);

		if (!job || !may_go(job))
			return job ? -EBUSY : -ENOENT;
	}
	removal = removal_new(warden, n_ids);
	if (!removal)
		return -ENOMEM;
	memcpy(removal->ids, ids, n_ids * sizeof(ids[0]));
	removal->n_ids = n_ids;
	return begin(removal, done, data);
}

int
jobs_remove_ended(struct warden *warden, uint64_t keep,
		  void (*done)(const struct jobs_removed *result, void *data),
		  void *data)
{
	const struct jobs *all = warden->jobs->core;
	struct removal *removal = removal_new(warden, jobs_count(all));

	if (!removal)
		return -ENOMEM;
	removal->spare_busy = true;
	for (size_t at = jobs_count(all); at-- > 0;) {
		const struct wjob *job = jobs_at(all, at)->data;

		if (may_go(job) && keep == 0)
			removal->ids[removal->n_ids++] = job->core.id;
		else if (may_go(job))
			keep--;
	}
	return begin(removal, done, data);
}
