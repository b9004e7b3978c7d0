/* SPDX-License-Identifier: MIT */

/*
 * Characters onto the grid.  A character that fills the last column leaves the
 * cursor on it, and the wrap waits for the next one.
 */

#include "pty/vt_priv.h"
#include "pty/width.h"

/* DEC special graphics: 0x5f to 0x7e. */
static const uint16_t graphics[] = {
	0x0020, 0x25c6, 0x2592, 0x2409, 0x240c, 0x240d, 0x240a, 0x00b0,
	0x00b1, 0x2424, 0x240b, 0x2518, 0x2510, 0x250c, 0x2514, 0x253c,
	0x23ba, 0x23bb, 0x2500, 0x23bc, 0x23bd, 0x251c, 0x2524, 0x2534,
	0x252c, 0x2502, 0x2264, 0x2265, 0x03c0, 0x2260, 0x00a3, 0x00b7,
};

static uint32_t
translate(struct vt *vt, uint32_t ch)
{
	unsigned int set = vt->single_shift ? vt->single_shift : vt->cursor.gl;

	vt->single_shift = 0;
	if (ch >= 0x80)
		return ch;
	if (vt->cursor.charset[set] == CHARSET_GRAPHICS && ch >= 0x5f)
		return graphics[ch - 0x5f];
	if (vt->cursor.charset[set] == CHARSET_UK && ch == '#')
		return 0xa3;
	return ch;
}

/* One past the column where the cursor's line ends for it. */
static unsigned int
line_end(const struct vt *vt)
{
	return vt->cursor.x < vt->margins.right ? vt->margins.right
						: vt->grid->cols;
}

static void
wrap(struct vt *vt)
{
	bool whole;

	vt->cursor.pending = false;
	if (!has_mode(vt, MODE_WRAP))
		return;
	/* Between margins there are no lines that could be rejoined. */
	whole = vt->margins.left == 0 && line_end(vt) == vt->grid->cols;
	if (whole)
		grid_row(vt->grid, vt->cursor.y)->wrapped = true;
	vt->cursor.x = vt->cursor.x >= vt->margins.left ? vt->margins.left : 0;
	vt_index(vt);
	if (whole)
		grid_row(vt->grid, vt->cursor.y)->continues = true;
}

static void
set_used(struct row *row, unsigned int end)
{
	if (row->used < end)
		row->used = (uint16_t)end;
}

static void
shift_right(struct vt *vt, unsigned int by)
{
	struct rect area = { .left = vt->cursor.x, .right = line_end(vt) };

	grid_shift(vt->grid, vt->cursor.y, &area, (int)by, 0);
}

/* `width` columns at the cursor are taken: what they cut through goes. */
static void
advance(struct vt *vt, struct row *row, unsigned int width, unsigned int end)
{
	set_used(row, vt->cursor.x + width);
	vt->cursor.x += width;
	if (vt->cursor.x >= end) {
		vt->cursor.x = end - 1;
		vt->cursor.pending = true;
	}
}

static void
print_narrow(struct vt *vt, uint32_t ch)
{
	struct cursor *c = &vt->cursor;
	unsigned int end = line_end(vt);
	struct row *row;

	if (has_mode(vt, MODE_INSERT))
		shift_right(vt, 1);
	row = grid_row(vt->grid, c->y);
	row_split(row, c->x, vt->grid->cols);
	row_split(row, c->x + 1, vt->grid->cols);
	row->cells[c->x] = (struct cell){
		.ch = ch,
		.style = (uint16_t)vt_pen(vt),
		.flags = c->is_protected ? CELL_PROTECTED : 0,
	};
	advance(vt, row, 1, end);
}

