/* SPDX-License-Identifier: MIT */

#include "cli/job.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/show.h"
#include "jobs/state.h"
#include "warden/jobs.h"

/* How long a keeper may take to save what its warden left. */
#define KEEPER_NS 10000000000LL

/* ---- records ---- */

void
job_record_fini(struct job_record *record)
{
	record_free_texts(record->texts, JOB_TEXTS);
	*record = (struct job_record){ 0 };
}

static int
copy(const struct store_job *row, void *data)
{
	struct job_record *record = data;
	struct store_job *to = &record->row;
	const char **const texts[JOB_TEXTS] = {
		&to->world, &to->workspace, &to->session,
		&to->token, &to->name,	    &to->label,
		&to->spec,  &to->state,	    &to->reason,
	};
	int r;

	job_record_fini(record);
	*to = *row;
	r = record_own_texts(texts, record->texts, JOB_TEXTS);
	return r < 0 ? r : 1;
}

static int
load(struct record_places *places, uint64_t id, struct job_record *record,
     struct errmsg *why)
{
	const struct store_jobs_query query = { .id = id };
	int r = places->store
			? store_each_job(places->store, &query, copy, record)
			: 0;

	if (r == 0)
		return errmsg_set(why, -ENOENT, "no job j%llu",
				  (unsigned long long)id);
	return r < 0 ? errmsg_set(why, r, "cannot read the record of j%llu: %s",
				  (unsigned long long)id, strerror(-r))
		     : 0;
}

int
job_reload(struct record_places *places, struct job_record *record,
	   struct errmsg *why)
{
	int64_t until = clock_mono_ns() + KEEPER_NS;
	uint64_t id = record->row.id;
	unsigned int busy = 0;
	int r = load(places, id, record, why);

	/* A dead warden's keeper is given the time to save what is left. */
	while (r == 0 && (record->row.ended_ns == 0 ||
			  (record->row.flags & STORE_JOB_OUTPUT_OPEN))) {
		r = jobs_settle_dead(places->store, places->state, id, &busy);
		if (r < 0)
			return errmsg_set(why, r, "cannot settle j%llu: %s",
					  (unsigned long long)id, strerror(-r));
		r = load(places, id, record, why);
		if (busy == 0 || clock_mono_ns() > until || r < 0)
			break;
		/* Alive, which is what most that are busy are. */
		if (!jobs_owner_is_dead(places->state, record->row.world))
			break;
		(void)poll(NULL, 0, 5);
	}
	return r;
}

int
job_find(struct record_places *places, const char *id,
	 struct job_record *ret_record, struct errmsg *why)
{
	uint64_t number;

	if (jobs_id_parse(id, &number) < 0)
		return errmsg_set(why, -EINVAL,
				  "'%s' is no id of a job, such as j3", id);
	ret_record->row.id = number;
	return job_reload(places, ret_record, why);
}

/* ---- wardens ---- */

static int
take_answer(struct rpc_message *message, json_t **ret_result,
	    struct errmsg *why)
{
	const json_t *data, *error = message->error;
	const char *code, *text;

	if (message->kind == RPC_RESPONSE) {
		if (ret_result)
			*ret_result = json_deep_copy(message->result);
		return ret_result && !*ret_result ? -ENOMEM : 0;
	}
	data = json_object_get(error, "data");
	code = json_string_value(json_object_get(data, "code"));
	text = json_string_value(json_object_get(error, "message"));
	(void)errmsg_set(why, 0, "%s", text ? text : "the warden refused");
	if (code && strcmp(code, JOB_NOT_FOUND) == 0)
		return -ENODATA;
	return code && strcmp(code, JOB_NOT_RUNNING) == 0 ? -EALREADY
							  : -EREMOTEIO;
}

int
job_ask(struct rpc_client *client, enum rpc_method method,
	const struct buf *params, int timeout_ms, json_t **ret_result,
	struct errmsg *why)
{
	struct rpc_message message = { 0 };
	uint64_t id;
	int r = buf_error(params);

	if (r == 0)
		r = rpc_client_send(client, method, params, NULL, 0, &id);
	while (r == 0) {
		bool ours;

		r = rpc_client_next(client, timeout_ms, &message);
		if (r == 0)
			return errmsg_set(why, -ETIMEDOUT,
					  "the warden does not answer");
		if (r < 0)
			break;
		ours = rpc_client_answers(&message, id);
		r = ours ? take_answer(&message, ret_result, why) : 0;
		rpc_message_fini(&message);
		if (ours)
			return r;
	}
	return errmsg_set(why, r, "%s: %s", rpc_method_name(method),
			  r == -ECONNRESET ? "the warden has gone"
					   : strerror(-r));
}

void
job_begin_params(struct buf *params, const struct store_job *row)
{
	char id[JOBS_ID_MAX];

	jobs_id_text(row->id, id);
	jsonw_begin(params, '{');
	jsonw_pair(params, "id", id);
}

/* ---- words ---- */

int
job_print(const struct job_options *options, const struct store_job *row,
	  bool with_id)
{
	_cleanup_(buf_fini) struct buf out = { 0 };
	char line[512], prefix[JOBS_ID_MAX + 1] = "";

	if (options->common.json) {
		jobs_row_json(row, &out);
		return cli_print_json(&out) < 0 ? RECORD_EXIT_FAILED : 0;
	}
	jobs_row_line(row, line, sizeof(line));
	if (with_id)
		(void)snprintf(prefix, sizeof(prefix), "j%llu ",
			       (unsigned long long)row->id);
	return show_line(prefix, line);
}
