/* SPDX-License-Identifier: MIT */

/* The screen for programs. */

#include <stdio.h>

#include "base/json.h"
#include "pty/vt_priv.h"

static void
put_color(struct buf *out, const char *key, uint32_t color)
{
	char text[16];

	if ((color & COLOR_KIND) == COLOR_PALETTE) {
		jsonw_pair_uint(out, key, color & 0xff);
	} else if (color) {
		(void)snprintf(text, sizeof(text), "#%06x", color & 0xffffff);
		jsonw_pair(out, key, text);
	}
}

static void
put_attrs(struct buf *out, const struct style *style)
{
	static const struct {
		uint16_t bit;
		const char *name;
	} names[] = {
		{ STYLE_BOLD, "bold" },	      { STYLE_DIM, "dim" },
		{ STYLE_ITALIC, "italic" },   { STYLE_BLINK, "blink" },
		{ STYLE_INVERSE, "inverse" }, { STYLE_HIDDEN, "hidden" },
		{ STYLE_STRIKE, "strike" },   { STYLE_OVERLINE, "overline" },
	};
	static const char *const underlines[] = { NULL,	   "single", "double",
						  "curly", "dotted", "dashed",
						  NULL,	   NULL };
	const char *underline = underlines[(style->attrs & STYLE_UNDERLINE) >>
					   STYLE_UNDERLINE_SHIFT];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (style->attrs & names[i].bit)
			jsonw_pair_bool(out, names[i].name, true);
	if (underline)
		jsonw_pair(out, "underline", underline);
}

/* Cells [from, to) look alike. */
static void
put_run(struct buf *out, const struct row_view *row, size_t from, size_t to)
{
	struct style style = lexicon_style(row->lex, row->cells[from].style);
	uint32_t len = 0;
	const char *uri = lexicon_uri(row->lex, &style, &len);

	jsonw_begin(out, '{');
	jsonw_pair_uint(out, "x", from);
	jsonw_pair_uint(out, "cols", to - from);
	put_color(out, "fg", style.fg);
	put_color(out, "bg", style.bg);
	put_color(out, "underline_color", style.underline);
	put_attrs(out, &style);
	if (uri && uri_is_safe(uri, len)) {
		jsonw_key(out, "link");
		jsonw_bytes(out, uri, len);
	}
	jsonw_end(out, '}');
}

static void
put_row(void *data, const struct row_view *row)
{
	struct buf *out = data, text = { 0 };
	size_t x = 0, end;

	jsonw_begin(out, '{');
	for (size_t i = 0; i < row->len; i++)
		vt_put_cell(&text, &row->cells[i], row->lex);
	while (!row->wrapped && text.len > 0 && text.data[text.len - 1] == ' ')
		text.len--;
	jsonw_key(out, "text");
	jsonw_bytes(out, text.len ? (const void *)text.data : "", text.len);
	if (row->wrapped)
		jsonw_pair_bool(out, "wrapped", true);
	jsonw_key(out, "runs");
	jsonw_begin(out, '[');
	for (; x < row->len; x = end) {
		end = x + 1;
		while (end < row->len &&
		       row->cells[end].style == row->cells[x].style)
			end++;
		if (row->cells[x].style != 0)
			put_run(out, row, x, end);
	}
	jsonw_end(out, ']');
	jsonw_end(out, '}');
	if (buf_error(&text) < 0)
		out->error = buf_error(&text);
	buf_fini(&text);
}

static void
put_modes(struct buf *out, const struct vt_state *state)
{
	jsonw_key(out, "modes");
	jsonw_begin(out, '{');
	jsonw_pair_bool(out, "app_cursor", state->app_cursor);
	jsonw_pair_bool(out, "app_keypad", state->app_keypad);
	jsonw_pair_bool(out, "bracketed_paste", state->bracketed_paste);
	jsonw_pair_bool(out, "focus", state->focus);
	jsonw_pair_uint(out, "mouse", state->mouse);
	jsonw_pair_uint(out, "mouse_encoding", state->mouse_encoding);
	jsonw_pair_bool(out, "sync", state->sync);
	jsonw_end(out, '}');
}

void
vt_json(const struct vt *vt, unsigned int scrollback, struct buf *out)
{
	struct vt_state state;

	vt_state(vt, &state);
	jsonw_begin(out, '{');
	jsonw_pair_uint(out, "cols", state.cols);
	jsonw_pair_uint(out, "rows", state.rows);
	jsonw_key(out, "cursor");
	jsonw_begin(out, '{');
	jsonw_pair_uint(out, "x", state.x);
	jsonw_pair_uint(out, "y", state.y);
	jsonw_pair_bool(out, "visible", state.cursor_visible);
	jsonw_pair_uint(out, "shape", state.cursor_shape);
	jsonw_end(out, '}');
	jsonw_pair(out, "title", vt_title(vt));
	jsonw_pair(out, "cwd", vt_cwd(vt));
	jsonw_pair_bool(out, "alt", state.alt);
	put_modes(out, &state);
	jsonw_pair_uint(out, "history", state.history);
	jsonw_pair_uint(out, "offset", vt_offset(vt));
	jsonw_key(out, "lines");
	jsonw_begin(out, '[');
	vt_walk_rows(vt, scrollback, put_row, out);
	jsonw_end(out, ']');
	jsonw_end(out, '}');
}
