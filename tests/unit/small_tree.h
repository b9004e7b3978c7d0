/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_SMALL_TREE_H
#define TESTS_UNIT_SMALL_TREE_H

/*
 * A control tree without a mount: requests go into a session as the kernel
 * would write them, and what it answers is kept.  Its provider has one text,
 * one thing to talk to, and items whose state a test sets.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fusefs/tree_priv.h"

enum {
	SMALL_ROOT,
	SMALL_TEXT,
	SMALL_TALK,
	SMALL_ITEMS,
	SMALL_ITEM,
	SMALL_OUT,
	SMALL_FOLLOW,
	SMALL_WAIT,
	SMALL_IN,
	SMALL_ROWS
};

static const struct tree_row small_rows[SMALL_ROWS] = {
	[SMALL_ROOT] = { "", 0, TREE_DIR, 0755, false },
	[SMALL_TEXT] = { "text", 0, TREE_TEXT, 0444, false },
	[SMALL_TALK] = { "talk", 0, TREE_TALK, 0644, false },
	[SMALL_ITEMS] = { "jobs", 0, TREE_ITEMS, 0755, false },
	[SMALL_ITEM] = { "j", SMALL_ITEMS, TREE_ITEM, 0700, false },
	[SMALL_OUT] = { "out", SMALL_ITEM, TREE_STREAM, 0444, false },
	[SMALL_FOLLOW] = { "follow", SMALL_ITEM, TREE_FOLLOW, 0444, false },
	[SMALL_WAIT] = { "wait", SMALL_ITEM, TREE_TEXT, 0444, false },
	[SMALL_IN] = { "in", SMALL_ITEM, TREE_INPUT, 0200, false },
};

/* Items 1 … n_items; all have one output and one state. */
struct small_tree {
	struct tree *tree;
	struct fs fs;
	int fd;
	unsigned int woken;
	uint64_t unique;

	const char *text;
	uint64_t n_items, removed;
	char out[256];
	size_t out_len, hole_from, hole_to, room;
	bool ended, pending;
	size_t written;
	unsigned int closed;

	/* The last answer, and the last notification of poll. */
	struct fuse_out_header head;
	char body[1 << 18];
	size_t body_len;
	unsigned int n_answers, n_polls;
	uint64_t asked, answered; /* of all requests that want an answer */
};

static void
small_wake(void *data)
{
	((struct small_tree *)data)->woken++;
}

static int
small_stat(void *data, struct tree_node node, struct tree_stat *ret_stat)
{
	struct small_tree *small = data;

	if (node.item > small->n_items ||
	    (node.item != 0 && node.item == small->removed))
		return -ENOENT;
	if (node.row == SMALL_OUT || node.row == SMALL_FOLLOW) {
		ret_stat->size = small->out_len;
		ret_stat->final = small->ended;
	}
	return 0;
}

static uint64_t
small_next(void *data, unsigned int row, uint64_t after)
{
	struct small_tree *small = data;

	(void)row;
	return after < small->n_items ? after + 1 : 0;
}

static int
small_text(void *data, const struct tree_asker *asker, struct buf *ret_text)
{
	struct small_tree *small = data;

	if (asker->node.row == SMALL_WAIT && !small->ended)
		return -EAGAIN;
	buf_puts(ret_text,
		 asker->node.row == SMALL_WAIT ? "over" : small->text);
	return 0;
}

static int
small_read(void *data, const struct tree_asker *asker, uint64_t offset,
	   void *buf, size_t size, struct tree_view *ret_view)
{
	struct small_tree *small = data;
	size_t end = small->out_len;

	(void)asker;
	ret_view->final = small->ended;
	if (offset >= end)
		return 0;
	if (offset >= small->hole_from && offset < small->hole_to) {
		ret_view->hole_to = small->hole_to;
		return 0;
	}
	if (offset < small->hole_from && end > small->hole_from)
		end = small->hole_from;
	if (size > end - offset)
		size = end - offset;
	memcpy(buf, small->out + offset, size);
	ret_view->len = size;
	return 0;
}

/* "no" is refused, "later" takes its time, all else is answered. */
static ssize_t
small_write(void *data, const struct tree_asker *asker, const void *bytes,
	    size_t len, struct buf *ret_answer)
{
	struct small_tree *small = data;

	if (asker->node.row == SMALL_IN) {
		if (len > small->room)
			len = small->room;
		small->room -= len;
		small->written += len;
		return len > 0 ? (ssize_t)len : -EAGAIN;
	}
	if (len == 2 && memcmp(bytes, "no", 2) == 0)
		return -EINVAL;
	if (len == 5 && memcmp(bytes, "later", 5) == 0 && small->pending) {
		*asker->state = small;
		return -EINPROGRESS;
	}
	buf_puts(ret_answer, "heard ");
	buf_put(ret_answer, bytes, len);
	return (ssize_t)len;
}

