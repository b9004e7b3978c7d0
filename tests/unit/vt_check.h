/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_VT_CHECK_H
#define TESTS_UNIT_VT_CHECK_H

/* What holds of a model whatever it was fed. */

#include <string.h>

#include "pty/vt_priv.h"
#include "pty/width.h"

static inline bool
vt_row_is_sound(const struct vt *vt, const struct grid *g,
		const struct row *row)
{
	static const struct cell zero;

	if (row->used > g->cols)
		return false;
	for (unsigned int x = 0; x < g->cols; x++) {
		const struct cell *c = &row->cells[x];
		bool wide = c->flags & CELL_WIDE, tail = c->flags & CELL_TAIL;

		if (x >= row->used && memcmp(c, &zero, sizeof(zero)) != 0)
			return false;
		if (wide && (x + 1 == g->cols || !row->wide ||
			     !(c[1].flags & CELL_TAIL)))
			return false;
		if (tail &&
		    (x == 0 || !(c[-1].flags & CELL_WIDE) || c->ch != 0))
			return false;
		if (c->style && !intern_has(&vt->lex.styles, c->style))
			return false;
		if (c->ch & CELL_CLUSTER &&
		    !intern_has(&vt->lex.clusters, c->ch & ~CELL_CLUSTER))
			return false;
		if (!(c->ch & CELL_CLUSTER) && c->ch &&
		    (width_of(c->ch) == 2) != wide)
			return false;
	}
	return true;
}

static inline bool
vt_is_sound(const struct vt *vt)
{
	const struct rect *m = &vt->margins;
	const struct grid *g = vt->grid;

	if (vt->cursor.x >= g->cols || vt->cursor.y >= g->rows ||
	    m->left + 2 > m->right || m->right > g->cols ||
	    m->top + (g->rows > 1 ? 2 : 1) > m->bottom || m->bottom > g->rows)
		return false;
	for (unsigned int i = 0; i < 2; i++) {
		g = &vt->screens[i].grid;
		if (!g->ring)
			continue;
		if (vt->screens[i].saved.x >= g->cols ||
		    vt->screens[i].saved.y >= g->rows)
			return false;
		for (unsigned int y = 0; y < g->rows; y++)
			if (!vt_row_is_sound(vt, g, grid_row(g, y)))
				return false;
	}
	return vt_safe(vt) <= vt->offset &&
	       vt->history.count <= vt->history.max;
}

static inline bool
vt_same(const struct vt *a, const struct vt *b)
{
	struct buf x = { 0 }, y = { 0 };
	bool same;

	vt_save(a, &x);
	vt_save(b, &y);
	same = buf_error(&x) == 0 && buf_error(&y) == 0 && x.len == y.len &&
	       memcmp(x.data, y.data, x.len) == 0;
	buf_fini(&x);
	buf_fini(&y);
	return same;
}

#endif
