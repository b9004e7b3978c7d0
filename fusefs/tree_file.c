/* SPDX-License-Identifier: MIT */

/*
 * Open files of the control tree.
 *
 * A text is rendered once for each open file, so that two reads see one state;
 * its size is that of the newest open file's, because the kernel asks for sizes
 * without saying of which.  What is open for reading and writing has no
 * positions: what is written is a question, and what is read next the answer.
 *
 * A stream ends, for who reads it, where it ended when its size was last asked
 * for: a job that reads its own output would else never come to the end of it.
 * Who goes on after the end has asked.
 *
 * Everything that can still change goes past the page cache (direct_io): the
 * kernel would believe in the size that it knows, and keep what it has read.
 */

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "fusefs/tree_priv.h"

#define POLL_IN	 (POLLIN | POLLRDNORM)
#define POLL_OUT (POLLOUT | POLLWRNORM)

/* A hole is looked for, and read, in steps of this. */
#define STEP_BYTES (1u << 20)

static struct tree_asker
asker_of(const struct tree_call *call, struct tree_open *open)
{
	return (struct tree_asker){
		.node = call->node,
		.host = call->fs->config.host_visible,
		.state = open ? &open->state : NULL,
	};
}

static bool
is_text(const struct tree_row *row)
{
	return row->kind == TREE_TEXT || row->kind == TREE_TALK;
}

static bool
is_stream(const struct tree_row *row)
{
	return row->kind == TREE_STREAM || row->kind == TREE_FOLLOW;
}

/* ---- texts ---- */

/* Keeps it, and takes it; an empty buffer drops what was kept. */
static int
keep_text(struct tree *tree, struct tree_open *open, struct buf *text)
{
	size_t others = tree->text_bytes - open->text.len;
	int r = buf_error(text);

	if (r == 0 && text->len > LIMIT_TREE_TEXT - others)
		r = -ENFILE;
	if (r < 0)
		return r;
	buf_fini(&open->text);
	open->text = *text;
	*text = (struct buf){ 0 };
	tree->text_bytes = others + open->text.len;
	return 0;
}

static int
render(struct tree *tree, const struct tree_call *call, struct tree_open *open)
{
	struct tree_asker asker = asker_of(call, open);
	_cleanup_(buf_fini) struct buf text = { 0 };
	int r;

	if (open->has_text)
		return 0;
	r = tree->provider->text(tree->data, &asker, &text);
	if (r == 0)
		r = keep_text(tree, open, &text);
	open->has_text = r == 0;
	return r;
}

int
tree_text_size(struct tree *tree, const struct tree_call *call,
	       uint64_t *ret_size)
{
	struct tree_asker asker = asker_of(call, NULL);
	_cleanup_(buf_fini) struct buf text = { 0 };
	const struct tree_open *open;
	int r;

	LIST_FOREACH(open, &tree->opens, link)
	{
		if (open->node.row != call->node.row ||
		    open->node.item != call->node.item || !open->has_text)
			continue;
		*ret_size = open->text.len;
		return 0;
	}
	r = tree->provider->text(tree->data, &asker, &text);
	if (r == 0)
		r = buf_error(&text);
	/* Not there yet: nothing, so far. */
	if (r == -EAGAIN)
		r = 0;
	*ret_size = text.len;
	return r;
}

/* ---- open and close ---- */

static int
check_open(struct tree *tree, const struct tree_call *call,
	   struct tree_stat *ret_stat)
{
	const struct tree_row *row = tree_row_of(tree, call->node);
	int how = call->fi.flags & O_ACCMODE;
	unsigned int wanted = 0;
	int r = tree_stat_node(tree, call->node, ret_stat);

	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	if (how != O_WRONLY)
		wanted |= R_OK;
	if (how != O_RDONLY || (call->fi.flags & O_TRUNC))
		wanted |= W_OK;
	return tree_permits(tree, row, fuse_req_ctx(call->req)->uid, wanted)
		       ? 0
		       : -EACCES;
}

