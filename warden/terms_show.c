/* SPDX-License-Identifier: MIT */

/*
 * What a person is shown: the bytes of the log, but for those that a terminal
 * would answer or that are not for people, up to where nothing is unfinished.
 *
 *	0 ────── cursor ─────────── safe ── fed ────── end of the log
 *	  shown         to be shown      the model
 *
 * Whoever is in step costs one reading of the log for all, and a write each.
 * Whoever is more than 256 KiB behind what can be shown, has asked for it, or
 * has not seen how the size changed, gets a SYNC and the screen as it is;
 * nothing waits for him.  A window of another size than the terminal's cannot
 * take the bytes as they are: it is painted, again and again.
 *
 * No more than two blocks are on their way to a socket: what is not written yet
 * can still be left out.
 */

#include "warden/terms_attach_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "pty/vt.h"
#include "warden/jobs_row.h"
#include "warden/terms_row.h"

/* With what the socket holds and what is on its way there, 256 KiB. */
#define BEHIND	   (64u << 10)
#define WRITES_MAX 2
#define TOLD_MAX   (1u << 20)

struct attach_write {
	uv_write_t req;
	struct attach_block *block;
};

/* ---- blocks ---- */

static struct attach_block *
block_new(size_t room)
{
	struct attach_block *block = malloc(sizeof(*block) + room);

	if (block)
		*block = (struct attach_block){ .refs = 1 };
	return block;
}

static void
block_unref(struct attach_block *block)
{
	if (block && --block->refs == 0)
		free(block);
}

void
audience_forget_blocks(struct audience *audience)
{
	for (size_t i = 0; i < AUDIENCE_RECENT; i++) {
		block_unref(audience->recent[i]);
		audience->recent[i] = NULL;
	}
}

/* Takes out what is not for people; how many bytes are left. */
static size_t
cut_out(const struct audience *audience, uint64_t offset, unsigned char *bytes,
	size_t len)
{
	uint64_t at = offset, end = offset + len, from, to;
	unsigned char *left = bytes;

	while (at < end &&
	       terms_next_cut(audience->warden, audience->id, at, &from, &to) &&
	       from < end) {
		if (from > at) {
			memmove(left, bytes + (at - offset),
				(size_t)(from - at));
			left += from - at;
		}
		at = to;
	}
	if (at < end) {
		if (left != bytes + (at - offset))
			memmove(left, bytes + (at - offset),
				(size_t)(end - at));
		left += end - at;
	}
	return (size_t)(left - bytes);
}

/* A frame of the log from `offset` on; NULL: it cannot be had. */
static struct attach_block *
block_read(struct audience *audience, uint64_t offset, uint64_t safe)
{
	size_t most = safe - offset < FRAME_PAYLOAD ? (size_t)(safe - offset)
						    : FRAME_PAYLOAD;
	struct attach_block *block = block_new(FRAME_HEADER + most);
	struct segments_view view;
	size_t len;

	if (!block)
		return NULL;
	if (terms_read(audience->warden, audience->id, &audience->file,
		       &(struct terms_span){ .offset = offset,
					     .buf = block->bytes + FRAME_HEADER,
					     .size = most },
		       &view) < 0 ||
	    view.reason != SEGMENTS_KEPT || view.len == 0) {
		block_unref(block);
		return NULL;
	}
	len = cut_out(audience, offset, block->bytes + FRAME_HEADER, view.len);
	frame_header(FRAME_DATA, 0, len, block->bytes);
	block->len = len > 0 ? FRAME_HEADER + len : 0;
	block->from = offset;
	block->to = offset + view.len;
	return block;
}

/* The same, but made for all that are in step.  A reference. */
static struct attach_block *
block_get(struct audience *audience, uint64_t offset, uint64_t safe)
{
	struct attach_block *block, **slot;

	for (size_t i = 0; i < AUDIENCE_RECENT; i++) {
		block = audience->recent[i];
		if (!block || block->from != offset || block->to > safe)
			continue;
		block->refs++;
		return block;
	}
	block = block_read(audience, offset, safe);
	if (!block || audience->n_people < 2)
		return block;
	slot = &audience->recent[audience->next_recent++ % AUDIENCE_RECENT];
	block_unref(*slot);
	*slot = block;
	block->refs++;
	return block;
}

/* ---- to the socket ---- */

static void
on_written(uv_write_t *req, int status)
{
	struct attach_write *write = (struct attach_write *)req;
	struct client *client = req->data;
	struct attach *attach = client->attach;

	block_unref(write->block);
	free(write);
	if (!attach)
		return;
	attach->writes--;
	if (status < 0 || (attach->over && attach->writes == 0))
		client_close(client);
	else
		attach_pump(attach);
}

static void
give_up(struct attach *attach)
{
	attach->over = attach->broken = true;
	audience_rearm(attach->audience);
}

