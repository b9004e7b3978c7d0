/* SPDX-License-Identifier: MIT */

/*
 * Control sequences.  One table by final byte for the plain ones, a list for
 * those with a prefix or an intermediate.  What is in neither does nothing and
 * is cut: a terminal we do not know might answer it.
 */

#include "pty/vt_priv.h"

typedef int csi_handler(struct vt *vt);

/* ---- cursor ---- */

static int
csi_cuu(struct vt *vt)
{
	vt_up(vt, param(vt, 0, 1));
	return PASS;
}

static int
csi_cud(struct vt *vt)
{
	vt_down(vt, param(vt, 0, 1));
	return PASS;
}

static int
csi_cuf(struct vt *vt)
{
	vt_forward(vt, param(vt, 0, 1));
	return PASS;
}

static int
csi_cub(struct vt *vt)
{
	vt_back(vt, param(vt, 0, 1));
	return PASS;
}

static int
csi_cnl(struct vt *vt)
{
	vt_down(vt, param(vt, 0, 1));
	vt_carriage_return(vt);
	return PASS;
}

static int
csi_cpl(struct vt *vt)
{
	vt_up(vt, param(vt, 0, 1));
	vt_carriage_return(vt);
	return PASS;
}

/* The column or row as addressed, which in origin mode is from the margin. */
static unsigned int
own_x(const struct vt *vt)
{
	unsigned int left = vt->cursor.origin ? vt->margins.left : 0;

	return vt->cursor.x > left ? vt->cursor.x - left : 0;
}

static unsigned int
own_y(const struct vt *vt)
{
	unsigned int top = vt->cursor.origin ? vt->margins.top : 0;

	return vt->cursor.y > top ? vt->cursor.y - top : 0;
}

static int
csi_cha(struct vt *vt)
{
	vt_goto_origin(vt, param(vt, 0, 1) - 1, own_y(vt));
	return PASS;
}

static int
csi_vpa(struct vt *vt)
{
	vt_goto_origin(vt, own_x(vt), param(vt, 0, 1) - 1);
	return PASS;
}

static int
csi_hpr(struct vt *vt)
{
	vt_goto_origin(vt, own_x(vt) + param(vt, 0, 1), own_y(vt));
	return PASS;
}

static int
csi_vpr(struct vt *vt)
{
	vt_goto_origin(vt, own_x(vt), own_y(vt) + param(vt, 0, 1));
	return PASS;
}

static int
csi_cup(struct vt *vt)
{
	vt_goto_origin(vt, param(vt, 1, 1) - 1, param(vt, 0, 1) - 1);
	return PASS;
}

static int
csi_cht(struct vt *vt)
{
	vt_tab(vt, param(vt, 0, 1));
	return PASS;
}

static int
csi_cbt(struct vt *vt)
{
	vt_back_tab(vt, param(vt, 0, 1));
	return PASS;
}

static int
csi_tbc(struct vt *vt)
{
	unsigned int x = vt->cursor.x;

	if (param(vt, 0, 0) == 0)
		vt->tabs[x / 8] &= (uint8_t) ~(1u << x % 8);
	else if (param(vt, 0, 0) == 3)
		memset(vt->tabs, 0, sizeof(vt->tabs));
	return PASS;
}

/* ---- erasing; a wrap that waits goes on waiting ---- */

typedef void erase_fn(struct grid *g, unsigned int y, unsigned int left,
		      unsigned int right, unsigned int style);

static void
erase_line(struct vt *vt, erase_fn *erase, unsigned int what)
{
	unsigned int x = vt->cursor.x, blank = vt_blank_style(vt);
	unsigned int left = what == 0 ? x : 0;
	unsigned int right = what == 1 ? x + 1 : vt->grid->cols;

	if (what <= 2)
		erase(vt->grid, vt->cursor.y, left, right, blank);
}

static void
erase_rows(struct vt *vt, erase_fn *erase, unsigned int top,
	   unsigned int bottom)
{
	unsigned int blank = vt_blank_style(vt);

	for (unsigned int y = top; y < bottom; y++)
		erase(vt->grid, y, 0, vt->grid->cols, blank);
}

static int
erase_display(struct vt *vt, erase_fn *erase, unsigned int what)
{
	unsigned int y = vt->cursor.y, rows = vt->grid->rows;

	switch (what) {
	case 0:
		erase_line(vt, erase, 0);
		erase_rows(vt, erase, y + 1, rows);
		return PASS;
	case 1:
		erase_rows(vt, erase, 0, y);
		erase_line(vt, erase, 1);
		return PASS;
	case 2:
		erase_rows(vt, erase, 0, rows);
		return PASS;
	case 3:
		/* A person's own history is not the program's to clear. */
		if (!vt->limits.clear_history)
			return VT_CUT_STATE;
		history_clear(&vt->history);
		return PASS;
	default:
		return VT_CUT_UNKNOWN;
	}
}

