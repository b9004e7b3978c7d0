/* SPDX-License-Identifier: MIT */

/* pale job list, show, status, notify, path: what is known of jobs. */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostmount.h"
#include "base/json.h"
#include "cli/job.h"
#include "cli/show.h"
#include "cli/standing.h"
#include "policy/store.h"

#define ASK_TIMEOUT_MS 30000

/* ---- list ---- */

int
job_query_init(const struct job_options *options,
	       struct store_jobs_query *query, struct errmsg *why)
{
	const char *workspace = options->policy.request.workspace;
	char *path = NULL;
	int r;

	query->session = options->policy.request.session;
	query->world = options->world;
	if (!workspace)
		return 0;
	r = hostmount_canonical(workspace, &path);
	if (r < 0)
		return errmsg_set(why, r, "'%s': %s", workspace, strerror(-r));
	query->workspace = path;
	return 0;
}

void
job_query_fini(struct store_jobs_query *query)
{
	free((char *)query->workspace);
	query->workspace = NULL;
}

static int
list_one(const struct store_job *row, void *data)
{
	const struct job_options *options = data;
	_cleanup_(buf_fini) struct buf out = { 0 };
	char line[512];

	if (options->common.json) {
		jobs_row_json(row, &out);
		return cli_print_json(&out);
	}
	jobs_row_line(row, line, sizeof(line));
	show_row_begin(&out, 'j', row->id,
		       row->started_ns ? row->started_ns : row->created_ns,
		       line);
	show_row_command(&out, row->name, row->label);
	return show_row_end(&out);
}

static int
list_all(struct record_places *places, const struct job_options *options,
	 struct errmsg *why)
{
	struct store_jobs_query query = { .newest_first = true, .light = true };
	int r;

	if (!places->store)
		return 0;
	(void)jobs_settle_dead(places->store, places->state, 0, NULL);
	r = job_query_init(options, &query, why);
	if (r < 0)
		return r;
	query.live = true;
	r = store_each_job(places->store, &query, list_one, (void *)options);
	query.live = false;
	query.ended = true;
	if (r == 0 && options->all)
		r = store_each_job(places->store, &query, list_one,
				   (void *)options);
	job_query_fini(&query);
	return r < 0 ? errmsg_set(why, r, "cannot list jobs: %s", strerror(-r))
		     : 0;
}

int
job_list(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	struct errmsg why = { "" };
	int r = record_places_open(&places, &why);

	if (r == 0)
		r = list_all(&places, options, &why);
	if (r < 0)
		return record_fail(&why);
	return options->follow ? job_notify(options, argc, argv) : 0;
}

/* ---- show, status ---- */

struct refused {
	uint64_t count;
	struct buf *json;
};

static int
add_refused(const struct denial *denial, void *data)
{
	struct refused *refused = data;

	refused->count += denial->count;
	return 0;
}

static uint64_t
count_denials(struct record_places *places, const struct store_job *row)
{
	struct refused refused = { 0 };
	char origin[32];
	const struct store_query query = { .world = row->world,
					   .origin = origin };

	(void)snprintf(origin, sizeof(origin), "job j%llu",
		       (unsigned long long)row->id);
	(void)store_each_denial(places->store, &query, add_refused, &refused);
	return refused.count;
}

static int
show(const struct job_options *options, const struct store_job *row,
     uint64_t denials)
{
	_cleanup_(buf_fini) struct buf out = { 0 };

	jobs_row_json(row, &out);
	out.len -= buf_error(&out) == 0;
	jsonw_pair_uint(&out, "denials", denials);
	jsonw_end(&out, '}');
	if (options->common.json)
		return cli_print_json(&out) < 0 ? RECORD_EXIT_FAILED : 0;
	return show_members(&out);
}

int
job_show(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	_cleanup_(job_record_fini) struct job_record record = { 0 };
	struct errmsg why = { "" };
	int r = record_places_open(&places, &why);

	(void)argc;
	if (r == 0)
		r = job_find(&places, argv[0], &record, &why);
	if (r < 0)
		return record_fail(&why);
	return show(options, &record.row, count_denials(&places, &record.row));
}

