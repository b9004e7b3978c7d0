/* SPDX-License-Identifier: MIT */

/*
 * pale term send, read, screen, lines: what goes in and what comes out.
 *
 * Output is read where it lies, and nothing but bytes goes to stdout.  A warden
 * is asked only when there will be more.
 */

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/reading.h"
#include "cli/term.h"
#include "pty/plain.h"
#include "warden/jobs_row.h"
#include "warden/stream_json.h"

#define SEND_CHUNK    (48 * 1024)
#define FULL_PAUSE_MS 10
#define MARGIN_MS     10000

/* ---- send ---- */

struct sending {
	const struct term_options *options;
	struct rpc_client *client;
	struct term_record *record;
	uint64_t taken, cursor;
	bool known; /* the cursor is */
};

static int
send_some(struct sending *sending, const char *bytes, size_t len,
	  size_t *ret_taken, struct errmsg *why)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	json_t *result = NULL;
	int r;

	term_begin(&params, sending->record);
	jsonw_key(&params, "data");
	jobs_put_base64(&params, (const unsigned char *)bytes, len);
	jsonw_pair(&params, "encoding", "base64");
	if (sending->options->from_stdin)
		jsonw_pair_bool(&params, "paste", false);
	jsonw_end(&params, '}');
	r = rpc_client_call(sending->client, RPC_TERM_SEND, &params,
			    TERM_ASK_MS, &result, why);
	if (r == 0) {
		*ret_taken = (size_t)json_integer_value(
			json_object_get(result, "taken"));
		if (!sending->known)
			sending->cursor = (uint64_t)json_integer_value(
				json_object_get(result, "cursor"));
		sending->known = true;
		sending->taken += *ret_taken;
	}
	json_decref(result);
	return r;
}

/* All of it, at the pace of the program. */
static int
send_all(struct sending *sending, const char *bytes, size_t len,
	 struct errmsg *why)
{
	size_t taken = 0;
	int r = 0;

	for (size_t at = 0; r == 0 && at < len; at += taken) {
		taken = 0;
		r = send_some(sending, bytes + at, len - at, &taken, why);
		if (r == 0 && taken == 0)
			(void)poll(NULL, 0, FULL_PAUSE_MS);
	}
	return r;
}

