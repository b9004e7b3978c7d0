/* SPDX-License-Identifier: MIT */

#include "pty/packed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "pty/vt.h"
#include "pty/width.h"

enum {
	PACKED_WRAPPED = 1,
	PACKED_PLAIN = 2,
	PACKED_STYLED = 4,
	PACKED_CONTINUES = 8,
};

enum {
	FIELD_FG = 1,
	FIELD_BG = 2,
	FIELD_UNDERLINE = 4,
	FIELD_ATTRS = 8,
	FIELD_LINK = 16,
	FIELD_PROTECTED = 32,
};

#define CHAR_CLUSTER 0xf7 /* + how many */
#define CHAR_PAD     0xff

/* ---- lines ---- */

void
line_fini(struct line *line)
{
	free(line->cells);
	*line = (struct line){ 0 };
}

int
line_reserve(struct line *line, size_t more)
{
	size_t room = line->room ? line->room : 128;
	struct cell *cells;

	if (line->len + more <= line->room)
		return 0;
	while (room < line->len + more)
		room *= 2;
	cells = realloc(line->cells, room * sizeof(*cells));
	if (!cells)
		return -ENOMEM;
	line->cells = cells;
	line->room = room;
	return 0;
}

unsigned int
row_text_end(const struct row *row)
{
	unsigned int len = row->used;

	while (len > 0 && row->cells[len - 1].ch == 0 &&
	       row->cells[len - 1].style == 0 && row->cells[len - 1].flags == 0)
		len--;
	return len;
}

unsigned int
row_length(const struct row *row, unsigned int cols)
{
	return row->wrapped ? cols : row_text_end(row);
}

int
line_add_row(struct line *line, const struct row *row, unsigned int cols,
	     bool joining)
{
	unsigned int len = row_length(row, cols);
	int r = line_reserve(line, len);

	if (r < 0)
		return r;
	for (unsigned int x = 0; x < len; x++) {
		if (joining && row->cells[x].flags & CELL_PAD)
			continue;
		line->cells[line->len++] = row->cells[x];
	}
	return 0;
}

size_t
line_row_length(const struct line *line, size_t at, unsigned int cols)
{
	size_t left = line->len - at;

	if (left <= cols)
		return left;
	return line->cells[at + cols].flags & CELL_TAIL ? cols - 1 : cols;
}

/* ---- packing ---- */

static size_t
encode(uint32_t ch, unsigned char *b)
{
	if (ch < 0x80) {
		b[0] = (unsigned char)ch;
		return 1;
	}
	if (ch < 0x800) {
		b[0] = (unsigned char)(0xc0 | ch >> 6);
		b[1] = (unsigned char)(0x80 | (ch & 0x3f));
		return 2;
	}
	if (ch < 0x10000) {
		b[0] = (unsigned char)(0xe0 | ch >> 12);
		b[1] = (unsigned char)(0x80 | (ch >> 6 & 0x3f));
		b[2] = (unsigned char)(0x80 | (ch & 0x3f));
		return 3;
	}
	b[0] = (unsigned char)(0xf0 | ch >> 18);
	b[1] = (unsigned char)(0x80 | (ch >> 12 & 0x3f));
	b[2] = (unsigned char)(0x80 | (ch >> 6 & 0x3f));
	b[3] = (unsigned char)(0x80 | (ch & 0x3f));
	return 4;
}

void
put_utf8(struct buf *out, uint32_t ch)
{
	unsigned char b[4];

	buf_put(out, b, encode(ch, b));
}

static void
put_number(struct buf *out, uint32_t n)
{
	do {
		unsigned char byte = (unsigned char)(n & 0x7f);

		n >>= 7;
		byte |= n ? 0x80 : 0;
		buf_put(out, &byte, 1);
	} while (n);
}

