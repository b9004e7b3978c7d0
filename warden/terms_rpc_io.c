/* SPDX-License-Identifier: MIT */

/*
 * term.read, term.screen, term.lines: what comes out.
 *
 * Output is read on the pool, from the files alone, and so is the screen of a
 * terminal that has ended.  That of one that lives is its model, which is the
 * loop's.
 */

#include "warden/terms_rpc.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "pty/plain.h"
#include "warden/stream_json.h"
#include "warden/terms_priv.h"

#define READ_DEFAULT   65536
#define READ_MAX       (1 << 20)
#define WAIT_MAX_MS    600000
#define SCROLLBACK_MAX 100000
#define LINES_MAX      10000

static int
open_dir(const struct warden *warden, uint64_t id)
{
	_cleanup_(freep) char *path =
		terms_dir_path(warden->places.state, warden->opt.world, id);
	int fd;

	if (!path)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int
removed(struct rpc_fault *fault)
{
	return rpc_fault_set(fault, RPC_FAILED, TERM_NOT_FOUND,
			     "the terminal was removed");
}

/* ---- term.read ---- */

struct reading {
	struct term_read read;
	char line[512];
	const char *state;
	bool final;
	unsigned int cols;
};

static int
read_raw(const struct warden *warden, struct reading *reading,
	 unsigned char *bytes, struct segments_view *view)
{
	_cleanup_(segments_freep) struct segments *raw = NULL;
	_cleanup_(closep) int dir = open_dir(warden, reading->read.id);
	struct term_read *read = &reading->read;
	uint64_t end;
	int r;

	if (dir < 0)
		return dir;
	r = segments_open(dir, "raw", NULL, &raw);
	if (r < 0)
		return r;
	end = segments_end(raw);
	if (read->from_end)
		read->offset = read->offset > end ? 0 : end - read->offset;
	r = segments_read(raw, NULL, read->offset, bytes, (size_t)read->max,
			  view);
	if (r == 0 && !read->base64 &&
	    (!reading->final || view->next < view->end))
		stream_cut_text(bytes, view);
	return r;
}

static int
put_plain(const struct reading *reading, const unsigned char *bytes,
	  struct segments_view *view, struct buf *out)
{
	_cleanup_(buf_fini) struct buf text = { 0 };
	_cleanup_(plain_freep) struct plain *plain = NULL;
	size_t cut;
	int r = plain_new(reading->cols, &plain);

	if (r < 0)
		return r;
	plain_feed(plain, bytes, view->len, &text);
	cut = plain_unfinished(plain);
	plain_end(plain, &text);
	/* What is not complete begins the next reading, unless it is all. */
	if (cut < view->len && (!reading->final || view->next < view->end)) {
		view->next -= cut;
		view->len -= cut;
	}
	stream_put_view(view, out);
	stream_put_data(text.data, text.len, false, out);
	return buf_error(&text);
}

static int
run_read(struct call *call)
{
	struct reading *reading = call->data;
	_cleanup_(freep) unsigned char *bytes =
		malloc((size_t)reading->read.max);
	struct segments_view view = { 0 };
	struct buf *out = &call->json;
	int r = bytes ? read_raw(call->warden, reading, bytes, &view) : -ENOMEM;

	if (r == -ENOENT)
		return removed(&call->fault);
	if (r < 0)
		return terms_rpc_fault(r, "", &call->fault);
	jsonw_begin(out, '{');
	jsonw_pair(out, "state", reading->state);
	jsonw_pair(out, "status", reading->line);
	jsonw_pair_bool(out, "final", reading->final);
	jsonw_pair_bool(out, "eof", reading->final && view.next == view.end);
	if (reading->read.plain) {
		r = put_plain(reading, bytes, &view, out);
	} else {
		stream_put_view(&view, out);
		stream_put_data(bytes, view.len, reading->read.base64, out);
	}
	jsonw_end(out, '}');
	return r;
}

static void
free_data(struct call *call)
{
	free(call->data);
}

int
terms_rpc_read_now(struct client *client, const struct rpc_id *id,
		   const struct term_read *read)
{
	struct warden *warden = client->server->warden;
	struct reading *reading = calloc(1, sizeof(*reading));
	struct store_term row = { .state = "removed" };
	struct terms_size size = { 0 };
	struct call *call = NULL;
	uint64_t end;
	int r;

	if (!reading)
		return -ENOMEM;
	(void)terms_get_size(warden, read->id, &size);
	reading->cols = size.cols;
	reading->read = *read;
	reading->final = true;
	if (terms_get_row(warden, read->id, &row) == 0)
		terms_row_line(&row, reading->line, sizeof(reading->line));
	reading->state = row.state;
	(void)terms_end(warden, read->id, &end, &reading->final);
	r = call_new(client, id, run_read, &call);
	if (r < 0) {
		free(reading);
		return r;
	}
	call->data = reading;
	call->done = free_data;
	return call_start(call);
}

static int
take_read(struct client *client, const struct rpc_message *message,
	  struct term_read *read, uint64_t *ret_wait_ms,
	  struct rpc_fault *fault)
{
	const char *text = NULL, *encoding = "text";
	int64_t cursor = 0, max = READ_DEFAULT, wait = 0;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "cursor", RPC_INTEGER, false, &cursor },
		{ "max", RPC_INTEGER, false, &max },
		{ "wait_ms", RPC_INTEGER, false, &wait },
		{ "encoding", RPC_STRING, false, &encoding },
		{ "plain", RPC_BOOLEAN, false, &read->plain },
	};
	int r = rpc_params(message, fields, 6, fault);

	if (r == 0)
		r = terms_rpc_find(client, text, &read->id, fault);
	if (r < 0)
		return r;
	if (max < 1 || max > READ_MAX)
		return rpc_fault_param(fault, "max", "1 to 1048576");
	if (wait < 0 || wait > WAIT_MAX_MS)
		return rpc_fault_param(fault, "wait_ms", "0 to 600000");
	read->base64 = strcmp(encoding, "base64") == 0;
	if (!read->base64 && strcmp(encoding, "text") != 0)
		return rpc_fault_param(fault, "encoding", "'text' or 'base64'");
	if (read->base64 && read->plain)
		return rpc_fault_param(fault, "plain", "of text");
	/* One character at least. */
	read->max = max < 4 ? 4 : (uint64_t)max;
	read->from_end = cursor < 0;
	read->offset = (uint64_t)(cursor < 0 ? -cursor : cursor);
	*ret_wait_ms = (uint64_t)wait;
	return 0;
}

