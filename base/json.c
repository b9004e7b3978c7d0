/* SPDX-License-Identifier: MIT */

#include "base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void
separate(struct buf *out)
{
	unsigned char last;

	if (out->len == 0)
		return;
	last = out->data[out->len - 1];
	if (!memchr("{[:\n", last, 4))
		buf_puts(out, ",");
}

void
jsonw_begin(struct buf *out, char bracket)
{
	separate(out);
	buf_put(out, &bracket, 1);
}

void
jsonw_end(struct buf *out, char bracket)
{
	buf_put(out, &bracket, 1);
}

void
jsonw_key(struct buf *out, const char *key)
{
	jsonw_text(out, key);
	buf_puts(out, ":");
}

static bool
is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

/* The second byte's range depends on the first (Unicode, table 3-7). */
static bool
is_second_byte(unsigned char first, unsigned char second)
{
	if (first == 0xe0)
		return second >= 0xa0 && second <= 0xbf;
	if (first == 0xed)
		return second >= 0x80 && second <= 0x9f;
	if (first == 0xf0)
		return second >= 0x90 && second <= 0xbf;
	if (first == 0xf4)
		return second >= 0x80 && second <= 0x8f;
	return is_continuation(second);
}

size_t
utf8_length(const unsigned char *bytes, size_t len)
{
	size_t need;

	if (len == 0)
		return 0;
	if (bytes[0] < 0x80)
		return 1;
	if (bytes[0] < 0xc2 || bytes[0] > 0xf4)
		return 0;
	need = bytes[0] < 0xe0 ? 2 : bytes[0] < 0xf0 ? 3 : 4;
	if (len < need || !is_second_byte(bytes[0], bytes[1]))
		return 0;
	for (size_t i = 2; i < need; i++)
		if (!is_continuation(bytes[i]))
			return 0;
	return need;
}

static bool
is_hex(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') ||
	       (c >= 'A' && c <= 'F');
}

/* A backslash that would be read as the start of an escape. */
static bool
is_ambiguous(const unsigned char *at, size_t left)
{
	return at[0] == '\\' && left >= 4 && at[1] == 'x' && is_hex(at[2]) &&
	       is_hex(at[3]);
}

static bool
is_control(const unsigned char *at, size_t n)
{
	return (n == 1 && (at[0] < 0x20 || at[0] == 0x7f)) ||
	       (n == 2 && at[0] == 0xc2 && at[1] < 0xa0);
}

static void
escape(struct buf *out, const unsigned char *at, size_t len, bool controls)
{
	while (len > 0) {
		size_t n = utf8_length(at, len);

		if (n == 0 || is_ambiguous(at, len))
			n = 0;
		else if (controls && is_control(at, n))
			n = 0;
		if (n > 0)
			buf_put(out, at, n);
		else
			buf_putf(out, "\\x%02x", *at);
		/* The rest of an escaped C1 is escaped as a stray byte. */
		n = n ? n : 1;
		at += n;
		len -= n;
	}
}

void
escape_bytes(struct buf *out, const void *bytes, size_t len)
{
	escape(out, bytes, len, false);
}

void
escape_controls(struct buf *out, const void *bytes, size_t len)
{
	escape(out, bytes, len, true);
}

static bool
is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void
put_special(struct buf *out, const unsigned char *at, size_t left, size_t n)
{
	if (n == 0 || is_ambiguous(at, left))
		buf_putf(out, "\\\\x%02x", *at);
	else if (n > 1)
		buf_put(out, at, n);
	else if (*at == '"' || *at == '\\')
		buf_putf(out, "\\%c", *at);
	else if (*at == '\n')
		buf_puts(out, "\\n");
	else if (*at == '\t')
		buf_puts(out, "\\t");
	else
		buf_putf(out, "\\u%04x", *at);
}

void
jsonw_pair(struct buf *out, const char *key, const char *text)
{
	jsonw_key(out, key);
	jsonw_text(out, text);
}

void
jsonw_bytes(struct buf *out, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	separate(out);
	buf_puts(out, "\"");
	while (len > 0) {
		size_t n = 0;

		while (n < len && is_plain(at[n]))
			n++;
		if (n > 0) {
			buf_put(out, at, n);
		} else {
			n = utf8_length(at, len);
			put_special(out, at, len, n);
			n = n ? n : 1;
		}
		at += n;
		len -= n;
	}
	buf_puts(out, "\"");
}

void
jsonw_text(struct buf *out, const char *text)
{
	if (!text) {
		jsonw_null(out);
		return;
	}
	jsonw_bytes(out, text, strlen(text));
}

void
jsonw_int(struct buf *out, int64_t value)
{
	separate(out);
	buf_putf(out, "%" PRId64, value);
}

void
jsonw_uint(struct buf *out, uint64_t value)
{
	separate(out);
	buf_putf(out, "%" PRIu64, value);
}

void
jsonw_bool(struct buf *out, bool value)
{
	separate(out);
	buf_puts(out, value ? "true" : "false");
}

void
jsonw_null(struct buf *out)
{
	separate(out);
	buf_puts(out, "null");
}

void
jsonw_pair_int(struct buf *out, const char *key, int64_t value)
{
	jsonw_key(out, key);
	jsonw_int(out, value);
}

void
jsonw_pair_uint(struct buf *out, const char *key, uint64_t value)
{
	jsonw_key(out, key);
	jsonw_uint(out, value);
}

void
jsonw_pair_bool(struct buf *out, const char *key, bool value)
{
	jsonw_key(out, key);
	jsonw_bool(out, value);
}

void
jsonw_pair_known(struct buf *out, const char *key, bool known, int64_t value)
{
	jsonw_key(out, key);
	if (known)
		jsonw_int(out, value);
	else
		jsonw_null(out);
}

void
jsonw_pair_strv(struct buf *out, const char *key, const struct strv *list)
{
	jsonw_key(out, key);
	jsonw_begin(out, '[');
	for (size_t i = 0; i < list->count; i++)
		jsonw_text(out, list->items[i]);
	jsonw_end(out, ']');
}

void
jsonw_raw(struct buf *out, const void *json, size_t len)
{
	separate(out);
	buf_put(out, json, len);
}

char *
json_unescape(const char *text)
{
	size_t left = strlen(text);
	char *copy = malloc(left + 1), *to = copy;

	while (copy && left > 0) {
		size_t n = 1;

		if (is_ambiguous((const unsigned char *)text, left)) {
			const char pair[] = { text[2], text[3], '\0' };

			n = 4;
			*to++ = (char)strtol(pair, NULL, 16);
		} else {
			*to++ = *text;
		}
		text += n;
		left -= n;
	}
	if (copy)
		*to = '\0';
	return copy;
}
