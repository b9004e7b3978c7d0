/* SPDX-License-Identifier: MIT */

/*
 * The queue of the control tree, what waits, and its names and directories.
 *
 * A call that has been parked is tried again, from its beginning, when its node
 * has changed or its caller was interrupted; so a provider that needs time
 * keeps what it has begun in the open file's state.  An interrupt comes on
 * another thread, with the request's lock held, so it only sets a flag.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/tree_priv.h"

/* Rows do not come and go; items and sizes do. */
#define TIMEOUT_ROW 3600.0

static void
call_free(struct tree_call *call)
{
	if (call->poll)
		fuse_pollhandle_destroy(call->poll);
	free(call);
}

static void
answer(struct tree_call *call, int error)
{
	if (call->req && error != 0)
		fuse_reply_err(call->req, error);
	call_free(call);
}

static void
on_interrupt(fuse_req_t req, void *data)
{
	struct tree_call *call = data;
	struct fs *fs = fuse_req_userdata(req);
	struct tree *tree = fs->config.tree;

	atomic_store(&call->interrupted, true);
	atomic_store(&tree->interrupts, true);
	tree->provider->wake(tree->data);
}

static void
park(struct tree *tree, struct tree_call *call)
{
	TAILQ_INSERT_TAIL(&tree->waiting, call, parked);
	fuse_req_interrupt_func(call->req, on_interrupt, call);
}

/* From here on no interrupt uses the call. */
static void
unpark(struct tree *tree, struct tree_call *call)
{
	TAILQ_REMOVE(&tree->waiting, call, parked);
	fuse_req_interrupt_func(call->req, NULL, NULL);
}

static bool
wants_no_wait(const struct tree_call *call)
{
	return call->open && (call->fi.flags & O_NONBLOCK);
}

static void
run(struct tree *tree, struct tree_call *call)
{
	int r = call->run(tree, call);

	if (r == -EAGAIN && !wants_no_wait(call) &&
	    tree_row_of(tree, call->node)->kind != TREE_INPUT)
		r = -EINPROGRESS;
	if (r == -EINPROGRESS && call->req)
		park(tree, call);
	else
		answer(call, -r);
}

/* ---- the queue ---- */

/* Under the lock: a provider that is closed is not woken any more. */
static void
enqueue(struct tree *tree, struct tree_call *call)
{
	STAILQ_INSERT_TAIL(&tree->queue, call, next);
	tree->provider->wake(tree->data);
}

void
tree_submit(struct tree *tree, struct tree_call *call)
{
	bool closed;

	pthread_mutex_lock(&tree->lock);
	closed = tree->closed;
	if (!closed)
		enqueue(tree, call);
	pthread_mutex_unlock(&tree->lock);
	if (!closed)
		return;
	fuse_reply_err(call->req, call->run == tree_do_release ? 0 : ENODEV);
	call_free(call);
}

static void
end_interrupted(struct tree *tree)
{
	struct tree_call *call, *next;

	if (!atomic_exchange(&tree->interrupts, false))
		return;
	for (call = TAILQ_FIRST(&tree->waiting); call; call = next) {
		next = TAILQ_NEXT(call, parked);
		if (!atomic_load(&call->interrupted))
			continue;
		unpark(tree, call);
		answer(call, EINTR);
	}
}

void
tree_run(struct tree *tree)
{
	struct tree_queue queue = STAILQ_HEAD_INITIALIZER(queue);
	struct tree_call *call;

	pthread_mutex_lock(&tree->lock);
	STAILQ_CONCAT(&queue, &tree->queue);
	pthread_mutex_unlock(&tree->lock);
	while ((call = STAILQ_FIRST(&queue))) {
		STAILQ_REMOVE_HEAD(&queue, next);
		run(tree, call);
	}
	end_interrupted(tree);
}

static bool
concerns(const struct tree *tree, struct tree_node what, struct tree_node node)
{
	return node.item == what.item &&
	       (node.row == what.row ||
		tree_row_of(tree, node)->parent == what.row);
}

