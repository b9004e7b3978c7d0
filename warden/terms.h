/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_H
#define WARDEN_TERMS_H

/*
 * The terminals of this warden's world, for whoever serves them to others: the
 * methods of the socket, people who attach, waits, and the control tree.
 *
 *	program ──▶ pty ──(splice)──▶ `raw`, segments ──▶ screen model (pty/vt.h)
 *	        ◀── pty ◀── queue ◀── senders, people, the model's replies
 *
 * A position in `raw` is the number of bytes that the terminal had written
 * before it.  Two of them move: terms_end(), what is in the log, and
 * terms_fed(), what the model has read of it, which is behind by no more than
 * a turn of the loop while there is a pause, and by at most 4 MiB in a flood.
 *
 * A terminal is on record before its program runs and is published as ended
 * when its output is at its end, or 500 ms later.  An ended one stays, without
 * a pty.  The first use makes what is needed; a world that takes no commands
 * has no terminals (-ENOTSUP).
 *
 * Thread: loop, for all of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/errmsg.h"
#include "base/segments.h"
#include "base/strv.h"
#include "policy/store_terms.h"

struct vt;
struct vt_event;
struct warden;

/* Room for "t18446744073709551615" and its NUL. */
#define TERMS_ID_MAX 24

/* Closed set of refusals, beside negative errnos. */
#define TERM_NOT_FOUND	  "TERM_NOT_FOUND"
#define TERM_BUSY	  "TERM_BUSY"
#define TERM_EXITED	  "TERM_EXITED"
#define TERM_INPUT_FULL	  "TERM_INPUT_FULL"
#define TERM_LIMIT	  "TERM_LIMIT"
#define TERM_SPAWN_FAILED "TERM_SPAWN_FAILED"
#define TERM_NAME_TAKEN	  "TERM_NAME_TAKEN"
#define TERM_BAD_OFFSET	  "TERM_BAD_OFFSET"
#define TERM_SURVIVORS	  "TERM_SURVIVORS"
#define TERM_PATTERN	  "TERM_PATTERN"

/* ---- looking ---- */

/* The ids in order, from the first above `after`; 0: no more. */
uint64_t terms_next_id(const struct warden *warden, uint64_t after);

/* By "t3" or by name.  -ENOENT. */
int terms_find(const struct warden *warden, const char *id_or_name,
	       uint64_t *ret_id);

/*
 * The record as it is now; its texts are the terminal's until the next call of
 * this header.  `spec` is NULL: it is in the store.  -ENOENT.
 */
int terms_get_row(const struct warden *warden, uint64_t id,
		  struct store_term *ret_row);

/* "running 1234 since …Z".  -ENOENT. */
int terms_status_line(const struct warden *warden, uint64_t id, char *text,
		      size_t size);
/* The object of `term.show`, but for what was asked for.  -ENOENT. */
int terms_state_json(const struct warden *warden, uint64_t id, struct buf *out);

/* What was asked for, as it is on record: a JSON object, fresh.  Any thread. */
int terms_read_spec(const struct warden *warden, uint64_t id, char **ret_spec);

/* Its program has not ended; false also for none. */
bool terms_is_live(const struct warden *warden, uint64_t id);
/* Its end is on record; true also for none. */
bool terms_is_told(const struct warden *warden, uint64_t id);
/* Nothing of its tree is left and its end is on record.  -ENOENT. */
int terms_is_over(const struct warden *warden, uint64_t id, bool *ret_over);

/* ---- output ---- */

/* What is in the log; *ret_final (NULL allowed): it will not change. */
int terms_end(const struct warden *warden, uint64_t id, uint64_t *ret_end,
	      bool *ret_final);

/* Where to read, and into what. */
struct terms_span {
	uint64_t offset;
	void *buf;
	size_t size;
};

/*
 * As segments_read(); `file` (NULL allowed) makes reading on cheap.  -ENOENT,
 * -ERANGE (beyond the end).
 */
int terms_read(struct warden *warden, uint64_t id, struct segments_file *file,
	       const struct terms_span *span, struct segments_view *ret_view);

/* ---- what happened ---- */

/* JSON lines, of this warden's time: where they end.  -ENOENT. */
int terms_events_end(const struct warden *warden, uint64_t id,
		     uint64_t *ret_end);
/* As segments_read(); the last 64 KiB of them are kept. */
int terms_events_read(const struct warden *warden, uint64_t id,
		      const struct terms_span *span,
		      struct segments_view *ret_view);

/*
 * Which part of the output the last command of its shell wrote, by trusted
 * marks; 0 and 0: not known.  -ENOENT.
 */
int terms_last_output(const struct warden *warden, uint64_t id,
		      uint64_t *ret_from, uint64_t *ret_to);

/* ---- the screen ---- */

/*
 * The model, borrowed until the loop's next turn; an ended terminal's is made
 * from its files.  Whoever wants it up to date with terms_end() calls
 * terms_catch_up() before, which may take a while in a flood (at most 4 MiB).
 * NULL: none (no memory, no such terminal).
 */
struct vt *terms_vt(struct warden *warden, uint64_t id);
int terms_catch_up(struct warden *warden, uint64_t id);

/* How much of the log the model has read.  0 for none. */
uint64_t terms_fed(const struct warden *warden, uint64_t id);

/*
 * The first range that ends after `offset` and shall not be shown to people: a
 * query that the model answered, for one.  False: there is none so far.  Those
 * that end before terms_cuts_from() are forgotten: who is behind it repaints.
 */
