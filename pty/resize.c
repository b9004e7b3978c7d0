/* SPDX-License-Identifier: MIT */

/*
 * Another size.  The primary screen, with as much of the history as belongs to
 * it or comes back to it, is put together into lines and split anew; what then
 * does not fit goes to the history.  Nothing is changed before all memory is
 * there.  The alternate screen keeps its upper left part: whoever draws on it
 * draws it again.
 *
 * A position in the text (the cursor, the saved cursor) is a line, an offset
 * in its cells, and how far it was beyond its end.
 */

#include "pty/vt_priv.h"

struct anchor {
	unsigned int x, y; /* old, then new */
	bool pending;
	size_t line, offset, beyond;
};

enum {
	CURSOR,
	SAVED,
	ANCHORS
};

struct new_row {
	size_t from, len; /* in the cells */
	bool wrapped, continues;
};

struct reflow {
	struct vt *vt;
	const struct grid *old;
	unsigned int cols, rows;
	struct anchor anchors[ANCHORS];

	unsigned int taken; /* rows of the history */
	struct line cells;  /* of all lines */
	size_t *ends;	    /* of each line in them */
	size_t line_count, line_room;

	struct new_row *list;
	size_t count, room;
	size_t top; /* the row that is first on the screen */
};

static void
reflow_fini(struct reflow *f)
{
	line_fini(&f->cells);
	free(f->ends);
	free(f->list);
}

/* How many rows come out of the history. */
static unsigned int
rows_to_take(const struct reflow *f, unsigned int used)
{
	const struct history *h = &f->vt->history;
	const struct grid *old = f->old;
	bool joins = grid_row(old, 0)->continues, more;
	unsigned int want = 0, n = 0;
	struct history_at at;

	/*
	 * A full screen stays full.  One with room below keeps it: what was
	 * cleared away does not come back.
	 */
	if (used == old->rows && (f->cols > old->cols || f->rows > old->rows))
		want = f->rows;
	for (more = history_newest(h, &at);
	     more && n < LINE_ROWS_MAX + VT_ROWS_MAX;
	     more = history_older(&at)) {
		if (!joins || !history_wrapped(&at)) {
			if (want == 0)
				break;
			want--;
		}
		joins = history_continues(&at);
		n++;
	}
	return n;
}

static int
end_line(struct reflow *f)
{
	if (f->line_count == f->line_room) {
		size_t room = f->line_room ? 2 * f->line_room : 64;
		size_t *ends = realloc(f->ends, room * sizeof(*ends));

		if (!ends)
			return -ENOMEM;
		f->ends = ends;
		f->line_room = room;
	}
	f->ends[f->line_count++] = f->cells.len;
	return 0;
}

static size_t
line_start(const struct reflow *f, size_t line)
{
	return line ? f->ends[line - 1] : 0;
}

static int
add_taken(struct reflow *f)
{
	struct history_at at;
	bool wrapped = false;
	int r = 0;

	if (f->taken == 0 || !history_newest(&f->vt->history, &at))
		return 0;
	for (unsigned int i = 1; i < f->taken; i++)
		(void)history_older(&at);
	for (unsigned int i = 0; r == 0 && i < f->taken; i++) {
		size_t len;
		const unsigned char *bytes = history_peek(&at, &len);

		if (i > 0 && !(wrapped && history_continues(&at)))
			r = end_line(f);
		if (r == 0)
			r = unpack_row(bytes, len, true, &f->vt->lex,
				       &f->cells);
		wrapped = packed_is_wrapped(bytes, len);
		(void)history_newer(&at);
	}
	if (r == 0 && !(wrapped && grid_row(f->old, 0)->continues))
		r = end_line(f);
	return r;
}

/* Cells of the row before column x, pads not counted. */
static size_t
cells_before(const struct row *row, unsigned int x)
{
	size_t n = 0;

	for (unsigned int i = 0; i < x; i++)
		n += !(row->cells[i].flags & CELL_PAD);
	return n;
}

