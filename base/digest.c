/* SPDX-License-Identifier: MIT */

/*
 * A block is worked in when more follows: the last one, full or not, is told
 * apart by a flag.
 */

#include "base/digest.h"

#include <endian.h>
#include <stdbool.h>
#include <string.h>

#define ROUNDS 12

static const uint64_t start[8] = {
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
	0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
	0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

static const unsigned char order[10][16] = {
	{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
	{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
	{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
	{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
	{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
	{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
	{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
	{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
	{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
	{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

static inline uint64_t
rotate(uint64_t word, unsigned int by)
{
	return word >> by | word << (64 - by);
}

static inline void
mix(uint64_t *v, const unsigned int at[4], uint64_t x, uint64_t y)
{
	uint64_t a = v[at[0]], b = v[at[1]], c = v[at[2]], d = v[at[3]];

	a += b + x;
	d = rotate(d ^ a, 32);
	c += d;
	b = rotate(b ^ c, 24);
	a += b + y;
	d = rotate(d ^ a, 16);
	c += d;
	b = rotate(b ^ c, 63);
	v[at[0]] = a;
	v[at[1]] = b;
	v[at[2]] = c;
	v[at[3]] = d;
}

static void
compress(struct digest *digest, const unsigned char *block, uint64_t count,
	 bool last)
{
	static const unsigned int at[8][4] = {
		{ 0, 4, 8, 12 },  { 1, 5, 9, 13 },  { 2, 6, 10, 14 },
		{ 3, 7, 11, 15 }, { 0, 5, 10, 15 }, { 1, 6, 11, 12 },
		{ 2, 7, 8, 13 },  { 3, 4, 9, 14 },
	};
	uint64_t v[16], m[16];

	memcpy(m, block, sizeof(m));
	for (int i = 0; i < 16; i++)
		m[i] = le64toh(m[i]);
	memcpy(v, digest->h, sizeof(digest->h));
	memcpy(v + 8, start, sizeof(start));
	v[12] ^= count;
	if (last)
		v[14] = ~v[14];

	for (int round = 0; round < ROUNDS; round++) {
		const unsigned char *s = order[round % 10];

#pragma GCC unroll 8
		for (size_t i = 0; i < 8; i++)
			mix(v, at[i], m[s[2 * i]], m[s[2 * i + 1]]);
	}
	for (int i = 0; i < 8; i++)
		digest->h[i] ^= v[i] ^ v[i + 8];
}

void
digest_init(struct digest *digest)
{
	*digest = (struct digest){ .count = 0 };
	memcpy(digest->h, start, sizeof(start));
	/* No key, one tree of one leaf. */
	digest->h[0] ^= 0x01010000 ^ DIGEST_LEN;
}

void
digest_add(struct digest *digest, const void *data, size_t len)
{
	const unsigned char *at = data;

	while (len > 0) {
		size_t part = DIGEST_BLOCK - digest->filled;

		if (part == 0) {
			digest->count += DIGEST_BLOCK;
			compress(digest, digest->block, digest->count, false);
			digest->filled = 0;
			continue;
		}
		part = part < len ? part : len;
		memcpy(digest->block + digest->filled, at, part);
		digest->filled += part;
		at += part;
		len -= part;
	}
}

void
digest_end(struct digest *digest, unsigned char ret_digest[DIGEST_LEN])
{
	memset(digest->block + digest->filled, 0,
	       DIGEST_BLOCK - digest->filled);
	compress(digest, digest->block, digest->count + digest->filled, true);
	for (size_t i = 0; i < DIGEST_LEN / sizeof(uint64_t); i++) {
		uint64_t word = htole64(digest->h[i]);

		memcpy(ret_digest + i * sizeof(word), &word, sizeof(word));
	}
}
