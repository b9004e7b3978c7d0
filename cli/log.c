/* SPDX-License-Identifier: MIT */

/*
 * pale log, pale world log: what happened, from the store, whether or not any
 * warden lives.  What dead wardens left is brought over first.
 *
 * The warden's own log (STATE/worlds/ID/warden.log) has lines of text, which
 * come last: it is about what went wrong, and most worlds have none.
 */

#include "cli/log.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/dirs.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/place.h"
#include "cli/records.h"
#include "cli/worlds.h"
#include "policy/store.h"

struct opts {
	struct cli_common common;
	struct log_query query;
};

#define QUERY(field) offsetof(struct opts, query.field)

static const struct cli_option rows[] = {
	{ "since", 0, CLI_NUMBER, QUERY(since), "ID",
	  "only those after this id", NULL },
	{ "last", 'n', CLI_NUMBER, QUERY(last), "N", "only the newest N",
	  NULL },
	{ "world", 0, CLI_STRING, QUERY(world), "ID",
	  "only those of this world", NULL },
	{ "session", 's', CLI_STRING, QUERY(session), "NAME",
	  "only those of this session", NULL },
	{ "workspace", 'w', CLI_STRING, QUERY(workspace), "DIR",
	  "only those of DIR and of worlds on it", NULL },
	CLI_END,
};

static const struct cli_usage usage = {
	.command = "log",
	.synopsis = "[options]",
	.about = "Shows what happened to sessions, modes, approvals and "
		 "worlds, oldest first.",
	.usage_status = 2,
};

/* ---- one event ---- */

static void
put_time(struct buf *out, int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[32];

	if (localtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), "%F %T", &tm) > 0)
		buf_puts(out, text);
	else
		buf_puts(out, "?");
}

/* What an inmate or a host's name may hold must not steer a terminal. */
static void
put_value(struct buf *out, const json_t *value)
{
	char *text;

	if (json_is_string(value)) {
		escape_controls(out, json_string_value(value),
				json_string_length(value));
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	buf_puts(out, text ? text : "?");
	free(text);
}

/* "key=value" of all that says something; the world's id stands before. */
static void
put_members(struct buf *out, json_t *body)
{
	static const char *const left_out[] = { "id", "started", "session" };
	const char *key;
	json_t *value;

	json_object_foreach(body, key, value)
	{
		bool out_of_place = json_is_null(value);

		for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out);
		     i++)
			out_of_place |= strcmp(key, left_out[i]) == 0;
		if (out_of_place)
			continue;
		buf_putf(out, " %s=", key);
		put_value(out, value);
	}
}

static void
put_line(struct buf *out, const struct store_event_row *row)
{
	json_t *body = json_loads(row->body, 0, NULL);

	buf_putf(out, "%llu ", (unsigned long long)row->id);
	put_time(out, row->time_ns);
	buf_putf(out, " %s", row->kind);
	if (row->world)
		buf_putf(out, " world %s", row->world);
	buf_puts(out, " session ");
	escape_controls(out, row->session, strlen(row->session));
	put_members(out, body);
	json_decref(body);
}

static void
put_json(struct buf *out, const struct store_event_row *row)
{
	jsonw_begin(out, '{');
	jsonw_pair_uint(out, "id", row->id);
	jsonw_pair_int(out, "time", row->time_ns);
	jsonw_pair(out, "kind", row->kind);
	jsonw_pair(out, "session", row->session);
	jsonw_pair(out, "world", row->world);
	jsonw_key(out, "body");
	jsonw_raw(out, row->body, strlen(row->body));
	jsonw_end(out, '}');
}

static int
show_row(const struct store_event_row *row, void *data)
{
	const struct log_query *query = data;
	_cleanup_(buf_fini) struct buf out = { 0 };

	if (query->json)
		put_json(&out, row);
	else
		put_line(&out, row);
	buf_puts(&out, "\n");
	if (buf_error(&out) < 0)
		return buf_error(&out);
	return fwrite(out.data, 1, out.len, stdout) == out.len ? 0 : -EPIPE;
}

/* ---- the warden's own lines: "TIME LEVEL text" ---- */

/* `line` is cut into its words. */
static void
put_file_line(const struct log_query *query, char *line, struct buf *out)
{
	char *level = strchr(line, ' ');
	char *text = level ? strchr(level + 1, ' ') : NULL;

	if (!query->json || !text) {
		escape_controls(out, line, strlen(line));
		return;
	}
	*level++ = '\0';
	*text++ = '\0';
	jsonw_begin(out, '{');
	jsonw_pair(out, "time", line);
	jsonw_pair(out, "level", level);
	jsonw_pair(out, "world", query->world);
	jsonw_pair(out, "text", text);
	jsonw_end(out, '}');
}

static void
show_file(const struct log_query *query, int (*find_dir)(char **))
{
	_cleanup_(freep) char *dir = NULL;
	_cleanup_(freep) char *path = NULL;
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;
	FILE *file;

	if (strchr(query->world, '/') || find_dir(&dir) < 0 ||
	    asprintf(&path, "%s/worlds/%s/warden.log", dir, query->world) < 0)
		return;
	file = fopen(path, "re");
	if (!file)
		return;
	while (getline(&line, &size, file) > 0) {
		_cleanup_(buf_fini) struct buf out = { 0 };

		line[strcspn(line, "\n")] = '\0';
		put_file_line(query, line, &out);
		buf_puts(&out, "\n");
		if (buf_error(&out) == 0)
			(void)fwrite(out.data, 1, out.len, stdout);
	}
	(void)fclose(file);
}

/* ---- all of it ---- */

static int
open_store(struct store **ret_store, struct errmsg *why)
{
	_cleanup_(freep) char *path = NULL;
	int r = records_path(&path);

	if (r < 0)
		return errmsg_set(why, r, "%s", strerror(-r));
	return records_open(path, ret_store, why);
}

int
log_show(const struct log_query *query, struct errmsg *why)
{
	_cleanup_(store_closep) struct store *store = NULL;
	_cleanup_(freep) char *workspace = NULL;
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	struct store_query restrictions = {
		.since = query->since,
		.last = query->last,
		.world = query->world,
		.session = query->session,
		.workspace = query->workspace,
	};
	int r;

	worlds_import_left();
	(void)worlds_list(&list, NULL);
	/* A workspace that is gone still has its events: as spelled then. */
	if (query->workspace &&
	    place_canonical(query->workspace, true, &workspace) == 0)
		restrictions.workspace = workspace;
	r = open_store(&store, why);
	if (r == 0 && store)
		r = store_each_event(store, &restrictions, show_row,
				     (void *)(uintptr_t)query);
	if (r < 0)
		return why->text[0] ? r
				    : errmsg_set(why, r, "%s", strerror(-r));
	if (query->world) {
		show_file(query, dirs_state);
		show_file(query, dirs_runtime);
	}
	return 0;
}

int
cmd_log(int argc, char **argv)
{
	struct opts opts = { 0 };
	const struct cli_group groups[] = {
		{ rows, &opts },
		{ cli_common_options, &opts.common },
		{ 0 },
	};
	struct errmsg why = { "" };
	int first, status, r;

	if (!cli_parse(&usage, groups, argc, argv, &first, &status))
		return status;
	if (first < argc)
		return cli_usage_error(&usage, "'%s' is not known here",
				       argv[first]);
	opts.query.json = opts.common.json;
	r = log_show(&opts.query, &why);
	if (r < 0 && r != -EPIPE)
		cli_error("%s", why.text);
	return r < 0 ? 1 : 0;
}
