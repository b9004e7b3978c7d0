/* SPDX-License-Identifier: MIT */
#ifndef PTY_SHELL_INTEGRATION_H
#define PTY_SHELL_INTEGRATION_H

/*
 * Shells that say what they do: bash, zsh and fish are started with a few lines
 * of ours, around the user's own start-up files, that put marks (OSC 133) into
 * the output where a prompt begins (A) and ends (B), and where the output of a
 * command begins (C) and ends, with its exit code (D).
 *
 * Any output can contain such marks.  Ours carry a nonce of the terminal,
 * "pale=NONCE", which the shell keeps in a variable that is not exported.  It
 * is no secret from a program that reads the terminal's output or the shell's
 * memory: it keeps what is merely printed from being believed.
 *
 * The lines come through a pipe that takes the place of descriptor 2 until a
 * small sh, which starts the shell, has put it away: nothing of it is in an
 * argument, in the environment, or in a file that stays.
 *
 * Thread: any.
 */

#include "base/buf.h"
#include "base/strv.h"

enum shell_kind {
	SHELL_OTHER,
	SHELL_BASH,
	SHELL_ZSH,
	SHELL_FISH,
};

/*
 * zsh wants its start-up file in a directory: there it is below the control
 * tree, and what is in it.  It has no secret.
 */
#define SHELL_ZSH_DIRECTORY "terminals/.zsh"
#define SHELL_ZSHENV	    ". /proc/self/fd/9"

/* In the environment, 0: nothing of this is wanted. */
#define SHELL_INTEGRATION_VARIABLE "PALE_SHELL_INTEGRATION"

/*
 * Which of them a command is, when it is nothing but an interactive shell with
 * its usual files; else SHELL_OTHER.
 */
enum shell_kind shell_kind_of(const struct strv *argv, const struct strv *env);

/* The lines for descriptor 2.  `nonce` is of letters and digits. */
void shell_lines(enum shell_kind kind, const char *nonce, struct buf *out);

/* The command to start instead of `argv`.  Errors: -ENOMEM. */
int shell_wrap(enum shell_kind kind, const struct strv *argv,
	       struct strv *ret_argv);

#endif
