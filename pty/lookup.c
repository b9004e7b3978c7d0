/* SPDX-License-Identifier: MIT */

/*
 * From what is shown to the numbers that cells hold.  When a table is full,
 * what no cell shows is forgotten; when that frees little, full it stays for a
 * while: to look again for each new style would cost a walk over the screen
 * each time.  Then styles lose their colours, marks are dropped and links are
 * not links.
 */

#include "pty/vt_priv.h"

#define COLLECT_WAIT   4096 /* failures between two walks that freed little */
#define COLLECT_ENOUGH 1024

static void
mark_grid(struct vt *vt, const struct grid *g)
{
	for (unsigned int y = 0; y < g->rows; y++) {
		const struct row *row = grid_row(g, y);

		for (unsigned int x = 0; x < row->used; x++) {
			intern_mark(&vt->lex.styles, row->cells[x].style);
			if (row->cells[x].ch & CELL_CLUSTER)
				intern_mark(&vt->lex.clusters,
					    row->cells[x].ch & ~CELL_CLUSTER);
		}
	}
}

void
vt_collect(struct vt *vt)
{
	struct lexicon *lex = &vt->lex;
	uint32_t before =
		lex->styles.live + lex->clusters.live + lex->links.live;

	for (unsigned int i = 0; i < 2; i++) {
		mark_grid(vt, &vt->screens[i].grid);
		intern_mark(&lex->links, vt->screens[i].saved.pen.link);
	}
	intern_mark(&lex->links, vt->cursor.pen.link);
	intern_sweep(&lex->styles);
	intern_sweep(&lex->clusters);
	for (unsigned int id = 1; id < lex->styles.count; id++) {
		if (!intern_has(&lex->styles, id))
			continue;
		intern_mark(&lex->links, lexicon_style(lex, id).link);
	}
	intern_sweep(&lex->links);
	vt->pen_known = false;
	if (before - lex->styles.live - lex->clusters.live - lex->links.live <
	    COLLECT_ENOUGH)
		vt->collect_wait = COLLECT_WAIT;
}

static uint32_t
put(struct vt *vt, struct intern *table, const void *bytes, size_t len)
{
	uint32_t id = intern_put(table, bytes, (uint32_t)len);

	if (id)
		return id;
	if (vt->collect_wait > 0) {
		vt->collect_wait--;
		return 0;
	}
	vt_collect(vt);
	return intern_put(table, bytes, (uint32_t)len);
}

static unsigned int
style_number(struct vt *vt, const struct style *style)
{
	static const struct style plain = { 0 };

	if (style_same(style, &plain))
		return 0;
	return put(vt, &vt->lex.styles, style, sizeof(*style));
}

unsigned int
vt_pen(struct vt *vt)
{
	if (!vt->pen_known) {
		vt->pen_id = (uint16_t)style_number(vt, &vt->cursor.pen);
		vt->pen_known = true;
	}
	return vt->pen_id;
}

unsigned int
vt_blank_style(struct vt *vt)
{
	struct style style = { .bg = vt->cursor.pen.bg };

	return style_number(vt, &style);
}

uint32_t
vt_cluster(struct vt *vt, uint32_t ch, uint32_t mark)
{
	uint32_t cluster[CLUSTER_MAX], len = 1, id;

	if (ch & CELL_CLUSTER) {
		const void *old = intern_peek(&vt->lex.clusters,
					      ch & ~CELL_CLUSTER, &len);

		memcpy(cluster, old, len);
		len /= sizeof(*cluster);
	} else {
		cluster[0] = ch;
	}
	if (len == CLUSTER_MAX)
		return ch;
	cluster[len++] = mark;
	id = put(vt, &vt->lex.clusters, cluster, len * sizeof(*cluster));
	return id ? id | CELL_CLUSTER : ch;
}

void
vt_set_link(struct vt *vt, const char *link, size_t len)
{
	vt->cursor.pen.link = 0;
	if (len > 0)
		vt->cursor.pen.link =
			(uint16_t)put(vt, &vt->lex.links, link, len);
	vt->pen_known = false;
}
