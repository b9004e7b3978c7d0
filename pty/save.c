/* SPDX-License-Identifier: MIT */

/*
 * A model as bytes.  Rows are packed, so that what is read back does not depend
 * on how numbers were given out.  The half-read sequence is in it: a model may
 * be saved between any two bytes.
 *
 * The reader takes any bytes: every number is held against what the model could
 * have written, and nothing is allocated by a number that was only read.
 */

#include "pty/vt_priv.h"

#define SAVE_MAGIC   0x56656c70u /* "pleV" */
#define SAVE_VERSION 2u

/* ---- writing ---- */

static void
put_bytes(struct buf *out, const void *bytes, size_t len)
{
	buf_u32(out, (uint32_t)len);
	if (len > 0)
		buf_put(out, bytes, len);
}

static void
put_cursor(struct buf *out, const struct vt *vt, const struct cursor *c)
{
	struct style pen = c->pen;
	const void *link = NULL;
	uint32_t len = 0;

	if (pen.link)
		link = intern_peek(&vt->lex.links, pen.link, &len);
	buf_u32(out, c->x);
	buf_u32(out, c->y);
	buf_u32(out, (c->pending ? 1u : 0) | (c->is_protected ? 2u : 0) |
			     (c->origin ? 4u : 0) | (uint32_t)c->gl << 4);
	buf_put(out, c->charset, sizeof(c->charset));
	buf_u32(out, pen.fg);
	buf_u32(out, pen.bg);
	buf_u32(out, pen.underline);
	buf_u32(out, pen.attrs);
	put_bytes(out, link, len);
}

static void
put_grid(struct buf *out, const struct vt *vt, const struct grid *g)
{
	struct buf row = { 0 };

	for (unsigned int y = 0; y < g->rows; y++) {
		row.len = 0;
		pack_row(grid_row(g, y), g->cols, &vt->lex, &row);
		put_bytes(out, row.data, row.len);
	}
	if (buf_error(&row) < 0)
		out->error = buf_error(&row);
	buf_fini(&row);
}

static void
put_history(struct buf *out, const struct history *h)
{
	struct history_at at;
	bool more = history_oldest(h, &at);

	buf_u32(out, h->count);
	for (; more; more = history_newer(&at)) {
		size_t len;
		const unsigned char *bytes = history_peek(&at, &len);

		put_bytes(out, bytes, len);
	}
}

/* Fields of the parser that are numbers, in their order in the file. */
#define PARSER_FIELDS(X) \
	X(state)         \
	X(executed)      \
	X(prefix)        \
	X(inter_count)   \
	X(inter[0])      \
	X(inter[1])      \
	X(final)         \
	X(count)         \
	X(full)          \
	X(joined)        \
	X(given)         \
	X(string)        \
	X(dirty)         \
	X(overflow)      \
	X(by_bell)       \
	X(need)          \
	X(low)           \
	X(high)          \
	X(ch)

/* What is left over from sequences that ended is not state. */
static struct parser
state_of(const struct vt *vt)
{
	const struct parser *p = &vt->parser;
	struct parser state = *p;
	bool torn = p->torn_to == (p->need > 0 ? p->start : vt->offset);

	if (p->state == PARSER_GROUND)
		state = (struct parser){ .cut_from = p->cut_from };
	if (p->state != PARSER_STRING_ESC)
		state.esc_at = 0;
	for (size_t i = p->inter_count; i < sizeof(state.inter); i++)
		state.inter[i] = 0;
	state.need = p->need;
	state.low = p->need > 0 ? p->low : 0;
	state.high = p->need > 0 ? p->high : 0;
	state.ch = p->need > 0 ? p->ch : 0;
	if (p->need > 0)
		state.start = p->start;
	state.torn_from = torn ? p->torn_from : 0;
	state.torn_to = torn ? p->torn_to : 0;
	return state;
}

static void
put_parser(struct buf *out, const struct vt *vt)
{
	struct parser state = state_of(vt), *p = &state;

#define X(field) buf_u32(out, (uint32_t)p->field);
	PARSER_FIELDS(X)
#undef X
	buf_u64(out, p->start);
	buf_u64(out, p->cut_from);
	buf_u64(out, p->esc_at);
	buf_u64(out, p->torn_from);
	buf_u64(out, p->torn_to);
	for (unsigned int i = 0; i < PARSER_PARAMS; i++)
		buf_u32(out, i < p->count ? p->params[i] : 0);
	put_bytes(out, p->text.data, p->text.len);
}

