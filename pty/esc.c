/* SPDX-License-Identifier: MIT */

/* Control characters and the short sequences. */

#include "pty/vt_priv.h"

void
vt_control(struct vt *vt, unsigned char c)
{
	vt->last_ch = 0;
	switch (c) {
	case 0x07:
		vt_event(vt, VT_EVENT_BELL, NULL, 0);
		break;
	case 0x08:
		vt_backspace(vt);
		break;
	case 0x09:
		vt_tab(vt, 1);
		break;
	case 0x0a:
	case 0x0b:
	case 0x0c:
		vt_index(vt);
		if (has_mode(vt, MODE_NEWLINE))
			vt_carriage_return(vt);
		break;
	case 0x0d:
		vt_carriage_return(vt);
		break;
	case 0x0e:
		vt->cursor.gl = 1;
		break;
	case 0x0f:
		vt->cursor.gl = 0;
		break;
	default:
		break;
	}
}

/* DECALN */
static void
alignment_test(struct vt *vt)
{
	struct cell e = { .ch = 'E' };

	vt_full_margins(vt);
	put_mode(vt, MODE_ORIGIN, false);
	vt->cursor.origin = false;
	grid_clear(vt->grid, 0);
	for (unsigned int y = 0; y < vt->grid->rows; y++) {
		struct row *row = grid_row(vt->grid, y);

		for (unsigned int x = 0; x < vt->grid->cols; x++)
			row->cells[x] = e;
		row->used = (uint16_t)vt->grid->cols;
	}
	vt_goto(vt, 0, 0);
}

static int
designate(struct vt *vt, unsigned int which, unsigned char set)
{
	vt->cursor.charset[which] = set == '0'	 ? CHARSET_GRAPHICS
				    : set == 'A' ? CHARSET_UK
						 : CHARSET_ASCII;
	return PASS;
}

static void
set_tab(struct vt *vt)
{
	vt->tabs[vt->cursor.x / 8] |= (uint8_t)(1u << vt->cursor.x % 8);
}

static int
plain_esc(struct vt *vt)
{
	switch (vt->parser.final) {
	case '7':
		vt_save_cursor(vt);
		return PASS;
	case '8':
		vt_restore_cursor(vt);
		return PASS;
	case '=':
	case '>':
		put_mode(vt, MODE_APP_KEYPAD, vt->parser.final == '=');
		return PASS;
	case 'D':
		vt_index(vt);
		return PASS;
	case 'E':
		vt_index(vt);
		vt_carriage_return(vt);
		return PASS;
	case 'H':
		set_tab(vt);
		return PASS;
	case 'M':
		vt_reverse_index(vt);
		return PASS;
	case 'N':
	case 'O':
		vt->single_shift = vt->parser.final == 'N' ? 2 : 3;
		return PASS;
	case 'Z': /* DECID */
		return vt_report_device(vt);
	case 'c':
		vt_reset(vt);
		vt_event(vt, VT_EVENT_RESET, NULL, 0);
		return PASS;
	case 'n':
	case 'o':
		vt->cursor.gl = vt->parser.final == 'n' ? 2 : 3;
		return PASS;
	case '\\': /* an ST with no string */
		return PASS;
	default:
		return VT_CUT_UNKNOWN;
	}
}

int
vt_esc(struct vt *vt)
{
	const struct parser *p = &vt->parser;

	vt->last_ch = 0;
	if (p->inter_count == 0)
		return plain_esc(vt);
	if (p->inter_count > 1)
		return VT_CUT_UNKNOWN;
	switch (p->inter[0]) {
	case '(':
	case ')':
	case '*':
	case '+':
		return designate(vt, p->inter[0] - '(', p->final);
	case '#':
		if (p->final != '8')
			return VT_CUT_UNKNOWN;
		alignment_test(vt);
		return PASS;
	default:
		return VT_CUT_UNKNOWN;
	}
}
