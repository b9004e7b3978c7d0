/* SPDX-License-Identifier: MIT */

/*
 * The history holds rows of whatever width the screen had when they left it.
 * To show them, a line is put together from its rows and split anew.  A line
 * that ends on the screen is split there already, so that its part in the
 * history ends where a row ends.
 */

#include "pty/vt_priv.h"

/* Rows [first, first + history) of the history, then rows of the screen. */
struct span {
	struct history_at first;
	unsigned int history;
	unsigned int top, screen;
};

unsigned int
vt_used_rows(const struct grid *g, unsigned int cursor_y)
{
	unsigned int rows = g->rows;

	while (rows > cursor_y + 1 &&
	       row_length(grid_row(g, rows - 1), g->cols) == 0)
		rows--;
	return rows;
}

/* Moves *at to the first row of its line; the number of rows. */
static unsigned int
line_begin(struct history_at *at)
{
	unsigned int rows = 1;
	struct history_at older = *at;

	while (rows < LINE_ROWS_MAX && history_continues(at) &&
	       history_older(&older) && history_wrapped(&older)) {
		*at = older;
		rows++;
	}
	return rows;
}

/* Appends `rows` rows of the history from *at on and moves *at past them. */
static int
add_history(struct line *line, struct history_at *at, unsigned int rows,
	    struct lexicon *lex)
{
	int r = 0;

	while (r == 0 && rows-- > 0) {
		size_t len;
		const unsigned char *bytes = history_peek(at, &len);

		r = unpack_row(bytes, len, true, lex, line);
		if (rows > 0)
			(void)history_newer(at);
	}
	return r;
}

/* Calls for the rows of a line but for the first `skip`. */
static void
emit_line(const struct line *line, unsigned int cols, size_t skip,
	  const struct lexicon *lex, row_fn *fn, void *data)
{
	size_t at = 0;

	do {
		size_t n = line_row_length(line, at, cols);
		struct row_view row = { .cells = line->len ? line->cells + at
							   : NULL,
					.len = n,
					.wrapped = at + n < line->len,
					.lex = lex };

		at += n;
		if (skip > 0)
			skip--;
		else
			fn(data, &row);
	} while (at < line->len);
}

static size_t
count_rows(const struct line *line, unsigned int cols)
{
	size_t at = 0, rows = 0;

	do {
		at += line_row_length(line, at, cols);
		rows++;
	} while (at < line->len);
	return rows;
}

static void
walk_history(const struct vt *vt, size_t want, row_fn *fn, void *data)
{
	unsigned int cols = vt->grid->cols, rows;
	struct lexicon lex;
	struct line line = { 0 };
	struct history_at at, begin;
	size_t have = 0;
	bool more = history_newest(&vt->history, &at);

	lexicon_init(&lex, vt->lex.styles.seed);
	begin = at;
	/* Back as far as needed… */
	while (more && have < want) {
		struct history_at from;

		begin = at;
		rows = line_begin(&begin);
		from = begin;
		line.len = 0;
		if (add_history(&line, &from, rows, &lex) < 0)
			break;
		have += count_rows(&line, cols);
		at = begin;
		more = history_older(&at);
	}
	/* …and forth. */
	for (more = have > 0; more; more = history_newer(&begin)) {
		at = begin;
		rows = 1;
		while (rows < LINE_ROWS_MAX && history_wrapped(&at) &&
		       history_newer(&at) && history_continues(&at))
			rows++;
		line.len = 0;
		if (add_history(&line, &begin, rows, &lex) < 0)
			break;
		emit_line(&line, cols, have > want ? have - want : 0, &lex, fn,
			  data);
		have = have > want ? want : have;
	}
	line_fini(&line);
	lexicon_fini(&lex);
}

void
vt_walk_rows(const struct vt *vt, unsigned int scrollback, row_fn *fn,
	     void *data)
{
	const struct grid *g = vt->grid;

	if (scrollback > 0)
		walk_history(vt, scrollback, fn, data);
	for (unsigned int y = 0; y < g->rows; y++) {
		const struct row *row = grid_row(g, y);
		struct row_view view = { .cells = row->cells,
					 .len = row_length(row, g->cols),
					 .wrapped = row->wrapped,
					 .lex = &vt->lex };

		fn(data, &view);
	}
}

/* ---- whole lines ---- */

static bool
screen_joins(const struct grid *g, unsigned int y)
{
	return grid_row(g, y)->continues && grid_row(g, y - 1)->wrapped;
}

/*
 * The line before the one that begins at *end; *end moves to its beginning.
 * `end` counts rows from the first of the screen; below 0, of the history.
 */
struct walk {
	const struct vt *vt;
	const struct grid *g;
	unsigned int y;	      /* rows of the screen not taken yet */
	struct history_at at; /* the newest row not taken yet */
	bool more;	      /* there is one */
};

static bool
take_line(struct walk *w, struct span *ret_span)
{
	struct span span = { 0 };
	bool joins = false;

	if (w->y > 0) {
		unsigned int end = w->y--;

		while (w->y > 0 && end - w->y < LINE_ROWS_MAX &&
		       screen_joins(w->g, w->y))
			w->y--;
		span.top = w->y;
		span.screen = end - w->y;
		joins = w->y == 0 && w->more && grid_row(w->g, 0)->continues &&
			history_wrapped(&w->at);
		if (!joins) {
			*ret_span = span;
			return true;
		}
	}
	if (!w->more)
		return false;
	span.first = w->at;
	span.history = line_begin(&span.first);
	w->at = span.first;
	w->more = history_older(&w->at);
	*ret_span = span;
	return true;
}

static void
emit_span(const struct walk *w, struct span *span, struct line *line,
	  row_fn *fn, void *data)
{
	struct lexicon lex;
	struct row_view view = { .lex = &lex };

	/* Cells of the screen are packed to mean the same in `lex`. */
	lexicon_init(&lex, w->vt->lex.styles.seed);
	line->len = 0;
	if (span->history > 0)
		(void)add_history(line, &span->first, span->history, &lex);
	for (unsigned int i = 0; i < span->screen; i++) {
		const struct row *row = grid_row(w->g, span->top + i);
		struct buf packed = { 0 };

		pack_row(row, w->g->cols, &w->vt->lex, &packed);
		if (buf_error(&packed) == 0)
			(void)unpack_row(packed.data, packed.len, true, &lex,
					 line);
		buf_fini(&packed);
	}
	view.cells = line->cells;
	view.len = line->len;
	fn(data, &view);
	lexicon_fini(&lex);
}

unsigned int
vt_walk_lines(const struct vt *vt, unsigned int offset, unsigned int count,
	      row_fn *fn, void *data)
{
	const struct screen *primary = &vt->screens[PRIMARY];
	unsigned int cursor_y =
		vt->active == PRIMARY ? vt->cursor.y : primary->saved.y;
	struct walk w = { .vt = vt, .g = &primary->grid };
	struct span *spans, span;
	struct line line = { 0 };
	unsigned int n = 0, max = vt->history.count + w.g->rows;

	w.y = vt_used_rows(w.g, cursor_y);
	w.more = history_newest(&vt->history, &w.at);
	while (offset > 0 && take_line(&w, &span))
		offset--;
	count = count < max ? count : max;
	spans = offset ? NULL : calloc(count ? count : 1, sizeof(*spans));
	if (!spans)
		return 0;
	while (n < count && take_line(&w, &spans[n]))
		n++;
	for (unsigned int i = n; i-- > 0;)
		emit_span(&w, &spans[i], &line, fn, data);
	line_fini(&line);
	free(spans);
	return n;
}
