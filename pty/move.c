/* SPDX-License-Identifier: MIT */

/* Where the cursor goes, and what scrolls when it cannot. */

#include "pty/vt_priv.h"

bool
vt_in_margins(const struct vt *vt)
{
	const struct rect *m = &vt->margins;

	return vt->cursor.x >= m->left && vt->cursor.x < m->right &&
	       vt->cursor.y >= m->top && vt->cursor.y < m->bottom;
}

void
vt_goto(struct vt *vt, unsigned int x, unsigned int y)
{
	vt->cursor.x = x < vt->grid->cols ? x : vt->grid->cols - 1;
	vt->cursor.y = y < vt->grid->rows ? y : vt->grid->rows - 1;
	vt->cursor.pending = false;
}

void
vt_goto_origin(struct vt *vt, unsigned int x, unsigned int y)
{
	const struct rect *m = &vt->margins;

	if (vt->cursor.origin) {
		x += m->left;
		y += m->top;
		x = x < m->right ? x : m->right - 1;
		y = y < m->bottom ? y : m->bottom - 1;
	}
	vt_goto(vt, x, y);
}

/* ---- relative movement stops at a margin that lies on its way ---- */

void
vt_up(struct vt *vt, unsigned int n)
{
	unsigned int y = vt->cursor.y;
	unsigned int top = y >= vt->margins.top ? vt->margins.top : 0;

	vt_goto(vt, vt->cursor.x, y - top > n ? y - n : top);
}

void
vt_down(struct vt *vt, unsigned int n)
{
	unsigned int y = vt->cursor.y;
	unsigned int last =
		(y < vt->margins.bottom ? vt->margins.bottom : vt->grid->rows) -
		1;

	vt_goto(vt, vt->cursor.x, last - y > n ? y + n : last);
}

void
vt_forward(struct vt *vt, unsigned int n)
{
	unsigned int x = vt->cursor.x;
	unsigned int last =
		(x < vt->margins.right ? vt->margins.right : vt->grid->cols) -
		1;

	vt_goto(vt, last - x > n ? x + n : last, vt->cursor.y);
}

/* Did the cursor's line begin in the row before? */
static bool
goes_on_above(const struct vt *vt)
{
	unsigned int y = vt->cursor.y;

	return y > 0 && y != vt->margins.top &&
	       grid_row(vt->grid, y)->continues &&
	       grid_row(vt->grid, y - 1)->wrapped;
}

/*
 * Reverse wrap, as xterm has it since 383: back over the rows of one line and
 * not into another line.
 */
static void
back_in_line(struct vt *vt, unsigned int n)
{
	unsigned int x = vt->cursor.x, step;

	if (vt->cursor.pending)
		n--;
	for (;;) {
		step = x < n ? x : n;
		n -= step;
		vt_goto(vt, x - step, vt->cursor.y);
		if (n == 0 || !goes_on_above(vt))
			return;
		/* A right margin may have been set since the line was made. */
		x = vt->margins.right - 1;
		n--;
		vt_goto(vt, x, vt->cursor.y - 1);
	}
}

void
vt_back(struct vt *vt, unsigned int n)
{
	unsigned int x = vt->cursor.x;
	unsigned int left = x >= vt->margins.left ? vt->margins.left : 0;

	if (has_mode(vt, MODE_REVERSE_WRAP) && has_mode(vt, MODE_WRAP) &&
	    left == 0)
		back_in_line(vt, n);
	else
		vt_goto(vt, x - left > n ? x - n : left, vt->cursor.y);
}

void
vt_backspace(struct vt *vt)
{
	vt_back(vt, 1);
}

void
vt_carriage_return(struct vt *vt)
{
	unsigned int left = vt->margins.left;

	if (vt->cursor.x < left && !vt->cursor.origin)
		left = 0;
	vt_goto(vt, left, vt->cursor.y);
}

static bool
is_tab(const struct vt *vt, unsigned int x)
{
	return (vt->tabs[x / 8] >> x % 8 & 1) != 0;
}

void
vt_tab(struct vt *vt, unsigned int n)
{
	unsigned int x = vt->cursor.x;
	unsigned int last =
		(x < vt->margins.right ? vt->margins.right : vt->grid->cols) -
		1;

	for (; n > 0 && x < last; n--)
		do
			x++;
		while (x < last && !is_tab(vt, x));
	/* A tab at the end of the line does not make it wrap, nor unwrap. */
	if (x != vt->cursor.x)
		vt_goto(vt, x, vt->cursor.y);
}

void
vt_back_tab(struct vt *vt, unsigned int n)
{
	unsigned int x = vt->cursor.x;
	unsigned int left = vt->cursor.origin ? vt->margins.left : 0;

	for (; n > 0 && x > left; n--)
		do
			x--;
		while (x > left && !is_tab(vt, x));
	vt_goto(vt, x, vt->cursor.y);
}

/* ---- scrolling ---- */

void
vt_scroll_up(struct vt *vt, unsigned int n)
{
	const struct rect *m = &vt->margins;
	struct grid *g = vt->grid;
	bool whole = m->left == 0 && m->right == g->cols && m->top == 0;
	unsigned int height = m->bottom - m->top, blank = vt_blank_style(vt);

	n = n < height ? n : height;
	if (whole && vt->active == PRIMARY)
		for (unsigned int y = 0; y < n; y++)
			history_push(&vt->history, grid_row(g, y), g->cols,
				     &vt->lex);
	if (whole && m->bottom == g->rows)
		while (n-- > 0)
			grid_scroll_all(g, blank);
	else
		grid_scroll(g, m, (int)n, blank);
}

void
vt_scroll_down(struct vt *vt, unsigned int n)
{
	unsigned int height = vt->margins.bottom - vt->margins.top;

	n = n < height ? n : height;
	grid_scroll(vt->grid, &vt->margins, -(int)n, vt_blank_style(vt));
}

void
vt_index(struct vt *vt)
{
	const struct rect *m = &vt->margins;
	struct cursor *c = &vt->cursor;

	c->pending = false;
	if (c->y + 1 == m->bottom) {
		if (c->x >= m->left && c->x < m->right)
			vt_scroll_up(vt, 1);
	} else if (c->y + 1 < vt->grid->rows) {
		c->y++;
	}
}

void
vt_reverse_index(struct vt *vt)
{
	const struct rect *m = &vt->margins;
	struct cursor *c = &vt->cursor;

	c->pending = false;
	if (c->y == m->top) {
		if (c->x >= m->left && c->x < m->right)
			vt_scroll_down(vt, 1);
	} else if (c->y > 0) {
		c->y--;
	}
}

/* ---- DECSC, DECRC ---- */

void
vt_save_cursor(struct vt *vt)
{
	vt->screens[vt->active].saved = vt->cursor;
}

struct cursor
vt_saved_cursor(const struct vt *vt, unsigned int which)
{
	struct cursor c = vt->screens[which].saved;
	const struct rect *m = &vt->margins;

	/* The margins may be others than when it was saved. */
	if (c.origin) {
		c.x = c.x < m->left ? m->left : c.x;
		c.x = c.x < m->right ? c.x : m->right - 1;
		c.y = c.y < m->top ? m->top : c.y;
		c.y = c.y < m->bottom ? c.y : m->bottom - 1;
	}
	return c;
}

void
vt_restore_cursor(struct vt *vt)
{
	vt->cursor = vt_saved_cursor(vt, vt->active);
	put_mode(vt, MODE_ORIGIN, vt->cursor.origin);
	vt->pen_known = false;
}