static int
small_remove(void *data, struct tree_node node)
{
	struct small_tree *small = data;

	if (!small->ended)
		return -EBUSY;
	small->removed = node.item;
	return 0;
}

static void
small_close(void *data, void *state)
{
	(void)state;
	((struct small_tree *)data)->closed++;
}

static const struct tree_provider small_provider = {
	.rows = small_rows,
	.n_rows = SMALL_ROWS,
	.wake = small_wake,
	.stat = small_stat,
	.next = small_next,
	.text = small_text,
	.read = small_read,
	.write = small_write,
	.remove = small_remove,
	.close = small_close,
};

/* ---- the kernel's side ---- */

static ssize_t
small_writev(int fd, struct iovec *iov, int count, void *data)
{
	struct small_tree *small = ((struct fs *)data)->config.data;
	struct fuse_out_header head;
	size_t at = 0, total = 0;

	(void)fd;
	memcpy(&head, iov[0].iov_base, sizeof(head));
	for (int i = 0; i < count; i++)
		total += iov[i].iov_len;
	if (head.unique == 0) {
		small->n_polls += head.error == FUSE_NOTIFY_POLL;
		return (ssize_t)total;
	}
	small->head = head;
	for (int i = 1; i < count; i++) {
		if (at + iov[i].iov_len > sizeof(small->body))
			abort();
		memcpy(small->body + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	small->body_len = at;
	small->n_answers++;
	/* An interrupt may be answered, too. */
	small->answered += (head.unique & 1) == 0;
	return (ssize_t)total;
}

static ssize_t
small_no_read(int fd, void *buf, size_t len, void *data)
{
	(void)fd;
	(void)buf;
	(void)len;
	(void)data;
	return 0;
}

/* One request with up to two parts; returns its unique number. */
static uint64_t
small_send(struct small_tree *small, uint32_t opcode, uint64_t node,
	   const struct iovec part[2])
{
	struct fuse_in_header head = { .opcode = opcode,
				       .unique = small->unique += 2,
				       .nodeid = node,
				       .uid = geteuid(),
				       .gid = getegid(),
				       .pid = 1 };
	size_t len = sizeof(head) + part[0].iov_len + part[1].iov_len;
	char *mem = calloc(1, len);
	struct fuse_buf buf = { .size = len, .mem = mem };

	if (!mem)
		abort();
	if (opcode == FUSE_INTERRUPT)
		head.unique |= 1; /* as the kernel does */
	else
		small->asked++;
	head.len = (uint32_t)len;
	memcpy(mem, &head, sizeof(head));
	if (part[0].iov_len)
		memcpy(mem + sizeof(head), part[0].iov_base, part[0].iov_len);
	if (part[1].iov_len)
		memcpy(mem + sizeof(head) + part[0].iov_len, part[1].iov_base,
		       part[1].iov_len);
	small->head = (struct fuse_out_header){ 0 };
	small->body_len = 0;
	fuse_session_process_buf(small->fs.session, &buf);
	tree_run(small->tree);
	free(mem);
	return head.unique;
}

/* The same; 0 or a negative errno; 1: not answered. */
static int
small_ask(struct small_tree *small, uint32_t opcode, uint64_t node,
	  const void *arg, size_t arg_len, const void *more, size_t more_len)
{
	const struct iovec part[2] = { { (void *)arg, arg_len },
				       { (void *)more, more_len } };
	uint64_t unique = small_send(small, opcode, node, part);

	return small->head.unique == unique ? small->head.error : 1;
}

static inline uint64_t
small_node(unsigned int row, uint64_t item)
{
	return tree_ino_of((struct tree_node){ .row = row, .item = item });
}

static void
small_start(struct small_tree *small)
{
	char *argv[] = { (char *)"small", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	struct fuse_lowlevel_ops ops = { 0 };
	static const struct fuse_custom_io io = { .read = small_no_read,
						  .writev = small_writev };
	struct fuse_init_in init = { .major = 7, .minor = 36 };

	*small = (struct small_tree){ .text = "first", .n_items = 2 };
	if (tree_new(&small_provider, small, &small->tree) < 0)
		abort();
	small->fs.config.tree = small->tree;
	small->fs.config.data = small;
	tree_take_over(&ops);
	small->fs.session =
		fuse_session_new(&args, &ops, sizeof(ops), &small->fs);
	fuse_opt_free_args(&args);
	small->fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (!small->fs.session ||
	    fuse_session_custom_io(small->fs.session, &io, small->fd) < 0)
		abort();
	if (small_ask(small, FUSE_INIT, 0, &init, sizeof(init), NULL, 0) != 0)
		abort();
}

static void
small_end(struct small_tree *small)
{
	tree_leave(small->tree, &small->fs);
	if (small->asked != small->answered)
		abort();
	fuse_session_destroy(small->fs.session);
	small->tree = tree_free(small->tree);
}

#endif
