/* SPDX-License-Identifier: MIT */
#ifndef PTY_VT_H
#define PTY_VT_H

/*
 * The screen of one terminal: what a person would see after the bytes that
 * were fed, what a program that asks would be answered, and what scrolled off.
 *
 * No I/O, no clock, bounded memory; nothing that is fed can make it fail, and
 * the same bytes give the same screen however they are split.  Positions are
 * absolute offsets in the output of the terminal, counted from its birth.
 *
 * What it promises is what xterm-256color promises, in UTF-8.  The width of a
 * character comes from our own table (pty/width.h), never from the locale.
 *
 * Thread: the owner's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define VT_COLS_MAX	 2000
#define VT_ROWS_MAX	 2000
#define VT_REPLY_MAX	 4096	     /* bytes of answers to one feed */
#define VT_SEQUENCE_MAX	 4096	     /* an attached person gets no longer */
#define VT_OSC_MAX	 (64u << 10) /* then the rest is discarded */
#define VT_CLIPBOARD_MAX (1u << 20)  /* decoded bytes of one OSC 52 */
#define VT_TITLE_MAX	 256	     /* bytes */
#define VT_NONCE_MAX	 64
#define VT_SYNC_MS	 150 /* a synchronized update may last */

struct vt;

enum vt_event_kind {
	VT_EVENT_TITLE, /* text */
	VT_EVENT_CWD,	/* text: a path, percent-decoded */
	VT_EVENT_BELL,
	VT_EVENT_MARK,	     /* mark, exit_code, trusted, secondary; text */
	VT_EVENT_CLIPBOARD,  /* text: the bytes a program puts on it */
	VT_EVENT_NOTIFY,     /* text */
	VT_EVENT_ALT_SCREEN, /* see vt_is_alt() */
	VT_EVENT_RESET,	     /* RIS */
	/*
	 * What was cut did something to the screen: who shows the raw stream
	 * without the cuts must repaint.
	 */
	VT_EVENT_REPAINT,
};

struct vt_event {
	enum vt_event_kind kind;
	uint64_t from, to; /* the bytes of the sequence: [from, to) */
	const char *text;  /* not NUL-terminated; borrowed for the call */
	size_t len;

	/*
	 * MARK (OSC 133, OSC 633): 'A' a prompt begins, 'B' it ends and input
	 * begins, 'C' the output of a command begins, 'D' it ended, 'E' the
	 * command line is `text` (OSC 633 only).
	 */
	char mark;
	bool trusted;	/* the nonce was right */
	bool secondary; /* A: a continuation prompt */
	int exit_code;	/* D: -1 when none was said */
};

/* Why a range is not for attached people. */
enum vt_cut {
	VT_CUT_QUERY,	  /* it makes a terminal answer */
	VT_CUT_UNKNOWN,	  /* not known not to, or aborted half way */
	VT_CUT_TITLE,	  /* title, icon name */
	VT_CUT_CLIPBOARD, /* OSC 52 */
	VT_CUT_STATE,	  /* cwd, marks, notifications, history */
};

/*
 * All may be NULL.  They run inside vt_feed() and must not call back into the
 * model but for reading; text is borrowed.  `cut` comes in order and before
 * vt_safe() passes the end of the range.
 */
struct vt_ops {
	void (*reply)(void *data, const void *bytes, size_t len);
	void (*cut)(void *data, uint64_t from, uint64_t to, enum vt_cut why);
	void (*event)(void *data, const struct vt_event *event);
};

/* 0 means the default. */
struct vt_limits {
	unsigned int history_lines; /* 10,000 */
	size_t history_bytes;	    /* 8 MiB, packed */
	bool clear_history;	    /* ED 3 is obeyed */
	bool checksums;		    /* DECRQCRA is answered: for esctest only */
};

/*
 * Sizes are clamped to 1..VT_*_MAX; one column is emulated as two.  `limits`
 * may be NULL, `ops` too and is borrowed for the life of the model.
 * Errors: -ENOMEM.
 */
int vt_new(unsigned int cols, unsigned int rows, const struct vt_limits *limits,
	   const struct vt_ops *ops, void *data, struct vt **ret_vt);
struct vt *vt_free(struct vt *vt);
DEFINE_CLEANUP(vt)

void vt_feed(struct vt *vt, const void *bytes, size_t len);

