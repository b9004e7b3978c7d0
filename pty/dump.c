/* SPDX-License-Identifier: MIT */

/* The screen as text, with and without colours. */

#include "pty/vt_priv.h"

void
vt_put_cell(struct buf *out, const struct cell *cell, const struct lexicon *lex)
{
	const uint32_t *cluster;
	uint32_t len, ch;

	if (cell->flags & CELL_TAIL)
		return;
	if (cell->ch == 0) {
		buf_puts(out, " ");
	} else if (!(cell->ch & CELL_CLUSTER)) {
		put_utf8(out, cell->ch);
	} else {
		cluster = intern_peek(&lex->clusters, cell->ch & ~CELL_CLUSTER,
				      &len);
		for (uint32_t i = 0; i < len / sizeof(ch); i++) {
			memcpy(&ch, cluster + i, sizeof(ch));
			put_utf8(out, ch);
		}
	}
}

static size_t
text_length(const struct row_view *row)
{
	size_t len = row->len;

	while (len > 0 && !(row->cells[len - 1].flags & CELL_TAIL) &&
	       (row->cells[len - 1].ch == 0 || row->cells[len - 1].ch == ' '))
		len--;
	return len;
}

static void
put_text(void *data, const struct row_view *row)
{
	struct buf *out = data;
	size_t len = text_length(row);

	for (size_t x = 0; x < len; x++)
		vt_put_cell(out, &row->cells[x], row->lex);
	buf_puts(out, "\n");
}

void
vt_text(const struct vt *vt, unsigned int scrollback, struct buf *out)
{
	vt_walk_rows(vt, scrollback, put_text, out);
}

unsigned int
vt_lines(const struct vt *vt, unsigned int offset, unsigned int count,
	 struct buf *out)
{
	return vt_walk_lines(vt, offset, count, put_text, out);
}

/* ---- with colours ---- */

void
vt_put_link(struct buf *out, const struct lexicon *lex,
	    const struct style *style)
{
	uint32_t len = 0, id_len;
	const char *uri = lexicon_uri(lex, style, &len), *link;

	if (!uri || !uri_is_safe(uri, len)) {
		buf_puts(out, "\033]8;;\033\\");
		return;
	}
	link = intern_peek(&lex->links, style->link, NULL);
	id_len = (uint32_t)(uri - link) - 1;
	buf_puts(out, "\033]8;");
	if (id_len > 0) {
		buf_puts(out, "id=");
		buf_put(out, link, id_len);
	}
	buf_puts(out, ";");
	buf_put(out, uri, len);
	buf_puts(out, "\033\\");
}

void
vt_put_styled(struct buf *out, const struct row_view *row, struct style *style)
{
	unsigned int id = 0;
	bool first = true;

	for (size_t x = 0; x < row->len; x++) {
		const struct cell *cell = &row->cells[x];
		struct style next;

		if (first || cell->style != id) {
			next = lexicon_style(row->lex, cell->style);
			style_put_sgr(out, style, &next);
			if (next.link != style->link)
				vt_put_link(out, row->lex, &next);
			*style = next;
			id = cell->style;
			first = false;
		}
		vt_put_cell(out, cell, row->lex);
	}
}

static void
put_ansi(void *data, const struct row_view *row)
{
	static const struct style plain = { 0 };
	struct style style = plain;
	struct buf *out = data;

	vt_put_styled(out, row, &style);
	style_put_sgr(out, &style, &plain);
	if (style.link)
		buf_puts(out, "\033]8;;\033\\");
	buf_puts(out, "\n");
}

void
vt_ansi(const struct vt *vt, unsigned int scrollback, struct buf *out)
{
	vt_walk_rows(vt, scrollback, put_ansi, out);
}
