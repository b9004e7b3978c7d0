/* SPDX-License-Identifier: MIT */

/*
 * Blocks in a list.  In a block the rows lie one after the other from the
 * front, and from the back grow the offsets where they begin.  Rows leave at
 * both ends: `first` counts those that left the oldest block.  Blocks start
 * small, so that a terminal that said little holds little.
 */

#include "pty/history.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_MIN (2u << 10)
#define BLOCK_MAX (64u << 10)

struct history_block {
	struct history_block *older, *newer;
	uint32_t size; /* of data */
	uint32_t end;  /* of the rows */
	uint32_t first, count;
	_Alignas(uint32_t) unsigned char data[];
};

static uint32_t *
offset_of(const struct history_block *b, uint32_t index)
{
	return (uint32_t *)(void *)(b->data + b->size) - 1 - index;
}

static uint32_t
room_of(const struct history_block *b)
{
	return b->size - b->end - b->count * (uint32_t)sizeof(uint32_t);
}

void
history_init(struct history *h, unsigned int max, size_t bytes_max)
{
	*h = (struct history){ .max = max, .bytes_max = bytes_max };
}

void
history_clear(struct history *h)
{
	struct history_block *b, *newer;

	for (b = h->oldest; b; b = newer) {
		newer = b->newer;
		free(b);
	}
	free(h->spare);
	h->spare = h->oldest = h->newest = NULL;
	h->count = 0;
	h->bytes = 0;
}

void
history_fini(struct history *h)
{
	history_clear(h);
	buf_fini(&h->scratch);
}

static void
forget_block(struct history *h, struct history_block *b)
{
	if (b->older)
		b->older->newer = b->newer;
	else
		h->oldest = b->newer;
	if (b->newer)
		b->newer->older = b->older;
	else
		h->newest = b->older;
	h->bytes -= b->size;
	if (b->size == BLOCK_MAX && !h->spare)
		h->spare = b;
	else
		free(b);
}

static void
drop_oldest(struct history *h)
{
	struct history_block *b = h->oldest;

	assert(b);
	h->count--;
	if (++b->first == b->count)
		forget_block(h, b);
}

static struct history_block *
add_block(struct history *h, size_t need)
{
	size_t size = h->newest ? 2 * (size_t)h->newest->size : BLOCK_MIN;
	struct history_block *b = NULL;

	size = size < BLOCK_MAX ? size : BLOCK_MAX;
	if (size < need)
		size = (need + 7) & ~(size_t)7;
	while (h->count > 0 && h->bytes + size > h->bytes_max)
		drop_oldest(h);
	if (size == BLOCK_MAX && h->spare) {
		b = h->spare;
		h->spare = NULL;
	} else {
		b = malloc(sizeof(*b) + size);
		if (!b)
			return NULL;
	}
	*b = (struct history_block){ .older = h->newest,
				     .size = (uint32_t)size };
	if (h->newest)
		h->newest->newer = b;
	else
		h->oldest = b;
	h->newest = b;
	h->bytes += size;
	return b;
}

/* A block with room for a row of `len` bytes; NULL: no memory. */
static struct history_block *
block_for(struct history *h, size_t len)
{
	size_t need = len + sizeof(uint32_t);

	if (h->newest && room_of(h->newest) >= need)
		return h->newest;
	return add_block(h, need);
}

static void
added(struct history *h, struct history_block *b, size_t len)
{
	*offset_of(b, b->count++) = b->end;
	b->end += (uint32_t)len;
	h->count++;
	while (h->count > h->max)
		drop_oldest(h);
}

void
history_push_packed(struct history *h, const void *bytes, size_t len)
{
	struct history_block *b = block_for(h, len);

	if (!b)
		return;
	memcpy(b->data + b->end, bytes, len);
	added(h, b, len);
}

void
history_push(struct history *h, const struct row *row, unsigned int cols,
	     const struct lexicon *lex)
{
	struct history_block *b;
	size_t len;

	b = block_for(h, PACKED_PLAIN_MAX(row->wrapped ? cols : row->used));
	if (!b)
		return;
	len = pack_plain(row, cols, lex, b->data + b->end);
	if (len > 0) {
		added(h, b, len);
		return;
	}
	h->scratch.len = 0;
	pack_row(row, cols, lex, &h->scratch);
	if (buf_error(&h->scratch) == 0)
		history_push_packed(h, h->scratch.data, h->scratch.len);
	/* A block that was made for it and stayed empty. */
	if (b->count == 0)
		forget_block(h, b);
	if (h->scratch.room > BLOCK_MAX || buf_error(&h->scratch) < 0)
		buf_fini(&h->scratch);
}

void
history_pop(struct history *h)
{
	struct history_block *b = h->newest;

	assert(h->count > 0);
	h->count--;
	b->count--;
	b->end = *offset_of(b, b->count);
	if (b->count == b->first)
		forget_block(h, b);
}

bool
history_newest(const struct history *h, struct history_at *ret_at)
{
	if (h->count == 0)
		return false;
	*ret_at = (struct history_at){ h->newest, h->newest->count - 1 };
	return true;
}

bool
history_oldest(const struct history *h, struct history_at *ret_at)
{
	if (h->count == 0)
		return false;
	*ret_at = (struct history_at){ h->oldest, h->oldest->first };
	return true;
}

bool
history_older(struct history_at *at)
{
	if (at->index > at->block->first) {
		at->index--;
		return true;
	}
	if (!at->block->older)
		return false;
	at->block = at->block->older;
	at->index = at->block->count - 1;
	return true;
}

bool
history_newer(struct history_at *at)
{
	if (at->index + 1 < at->block->count) {
		at->index++;
		return true;
	}
	if (!at->block->newer)
		return false;
	at->block = at->block->newer;
	at->index = at->block->first;
	return true;
}

const unsigned char *
history_peek(const struct history_at *at, size_t *ret_len)
{
	const struct history_block *b = at->block;
	uint32_t from = *offset_of(b, at->index);
	uint32_t to = at->index + 1 < b->count ? *offset_of(b, at->index + 1)
					       : b->end;

	*ret_len = to - from;
	return b->data + from;
}

bool
history_wrapped(const struct history_at *at)
{
	size_t len;
	const unsigned char *bytes = history_peek(at, &len);

	return packed_is_wrapped(bytes, len);
}

bool
history_continues(const struct history_at *at)
{
	size_t len;
	const unsigned char *bytes = history_peek(at, &len);

	return packed_continues(bytes, len);
}
