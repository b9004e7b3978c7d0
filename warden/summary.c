/* SPDX-License-Identifier: MIT */

/*
 * What a world leaves behind: the line for whoever waits for a run, and the
 * event by which the records of its denials are found by workspace.
 */

#include "warden/warden_priv.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "policy/store.h"
#include "warden/observer.h"

void
warden_stats_json(struct warden *warden, struct buf *out)
{
	struct fs_stats stats = { 0 };
	const struct {
		const char *name;
		const uint64_t *value;
	} rows[] = {
		{ "requests", &stats.requests },
		{ "inodes", &stats.inodes },
		{ "open_fds", &stats.open_fds },
		{ "inode_bytes", &stats.inode_bytes },
	};

	if (warden->fs)
		fs_stats(warden->fs, &stats);
	jsonw_begin(out, '{');
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		jsonw_key(out, rows[i].name);
		jsonw_uint(out, *rows[i].value);
	}
	jsonw_end(out, '}');
}

static void
denials_json(const struct denials_summary *summary, struct buf *out)
{
	jsonw_begin(out, '{');
	jsonw_key(out, "count");
	jsonw_uint(out, summary->count);
	jsonw_key(out, "rows");
	jsonw_uint(out, summary->rows);
	jsonw_key(out, "degraded");
	jsonw_bool(out, summary->degraded);
	jsonw_key(out, "first");
	jsonw_begin(out, '[');
	for (unsigned int i = 0; i < summary->n_first; i++)
		denial_to_json(&summary->first[i], out);
	jsonw_end(out, ']');
	jsonw_end(out, '}');
}

static void
put_path(void *data, const char *path)
{
	jsonw_text(data, path);
}

/*
 * "degraded": what was refused outside the workspace is not all on record.
 * Nothing where there was no listener: the helper knows.
 */
static void
put_observer(struct warden *warden, struct buf *out)
{
	struct observer_stats stats;

	if (!warden->observer)
		return;
	observer_stats(warden->observer, &stats);
	jsonw_key(out, "observer");
	jsonw_text(out, stats.lost > 0 ? "degraded" : "on");
}

void
warden_summarize(struct warden *warden, int fd)
{
	_cleanup_(buf_fini) struct buf line = { 0 };
	struct denials_summary summary = { 0 };

	denials_summarize(warden->denials, &summary);
	if (summary.rows > 0)
		warden_record_start(warden);
	jsonw_begin(&line, '{');
	jsonw_key(&line, "denials");
	denials_json(&summary, &line);
	put_observer(warden, &line);
	jsonw_key(&line, "born_repositories");
	jsonw_begin(&line, '[');
	if (warden->fs)
		fs_born_repositories(warden->fs, put_path, &line);
	jsonw_end(&line, ']');
	jsonw_key(&line, "stats");
	warden_stats_json(warden, &line);
	jsonw_end(&line, '}');
	buf_puts(&line, "\n");
	if (buf_error(&line) == 0)
		(void)fd_write_all(fd, line.data, line.len);
}

void
warden_record_event(struct warden *warden, const char *kind, struct buf *body)
{
	_cleanup_(store_closep) struct store *store = NULL;
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);
	struct errmsg why = { "" };
	int r;

	buf_put(body, "", 1);
	r = buf_error(body);
	if (r == 0)
		r = store_open(warden->places.db, &store, &why);
	if (r == 0)
		r = store_event(store, policy->session, warden->opt.world, kind,
				(const char *)body->data);
	if (r < 0)
		log_line(warden->log, LOG_ERROR, "'%s' is not on record: %s %s",
			 kind, strerror(-r), why.text);
}

void
warden_record_start(struct warden *warden)
{
	_cleanup_(buf_fini) struct buf body = { 0 };

	if (atomic_exchange(&warden->recorded, true))
		return;
	jsonw_begin(&body, '{');
	world_dir_members(warden, &body);
	jsonw_end(&body, '}');
	warden_record_event(warden, "world.started", &body);
}