void
vt_save(const struct vt *vt, struct buf *out)
{
	const struct grid *alternate = &vt->screens[ALTERNATE].grid;
	const struct rect *m = &vt->margins;

	buf_u32(out, SAVE_MAGIC);
	buf_u32(out, SAVE_VERSION);
	buf_u64(out, vt->offset);
	buf_u32(out, vt->asked_cols);
	buf_u32(out, vt->asked_rows);
	buf_u32(out, alternate->ring ? 1 : 0);
	buf_u32(out, vt->active);
	buf_u32(out, m->left);
	buf_u32(out, m->right);
	buf_u32(out, m->top);
	buf_u32(out, m->bottom);
	buf_u64(out, vt->modes);
	buf_u64(out, vt->saved_modes);
	buf_u32(out, vt->cursor_shape);
	buf_u32(out, vt->last_ch);
	buf_u32(out, vt->single_shift);
	buf_u32(out, vt->colors_touched);
	buf_put(out, vt->tabs, sizeof(vt->tabs));
	put_cursor(out, vt, &vt->cursor);
	put_cursor(out, vt, &vt->screens[PRIMARY].saved);
	put_cursor(out, vt, &vt->screens[ALTERNATE].saved);
	put_parser(out, vt);
	put_bytes(out, vt->title, strlen(vt->title));
	put_bytes(out, vt_cwd(vt), strlen(vt_cwd(vt)));
	for (unsigned int i = 0; i < 3; i++) {
		buf_u32(out, vt->dynamic[i]);
		buf_u32(out, vt->theme[i]);
	}
	buf_u32(out, vt->palette ? 256 : 0);
	for (unsigned int i = 0; vt->palette && i < 256; i++)
		buf_u32(out, vt->palette[i]);
	put_grid(out, vt, &vt->screens[PRIMARY].grid);
	if (alternate->ring)
		put_grid(out, vt, alternate);
	put_history(out, &vt->history);
}

/* ---- reading ---- */

/* Notes in r->bad that a value is none we write. */
static uint32_t
get(struct bufread *r, uint32_t max)
{
	uint32_t value = bufread_u32(r);

	if (value <= max)
		return value;
	r->bad = 1;
	return 0;
}

static const unsigned char *
get_bytes(struct bufread *r, size_t max, size_t *ret_len)
{
	uint32_t len = bufread_u32(r);
	const unsigned char *bytes = r->at;

	*ret_len = 0;
	if (r->bad || len > max || len > r->left) {
		r->bad = 1;
		return NULL;
	}
	r->at += len;
	r->left -= len;
	*ret_len = len;
	return bytes;
}

static void
get_fixed(struct bufread *r, void *out, size_t len)
{
	if (r->bad || len > r->left) {
		r->bad = 1;
		return;
	}
	memcpy(out, r->at, len);
	r->at += len;
	r->left -= len;
}

static uint32_t
get_color(struct bufread *r)
{
	uint32_t color = bufread_u32(r), kind = color & COLOR_KIND;

	if (color == 0 || kind == COLOR_RGB ||
	    (kind == COLOR_PALETTE && (color & ~COLOR_KIND) < 256))
		return color;
	r->bad = 1;
	return 0;
}

static uint32_t
get_char(struct bufread *r)
{
	uint32_t ch = bufread_u32(r);

	if (ch == 0 || (ch >= 0x20 && ch < 0x7f) ||
	    (ch >= 0xa0 && ch < 0x110000 && (ch < 0xd800 || ch > 0xdfff)))
		return ch;
	r->bad = 1;
	return 0;
}

