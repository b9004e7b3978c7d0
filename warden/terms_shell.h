/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_SHELL_H
#define WARDEN_TERMS_SHELL_H

/*
 * What the shell of a terminal says of itself by marks that carry the
 * terminal's nonce (pty/shell_integration.h), and whether somebody sends to it
 * and waits.
 *
 * Thread: loop.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/strv.h"

struct vt_event;
struct wterm;

/* Zeroed, nothing is known.  A part of a terminal. */
struct term_shell {
	bool speaks;   /* it was prepared */
	bool keeps;    /* a line that it refused, as fish does */
	bool answered; /* the model did, what nobody may have read */
	char last;     /* of the marks: 'A' … 'D'; 0: there was none */
	uint64_t from; /* its bytes: [from, to) */
	uint64_t to;
	bool typed;   /* since then */
	bool sending; /* one send that waits, at a time */
};

/*
 * Prepares a shell that can do so: *ret_argv is what to start instead of what
 * was asked for, *ret_lines a pipe for its descriptor 2, and the model knows
 * the nonce.  With any other program, and where it cannot be done, *ret_lines
 * is −1.  Errors: -ENOMEM.
 */
int term_shell_prepare(struct wterm *term, struct strv *ret_argv,
		       int *ret_lines);

/* Of the terminal's model, any event. */
void term_shell_note(struct term_shell *shell, const struct vt_event *event);

/* It said that it takes commands now; and was given none since. */
bool term_shell_at_prompt(const struct term_shell *shell);
bool term_shell_is_idle(const struct term_shell *shell);
/* It has yet to: it begins, or a command has just ended. */
bool term_shell_will_prompt(const struct term_shell *shell);
/* It said that a command runs. */
bool term_shell_runs(const struct term_shell *shell);

#endif