bool terms_next_cut(const struct warden *warden, uint64_t id, uint64_t offset,
		    uint64_t *ret_from, uint64_t *ret_to);
uint64_t terms_cuts_from(const struct warden *warden, uint64_t id);

struct terms_size {
	unsigned int cols, rows;
	bool pinned;
};
/* -ENOENT. */
int terms_get_size(const struct warden *warden, uint64_t id,
		   struct terms_size *ret_size);

/* ---- listening ---- */

enum terms_event {
	TERMS_CHANGED, /* another state, name or title; on record */
	TERMS_EXITED,  /* settled and on record; once for each terminal */
	TERMS_OVER,    /* nothing of its tree is left */
	TERMS_GREW,    /* there is more output, or none will come */
	TERMS_FED,     /* the model has read on; terms_fed() */
	TERMS_RESIZED,
	TERMS_MODEL, /* of the model, with its event: title, mark, bell … */
	TERMS_GONE,  /* it is forgotten */
};

struct terms_listener;

/*
 * Calls `told` for every event of every terminal until terms_unlisten().
 * `model` is set for TERMS_MODEL alone and is borrowed.  It may call anything
 * of this header but terms_remove(), and terms_catch_up() only for other
 * events than MODEL and FED.  A listener may go from within its own call.
 * -ENOMEM, -ENOTSUP.
 */
int terms_listen(struct warden *warden,
		 void (*told)(uint64_t id, enum terms_event event,
			      const struct vt_event *model, void *data),
		 void *data, struct terms_listener **ret_listener);
void terms_unlisten(struct terms_listener *listener);

/* ---- making ---- */

/* What is asked for; texts borrowed. */
struct terms_request {
	const struct strv *argv; /* NULL: $SHELL -i */
	const struct strv
		*env;	  /* before the policy's word; NULL: a small one */
	const char *cwd;  /* NULL: the workspace */
	const char *name; /* NULL: none */
	int umask;	  /* −1: the world's */
	unsigned int cols, rows; /* 0: 80, 24 */
};

/* What became of it. */
struct terms_started {
	uint64_t id;	  /* 0: refused, nothing is on record */
	const char *code; /* of a refusal; NULL: by the errno */
	int error;	  /* of a refusal, negative */
	struct errmsg why;
};

/*
 * Makes a terminal; `done` is called once, perhaps before this returns: with
 * its id as soon as its program runs or has failed to start, or with why it was
 * refused.  -ENOMEM, -ENOTSUP: `done` is not called.
 */
int terms_new(struct warden *warden, const struct terms_request *request,
	      void (*done)(const struct terms_started *result, void *data),
	      void *data);

/* ---- doing ---- */

struct terms_written {
	size_t taken;	 /* of the bytes given; less: the queue is full */
	uint64_t cursor; /* the end of the log before the writing */
	bool too_long;	 /* a line over 4095 bytes, and the tty takes lines */
};

/* All of it or nothing of it. */
#define TERMS_WRITE_WHOLE (1u << 0)
/* By a person, a key at a time: the check of long lines is off. */
#define TERMS_WRITE_TYPED (1u << 1)

/*
 * Puts bytes into the terminal's input, in the order of calls.  -ENOENT,
 * -EPIPE: its program has ended and nobody else has it open.
 */
int terms_write(struct warden *warden, uint64_t id, const void *bytes,
		size_t len, unsigned int flags,
		struct terms_written *ret_written);

/* How much of the input waits to be read by the program's terminal. */
size_t terms_input_waits(const struct warden *warden, uint64_t id);

enum terms_sizer {
	TERMS_SIZE_SET,	   /* by request */
	TERMS_SIZE_PIN,	   /* the same, and people change it no more */
	TERMS_SIZE_UNPIN,  /* people may again; cols and rows 0: as it is */
	TERMS_SIZE_PERSON, /* who attached or typed last; nothing if pinned */
};

/* -ENOENT, -EINVAL (0, or more than 65535), -EPIPE: it has ended. */
int terms_resize(struct warden *warden, uint64_t id, unsigned int cols,
		 unsigned int rows, enum terms_sizer sizer);

/*
 * To the foreground process group; *ret_group is its id as the host counts, 0
 * where that cannot be told.  -ENOENT, -EPIPE, -EINVAL (not such a signal).
 */
int terms_signal(struct warden *warden, uint64_t id, int signal,
		 pid_t *ret_group);

/* The group that reads the terminal, 0: none or not known. */
pid_t terms_foreground(const struct warden *warden, uint64_t id);

/*
 * Ends it: hangs up, asks (TERM) and, after the grace, kills all of its tree.
 * -ENOENT, -EALREADY: nothing of it lives.
 */
int terms_kill(struct warden *warden, uint64_t id, uint64_t grace_ms);

/* `name` NULL: none any more.  -ENOENT, -EINVAL, -EEXIST. */
int terms_rename(struct warden *warden, uint64_t id, const char *name);

/*
 * Forgets an ended terminal; `done` is called later.  -ENOENT; -EBUSY,
 * something of it lives or it is just being removed; -ENOMEM: it is not.
 */
int terms_remove(struct warden *warden, uint64_t id,
		 void (*done)(uint64_t id, int result, void *data), void *data);

/* ---- for life.c ---- */

/* The world begins to end: settles everything that lives. */
void terms_end_all(struct warden *warden);
/* It has ended: takes the last output; closes the handles. */
void terms_finish(struct warden *warden);
/* After the loop has ended. */
void terms_free_all(struct warden *warden);

#endif
