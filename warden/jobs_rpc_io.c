/* SPDX-License-Identifier: MIT */

/*
 * job.out and job.write: the bytes of a job, in and out.
 *
 * Output is read on the pool, from the files alone: a hundred readers cost the
 * loop a hundred answers and no more.
 */

#include "warden/jobs_rpc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "warden/jobs_priv.h"
#include "warden/stream_json.h"

#define OUT_DEFAULT 65536
#define WAIT_MAX_MS 600000

/* ---- job.out ---- */

struct reading {
	struct job_read read;
	char *path;
	char line[512];
	const char *state;
	bool final;
	struct output_cursor cursor;
};

static void
put_view(const struct reading *reading, const struct segments_view *view,
	 const unsigned char *bytes, struct buf *out)
{
	jsonw_begin(out, '{');
	jsonw_pair(out, "state", reading->state);
	jsonw_pair(out, "status", reading->line);
	jsonw_pair(out, "stream", output_stream_name(reading->read.stream));
	jsonw_pair_bool(out, "final", reading->final);
	stream_put_view(view, out);
	stream_put_data(bytes, view->len, reading->read.base64, out);
	jsonw_end(out, '}');
}

static int
read_output(struct reading *reading, unsigned char *bytes,
	    struct segments_view *view)
{
	_cleanup_(output_freep) struct output *output = NULL;
	_cleanup_(closep) int dir = open(
		reading->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct job_read *read = &reading->read;
	uint64_t end;
	int r;

	if (dir < 0)
		return -errno;
	r = output_open(dir, NULL, &output);
	if (r < 0)
		return r;
	end = output_end(output, read->stream);
	if (read->from_end)
		read->offset = read->offset > end ? 0 : end - read->offset;
	reading->cursor.stream = read->stream;
	r = output_read(output, &reading->cursor, read->offset, bytes,
			(size_t)read->max, view);
	if (r == 0 && !read->base64 &&
	    (!reading->final || view->next < view->end))
		stream_cut_text(bytes, view);
	return r;
}

static int
run_out(struct call *call)
{
	struct reading *reading = call->data;
	_cleanup_(freep) unsigned char *bytes =
		malloc((size_t)reading->read.max);
	struct segments_view view = { 0 };
	int r = bytes ? read_output(reading, bytes, &view) : -ENOMEM;

	if (r == -ERANGE)
		return rpc_fault_set(&call->fault, RPC_FAILED, JOB_BAD_OFFSET,
				     "offset %llu is beyond the end",
				     (unsigned long long)reading->read.offset);
	if (r == -ENOENT)
		return rpc_fault_set(&call->fault, RPC_FAILED, JOB_NOT_FOUND,
				     "the job was removed");
	if (r == 0)
		put_view(reading, &view, bytes, &call->json);
	return r;
}

static void
done_out(struct call *call)
{
	struct reading *reading = call->data;

	output_cursor_fini(&reading->cursor);
	free(reading->path);
	free(reading);
}

int
jobs_rpc_read(struct client *client, const struct rpc_id *id,
	      const struct job_read *read)
{
	struct warden *warden = client->server->warden;
	struct reading *reading = calloc(1, sizeof(*reading));
	struct store_job row = { .state = "removed" };
	struct call *call = NULL;
	uint64_t end;
	int r = -ENOMEM;

	if (!reading)
		return r;
	reading->read = *read;
	reading->final = true;
	if (jobs_get_row(warden, read->id, &row) == 0)
		jobs_row_line(&row, reading->line, sizeof(reading->line));
	reading->state = row.state;
	(void)jobs_output_end(warden, read->id, read->stream, &end,
			      &reading->final);
	reading->path = jobs_dir_path(warden->places.state, warden->opt.world,
				      read->id);
	if (reading->path)
		r = call_new(client, id, run_out, &call);
	if (r < 0) {
		free(reading->path);
		free(reading);
		return r;
	}
	call->data = reading;
	call->done = done_out;
	return call_start(call);
}

static int
take_out(const struct rpc_message *message, struct job_read *read,
	 uint64_t *ret_wait_ms, struct rpc_fault *fault)
{
	const char *id = NULL, *stream = "both", *encoding = "text";
	int64_t offset = 0, max = OUT_DEFAULT, wait = 0;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &id },
		{ "stream", RPC_STRING, false, &stream },
		{ "offset", RPC_INTEGER, false, &offset },
		{ "max", RPC_INTEGER, false, &max },
		{ "wait_ms", RPC_INTEGER, false, &wait },
		{ "encoding", RPC_STRING, false, &encoding },
	};
	int r = rpc_params(message, fields, 6, fault);

	if (r < 0)
		return r;
	if (jobs_id_parse(id, &read->id) < 0 ||
	    output_stream_parse(stream, &read->stream) < 0 || max < 1 ||
	    max > LIMIT_JOB_OUT || wait < 0 || wait > WAIT_MAX_MS ||
	    (strcmp(encoding, "text") != 0 && strcmp(encoding, "base64") != 0))
		return rpc_fault_set(
			fault, RPC_INVALID_PARAMS, NULL,
			"id is one of a job, stream 'stdout', 'stderr' or "
			"'both', max 1 to %d, wait_ms 0 to %d, encoding 'text' "
			"or 'base64'",
			LIMIT_JOB_OUT, WAIT_MAX_MS);
	/* One character at least. */
	read->max = max < 4 ? 4 : (uint64_t)max;
	read->from_end = offset < 0;
	read->offset = (uint64_t)(offset < 0 ? -offset : offset);
	read->base64 = strcmp(encoding, "base64") == 0;
	*ret_wait_ms = (uint64_t)wait;
	return 0;
}

