/* SPDX-License-Identifier: MIT */

#include "pty/grid.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
grid_init(struct grid *g, unsigned int cols, unsigned int rows)
{
	struct row *ring = calloc(rows, sizeof(*ring));
	struct cell *cells = calloc((size_t)rows * cols, sizeof(*cells));

	if (!ring || !cells) {
		free(ring);
		free(cells);
		return -ENOMEM;
	}
	for (unsigned int y = 0; y < rows; y++)
		ring[y].cells = cells + (size_t)y * cols;
	*g = (struct grid){
		.cols = cols, .rows = rows, .ring = ring, .cells = cells
	};
	return 0;
}

void
grid_fini(struct grid *g)
{
	free(g->ring);
	free(g->cells);
	*g = (struct grid){ 0 };
}

static void
blank_half(struct cell *cell)
{
	cell->ch = 0;
	cell->flags &= (uint16_t) ~(CELL_WIDE | CELL_TAIL);
}

void
row_split(struct row *row, unsigned int x, unsigned int cols)
{
	if (!row->wide || x == 0 || x >= cols ||
	    !(row->cells[x].flags & CELL_TAIL))
		return;
	blank_half(&row->cells[x - 1]);
	blank_half(&row->cells[x]);
}

static void
fill(struct row *row, unsigned int left, unsigned int right, unsigned int style)
{
	if (style == 0) {
		unsigned int end = right < row->used ? right : row->used;

		if (left < end)
			memset(row->cells + left, 0,
			       (end - left) * sizeof(*row->cells));
		if (right >= row->used && left < row->used)
			row->used = (uint16_t)left;
		return;
	}
	for (unsigned int x = left; x < right; x++)
		row->cells[x] = (struct cell){ .style = (uint16_t)style };
	if (row->used < right)
		row->used = (uint16_t)right;
}

void
grid_erase(struct grid *g, unsigned int y, unsigned int left,
	   unsigned int right, unsigned int style)
{
	struct row *row = grid_row(g, y);

	row_split(row, left, g->cols);
	row_split(row, right, g->cols);
	fill(row, left, right, style);
	if (left == 0 && right == g->cols)
		row->wide = row->continues = false;
	if (right == g->cols)
		row->wrapped = false;
}

void
grid_erase_unprotected(struct grid *g, unsigned int y, unsigned int left,
		       unsigned int right, unsigned int style)
{
	struct row *row = grid_row(g, y);

	for (unsigned int x = left; x < right; x++) {
		if (row->cells[x].flags & CELL_PROTECTED)
			continue;
		row_split(row, x, g->cols);
		row_split(row, x + 1, g->cols);
		fill(row, x, x + 1, style);
	}
}

static void
clear_row(struct row *row, unsigned int cols, unsigned int style)
{
	fill(row, 0, cols, style);
	row->wrapped = row->continues = row->wide = false;
}

void
grid_clear(struct grid *g, unsigned int style)
{
	for (unsigned int y = 0; y < g->rows; y++)
		clear_row(grid_row(g, y), g->cols, style);
}

void
grid_scroll_all(struct grid *g, unsigned int style)
{
	clear_row(&g->ring[g->top], g->cols, style);
	g->top = g->top + 1 == g->rows ? 0 : g->top + 1;
}

/* Whole rows change places by their pointers. */
static void
scroll_rows(struct grid *g, unsigned int top, unsigned int bottom, int n,
	    unsigned int style)
{
	unsigned int height = bottom - top;
	unsigned int by = (unsigned int)(n > 0 ? n : -n);

	for (unsigned int i = 0; i + by < height; i++) {
		unsigned int to = n > 0 ? top + i : bottom - 1 - i;
		unsigned int from = n > 0 ? to + by : to - by;
		struct row moved = *grid_row(g, from);

		*grid_row(g, from) = *grid_row(g, to);
		*grid_row(g, to) = moved;
	}
	for (unsigned int i = 0; i < by; i++)
		clear_row(grid_row(g, n > 0 ? bottom - 1 - i : top + i),
			  g->cols, style);
}

static void
copy_cells(struct grid *g, unsigned int to_y, unsigned int from_y,
	   unsigned int left, unsigned int right)
{
	struct row *to = grid_row(g, to_y);
	const struct row *from = grid_row(g, from_y);

	memcpy(to->cells + left, from->cells + left,
	       (right - left) * sizeof(*to->cells));
	to->wide |= from->wide;
	if (to->used < right)
		to->used = (uint16_t)right;
}

static void
scroll_cells(struct grid *g, const struct rect *area, int n, unsigned int style)
{
	unsigned int height = area->bottom - area->top;
	unsigned int by = (unsigned int)(n > 0 ? n : -n);

	for (unsigned int y = area->top; y < area->bottom; y++) {
		row_split(grid_row(g, y), area->left, g->cols);
		row_split(grid_row(g, y), area->right, g->cols);
	}
	for (unsigned int i = 0; i + by < height; i++) {
		unsigned int to = n > 0 ? area->top + i : area->bottom - 1 - i;

		copy_cells(g, to, n > 0 ? to + by : to - by, area->left,
			   area->right);
	}
	for (unsigned int i = 0; i < by; i++)
		grid_erase(g, n > 0 ? area->bottom - 1 - i : area->top + i,
			   area->left, area->right, style);
}

void
grid_scroll(struct grid *g, const struct rect *area, int n, unsigned int style)
{
	int height = (int)(area->bottom - area->top);

	assert(area->top < area->bottom && area->bottom <= g->rows);
	assert(area->left < area->right && area->right <= g->cols);

	n = n > height ? height : n < -height ? -height : n;
	if (n == 0)
		return;
	if (area->left == 0 && area->right == g->cols)
		scroll_rows(g, area->top, area->bottom, n, style);
	else
		scroll_cells(g, area, n, style);
}

void
grid_shift(struct grid *g, unsigned int y, const struct rect *area, int n,
	   unsigned int style)
{
	struct row *row = grid_row(g, y);
	unsigned int width = area->right - area->left, from, to;
	unsigned int by = (unsigned int)(n > 0 ? n : -n);

	if (area->right == g->cols)
		row->wrapped = false;
	if (by > width)
		by = width;
	from = n > 0 ? area->left : area->left + by;
	to = n > 0 ? area->left + by : area->left;
	/* What the edges cut through goes before it moves. */
	row_split(row, area->left, g->cols);
	row_split(row, area->right, g->cols);
	row_split(row, n > 0 ? area->right - by : area->left + by, g->cols);
	memmove(row->cells + to, row->cells + from,
		(width - by) * sizeof(*row->cells));
	if (row->used > area->left && row->used < area->right)
		row->used = (uint16_t)area->right;
	else if (row->used <= area->left && style == 0)
		return;
	if (n > 0)
		fill(row, area->left, area->left + by, style);
	else
		fill(row, area->right - by, area->right, style);
}