static void
put_style(struct buf *out, const struct style *style, bool is_protected,
	  const struct lexicon *lex)
{
	unsigned char fields = 0;
	const void *link = NULL;
	uint32_t len = 0;

	if (style->link)
		link = intern_peek(&lex->links, style->link, &len);
	fields |= style->fg ? FIELD_FG : 0;
	fields |= style->bg ? FIELD_BG : 0;
	fields |= style->underline ? FIELD_UNDERLINE : 0;
	fields |= style->attrs ? FIELD_ATTRS : 0;
	fields |= link ? FIELD_LINK : 0;
	fields |= is_protected ? FIELD_PROTECTED : 0;
	buf_put(out, &fields, 1);
	if (style->fg)
		buf_u32(out, style->fg);
	if (style->bg)
		buf_u32(out, style->bg);
	if (style->underline)
		buf_u32(out, style->underline);
	if (style->attrs)
		put_number(out, style->attrs);
	if (link) {
		put_number(out, len);
		buf_put(out, link, len);
	}
}

static unsigned char
row_flags(const struct row *row)
{
	return (row->wrapped ? PACKED_WRAPPED : 0) |
	       (row->continues ? PACKED_CONTINUES : 0);
}

size_t
pack_plain(const struct row *row, unsigned int cols, const struct lexicon *lex,
	   unsigned char *out)
{
	unsigned int len = row_length(row, cols);
	unsigned int id = len ? row->cells[0].style : 0, x;
	unsigned char *to = out + 1;

	out[0] = PACKED_PLAIN | row_flags(row);
	if (id != 0) {
		struct style style = lexicon_style(lex, id);
		unsigned char room[24];
		struct buf b = { .data = room, .room = sizeof(room) };

		if (style.link)
			return 0;
		out[0] |= PACKED_STYLED;
		put_style(&b, &style, false, lex);
		memcpy(to, room, b.len);
		to += b.len;
	}
	for (x = 0; x < len; x++) {
		const struct cell *cell = &row->cells[x];

		if (cell->ch > 0x7e || cell->style != id || cell->flags)
			return 0;
		*to++ = (unsigned char)cell->ch;
	}
	return (size_t)(to - out);
}

/* One cell at `b`, which has room for PUT_CELL_MAX; how many bytes. */
#define PUT_CELL_MAX (1 + 4 * CLUSTER_MAX)

static size_t
put_cell(unsigned char *b, const struct cell *cell, const struct lexicon *lex)
{
	const unsigned char *cluster;
	size_t n = 1;
	uint32_t len, ch;

	if (cell->flags & CELL_PAD) {
		b[0] = CHAR_PAD;
		return 1;
	}
	if (!(cell->ch & CELL_CLUSTER))
		return encode(cell->ch, b);
	cluster = intern_peek(&lex->clusters, cell->ch & ~CELL_CLUSTER, &len);
	b[0] = (unsigned char)(CHAR_CLUSTER + len / sizeof(ch));
	for (; len > 0; len -= sizeof(ch), cluster += sizeof(ch)) {
		memcpy(&ch, cluster, sizeof(ch));
		n += encode(ch, b + n);
	}
	return n;
}

static void
put_cells(struct buf *out, const struct cell *cells, unsigned int count,
	  const struct lexicon *lex)
{
	unsigned char chunk[512];
	size_t n = 0;

	for (unsigned int x = 0; x < count; x++) {
		if (cells[x].flags & CELL_TAIL)
			continue;
		if (n > sizeof(chunk) - PUT_CELL_MAX) {
			buf_put(out, chunk, n);
			n = 0;
		}
		n += put_cell(chunk + n, &cells[x], lex);
	}
	buf_put(out, chunk, n);
}

void
pack_row(const struct row *row, unsigned int cols, const struct lexicon *lex,
	 struct buf *out)
{
	unsigned int len = row_length(row, cols), x = 0, end;
	unsigned char flags = row_flags(row);