static int
add_screen(struct reflow *f, unsigned int used)
{
	for (unsigned int y = 0; y < used; y++) {
		const struct row *row = grid_row(f->old, y);
		size_t begin = f->cells.len, start, len;
		bool ends = y + 1 == used || !row->wrapped ||
			    !grid_row(f->old, y + 1)->continues;
		int r = line_add_row(&f->cells, row, f->old->cols, true);

		if (r < 0)
			return r;
		start = line_start(f, f->line_count);
		len = f->cells.len - begin;
		for (int i = 0; i < ANCHORS; i++) {
			struct anchor *a = &f->anchors[i];
			size_t at;

			if (a->y != y)
				continue;
			at = cells_before(row, a->x + a->pending);
			a->line = f->line_count;
			a->beyond = at > len ? at - len : 0;
			a->offset = begin - start + at - a->beyond;
		}
		if (ends && end_line(f) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int
add_new_row(struct reflow *f, struct new_row row)
{
	if (f->count == f->room) {
		size_t room = f->room ? 2 * f->room : 64;
		struct new_row *list = realloc(f->list, room * sizeof(*list));

		if (!list)
			return -ENOMEM;
		f->list = list;
		f->room = room;
	}
	f->list[f->count++] = row;
	return 0;
}

/* The anchor is in this row of its line, or at the end of it, the last. */
static void
settle(struct reflow *f, struct anchor *a, size_t at, size_t len, bool last)
{
	size_t x;

	if (a->offset < at || (a->offset >= at + len && !last))
		return;
	x = a->offset - at + a->beyond;
	a->y = (unsigned int)f->count;
	a->pending = x >= f->cols && a->beyond == 0;
	a->x = (unsigned int)(x < f->cols ? x : f->cols - 1);
}

static int
split_lines(struct reflow *f)
{
	for (size_t i = 0; i < f->line_count; i++) {
		size_t start = line_start(f, i), at = 0, n;
		struct line line = { .cells = f->cells.cells + start,
				     .len = f->ends[i] - start };

		do {
			n = line_row_length(&line, at, f->cols);
			for (int k = 0; k < ANCHORS; k++)
				if (f->anchors[k].line == i)
					settle(f, &f->anchors[k], at, n,
					       at + n == line.len);
			if (add_new_row(f,
					(struct new_row){
						.from = start + at,
						.len = n,
						.wrapped = at +
							   n<line.len,
							     .continues = at> 0,
					}) < 0)
				return -ENOMEM;
			at += n;
		} while (at < line.len);
	}
	return 0;
}

/* Where the screen begins in the rows: at the end, but with the cursor. */
static void
place(struct reflow *f)
{
	size_t y = f->anchors[CURSOR].y;

	f->top = f->count > f->rows ? f->count - f->rows : 0;
	if (y < f->top)
		f->top = y;
	for (int i = 0; i < ANCHORS; i++) {
		struct anchor *a = &f->anchors[i];

		/* One below all text stays where it was. */
		if (a->line != SIZE_MAX)
			a->y = a->y > f->top ? a->y - (unsigned int)f->top : 0;
		a->y = a->y < f->rows ? a->y : f->rows - 1;
		a->x = a->x < f->cols ? a->x : f->cols - 1;
	}
}

static void
fill_row(const struct reflow *f, const struct new_row *from, struct row *to)
{
	struct cell *cells = f->cells.cells + from->from;

	if (from->len > 0)
		memcpy(to->cells, cells, from->len * sizeof(*cells));
	to->used = (uint16_t)from->len;
	to->wrapped = from->wrapped;
	to->continues = from->continues;
	for (size_t x = 0; x < from->len; x++)
		to->wide |= (cells[x].flags & CELL_WIDE) != 0;
	/* A wide character did not fit. */
	if (from->wrapped && from->len < f->cols) {
		to->cells[from->len].flags = CELL_PAD;
		to->used = (uint16_t)f->cols;
	}
}

/* From here on nothing fails. */
static void
commit(struct reflow *f, struct grid *grid)
{
	struct vt *vt = f->vt;

	while (f->taken-- > 0)
		history_pop(&vt->history);
	for (size_t i = 0; i < f->top; i++) {
		/* The first row of the new grid is where it takes shape. */
		struct row *row = grid_row(grid, 0);

		fill_row(f, &f->list[i], row);
		history_push(&vt->history, row, f->cols, &vt->lex);
		memset(row->cells, 0, f->cols * sizeof(*row->cells));
		*row = (struct row){ .cells = row->cells };
	}
	for (size_t y = 0; y < f->rows && f->top + y < f->count; y++)
		fill_row(f, &f->list[f->top + y],
			 grid_row(grid, (unsigned int)y));
}

static void
copy_corner(struct grid *to, const struct grid *from)
{
	unsigned int cols = to->cols < from->cols ? to->cols : from->cols;

	for (unsigned int y = 0; y < to->rows && y < from->rows; y++) {
		struct row *row = grid_row(to, y);
		const struct row *old = grid_row(from, y);

		memcpy(row->cells, old->cells, cols * sizeof(*row->cells));
		row->used = (uint16_t)(old->used < cols ? old->used : cols);
		row->wide = old->wide;
		if (cols < from->cols && old->cells[cols].flags & CELL_TAIL)
			row->cells[cols - 1] = (struct cell){
				.style = row->cells[cols - 1].style
			};
	}
}

static void
clamp_cursor(struct cursor *c, unsigned int cols, unsigned int rows)
{
	if (c->x >= cols || c->y >= rows)
		c->pending = false;
	c->x = c->x < cols ? c->x : cols - 1;
	c->y = c->y < rows ? c->y : rows - 1;
	if (c->x + 1 < cols)
		c->pending = false;
}

static void
put_anchor(struct cursor *c, const struct anchor *a)
{
	c->x = a->x;
	c->y = a->y;
	c->pending = a->pending;
}

/* Tab stops beyond what was the edge are as after a reset already. */
static void
change_grids(struct vt *vt, struct reflow *f, struct grid *primary,
	     struct grid *alternate)
{
	struct screen *screens = vt->screens;
	bool is_alt = vt->active == ALTERNATE;

	commit(f, primary);
	put_anchor(&screens[PRIMARY].saved, &f->anchors[SAVED]);
	if (!is_alt)
		put_anchor(&vt->cursor, &f->anchors[CURSOR]);
	else
		clamp_cursor(&vt->cursor, f->cols, f->rows);
	clamp_cursor(&screens[ALTERNATE].saved, f->cols, f->rows);
	if (alternate->ring)
		copy_corner(alternate, &screens[ALTERNATE].grid);
	grid_fini(&screens[PRIMARY].grid);
	grid_fini(&screens[ALTERNATE].grid);
	screens[PRIMARY].grid = *primary;
	screens[ALTERNATE].grid = *alternate;
	vt->grid = &screens[vt->active].grid;
	vt_full_margins(vt);
}

int
vt_resize(struct vt *vt, unsigned int cols, unsigned int rows)
{
	struct screen *screens = vt->screens;
	bool is_alt = vt->active == ALTERNATE;
	const struct cursor *cursor =
		is_alt ? &screens[PRIMARY].saved : &vt->cursor;
	struct grid primary, alternate = { 0 };
	struct reflow f = { .vt = vt, .old = &screens[PRIMARY].grid };
	unsigned int used, asked_cols, asked_rows;
	int r;

	vt_clamp_asked(&cols, &rows, &asked_cols, &asked_rows);
	if (cols == vt->grid->cols && rows == vt->grid->rows) {
		vt->asked_cols = asked_cols;
		vt->asked_rows = asked_rows;
		return 0;
	}
	f.cols = cols;
	f.rows = rows;
	f.anchors[CURSOR] = (struct anchor){ .x = cursor->x,
					     .y = cursor->y,
					     .pending = cursor->pending,
					     .line = SIZE_MAX };
	cursor = &screens[PRIMARY].saved;
	f.anchors[SAVED] = (struct anchor){ .x = cursor->x,
					    .y = cursor->y,
					    .pending = cursor->pending,
					    .line = SIZE_MAX };
	used = vt_used_rows(f.old, f.anchors[CURSOR].y);
	f.taken = rows_to_take(&f, used);
	r = grid_init(&primary, cols, rows);
	if (r < 0)
		return r;
	if (screens[ALTERNATE].grid.ring)
		r = grid_init(&alternate, cols, rows);
	/* Cells there must be, even of no text, to point into. */
	if (r == 0)
		r = line_reserve(&f.cells, 1);
	if (r == 0)
		r = add_taken(&f);
	if (r == 0)
		r = add_screen(&f, used);
	if (r == 0)
		r = split_lines(&f);
	if (r < 0) {
		reflow_fini(&f);
		grid_fini(&primary);
		grid_fini(&alternate);
		return r;
	}
	place(&f);
	change_grids(vt, &f, &primary, &alternate);
	vt->asked_cols = asked_cols;
	vt->asked_rows = asked_rows;
	reflow_fini(&f);
	return 0;
}
