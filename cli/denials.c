/* SPDX-License-Identifier: MIT */

/*
 * pale denials: what was refused, from the store, whether or not any warden
 * lives.  What dead wardens left in their spools is brought over first.
 *
 * --follow asks the database, ten times a second, whether another connection
 * has written (PRAGMA data_version, a look into shared memory), and shows rows
 * above the last id it showed.  Ids are given inside transactions that exclude
 * each other, so none is ever passed over.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/place.h"
#include "cli/records.h"
#include "cli/worlds.h"
#include "policy/denial.h"
#include "policy/store.h"

#define TTY_ROWS  100
#define POLL_NS	  100000000
#define IMPORT_NS 2000000000LL

struct opts {
	struct cli_common common;
	bool follow, summary;
	uint64_t since, last;
	const char *world, *session, *workspace, *call;
};

static const struct cli_option rows[] = {
	{ "follow", 'f', CLI_FLAG, offsetof(struct opts, follow), NULL,
	  "go on showing new ones", NULL },
	{ "since", 0, CLI_NUMBER, offsetof(struct opts, since), "ID",
	  "only those after this id", NULL },
	{ "last", 'n', CLI_NUMBER, offsetof(struct opts, last), "N",
	  "only the newest N", NULL },
	{ "world", 0, CLI_STRING, offsetof(struct opts, world), "ID",
	  "only those of this world", NULL },
	{ "session", 's', CLI_STRING, offsetof(struct opts, session), "NAME",
	  "only those of this session", NULL },
	{ "workspace", 'w', CLI_STRING, offsetof(struct opts, workspace), "DIR",
	  "only those of worlds on DIR, or of paths in it", NULL },
	{ "call", 0, CLI_STRING, offsetof(struct opts, call), "ID",
	  "only those of the call that its caller named so", NULL },
	{ "summary", 0, CLI_FLAG, offsetof(struct opts, summary), NULL,
	  "totals by rule, operation, directory and program", NULL },
	CLI_END,
};

static const struct cli_usage usage = {
	.command = "denials",
	.synopsis = "[options] [prune]",
	.about = "Shows what was refused, oldest first; on a terminal the last "
		 "100.\n"
		 "prune removes records older than 30 days and beyond the "
		 "newest million.",
	.usage_status = 2,
};

struct show {
	const struct opts *opts;
	struct buf out; /* emptied after each row */
	uint64_t last_id;
};

/* An inmate chose these bytes: nothing of them may steer the terminal. */
static void
put_safe(struct buf *out, const char *text)
{
	if (text)
		escape_controls(out, text, strlen(text));
	else
		buf_puts(out, "?");
}

static void
put_time(struct buf *out, int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[32];

	if (!localtime_r(&seconds, &tm) ||
	    strftime(text, sizeof(text), "%F %T", &tm) == 0)
		buf_puts(out, "?");
	else
		buf_puts(out, text);
}

static void
put_line(struct buf *out, const struct denial *denial)
{
	buf_putf(out, "%llu ", (unsigned long long)denial->id);
	put_time(out, denial->time_ns);
	buf_putf(out, " %s ", policy_op_name(denial->op));
	put_safe(out, denial->path);
	if (denial->path2) {
		buf_puts(out, " -> ");
		put_safe(out, denial->path2);
	}
	buf_puts(out, " by ");
	put_safe(out, denial->comm);
	buf_putf(out, "[%d] (", (int)denial->pid);
	put_safe(out, denial->rule);
	buf_putf(out, ") %s", strerrorname_np(denial->error) ?: "?");
	if (denial->count > 1)
		buf_putf(out, " x%llu", (unsigned long long)denial->count);
	buf_puts(out, " world ");
	put_safe(out, denial->world);
}

/* Ends the row; a reader that has gone ends the command. */
static int
put_out(struct show *show)
{
	int r;

	buf_puts(&show->out, "\n");
	r = buf_error(&show->out);
	if (r == 0 &&
	    fwrite(show->out.data, 1, show->out.len, stdout) != show->out.len)
		r = -EPIPE;
	buf_fini(&show->out);
	return r;
}

static int
show_row(const struct denial *denial, void *data)
{
	struct show *show = data;

	show->last_id = denial->id;
	if (show->opts->common.json)
		denial_to_json(denial, &show->out);
	else
		put_line(&show->out, denial);
	return put_out(show);
}

static void
put_group_json(struct buf *out, const struct store_group *group)
{
	jsonw_begin(out, '{');
	jsonw_pair_uint(out, "count", group->count);
	jsonw_pair_uint(out, "rows", group->rows);
	jsonw_pair(out, "rule", group->rule);
	jsonw_pair(out, "op", group->op);
	jsonw_pair(out, "directory", group->directory);
	jsonw_pair(out, "program", group->program);
	jsonw_pair_uint(out, "last_id", group->last_id);
	jsonw_end(out, '}');
}

