/* SPDX-License-Identifier: MIT */

/*
 * pale job wait, kill, rm, prune.
 *
 * A warden that goes away while it is asked is no error: what it left is
 * settled by whoever reads the record next, which is us.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/job.h"

#define ASK_TIMEOUT_MS	30000
#define WAIT_STEP_MS	3600000
#define KILL_MARGIN_MS	20000
#define SEVERAL_STEP_MS 200
#define LOST_PAUSE_MS	20
#define GRACE_MS	3000
#define SHOW_STEP_MS	500

/* ---- wait ---- */

struct waiting {
	const struct job_options *options;
	struct record_places places;
	struct job_record *records;
	int count;
	int64_t until_ns; /* 0: for ever */
	bool shows;
	int shown; /* columns that our line has */
};

static void
waiting_fini(struct waiting *waiting)
{
	for (int i = 0; i < waiting->count; i++)
		job_record_fini(&waiting->records[i]);
	free(waiting->records);
	record_places_fini(&waiting->places);
}

static bool
has_ended(const struct job_record *record)
{
	return record->row.ended_ns > 0;
}

/* The first that has (or has not) ended; −1: none. */
static int
first(const struct waiting *waiting, bool ended)
{
	for (int i = 0; i < waiting->count; i++)
		if (has_ended(&waiting->records[i]) == ended)
			return i;
	return -1;
}

static bool
is_done(const struct waiting *waiting)
{
	return waiting->options->any ? first(waiting, true) >= 0
				     : first(waiting, false) < 0;
}

static int
step_ms(const struct waiting *waiting, const struct job_record *record)
{
	int64_t left = waiting->until_ns ? clock_left_ms(waiting->until_ns)
					 : WAIT_STEP_MS;

	if (left < 1)
		left = 1;
	/* With --any one of another world may be first. */
	for (int i = 0; waiting->options->any && i < waiting->count; i++)
		if (strcmp(waiting->records[i].row.world, record->row.world) !=
			    0 &&
		    left > SEVERAL_STEP_MS)
			left = SEVERAL_STEP_MS;
	if (waiting->shows && left > SHOW_STEP_MS)
		left = SHOW_STEP_MS;
	return (int)(left < WAIT_STEP_MS ? left : WAIT_STEP_MS);
}

/* One line, over the one before. */
static void
show_line(struct waiting *waiting, const char *text)
{
	fprintf(stderr, "\r%-*s", waiting->shown, text);
	if (!*text)
		fputc('\r', stderr);
	waiting->shown = (int)strlen(text);
}

static json_int_t
number(const json_t *job, const char *key)
{
	return json_integer_value(json_object_get(job, key));
}

/* Of the first that lives: its record is behind while it runs. */
static void
show_progress(struct waiting *waiting, const json_t *result)
{
	const json_t *job, *jobs = json_object_get(result, "jobs");
	char text[79];
	size_t i;

	json_array_foreach(jobs, i, job)
	{
		json_int_t from = number(job, "started");

		if (!json_is_null(json_object_get(job, "ended")))
			continue;
		if (from == 0)
			from = number(job, "created");
		(void)snprintf(
			text, sizeof(text), "%s %s, %lld s, %lld bytes",
			json_string_value(json_object_get(job, "id")),
			json_string_value(json_object_get(job, "state")),
			(long long)((clock_real_ns() - from) / 1000000000),
			(long long)(number(job, "stdout_bytes") +
				    number(job, "stderr_bytes")));
		show_line(waiting, text);
		return;
	}
}

/* Asks the warden of `record` for all of its world that are waited for. */
static int
ask_world(struct waiting *waiting, const struct job_record *record,
	  struct errmsg *why)
{
	_cleanup_(rpc_client_closep) struct rpc_client *client = NULL;
	_cleanup_(buf_fini) struct buf params = { 0 };
	json_t *result = NULL;
	int ms = step_ms(waiting, record);
	int r = record_connect(&waiting->places, record->row.world, &client,
			       why);

	if (r < 0)
		return r;
	jsonw_begin(&params, '{');
	jsonw_key(&params, "ids");
	jsonw_begin(&params, '[');
	for (int i = 0; i < waiting->count; i++) {
		const struct job_record *one = &waiting->records[i];
		char id[JOBS_ID_MAX];

		if (has_ended(one) ||
		    strcmp(one->row.world, record->row.world) != 0)
			continue;
		jobs_id_text(one->row.id, id);
		jsonw_text(&params, id);
	}
	jsonw_end(&params, ']');
	jsonw_pair_bool(&params, "any", waiting->options->any);
	jsonw_pair_int(&params, "timeout_ms", ms);
	jsonw_end(&params, '}');
	r = job_ask(client, RPC_JOB_WAIT, &params, ms + ASK_TIMEOUT_MS, &result,
		    why);
	if (r == 0 && waiting->shows)
		show_progress(waiting, result);
	json_decref(result);
	return r;
}