/*
 * Rewraps the primary screen and its history; the cursor stays on its
 * character.  Errors: -ENOMEM, and nothing changed.
 */
int vt_resize(struct vt *vt, unsigned int cols, unsigned int rows);

/*
 * No operation but `event` and `cut` is called from now on: what is fed is old
 * output, read again.
 */
void vt_set_mute(struct vt *vt, bool muted);

/* What makes an OSC 133 mark trusted: ";pale=TEXT" in it.  "" trusts none. */
void vt_set_nonce(struct vt *vt, const char *text);

/* What OSC 10, 11 and 12 answer, 0xRRGGBB. */
void vt_set_theme(struct vt *vt, uint32_t fg, uint32_t bg, uint32_t cursor);

/* Ends a synchronized update that is open since VT_SYNC_MS or longer. */
void vt_tick(struct vt *vt, uint64_t now_ms);

/* ---- state ---- */

/* Bytes fed since birth. */
uint64_t vt_offset(const struct vt *vt);

/*
 * Where nothing is unfinished any more, neither character nor sequence: what
 * attached people may be given.  An unfinished sequence holds it back by
 * VT_SEQUENCE_MAX at most: longer ones are cut whole.
 */
uint64_t vt_safe(const struct vt *vt);

struct vt_state {
	unsigned int cols, rows; /* as emulated */
	unsigned int x, y;	 /* cursor, from 0 */
	bool cursor_visible;
	unsigned int cursor_shape; /* DECSCUSR, 0 to 6 */
	bool alt;
	bool app_cursor; /* arrows are SS3 */
	bool app_keypad;
	bool bracketed_paste;
	bool focus;		     /* focus reports wanted */
	bool sync;		     /* inside a synchronized update */
	unsigned int mouse;	     /* 0, or 9, 1000, 1002, 1003 */
	unsigned int mouse_encoding; /* 0, or 1005, 1006, 1015 */
	unsigned int history;	     /* rows scrolled off and kept */
};

void vt_state(const struct vt *vt, struct vt_state *ret_state);
bool vt_is_alt(const struct vt *vt);
bool vt_bracketed_paste(const struct vt *vt);
bool vt_in_sync(const struct vt *vt);
/* Never NULL; no control character in it. */
const char *vt_title(const struct vt *vt);
/* As told by OSC 7; "" unknown. */
const char *vt_cwd(const struct vt *vt);

/* ---- dumps; errors are the buffer's ---- */

/*
 * The screen as lines of UTF-8, trailing blanks off, each ended by '\n';
 * before it up to `scrollback` rows of history at the present width.
 */
void vt_text(const struct vt *vt, unsigned int scrollback, struct buf *out);

/* The same with colours: SGR and OSC 8 (http, https, mailto, file) only. */
void vt_ansi(const struct vt *vt, unsigned int scrollback, struct buf *out);

/*
 * One JSON object: cols, rows, cursor, title, cwd, alt, modes, and per row its
 * text, whether it continues, and the runs that are not plain.
 */
void vt_json(const struct vt *vt, unsigned int scrollback, struct buf *out);

/*
 * Logical lines (wrapped rows joined) of the primary screen and the history,
 * counted from the newest, which is 0: `count` of them that end `offset`
 * before it, oldest first.  Returns how many there were.
 */
unsigned int vt_lines(const struct vt *vt, unsigned int offset,
		      unsigned int count, struct buf *out);

/*
 * Makes a terminal of cols x rows whatever its state show this screen, with
 * its modes; a smaller one sees the part around the cursor.  Never anything
 * that a terminal answers.  0 x 0 is the size of the screen.
 */
void vt_repaint(const struct vt *vt, unsigned int cols, unsigned int rows,
		struct buf *out);

/*
 * Gives a terminal that was painted back: modes and colours as after a login,
 * cursor below what is shown.
 */
void vt_unpaint(const struct vt *vt, struct buf *out);

/* ---- to keep over a restart ---- */

/* The whole model, offset included; errors are the buffer's. */
void vt_save(const struct vt *vt, struct buf *out);

/*
 * The model that was saved, from any bytes at all.  Limits are the new ones.
 * Errors: -EBADMSG (not ours), -EPROTONOSUPPORT (another version), -ENOMEM.
 */
int vt_restore(const void *bytes, size_t len, const struct vt_limits *limits,
	       const struct vt_ops *ops, void *data, struct vt **ret_vt);

#endif