int
terms_rpc_read(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct warden *warden = client->server->warden;
	struct term_read read = { 0 };
	struct term_wait *wait = NULL;
	uint64_t wait_ms = 0, end = 0;
	bool final = true;
	int r = take_read(client, message, &read, &wait_ms, ret_fault);

	(void)ret_json;
	if (r < 0)
		return r;
	r = terms_end(warden, read.id, &end, &final);
	if (r < 0)
		return r;
	if (!read.from_end && read.offset > end)
		return terms_rpc_fault(-ERANGE, "", ret_fault);
	if (wait_ms == 0 || read.from_end || final || read.offset != end)
		return terms_rpc_read_now(client, &message->id, &read);
	r = term_wait_new(client, message, &term_wait_more, read.id, &wait);
	if (r < 0)
		return r;
	wait->read = read;
	term_wait_limit(wait, wait_ms);
	return CALL_LATER;
}

/* ---- term.screen, term.lines ---- */

struct picture {
	uint64_t id;
	struct store_term row; /* its size alone is looked at */
	enum terms_format format;
	unsigned int scrollback;
	bool lines;
	unsigned int offset, count;
};

/* JSON is a value of its own, everything else a text. */
static void
put_picture(const struct picture *picture, const struct buf *image,
	    struct buf *out)
{
	jsonw_begin(out, '{');
	jsonw_pair_uint(out, "cols", picture->row.cols);
	jsonw_pair_uint(out, "rows", picture->row.rows);
	if (picture->lines) {
		jsonw_key(out, "text");
		jsonw_bytes(out, image->data, image->len);
	} else {
		static const char *const names[] = { "text", "ansi", "json" };

		jsonw_pair(out, "format", names[picture->format]);
		jsonw_key(out, "screen");
		if (picture->format == TERMS_JSON)
			jsonw_raw(out, image->data, image->len);
		else
			jsonw_bytes(out, image->data, image->len);
	}
	jsonw_end(out, '}');
}

