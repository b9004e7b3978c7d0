/* SPDX-License-Identifier: MIT */

/*
 * What a world leaves behind: the line for whoever waits for a run.
 */

#include "warden/warden_priv.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
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
		{ "watched", &stats.watched },
		{ "untold", &stats.untold },
		{ "unheard", &stats.unheard },
	};

	if (warden->fs)
		fs_stats(warden->fs, &stats);
	jsonw_begin(out, '{');
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		jsonw_pair_uint(out, rows[i].name, *rows[i].value);
	jsonw_end(out, '}');
}

static void
denials_json(const struct denials_summary *summary, struct buf *out)
{
	_cleanup_(buf_fini) struct buf first = { 0 };

	jsonw_begin(&first, '[');
	for (unsigned int i = 0; i < summary->n_first; i++)
		denial_to_json(&summary->first[i], &first);
	jsonw_end(&first, ']');
	denials_counts_json(summary, &first, out);
}

static void
put_path(void *data, const char *path)
{
	jsonw_text(data, path);
}

const char *
warden_observer_name(const struct warden *warden)
{
	struct observer_stats stats;

	if (!warden->observer)
		return "off";
	observer_stats(warden->observer, &stats);
	return stats.lost > 0 || stats.stood_in > 0 ? "degraded" : "on";
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
	jsonw_pair(&line, "observer", warden_observer_name(warden));
	if (warden->fs)
		jsonw_pair(&line, "passthrough",
			   fs_passthrough_name(fs_passthrough(warden->fs)));
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
