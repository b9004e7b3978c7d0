/* SPDX-License-Identifier: MIT */
#ifndef PTY_HISTORY_H
#define PTY_HISTORY_H

/*
 * Rows that scrolled off, packed, oldest first.  A wrapped row is joined to
 * the next one when it is looked at, so that no change of width touches them.
 * When the newest is wrapped, its line goes on in the first row of the screen.
 *
 * No memory before the first row.  Thread: the owner's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pty/packed.h"

struct history_block;

struct history {
	unsigned int max;
	size_t bytes_max;
	unsigned int count;
	size_t bytes; /* of the blocks */
	struct history_block *oldest, *newest;
	struct history_block *spare;
	struct buf scratch;
};

/* A row of it. */
struct history_at {
	const struct history_block *block;
	uint32_t index;
};

void history_init(struct history *h, unsigned int max, size_t bytes_max);
void history_fini(struct history *h);
void history_clear(struct history *h);

/* Adds a row, dropping the oldest as needed; without memory, the row. */
void history_push(struct history *h, const struct row *row, unsigned int cols,
		  const struct lexicon *lex);
/* The same for a row that is packed and known to be sound. */
void history_push_packed(struct history *h, const void *bytes, size_t len);
/* Removes the newest; there must be one. */
void history_pop(struct history *h);

/* false: there is none. */
bool history_newest(const struct history *h, struct history_at *ret_at);
bool history_oldest(const struct history *h, struct history_at *ret_at);
bool history_older(struct history_at *at);
bool history_newer(struct history_at *at);
const unsigned char *history_peek(const struct history_at *at, size_t *ret_len);
bool history_wrapped(const struct history_at *at);
bool history_continues(const struct history_at *at);

#endif