static int
run_picture(struct call *call)
{
	struct picture *picture = call->data;
	_cleanup_(closep) int dir = open_dir(call->warden, picture->id);
	_cleanup_(buf_fini) struct buf image = { 0 };
	int r = dir;

	if (dir >= 0 && picture->lines)
		r = terms_dump_lines(dir, &picture->row, picture->offset,
				     picture->count, &image);
	else if (dir >= 0)
		r = terms_dump_screen(dir, &picture->row, picture->format,
				      picture->scrollback, &image);
	if (r == -ENOENT)
		return removed(&call->fault);
	if (r >= 0)
		put_picture(picture, &image, &call->json);
	return r < 0 ? r : 0;
}

static int
draw_past(struct client *client, const struct rpc_message *message,
	  const struct picture *picture)
{
	struct picture *copy = malloc(sizeof(*copy));
	struct call *call = NULL;
	int r = copy ? call_new(client, &message->id, run_picture, &call)
		     : -ENOMEM;

	if (r < 0) {
		free(copy);
		return r;
	}
	*copy = *picture;
	call->data = copy;
	call->done = free_data;
	return call_start(call);
}

static int
draw(struct client *client, const struct rpc_message *message,
     struct picture *picture, struct buf *ret_json)
{
	struct warden *warden = client->server->warden;
	_cleanup_(buf_fini) struct buf image = { 0 };
	const struct wterm *term = terms_host_find(warden->terms, picture->id);
	const struct vt *vt;

	picture->row =
		(struct store_term){ .cols = term->cols, .rows = term->rows };
	if (!term->held)
		return draw_past(client, message, picture);
	(void)terms_catch_up(warden, picture->id);
	vt = terms_vt(warden, picture->id);
	if (!vt)
		return -ENOMEM;
	if (picture->lines)
		(void)vt_lines(vt, picture->offset, picture->count, &image);
	else
		terms_put_screen(vt, picture->format, picture->scrollback,
				 &image);
	if (buf_error(&image) == 0)
		put_picture(picture, &image, ret_json);
	return buf_error(&image);
}

int
terms_rpc_screen(struct client *client, const struct rpc_message *message,
		 struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *text = NULL, *format = "text";
	int64_t scrollback = 0;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "format", RPC_STRING, false, &format },
		{ "scrollback", RPC_INTEGER, false, &scrollback },
	};
	struct picture picture = { 0 };
	int r = rpc_params(message, fields, 3, ret_fault);

	if (r == 0)
		r = terms_rpc_find(client, text, &picture.id, ret_fault);
	if (r < 0)
		return r;
	if (terms_format_parse(format, &picture.format) < 0)
		return rpc_fault_param(ret_fault, "format",
				       "'text', 'ansi' or 'json'");
	if (scrollback < 0 || scrollback > SCROLLBACK_MAX)
		return rpc_fault_param(ret_fault, "scrollback", "0 to 100000");
	picture.scrollback = (unsigned int)scrollback;
	return draw(client, message, &picture, ret_json);
}

int
terms_rpc_lines(struct client *client, const struct rpc_message *message,
		struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *text = NULL;
	int64_t offset = 0, count = 100;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "offset", RPC_INTEGER, false, &offset },
		{ "count", RPC_INTEGER, false, &count },
	};
	struct picture picture = { .lines = true };
	int r = rpc_params(message, fields, 3, ret_fault);

	if (r == 0)
		r = terms_rpc_find(client, text, &picture.id, ret_fault);
	if (r < 0)
		return r;
	if (offset < 0 || offset > SCROLLBACK_MAX)
		return rpc_fault_param(ret_fault, "offset", "0 to 100000");
	if (count < 1 || count > LINES_MAX)
		return rpc_fault_param(ret_fault, "count", "1 to 10000");
	picture.offset = (unsigned int)offset;
	picture.count = (unsigned int)count;
	return draw(client, message, &picture, ret_json);
}