/* Consumes the reference.  False: it cannot be sent. */
static bool
write_block(struct attach *attach, struct attach_block *block)
{
	struct attach_write *write = NULL;
	uv_buf_t buf;

	if (block && block->len == 0) {
		block_unref(block);
		return true;
	}
	if (block)
		write = calloc(1, sizeof(*write));
	if (write) {
		write->block = block;
		write->req.data = attach->client;
		buf = uv_buf_init((char *)block->bytes,
				  (unsigned int)block->len);
		if (uv_write(&write->req, (uv_stream_t *)&attach->client->pipe,
			     &buf, 1, on_written) == 0) {
			attach->writes++;
			return true;
		}
		free(write);
	}
	block_unref(block);
	give_up(attach);
	return false;
}

static bool
write_frames(struct attach *attach, struct buf *frames)
{
	struct attach_block *block = NULL;

	if (buf_error(frames) == 0)
		block = block_new(frames->len);
	if (block && frames->len > 0) {
		memcpy(block->bytes, frames->data, frames->len);
		block->len = frames->len;
	}
	buf_fini(frames);
	return write_block(attach, block);
}

void
attach_send(struct attach *attach, struct buf *frames)
{
	(void)write_frames(attach, frames);
}

/* ---- frames that are made ---- */

/* No memory for the text is no memory for the frame. */
static void
put_text(struct buf *frames, enum frame_type type, struct buf *text)
{
	if (buf_error(text) < 0)
		frames->error = text->error;
	else if (type == FRAME_DATA)
		frame_put_all(frames, FRAME_DATA, text->data, text->len);
	else
		frame_put(frames, (uint8_t)type, 0, text->data, text->len);
	buf_fini(text);
}

static void
put_title(struct buf *text, const char *title, size_t len)
{
	buf_puts(text, "\033]2;");
	buf_put(text, title, len);
	buf_puts(text, "\033\\");
}

static void
put_clipboard(struct buf *text, const char *bytes, size_t len)
{
	struct buf coded = { 0 };

	/* With the quotes of JSON around it. */
	jobs_put_base64(&coded, (const unsigned char *)bytes, len);
	buf_puts(text, "\033]52;c;");
	if (buf_error(&coded) == 0 && coded.len > 2)
		buf_put(text, coded.data + 1, coded.len - 2);
	buf_puts(text, "\033\\");
	buf_fini(&coded);
}

void
attach_tell(struct attach *attach, const struct vt_event *event)
{
	if (attach->over || attach->told.len > TOLD_MAX)
		return;
	if (event->kind == VT_EVENT_TITLE && attach->titles)
		put_title(&attach->told, event->text, event->len);
	else if (event->kind == VT_EVENT_CLIPBOARD && attach->clipboard)
		put_clipboard(&attach->told, event->text, event->len);
}

static bool
send_told(struct attach *attach)
{
	struct buf frames = { 0 };

	put_text(&frames, FRAME_DATA, &attach->told);
	attach->told = (struct buf){ 0 };
	return write_frames(attach, &frames);
}

static bool
send_state(struct attach *attach, const struct vt *vt)
{
	const struct audience *audience = attach->audience;
	struct buf text = { 0 }, frames = { 0 };
	const struct {
		const char *name;
		unsigned int value;
	} numbers[] = {
		{ "cols", audience->size.cols },
		{ "rows", audience->size.rows },
		{ "people", audience->n_people },
	};

	attach->state_due = false;
	jsonw_begin(&text, '{');
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		jsonw_pair_uint(&text, numbers[i].name, numbers[i].value);
	jsonw_pair_bool(&text, "pinned", audience->size.pinned);
	jsonw_pair_bool(&text, "alt", vt_is_alt(vt));
	jsonw_end(&text, '}');
	put_text(&frames, FRAME_STATE, &text);
	return write_frames(attach, &frames);
}

/* ---- painting ---- */

/*
 * The lines that the screen shows are painted afterwards: they go, and the
 * others are lifted above it.
 */
static void
put_history(const struct attach *attach, const struct vt *vt, struct buf *out)
{
	struct buf text = { 0 };
	struct vt_state state;
	size_t lines = 0, at = 0;

	vt_state(vt, &state);
	vt_ansi(vt,
		attach->scrollback < state.history
			? (unsigned int)attach->scrollback
			: state.history,
		&text);
	for (size_t i = 0; i < text.len; i++)
		lines += text.data[i] == '\n';
	while (lines > state.rows && at < text.len) {
		const unsigned char *line = text.data + at;
		const unsigned char *end = memchr(line, '\n', text.len - at);
		size_t len = end ? (size_t)(end - line) : text.len - at;

		buf_put(out, line, len);
		buf_puts(out, "\033[m\r\n");
		at += len + 1;
		lines--;
	}
	for (unsigned int i = 0; i < attach->rows; i++)
		buf_puts(out, "\n");
	buf_fini(&text);
}

