/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_H
#define BASE_JSON_H

/*
 * Writes JSON straight into a buffer, without a tree of values.  Commas are
 * put by looking at the last byte written: a value or key that does not follow
 * '{', '[', ':' or a fresh line is preceded by one.  No complete value ends in
 * any of those bytes, so there is no state to keep.
 *
 * Texts may be any bytes (file names are).  The result is valid UTF-8 and
 * reversible: a byte that is not part of well-formed UTF-8 becomes the four
 * characters \xHH (lower case), and so does a backslash that stands before
 * "xHH" in the original.  To get the bytes back, replace every \xHH by its
 * byte, left to right; everything else stands for itself.
 *
 * Errors are the buffer's (buf_error()).  Thread: the owner's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* '{' or '['; the end is '}' or ']'. */
void jsonw_begin(struct buf *out, char bracket);
void jsonw_end(struct buf *out, char bracket);

void jsonw_key(struct buf *out, const char *key);

/* NULL writes null, alone or with its key. */
void jsonw_text(struct buf *out, const char *text);
void jsonw_pair(struct buf *out, const char *key, const char *text);
void jsonw_bytes(struct buf *out, const void *bytes, size_t len);
void jsonw_int(struct buf *out, int64_t value);
void jsonw_uint(struct buf *out, uint64_t value);
void jsonw_bool(struct buf *out, bool value);
void jsonw_null(struct buf *out);

/* A member: key and value. */
void jsonw_pair_int(struct buf *out, const char *key, int64_t value);
void jsonw_pair_uint(struct buf *out, const char *key, uint64_t value);
void jsonw_pair_bool(struct buf *out, const char *key, bool value);
/* null where it is not known. */
void jsonw_pair_known(struct buf *out, const char *key, bool known,
		      int64_t value);
void jsonw_pair_strv(struct buf *out, const char *key, const struct strv *list);

/* A complete JSON value, as it is. */
void jsonw_raw(struct buf *out, const void *json, size_t len);

/*
 * Length of the well-formed UTF-8 sequence at `bytes` (1 to 4), or 0: overlong
 * forms, surrogates and values past U+10FFFF are not well-formed.
 */
size_t utf8_length(const unsigned char *bytes, size_t len);

/* Appends the reversible text without quotes or JSON escapes (for people). */
void escape_bytes(struct buf *out, const void *bytes, size_t len);

/* Fresh, with every \xHH replaced by its byte; NULL: no memory. */
char *json_unescape(const char *text);

/*
 * The same for a terminal: control characters (C0, DEL, C1) become \xHH too,
 * so that no name steers it.
 */
void escape_controls(struct buf *out, const void *bytes, size_t len);

#endif