static void
tell_poller(struct tree_open *open)
{
	if (!open->poll)
		return;
	(void)fuse_lowlevel_notify_poll(open->poll);
	fuse_pollhandle_destroy(open->poll);
	open->poll = NULL;
}

void
tree_changed(struct tree *tree, struct tree_node node)
{
	TAILQ_HEAD(, tree_call) again = TAILQ_HEAD_INITIALIZER(again);
	struct tree_call *call, *next;
	struct tree_open *open;

	for (call = TAILQ_FIRST(&tree->waiting); call; call = next) {
		next = TAILQ_NEXT(call, parked);
		if (!concerns(tree, node, call->node))
			continue;
		unpark(tree, call);
		TAILQ_INSERT_TAIL(&again, call, parked);
	}
	while ((call = TAILQ_FIRST(&again))) {
		TAILQ_REMOVE(&again, call, parked);
		run(tree, call);
	}
	LIST_FOREACH(open, &tree->opens, link)
	if (concerns(tree, node, open->node))
		tell_poller(open);
}

static void
end_waiting(struct tree *tree, const struct fs *fs, int error)
{
	struct tree_call *call, *next;

	for (call = TAILQ_FIRST(&tree->waiting); call; call = next) {
		next = TAILQ_NEXT(call, parked);
		if (fs && call->fs != fs)
			continue;
		unpark(tree, call);
		answer(call, error);
	}
}

void
tree_end_calls_of(struct tree *tree, const struct tree_open *open)
{
	struct tree_call *call, *next;

	for (call = TAILQ_FIRST(&tree->waiting); call; call = next) {
		next = TAILQ_NEXT(call, parked);
		if (call->open != open)
			continue;
		unpark(tree, call);
		answer(call, EINTR);
	}
}

static void
end_opens(struct tree *tree, const struct fs *fs)
{
	struct tree_open *open, *next;

	for (open = LIST_FIRST(&tree->opens); open; open = next) {
		next = LIST_NEXT(open, link);
		if (!fs || open->fs == fs)
			tree_open_free(open);
	}
}

void
tree_close(struct tree *tree)
{
	if (!tree)
		return;
	pthread_mutex_lock(&tree->lock);
	tree->closed = true;
	pthread_mutex_unlock(&tree->lock);
	tree_run(tree);
	end_waiting(tree, NULL, ENODEV);
	end_opens(tree, NULL);
	pthread_mutex_lock(&tree->lock);
	pthread_cond_broadcast(&tree->left);
	pthread_mutex_unlock(&tree->lock);
}

/* ---- a mount that goes ---- */

struct leaving {
	bool done; /* tree->lock */
};

static int
do_leave(struct tree *tree, struct tree_call *call)
{
	struct leaving *leaving;

	memcpy(&leaving, call->bytes, sizeof(leaving));
	end_waiting(tree, call->fs, ENODEV);
	end_opens(tree, call->fs);
	pthread_mutex_lock(&tree->lock);
	leaving->done = true;
	pthread_cond_broadcast(&tree->left);
	pthread_mutex_unlock(&tree->lock);
	return 0;
}

void
tree_leave(struct tree *tree, const struct fs *fs)
{
	struct leaving leaving = { 0 }, *at = &leaving;
	struct tree_call *call;
	bool closed;

	if (!tree)
		return;
	if (pthread_equal(pthread_self(), tree->thread)) {
		tree_run(tree);
		end_waiting(tree, fs, ENODEV);
		end_opens(tree, fs);
		return;
	}
	call = calloc(1, sizeof(*call) + sizeof(at));
	while (!call) {
		/* There is no going on without it. */
		(void)usleep(1000);
		call = calloc(1, sizeof(*call) + sizeof(at));
	}
	call->run = do_leave;
	call->fs = (struct fs *)fs;
	memcpy(call->bytes, &at, sizeof(at));

	pthread_mutex_lock(&tree->lock);
	closed = tree->closed;
	if (!closed)
		enqueue(tree, call);
	while (!closed && !leaving.done)
		pthread_cond_wait(&tree->left, &tree->lock);
	pthread_mutex_unlock(&tree->lock);
	if (closed)
		free(call);
}

