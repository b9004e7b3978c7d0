/* SPDX-License-Identifier: MIT */

#include "warden/jobs_row.h"

#include <string.h>

#include "base/clock.h"
#include "jobs/output.h"
#include "warden/spool_dir.h"

/* A row of the store, kept while the store is written. */
struct kept {
	struct store_job row;
	char *world, *state;
};

struct kept_list {
	struct kept *items;
	size_t count;
};

static void
kept_list_fini(struct kept_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].world);
		free(list->items[i].state);
	}
	free(list->items);
	*list = (struct kept_list){ 0 };
}

static int
keep(const struct store_job *row, void *data)
{
	struct kept_list *list = data;
	struct kept *items =
		realloc(list->items, (list->count + 1) * sizeof(*list->items));
	struct kept *item;

	if (!items)
		return -ENOMEM;
	list->items = items;
	item = &items[list->count++];
	*item = (struct kept){ .row = *row,
			       .world = strdup(row->world),
			       .state = strdup(row->state) };
	item->row.world = item->world;
	item->row.state = item->state;
	item->row.workspace = item->row.session = NULL;
	item->row.token = item->row.name = item->row.label = NULL;
	item->row.spec = item->row.reason = NULL;
	return item->world && item->state ? 0 : -ENOMEM;
}

char *
jobs_dir_path(const char *state, const char *world, uint64_t id)
{
	char name[JOBS_ID_MAX];

	jobs_id_text(id, name);
	return spool_dir_path(state, world, "jobs", name);
}

/* ---- settling ---- */

static int
recover_output(int dir, struct store_job *row)
{
	_cleanup_(output_freep) struct output *output = NULL;
	int r = output_open(dir, &jobs_output_limits, &output);

	if (r == 0)
		r = output_recover(output);
	if (r < 0)
		return r;
	output_finish(output);
	row->out_bytes = output_end(output, OUTPUT_STDOUT);
	row->err_bytes = output_end(output, OUTPUT_STDERR);
	row->stored_bytes = output_stored(output);
	return 0;
}

static int
settle(struct store *store, const char *state, struct store_job *row)
{
	_cleanup_(freep) char *path = jobs_dir_path(state, row->world, row->id);
	_cleanup_(closep) int root = -1, dir = -1;
	struct spool_fate fate = { .value = (int)row->value };
	int r;

	if (!path)
		return -ENOMEM;
	r = spool_dir_own(path, &root, &dir);
	if (r < 0 && r != -ENOENT)
		return r;

	if (dir >= 0) {
		r = recover_output(dir, row);
		if (r < 0)
			return r;
	}
	/* Of one that has ended only what it left behind went on. */
	if (row->ended_ns == 0) {
		spool_dir_fate(dir, &fate);
		row->state = fate.state;
		row->value = fate.value;
		row->reason = fate.reason;
		row->ended_ns = clock_real_ns();
	}
	row->flags &= ~STORE_JOB_OUTPUT_OPEN;
	return store_jobs_update(store, row, 1);
}

int
jobs_settle_dead(struct store *store, const char *state, uint64_t id,
		 unsigned int *ret_busy)
{
	_cleanup_(kept_list_fini) struct kept_list list = { 0 };
	const struct store_jobs_query query = { .id = id,
						.open = true,
						.light = true };
	unsigned int busy = 0;
	int r = store_each_job(store, &query, keep, &list), error = 0;

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		int one = settle(store, state, &list.items[i].row);

		/* One that cannot be settled must not keep the others. */
		if (one == -EBUSY)
			busy++;
		else if (one < 0)
			error = one;
	}
	if (ret_busy)
		*ret_busy = busy;
	return r < 0 ? r : error;
}

bool
jobs_owner_is_dead(const char *state, const char *world)
{
	return spool_dir_is_orphan(state, world, "jobs");
}

/* ---- removing ---- */

int
jobs_remove_row(struct store *store, const char *state,
		const struct store_job *row)
{
	_cleanup_(freep) char *path = jobs_dir_path(state, row->world, row->id);
	int r;

	if (!path)
		return -ENOMEM;
	r = spool_dir_remove(path);
	return r < 0 ? r : store_job_remove(store, row->id);
}

int
jobs_prune(struct store *store, const char *state, uint64_t kept,
	   uint64_t bytes, void (*gone)(uint64_t id, void *data), void *data)
{
	_cleanup_(kept_list_fini) struct kept_list list = { 0 };
	int64_t oldest =
		clock_real_ns() - JOBS_KEPT_DAYS * 24LL * 3600 * 1000000000;
	int r, n = 0;

	r = store_jobs_excess(store, oldest, kept ? kept : JOBS_KEPT,
			      bytes ? bytes : JOBS_KEPT_BYTES, keep, &list);
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		r = jobs_remove_row(store, state, &list.items[i].row);
		if (r == -EBUSY) {
			r = 0;
			continue;
		}
		if (r < 0)
			break;
		n++;
		if (gone)
			gone(list.items[i].row.id, data);
	}
	return r < 0 ? r : n;
}
