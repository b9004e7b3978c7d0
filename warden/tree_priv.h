/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TREE_PRIV_H
#define WARDEN_TREE_PRIV_H

/*
 * The rows of the tree, and who serves which.
 *
 *	tree.c          the table, texts about the world
 *	tree_denials.c  denials, denials.last
 *	tree_ask.c      what is written to `mode` and `ask`
 *	tree_jobs.c     jobs: looking, waiting, removing
 *	tree_orders.c   … and what is written to `new`, `ctl` and `stdin`
 *	tree_terms.c    terminals, and
 *	tree_terms_orders.c   what is written to theirs
 */

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "fusefs/tree.h"
#include "warden/tree.h"
#include "warden/warden_priv.h"

/* name, parent, kind, permissions, never another */
#define TREE_ROWS(X)                                             \
	X(ROOT, "", ROOT, DIR, 0755, false)                      \
	X(README, "README", ROOT, TEXT, 0444, true)              \
	X(WORLD, "world.json", ROOT, TEXT, 0444, false)          \
	X(MODE, "mode", ROOT, TALK, 0644, false)                 \
	X(POLICY, "policy.json", ROOT, TEXT, 0444, false)        \
	X(DENIALS, "denials", ROOT, STREAM, 0444, false)         \
	X(DENIALS_LAST, "denials.last", ROOT, TEXT, 0444, false) \
	X(ASK, "ask", ROOT, TALK, 0644, false)                   \
	X(JOBS, "jobs", ROOT, ITEMS, 0755, false)                \
	X(NEW, "new", JOBS, TALK, 0644, false)                   \
	X(JOB, "j", JOBS, ITEM, 0700, false)                     \
	X(COMMAND, "command", JOB, TEXT, 0444, true)             \
	X(CWD, "cwd", JOB, TEXT, 0444, true)                     \
	X(ENV, "env", JOB, TEXT, 0444, true)                     \
	X(STATUS, "status", JOB, TEXT, 0444, false)              \
	X(STATUS_JSON, "status.json", JOB, TEXT, 0444, false)    \
	X(EXIT, "exit", JOB, TEXT, 0444, true)                   \
	X(PID, "pid", JOB, TEXT, 0444, false)                    \
	X(STDOUT, "stdout", JOB, STREAM, 0444, false)            \
	X(STDERR, "stderr", JOB, STREAM, 0444, false)            \
	X(OUTPUT, "output", JOB, STREAM, 0444, false)            \
	X(FOLLOW, "follow", JOB, FOLLOW, 0444, false)            \
	X(STDIN, "stdin", JOB, INPUT, 0200, false)               \
	X(CTL, "ctl", JOB, TALK, 0644, false)                    \
	X(WAIT, "wait", JOB, TEXT, 0444, false)                  \
	X(TERMS, "terminals", ROOT, ITEMS, 0755, false)          \
	X(T_NEW, "new", TERMS, TALK, 0644, false)                \
	X(T_ZSH, ".zsh", TERMS, DIR, 0755, true)                 \
	X(T_ZSHENV, ".zshenv", T_ZSH, TEXT, 0444, true)          \
	X(TERM, "t", TERMS, ITEM, 0700, false)                   \
	X(T_COMMAND, "command", TERM, TEXT, 0444, true)          \
	X(T_STATUS, "status", TERM, TEXT, 0444, false)           \
	X(T_STATUS_JSON, "status.json", TERM, TEXT, 0444, false) \
	X(T_SIZE, "size", TERM, TEXT, 0444, false)               \
	X(T_TITLE, "title", TERM, TEXT, 0444, false)             \
	X(T_SCREEN, "screen", TERM, TEXT, 0444, false)           \
	X(T_ANSI, "screen.ansi", TERM, TEXT, 0444, false)        \
	X(T_SCROLLBACK, "scrollback", TERM, TEXT, 0444, false)   \
	X(T_RAW, "raw", TERM, STREAM, 0444, false)               \
	X(T_LAST, "last", TERM, TEXT, 0444, false)               \
	X(T_EVENTS, "events", TERM, STREAM, 0444, false)         \
	X(T_FOLLOW, "follow", TERM, FOLLOW, 0444, false)         \
	X(T_INPUT, "input", TERM, INPUT, 0200, false)            \
	X(T_KEYS, "keys", TERM, INPUT, 0200, false)              \
	X(T_CTL, "ctl", TERM, TALK, 0644, false)                 \
	X(T_WAIT, "wait", TERM, TEXT, 0444, false)

enum {
#define X(id, name, parent, kind, mode, fixed) ROW_##id,
	TREE_ROWS(X)
#undef X
	ROW_COUNT
};

/* The denials of this world, a line each, in the order of the store. */
struct tree_denials {
	int fd;		    /* has no name; −1: nobody has asked yet */
	uint64_t size;	    /* up to here it is whole */
	uint64_t last_line; /* where the newest begins */
	uint64_t last_id;
	uint64_t rows; /* on record when it was brought up to date */
	bool known;    /* … which it was */
	bool fresh;    /* right now */
	bool busy, again;
	uv_work_t work; /* has fd, last_id and the following meanwhile */
	uint64_t rows_before, end, end_line;
	struct buf lines;
	int result;
};

/* Jobs and terminals by one number; 0 is `jobs/new`. */
#define TREE_TERM (1ull << 63)

/* Why the last order to one was refused, in words. */
#define TREE_NOTES 32
struct tree_note {
	uint64_t item;
	char text[200];
};