int
job_status(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	struct errmsg why = { "" };
	int status = 0;

	if (record_places_open(&places, &why) < 0)
		return record_fail(&why);
	for (int i = 0; i < argc; i++) {
		_cleanup_(job_record_fini) struct job_record record = { 0 };

		if (job_find(&places, argv[i], &record, &why) < 0)
			status = record_fail(&why);
		else
			(void)job_print(options, &record.row, argc > 1);
	}
	return status;
}

/* ---- notify ---- */

static bool
is_wanted(const json_t *job, int argc, char **argv)
{
	const char *id = json_string_value(json_object_get(job, "id"));

	for (int i = 0; id && i < argc; i++)
		if (strcmp(argv[i], id) == 0)
			return true;
	return argc == 0;
}

static void
print_notice(const struct job_options *options, const json_t *job)
{
	const char *line = json_string_value(json_object_get(job, "status"));
	const char *id = json_string_value(json_object_get(job, "id"));
	_cleanup_(buf_fini) struct buf out = { 0 };

	if (options->common.json) {
		(void)json_dumpf(job, stdout, JSON_COMPACT);
	} else {
		show_safe(&out, line ? line : "");
		printf("%s %.*s", id ? id : "", (int)out.len,
		       (const char *)out.data);
	}
	putchar('\n');
	(void)fflush(stdout);
}

/* Until the world ends, or all that are named have. */
static int
follow_ends(const struct job_options *options, struct rpc_client *client,
	    int argc, char **argv)
{
	struct rpc_message message = { 0 };
	int left = argc, r;

	while ((r = rpc_client_next(client, -1, &message)) >= 0) {
		bool wanted = r > 0 && message.kind == RPC_NOTIFICATION &&
			      message.name &&
			      strcmp(message.name, "job.done") == 0 &&
			      is_wanted(message.params, argc, argv);

		if (wanted)
			print_notice(options, message.params);
		if (r > 0)
			rpc_message_fini(&message);
		if (wanted && argc > 0 && --left == 0)
			return 0;
	}
	return 0;
}

int
job_notify(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	const struct standing_request request = {
		.request = &options->policy.request,
		.world = options->world,
	};
	struct standing standing = { .sock = -1 };
	struct errmsg why = { "" };
	int r = standing_connect(&request, &standing, &why);

	jsonw_begin(&params, '{');
	jsonw_end(&params, '}');
	if (r == 0)
		r = job_ask(standing.client, RPC_JOB_SUBSCRIBE, &params,
			    ASK_TIMEOUT_MS, NULL, &why);
	if (r == 0)
		r = follow_ends(options, standing.client, argc, argv);
	standing_fini(&standing);
	return r < 0 ? record_fail(&why) : 0;
}

/* ---- path ---- */

static const char *const files[] = {
	"command", "cwd",    "env",   "status", "exit", "pid",	  "stdout",
	"stderr",  "output", "stdin", "ctl",	"wait", "follow", "status.json"
};

static bool
is_file(const char *name)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (strcmp(files[i], name) == 0)
			return true;
	return false;
}

int
job_path(const struct job_options *options, int argc, char **argv)
{
	char id[JOBS_ID_MAX];
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	_cleanup_(job_record_fini) struct job_record record = { 0 };
	struct errmsg why = { "" };
	int r = 0;

	if (argc > 1 && !is_file(argv[1]))
		r = errmsg_set(&why, -EINVAL, "a job has no file '%s'",
			       argv[1]);
	if (r == 0)
		r = record_places_open(&places, &why);
	if (r == 0)
		r = job_find(&places, argv[0], &record, &why);
	if (r < 0)
		return record_fail(&why);
	jobs_id_text(record.row.id, id);
	return record_print_path(&options->common,
				 &(struct record_path){
					 .world = record.row.world,
					 .workspace = record.row.workspace,
					 .kind = "jobs",
					 .id = id,
				 },
				 argc > 1 ? argv[1] : NULL);
}