static void
get_cursor(struct bufread *r, struct vt *vt, struct cursor *c)
{
	const unsigned char *link;
	uint32_t flags;
	size_t len;

	c->x = get(r, vt->grid->cols - 1);
	c->y = get(r, vt->grid->rows - 1);
	flags = get(r, 0x37);
	c->pending = flags & 1;
	c->is_protected = flags & 2;
	c->origin = flags & 4;
	c->gl = (uint8_t)(flags >> 4);
	get_fixed(r, c->charset, sizeof(c->charset));
	for (unsigned int i = 0; i < 4; i++)
		if (c->charset[i] >= CHARSETS)
			r->bad = 1;
	c->pen.fg = get_color(r);
	c->pen.bg = get_color(r);
	c->pen.underline = get_color(r);
	c->pen.attrs = (uint16_t)get(r, STYLE_ATTRS);
	link = get_bytes(r, LINK_MAX, &len);
	if (!link || len == 0)
		return;
	for (size_t i = 0; i < len; i++)
		if (link[i] < 0x20 || link[i] == 0x7f)
			r->bad = 1;
	if (!r->bad)
		c->pen.link = (uint16_t)intern_put(&vt->lex.links, link,
						   (uint32_t)len);
}

static void
get_parser(struct bufread *r, struct vt *vt)
{
	struct parser *p = &vt->parser;
	const unsigned char *text;
	size_t len;

#define X(field) p->field = (__typeof__(p->field))bufread_u32(r);
	PARSER_FIELDS(X)
#undef X
	p->start = bufread_u64(r);
	p->cut_from = bufread_u64(r);
	p->esc_at = bufread_u64(r);
	p->torn_from = bufread_u64(r);
	p->torn_to = bufread_u64(r);
	for (unsigned int i = 0; i < PARSER_PARAMS; i++)
		p->params[i] = (uint16_t)get(r, PARSER_PARAM_MAX);
	text = get_bytes(r, PARSER_TEXT_MAX, &len);
	if (p->state >= PARSER_STATES || p->count > PARSER_PARAMS ||
	    p->inter_count > sizeof(p->inter) + 1 || p->need > 3 ||
	    p->ch >= 0x110000 || p->start > vt->offset ||
	    p->cut_from > vt->offset || p->esc_at > vt->offset ||
	    p->torn_from > p->torn_to || p->torn_to > vt->offset ||
	    (p->need > 0 &&
	     (p->state != PARSER_GROUND || !parser_utf8_is_sound(p))) ||
	    (p->string != 0 && p->string != ']' && p->string != 'P'))
		r->bad = 1;
	if (!r->bad && len > 0) {
		buf_put(&p->text, text, len);
		for (size_t i = 0; i < len; i++)
			if (text[i] < 0x20)
				r->bad = 1;
	}
}

static void
get_margins(struct bufread *r, struct vt *vt)
{
	struct rect *m = &vt->margins;
	unsigned int cols = vt->grid->cols, rows = vt->grid->rows;

	m->left = get(r, cols - 1);
	m->right = get(r, cols);
	m->top = get(r, rows - 1);
	m->bottom = get(r, rows);
	if (m->left + 2 > m->right || m->top + (rows > 1 ? 2 : 1) > m->bottom) {
		r->bad = 1;
		vt_full_margins(vt);
	}
}

static void
get_texts(struct bufread *r, struct vt *vt)
{
	size_t len;
	const unsigned char *text = get_bytes(r, VT_TITLE_MAX, &len);

	if (text) {
		memcpy(vt->title, text, len);
		vt->title[len] = '\0';
		for (size_t i = 0; i < len; i++)
			if (text[i] < 0x20 || text[i] == 0x7f)
				r->bad = 1;
	}
	text = get_bytes(r, PARSER_TEXT_MAX, &len);
	if (text && len > 0)
		vt->cwd = strndup((const char *)text, len);
}

static int
get_colors(struct bufread *r, struct vt *vt)
{
	for (unsigned int i = 0; i < 3; i++) {
		vt->dynamic[i] = get_color(r);
		vt->theme[i] = get(r, 0xffffff);
	}
	if (get(r, 256) != 256)
		return 0;
	vt->palette = calloc(256, sizeof(*vt->palette));
	if (!vt->palette)
		return -ENOMEM;
	for (unsigned int i = 0; i < 256; i++)
		vt->palette[i] = get_color(r);
	return 0;
}

