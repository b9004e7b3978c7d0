/* SPDX-License-Identifier: MIT */

#include <string.h>

#include "base/clock.h"
#include "warden/spool_dir.h"
#include "warden/terms_row.h"

/* Rows of the store, kept while the store is written. */
struct kept_list {
	struct store_term *items;
	size_t count;
};

static void
kept_list_fini(struct kept_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free((char *)(uintptr_t)list->items[i].world);
		free((char *)(uintptr_t)list->items[i].state);
		free((char *)(uintptr_t)list->items[i].name);
		free((char *)(uintptr_t)list->items[i].title);
	}
	free(list->items);
	*list = (struct kept_list){ 0 };
}

static char *
copy(const char *text)
{
	return text ? strdup(text) : NULL;
}

static int
keep(const struct store_term *row, void *data)
{
	struct kept_list *list = data;
	struct store_term *items =
		realloc(list->items, (list->count + 1) * sizeof(*list->items));
	struct store_term *item;

	if (!items)
		return -ENOMEM;
	list->items = items;
	item = &items[list->count++];
	*item = *row;
	item->world = copy(row->world);
	item->state = copy(row->state);
	item->name = copy(row->name);
	item->title = copy(row->title);
	item->workspace = item->session = NULL;
	item->label = item->spec = item->reason = NULL;
	return item->world && item->state && !row->name == !item->name &&
			       !row->title == !item->title
		       ? 0
		       : -ENOMEM;
}

/* What the keeper saved becomes part of the stream. */
static int
recover_raw(int dir, struct store_term *row)
{
	_cleanup_(segments_freep) struct segments *raw = NULL;
	int r = segments_open(dir, "raw", &terms_raw_limits, &raw);

	if (r == 0)
		r = segments_adopt(raw, "raw.tail");
	if (r < 0 && r != -ENOENT)
		return r;
	segments_finish(raw);
	row->bytes = segments_end(raw);
	row->stored_bytes = segments_stored(raw);
	return 0;
}

static int
settle(struct store *store, const char *state, struct store_term *row)
{
	_cleanup_(freep) char *path =
		terms_dir_path(state, row->world, row->id);
	_cleanup_(closep) int parent = -1, dir = -1;
	const char *was = row->state;
	struct spool_fate fate = { .value = (int)row->value };
	int r;

	if (!path)
		return -ENOMEM;
	r = spool_dir_own(path, &parent, &dir);
	if (r < 0 && r != -ENOENT)
		return r;
	r = dir < 0 ? 0 : recover_raw(dir, row);
	if (r < 0)
		return r;
	if (row->ended_ns == 0) {
		spool_dir_fate(dir, &fate);
		row->state = fate.state;
		row->value = fate.value;
		row->reason = fate.reason;
		row->ended_ns = clock_real_ns();
	}
	row->flags &= ~STORE_TERM_OUTPUT_OPEN;
	r = store_terms_update(store, row, 1);
	row->state = was;
	return r;
}

int
terms_settle_dead(struct store *store, const char *state, uint64_t id)
{
	_cleanup_(kept_list_fini) struct kept_list list = { 0 };
	const struct store_terms_query query = { .id = id, .open = true };
	int r = store_each_term(store, &query, keep, &list), error = 0;

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		int one = settle(store, state, &list.items[i]);

		/* One that cannot be settled must not keep the others. */
		if (one < 0 && one != -EBUSY)
			error = one;
	}
	return r < 0 ? r : error;
}

int
terms_prune(struct store *store, const char *state, uint64_t kept,
	    void (*gone)(uint64_t id, void *data), void *data)
{
	_cleanup_(kept_list_fini) struct kept_list list = { 0 };
	int64_t oldest =
		clock_real_ns() - TERMS_KEPT_DAYS * 24LL * 3600 * 1000000000;
	int r, n = 0;

	r = store_terms_excess(store, oldest, kept ? kept : TERMS_KEPT, keep,
			       &list);
	for (size_t i = 0; r == 0 && i < list.count; i++) {
		r = terms_remove_row(store, state, &list.items[i]);
		if (r == -EBUSY) {
			r = 0;
			continue;
		}
		if (r < 0)
			break;
		n++;
		if (gone)
			gone(list.items[i].id, data);
	}
	return r < 0 ? r : n;
}
