/* SPDX-License-Identifier: MIT */
#ifndef PTY_TOKENS_H
#define PTY_TOKENS_H

/*
 * What a terminal's output consists of: characters, controls and sequences,
 * for those who read it as text.  (The screen has a parser of its own, which
 * knows what all the sequences mean: pty/vt.h.)
 *
 * One byte at a time; the state is of fixed size, so that any split of a
 * stream gives the same tokens.  Strings (OSC, DCS …) give none.  A byte that
 * is not part of well-formed UTF-8 gives U+FFFD, once for each longest
 * beginning of a character.
 *
 * Thread: the owner's.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define TOKEN_PARAMS 4

enum token_kind {
	TOKEN_CHAR,    /* code: of the character */
	TOKEN_CONTROL, /* code: C0, DEL, or C1 written as a character */
	TOKEN_ESC,     /* code: the final byte */
	TOKEN_CSI,     /* the same, with parameters */
};

struct token {
	enum token_kind kind;
	uint32_t code;
	/* 0, or what stands before: '?', '>' …, or an intermediate. */
	unsigned char marker;
	unsigned int params[TOKEN_PARAMS]; /* 0 where absent */
};

/* Zeroed, it begins. */
struct tokens {
	unsigned char state;
	unsigned char need;	 /* bytes that the character still wants */
	unsigned char low, high; /* of the next one of them */
	unsigned char n_params;
	uint32_t code;
	size_t pending;
	struct token sequence;
};

/* How many tokens this byte completes: 0, 1 or 2. */
#define TOKENS_A_BYTE 2
unsigned int tokens_put(struct tokens *tokens, unsigned char byte,
			struct token ret_tokens[TOKENS_A_BYTE]);

/* The stream has ended: 1 if it did so inside a character. */
unsigned int tokens_end(struct tokens *tokens, struct token *ret_token);

/* How many of the last bytes belong to something that is unfinished. */
size_t tokens_pending(const struct tokens *tokens);

/* The first parameter, or 1: how often or how far. */
unsigned int token_count(const struct token *token);

/* Appends a character as UTF-8. */
void text_put(struct buf *out, uint32_t code);

#endif
