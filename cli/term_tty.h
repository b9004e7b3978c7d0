/* SPDX-License-Identifier: MIT */
#ifndef CLI_TERM_TTY_H
#define CLI_TERM_TTY_H

/*
 * The tty of a person who attaches: raw while they are, as it was on every way
 * out that a process can take.
 *
 *	cooked ── term_tty_enter() ──▶ raw ── term_tty_leave() ──▶ cooked
 *	               ▲                        │
 *	               └── (suspended, stopped) ┘
 *
 * It is written to without waiting, by an open file description of our own:
 * O_NONBLOCK on the caller's would be there in his shell, too, once we were
 * killed.  Where there can be none, a write is interrupted after a moment.
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <termios.h>

#include "base/errmsg.h"

struct term_tty {
	int in, out;	 /* owned; -1: not open */
	bool out_blocks; /* it is the caller's own description */
	bool is_raw;
	struct termios modes; /* the caller's */
};

/* Descriptors 0 and 1; -ENOTTY with a sentence. */
int term_tty_open(struct term_tty *tty, struct errmsg *why);
/* Leaves it, if it is raw still. */
void term_tty_fini(struct term_tty *tty);

/* What can go wrong is a tty that has gone: a negative errno. */
int term_tty_enter(struct term_tty *tty);

/*
 * Modes as they were.  `paint_back`: what was shown left the terminal in a
 * state that nobody knows; `alt`: in its alternate screen, as far as is known.
 */
void term_tty_leave(struct term_tty *tty, bool paint_back, bool alt);

/* Lifts what is shown above the screen, where it can be scrolled back to. */
void term_tty_lift(struct term_tty *tty);

/* 0 x 0 where it has none. */
void term_tty_size(const struct term_tty *tty, unsigned int *ret_cols,
		   unsigned int *ret_rows);

/* Bytes taken; -EAGAIN: none now; another errno: the tty has gone. */
ssize_t term_tty_write(const struct term_tty *tty, const void *bytes,
		       size_t len);

/* A short text, given up if the tty does not take it. */
void term_tty_say(const struct term_tty *tty, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