int
tree_do_open(struct tree *tree, struct tree_call *call)
{
	const struct tree_row *row = tree_row_of(tree, call->node);
	bool reads = (call->fi.flags & O_ACCMODE) == O_RDONLY;
	struct tree_open *open;
	struct tree_stat stat;
	int r;

	r = check_open(tree, call, &stat);
	if (r < 0)
		return r;
	open = tree_open_new(tree, call);
	if (!open)
		return -ENFILE;
	if (reads && is_text(row))
		r = render(tree, call, open);
	if (r < 0 && r != -EAGAIN) {
		tree_open_free(open);
		return r;
	}
	open->in_turn = !reads;
	open->limit = stat.size;
	call->fi.fh = (uint64_t)(uintptr_t)open;
	call->fi.noflush = 1;
	call->fi.nonseekable = open->in_turn;
	call->fi.keep_cache = 0;
	call->fi.direct_io = row->kind == TREE_TEXT
				     ? !row->fixed
				     : !is_stream(row) || !stat.final;
	if (row->kind == TREE_FOLLOW)
		call->fi.direct_io = 1;
	if (fuse_reply_open(call->req, &call->fi) < 0)
		tree_open_free(open);
	return 0;
}

int
tree_do_release(struct tree *tree, struct tree_call *call)
{
	tree_end_calls_of(tree, call->open);
	tree_open_free(call->open);
	fuse_reply_err(call->req, 0);
	return 0;
}

/* ---- reading ---- */

static int
read_text(struct tree *tree, struct tree_call *call)
{
	struct tree_open *open = call->open;
	size_t from, n;
	int r = render(tree, call, open);

	if (r < 0)
		return r;
	from = open->in_turn ? open->at : (size_t)call->offset;
	if (from > open->text.len)
		from = open->text.len;
	n = open->text.len - from;
	if (n > call->size)
		n = call->size;
	if (open->in_turn)
		open->at = from + n;
	fuse_reply_buf(call->req, (const char *)open->text.data + from, n);
	return 0;
}

/* Bytes from the offset on, zeros where there are none any more. */
static int
gather(struct tree *tree, struct tree_call *call, char *buf, size_t *ret_len,
       bool *ret_final)
{
	struct tree_asker asker = asker_of(call, call->open);
	size_t at = 0;

	*ret_final = false;
	while (at < call->size) {
		uint64_t offset = (uint64_t)call->offset + at;
		struct tree_view view = { 0 };
		size_t room = call->size - at;
		int r = tree->provider->read(tree->data, &asker, offset,
					     buf + at, room, &view);

		if (r < 0)
			return at > 0 ? 0 : r;
		*ret_final = view.final;
		if (view.len == 0 && view.hole_to > offset) {
			view.len = view.hole_to - offset < room
					   ? (size_t)(view.hole_to - offset)
					   : room;
			memset(buf + at, 0, view.len);
		}
		if (view.len == 0)
			break;
		at += view.len;
		*ret_len = at;
	}
	return 0;
}

void
tree_streams_told(struct tree *tree, struct tree_node node, uint64_t size)
{
	struct tree_open *open;

	LIST_FOREACH(open, &tree->opens, link)
	if (open->node.row == node.row && open->node.item == node.item)
		open->limit = size;
}

/* Cuts what is asked for at the end that was told of; false: that is it. */
static bool
cut_at_limit(struct tree *tree, struct tree_call *call)
{
	struct tree_open *open = call->open;
	uint64_t offset = (uint64_t)call->offset;
	struct tree_stat stat;

	if (offset >= open->limit && open->told_end &&
	    tree_stat_node(tree, call->node, &stat) == 0)
		open->limit = stat.size;
	open->told_end = offset >= open->limit;
	if (!open->told_end && call->size > open->limit - offset)
		call->size = (size_t)(open->limit - offset);
	return !open->told_end;
}

static int
read_stream(struct tree *tree, struct tree_call *call)
{
	bool follows = tree_row_of(tree, call->node)->kind == TREE_FOLLOW;
	_cleanup_(freep) char *buf = malloc(call->size);
	size_t len = 0;
	bool final;
	int r;

	if (!buf)
		return -ENOMEM;
	if (!follows && !cut_at_limit(tree, call)) {
		fuse_reply_buf(call->req, NULL, 0);
		return 0;
	}
	r = gather(tree, call, buf, &len, &final);
	if (r < 0)
		return r;
	if (len == 0 && !final && follows)
		return -EAGAIN;
	call->open->read_to = (uint64_t)call->offset + len;
	fuse_reply_buf(call->req, buf, len);
	return 0;
}