static int
show_group(const struct store_group *group, void *data)
{
	struct show *show = data;
	struct buf *out = &show->out;

	if (show->opts->common.json) {
		put_group_json(out, group);
		return put_out(show);
	}
	buf_putf(out, "%8llu %s ", (unsigned long long)group->count, group->op);
	put_safe(out, group->directory);
	buf_puts(out, " by ");
	put_safe(out, group->program);
	buf_puts(out, " (");
	put_safe(out, group->rule);
	buf_putf(out, ") last %llu", (unsigned long long)group->last_id);
	return put_out(show);
}

/* What dead wardens left, in the state and in the runtime directory. */
static void
import_orphans(void)
{
	struct world_list list = { 0 };

	worlds_import_left();
	if (worlds_list(&list, NULL) == 0)
		world_list_fini(&list);
}

static int
show_once(struct show *show, struct store *store, struct store_query *query)
{
	int r;

	if (show->opts->summary)
		r = store_each_group(store, query, show_group, show);
	else
		r = store_each_denial(store, query, show_row, show);
	if (r == 0 && fflush(stdout) != 0)
		r = -EPIPE;
	return r;
}

static int
follow(struct show *show, struct store **store, const char *path,
       struct store_query *query, struct errmsg *why)
{
	const struct timespec pause = { .tv_nsec = POLL_NS };
	int64_t seen = -1, version = 0, imported = clock_mono_ns();
	int r;

	for (;;) {
		if (!*store) {
			r = records_open(path, store, why);
			if (r < 0)
				return r;
		}
		r = *store ? store_version(*store, &version) : 0;
		if (r == 0 && *store && version != seen) {
			r = show_once(show, *store, query);
			seen = version;
			query->last = 0;
			if (show->last_id > query->since)
				query->since = show->last_id;
		}
		if (r < 0 && r != -EBUSY)
			return r;
		(void)nanosleep(&pause, NULL);
		if (clock_mono_ns() - imported > IMPORT_NS) {
			import_orphans();
			imported = clock_mono_ns();
		}
	}
}

static int
prune(struct store *store, const struct opts *opts)
{
	uint64_t removed = 0;
	int r = store ? store_prune(store, &removed) : 0;

	if (r < 0)
		return r;
	if (opts->common.json)
		printf("{\"removed\":%llu}\n", (unsigned long long)removed);
	else if (!opts->common.quiet)
		printf("%llu records removed\n", (unsigned long long)removed);
	return 0;
}

static int
run(const struct opts *opts, bool is_prune, struct errmsg *why)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(freep) char *workspace = NULL;
	_cleanup_(store_closep) struct store *store = NULL;
	struct show show = { .opts = opts };
	struct store_query query = {
		.since = opts->since,
		.last = opts->last,
		.world = opts->world,
		.session = opts->session,
		.call = opts->call,
	};
	int r;

	/* A workspace that is gone still has its records: as spelled then. */
	if (opts->workspace &&
	    place_canonical(opts->workspace, true, &workspace) == 0)
		query.workspace = workspace;
	else
		query.workspace = opts->workspace;
	if (query.last == 0 && query.since == 0 && !opts->summary &&
	    !opts->common.json && isatty(STDOUT_FILENO))
		query.last = TTY_ROWS;

	r = records_path(&path);
	if (r < 0)
		return errmsg_set(why, r, "%s", strerror(-r));
	import_orphans();
	if (opts->follow)
		return follow(&show, &store, path, &query, why);
	r = records_open(path, &store, why);
	if (r < 0)
		return r;
	if (is_prune)
		return prune(store, opts);
	return store ? show_once(&show, store, &query) : 0;
}

int
cmd_denials(int argc, char **argv)
{
	struct opts opts = { 0 };
	const struct cli_group groups[] = {
		{ rows, &opts },
		{ cli_common_options, &opts.common },
		{ 0 },
	};
	struct errmsg why = { "" };
	bool is_prune;
	int first, status, r;

	if (!cli_parse(&usage, groups, argc, argv, &first, &status))
		return status;
	is_prune = argc - first == 1 && strcmp(argv[first], "prune") == 0;
	if (first < argc && !is_prune)
		return cli_usage_error(&usage, "'%s' is not known here",
				       argv[first]);
	if (opts.follow && (opts.summary || is_prune))
		return cli_usage_error(&usage, "--follow excludes --summary "
					       "and prune");
	r = run(&opts, is_prune, &why);
	if (r == -EPIPE)
		return 1;
	if (r < 0)
		cli_error("%s", why.text[0] ? why.text : strerror(-r));
	return r < 0 ? 1 : 0;
}