static int
send_stdin(struct sending *sending, struct errmsg *why)
{
	static char bytes[SEND_CHUNK];
	ssize_t n;
	int r = 0;

	while (r == 0 && (n = read(STDIN_FILENO, bytes, sizeof(bytes))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errmsg_set(why, -errno, "cannot read stdin: %s",
					  strerror(errno));
		r = send_all(sending, bytes, (size_t)n, why);
	}
	return r;
}

static int
send_words(struct sending *sending, int argc, char **argv, struct errmsg *why)
{
	_cleanup_(buf_fini) struct buf bytes = { 0 };
	size_t taken = 0;
	int r;

	for (int i = 0; i < argc; i++) {
		if (i > 0)
			buf_puts(&bytes, " ");
		buf_puts(&bytes, argv[i]);
	}
	if (sending->options->enter)
		buf_puts(&bytes, "\r");
	r = buf_error(&bytes);
	if (r < 0 || bytes.len == 0)
		return r;
	r = send_some(sending, (const char *)bytes.data, bytes.len, &taken,
		      why);
	if (r == 0 && taken < bytes.len)
		return errmsg_set(why, -ENOBUFS,
				  "%s: %zu of %zu bytes were taken, the "
				  "program does not read the rest now",
				  TERM_INPUT_FULL, taken, bytes.len);
	return r;
}

static int
print_sent(const struct sending *sending)
{
	_cleanup_(buf_fini) struct buf out = { 0 };

	if (!sending->options->common.json)
		return 0;
	term_begin(&out, sending->record);
	jsonw_pair_uint(&out, "cursor", sending->cursor);
	jsonw_pair_uint(&out, "taken", sending->taken);
	jsonw_end(&out, '}');
	return cli_print_json(&out) < 0 ? RECORD_EXIT_FAILED : 0;
}

int
term_send(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(term_record_fini) struct term_record record = { 0 };
	struct sending sending = { .options = options, .record = &record };
	struct errmsg why = { "" };
	int r;

	if (options->keys || options->paste || options->wait)
		return term_send_typed(options, argc, argv);
	r = term_open(options, argv[0], &record, &why);
	if (r == 0)
		r = record_connect(&record.places, record.row.world,
				   &sending.client, &why);
	if (record_is_nobody(r) && record.row.id != 0)
		(void)errmsg_set(&why, r, "terminal %s has ended", argv[0]);
	if (r == 0)
		r = send_words(&sending, argc - 1, argv + 1, &why);
	if (r == 0 && options->from_stdin)
		r = send_stdin(&sending, &why);
	rpc_client_close(sending.client);
	return r < 0 ? record_fail(&why) : print_sent(&sending);
}

/* ---- read ---- */

struct reader {
	struct reading reading;
	struct term_record record;
	int dir;
	struct segments *raw; /* while it is read */
	struct segments_file file;
	struct plain *plain; /* --plain; NULL: bytes */
};

static void
reader_fini(struct reader *reader)
{
	reading_fini(&reader->reading);
	term_record_fini(&reader->record);
	closep(&reader->dir);
	plain_free(reader->plain);
}

static int
open_raw(struct reading *reading, struct errmsg *why)
{
	struct reader *reader = (struct reader *)reading;
	int r;

	if (reader->dir < 0)
		return 0;
	r = segments_open(reader->dir, "raw", NULL, &reader->raw);
	if (r < 0)
		return errmsg_set(why, r, "cannot read the output: %s",
				  strerror(-r));
	return 1;
}

static void
close_raw(struct reading *reading)
{
	struct reader *reader = (struct reader *)reading;

	segments_file_fini(&reader->file);
	reader->raw = segments_free(reader->raw);
}

static int
read_raw(struct reading *reading, size_t size, struct segments_view *ret_view)
{
	struct reader *reader = (struct reader *)reading;

	return segments_read(reader->raw, &reader->file, reading->offset,
			     reading->bytes, size, ret_view);
}

static uint64_t
end_of_raw(const struct reading *reading)
{
	return segments_end(((const struct reader *)reading)->raw);
}

static int
print_json(const struct reader *reader, const struct segments_view *view)
{
	_cleanup_(buf_fini) struct buf out = { 0 }, text = { 0 };

	jsonw_begin(&out, '{');
	stream_put_view(view, &out);
	if (reader->plain) {
		plain_feed(reader->plain, reader->reading.bytes, view->len,
			   &text);
		plain_end(reader->plain, &text);
		stream_put_data(text.data, text.len, false, &out);
	} else {
		stream_put_data(reader->reading.bytes, view->len, false, &out);
	}
	jsonw_end(&out, '}');
	return cli_print_json(&out);
}

/* The lines that are finished; `last`: and what stands on the last one. */
static int
put_plain(const struct reader *reader, size_t len, bool last)
{
	_cleanup_(buf_fini) struct buf text = { 0 };
	int r;

	plain_feed(reader->plain, reader->reading.bytes, len, &text);
	if (last)
		plain_end(reader->plain, &text);
	r = buf_error(&text);
	return r < 0 ? r : fd_write_all(STDOUT_FILENO, text.data, text.len);
}

static int
put(const struct reading *reading, const struct segments_view *view)
{
	const struct reader *reader = (const struct reader *)reading;

	if (reading->common->json)
		return print_json(reader, view);
	if (reader->plain)
		return put_plain(reader, view->len, false);
	return fd_write_all(STDOUT_FILENO, reading->bytes, view->len);
}

static int
await(struct reading *reading, uint64_t wait_ms, bool *ret_final,
      struct errmsg *why)
{
	struct reader *reader = (struct reader *)reading;
	_cleanup_(buf_fini) struct buf params = { 0 };
	json_t *result = NULL;
	int r;

	term_begin(&params, &reader->record);
	jsonw_pair_uint(&params, "cursor", reading->offset);
	jsonw_pair_uint(&params, "max", 4);
	jsonw_pair_uint(&params, "wait_ms", wait_ms);
	r = term_ask(&reader->record, RPC_TERM_READ, &params,
		     (int)wait_ms + MARGIN_MS, &result, why);
	if (r == 0) {
		*ret_final = reading_is_final(reading, result);
		json_decref(result);
		return 0;
	}
	if (!record_is_nobody(r))
		return r;
	/* Nobody lives who would add to it; what is left was saved. */
	r = term_reload_gone(&reader->record, why);
	*ret_final = true;
	return r == -ENOENT ? 0 : r;
}

static const struct reading_kind raw_kind = {
	.position = "cursor",
	.open = open_raw,
	.close = close_raw,
	.read = read_raw,
	.end = end_of_raw,
	.put = put,
	.await = await,
};

static int
parse_cursor(struct reader *reader, const char *text, struct errmsg *why)
{
	struct reading *reading = &reader->reading;
	uint64_t value, end;
	bool back;
	int r = reading_parse(reading, text, &value, &back, why);

	if (r < 0)
		return r;
	if (back && open_raw(reading, NULL) > 0) {
		end = end_of_raw(reading);
		value = value > end ? 0 : end - value;
		close_raw(reading);
	}
	reading->offset = value;
	return 0;
}

int
term_read(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(reader_fini) struct reader reader = {
		.reading = { .kind = &raw_kind, .common = &options->common },
		.dir = -1,
	};
	struct errmsg why = { "" };
	int r = term_open(options, argv[0], &reader.record, &why);

	(void)argc;
	if (r == 0)
		r = term_open_dir(&reader.record, &reader.dir, &why);
	if (r == 0)
		r = reading_init(&reader.reading, options->max, &why);
	if (r == 0 && options->plain &&
	    plain_new(reader.record.row.cols, &reader.plain) < 0)
		r = errmsg_set(&why, -ENOMEM, "out of memory");
	if (r == 0 && options->cursor)
		r = parse_cursor(&reader, options->cursor, &why);
	if (r == 0)
		r = reading_run(&reader.reading, options->follow,
				options->wait_ms, &why);
	if (r == 0 && reader.plain && !options->common.json)
		r = put_plain(&reader, 0, true);
	return r < 0 ? record_fail(&why) : 0;
}

/* ---- screen, lines ---- */

static bool
is_closed(const struct term_record *record)
{
	return record->row.ended_ns > 0 &&
	       !(record->row.flags & STORE_TERM_OUTPUT_OPEN);
}

/* As the warden draws it; the text of `key`, or JSON where it is no text. */
static int
draw(const struct term_record *record, enum rpc_method method,
     struct buf *params, struct buf *out, struct errmsg *why)
{
	json_t *result = NULL;
	const json_t *image;
	_cleanup_(freep) char *text = NULL;
	int r = term_ask(record, method, params, TERM_ASK_MS, &result, why);

	if (r < 0)
		return r;
	image = json_object_get(result,
				method == RPC_TERM_LINES ? "text" : "screen");
	if (json_is_string(image))
		text = json_unescape(json_string_value(image));
	else
		text = json_dumps(image, JSON_COMPACT);
	buf_puts(out, text ? text : "");
	if (json_is_object(image))
		buf_puts(out, "\n");
	json_decref(result);
	return text ? buf_error(out) : -ENOMEM;
}

static int
finish(int r, struct buf *out, const struct errmsg *why)
{
	if (r == 0)
		r = buf_error(out);
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, out->data, out->len);
	if (r == 0)
		return 0;
	if (why->text[0])
		return record_fail(why);
	cli_error("%s", strerror(-r));
	return RECORD_EXIT_FAILED;
}

