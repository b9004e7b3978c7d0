/* SPDX-License-Identifier: MIT */

/*
 * What happened to a terminal, a JSON object a line, the newest KEPT bytes of
 * them; and which part of its output the last command of its shell wrote.
 */

#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "warden/terms_priv.h"

#define KEPT (64u << 10)

static const char *
name_of(const struct vt_event *model)
{
	static const char *const names[] = {
		[VT_EVENT_TITLE] = "title",   [VT_EVENT_CWD] = "cwd",
		[VT_EVENT_BELL] = "bell",     [VT_EVENT_MARK] = "mark",
		[VT_EVENT_NOTIFY] = "notify", [VT_EVENT_ALT_SCREEN] = "screen",
	};
	size_t kind = (size_t)model->kind;

	return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : NULL;
}

/* Whole lines go, the oldest first. */
static void
forget(struct term_events *events)
{
	const unsigned char *data = events->lines.data;
	size_t at = events->lines.len - KEPT / 2;
	const unsigned char *end;

	if (events->lines.len <= KEPT)
		return;
	end = memchr(data + at, '\n', events->lines.len - at);
	at = end ? (size_t)(end - data) + 1 : events->lines.len;
	buf_drop(&events->lines, at);
	events->from += at;
}

static void
begin(struct wterm *term, const char *name)
{
	struct buf *out = &term->events.lines;

	jsonw_begin(out, '{');
	jsonw_pair_int(out, "time", clock_real_ns());
	jsonw_pair(out, "event", name);
}

static void
end(struct wterm *term)
{
	struct term_events *events = &term->events;

	jsonw_end(&events->lines, '}');
	buf_puts(&events->lines, "\n");
	/* Without memory there is a gap, not an end. */
	if (buf_error(&events->lines) < 0) {
		events->from += events->lines.len;
		buf_fini(&events->lines);
		events->lines = (struct buf){ 0 };
	}
	forget(events);
}

static void
note_mark(struct wterm *term, const struct vt_event *model)
{
	struct buf *out = &term->events.lines;
	const char mark[2] = { model->mark, '\0' };

	jsonw_pair(out, "mark", mark);
	jsonw_pair_bool(out, "trusted", model->trusted);
	if (model->mark == 'D' && model->exit_code >= 0)
		jsonw_pair_int(out, "exit_code", model->exit_code);
	if (!model->trusted)
		return;
	if (model->mark == 'C') {
		term->events.output_from = model->to;
	} else if (model->mark == 'D' && term->events.output_from > 0) {
		term->events.last_from = term->events.output_from;
		term->events.last_to = model->from;
		term->events.output_from = 0;
	}
}

static void
note_model(struct wterm *term, const struct vt_event *model)
{
	struct buf *out = &term->events.lines;
	const char *name = name_of(model);

	if (!name)
		return;
	begin(term, name);
	jsonw_pair_uint(out, "offset", model->from);
	if (model->kind == VT_EVENT_MARK) {
		note_mark(term, model);
	} else if (model->kind == VT_EVENT_ALT_SCREEN) {
		jsonw_pair_bool(out, "alternate", vt_is_alt(term->screen.vt));
	} else if (model->kind != VT_EVENT_BELL) {
		jsonw_key(out, "text");
		jsonw_bytes(out, model->text, model->len);
	}
	end(term);
}

void
term_events_note(struct wterm *term, enum terms_event event,
		 const struct vt_event *model)
{
	struct buf *out = &term->events.lines;
	char line[512];
	struct store_term row;

	if (event == TERMS_MODEL) {
		note_model(term, model);
	} else if (event == TERMS_RESIZED) {
		begin(term, "size");
		jsonw_pair_uint(out, "cols", term->cols);
		jsonw_pair_uint(out, "rows", term->rows);
		jsonw_pair_bool(out, "pinned", term->pinned);
		end(term);
	} else if (event == TERMS_EXITED) {
		wterm_row(term, &row);
		terms_row_line(&row, line, sizeof(line));
		begin(term, "exit");
		jsonw_pair(out, "status", line);
		end(term);
	}
}

int
terms_events_end(const struct warden *warden, uint64_t id, uint64_t *ret_end)
{
	const struct wterm *term = terms_host_find(warden->terms, id);

	if (!term)
		return -ENOENT;
	*ret_end = term->events.from + term->events.lines.len;
	return 0;
}

int
terms_events_read(const struct warden *warden, uint64_t id,
		  const struct terms_span *span, struct segments_view *ret_view)
{
	const struct wterm *term = terms_host_find(warden->terms, id);
	struct segments_view view = { .next = span->offset };
	const struct term_events *events = term ? &term->events : NULL;
	size_t at;

	if (!events)
		return -ENOENT;
	view.base = events->from;
	view.end = events->from + events->lines.len;
	if (span->offset > view.end)
		return -ERANGE;
	if (span->offset < view.base) {
		view.reason = SEGMENTS_CAP;
		view.lost_from = span->offset;
		view.lost_to = view.next = view.base;
	} else if (span->offset < view.end) {
		at = (size_t)(span->offset - view.base);
		view.len = events->lines.len - at;
		view.len = view.len < span->size ? view.len : span->size;
		memcpy(span->buf, events->lines.data + at, view.len);
		view.next += view.len;
	}
	*ret_view = view;
	return 0;
}

int
terms_last_output(const struct warden *warden, uint64_t id, uint64_t *ret_from,
		  uint64_t *ret_to)
{
	const struct wterm *term = terms_host_find(warden->terms, id);

	if (!term)
		return -ENOENT;
	*ret_from = term->events.last_from;
	*ret_to = term->events.last_to;
	return 0;
}
