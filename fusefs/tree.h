/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_TREE_H
#define FUSEFS_TREE_H

/*
 * The control tree: `.pale` in the root of a mount, made up of rows that its
 * provider lists.
 *
 *	row  name     parent  kind
 *	0    ""       –       TREE_DIR     the root of the tree
 *	1    README   0       TREE_TEXT
 *	2    jobs     0       TREE_ITEMS   holds j1, j2 …
 *	3    j        2       TREE_ITEM    … each of which is such a directory
 *	4    stdout   3       TREE_STREAM
 *
 * A node of the tree is a row and, below a TREE_ITEM, the number of the item.
 * Both are in the node's number, so no inode of it is ever kept, and the kernel
 * may forget what it likes.
 *
 * All work is done on the provider's one thread: serving threads queue what was
 * asked for and are free again, and whoever has to wait (for a job to end, for
 * more output) is a parked request that is tried again when the provider says
 * that something has changed.  So there is no lock but that of the queue, and
 * no number of waiting readers costs a thread.
 *
 * Thread: the provider's, unless a function says otherwise.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

#define TREE_NAME ".pale"

struct tree;
struct fs;

enum tree_kind {
	TREE_DIR,
	TREE_ITEMS,  /* holds rows, and numbered items */
	TREE_ITEM,   /* each of those; its name is their prefix */
	TREE_TEXT,   /* as it is when it is opened, or when it is there */
	TREE_STREAM, /* grows; reading at its end does not wait */
	TREE_FOLLOW, /* the same, and waits until no more will come */
	TREE_TALK,   /* what is written is answered to who reads on */
	TREE_INPUT,  /* takes what there is room for */
};

struct tree_row {
	const char *name;
	unsigned int parent;
	enum tree_kind kind;
	mode_t mode; /* permissions */
	bool fixed;  /* TREE_TEXT: never another one */
};

struct tree_node {
	unsigned int row;
	uint64_t item; /* 0: not below an item */
};

/* Who asks, and what the open file is for its provider. */
struct tree_asker {
	struct tree_node node;
	bool host;    /* through a mount for the host */
	void **state; /* of the open file; NULL: there is none */
};

struct tree_stat {
	uint64_t size; /* of TREE_STREAM, TREE_FOLLOW */
	bool final;    /* … and it will not change */
	int64_t time_ns;
};

/* What one read of a stream found. */
struct tree_view {
	size_t len;
	uint64_t hole_to; /* beyond the offset: nothing is there before this */
	bool final;	  /* no more will come */
};

/*
 * What the provider does.  Two errors have a meaning of their own:
 * -EINPROGRESS: asked again when tree_changed() is called for the node;
 * -EAGAIN: the same, but whoever does not want to wait is told.
 */
struct tree_provider {
	const struct tree_row *rows;
	size_t n_rows;

	/* Have tree_run() called soon.  Thread: any. */
	void (*wake)(void *data);

	/* -ENOENT: not there now. */
	int (*stat)(void *data, struct tree_node node,
		    struct tree_stat *ret_stat);
	/* The first item above `after` of this TREE_ITEM row; 0: none. */
	uint64_t (*next)(void *data, unsigned int row, uint64_t after);
	/* Of TREE_TEXT and TREE_TALK. */
	int (*text)(void *data, const struct tree_asker *asker,
		    struct buf *ret_text);
	/* Of TREE_STREAM and TREE_FOLLOW. */
	int (*read)(void *data, const struct tree_asker *asker, uint64_t offset,
		    void *buf, size_t size, struct tree_view *ret_view);
	/*
	 * Of TREE_TALK and TREE_INPUT; returns how much it took.  An answer is
	 * what is read next, through the same open file.
	 */
	ssize_t (*write)(void *data, const struct tree_asker *asker,
			 const void *bytes, size_t len, struct buf *ret_answer);
	/* Of an item.  -EBUSY; asked again it may be gone: -ENOENT. */
	int (*remove)(void *data, struct tree_node node);
	/* The file that had this state is closed. */
	void (*close)(void *data, void *state);
};

/* On the provider's thread.  Errors: -ENOMEM. */
int tree_new(const struct tree_provider *provider, void *data,
	     struct tree **ret_tree);
/* When no mount has it any more.  Returns NULL. */
struct tree *tree_free(struct tree *tree);

/* Does what is queued. */
void tree_run(struct tree *tree);
/* Something of this node, or of a row below it, has changed. */
void tree_changed(struct tree *tree, struct tree_node node);
/* The provider's thread ends: what waits is answered, and all that comes. */
void tree_close(struct tree *tree);

/*
 * The mount answers no more requests: waits until nothing of it is left here.
 * Thread: any.
 */
void tree_leave(struct tree *tree, const struct fs *fs);

#endif
