/* SPDX-License-Identifier: MIT */

/*
 * What the terminal answers.  An answer is typed at whatever reads the
 * terminal, so none repeats a byte that came from the stream but numbers:
 * what a query names is looked up, never echoed.
 */

#include <stdio.h>
#include <strings.h>

#include "pty/vt_priv.h"

/* DA1 (and DECID), DA2, DA3 by their prefix. */
int
vt_report_device(struct vt *vt)
{
	const struct parser *p = &vt->parser;

	if (p->count > 0 && param(vt, 0, 0) != 0)
		return VT_CUT_UNKNOWN;
	if (p->prefix == '>')
		vt_replyf(vt, "\033[>1;100;0c");
	else if (p->prefix == '=')
		vt_replyf(vt, "\033P!|50414c45\033\\");
	else
		vt_replyf(vt, "\033[?62;22c");
	return VT_CUT_QUERY;
}

static void
report_cursor(struct vt *vt, const char *prefix)
{
	unsigned int x = vt->cursor.x, y = vt->cursor.y;

	if (vt->cursor.origin) {
		x = x > vt->margins.left ? x - vt->margins.left : 0;
		y = y > vt->margins.top ? y - vt->margins.top : 0;
	}
	vt_replyf(vt, "\033[%s%u;%uR", prefix, y + 1, x + 1);
}

static bool
is_dark(uint32_t rgb)
{
	unsigned int r = rgb >> 16 & 0xff, g = rgb >> 8 & 0xff, b = rgb & 0xff;

	return 2 * r + 5 * g + b < 8 * 128;
}

int
vt_report_status(struct vt *vt)
{
	uint32_t bg = vt->dynamic[1] ? vt->dynamic[1] : vt->theme[1];
	unsigned int what = param(vt, 0, 0);

	if (vt->parser.prefix == 0 && what == 5)
		vt_replyf(vt, "\033[0n");
	else if (vt->parser.prefix == 0 && what == 6)
		report_cursor(vt, "");
	else if (vt->parser.prefix == '?' && what == 6)
		report_cursor(vt, "?");
	else if (vt->parser.prefix == '?' && what == 996)
		vt_replyf(vt, "\033[?997;%un", is_dark(bg) ? 1u : 2u);
	return VT_CUT_QUERY;
}

/* Sizes; never a title, and nothing is moved. */
int
vt_report_window(struct vt *vt)
{
	unsigned int cols = vt->asked_cols, rows = vt->asked_rows;

	switch (param(vt, 0, 0)) {
	case 14:
		vt_replyf(vt, "\033[4;%u;%ut", rows * CELL_PIXELS_Y,
			  cols * CELL_PIXELS_X);
		break;
	case 16:
		vt_replyf(vt, "\033[6;%u;%ut", (unsigned int)CELL_PIXELS_Y,
			  (unsigned int)CELL_PIXELS_X);
		break;
	case 18:
		vt_replyf(vt, "\033[8;%u;%ut", rows, cols);
		break;
	default:
		break;
	}
	return VT_CUT_QUERY;
}

int
vt_report_version(struct vt *vt)
{
	if (param(vt, 0, 0) == 0)
		vt_replyf(vt, "\033P>|pale(%s)\033\\", VERSION);
	return VT_CUT_QUERY;
}

/* The kitty keyboard protocol: none of it is on. */
int
vt_report_keyboard(struct vt *vt)
{
	vt_replyf(vt, "\033[?0u");
	return VT_CUT_QUERY;
}

