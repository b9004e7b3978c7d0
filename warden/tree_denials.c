/* SPDX-License-Identifier: MIT */

/*
 * `denials` and `denials.last`: the records of this world, out of the store.
 *
 * Positions in a growing file must never mean something else later, so each
 * record is rendered once, when it has come into the store, and appended to a
 * file that has no name.  A repeat that raises the count of a record does not
 * change its line.
 *
 * Whoever asks how long the file is sees what was refused before: all that is
 * recorded is brought into the store and appended first, on the pool.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "policy/store.h"
#include "warden/tree_priv.h"

/* Rendered before it is written. */

static const struct tree_node denials_node = { .row = ROW_DENIALS };
static const struct tree_node last_node = { .row = ROW_DENIALS_LAST };

/* ---- on the pool ---- */

static int
open_nameless(const struct warden *warden, int *ret_fd)
{
	char path[4096];
	int fd;

	if (snprintf(path, sizeof(path), "%s/denials.lines",
		     warden->places.state_world) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		  0600);
	if (fd < 0)
		return -errno;
	(void)unlink(path);
	*ret_fd = fd;
	return 0;
}

static int
write_lines(struct tree_denials *denials)
{
	size_t done = 0;

	while (done < denials->lines.len) {
		ssize_t n = pwrite(denials->fd, denials->lines.data + done,
				   denials->lines.len - done,
				   (off_t)(denials->end + done));

		if (n <= 0)
			return n < 0 ? -errno : -ENOSPC;
		done += (size_t)n;
	}
	denials->end += done;
	denials->lines.len = 0;
	return 0;
}

static int
add_line(const struct denial *denial, void *data)
{
	struct tree_denials *denials = data;
	uint64_t begins = denials->end + denials->lines.len;
	int r;

	denial_to_json(denial, &denials->lines);
	buf_puts(&denials->lines, "\n");
	r = buf_error(&denials->lines);
	if (r == 0 && denials->lines.len > LIMIT_TREE_DENIALS)
		r = write_lines(denials);
	if (r < 0)
		return r;
	denials->end_line = begins;
	denials->last_id = denial->id;
	return 0;
}

static void
on_work(uv_work_t *work)
{
	struct warden_tree *tree = work->data;
	struct tree_denials *denials = &tree->denials;
	_cleanup_(store_closep) struct store *store = NULL;
	const struct store_query query = {
		.since = denials->last_id,
		.world = tree->warden->opt.world,
	};
	struct errmsg why = { "" };
	int r = 0;

	if (denials->fd < 0)
		r = open_nameless(tree->warden, &denials->fd);
	/* Nothing was ever refused: no database for that. */
	if (r == 0 && denials->rows_before > 0) {
		denials_flush(tree->warden->denials);
		r = store_open(tree->warden->places.db, &store, &why);
		if (r == 0)
			r = store_each_denial(store, &query, add_line, denials);
		if (r == 0)
			r = write_lines(denials);
	}
	denials->result = r;
}

/* ---- on the loop ---- */

static uint64_t
rows_now(const struct warden_tree *tree)
{
	struct denials_summary summary = { 0 };

	denials_summarize(tree->warden->denials, &summary);
	return summary.rows;
}

static void start_work(struct warden_tree *tree);

static void
on_worked(uv_work_t *work, int status)
{
	struct warden_tree *tree = work->data;
	struct tree_denials *denials = &tree->denials;

	(void)status;
	denials->busy = false;
	if (denials->result < 0)
		log_line(tree->warden->log, LOG_ERROR, "denials: %s",
			 strerror(-denials->result));
	/* What has been written is a whole number of lines, also then. */
	buf_fini(&denials->lines);
	denials->lines = (struct buf){ 0 };
	if (denials->end > denials->size) {
		denials->size = denials->end;
		denials->last_line = denials->end_line;
	}
	denials->rows = denials->rows_before;
	denials->known = true;
	if (tree->closed)
		return;
	denials->fresh = true;
	tree_changed(tree->tree, denials_node);
	tree_changed(tree->tree, last_node);
	denials->fresh = false;
	if (denials->again)
		start_work(tree);
}

static void
start_work(struct warden_tree *tree)
{
	struct tree_denials *denials = &tree->denials;

	denials->again = denials->busy;
	if (denials->busy || tree->closed)
		return;
	denials->rows_before = rows_now(tree);
	denials->end = denials->size;
	denials->end_line = denials->last_line;
	denials->work.data = tree;
	denials->busy = uv_queue_work(&tree->warden->loop, &denials->work,
				      on_work, on_worked) == 0;
}

/* -EINPROGRESS: wait for what is on record by now. */
static int
bring_up_to_date(struct warden_tree *tree)
{
	struct tree_denials *denials = &tree->denials;

	if (denials->fresh ||
	    (denials->known && denials->rows == rows_now(tree)))
		return 0;
	if (!denials->busy)
		start_work(tree);
	else
		denials->again = true;
	return denials->busy ? -EINPROGRESS : -ENOMEM;
}

void
warden_tree_denials(struct warden_tree *tree)
{
	/* Somebody may be polling, or following. */
	if (tree && tree->denials.known)
		start_work(tree);
}

int
tree_denials_stat(struct warden_tree *tree, struct tree_stat *ret_stat)
{
	int r = bring_up_to_date(tree);

	if (r < 0)
		return r;
	ret_stat->size = tree->denials.size;
	return 0;
}

int
tree_denials_read(struct warden_tree *tree, uint64_t offset, void *buf,
		  size_t size, struct tree_view *ret_view)
{
	struct tree_denials *denials = &tree->denials;
	ssize_t n;

	*ret_view = (struct tree_view){ 0 };
	if (offset >= denials->size) {
		int r = bring_up_to_date(tree);

		if (r < 0)
			return r;
	}
	if (offset >= denials->size)
		return 0;
	if (size > denials->size - offset)
		size = (size_t)(denials->size - offset);
	n = pread(denials->fd, buf, size, (off_t)offset);
	if (n < 0)
		return -errno;
	ret_view->len = (size_t)n;
	return 0;
}

int
tree_denials_last(struct warden_tree *tree, struct buf *ret_text)
{
	struct tree_denials *denials = &tree->denials;
	uint64_t at;
	int r = bring_up_to_date(tree);

	for (at = denials->last_line; r == 0 && at < denials->size;) {
		char part[4096];
		size_t want = denials->size - at < sizeof(part)
				      ? (size_t)(denials->size - at)
				      : sizeof(part);
		ssize_t n = pread(denials->fd, part, want, (off_t)at);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		buf_put(ret_text, part, (size_t)n);
		at += (uint64_t)n;
	}
	return r;
}

void
tree_denials_init(struct warden_tree *tree)
{
	tree->denials.fd = -1;
}

void
tree_denials_fini(struct warden_tree *tree)
{
	closep(&tree->denials.fd);
	tree->denials.fd = -1;
	buf_fini(&tree->denials.lines);
}
