/* SPDX-License-Identifier: MIT */

/*
 * Terminals in the control tree, as jobs are (tree_jobs.c).  The screen is that
 * of the model, drawn when the file is opened.
 */

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "pty/plain.h"
#include "pty/shell_integration.h"
#include "pty/vt.h"
#include "warden/terms.h"
#include "warden/terms_row.h"
#include "warden/tree_priv.h"

#define ALL_ROWS 100000 /* more than a model keeps */
#define CHUNK	 65536u
#define LAST_MAX (1u << 20) /* bytes of a command's output, the last ones */

/* A reader's place in the output; the state of its open file. */
struct reader {
	void (*close)(void *state);
	struct segments_file file;
};

static void
changed(struct warden_tree *tree, uint64_t term)
{
	if (!tree->closed)
		tree_changed(tree->tree, (struct tree_node){ .row = ROW_TERM,
							     .item = term });
}

static void
on_event(uint64_t term, enum terms_event event, const struct vt_event *model,
	 void *data)
{
	(void)model;
	if (event != TERMS_FED)
		changed(data, term);
}

/* -ENOENT: this world has no terminals. */
static int
enter(struct warden_tree *tree)
{
	int r = 0;

	if (!tree->terms_listener)
		r = terms_listen(tree->warden, on_event, tree,
				 &tree->terms_listener);
	return r == -ENOTSUP ? -ENOENT : r;
}

void
tree_terms_close(struct warden_tree *tree)
{
	terms_unlisten(tree->terms_listener);
	tree->terms_listener = NULL;
}

/* ---- what is there ---- */

int
tree_terms_stat(struct warden_tree *tree, struct tree_node node,
		struct tree_stat *ret_stat)
{
	struct store_term row;
	int r = enter(tree);

	if (r < 0 || node.item == 0)
		return r;
	r = terms_get_row(tree->warden, node.item, &row);
	if (r < 0)
		return r;
	ret_stat->time_ns = row.ended_ns ? row.ended_ns : row.created_ns;
	if (node.row == ROW_T_EVENTS)
		return terms_events_end(tree->warden, node.item,
					&ret_stat->size);
	if (node.row != ROW_T_RAW && node.row != ROW_T_FOLLOW)
		return 0;
	r = terms_end(tree->warden, node.item, &ret_stat->size,
		      &ret_stat->final);
	if (r == 0 && !ret_stat->final && ret_stat->size > 0)
		ret_stat->time_ns = clock_real_ns();
	return r;
}

uint64_t
tree_terms_next(struct warden_tree *tree, uint64_t after)
{
	return enter(tree) == 0 ? terms_next_id(tree->warden, after) : 0;
}

/* What has gone needs no word: whoever waits will not find it. */
static void
on_removed(uint64_t term, int result, void *data)
{
	struct tree_removal *removal = data;
	struct warden_tree *tree = removal->tree;

	removal->error = result;
	if (result == 0)
		tree_removal_free(removal);
	changed(tree, term);
}

int
tree_terms_remove(struct warden_tree *tree, uint64_t term)
{
	struct tree_removal *removal = NULL;
	int r = tree_removal_get(tree, term | TREE_TERM, &removal);

	if (r < 0)
		return r;
	r = terms_remove(tree->warden, term, on_removed, removal);
	if (r < 0)
		tree_removal_free(removal);
	return r < 0 ? r : -EINPROGRESS;
}

/* ---- texts ---- */

static int
command_text(struct warden_tree *tree, uint64_t term, struct buf *out)
{
	_cleanup_(freep) char *spec = NULL;
	int r = terms_read_spec(tree->warden, term, &spec);
	json_t *root;

	if (r < 0)
		return r;
	root = json_loads(spec, 0, NULL);
	r = tree_put_list(json_object_get(root, "argv"), true, out);
	json_decref(root);
	return r;
}

static int
screen_text(struct warden_tree *tree, struct tree_node node, struct buf *out)
{
	const struct vt *vt;
	int r = terms_catch_up(tree->warden, node.item);

	if (r < 0)
		return r;
	vt = terms_vt(tree->warden, node.item);
	if (!vt)
		return -ENOMEM;
	if (node.row == ROW_T_ANSI)
		vt_ansi(vt, 0, out);
	else
		vt_text(vt, node.row == ROW_T_SCROLLBACK ? ALL_ROWS : 0, out);
	return 0;
}