static int
get_grid(struct bufread *r, struct vt *vt, struct grid *g)
{
	struct line line = { 0 };
	int bad = 0;

	for (unsigned int y = 0; y < g->rows && bad == 0; y++) {
		struct row *row = grid_row(g, y);
		size_t len;
		const unsigned char *bytes = get_bytes(r, r->left, &len);

		if (!bytes) {
			bad = -EBADMSG;
			break;
		}
		line.len = 0;
		bad = unpack_row(bytes, len, false, &vt->lex, &line);
		if (bad == 0 && line.len > g->cols)
			bad = -EBADMSG;
		if (bad < 0)
			break;
		if (line.len > 0)
			memcpy(row->cells, line.cells,
			       line.len * sizeof(*line.cells));
		for (size_t x = 0; x < line.len; x++)
			row->wide |= (line.cells[x].flags & CELL_WIDE) != 0;
		row->used = (uint16_t)line.len;
		row->wrapped = packed_is_wrapped(bytes, len);
		row->continues = packed_continues(bytes, len);
	}
	line_fini(&line);
	return bad;
}

static int
get_history(struct bufread *r, struct vt *vt)
{
	uint32_t count = bufread_u32(r);
	struct lexicon lex;
	struct line line = { 0 };
	int bad = 0;

	/* Every row is read once, to know that it can be. */
	lexicon_init(&lex, vt->lex.styles.seed);
	while (bad == 0 && !r->bad && count-- > 0) {
		size_t len;
		const unsigned char *bytes = get_bytes(r, r->left, &len);

		line.len = 0;
		bad = bytes ? unpack_row(bytes, len, false, &lex, &line)
			    : -EBADMSG;
		if (bad == 0)
			history_push_packed(&vt->history, bytes, len);
	}
	line_fini(&line);
	lexicon_fini(&lex);
	return bad;
}

static int
get_all(struct bufread *r, struct vt *vt)
{
	bool has_alternate = get(r, 1);
	uint32_t active = get(r, has_alternate ? ALTERNATE : PRIMARY);
	int bad = 0;

	get_margins(r, vt);
	vt->modes = bufread_u64(r) & (MODE_BIT(MODE_COUNT) - 1);
	vt->saved_modes = bufread_u64(r) & (MODE_BIT(MODE_COUNT) - 1);
	vt->cursor_shape = (uint8_t)get(r, 6);
	vt->last_ch = get_char(r);
	vt->single_shift = (uint8_t)get(r, 3);
	vt->colors_touched = get(r, 1);
	get_fixed(r, vt->tabs, sizeof(vt->tabs));
	get_cursor(r, vt, &vt->cursor);
	get_cursor(r, vt, &vt->screens[PRIMARY].saved);
	get_cursor(r, vt, &vt->screens[ALTERNATE].saved);
	get_parser(r, vt);
	get_texts(r, vt);
	bad = get_colors(r, vt);
	if (bad == 0 && r->bad)
		bad = -EBADMSG;
	if (bad == 0 && has_alternate)
		bad = grid_init(&vt->screens[ALTERNATE].grid, vt->grid->cols,
				vt->grid->rows);
	if (bad == 0)
		bad = get_grid(r, vt, &vt->screens[PRIMARY].grid);
	if (bad == 0 && has_alternate)
		bad = get_grid(r, vt, &vt->screens[ALTERNATE].grid);
	if (bad == 0)
		bad = get_history(r, vt);
	if (bad == 0 && (r->bad || r->left > 0))
		bad = -EBADMSG;
	vt->active = active;
	vt->grid = &vt->screens[active].grid;
	return bad;
}

int
vt_restore(const void *bytes, size_t len, const struct vt_limits *limits,
	   const struct vt_ops *ops, void *data, struct vt **ret_vt)
{
	_cleanup_(vt_freep) struct vt *vt = NULL;
	struct bufread r = { bytes, len, 0 };
	uint32_t cols, rows, version;
	uint64_t offset;
	int bad;

	if (bufread_u32(&r) != SAVE_MAGIC)
		return -EBADMSG;
	version = bufread_u32(&r);
	if (!r.bad && version != SAVE_VERSION)
		return -EPROTONOSUPPORT;
	offset = bufread_u64(&r);
	cols = get(&r, VT_COLS_MAX);
	rows = get(&r, VT_ROWS_MAX);
	/* A row takes four bytes at least: no memory for those not there. */
	if (r.bad || rows > r.left / 4)
		return -EBADMSG;
	bad = vt_new(cols, rows, limits, ops, data, &vt);
	if (bad < 0)
		return bad;
	vt->offset = offset;
	bad = get_all(&r, vt);
	if (bad < 0)
		return bad;
	vt->pen_known = false;
	*ret_vt = take_ptr(&vt);
	return 0;
}
