/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_TEXTEDIT_H
#define FUSEFS_TEXTEDIT_H

/*
 * Literal replacement in a text whose line ends may be LF, CRLF or both.
 *
 * What is looked for, what it is replaced by and the text are compared as if
 * each CRLF were LF; all bytes outside the places that match stay as they are,
 * whatever they are.  What is written has the line ends of the place: those of
 * what it replaces, else of the next line end after it, else of the last one
 * before.
 *
 * Pure functions.  Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct textedit {
	const char *old, *new;
	size_t old_len, new_len;
	bool all; /* else `old` must be there exactly once */
};

/*
 * Appends to `ret_text` the text after one replacement; *ret_count is how often
 * `old` is there, without overlaps.  Errors: -ENOENT (not there, or empty),
 * -ENOTUNIQ (more than once, and not `all`), -EFBIG (more than `max` bytes),
 * -ENOMEM.
 */
int textedit_apply(const struct textedit *edit, const void *text, size_t len,
		   size_t max, struct buf *ret_text, size_t *ret_count);

/* Well-formed UTF-8 without NUL. */
bool textedit_is_text(const void *data, size_t len);

#endif
