/* SPDX-License-Identifier: MIT */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

/*
 * BLAKE2b with 32 bytes of result (RFC 7693): nobody can make two contents
 * with one digest, and it is faster without help of the processor than the SHA
 * family.  Written here, since no library that pale needs anyway has one: the
 * kernel's (AF_ALG) is missing in many containers.
 *
 * Thread: the owner's.
 */

#include <stddef.h>
#include <stdint.h>

#define DIGEST_LEN   32
#define DIGEST_BLOCK 128

struct digest {
	uint64_t h[8];
	uint64_t count; /* bytes that went in, but for those in `block` */
	size_t filled;	/* bytes of `block` */
	unsigned char block[DIGEST_BLOCK];
};

void digest_init(struct digest *digest);
void digest_add(struct digest *digest, const void *data, size_t len);
void digest_end(struct digest *digest, unsigned char ret_digest[DIGEST_LEN]);

#endif