int
term_screen(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(term_record_fini) struct term_record record = { 0 };
	_cleanup_(buf_fini) struct buf out = { 0 }, params = { 0 };
	_cleanup_(closep) int dir = -1;
	const char *name = options->common.json ? "json" : options->format;
	enum terms_format format = TERMS_TEXT;
	struct errmsg why = { "" };
	int r = 0;

	(void)argc;
	if (name && terms_format_parse(name, &format) < 0)
		r = errmsg_set(&why, -EINVAL,
			       "--format takes text, ansi or json");
	if (r == 0)
		r = term_open(options, argv[0], &record, &why);
	if (r == 0 && !is_closed(&record)) {
		term_begin(&params, &record);
		jsonw_pair(&params, "format", name ? name : "text");
		jsonw_pair_uint(&params, "scrollback", options->scrollback);
		r = draw(&record, RPC_TERM_SCREEN, &params, &out, &why);
		if (!record_is_nobody(r))
			return finish(r, &out, &why);
		r = term_reload_gone(&record, &why);
	}
	if (r == 0)
		r = term_open_dir(&record, &dir, &why);
	if (r == 0)
		r = terms_dump_screen(dir, &record.row, format,
				      (unsigned int)options->scrollback, &out);
	if (r == 0 && format == TERMS_JSON)
		buf_puts(&out, "\n");
	return finish(r, &out, &why);
}

int
term_lines(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(term_record_fini) struct term_record record = { 0 };
	_cleanup_(buf_fini) struct buf out = { 0 }, params = { 0 };
	_cleanup_(closep) int dir = -1;
	uint64_t count = options->count ? options->count : 100;
	struct errmsg why = { "" };
	int r = term_open(options, argv[0], &record, &why);

	(void)argc;
	if (r == 0 && !is_closed(&record)) {
		term_begin(&params, &record);
		jsonw_pair_uint(&params, "offset", options->offset);
		jsonw_pair_uint(&params, "count", count);
		r = draw(&record, RPC_TERM_LINES, &params, &out, &why);
		if (!record_is_nobody(r))
			return finish(r, &out, &why);
		r = term_reload_gone(&record, &why);
	}
	if (r == 0)
		r = term_open_dir(&record, &dir, &why);
	if (r == 0)
		r = terms_dump_lines(dir, &record.row,
				     (unsigned int)options->offset,
				     (unsigned int)count, &out);
	return finish(r, &out, &why);
}