	buf_put(out, &flags, 1);
	while (x < len) {
		const struct cell *first = &row->cells[x];
		struct style style = lexicon_style(lex, first->style);
		bool is_protected = (first->flags & CELL_PROTECTED) != 0;
		uint32_t chars = 0;

		for (end = x; end < len; end++) {
			const struct cell *cell = &row->cells[end];

			if (cell->style != first->style ||
			    ((cell->flags ^ first->flags) & CELL_PROTECTED))
				break;
			chars += !(cell->flags & CELL_TAIL);
		}
		put_style(out, &style, is_protected, lex);
		put_number(out, chars);
		put_cells(out, first, end - x, lex);
		x = end;
	}
}

/* ---- unpacking ---- */

struct unpack {
	const unsigned char *at, *end;
	struct lexicon *lex;
	struct line *line;
	size_t limit; /* of the line's cells */
	bool joining;
};

static int
get_number(struct unpack *u, uint32_t *ret_n)
{
	uint32_t n = 0;

	for (unsigned int shift = 0; shift < 28; shift += 7) {
		if (u->at == u->end)
			return -EBADMSG;
		n |= (uint32_t)(*u->at & 0x7f) << shift;
		if (!(*u->at++ & 0x80)) {
			*ret_n = n;
			return 0;
		}
	}
	return -EBADMSG;
}

static int
get_color(struct unpack *u, uint32_t *ret_color)
{
	struct bufread r = { u->at, (size_t)(u->end - u->at), 0 };
	uint32_t color = bufread_u32(&r), kind = color & COLOR_KIND;

	if (r.bad || (kind != COLOR_PALETTE && kind != COLOR_RGB) ||
	    (kind == COLOR_PALETTE && (color & ~COLOR_KIND) > 255))
		return -EBADMSG;
	u->at = r.at;
	*ret_color = color;
	return 0;
}

static int
get_link(struct unpack *u, uint16_t *ret_link)
{
	uint32_t len;
	int r = get_number(u, &len);

	if (r < 0)
		return r;
	if (len == 0 || len > LINK_MAX || len > (size_t)(u->end - u->at))
		return -EBADMSG;
	for (uint32_t i = 0; i < len; i++)
		if (u->at[i] < 0x20 || u->at[i] == 0x7f)
			return -EBADMSG;
	*ret_link = (uint16_t)intern_put(&u->lex->links, u->at, len);
	u->at += len;
	return 0;
}

/* The cell without its character: style and protection. */
static int
get_style(struct unpack *u, struct cell *ret_cell)
{
	struct style style = { 0 };
	unsigned char fields;
	uint32_t attrs = 0;
	int r = 0;

	if (u->at == u->end)
		return -EBADMSG;
	fields = *u->at++;
	if (fields & FIELD_FG)
		r = get_color(u, &style.fg);
	if (r == 0 && fields & FIELD_BG)
		r = get_color(u, &style.bg);
	if (r == 0 && fields & FIELD_UNDERLINE)
		r = get_color(u, &style.underline);
	if (r == 0 && fields & FIELD_ATTRS)
		r = get_number(u, &attrs);
	if (r == 0 && fields & FIELD_LINK)
		r = get_link(u, &style.link);
	if (r < 0)
		return r;
	if (attrs & ~STYLE_ATTRS)
		return -EBADMSG;
	style.attrs = (uint16_t)attrs;
	*ret_cell = (struct cell){ .flags = fields & FIELD_PROTECTED
						    ? CELL_PROTECTED
						    : 0 };
	if (!style_same(&style, &(struct style){ 0 }))
		ret_cell->style = (uint16_t)intern_put(&u->lex->styles, &style,
						       sizeof(style));
	return 0;
}

static int
get_char(struct unpack *u, uint32_t *ret_ch)
{
	size_t len = utf8_length(u->at, (size_t)(u->end - u->at));
	const unsigned char *b = u->at;
	uint32_t ch;

	if (len == 0)
		return -EBADMSG;
	ch = b[0];
	if (len > 1)
		ch &= 0xffu >> (len + 1);
	for (size_t i = 1; i < len; i++)
		ch = ch << 6 | (b[i] & 0x3f);
	if (ch < 0x20 || (ch >= 0x7f && ch < 0xa0))
		return -EBADMSG;
	u->at += len;
	*ret_ch = ch;
	return 0;
}

