/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_TREE_PRIV_H
#define FUSEFS_TREE_PRIV_H

/*
 * What the files of the control tree share.
 *
 *	tree_ops.c   requests, on their way to the provider's thread
 *	tree.c       the queue, what waits, names and directories
 *	tree_file.c  open files
 *	tree_caller.c  who may give orders through a mount of the host
 */

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "fusefs/fs_priv.h"
#include "fusefs/tree.h"

/* Node numbers of inodes are addresses, which do not go that far. */
#define TREE_BIT      (1ull << 62)
#define TREE_ROW_BITS 8

static inline bool
tree_has(fuse_ino_t ino)
{
	return (ino & TREE_BIT) != 0;
}

static inline struct tree_node
tree_node_of(fuse_ino_t ino)
{
	return (struct tree_node){
		.row = ino & ((1u << TREE_ROW_BITS) - 1),
		.item = (ino & ~TREE_BIT) >> TREE_ROW_BITS,
	};
}

static inline fuse_ino_t
tree_ino_of(struct tree_node node)
{
	return TREE_BIT | node.item << TREE_ROW_BITS | node.row;
}

/* Beyond this an item has no number of its own. */
#define TREE_ITEM_MAX ((1ull << (62 - TREE_ROW_BITS)) - 1)

/* One open file or directory; fi->fh is its address. */
struct tree_open {
	LIST_ENTRY(tree_open) link;
	struct tree *tree;
	const struct fs *fs;
	struct tree_node node;
	int flags;
	bool in_turn; /* reads go on where the last ended */
	bool has_text;
	struct buf text; /* what is read of it */
	size_t at;	 /* in_turn: how much has been */
	uint64_t read_to;
	uint64_t limit; /* of a stream: where its end is, as far as told */
	bool told_end;	/* … and that was it */
	void *state;	/* the provider's */
	struct fuse_pollhandle *poll;
	struct tree_node *list; /* of a directory */
	size_t n_list;
};

/* One request; on the queue, then perhaps parked. */
struct tree_call {
	STAILQ_ENTRY(tree_call) next;
	TAILQ_ENTRY(tree_call) parked;
	/* 0: answered; negative: park (-EINPROGRESS), or the answer. */
	int (*run)(struct tree *tree, struct tree_call *call);
	fuse_req_t req; /* NULL: nobody waits for it */
	struct fs *fs;
	struct tree_node node;
	struct tree_open *open;
	struct fuse_file_info fi;
	struct fuse_pollhandle *poll;
	int number; /* mask, whence, to_set */
	bool plus;
	atomic_bool interrupted;
	size_t size;
	off_t offset;
	size_t len; /* of `bytes`, which ends in a NUL */
	char bytes[];
};

struct tree {
	const struct tree_provider *provider;
	void *data;
	pthread_t thread; /* the provider's */
	uid_t uid;
	gid_t gid;
	LIST_HEAD(tree_open_list, tree_open) opens; /* newest first */
	size_t n_opens, text_bytes;		    /* of those */
	TAILQ_HEAD(, tree_call) waiting;
	atomic_bool interrupts; /* one of those is interrupted */

	pthread_mutex_t lock; /* queue, closed, leaving */
	pthread_cond_t left;
	STAILQ_HEAD(tree_queue, tree_call) queue;
	bool closed;
};

/* tree.c */
int tree_do_lookup(struct tree *tree, struct tree_call *call);
int tree_do_getattr(struct tree *tree, struct tree_call *call);
int tree_do_access(struct tree *tree, struct tree_call *call);
int tree_do_rmdir(struct tree *tree, struct tree_call *call);
int tree_do_opendir(struct tree *tree, struct tree_call *call);
int tree_do_readdir(struct tree *tree, struct tree_call *call);

static inline const struct tree_row *
tree_row_of(const struct tree *tree, struct tree_node node)
{
	return &tree->provider->rows[node.row];
}

static inline bool
tree_is_dir(const struct tree_row *row)
{
	return row->kind == TREE_DIR || row->kind == TREE_ITEMS ||
	       row->kind == TREE_ITEM;
}

/* Whether it may be opened so by whom. */
bool tree_permits(const struct tree *tree, const struct tree_row *row,
		  uid_t uid, unsigned int wanted);
/* -ENOENT: not there now. */
int tree_stat_node(struct tree *tree, struct tree_node node,
		   struct tree_stat *ret_stat);
struct tree_open *tree_open_new(struct tree *tree,
				const struct tree_call *call);
void tree_open_free(struct tree_open *open);
/* Answers what waits on it: it is being closed. */
void tree_end_calls_of(struct tree *tree, const struct tree_open *open);

/* tree_file.c */
int tree_do_open(struct tree *tree, struct tree_call *call);
int tree_do_read(struct tree *tree, struct tree_call *call);
int tree_do_write(struct tree *tree, struct tree_call *call);
int tree_do_lseek(struct tree *tree, struct tree_call *call);
int tree_do_poll(struct tree *tree, struct tree_call *call);
int tree_do_release(struct tree *tree, struct tree_call *call);
/* Its size was asked for, and is this. */
void tree_streams_told(struct tree *tree, struct tree_node node, uint64_t size);
/* Of a text, rendered for this if nobody has it open. */
int tree_text_size(struct tree *tree, const struct tree_call *call,
		   uint64_t *ret_size);

/* Hands a call to the provider's thread; takes it. */
void tree_submit(struct tree *tree, struct tree_call *call);

/* tree_caller.c: whether a world, this one or another, is around the caller. */
bool tree_caller_is_fenced(pid_t pid);

/* tree_ops.c: what a mount with a tree does otherwise. */
void tree_take_over(struct fuse_lowlevel_ops *ops);

#endif