static int
reload_all(struct waiting *waiting, struct errmsg *why)
{
	int r = 0;

	for (int i = 0; r == 0 && i < waiting->count; i++)
		if (!has_ended(&waiting->records[i]))
			r = job_reload(&waiting->places, &waiting->records[i],
				       why);
	return r;
}

/* -ETIMEDOUT: its own time is over. */
static int
wait_for_all(struct waiting *waiting, struct errmsg *why)
{
	int r = 0;

	while (r == 0 && !is_done(waiting)) {
		const struct job_record *record =
			&waiting->records[first(waiting, false)];

		if (waiting->until_ns && clock_mono_ns() >= waiting->until_ns)
			return -ETIMEDOUT;
		r = ask_world(waiting, record, why);
		/* Its warden is going: its record will tell. */
		if (record_is_nobody(r) || r == -ENODATA) {
			(void)poll(NULL, 0, LOST_PAUSE_MS);
			r = 0;
		}
		if (r == 0)
			r = reload_all(waiting, why);
	}
	return r;
}

static int
conclude(const struct waiting *waiting, bool timed_out)
{
	const struct job_options *options = waiting->options;
	int status = 0, one;

	for (int i = 0; i < waiting->count; i++) {
		const struct store_job *row = &waiting->records[i].row;

		if (options->any && !timed_out && i != first(waiting, true))
			continue;
		if (!options->common.quiet || options->common.json)
			(void)job_print(options, row, waiting->count > 1);
		one = jobs_row_exit(row);
		if (status == 0 && one > 0)
			status = one;
	}
	return timed_out ? RECORD_EXIT_TIMEOUT : status;
}

int
job_wait(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(waiting_fini) struct waiting waiting = { .options = options };
	struct errmsg why = { "" };
	int r;

	waiting.records = calloc((size_t)argc, sizeof(*waiting.records));
	r = waiting.records ? record_places_open(&waiting.places, &why)
			    : errmsg_set(&why, -ENOMEM, "out of memory");
	for (int i = 0; r == 0 && i < argc; i++) {
		waiting.count = i + 1;
		r = job_find(&waiting.places, argv[i], &waiting.records[i],
			     &why);
	}
	if (r < 0)
		return record_fail(&why);
	if (options->timeout_ms)
		waiting.until_ns = clock_mono_ns() +
				   (int64_t)options->timeout_ms * 1000000;
	waiting.shows = !options->common.quiet && isatty(STDERR_FILENO);
	r = wait_for_all(&waiting, &why);
	if (waiting.shown > 0)
		show_line(&waiting, "");
	return r < 0 && r != -ETIMEDOUT ? record_fail(&why)
					: conclude(&waiting, r == -ETIMEDOUT);
}

/* ---- kill ---- */

static int
parse_signal(const char *text, int *ret_signal, struct errmsg *why)
{
	uint64_t number;

	*ret_signal = SIGTERM;
	if (!text)
		return 0;
	if (units_number(text, &number) == 0 && number > 0 &&
	    number <= (uint64_t)SIGRTMAX) {
		*ret_signal = (int)number;
		return 0;
	}
	if (strncasecmp(text, "SIG", 3) == 0)
		text += 3;
	for (int i = 1; i < NSIG; i++) {
		const char *name = sigabbrev_np(i);

		if (!name || strcasecmp(name, text) != 0)
			continue;
		*ret_signal = i;
		return 0;
	}
	return errmsg_set(why, -EINVAL, "--signal takes a name or a number");
}

static int
kill_one(struct record_places *places, const struct job_options *options,
	 const char *id, int signal, struct errmsg *why)
{
	_cleanup_(job_record_fini) struct job_record record = { 0 };
	_cleanup_(rpc_client_closep) struct rpc_client *client = NULL;
	_cleanup_(buf_fini) struct buf params = { 0 };
	uint64_t grace =
		options->grace_ms != UINT64_MAX ? options->grace_ms : GRACE_MS;
	int r = job_find(places, id, &record, why);

	if (r == 0)
		r = record_connect(places, record.row.world, &client, why);
	if (r == 0) {
		job_begin_params(&params, &record.row);
		jsonw_pair_int(&params, "signal", signal);
		jsonw_pair_uint(&params, "grace_ms", grace);
		jsonw_end(&params, '}');
		r = job_ask(client, RPC_JOB_KILL, &params,
			    (int)grace + KILL_MARGIN_MS, NULL, why);
	}
	/* With its world all of it went. */
	if (record_is_nobody(r) && record.row.id != 0)
		r = record.row.ended_ns > 0
			    ? errmsg_set(why, -EALREADY, "job %s has ended", id)
			    : 0;
	if (r < 0)
		return r;
	r = job_reload(places, &record, why);
	if (r == 0 && !options->common.quiet)
		(void)job_print(options, &record.row, false);
	return r;
}

