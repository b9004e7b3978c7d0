/* SPDX-License-Identifier: MIT */

/*
 * Jobs in the control tree.  All of it is in memory or in the page cache, but
 * for what was asked for (command, cwd, env), which is read from the store.
 *
 * Who waits is told by the events of jobs: the tree listens from the first look
 * at them on.
 */

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "warden/jobs.h"
#include "warden/jobs_row.h"
#include "warden/tree_priv.h"

/* A reader's place in the output; the state of its open file. */
struct reader {
	void (*close)(void *state);
	struct output_cursor cursor;
};

static void
on_event(uint64_t job, enum jobs_event event, void *data)
{
	struct warden_tree *tree = data;

	(void)event;
	if (!tree->closed)
		tree_changed(tree->tree,
			     (struct tree_node){ .row = ROW_JOB, .item = job });
}

/* -ENOENT: this world has no jobs. */
static int
enter(struct warden_tree *tree)
{
	int r = 0;

	if (!tree->listener)
		r = jobs_listen(tree->warden, on_event, tree, &tree->listener);
	return r == -ENOTSUP ? -ENOENT : r;
}

static bool
has_ended(const struct store_job *row)
{
	return jobs_row_exit(row) >= 0;
}

static enum output_stream
stream_of(unsigned int row)
{
	if (row == ROW_STDOUT)
		return OUTPUT_STDOUT;
	return row == ROW_STDERR ? OUTPUT_STDERR : OUTPUT_BOTH;
}

static bool
is_stream(unsigned int row)
{
	return row == ROW_STDOUT || row == ROW_STDERR || row == ROW_OUTPUT ||
	       row == ROW_FOLLOW;
}

/* ---- what is there ---- */

static int
job_stat(struct warden_tree *tree, struct tree_node node,
	 struct tree_stat *ret_stat)
{
	struct warden *warden = tree->warden;
	struct store_job row;
	int r = jobs_get_row(warden, node.item, &row);

	if (r < 0)
		return r;
	ret_stat->time_ns = row.ended_ns ? row.ended_ns : row.created_ns;
	if ((node.row == ROW_EXIT && !has_ended(&row)) ||
	    (node.row == ROW_PID && row.pid <= 0))
		return -ENOENT;
	if (!is_stream(node.row))
		return 0;
	r = jobs_output_end(warden, node.item, stream_of(node.row),
			    &ret_stat->size, &ret_stat->final);
	if (r == 0 && !ret_stat->final && ret_stat->size > 0)
		ret_stat->time_ns = clock_real_ns();
	return r;
}

int
tree_jobs_stat(struct warden_tree *tree, struct tree_node node,
	       struct tree_stat *ret_stat)
{
	int r = enter(tree);

	if (r < 0 || node.item == 0)
		return r;
	return job_stat(tree, node, ret_stat);
}

uint64_t
tree_jobs_next(struct warden_tree *tree, uint64_t after)
{
	return enter(tree) == 0 ? jobs_next_id(tree->warden, after) : 0;
}

/* ---- removing ---- */

int
tree_removal_get(struct warden_tree *tree, uint64_t item,
		 struct tree_removal **ret_removal)
{
	struct tree_removal *removal;
	int r;

	LIST_FOREACH(removal, &tree->removals, link)
	if (removal->item == item)
		break;
	if (removal && removal->error == 0)
		return -EINPROGRESS;
	if (removal) {
		r = removal->error;
		tree_removal_free(removal);
		return r;
	}
	removal = calloc(1, sizeof(*removal));
	if (!removal)
		return -ENOMEM;
	removal->tree = tree;
	removal->item = item;
	LIST_INSERT_HEAD(&tree->removals, removal, link);
	*ret_removal = removal;
	return 0;
}

void
tree_removal_free(struct tree_removal *removal)
{
	LIST_REMOVE(removal, link);
	free(removal);
}

/* What has gone needs no word: whoever waits will not find it. */
static void
on_removed(const struct jobs_removed *result, void *data)
{
	struct tree_removal *removal = data;
	struct warden_tree *tree = removal->tree;
	uint64_t job = removal->item;

	removal->error = result->error;
	if (result->error == 0)
		tree_removal_free(removal);
	on_event(job, JOBS_CHANGED, tree);
}

int
tree_jobs_remove(struct warden_tree *tree, uint64_t job)
{
	struct tree_removal *removal = NULL;
	int r = tree_removal_get(tree, job, &removal);

	if (r < 0)
		return r;
	r = jobs_remove(tree->warden, &job, 1, on_removed, removal);
	if (r < 0)
		tree_removal_free(removal);
	return r < 0 ? r : -EINPROGRESS;
}

void
tree_jobs_free(struct warden_tree *tree)
{
	while (!LIST_EMPTY(&tree->removals))
		tree_removal_free(LIST_FIRST(&tree->removals));
}

/* ---- texts ---- */

static bool
is_plain(const char *word)
{
	return *word && word[strspn(word, "abcdefghijklmnopqrstuvwxyz"
					  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
					  "0123456789_@%+=:,./-")] == '\0';
}

