/* SPDX-License-Identifier: MIT */

/* pale job start, pale job write: what goes in. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/job.h"
#include "cli/show.h"
#include "cli/standing.h"

/* A start may wait for a busy store. */
#define START_TIMEOUT_MS 60000
#define WRITE_TIMEOUT_MS 30000
#define WRITE_CHUNK	 (48 * 1024)
#define FULL_PAUSE_MS	 20

/* Where to find what comes as stdin; −1 in *ret_fd: nothing does. */
static int
open_input(const struct job_options *options, const char **ret_kind,
	   int *ret_fd, struct errmsg *why)
{
	*ret_kind = "null";
	if (!options->input)
		return 0;
	if (strcmp(options->input, "-") == 0) {
		*ret_kind = "pipe";
		return 0;
	}
	*ret_kind = "file";
	*ret_fd = open(options->input, O_RDONLY | O_CLOEXEC);
	if (*ret_fd < 0)
		return errmsg_set(why, -errno, "cannot open '%s': %s",
				  options->input, strerror(errno));
	return 0;
}

static int
put_request(const struct job_options *options, int argc, char **argv,
	    const char *kind, struct buf *out, struct errmsg *why)
{
	int r = command_begin_params(&options->command, argc, argv, out, why);

	if (r < 0)
		return r;
	jsonw_pair(out, "env_profile",
		   options->profile ? options->profile : "plain");
	jsonw_pair(out, "name", options->name);
	jsonw_pair(out, "client_token", options->token);
	jsonw_pair(out, "stdin", kind);
	jsonw_pair(out, "after", options->after);
	jsonw_pair_bool(out, "merge", options->merge);
	jsonw_pair_bool(out, "queue", options->queue);
	jsonw_pair_uint(out, "timeout_ms",
			options->policy.request.limits.timeout_ms);
	jsonw_pair_uint(out, "retry", options->retry);
	jsonw_end(out, '}');
	return buf_error(out);
}

static int
ask(struct rpc_client *client, const struct buf *params, int fd,
    json_t **ret_result, struct errmsg *why)
{
	struct rpc_message message = { 0 };
	const json_t *text;
	uint64_t id;
	int r;

	r = rpc_client_send(client, RPC_JOB_START, params, &fd, fd >= 0, &id);
	do {
		if (r == 0)
			r = rpc_client_next(client, START_TIMEOUT_MS, &message);
		if (r == 0)
			r = -ETIMEDOUT;
		if (r < 0)
			return errmsg_set(why, r, "cannot start the job: %s",
					  r == -ECONNRESET
						  ? "the warden has gone"
						  : strerror(-r));
		r = rpc_client_answers(&message, id);
		if (r && message.kind == RPC_RESPONSE) {
			*ret_result = json_deep_copy(message.result);
		} else if (r) {
			text = json_object_get(message.error, "message");
			(void)errmsg_set(why, 0, "%s",
					 json_string_value(text)
						 ?: "the warden refused");
		}
		rpc_message_fini(&message);
	} while (!r);
	return *ret_result ? 0 : -EREMOTEIO;
}

int
job_start(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	_cleanup_(closep) int fd = -1;
	const struct standing_request request = {
		.request = &options->policy.request,
		.world = options->world,
		.make = true,
	};
	struct standing standing = { .sock = -1 };
	struct errmsg why = { "" };
	json_t *result = NULL;
	const char *kind;
	int r, status;

	r = open_input(options, &kind, &fd, &why);
	if (r == 0)
		r = put_request(options, argc, argv, kind, &params, &why);
	if (r == 0)
		r = standing_connect(&request, &standing, &why);
	if (r == 0)
		r = ask(standing.client, &params, fd, &result, &why);
	status = r < 0 ? record_fail(&why)
		       : show_started(&options->common, result);
	json_decref(result);
	standing_fini(&standing);
	return status;
}

/* ---- write ---- */

struct chunk {
	const char *bytes;
	size_t len;
	bool end; /* nothing more will come */
};

static int
send_some(struct rpc_client *client, const struct store_job *row,
	  const struct chunk *chunk, size_t *ret_taken, struct errmsg *why)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	json_t *result = NULL;
	int r;

	job_begin_params(&params, row);
	jsonw_key(&params, "data");
	jobs_put_base64(&params, (const unsigned char *)chunk->bytes,
			chunk->len);
	jsonw_pair(&params, "encoding", "base64");
	jsonw_pair_bool(&params, "close", chunk->end);
	jsonw_end(&params, '}');
	r = job_ask(client, RPC_JOB_WRITE, &params, WRITE_TIMEOUT_MS, &result,
		    why);
	if (r == 0)
		*ret_taken = (size_t)json_integer_value(
			json_object_get(result, "taken"));
	json_decref(result);
	return r;
}

/* All of it, at the pace of the job. */
static int
feed(struct rpc_client *client, const struct store_job *row, bool close_it,
     uint64_t *ret_written, struct errmsg *why)
{
	static char bytes[WRITE_CHUNK];
	const struct chunk last = { "", 0, true };
	size_t taken;
	ssize_t n;
	int r = 0;

	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0) {
		for (size_t at = 0; at < (size_t)n; at += taken) {
			taken = 0;
			const struct chunk chunk = { bytes + at, (size_t)n - at,
						     false };

			r = send_some(client, row, &chunk, &taken, why);
			if (r < 0)
				return r;
			*ret_written += taken;
			if (taken == 0)
				(void)poll(NULL, 0, FULL_PAUSE_MS);
		}
	}
	if (n < 0)
		return errmsg_set(why, -errno, "cannot read stdin: %s",
				  strerror(errno));
	return close_it ? send_some(client, row, &last, &taken, why) : 0;
}

int
job_write(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	_cleanup_(job_record_fini) struct job_record record = { 0 };
	_cleanup_(rpc_client_closep) struct rpc_client *client = NULL;
	_cleanup_(buf_fini) struct buf out = { 0 };
	struct errmsg why = { "" };
	uint64_t written = 0;
	int r;

	(void)argc;
	r = record_places_open(&places, &why);
	if (r == 0)
		r = job_find(&places, argv[0], &record, &why);
	if (r == 0 && record.row.ended_ns > 0)
		r = errmsg_set(&why, -EALREADY, "job %s has ended", argv[0]);
	if (r == 0)
		r = record_connect(&places, record.row.world, &client, &why);
	if (r == 0)
		r = feed(client, &record.row, options->close, &written, &why);
	if (r < 0)
		return record_fail(&why);
	if (!options->common.json)
		return 0;
	job_begin_params(&out, &record.row);
	jsonw_pair_uint(&out, "written", written);
	jsonw_pair_bool(&out, "closed", options->close);
	jsonw_end(&out, '}');
	return cli_print_json(&out) < 0 ? RECORD_EXIT_FAILED : 0;
}
