/* SPDX-License-Identifier: MIT */
#ifndef PTY_WINDOW_H
#define PTY_WINDOW_H

/*
 * The newest of a terminal's output as text to search in, and where in the
 * output each of its bytes came from.
 *
 * Nothing is taken back but by a backspace: what a progress bar said and wrote
 * over can be found.  A carriage return, alone or before a newline, is a
 * newline; so is whatever moves the cursor to another row.  A move to the right
 * is blanks.  Sequences and other controls leave no trace.  The text is
 * well-formed UTF-8 in whole characters.
 *
 * Thread: the owner's.
 */

#include <stddef.h>
#include <stdint.h>

#include "pty/tokens.h"

/* What is kept at least, when there was so much. */
#define WINDOW_BYTES (1u << 20)

struct window_run;

/* Zeroed, it is empty; `offset` may be set before the first feed. */
struct window {
	struct buf text;
	uint64_t offset; /* in the output, after what was fed */
	uint64_t gone;	 /* bytes of text that were dropped at the front */
	/* The text before this, counted with `gone`, is as it was when the
	 * owner set it: backspaces take it down.  */
	uint64_t same;

	struct tokens tokens;
	struct window_run *runs;
	size_t n_runs, room;
	uint64_t returned; /* offset of a carriage return, when pending */
	unsigned char pending;
};

/* At most this much at once, so that all of it can be searched. */
#define WINDOW_FEED_MAX (64u << 10)

/* -ENOMEM: the window is as before, and what was fed is lost. */
int window_feed(struct window *window, const void *bytes, size_t len);

/* What is between is not known: nothing is found across. */
void window_skip(struct window *window, uint64_t offset);

/* Offset in the output of the character at, or before, a place in the text. */
uint64_t window_start_of(const struct window *window, size_t at);
uint64_t window_end_of(const struct window *window, size_t at);

void window_fini(struct window *window);

#endif