static void
print_wide(struct vt *vt, uint32_t ch)
{
	struct cursor *c = &vt->cursor;
	unsigned int end = line_end(vt);
	struct cell cell;
	struct row *row;

	if (c->x + 2 > end) {
		if (!has_mode(vt, MODE_WRAP))
			return;
		row = grid_row(vt->grid, c->y);
		row_split(row, c->x, vt->grid->cols);
		row_split(row, c->x + 1, vt->grid->cols);
		row->cells[c->x] = (struct cell){
			.style = (uint16_t)vt_blank_style(vt),
			.flags = CELL_PAD,
		};
		set_used(row, c->x + 1);
		wrap(vt);
		end = line_end(vt);
		if (c->x + 2 > end)
			return;
	}
	if (has_mode(vt, MODE_INSERT))
		shift_right(vt, 2);
	row = grid_row(vt->grid, c->y);
	row_split(row, c->x, vt->grid->cols);
	row_split(row, c->x + 2, vt->grid->cols);
	cell = (struct cell){
		.ch = ch,
		.style = (uint16_t)vt_pen(vt),
		.flags = CELL_WIDE | (c->is_protected ? CELL_PROTECTED : 0),
	};
	row->cells[c->x] = cell;
	cell.ch = 0;
	cell.flags ^= CELL_WIDE | CELL_TAIL;
	row->cells[c->x + 1] = cell;
	row->wide = true;
	advance(vt, row, 2, end);
}

/* Onto the character before the cursor, if there is one. */
static void
combine(struct vt *vt, uint32_t mark)
{
	struct row *row = grid_row(vt->grid, vt->cursor.y);
	unsigned int x = vt->cursor.x;
	uint32_t ch;

	if (!vt->cursor.pending) {
		if (x == 0)
			return;
		x--;
	}
	if (row->cells[x].flags & CELL_TAIL)
		x--;
	/* On nothing it stands on a space. */
	ch = row->cells[x].ch;
	ch = vt_cluster(vt, ch ? ch : ' ', mark);
	row->cells[x].ch = ch;
	row->cells[x].flags &= (uint16_t)~CELL_PAD;
	set_used(row, x + 1);
}

static void
print(struct vt *vt, uint32_t ch)
{
	unsigned int width = width_of(ch);

	if (width == 0) {
		combine(vt, ch);
		return;
	}
	if (vt->cursor.pending)
		wrap(vt);
	if (width == 1)
		print_narrow(vt, ch);
	else
		print_wide(vt, ch);
	vt->last_ch = ch;
}

void
vt_print(struct vt *vt, uint32_t ch)
{
	print(vt, translate(vt, ch));
}

static void
put_ascii(struct vt *vt, const unsigned char *bytes, size_t len)
{
	struct cursor *c = &vt->cursor;
	struct row *row = grid_row(vt->grid, c->y);
	struct cell cell = {
		.style = (uint16_t)vt_pen(vt),
		.flags = c->is_protected ? CELL_PROTECTED : 0,
	};
	struct cell *to = row->cells + c->x;

	row_split(row, c->x, vt->grid->cols);
	row_split(row, c->x + (unsigned int)len, vt->grid->cols);
	for (size_t i = 0; i < len; i++) {
		cell.ch = bytes[i];
		to[i] = cell;
	}
}

void
vt_print_ascii(struct vt *vt, const unsigned char *bytes, size_t len)
{
	struct cursor *c = &vt->cursor;

	if (vt->single_shift || has_mode(vt, MODE_INSERT) ||
	    c->charset[c->gl] != CHARSET_ASCII) {
		for (size_t i = 0; i < len; i++)
			vt_print(vt, bytes[i]);
		return;
	}
	vt->last_ch = bytes[len - 1];
	while (len > 0) {
		unsigned int end;
		size_t n;

		if (c->pending)
			wrap(vt);
		end = line_end(vt);
		n = end - c->x;
		/* Without wrap, all but the last of the rest is overwritten. */
		if (n < len && n == 1 && !has_mode(vt, MODE_WRAP)) {
			bytes += len - 1;
			len = 1;
		}
		n = n < len ? n : len;
		put_ascii(vt, bytes, n);
		advance(vt, grid_row(vt->grid, c->y), (unsigned int)n, end);
		bytes += n;
		len -= n;
	}
}

void
vt_repeat(struct vt *vt, unsigned int count)
{
	unsigned int max = vt->grid->cols * vt->grid->rows;
	unsigned char run[128];
	uint32_t ch = vt->last_ch;

	if (ch == 0)
		return;
	count = count < max ? count : max;
	memset(run, (int)(ch & 0x7f), sizeof(run));
	while (count > 0) {
		unsigned int n = 1;

		if (ch < 0x80 &&
		    vt->cursor.charset[vt->cursor.gl] == CHARSET_ASCII) {
			n = count < sizeof(run) ? count : sizeof(run);
			vt_print_ascii(vt, run, n);
		} else {
			print(vt, ch);
		}
		count -= n;
	}
}