/* Of a shell that says where a command's output begins and ends. */
static int
last_text(struct warden_tree *tree, const struct store_term *row,
	  struct buf *out)
{
	_cleanup_(segments_file_fini) struct segments_file file = { 0 };
	_cleanup_(plain_freep) struct plain *plain = NULL;
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	struct segments_view view = { 0 };
	uint64_t to = 0;
	int r = terms_catch_up(tree->warden, row->id);

	if (r == 0)
		r = terms_last_output(tree->warden, row->id, &view.next, &to);
	if (r == 0)
		r = chunk ? plain_new(row->cols, &plain) : -ENOMEM;
	if (r == 0 && to > view.next + LAST_MAX)
		view.next = to - LAST_MAX;
	while (r == 0 && view.next < to) {
		const struct terms_span span = {
			.offset = view.next,
			.buf = chunk,
			.size = to - view.next < CHUNK ? to - view.next : CHUNK
		};

		r = terms_read(tree->warden, row->id, &file, &span, &view);
		if (r == 0)
			plain_feed(plain, chunk, view.len, out);
	}
	if (r == 0)
		plain_end(plain, out);
	return r;
}

static int
status_text(struct warden_tree *tree, uint64_t term, struct buf *out)
{
	char line[512];
	int r = terms_status_line(tree->warden, term, line, sizeof(line));

	if (r == 0)
		buf_putf(out, "%s\n", line);
	return r;
}

int
tree_terms_text(struct warden_tree *tree, struct tree_node node,
		struct buf *out)
{
	struct store_term row;
	int r;

	if (node.row == ROW_T_NEW || node.row == ROW_T_CTL) {
		tree_terms_usage(tree, node, out);
		return 0;
	}
	if (node.row == ROW_T_ZSHENV) {
		buf_puts(out, SHELL_ZSHENV "\n");
		return 0;
	}
	r = terms_get_row(tree->warden, node.item, &row);
	if (r < 0)
		return r;
	switch (node.row) {
	case ROW_T_COMMAND:
		return command_text(tree, node.item, out);
	case ROW_T_STATUS:
		return status_text(tree, node.item, out);
	case ROW_T_WAIT:
		return terms_row_exit(&row) >= 0
			       ? status_text(tree, node.item, out)
			       : -EAGAIN;
	case ROW_T_STATUS_JSON:
		terms_row_json(&row, out);
		buf_puts(out, "\n");
		return 0;
	case ROW_T_SIZE:
		buf_putf(out, "%ux%u\n", row.cols, row.rows);
		return 0;
	case ROW_T_TITLE:
		buf_putf(out, "%s\n", row.title ? row.title : "");
		return 0;
	case ROW_T_LAST:
		return last_text(tree, &row, out);
	case ROW_T_SCREEN:
	case ROW_T_ANSI:
	case ROW_T_SCROLLBACK:
		return screen_text(tree, node, out);
	default:
		return -EINVAL;
	}
}

/* ---- output ---- */

static void
reader_close(void *state)
{
	struct reader *reader = state;

	segments_file_fini(&reader->file);
	free(reader);
}

static struct reader *
reader_of(const struct tree_asker *asker)
{
	struct reader *reader = *asker->state;

	if (!reader) {
		reader = calloc(1, sizeof(*reader));
		if (reader)
			reader->close = reader_close;
		*asker->state = reader;
	}
	return reader;
}

int
tree_terms_read(struct warden_tree *tree, const struct tree_asker *asker,
		uint64_t offset, void *buf, size_t size,
		struct tree_view *ret_view)
{
	struct reader *reader = reader_of(asker);
	const struct terms_span span = { offset, buf, size };
	struct segments_view view = { 0 };
	uint64_t end;
	int r;

	*ret_view = (struct tree_view){ 0 };
	if (!reader)
		return -ENOMEM;
	if (asker->node.row == ROW_T_EVENTS)
		r = terms_events_end(tree->warden, asker->node.item, &end);
	else
		r = terms_end(tree->warden, asker->node.item, &end,
			      &ret_view->final);
	if (r < 0 || offset >= end)
		return r;
	if (asker->node.row == ROW_T_EVENTS)
		r = terms_events_read(tree->warden, asker->node.item, &span,
				      &view);
	else
		r = terms_read(tree->warden, asker->node.item, &reader->file,
			       &span, &view);
	if (r < 0)
		return r == -ERANGE ? 0 : r;
	/* What it skipped is a hole; what comes after that is read next time. */
	if (view.reason != SEGMENTS_KEPT && view.lost_from <= offset &&
	    view.lost_to > offset)
		ret_view->hole_to = view.lost_to;
	else
		ret_view->len = view.len;
	return 0;
}