int
jobs_rpc_out(struct client *client, const struct rpc_message *message,
	     struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct warden *warden = client->server->warden;
	struct job_read read = { 0 };
	struct job_wait *wait = NULL;
	uint64_t wait_ms = 0, end = 0;
	bool final = true;
	int r = jobs_rpc_watch(warden);

	(void)ret_json;
	if (r == 0)
		r = take_out(message, &read, &wait_ms, ret_fault);
	if (r < 0)
		return r;
	r = jobs_output_end(warden, read.id, read.stream, &end, &final);
	if (r < 0)
		return rpc_fault_set(ret_fault, RPC_FAILED, JOB_NOT_FOUND,
				     "no job j%llu in this world",
				     (unsigned long long)read.id);
	if (wait_ms == 0 || read.from_end || final || read.offset != end)
		return jobs_rpc_read(client, &message->id, &read);
	r = job_wait_new(client, message, JOB_WAIT_MORE, NULL, 0, &wait);
	if (r < 0)
		return r;
	wait->read = read;
	job_wait_limit(wait, wait_ms);
	return CALL_LATER;
}

/* ---- job.write ---- */

int
jobs_rpc_write(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault)
{
	_cleanup_(buf_fini) struct buf bytes = { 0 };
	const char *id = NULL, *data = "", *encoding = "text";
	bool end = false;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &id },
		{ "data", RPC_STRING, false, &data },
		{ "encoding", RPC_STRING, false, &encoding },
		{ "close", RPC_BOOLEAN, false, &end },
	};
	size_t taken = 0;
	uint64_t number = 0;
	int r = jobs_rpc_watch(client->server->warden);

	if (r == 0)
		r = rpc_params(message, fields, 4, ret_fault);
	if (r == 0 && jobs_id_parse(id, &number) < 0)
		r = rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				  "id: an id such as j3");
	if (r == 0)
		r = stream_take_data(data, encoding, &bytes, ret_fault);
	if (r < 0)
		return r;
	r = jobs_write(client->server->warden, number, bytes.data, bytes.len,
		       end, &taken);
	if (r == -ENOENT)
		return rpc_fault_set(ret_fault, RPC_FAILED, JOB_NOT_FOUND,
				     "no job '%s' in this world", id);
	if (r == -EALREADY || r == -EPIPE)
		return rpc_fault_set(ret_fault, RPC_FAILED, JOB_NOT_RUNNING,
				     r == -EPIPE
					     ? "job %s takes no input, or no "
					       "more: it was started without "
					       "stdin 'pipe', or has closed it"
					     : "job %s has ended",
				     id);
	if (r < 0)
		return r;
	jsonw_begin(ret_json, '{');
	jsonw_pair_uint(ret_json, "taken", taken);
	jsonw_end(ret_json, '}');
	return 0;
}
