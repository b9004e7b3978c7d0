/* SPDX-License-Identifier: MIT */

/*
 * The whole state of the model as a stream that puts another terminal in it.
 * It begins with everything that could disturb the drawing turned off, draws
 * with wrap off, and turns on what is on only when nothing is drawn any more.
 * The primary screen is drawn under an alternate one, so that it is there when
 * the program ends.
 *
 * A smaller terminal sees the part around the cursor; margins and the like
 * would make no sense in it and stay off.
 */

#include "pty/vt_priv.h"

struct view {
	unsigned int left, top, cols, rows;
	bool whole;
};

static const struct style plain;

/* Off, whatever it was: insert, newline, origin, margins, looks, tracking. */
static const char calm[] =
	"\033[?6l\033[?69l\033[r\033[4l\033[20l\033[?5l\033[?45l"
	"\033(B\033)B\033*B\033+B\017\033[0\"q\033[m\033]8;;\033\\"
	"\033[?9l\033[?1000l\033[?1002l\033[?1003l"
	"\033[?1005l\033[?1006l\033[?1015l"
	"\033[?1004l\033[?2004l\033[?1l\033>\033[?1007l";

/* Which screen is shown changed, and a cursor may have come with its looks. */
static const char plain_again[] =
	"\033[?6l\033(B\017\033[0\"q\033[m\033]8;;\033\\";

static const char no_margins[] = "\033[?69l\033[r";

static const char colors_back[] =
	"\033]104\033\\\033]110\033\\\033]111\033\\\033]112\033\\";

static void
find_view(const struct vt *vt, unsigned int cols, unsigned int rows,
	  struct view *ret_view)
{
	struct view v = { .cols = cols ? cols : vt->grid->cols,
			  .rows = rows ? rows : vt->grid->rows };
	unsigned int x = vt->cursor.x, y = vt->cursor.y;

	v.whole = v.cols >= vt->grid->cols && v.rows >= vt->grid->rows;
	v.left = x >= v.cols ? x - v.cols + 1 : 0;
	v.top = y >= v.rows ? y - v.rows + 1 : 0;
	*ret_view = v;
}

static void
put_pen(struct buf *out, const struct vt *vt, const struct style *style)
{
	buf_puts(out, "\033[0");
	style_put_params(out, style);
	buf_puts(out, "m");
	vt_put_link(out, &vt->lex, style);
}

static void
put_screen(struct buf *out, const struct vt *vt, const struct grid *g,
	   const struct view *v)
{
	struct style style = plain;

	buf_puts(out, "\033[H\033[2J");
	for (unsigned int y = 0; y < v->rows && v->top + y < g->rows; y++) {
		const struct row *row = grid_row(g, v->top + y);
		unsigned int end = row_text_end(row), left = v->left;
		struct row_view view = { .lex = &vt->lex };

		if (end > v->left + v->cols)
			end = v->left + v->cols;
		if (end <= left)
			continue;
		buf_putf(out, "\033[%uH", y + 1);
		/* Half a wide character at an edge is a blank. */
		if (row->cells[left].flags & CELL_TAIL) {
			buf_puts(out, " ");
			left++;
		}
		if (end > left && row->cells[end - 1].flags & CELL_WIDE)
			end--;
		view.cells = row->cells + left;
		view.len = end - left;
		vt_put_styled(out, &view, &style);
	}
	put_pen(out, vt, &plain);
}

static void
put_charsets(struct buf *out, const struct cursor *c)
{
	static const char sets[CHARSETS] = { 'B', '0', 'A' };
	static const char *const shifts[] = { "\017", "\016", "\033n",
					      "\033o" };

	for (unsigned int i = 0; i < 4; i++)
		buf_putf(out, "\033%c%c", "()*+"[i], sets[c->charset[i]]);
	buf_puts(out, shifts[c->gl]);
}

/*
 * Can the wrap be made to wait again by printing the character before it?  Not
 * when the margins have changed since, nor across one.
 */