static int
get_cluster(struct unpack *u, uint32_t *ret_ch, uint32_t *ret_base)
{
	unsigned int count = *u->at++ - CHAR_CLUSTER;
	uint32_t cluster[CLUSTER_MAX], id;

	if (count < 2 || count > CLUSTER_MAX)
		return -EBADMSG;
	for (unsigned int i = 0; i < count; i++) {
		int r = get_char(u, &cluster[i]);

		if (r < 0)
			return r;
	}
	id = intern_put(&u->lex->clusters, cluster,
			(uint32_t)(count * sizeof(*cluster)));
	*ret_base = cluster[0];
	*ret_ch = id ? id | CELL_CLUSTER : cluster[0];
	return 0;
}

static int
get_cell(struct unpack *u, struct cell cell)
{
	uint32_t base = 0;
	int r = 0;

	if (u->at == u->end || u->line->len + 2 > u->limit + 1)
		return -EBADMSG;
	if (*u->at == 0) {
		u->at++;
	} else if (*u->at == CHAR_PAD) {
		u->at++;
		if (u->joining)
			return 0;
		cell.flags |= CELL_PAD;
	} else if (*u->at > CHAR_CLUSTER) {
		r = get_cluster(u, &cell.ch, &base);
	} else {
		r = get_char(u, &base);
		cell.ch = base;
	}
	if (r == 0)
		r = line_reserve(u->line, 2);
	if (r < 0)
		return r;
	if (width_of(base) != 2) {
		u->line->cells[u->line->len++] = cell;
		return 0;
	}
	if (u->line->len + 2 > u->limit)
		return -EBADMSG;
	cell.flags |= CELL_WIDE;
	u->line->cells[u->line->len++] = cell;
	cell.ch = 0;
	cell.flags ^= CELL_WIDE | CELL_TAIL;
	u->line->cells[u->line->len++] = cell;
	return 0;
}

static int
get_plain(struct unpack *u, bool has_style)
{
	struct cell cell = { 0 };
	size_t len;
	int r = has_style ? get_style(u, &cell) : 0;

	if (r < 0)
		return r;
	len = (size_t)(u->end - u->at);
	if (u->line->len + len > u->limit)
		return -EBADMSG;
	r = line_reserve(u->line, len);
	if (r < 0)
		return r;
	for (; u->at < u->end; u->at++) {
		cell.ch = *u->at;
		if (cell.ch != 0 && (cell.ch < 0x20 || cell.ch > 0x7e))
			return -EBADMSG;
		u->line->cells[u->line->len++] = cell;
	}
	return 0;
}

int
unpack_row(const unsigned char *bytes, size_t len, bool joining,
	   struct lexicon *lex, struct line *line)
{
	struct unpack u = {
		bytes + 1, bytes + len, lex, line, line->len + VT_COLS_MAX,
		joining
	};
	int r = 0;

	if (len == 0)
		return -EBADMSG;
	if (bytes[0] & PACKED_PLAIN)
		return get_plain(&u, bytes[0] & PACKED_STYLED);
	while (r == 0 && u.at < u.end) {
		struct cell cell;
		uint32_t count = 0;

		r = get_style(&u, &cell);
		if (r == 0)
			r = get_number(&u, &count);
		while (r == 0 && count-- > 0)
			r = get_cell(&u, cell);
	}
	return r;
}

bool
packed_is_wrapped(const unsigned char *bytes, size_t len)
{
	return len > 0 && bytes[0] & PACKED_WRAPPED;
}

bool
packed_continues(const unsigned char *bytes, size_t len)
{
	return len > 0 && bytes[0] & PACKED_CONTINUES;
}