/* ---- nodes ---- */

int
tree_stat_node(struct tree *tree, struct tree_node node,
	       struct tree_stat *ret_stat)
{
	*ret_stat = (struct tree_stat){ 0 };
	if (node.row >= tree->provider->n_rows)
		return -ENOENT;
	return tree->provider->stat(tree->data, node, ret_stat);
}

bool
tree_permits(const struct tree *tree, const struct tree_row *row, uid_t uid,
	     unsigned int wanted)
{
	bool owner = uid == tree->uid || uid == 0;
	mode_t mode = owner ? row->mode >> 6 : row->mode;

	return (mode & wanted & 7) == wanted;
}

static mode_t
type_of(const struct tree_row *row)
{
	return tree_is_dir(row) ? S_IFDIR : S_IFREG;
}

static int
attr_of(struct tree *tree, const struct tree_call *call, struct stat *ret_attr)
{
	const struct tree_row *row = tree_row_of(tree, call->node);
	struct tree_stat stat;
	uint64_t size;
	int r;

	r = tree_stat_node(tree, call->node, &stat);
	if (r == 0 && (row->kind == TREE_TEXT || row->kind == TREE_TALK))
		r = tree_text_size(tree, call, &stat.size);
	if (r < 0)
		return r;
	size = stat.size;
	*ret_attr = (struct stat){
		.st_ino = tree_ino_of(call->node),
		.st_mode = type_of(row) | row->mode,
		.st_nlink = tree_is_dir(row) ? 2 : 1,
		.st_uid = tree->uid,
		.st_gid = tree->gid,
		.st_size = (off_t)size,
		.st_blksize = 4096,
		.st_mtim = { .tv_sec = stat.time_ns / 1000000000,
			     .tv_nsec = stat.time_ns % 1000000000 },
	};
	ret_attr->st_atim = ret_attr->st_ctim = ret_attr->st_mtim;
	return 0;
}

int
tree_do_getattr(struct tree *tree, struct tree_call *call)
{
	struct stat attr;
	int r;

	if (call->number == W_OK &&
	    !(tree_row_of(tree, call->node)->mode & 0222))
		return -EACCES;
	r = attr_of(tree, call, &attr);
	/* Somebody may still be in a directory that was removed. */
	if (r == -ENOENT && tree_row_of(tree, call->node)->kind == TREE_ITEM) {
		attr = (struct stat){ .st_ino = tree_ino_of(call->node),
				      .st_mode = S_IFDIR | 0700,
				      .st_uid = tree->uid,
				      .st_gid = tree->gid };
		r = 0;
	}
	if (r < 0)
		return r == -ENOENT ? -ESTALE : r;
	tree_streams_told(tree, call->node, (uint64_t)attr.st_size);
	fuse_reply_attr(call->req, &attr, 0);
	return 0;
}

int
tree_do_access(struct tree *tree, struct tree_call *call)
{
	const struct tree_row *row = tree_row_of(tree, call->node);
	uid_t uid = fuse_req_ctx(call->req)->uid;
	struct tree_stat stat;
	int r;

	r = tree_stat_node(tree, call->node, &stat);
	if (r < 0)
		return -ESTALE;
	if (!tree_permits(tree, row, uid, (unsigned int)call->number))
		return -EACCES;
	fuse_reply_err(call->req, 0);
	return 0;
}

/* ---- names ---- */

/* "j3" as an item of this row; no other spelling of it. */
static bool
item_parse(const struct tree_row *row, const char *name, uint64_t *ret_item)
{
	size_t len = strlen(row->name);
	uint64_t item = 0;

	if (strncmp(name, row->name, len) != 0 || name[len] < '1' ||
	    name[len] > '9')
		return false;
	for (name += len; *name; name++) {
		if (*name < '0' || *name > '9' || item > TREE_ITEM_MAX / 10)
			return false;
		item = item * 10 + (uint64_t)(*name - '0');
	}
	*ret_item = item;
	return true;
}