int
tree_do_read(struct tree *tree, struct tree_call *call)
{
	const struct tree_row *row = tree_row_of(tree, call->node);

	if (is_text(row))
		return read_text(tree, call);
	return is_stream(row) ? read_stream(tree, call) : -EACCES;
}

int
tree_do_lseek(struct tree *tree, struct tree_call *call)
{
	struct tree_asker asker = asker_of(call, call->open);
	_cleanup_(freep) char *buf = malloc(STEP_BYTES);
	uint64_t at = (uint64_t)call->offset;
	struct tree_stat stat;
	int r = tree_stat_node(tree, call->node, &stat);

	if (r == 0 && is_text(tree_row_of(tree, call->node)))
		r = tree_text_size(tree, call, &stat.size);
	if (r == 0)
		call->open->limit = stat.size;
	if (!buf)
		r = -ENOMEM;
	if (r < 0)
		return r;
	if (call->offset < 0 || at >= stat.size)
		return -ENXIO;
	while (is_stream(tree_row_of(tree, call->node)) && at < stat.size) {
		struct tree_view view = { 0 };

		r = tree->provider->read(tree->data, &asker, at, buf,
					 STEP_BYTES, &view);
		if (r < 0)
			return r;
		if (view.len == 0 && view.hole_to > at) {
			if (call->number == SEEK_HOLE)
				break;
			at = view.hole_to;
			continue;
		}
		if (call->number == SEEK_DATA || view.len == 0)
			break;
		at += view.len;
	}
	if (call->number == SEEK_HOLE &&
	    !is_stream(tree_row_of(tree, call->node)))
		at = stat.size;
	if (call->number == SEEK_DATA && at >= stat.size)
		return -ENXIO;
	fuse_reply_lseek(call->req, (off_t)(at < stat.size ? at : stat.size));
	return 0;
}

/* ---- writing ---- */

int
tree_do_write(struct tree *tree, struct tree_call *call)
{
	const struct tree_row *row = tree_row_of(tree, call->node);
	struct tree_asker asker = asker_of(call, call->open);
	_cleanup_(buf_fini) struct buf reply = { 0 };
	struct tree_open *open = call->open;
	ssize_t n;

	if (row->kind != TREE_TALK && row->kind != TREE_INPUT)
		return -EBADF;
	n = tree->provider->write(tree->data, &asker, call->bytes, call->len,
				  &reply);
	if (n == -EINPROGRESS)
		return (int)n;
	open->at = 0;
	/* Without an answer, what is read is the text as it is now. */
	open->has_text =
		n >= 0 && reply.len > 0 && keep_text(tree, open, &reply) == 0;
	if (!open->has_text)
		(void)keep_text(tree, open, &(struct buf){ 0 });
	if (n < 0)
		return (int)n;
	fuse_reply_write(call->req, (size_t)n);
	return 0;
}

/* ---- poll ---- */

static unsigned int
stream_events(struct tree *tree, const struct tree_call *call)
{
	struct tree_open *open = call->open;
	struct tree_stat stat;

	if (tree_stat_node(tree, call->node, &stat) < 0)
		return POLLERR;
	open->limit = stat.size;
	if (stat.size > open->read_to)
		return POLL_IN;
	return stat.final ? POLL_IN | POLLHUP : 0;
}

static unsigned int
events_of(struct tree *tree, const struct tree_call *call)
{
	const struct tree_row *row = tree_row_of(tree, call->node);
	unsigned int events = 0;

	if (is_stream(row))
		return stream_events(tree, call);
	if (row->kind == TREE_TALK || row->kind == TREE_INPUT)
		events |= POLL_OUT;
	if (is_text(row)) {
		int r = render(tree, call, call->open);

		if (r == 0)
			events |= POLL_IN;
		else if (r != -EAGAIN && r != -EINPROGRESS)
			events |= POLLERR;
	}
	return events;
}

int
tree_do_poll(struct tree *tree, struct tree_call *call)
{
	struct tree_open *open = call->open;

	if (call->poll) {
		if (open->poll)
			fuse_pollhandle_destroy(open->poll);
		open->poll = call->poll;
		call->poll = NULL;
	}
	fuse_reply_poll(call->req, events_of(tree, call));
	return 0;
}
