/* SPDX-License-Identifier: MIT */
#ifndef PTY_KEYS_H
#define PTY_KEYS_H

/*
 * What a keyboard sends: the bytes of keys that are named, as xterm sends
 * them, and text that is pasted.
 *
 *	C-c  ^C  M-x  C-M-x  S-Up  C-Left  Up  Enter  Tab  BTab  F5  KP7  a  é
 *
 * Names of keys are of any case.  C- is Control, M- is Alt (ESC before), S- is
 * Shift; a single character stands for itself.
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/errmsg.h"

/* What the program has asked its terminal for. */
struct keys_modes {
	bool app_cursor, app_keypad;
};

/*
 * Appends what the keys of `names`, words with blanks between, send.  Errors:
 * -EINVAL with a sentence that names the word (nothing is appended); those of
 * the buffer are the buffer's.
 */
int keys_encode(const char *names, const struct keys_modes *modes,
		struct buf *out, struct errmsg *why);

/*
 * Appends text as it is pasted: line ends are Enter and, if the program wants
 * to know what is pasted (`bracketed`), marks are put around it.  The mark of
 * the end is taken out of the text, so that none of it can pass for typed.
 */
void keys_paste(const void *text, size_t len, bool bracketed, struct buf *out);

#endif