static int
find_child(const struct tree *tree, struct tree_node dir, const char *name,
	   struct tree_node *ret_node)
{
	for (unsigned int i = 1; i < tree->provider->n_rows; i++) {
		const struct tree_row *row = &tree->provider->rows[i];
		struct tree_node node = { .row = i, .item = dir.item };

		if (row->parent != dir.row)
			continue;
		if (row->kind == TREE_ITEM ? !item_parse(row, name, &node.item)
					   : strcmp(row->name, name) != 0)
			continue;
		*ret_node = node;
		return 0;
	}
	return -ENOENT;
}

int
tree_do_lookup(struct tree *tree, struct tree_call *call)
{
	struct fuse_entry_param entry = { 0 };
	struct tree_node dir = call->node;
	int r = 0;

	/* Without a name: the root of the tree. */
	if (call->len > 0)
		r = find_child(tree, dir, call->bytes, &call->node);
	if (r == 0) {
		r = attr_of(tree, call, &entry.attr);
		if (r == -EINPROGRESS)
			call->len = 0; /* found */
	}
	if (r < 0)
		return r;
	tree_streams_told(tree, call->node, (uint64_t)entry.attr.st_size);
	entry.ino = tree_ino_of(call->node);
	entry.entry_timeout = call->node.item == 0 ? TIMEOUT_ROW : 0;
	fuse_reply_entry(call->req, &entry);
	return 0;
}

int
tree_do_rmdir(struct tree *tree, struct tree_call *call)
{
	struct tree_node node = call->node;
	bool again = call->len == 0;
	struct tree_stat stat;
	int r = 0;

	if (!again)
		r = find_child(tree, call->node, call->bytes, &node);
	if (r == 0 && !again)
		r = tree_stat_node(tree, node, &stat);
	if (r < 0)
		return r;
	if (tree_row_of(tree, node)->kind != TREE_ITEM ||
	    fuse_req_ctx(call->req)->uid != tree->uid)
		return -EPERM;
	r = tree->provider->remove(tree->data, node);
	if (r == -EINPROGRESS) {
		call->node = node;
		call->len = 0; /* found */
	}
	if (again && r == -ENOENT)
		r = 0;
	if (r == 0)
		fuse_reply_err(call->req, 0);
	return r;
}

/* ---- directories ---- */

struct tree_open *
tree_open_new(struct tree *tree, const struct tree_call *call)
{
	struct tree_open *open = NULL;

	if (tree->n_opens < LIMIT_TREE_OPENS)
		open = calloc(1, sizeof(*open));
	if (!open)
		return NULL;
	tree->n_opens++;
	open->tree = tree;
	open->fs = call->fs;
	open->node = call->node;
	open->flags = call->fi.flags;
	LIST_INSERT_HEAD(&tree->opens, open, link);
	return open;
}

void
tree_open_free(struct tree_open *open)
{
	struct tree *tree = open->tree;

	LIST_REMOVE(open, link);
	tree->n_opens--;
	tree->text_bytes -= open->text.len;
	if (open->state)
		tree->provider->close(tree->data, open->state);
	if (open->poll)
		fuse_pollhandle_destroy(open->poll);
	buf_fini(&open->text);
	free(open->list);
	free(open);
}

int
tree_do_opendir(struct tree *tree, struct tree_call *call)
{
	struct tree_open *open;
	struct tree_stat stat;
	int r;

	r = tree_stat_node(tree, call->node, &stat);
	if (r < 0)
		return -ESTALE;
	if (!tree_permits(tree, tree_row_of(tree, call->node),
			  fuse_req_ctx(call->req)->uid, R_OK))
		return -EACCES;
	open = tree_open_new(tree, call);
	if (!open)
		return -ENFILE;
	call->fi.fh = (uint64_t)(uintptr_t)open;
	if (fuse_reply_open(call->req, &call->fi) < 0)
		tree_open_free(open);
	return 0;
}

