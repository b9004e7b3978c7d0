/* SPDX-License-Identifier: MIT */

#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hostmount.h"
#include "base/json.h"
#include "cli/show.h"
#include "warden/spool_dir.h"

/* How long a keeper may take to save what its warden left. */
#define KEEPER_NS 10000000000LL

/* ---- records ---- */

static void
forget_row(struct term_record *record)
{
	record_free_texts(record->texts, TERM_TEXTS);
	record->row = (struct store_term){ 0 };
}

void
term_record_fini(struct term_record *record)
{
	forget_row(record);
	record_places_fini(&record->places);
}

static int
copy(const struct store_term *row, void *data)
{
	struct term_record *record = data;
	struct store_term *to = &record->row;
	const char **const texts[TERM_TEXTS] = {
		&to->world, &to->workspace, &to->session,
		&to->name,  &to->label,	    &to->spec,
		&to->state, &to->reason,    &to->title,
	};
	int r;

	/* Of several with one name, the one that lives, else the newest. */
	if (to->id != 0 && row->ended_ns != 0)
		return 0;
	forget_row(record);
	*to = *row;
	r = record_own_texts(texts, record->texts, TERM_TEXTS);
	return r < 0 ? r : row->ended_ns == 0;
}

static int
load(struct term_record *record, const struct store_terms_query *query,
     const char *called, struct errmsg *why)
{
	int r = record->places.store ? store_each_term(record->places.store,
						       query, copy, record)
				     : 0;

	if (r < 0)
		return errmsg_set(why, r, "cannot read the record of %s: %s",
				  called, strerror(-r));
	if (record->row.id == 0)
		return errmsg_set(why, -ENOENT, "no terminal '%s'", called);
	return 0;
}

static int
load_id(struct term_record *record, uint64_t id, struct errmsg *why)
{
	const struct store_terms_query query = { .id = id };
	char called[TERMS_ID_MAX];

	terms_id_text(id, called);
	forget_row(record);
	return load(record, &query, called, why);
}

static bool
is_open(const struct store_term *row)
{
	return row->ended_ns == 0 || (row->flags & STORE_TERM_OUTPUT_OPEN);
}

/* `gone`: its warden does not answer, and will have let go of it soon. */
static int
reload(struct term_record *record, bool gone, struct errmsg *why)
{
	int64_t until = clock_mono_ns() + KEEPER_NS;
	struct record_places *places = &record->places;
	uint64_t id = record->row.id;
	int r = load_id(record, id, why);

	/* A dead warden's keeper is given the time to save what is left. */
	while (r == 0 && is_open(&record->row)) {
		bool orphan = spool_dir_is_orphan(
			places->state, record->row.world, "terminals");

		if (!orphan && !gone)
			break;
		r = orphan ? terms_settle_dead(places->store, places->state, id)
			   : 0;
		if (r < 0)
			return errmsg_set(why, r, "cannot settle t%llu: %s",
					  (unsigned long long)id, strerror(-r));
		r = load_id(record, id, why);
		if (clock_mono_ns() > until || r < 0)
			break;
		if (is_open(&record->row))
			(void)poll(NULL, 0, 5);
	}
	return r;
}

int
term_reload(struct term_record *record, struct errmsg *why)
{
	return reload(record, false, why);
}

int
term_reload_gone(struct term_record *record, struct errmsg *why)
{
	return reload(record, true, why);
}

static int
load_name(const struct term_options *options, const char *name,
	  struct term_record *record, struct errmsg *why)
{
	const struct policy_request *request = &options->policy.request;
	_cleanup_(freep) char *workspace = NULL;
	struct store_terms_query query = { .name = name,
					   .world = options->world,
					   .session = request->session
							      ? request->session
							      : "default",
					   .newest_first = true };
	int r = 0;

	if (!options->world) {
		r = hostmount_canonical(request->workspace ? request->workspace
							   : ".",
					&workspace);
		if (r < 0)
			return errmsg_set(why, r, "'%s': %s",
					  request->workspace, strerror(-r));
		query.workspace = workspace;
	}
	return load(record, &query, name, why);
}

int
term_open(const struct term_options *options, const char *id_or_name,
	  struct term_record *record, struct errmsg *why)
{
	int r = record_places_open(&record->places, why);

	if (r < 0)
		return r;
	if (terms_id_parse(id_or_name, &record->row.id) == 0)
		return term_reload(record, why);
	r = load_name(options, id_or_name, record, why);
	return r < 0 || record->row.ended_ns > 0 ? r : term_reload(record, why);
}

/* ---- wardens ---- */

void
term_begin(struct buf *params, const struct term_record *record)
{
	char id[TERMS_ID_MAX];

	terms_id_text(record->row.id, id);
	jsonw_begin(params, '{');
	jsonw_pair(params, "id", id);
}

int
term_ask(const struct term_record *record, enum rpc_method method,
	 struct buf *params, int timeout_ms, json_t **ret_result,
	 struct errmsg *why)
{
	_cleanup_(rpc_client_closep) struct rpc_client *client = NULL;
	int r = record_connect(&record->places, record->row.world, &client,
			       why);

	jsonw_end(params, '}');
	return r < 0 ? r
		     : rpc_client_call(client, method, params, timeout_ms,
				       ret_result, why);
}

int
term_open_dir(const struct term_record *record, int *ret_dir,
	      struct errmsg *why)
{
	_cleanup_(freep) char *path = terms_dir_path(
		record->places.state, record->row.world, record->row.id);

	if (!path)
		return errmsg_set(why, -ENOMEM, "out of memory");
	*ret_dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	/* One that never began has written nothing. */
	if (*ret_dir < 0 && errno != ENOENT)
		return errmsg_set(why, -errno, "cannot open '%s': %s", path,
				  strerror(errno));
	return 0;
}

/* ---- words ---- */

int
term_parse_size(const char *text, unsigned int *ret_cols,
		unsigned int *ret_rows, struct errmsg *why)
{
	char *end = NULL;
	unsigned long cols = 0, rows = 0;

	if (*text >= '0' && *text <= '9')
		cols = strtoul(text, &end, 10);
	if (end && *end == 'x' && end[1] >= '0' && end[1] <= '9')
		rows = strtoul(end + 1, &end, 10);
	if (cols == 0 || rows == 0 || cols > 65535 || rows > 65535 || *end)
		return errmsg_set(why, -EINVAL,
				  "'%s' is no size, such as 80x24", text);
	*ret_cols = (unsigned int)cols;
	*ret_rows = (unsigned int)rows;
	return 0;
}

int
term_print(const struct term_options *options, const struct store_term *row,
	   const char *prefix)
{
	_cleanup_(buf_fini) struct buf out = { 0 };
	char line[512];

	if (options->common.json) {
		terms_row_json(row, &out);
		return cli_print_json(&out) < 0 ? RECORD_EXIT_FAILED : 0;
	}
	terms_row_line(row, line, sizeof(line));
	return show_line(prefix, line);
}
