/* SPDX-License-Identifier: MIT */

/*
 * The reader of a spool: the input is head, tail and ring.  Records that would
 * fail only by their hash are signed, else nothing behind the hash is reached.
 */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "policy/spool_priv.h"

#define RING 8192u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
read_it(const struct denial *denial, void *data)
{
	denial_to_json(denial, data);
	return 0;
}

static void
sign(const struct spool *spool)
{
	for (size_t at = 0; at + SPOOL_RECORD_MIN <= RING; at += 8) {
		struct spool_record *record =
			(struct spool_record *)(spool->ring + at);

		if (record->magic == SPOOL_RECORD_MAGIC &&
		    record->len >= SPOOL_RECORD_MIN && record->len % 8 == 0 &&
		    record->len <= RING - at)
			record->hash = spool_hash(spool->header->key, record);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spool_header *header = calloc(1, SPOOL_HEADER + RING);
	struct buf json = { 0 };
	struct spool spool;

	if (!header || size < 16) {
		free(header);
		return 0;
	}
	header->magic = SPOOL_MAGIC;
	header->size = SPOOL_HEADER + RING;
	header->world[0] = header->session[0] = 'w';
	memcpy(&header->head, data, 8);
	memcpy(&header->tail, data + 8, 8);
	if (spool_view(header, SPOOL_HEADER + RING, &spool) < 0)
		abort();
	size -= 16;
	memcpy(spool.ring, data + 16, size < RING ? size : RING);
	sign(&spool);
	(void)spool_each(&spool, read_it, &json);
	buf_fini(&json);
	free(header);
	return 0;
}
