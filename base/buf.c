/* SPDX-License-Identifier: MIT */

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

static int
buf_reserve(struct buf *b, size_t more)
{
	unsigned char *data;
	size_t room = b->room ? b->room : 64;

	if (b->error)
		return b->error;
	if (more > SIZE_MAX / 4 || b->len > SIZE_MAX / 4)
		return b->error = -ENOMEM;
	if (b->len + more <= b->room)
		return 0;
	while (room < b->len + more)
		room *= 2;
	data = realloc(b->data, room);
	if (!data)
		return b->error = -ENOMEM;
	b->data = data;
	b->room = room;
	return 0;
}

void
buf_put(struct buf *b, const void *data, size_t len)
{
	if (len == 0 || buf_reserve(b, len) < 0)
		return;
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void
buf_puts(struct buf *b, const char *text)
{
	buf_put(b, text, strlen(text));
}

void
buf_putf(struct buf *b, const char *format, ...)
{
	_cleanup_(freep) char *text = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	if (len < 0) {
		text = NULL;
		b->error = -ENOMEM;
		return;
	}
	buf_put(b, text, (size_t)len);
}

void
buf_u32(struct buf *b, uint32_t value)
{
	unsigned char bytes[4];

	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(value >> (8 * i));
	buf_put(b, bytes, sizeof(bytes));
}

void
buf_u64(struct buf *b, uint64_t value)
{
	buf_u32(b, (uint32_t)value);
	buf_u32(b, (uint32_t)(value >> 32));
}

void
buf_str(struct buf *b, const char *text)
{
	size_t len = strlen(text);

	if (len > UINT32_MAX / 2) {
		b->error = -ENOMEM;
		return;
	}
	buf_u32(b, (uint32_t)len);
	buf_put(b, text, len);
}

void
buf_strv(struct buf *b, const struct strv *v)
{
	buf_u32(b, (uint32_t)v->count);
	for (size_t i = 0; i < v->count; i++)
		buf_str(b, v->items[i]);
}

void
buf_drop(struct buf *b, size_t len)
{
	if (len >= b->len) {
		b->len = 0;
		return;
	}
	memmove(b->data, b->data + len, b->len - len);
	b->len -= len;
}

int
buf_error(const struct buf *b)
{
	return b->error;
}

void
buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

static const unsigned char *
bufread_take(struct bufread *r, size_t len)
{
	const unsigned char *at = r->at;

	if (r->bad || r->left < len) {
		r->bad = 1;
		return NULL;
	}
	r->at += len;
	r->left -= len;
	return at;
}

uint32_t
bufread_u32(struct bufread *r)
{
	const unsigned char *at = bufread_take(r, 4);
	uint32_t value = 0;

	for (int i = 0; at && i < 4; i++)
		value |= (uint32_t)at[i] << (8 * i);
	return value;
}

uint64_t
bufread_u64(struct bufread *r)
{
	uint64_t low = bufread_u32(r);

	return low | (uint64_t)bufread_u32(r) << 32;
}

char *
bufread_str(struct bufread *r)
{
	uint32_t len = bufread_u32(r);
	const unsigned char *at = bufread_take(r, len);
	char *copy;

	if (!at || memchr(at, 0, len)) {
		r->bad = 1;
		return NULL;
	}
	copy = malloc((size_t)len + 1);
	if (!copy) {
		r->bad = 1;
		return NULL;
	}
	memcpy(copy, at, len);
	copy[len] = '\0';
	return copy;
}

int
bufread_strv(struct bufread *r, struct strv *v)
{
	uint32_t count = bufread_u32(r);

	for (uint32_t i = 0; i < count && !r->bad; i++) {
		_cleanup_(freep) char *item = bufread_str(r);

		if (item && strv_add(v, item) < 0)
			return -ENOMEM;
	}
	return 0;
}
