/* SPDX-License-Identifier: MIT */
#ifndef PTY_GRID_H
#define PTY_GRID_H

/*
 * A rectangle of cells.
 *
 * Rows stand in a ring: `top` is where the first one is, so that scrolling all
 * of it moves nothing.  Cells from `used` on are zero: blank and plain.  A wide
 * character is two cells, CELL_WIDE and CELL_TAIL, always both: what overwrites
 * or erases a half blanks the other.
 *
 * A line of text that was wrapped is rows of which each but the last is
 * `wrapped` and each but the first `continues`: both, since either row may have
 * been replaced since.  Thread: the owner's.
 */

#include <stdbool.h>
#include <stdint.h>

#define CELL_CLUSTER 0x80000000u /* in `ch`: a number in the lexicon */

enum {
	CELL_WIDE = 1,	    /* left half */
	CELL_TAIL = 2,	    /* right half; `ch` is 0 */
	CELL_PAD = 4,	    /* no room was left here for a wide character */
	CELL_PROTECTED = 8, /* DECSCA */
};

struct cell {
	uint32_t ch; /* 0: blank */
	uint16_t style;
	uint16_t flags;
};

struct row {
	struct cell *cells;
	uint16_t used;
	bool wrapped;	/* its text went on in the next row */
	bool continues; /* it goes on from the row before */
	bool wide;	/* may hold a wide character */
};

struct grid {
	unsigned int cols, rows;
	unsigned int top;
	struct row *ring;
	struct cell *cells; /* of all rows */
};

/* Columns [left, right) of rows [top, bottom). */
struct rect {
	unsigned int left, right, top, bottom;
};

int grid_init(struct grid *g, unsigned int cols, unsigned int rows);
void grid_fini(struct grid *g);

static inline struct row *
grid_row(const struct grid *g, unsigned int y)
{
	unsigned int at = g->top + y;

	return &g->ring[at >= g->rows ? at - g->rows : at];
}

/* Blanks both halves of a wide character that columns x-1 and x share. */
void row_split(struct row *row, unsigned int x, unsigned int cols);

/* Erases columns [left, right) to blanks of that style. */
void grid_erase(struct grid *g, unsigned int y, unsigned int left,
		unsigned int right, unsigned int style);
/* The same, but for what is protected. */
void grid_erase_unprotected(struct grid *g, unsigned int y, unsigned int left,
			    unsigned int right, unsigned int style);
void grid_clear(struct grid *g, unsigned int style);

/*
 * Moves what is in the rectangle up (n > 0) or down, blanks of `style` coming
 * in.  Whole rows keep their wrap marks.
 */
void grid_scroll(struct grid *g, const struct rect *area, int n,
		 unsigned int style);

/* The first row goes to the end, blank: all of the grid moves up by one. */
void grid_scroll_all(struct grid *g, unsigned int style);

/* Moves columns of [left, right) of one row right (n > 0) or left. */
void grid_shift(struct grid *g, unsigned int y, const struct rect *area, int n,
		unsigned int style);

#endif
