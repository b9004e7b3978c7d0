/* SPDX-License-Identifier: MIT */

/*
 * pale job out: the bytes are read where they lie, and nothing but bytes goes
 * to stdout.  A warden is asked only when there will be more: its answer to
 * job.out is the sign that there is, or that there will be none.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/job.h"
#include "cli/reading.h"
#include "jobs/output.h"
#include "warden/stream_json.h"

#define MARGIN_MS 10000
#define PAUSE_MS  20

struct reader {
	struct reading reading;
	const struct job_options *options;
	struct record_places places;
	struct job_record record;
	struct rpc_client *client; /* NULL: nobody to ask */
	enum output_stream stream;
	char *path;
	struct output *output; /* while it is read */
	struct output_cursor cursor;
};

static void
reader_fini(struct reader *reader)
{
	reading_fini(&reader->reading);
	record_places_fini(&reader->places);
	job_record_fini(&reader->record);
	rpc_client_close(reader->client);
	free(reader->path);
}

/* ---- what there is ---- */

static int
open_output(struct reading *reading, struct errmsg *why)
{
	struct reader *reader = (struct reader *)reading;
	_cleanup_(closep) int dir = open(
		reader->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = dir < 0 ? -errno : output_open(dir, NULL, &reader->output);

	/* A job that never began has written nothing. */
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return errmsg_set(why, r, "cannot open '%s': %s", reader->path,
				  strerror(-r));
	reader->cursor = (struct output_cursor){ .stream = reader->stream };
	return 1;
}

static void
close_output(struct reading *reading)
{
	struct reader *reader = (struct reader *)reading;

	output_cursor_fini(&reader->cursor);
	reader->output = output_free(reader->output);
}

static int
read_output(struct reading *reading, size_t size,
	    struct segments_view *ret_view)
{
	struct reader *reader = (struct reader *)reading;

	return output_read(reader->output, &reader->cursor, reading->offset,
			   reading->bytes, size, ret_view);
}

static uint64_t
end_of_output(const struct reading *reading)
{
	const struct reader *reader = (const struct reader *)reading;

	return output_end(reader->output, reader->stream);
}

static int
print_json(const struct reader *reader, const struct segments_view *view)
{
	_cleanup_(buf_fini) struct buf out = { 0 };

	jsonw_begin(&out, '{');
	jsonw_pair(&out, "stream", output_stream_name(reader->stream));
	jsonw_pair_uint(&out, "offset", view->next - view->len);
	jsonw_pair_uint(&out, "next", view->next);
	jsonw_pair_uint(&out, "end", view->end);
	stream_put_lost(view, &out);
	jsonw_key(&out, "data");
	jsonw_bytes(&out, reader->reading.bytes, view->len);
	jsonw_end(&out, '}');
	return cli_print_json(&out);
}

static int
put(const struct reading *reading, const struct segments_view *view)
{
	if (reading->common->json)
		return print_json((const struct reader *)reading, view);
	return fd_write_all(STDOUT_FILENO, reading->bytes, view->len);
}

/* ---- waiting for more ---- */

static bool
is_final(const struct reader *reader)
{
	return reader->record.row.ended_ns > 0 &&
	       !(reader->record.row.flags & STORE_JOB_OUTPUT_OPEN);
}

/* Without a warden, the record says how it ended. */
static int
await(struct reading *reading, uint64_t wait_ms, bool *ret_final,
      struct errmsg *why)
{
	struct reader *reader = (struct reader *)reading;
	_cleanup_(buf_fini) struct buf params = { 0 };
	json_t *result = NULL;
	int r;

	*ret_final = is_final(reader);
	if (*ret_final)
		return 0;
	r = reader->client
		    ? 0
		    : record_connect(&reader->places, reader->record.row.world,
				     &reader->client, why);
	if (r == 0) {
		job_begin_params(&params, &reader->record.row);
		jsonw_pair(&params, "stream",
			   output_stream_name(reader->stream));
		jsonw_pair_uint(&params, "offset", reading->offset);
		jsonw_pair_uint(&params, "max", 4);
		jsonw_pair_uint(&params, "wait_ms", wait_ms);
		jsonw_end(&params, '}');
		r = job_ask(reader->client, RPC_JOB_OUT, &params,
			    (int)wait_ms + MARGIN_MS, &result, why);
	}
	if (r == 0) {
		*ret_final = reading_is_final(reading, result);
		json_decref(result);
		return 0;
	}
	if (!record_is_nobody(r) && r != -ENODATA)
		return r;
	reader->client = rpc_client_close(reader->client);
	r = job_reload(&reader->places, &reader->record, why);
	/* Nobody lives who would add to it. */
	*ret_final =
		r == -ENOENT || (r == 0 && reader->record.row.ended_ns > 0);
	return r == -ENOENT ? 0 : r;
}

/* ---- the verb ---- */

static const struct reading_kind output_kind = {
	.position = "offset",
	.pause_ms = PAUSE_MS,
	.open = open_output,
	.close = close_output,
	.read = read_output,
	.end = end_of_output,
	.put = put,
	.await = await,
};

static int
parse_offset(struct reader *reader, const char *text, struct errmsg *why)
{
	struct reading *reading = &reader->reading;
	uint64_t value, end = 0;
	bool back;
	int r = reading_parse(reading, text, &value, &back, why);

	if (r < 0)
		return r;
	if (back) {
		if (open_output(reading, NULL) > 0) {
			end = end_of_output(reading);
			close_output(reading);
		}
		value = value > end ? 0 : end - value;
	}
	reading->offset = value;
	return 0;
}

static int
prepare(struct reader *reader, const char *id, struct errmsg *why)
{
	const struct job_options *options = reader->options;
	const char *stream = options->stream ? options->stream : "both";
	int r;

	if (output_stream_parse(stream, &reader->stream) < 0)
		return errmsg_set(why, -EINVAL,
				  "--stream takes stdout, stderr or both");
	r = record_places_open(&reader->places, why);
	if (r == 0)
		r = job_find(&reader->places, id, &reader->record, why);
	if (r < 0)
		return r;
	reader->path =
		jobs_dir_path(reader->places.state, reader->record.row.world,
			      reader->record.row.id);
	if (!reader->path)
		return errmsg_set(why, -ENOMEM, "out of memory");
	r = reading_init(&reader->reading, options->max, why);
	if (r < 0 || !options->offset)
		return r;
	return parse_offset(reader, options->offset, why);
}

int
job_out(const struct job_options *options, int argc, char **argv)
{
	_cleanup_(reader_fini) struct reader reader = {
		.reading = { .kind = &output_kind, .common = &options->common },
		.options = options,
	};
	struct errmsg why = { "" };
	int r = prepare(&reader, argv[0], &why);

	(void)argc;
	if (r == 0)
		r = reading_run(&reader.reading, options->follow,
				options->wait_ms, &why);
	return r < 0 ? record_fail(&why) : 0;
}