static int
list_add(struct tree_open *open, struct tree_node node)
{
	size_t n = open->n_list;

	/* Doubled at each power of two. */
	if ((n & (n - 1)) == 0) {
		struct tree_node *more = realloc(
			open->list, (n ? n * 2 : 1) * sizeof(*open->list));

		if (!more)
			return -ENOMEM;
		open->list = more;
	}
	open->list[open->n_list++] = node;
	return 0;
}

static int
list_items(struct tree *tree, struct tree_open *open, unsigned int row)
{
	uint64_t item = 0;
	int r = 0;

	while (r == 0 && (item = tree->provider->next(tree->data, row, item)))
		if (item <= TREE_ITEM_MAX)
			r = list_add(open, (struct tree_node){ .row = row,
							       .item = item });
	return r;
}

static int
list_now(struct tree *tree, struct tree_open *open)
{
	struct tree_stat stat;
	int r = 0;

	open->n_list = 0;
	for (unsigned int i = 1; i < tree->provider->n_rows && r == 0; i++) {
		struct tree_node node = { .row = i, .item = open->node.item };

		if (tree->provider->rows[i].parent != open->node.row)
			continue;
		if (tree->provider->rows[i].kind == TREE_ITEM)
			r = list_items(tree, open, i);
		else if (tree_stat_node(tree, node, &stat) != -ENOENT)
			r = list_add(open, node);
	}
	return r;
}

/* The entry at `index`: "." and ".." come first. */
static void
entry_at(const struct tree *tree, const struct tree_open *open, size_t index,
	 char name[64], struct fuse_entry_param *ret_entry)
{
	struct tree_node node = open->node;
	const struct tree_row *row;

	if (index >= 2)
		node = open->list[index - 2];
	row = tree_row_of(tree, node);
	if (index < 2)
		(void)snprintf(name, 64, "%s", index == 0 ? "." : "..");
	else if (row->kind == TREE_ITEM)
		(void)snprintf(name, 64, "%s%llu", row->name,
			       (unsigned long long)node.item);
	else
		(void)snprintf(name, 64, "%s", row->name);
	/* Without a node: it is looked up when it is wanted. */
	*ret_entry = (struct fuse_entry_param){
		.attr = { .st_ino = tree_ino_of(node),
			  .st_mode = type_of(row) },
	};
}

int
tree_do_readdir(struct tree *tree, struct tree_call *call)
{
	_cleanup_(freep) char *buf = malloc(call->size);
	struct tree_open *open = call->open;
	size_t at = 0;
	int r = 0;

	if (!buf)
		return -ENOMEM;
	if (call->offset == 0)
		r = list_now(tree, open);
	if (r < 0)
		return r;
	for (size_t i = (size_t)call->offset; i < open->n_list + 2; i++) {
		struct fuse_entry_param entry;
		char name[64];
		size_t n, room = call->size - at;

		entry_at(tree, open, i, name, &entry);
		n = call->plus
			    ? fuse_add_direntry_plus(call->req, buf + at, room,
						     name, &entry,
						     (off_t)(i + 1))
			    : fuse_add_direntry(call->req, buf + at, room, name,
						&entry.attr, (off_t)(i + 1));
		if (n > room)
			break;
		at += n;
	}
	fuse_reply_buf(call->req, buf, at);
	return 0;
}

/* ---- the tree ---- */

int
tree_new(const struct tree_provider *provider, void *data,
	 struct tree **ret_tree)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return -ENOMEM;
	tree->provider = provider;
	tree->data = data;
	tree->thread = pthread_self();
	tree->uid = geteuid();
	tree->gid = getegid();
	pthread_mutex_init(&tree->lock, NULL);
	pthread_cond_init(&tree->left, NULL);
	STAILQ_INIT(&tree->queue);
	TAILQ_INIT(&tree->waiting);
	LIST_INIT(&tree->opens);
	*ret_tree = tree;
	return 0;
}

struct tree *
tree_free(struct tree *tree)
{
	if (!tree)
		return NULL;
	tree_close(tree);
	pthread_cond_destroy(&tree->left);
	pthread_mutex_destroy(&tree->lock);
	free(tree);
	return NULL;
}
