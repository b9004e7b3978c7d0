/* SPDX-License-Identifier: MIT */
#ifndef PTY_PACKED_H
#define PTY_PACKED_H

/*
 * Rows as bytes, for the history and for what is saved: each stands alone, with
 * its styles and links in it.  A row of one style and plain ASCII takes a byte
 * a character.
 *
 * Format: a byte of flags; then, if PACKED_PLAIN, [a style if PACKED_STYLED]
 * and a byte a cell, 0 a blank; else runs: a style, a number of characters,
 * the characters.  A character is 0 (blank), UTF-8, 0xff (pad) or 0xf7 + n and
 * n characters in UTF-8 (a cluster).  A style is a byte that says which fields
 * follow.  Wide characters are known by their width and take two cells.
 *
 * Unpacking believes nothing.  Thread: the owner's.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "pty/grid.h"
#include "pty/style.h"

/* Cells of joined rows. */
struct line {
	struct cell *cells;
	size_t len, room;
};

void line_fini(struct line *line);
/* Room for `more` cells; 0 or -ENOMEM. */
int line_reserve(struct line *line, size_t more);
/*
 * Appends the cells of a row: all `cols` of a wrapped one, else up to its last
 * that is not blank and plain.  Pads are left out when `joining`.
 */
int line_add_row(struct line *line, const struct row *row, unsigned int cols,
		 bool joining);
/*
 * How many cells of the line from `at` on make the next row of `cols`: not
 * half a wide character.
 */
size_t line_row_length(const struct line *line, size_t at, unsigned int cols);

/* The number of cells that are not trailing plain blanks. */
unsigned int row_text_end(const struct row *row);
/* The same, but all of a wrapped row. */
unsigned int row_length(const struct row *row, unsigned int cols);

/*
 * Writes a row of one style and plain ASCII to `out`, which has room for
 * PACKED_PLAIN_MAX(cols); 0 if the row is not such a one.
 */
#define PACKED_PLAIN_MAX(cols) ((size_t)(cols) + 24)
size_t pack_plain(const struct row *row, unsigned int cols,
		  const struct lexicon *lex, unsigned char *out);

/* Any row; `cols` cells of a wrapped one. */
void pack_row(const struct row *row, unsigned int cols,
	      const struct lexicon *lex, struct buf *out);

/*
 * Appends the cells of a packed row to `line`, pads left out when `joining`.
 * Errors: -EBADMSG, -ENOMEM.
 */
int unpack_row(const unsigned char *bytes, size_t len, bool joining,
	       struct lexicon *lex, struct line *line);
bool packed_is_wrapped(const unsigned char *bytes, size_t len);
bool packed_continues(const unsigned char *bytes, size_t len);

void put_utf8(struct buf *out, uint32_t ch);

#endif
