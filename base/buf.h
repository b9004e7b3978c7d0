/* SPDX-License-Identifier: MIT */
#ifndef BASE_BUF_H
#define BASE_BUF_H

/*
 * A growing byte buffer.  An allocation failure is sticky: later appends do
 * nothing, and buf_error() tells, so that a writer checks once at the end.
 * A zeroed struct is an empty buffer.  Thread: the owner's.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/strv.h"

struct buf {
	unsigned char *data;
	size_t len;
	size_t room;
	int error; /* 0 or -ENOMEM */
};

void buf_put(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *text);
void buf_putf(struct buf *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Little-endian fixed-size integers, and a length-prefixed (u32) string. */
void buf_u32(struct buf *b, uint32_t value);
void buf_u64(struct buf *b, uint64_t value);
void buf_str(struct buf *b, const char *text);
/* The number of strings (u32), then each. */
void buf_strv(struct buf *b, const struct strv *v);

/* Drops the first `len` bytes. */
void buf_drop(struct buf *b, size_t len);

/* 0, or -ENOMEM if any append failed. */
int buf_error(const struct buf *b);

void buf_fini(struct buf *b);

/*
 * Reader over borrowed bytes.  Reading past the end, or a string with a NUL
 * inside, sets `bad` and yields zeros, "" and NULL; check `bad` once.
 */
struct bufread {
	const unsigned char *at;
	size_t left;
	int bad;
};

uint32_t bufread_u32(struct bufread *r);
uint64_t bufread_u64(struct bufread *r);
/* A fresh copy of a length-prefixed string; NULL (and bad) on failure. */
char *bufread_str(struct bufread *r);
/* What buf_strv() wrote, appended to `v`; -ENOMEM. */
int bufread_strv(struct bufread *r, struct strv *v);

#endif