/* One on its way out, or that could not go: until it is asked again. */
struct tree_removal {
	LIST_ENTRY(tree_removal) link;
	struct warden_tree *tree;
	uint64_t item;
	int error;
};

struct warden_tree {
	struct warden *warden;
	struct tree *tree;
	uv_async_t wake;
	bool closed;
	struct tree_denials denials;
	struct buf asked; /* the last outcome */
	struct jobs_listener *listener;
	struct terms_listener *terms_listener;
	LIST_HEAD(, tree_removal) removals;
	struct tree_note notes[TREE_NOTES]; /* a ring */
	unsigned int next_note;
};

/*
 * The state of an open file.  Something is done for it elsewhere, and found
 * done when its request is tried again.
 */
struct tree_work {
	void (*close)(void *state); /* first, as in all states */
	struct warden_tree *tree;
	struct tree_node node;
	uv_work_t work;
	int (*run)(struct tree_work *work);   /* on the pool */
	void (*done)(struct tree_work *work); /* on the loop; NULL: nothing */
	bool running;
	bool orphan; /* its file is closed */
	int result;
	enum policy_mode mode, before;
	uint64_t job; /* started */
	struct buf answer;
	size_t len; /* what was written, by which it is known again */
	char bytes[];
};

/*
 * The work of what was written through this open file: new, or under way, or
 * done.  -EINPROGRESS: it goes on; else its result, and it is no more.
 */
struct tree_work *tree_work_get(const struct tree_asker *asker,
				const void *bytes, size_t len);
int tree_work_new(struct warden_tree *tree, const struct tree_asker *asker,
		  const void *bytes, size_t len, struct tree_work **ret_work);
int tree_work_start(struct tree_work *work);
int tree_work_take(const struct tree_asker *asker, struct buf *ret_answer);
/* It is done: whoever waits is told. */
void tree_work_finish(struct tree_work *work);

/* tree_denials.c */
void tree_denials_init(struct warden_tree *tree);
void tree_denials_fini(struct warden_tree *tree);
int tree_denials_stat(struct warden_tree *tree, struct tree_stat *ret_stat);
int tree_denials_read(struct warden_tree *tree, uint64_t offset, void *buf,
		      size_t size, struct tree_view *ret_view);
int tree_denials_last(struct warden_tree *tree, struct buf *ret_text);

/* tree_jobs.c: rows from ROW_JOBS on. */
int tree_jobs_stat(struct warden_tree *tree, struct tree_node node,
		   struct tree_stat *ret_stat);
int tree_jobs_text(struct warden_tree *tree, struct tree_node node,
		   struct buf *out);
int tree_jobs_read(struct warden_tree *tree, const struct tree_asker *asker,
		   uint64_t offset, void *buf, size_t size,
		   struct tree_view *ret_view);
uint64_t tree_jobs_next(struct warden_tree *tree, uint64_t after);
int tree_jobs_remove(struct warden_tree *tree, uint64_t job);
void tree_jobs_free(struct warden_tree *tree);
void tree_jobs_close(struct warden_tree *tree);

/*
 * The removal of an item that is asked for: *ret_removal is a new one, whose
 * error is set when it is done; else the result, -EINPROGRESS for now.
 */
int tree_removal_get(struct warden_tree *tree, uint64_t item,
		     struct tree_removal **ret_removal);
void tree_removal_free(struct tree_removal *removal);

/* Texts of a JSON array, a line each or as words of one. */
int tree_put_list(const json_t *list, bool as_words, struct buf *out);

/* tree_terms.c: rows from ROW_TERMS on. */
int tree_terms_stat(struct warden_tree *tree, struct tree_node node,
		    struct tree_stat *ret_stat);
int tree_terms_text(struct warden_tree *tree, struct tree_node node,
		    struct buf *out);
int tree_terms_read(struct warden_tree *tree, const struct tree_asker *asker,
		    uint64_t offset, void *buf, size_t size,
		    struct tree_view *ret_view);
uint64_t tree_terms_next(struct warden_tree *tree, uint64_t after);
int tree_terms_remove(struct warden_tree *tree, uint64_t term);
void tree_terms_close(struct warden_tree *tree);

/* tree_terms_orders.c */
ssize_t tree_terms_write(struct warden_tree *tree,
			 const struct tree_asker *asker, const void *bytes,
			 size_t len, struct buf *ret_answer);
void tree_terms_usage(const struct warden_tree *tree, struct tree_node node,
		      struct buf *out);

/* tree_orders.c */
void tree_note_set(struct warden_tree *tree, uint64_t item, const char *text);
/* `usage`, and the note. */
void tree_note_put(const struct warden_tree *tree, uint64_t item,
		   const char *usage, struct buf *out);
ssize_t tree_new_write(struct warden_tree *tree, const struct tree_asker *asker,
		       const void *bytes, size_t len, struct buf *ret_answer);
ssize_t tree_ctl_write(struct warden_tree *tree, uint64_t job,
		       const char *bytes, size_t len);
ssize_t tree_stdin_write(struct warden_tree *tree, uint64_t job,
			 const void *bytes, size_t len);
void tree_new_text(const struct warden_tree *tree, struct buf *out);
void tree_ctl_text(const struct warden_tree *tree, uint64_t job,
		   struct buf *out);

/* tree_ask.c */
ssize_t tree_mode_write(struct warden_tree *tree,
			const struct tree_asker *asker, const void *bytes,
			size_t len, struct buf *ret_answer);
ssize_t tree_ask_write(struct warden_tree *tree, const struct tree_asker *asker,
		       const void *bytes, size_t len, struct buf *ret_answer);

#endif