/* DECRQSS */
int
vt_report_setting(struct vt *vt, const char *text)
{
	struct buf out = { 0 };
	const struct rect *m = &vt->margins;

	buf_puts(&out, "\033P1$r");
	if (strcmp(text, "m") == 0) {
		buf_puts(&out, "0");
		style_put_params(&out, &vt->cursor.pen);
	} else if (strcmp(text, "r") == 0) {
		buf_putf(&out, "%u;%u", m->top + 1, m->bottom);
	} else if (strcmp(text, "s") == 0) {
		buf_putf(&out, "%u;%u", m->left + 1, m->right);
	} else if (strcmp(text, " q") == 0) {
		buf_putf(&out, "%u", vt->cursor_shape);
	} else if (strcmp(text, "\"q") == 0) {
		buf_puts(&out, vt->cursor.is_protected ? "1" : "0");
	} else if (strcmp(text, "\"p") == 0) {
		buf_puts(&out, "62;1");
	} else {
		vt_replyf(vt, "\033P0$r\033\\");
		buf_fini(&out);
		return VT_CUT_QUERY;
	}
	buf_puts(&out, text);
	buf_puts(&out, "\033\\");
	if (buf_error(&out) == 0)
		vt_reply(vt, out.data, out.len);
	buf_fini(&out);
	return VT_CUT_QUERY;
}

/* XTGETTCAP: names in hexadecimal, joined by ';'. */
int
vt_report_caps(struct vt *vt, const char *text)
{
	static const struct {
		const char *name, *value; /* both in hexadecimal */
	} caps[] = {
		{ "544e", "787465726d2d323536636f6c6f72" },	/* TN */
		{ "6e616d65", "787465726d2d323536636f6c6f72" }, /* name */
		{ "436f", "323536" },				/* Co */
		{ "636f6c6f7273", "323536" },			/* colors */
		{ "524742", "38" },				/* RGB */
	};

	while (text) {
		size_t len = strcspn(text, ";"), i = 0;
		const size_t count = sizeof(caps) / sizeof(*caps);

		while (i < count && (strlen(caps[i].name) != len ||
				     strncasecmp(caps[i].name, text, len) != 0))
			i++;
		if (i < count)
			vt_replyf(vt, "\033P1+r%s=%s\033\\", caps[i].name,
				  caps[i].value);
		else
			vt_replyf(vt, "\033P0+r\033\\");
		text = text[len] ? text + len + 1 : NULL;
	}
	return VT_CUT_QUERY;
}

static uint32_t
first_char(const struct vt *vt, const struct cell *cell)
{
	uint32_t ch = cell->ch;

	if (ch & CELL_CLUSTER)
		memcpy(&ch,
		       intern_peek(&vt->lex.clusters, ch & ~CELL_CLUSTER, NULL),
		       sizeof(ch));
	return ch ? ch : ' ';
}

/*
 * DECRQCRA shows a program what is on the screen, so only tests may have it.
 * The sum is of the characters, a blank counting as a space: what esctest
 * wants with --xterm-checksum=334.
 */
int
vt_report_checksum(struct vt *vt)
{
	const struct grid *g = vt->grid;
	unsigned int top = param(vt, 2, 1), left = param(vt, 3, 1);
	unsigned int bottom = param(vt, 4, g->rows);
	unsigned int right = param(vt, 5, g->cols), sum = 0;

	if (!vt->limits.checksums)
		return VT_CUT_QUERY;
	if (vt->cursor.origin) {
		top += vt->margins.top;
		bottom += vt->margins.top;
		left += vt->margins.left;
		right += vt->margins.left;
	}
	for (unsigned int y = top - 1; y < bottom && y < g->rows; y++)
		for (unsigned int x = left - 1; x < right && x < g->cols; x++)
			sum += first_char(vt, &grid_row(g, y)->cells[x]);
	vt_replyf(vt, "\033P%u!~%04X\033\\", param(vt, 0, 0), sum & 0xffff);
	return VT_CUT_QUERY;
}

/* Device control strings that are questions; all others do nothing. */
int
vt_dcs(struct vt *vt)
{
	const struct parser *p = &vt->parser;
	const char *text = (const char *)p->text.data;

	vt->last_ch = 0;
	if (p->final != 'q' || p->inter_count != 1 || p->prefix)
		return VT_CUT_UNKNOWN;
	if (p->inter[0] == '$')
		return vt_report_setting(vt, text);
	if (p->inter[0] == '+')
		return vt_report_caps(vt, text);
	return VT_CUT_UNKNOWN;
}
