/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_ECHO_PRIV_H
#define FUSEFS_ECHO_PRIV_H

/*
 * What the parts of the echo share: echo.c (the thread that gives orders, and
 * the process that takes them), echo_queue.c (what is to be ordered) and
 * echo_ops.c (what its requests are answered).
 */

#include "base/echo.h"
#include "fusefs/echo.h"

/* What is to be ordered of one name, in this order. */
enum echo_what {
	ECHO_DO_REMOVE = 1 << 0,
	ECHO_DO_MAKE = 1 << 1,
	ECHO_DO_CONTENT = 1 << 2,
	ECHO_DO_CLOSE = 1 << 3,
	ECHO_DO_META = 1 << 4,
	ECHO_DO_RENAME = 1 << 5, /* alone */
};

struct echo_item {
	struct echo_item *next;	     /* in the queue */
	struct echo_item *hash_next; /* in a bucket */
	struct fs_inode *dir;	     /* referenced */
	struct fs_inode *dir2;	     /* likewise, of a rename; else NULL */
	char *name2;
	uint64_t object; /* whose other name may come; 0: none will */
	int64_t at_ns;	 /* since when it waits for that */
	unsigned int what;
	mode_t gone_type, type; /* S_IFMT bits: removed, and there now */
	bool moved;		/* removed here: it lives on elsewhere */
	bool if_known;		/* removed only if something was known by it */
	bool hashed;
	char name[];
};

#define ECHO_BUCKETS 1024
#define ECHO_MOVES   16
/* Two events of one rename(2) are not further apart than that. */
#define ECHO_MOVE_NS 3000000

struct echo_queue {
	struct echo_item *first, **last;
	struct echo_item *buckets[ECHO_BUCKETS];
	struct echo_item *moves[ECHO_MOVES]; /* that wait for their other end */
	size_t next_move;
	size_t count;
	uint64_t dropped;
};

void echo_queue_init(struct echo_queue *queue);
void echo_queue_fini(struct fs *fs, struct echo_queue *queue);
/* -ENOSPC, -ENOMEM: it is not told. */
int echo_queue_add(struct echo_queue *queue,
		   const struct fs_echo_change *change, int64_t now_ns);
/* NULL: none, or *ret_wait_ns is how long the first one is to wait. */
struct echo_item *echo_queue_take(struct echo_queue *queue, int64_t now_ns,
				  int64_t *ret_wait_ns);
void echo_item_free(struct fs *fs, struct echo_item *item);

/* What is ordered at the moment. */
struct echo_ordered {
	enum echo_step step; /* ECHO_NOTHING: nothing */
	struct fs_inode *dir, *dir2;
	mode_t type;
	bool moved, if_known;
	uint32_t id;
	bool looked; /* LOOKUP has been answered as it takes */
	char name[NAME_MAX + 1], name2[NAME_MAX + 1];
};

#define ECHO_NOTES 4096

struct fs_echo {
	pthread_mutex_t lock; /* of all but the last */
	pthread_cond_t more;
	pthread_t thread;
	bool started, ending;
	struct echo_queue queue;
	struct echo_ordered ordered;
	uint32_t last_id;
	int sock; /* -1: no process */
	int pidfd;
	unsigned int makes; /* since one has worked */
	int64_t made_ns;
	uint64_t ghosts;
	atomic_int pid; /* of the echo; 0: none */
	struct fuse_lowlevel_ops below;
	/* Changes made through this mount of late; see echo_ops.c. */
	atomic_uint_fast64_t notes[ECHO_NOTES];
};

/* echo_ops.c: an inmate has changed that name, or that inode, just now. */
bool echo_is_noted(struct fs_echo *echo, fuse_ino_t node, const char *name);

#endif