static int
csi_ed(struct vt *vt)
{
	return erase_display(vt, grid_erase, param(vt, 0, 0));
}

static int
csi_el(struct vt *vt)
{
	erase_line(vt, grid_erase, param(vt, 0, 0));
	return PASS;
}

static int
csi_decsed(struct vt *vt)
{
	if (param(vt, 0, 0) == 3)
		return VT_CUT_UNKNOWN;
	return erase_display(vt, grid_erase_unprotected, param(vt, 0, 0));
}

static int
csi_decsel(struct vt *vt)
{
	erase_line(vt, grid_erase_unprotected, param(vt, 0, 0));
	return PASS;
}

static int
csi_ech(struct vt *vt)
{
	unsigned int x = vt->cursor.x, left = vt->grid->cols - x;
	unsigned int n = param(vt, 0, 1);

	grid_erase(vt->grid, vt->cursor.y, x, x + (n < left ? n : left),
		   vt_blank_style(vt));
	return PASS;
}

/* ---- inserting and deleting ---- */

static void
shift_columns(struct vt *vt, int n)
{
	struct rect area = { .left = vt->cursor.x, .right = vt->margins.right };

	vt->cursor.pending = false;
	if (vt->cursor.x >= vt->margins.left &&
	    vt->cursor.x < vt->margins.right)
		grid_shift(vt->grid, vt->cursor.y, &area, n,
			   vt_blank_style(vt));
}

static int
csi_ich(struct vt *vt)
{
	shift_columns(vt, (int)param(vt, 0, 1));
	return PASS;
}

static int
csi_dch(struct vt *vt)
{
	shift_columns(vt, -(int)param(vt, 0, 1));
	return PASS;
}

static void
shift_rows(struct vt *vt, int n)
{
	struct rect area = vt->margins;

	if (!vt_in_margins(vt))
		return;
	area.top = vt->cursor.y;
	grid_scroll(vt->grid, &area, n, vt_blank_style(vt));
	vt_goto(vt, vt->margins.left, vt->cursor.y);
}

static int
csi_il(struct vt *vt)
{
	shift_rows(vt, -(int)param(vt, 0, 1));
	return PASS;
}

static int
csi_dl(struct vt *vt)
{
	shift_rows(vt, (int)param(vt, 0, 1));
	return PASS;
}

/* DECIC, DECDC: columns of all rows between the margins. */
static int
all_columns(struct vt *vt, int n)
{
	struct rect area = vt->margins;

	if (!vt_in_margins(vt))
		return PASS;
	area.left = vt->cursor.x;
	for (unsigned int y = area.top; y < area.bottom; y++)
		grid_shift(vt->grid, y, &area, n, vt_blank_style(vt));
	return PASS;
}

static int
csi_decic(struct vt *vt)
{
	return all_columns(vt, (int)param(vt, 0, 1));
}

static int
csi_decdc(struct vt *vt)
{
	return all_columns(vt, -(int)param(vt, 0, 1));
}

/* SL, SR: the same from the margin on, wherever the cursor is. */
static int
pan(struct vt *vt, int n)
{
	for (unsigned int y = vt->margins.top; y < vt->margins.bottom; y++)
		grid_shift(vt->grid, y, &vt->margins, n, vt_blank_style(vt));
	return PASS;
}

static int
csi_sl(struct vt *vt)
{
	return pan(vt, -(int)param(vt, 0, 1));
}

static int
csi_sr(struct vt *vt)
{
	return pan(vt, (int)param(vt, 0, 1));
}

static int
csi_su(struct vt *vt)
{
	vt_scroll_up(vt, param(vt, 0, 1));
	return PASS;
}

static int
csi_sd(struct vt *vt)
{
	/* With five parameters it is an old mouse function. */
	if (vt->parser.count > 1)
		return VT_CUT_UNKNOWN;
	vt_scroll_down(vt, param(vt, 0, 1));
	return PASS;
}

static int
csi_rep(struct vt *vt)
{
	vt_repeat(vt, param(vt, 0, 1));
	return PASS;
}

/* ---- margins ---- */

static int
csi_decstbm(struct vt *vt)
{
	unsigned int rows = vt->grid->rows;
	unsigned int top = param(vt, 0, 1), bottom = param(vt, 1, rows);

	if (bottom > rows)
		bottom = rows;
	if (top >= bottom)
		return PASS;
	vt->margins.top = top - 1;
	vt->margins.bottom = bottom;
	vt_goto_origin(vt, 0, 0);
	return PASS;
}

/* DECSLRM with margins on, else SCOSC. */
static int
csi_decslrm(struct vt *vt)
{
	unsigned int cols = vt->grid->cols;
	unsigned int left = param(vt, 0, 1), right = param(vt, 1, cols);

	if (!has_mode(vt, MODE_MARGINS)) {
		vt_save_cursor(vt);
		return PASS;
	}
	if (right > cols)
		right = cols;
	if (left >= right)
		return PASS;
	vt->margins.left = left - 1;
	vt->margins.right = right;
	vt_goto_origin(vt, 0, 0);
	return PASS;
}