static bool
can_wait(const struct vt *vt, const struct grid *g, const struct cursor *c,
	 const struct view *v)
{
	const struct cell *cell = &grid_row(g, c->y)->cells[c->x];
	unsigned int right = vt->margins.right;

	if (!c->pending || !v->whole || v->cols != g->cols ||
	    (c->x + 1 != right && c->x + 1 != g->cols))
		return false;
	if (cell->flags & CELL_TAIL)
		return c->x != right;
	return !(cell->flags & CELL_WIDE);
}

/* Position and what goes with it; after a full line the wrap still waits. */
static void
put_cursor(struct buf *out, const struct vt *vt, const struct grid *g,
	   const struct cursor *c, const struct view *v)
{
	unsigned int x = c->x > v->left ? c->x - v->left : 0;
	unsigned int y = c->y > v->top ? c->y - v->top : 0;
	const struct cell *cell = &grid_row(g, c->y)->cells[c->x];

	x = x < v->cols ? x : v->cols - 1;
	y = y < v->rows ? y : v->rows - 1;
	if (c->origin && v->whole) {
		/* What it is relative to is set by now. */
		x -= x >= vt->margins.left ? vt->margins.left : x;
		y -= y >= vt->margins.top ? vt->margins.top : y;
	}
	if (can_wait(vt, g, c, v)) {
		struct style style;

		if (cell->flags & CELL_TAIL) {
			cell--;
			x--;
		}
		style = lexicon_style(&vt->lex, cell->style);
		buf_putf(out, "\033[%u;%uH", y + 1, x + 1);
		/* The cursor that was saved has left its own behind. */
		buf_puts(out, "\033(B\017\033[0\"q");
		put_pen(out, vt, &style);
		vt_put_cell(out, cell, &vt->lex);
	} else {
		buf_putf(out, "\033[%u;%uH", y + 1, x + 1);
	}
	put_charsets(out, c);
	put_pen(out, vt, &c->pen);
	if (c->is_protected)
		buf_puts(out, "\033[1\"q");
}

static void
put_margins(struct buf *out, const struct vt *vt)
{
	const struct rect *m = &vt->margins;

	if (m->top > 0 || m->bottom < vt->grid->rows)
		buf_putf(out, "\033[%u;%ur", m->top + 1, m->bottom);
	if (has_mode(vt, MODE_MARGINS))
		buf_putf(out, "\033[?69h\033[%u;%us", m->left + 1, m->right);
}

static void
put_tabs(struct buf *out, const struct vt *vt)
{
	bool usual = true;

	for (unsigned int x = 0; x < vt->grid->cols; x++)
		usual &= (vt->tabs[x / 8] >> x % 8 & 1) == (x % 8 == 0);
	if (usual)
		return;
	buf_puts(out, "\033[3g");
	for (unsigned int x = 0; x < vt->grid->cols; x++)
		if (vt->tabs[x / 8] >> x % 8 & 1)
			buf_putf(out, "\033[1;%uH\033H", x + 1);
}

/* Modes that do not disturb what is drawn or where the cursor is. */
static void
put_modes(struct buf *out, const struct vt *vt)
{
	static const enum vt_mode quiet[] = {
		MODE_APP_CURSOR,  MODE_REVERSE,	   MODE_REVERSE_WRAP,
		MODE_MOUSE_X10,	  MODE_MOUSE,	   MODE_MOUSE_DRAG,
		MODE_MOUSE_MOVE,  MODE_MOUSE_UTF8, MODE_MOUSE_SGR,
		MODE_MOUSE_URXVT, MODE_FOCUS,	   MODE_PASTE,
		MODE_ALT_SCROLL,
	};

	for (size_t i = 0; i < sizeof(quiet) / sizeof(*quiet); i++)
		if (has_mode(vt, quiet[i]))
			buf_putf(out, "\033[?%uh", vt_modes[quiet[i]].number);
	if (has_mode(vt, MODE_APP_KEYPAD))
		buf_puts(out, "\033=");
	if (has_mode(vt, MODE_NEWLINE))
		buf_puts(out, "\033[20h");
	buf_putf(out, "\033[%u q", vt->cursor_shape);
	if (vt->cursor_shape == 0)
		buf_puts(out,
			 has_mode(vt, MODE_BLINK) ? "\033[?12h" : "\033[?12l");
}