/* As a shell would take it for the one word that it is. */
static void
put_word(struct buf *out, const char *word)
{
	if (is_plain(word)) {
		buf_puts(out, word);
		return;
	}
	buf_puts(out, "'");
	for (const char *at = word; *at; at++) {
		if (*at == '\'')
			buf_puts(out, "'\\''");
		else
			buf_put(out, at, 1);
	}
	buf_puts(out, "'");
}

int
tree_put_list(const json_t *list, bool as_words, struct buf *out)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		_cleanup_(freep) char *text = NULL;

		if (!json_is_string(item))
			continue;
		text = json_unescape(json_string_value(item));
		if (!text)
			return -ENOMEM;
		if (!as_words) {
			buf_puts(out, text);
			buf_puts(out, "\n");
			continue;
		}
		if (i > 0)
			buf_puts(out, " ");
		put_word(out, text);
	}
	if (as_words)
		buf_puts(out, "\n");
	return 0;
}

static int
spec_text(struct warden_tree *tree, struct tree_node node, struct buf *out)
{
	_cleanup_(freep) char *spec = NULL;
	_cleanup_(freep) char *cwd = NULL;
	const char *text;
	json_t *root;
	int r = jobs_read_spec(tree->warden, node.item, &spec);

	if (r < 0)
		return r;
	root = json_loads(spec, 0, NULL);
	if (node.row == ROW_COMMAND) {
		r = tree_put_list(json_object_get(root, "argv"), true, out);
	} else if (node.row == ROW_ENV) {
		r = tree_put_list(json_object_get(root, "env"), false, out);
	} else if ((text = json_string_value(json_object_get(root, "cwd")))) {
		cwd = json_unescape(text);
		buf_puts(out, cwd ? cwd : text);
		buf_puts(out, "\n");
	}
	json_decref(root);
	return r;
}

static int
status_text(struct warden_tree *tree, struct tree_node node, struct buf *out)
{
	char line[512];
	int r = jobs_status_line(tree->warden, node.item, line, sizeof(line));

	if (r == 0)
		buf_putf(out, "%s\n", line);
	return r;
}

int
tree_jobs_text(struct warden_tree *tree, struct tree_node node, struct buf *out)
{
	struct store_job row;
	int r;

	if (node.row == ROW_NEW) {
		tree_new_text(tree, out);
		return 0;
	}
	r = jobs_get_row(tree->warden, node.item, &row);
	if (r < 0)
		return r;
	switch (node.row) {
	case ROW_COMMAND:
	case ROW_CWD:
	case ROW_ENV:
		return spec_text(tree, node, out);
	case ROW_WAIT:
		return has_ended(&row) ? status_text(tree, node, out) : -EAGAIN;
	case ROW_STATUS:
		return status_text(tree, node, out);
	case ROW_STATUS_JSON:
		r = jobs_state_json(tree->warden, node.item, out);
		buf_puts(out, "\n");
		return r;
	case ROW_EXIT:
		if (!has_ended(&row))
			return -ENOENT;
		buf_putf(out, "%d\n", jobs_row_exit(&row));
		return 0;
	case ROW_PID:
		buf_putf(out, "%lld\n", (long long)row.pid);
		return row.pid > 0 ? 0 : -ENOENT;
	case ROW_CTL:
		tree_ctl_text(tree, node.item, out);
		return 0;
	default:
		return -EINVAL;
	}
}

/* ---- output ---- */

static void
reader_close(void *state)
{
	struct reader *reader = state;

	output_cursor_fini(&reader->cursor);
	free(reader);
}

static struct reader *
reader_of(const struct tree_asker *asker, enum output_stream stream)
{
	struct reader *reader = *asker->state;

	if (!reader) {
		reader = calloc(1, sizeof(*reader));
		if (reader) {
			reader->close = reader_close;
			reader->cursor.stream = stream;
		}
		*asker->state = reader;
	}
	return reader;
}

int
tree_jobs_read(struct warden_tree *tree, const struct tree_asker *asker,
	       uint64_t offset, void *buf, size_t size,
	       struct tree_view *ret_view)
{
	enum output_stream stream = stream_of(asker->node.row);
	struct segments_view view = { 0 };
	struct reader *reader = reader_of(asker, stream);
	const struct jobs_span span = { offset, buf, size };
	uint64_t end;
	bool final;
	int r;

	*ret_view = (struct tree_view){ 0 };
	if (!reader)
		return -ENOMEM;
	r = jobs_output_end(tree->warden, asker->node.item, stream, &end,
			    &final);
	if (r < 0)
		return r;
	ret_view->final = final;
	if (offset >= end)
		return 0;
	reader->cursor.stream = stream;
	r = jobs_read(tree->warden, asker->node.item, &reader->cursor, &span,
		      &view);
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

void
tree_jobs_close(struct warden_tree *tree)
{
	jobs_unlisten(tree->listener);
	tree->listener = NULL;
}