static int
csi_scorc(struct vt *vt)
{
	vt_restore_cursor(vt);
	return PASS;
}

/* ---- looks ---- */

static int
csi_sgr(struct vt *vt)
{
	struct parser *p = &vt->parser;
	unsigned int count = p->count ? p->count : 1;

	style_sgr(&vt->cursor.pen, p->params, count, p->joined);
	vt->pen_known = false;
	return PASS;
}

static int
csi_decscusr(struct vt *vt)
{
	unsigned int shape = param(vt, 0, 0);

	if (shape > 6)
		return VT_CUT_UNKNOWN;
	vt->cursor_shape = (uint8_t)shape;
	put_mode(vt, MODE_BLINK, shape % 2 == 1);
	return PASS;
}

static int
csi_decsca(struct vt *vt)
{
	vt->cursor.is_protected = param(vt, 0, 0) == 1;
	return PASS;
}

static int
csi_decstr(struct vt *vt)
{
	vt_soft_reset(vt);
	return PASS;
}

static int
csi_set(struct vt *vt)
{
	return vt_mode_change(vt, true);
}

static int
csi_unset(struct vt *vt)
{
	return vt_mode_change(vt, false);
}

/* ---- tables ---- */

static csi_handler *const plain[64] = {
	['@' - 64] = csi_ich,	       ['A' - 64] = csi_cuu,
	['B' - 64] = csi_cud,	       ['C' - 64] = csi_cuf,
	['D' - 64] = csi_cub,	       ['E' - 64] = csi_cnl,
	['F' - 64] = csi_cpl,	       ['G' - 64] = csi_cha,
	['H' - 64] = csi_cup,	       ['I' - 64] = csi_cht,
	['J' - 64] = csi_ed,	       ['K' - 64] = csi_el,
	['L' - 64] = csi_il,	       ['M' - 64] = csi_dl,
	['P' - 64] = csi_dch,	       ['S' - 64] = csi_su,
	['T' - 64] = csi_sd,	       ['X' - 64] = csi_ech,
	['Z' - 64] = csi_cbt,	       ['`' - 64] = csi_cha,
	['a' - 64] = csi_hpr,	       ['b' - 64] = csi_rep,
	['c' - 64] = vt_report_device, ['d' - 64] = csi_vpa,
	['e' - 64] = csi_vpr,	       ['f' - 64] = csi_cup,
	['g' - 64] = csi_tbc,	       ['h' - 64] = csi_set,
	['l' - 64] = csi_unset,	       ['m' - 64] = csi_sgr,
	['n' - 64] = vt_report_status, ['r' - 64] = csi_decstbm,
	['s' - 64] = csi_decslrm,      ['t' - 64] = vt_report_window,
	['u' - 64] = csi_scorc,
};

static const struct {
	char prefix, inter, final;
	csi_handler *handler;
} other[] = {
	{ '?', 0, 'h', csi_set },
	{ '?', 0, 'l', csi_unset },
	{ '?', 0, 'J', csi_decsed },
	{ '?', 0, 'K', csi_decsel },
	{ '?', 0, 'n', vt_report_status },
	{ '?', 0, 'r', vt_mode_restore },
	{ '?', 0, 's', vt_mode_save },
	{ '?', 0, 'u', vt_report_keyboard },
	{ '?', '$', 'p', vt_mode_query },
	{ 0, '$', 'p', vt_mode_query },
	{ '>', 0, 'c', vt_report_device },
	{ '=', 0, 'c', vt_report_device },
	{ '>', 0, 'q', vt_report_version },
	{ 0, ' ', 'q', csi_decscusr },
	{ 0, ' ', '@', csi_sl },
	{ 0, ' ', 'A', csi_sr },
	{ 0, '"', 'q', csi_decsca },
	{ 0, '!', 'p', csi_decstr },
	{ 0, '\'', '}', csi_decic },
	{ 0, '\'', '~', csi_decdc },
	{ 0, '*', 'y', vt_report_checksum },
};

int
vt_csi(struct vt *vt)
{
	const struct parser *p = &vt->parser;
	uint32_t last_ch = vt->last_ch;
	csi_handler *handler = NULL;

	if (p->prefix == 0 && p->inter_count == 0)
		handler = plain[p->final - 64];
	else if (p->inter_count <= 1)
		for (size_t i = 0; i < sizeof(other) / sizeof(*other); i++)
			if (other[i].prefix == (char)p->prefix &&
			    other[i].inter ==
				    (char)(p->inter_count ? p->inter[0] : 0) &&
			    other[i].final == (char)p->final) {
				handler = other[i].handler;
				break;
			}
	if (p->final != 'b')
		last_ch = 0;
	vt->last_ch = handler == csi_rep ? last_ch : 0;
	return handler ? handler(vt) : VT_CUT_UNKNOWN;
}