static void
put_colors(struct buf *out, const struct vt *vt)
{
	if (!vt->colors_touched)
		return;
	buf_puts(out, colors_back);
	for (unsigned int i = 0; vt->palette && i < 256; i++)
		if (vt->palette[i])
			buf_putf(out, "\033]4;%u;#%06x\033\\", i,
				 vt->palette[i] & 0xffffff);
	for (unsigned int i = 0; i < 3; i++)
		if (vt->dynamic[i])
			buf_putf(out, "\033]%u;#%06x\033\\", 10 + i,
				 vt->dynamic[i] & 0xffffff);
}

/*
 * What a program saved and will restore: position, looks, charsets; `save` is
 * the sequence that saves them.
 */
static void
put_saved(struct buf *out, const struct vt *vt, const struct view *v,
	  unsigned int which, const char *save)
{
	struct cursor c = vt_saved_cursor(vt, which);

	if (c.origin && v->whole)
		buf_puts(out, "\033[?6h");
	put_cursor(out, vt, &vt->screens[which].grid, &c, v);
	buf_puts(out, save);
	if (c.origin && v->whole)
		buf_puts(out, "\033[?6l");
	if (c.is_protected)
		buf_puts(out, "\033[0\"q");
}

/* The alternate screen over the primary one, which keeps its cursor. */
static void
put_alternate(struct buf *out, const struct vt *vt, const struct view *v)
{
	if (v->whole)
		put_margins(out, vt);
	put_saved(out, vt, v, PRIMARY, "\033[?1049h");
	buf_puts(out, plain_again);
	buf_puts(out, no_margins);
	put_screen(out, vt, vt->grid, v);
}

void
vt_repaint(const struct vt *vt, unsigned int cols, unsigned int rows,
	   struct buf *out)
{
	const struct screen *primary = &vt->screens[PRIMARY];
	struct view v;

	find_view(vt, cols, rows, &v);
	buf_puts(out, "\033[?2026h\033[?25l");
	buf_puts(out, calm);
	buf_puts(out, "\033[?7l\033[?1049l");
	buf_puts(out, plain_again);
	put_colors(out, vt);
	put_screen(out, vt, &primary->grid, &v);
	if (vt->active == ALTERNATE)
		put_alternate(out, vt, &v);
	if (v.whole) {
		put_tabs(out, vt);
		put_margins(out, vt);
	}
	put_saved(out, vt, &v, vt->active, "\0337");
	put_modes(out, vt);
	if (has_mode(vt, MODE_WRAP))
		buf_puts(out, "\033[?7h");
	if (vt->cursor.origin && v.whole)
		buf_puts(out, "\033[?6h");
	put_cursor(out, vt, vt->grid, &vt->cursor, &v);
	if (has_mode(vt, MODE_INSERT))
		buf_puts(out, "\033[4h");
	if (has_mode(vt, MODE_CURSOR))
		buf_puts(out, "\033[?25h");
	if (!has_mode(vt, MODE_SYNC))
		buf_puts(out, "\033[?2026l");
}

void
vt_unpaint(const struct vt *vt, struct buf *out)
{
	const struct grid *g = &vt->screens[PRIMARY].grid;
	unsigned int y = vt->active == PRIMARY ? vt->cursor.y
					       : vt->screens[PRIMARY].saved.y;

	buf_puts(out, calm);
	if (vt->active == ALTERNATE)
		buf_putf(out, "\033[?1049l%s", plain_again);
	if (vt->colors_touched)
		buf_puts(out, colors_back);
	buf_puts(out, "\033[?7h\033[?25h\033[0 q\033[?2026l");
	buf_putf(out, "\033[%uH\r\n", vt_used_rows(g, y));
}