int
job_kill(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	struct errmsg why = { "" };
	int signal, status = 0;
	int r = parse_signal(options->signal, &signal, &why);

	if (r == 0)
		r = record_places_open(&places, &why);
	if (r < 0)
		return record_fail(&why);
	for (int i = 0; i < argc; i++)
		if (kill_one(&places, options, argv[i], signal, &why) < 0)
			status = record_fail(&why);
	return status;
}

/* ---- rm, prune ---- */

/* By its warden, which knows it, where it lives; else here. */
static int
remove_one(struct record_places *places, const struct store_job *row,
	   struct errmsg *why)
{
	_cleanup_(rpc_client_closep) struct rpc_client *client = NULL;
	_cleanup_(buf_fini) struct buf params = { 0 };
	char id[JOBS_ID_MAX];
	unsigned int tries = 0;
	int r = record_connect(places, row->world, &client, why);

	jobs_id_text(row->id, id);
	if (r == 0) {
		jsonw_begin(&params, '{');
		jsonw_key(&params, "ids");
		jsonw_begin(&params, '[');
		jsonw_text(&params, id);
		jsonw_end(&params, ']');
		jsonw_end(&params, '}');
		r = job_ask(client, RPC_JOB_RM, &params, ASK_TIMEOUT_MS, NULL,
			    why);
	}
	if (!record_is_nobody(r) && r != -ENODATA)
		return r;
	if (row->ended_ns == 0)
		return errmsg_set(why, -EBUSY, "job %s has not ended", id);
	do {
		r = jobs_remove_row(places->store, places->state, row);
	} while (record_again(r, &tries));
	return r < 0 ? errmsg_set(why, r, "cannot remove job %s: %s", id,
				  strerror(-r))
		     : 0;
}

int
job_rm(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	struct errmsg why = { "" };
	int status = 0;

	if (record_places_open(&places, &why) < 0)
		return record_fail(&why);
	for (int i = 0; i < argc; i++) {
		_cleanup_(job_record_fini) struct job_record record = { 0 };
		int r = job_find(&places, argv[i], &record, &why);

		if (r == 0)
			r = remove_one(&places, &record.row, &why);
		if (r < 0)
			status = record_fail(&why);
		else if (options->common.json)
			printf("{\"id\":\"%s\",\"removed\":true}\n", argv[i]);
	}
	return status;
}

struct pruning {
	struct store_job *rows; /* id, world and ended alone */
	size_t count;
	uint64_t keep;
};

static int
note_ended(const struct store_job *row, void *data)
{
	struct pruning *pruning = data;
	struct store_job *rows;

	if (pruning->keep > 0) {
		pruning->keep--;
		return 0;
	}
	rows = realloc(pruning->rows, (pruning->count + 1) * sizeof(*rows));
	if (!rows)
		return -ENOMEM;
	pruning->rows = rows;
	rows[pruning->count] = (struct store_job){
		.id = row->id,
		.world = strdup(row->world),
		.ended_ns = row->ended_ns,
	};
	return rows[pruning->count++].world ? 0 : -ENOMEM;
}

int
job_prune(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	struct pruning pruning = { .keep = options->keep };
	struct store_jobs_query query = { .ended = true,
					  .newest_first = true,
					  .light = true };
	struct errmsg why = { "" };
	size_t removed = 0;
	int r = record_places_open(&places, &why), status = 0;

	(void)argc;
	(void)argv;
	if (r == 0)
		r = job_query_init(options, &query, &why);
	if (r == 0 && places.store)
		r = store_each_job(places.store, &query, note_ended, &pruning);
	if (r < 0)
		status = record_fail(&why);
	for (size_t i = 0; i < pruning.count; i++) {
		struct store_job *row = &pruning.rows[i];

		/* What a job left behind may live: that one stays. */
		removed += r == 0 && remove_one(&places, row, &why) == 0;
		free((char *)row->world);
	}
	free(pruning.rows);
	job_query_fini(&query);
	if (status == 0 && options->common.json)
		printf("{\"removed\":%zu}\n", removed);
	else if (status == 0 && !options->common.quiet)
		printf("%zu removed\n", removed);
	return status;
}