static bool
paint(struct attach *attach, const struct vt *vt)
{
	struct buf text = { 0 }, frames = { 0 };
	const char *title = vt_title(vt);

	if (attach->scrollback > 0)
		put_history(attach, vt, &text);
	attach->scrollback = 0;
	vt_repaint(vt, attach->cols, attach->rows, &text);
	if (attach->titles && *title)
		put_title(&text, title, strlen(title));
	frame_put(&frames, FRAME_SYNC, 0, NULL, 0);
	put_text(&frames, FRAME_DATA, &text);
	attach->repaint = attach->paint_due = false;
	/* What is unfinished has not changed the screen. */
	attach->cursor = vt_safe(vt);
	attach->painted_ns = clock_mono_ns();
	return write_frames(attach, &frames);
}

static void
send_last(struct attach *attach, enum frame_type type, struct buf *json)
{
	const struct vt *vt =
		terms_vt(attach->audience->warden, attach->audience->id);
	struct buf text = { 0 }, frames = { 0 };

	attach->over = true;
	if (vt)
		vt_unpaint(vt, &text);
	put_text(&frames, FRAME_DATA, &text);
	put_text(&frames, type, json);
	(void)write_frames(attach, &frames);
}

void
attach_send_off(struct attach *attach, const char *reason)
{
	struct buf json = { 0 };

	jsonw_begin(&json, '{');
	jsonw_pair(&json, "reason", reason);
	jsonw_end(&json, '}');
	send_last(attach, FRAME_DETACH, &json);
}

static void
send_exit(struct attach *attach)
{
	const struct audience *audience = attach->audience;
	struct buf json = { 0 };
	struct store_term row;
	char line[512];

	if (terms_get_row(audience->warden, audience->id, &row) < 0) {
		attach_send_off(attach, "it was removed");
		return;
	}
	terms_row_line(&row, line, sizeof(line));
	jsonw_begin(&json, '{');
	jsonw_pair(&json, "state", row.state);
	jsonw_pair(&json, "status", line);
	jsonw_pair_int(&json, "exit", terms_row_exit(&row));
	jsonw_end(&json, '}');
	send_last(attach, FRAME_EXIT, &json);
}

/* ---- what comes next ---- */

static bool
has_own_size(const struct attach *attach)
{
	const struct terms_size *size = &attach->audience->size;

	return attach->cols > 0 &&
	       (attach->cols != size->cols || attach->rows != size->rows);
}

/* The view of another size; false: not now. */
static bool
paint_later(struct attach *attach, const struct vt *vt)
{
	if (clock_mono_ns() - attach->painted_ns >= ATTACH_PAINT_NS &&
	    !vt_in_sync(vt))
		return paint(attach, vt);
	if (!attach->paint_due) {
		attach->paint_due = true;
		audience_rearm(attach->audience);
	}
	return false;
}

static void
send_end(struct attach *attach)
{
	const struct audience *audience = attach->audience;
	uint64_t end;

	if (terms_is_told(audience->warden, audience->id) &&
	    (terms_end(audience->warden, audience->id, &end, NULL) < 0 ||
	     terms_fed(audience->warden, audience->id) >= end))
		send_exit(attach);
}

/* The next of the log; NULL: it is not to be had, or not worth it. */
static struct attach_block *
next_block(const struct attach *attach, uint64_t safe)
{
	struct audience *audience = attach->audience;

	if (safe - attach->cursor > BEHIND ||
	    attach->cursor < terms_cuts_from(audience->warden, audience->id))
		return NULL;
	return block_get(audience, attach->cursor, safe);
}

/* Sends one thing; false: there is none, or it cannot be sent. */
static bool
send_next(struct attach *attach)
{
	const struct audience *audience = attach->audience;
	const struct vt *vt = terms_vt(audience->warden, audience->id);
	struct attach_block *block;
	uint64_t safe, to;

	if (!vt) {
		attach_send_off(attach, "its screen cannot be read");
		return false;
	}
	if (attach->state_due)
		return send_state(attach, vt);
	if (attach->told.len > 0)
		return send_told(attach);
	safe = vt_safe(vt);
	if (attach->repaint || attach->cursor > safe)
		return paint(attach, vt);
	if (attach->cursor == safe) {
		send_end(attach);
		return false;
	}
	if (has_own_size(attach))
		return paint_later(attach, vt);
	block = next_block(attach, safe);
	if (!block)
		return paint(attach, vt);
	to = block->to;
	if (!write_block(attach, block))
		return false;
	attach->cursor = to;
	return true;
}

void
attach_pump(struct attach *attach)
{
	while (!attach->over && attach->writes < WRITES_MAX &&
	       send_next(attach))
		;
}
