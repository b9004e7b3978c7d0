/* SPDX-License-Identifier: MIT */

#include "fusefs/version.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define CHUNK (256u << 10)

static const char digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";

bool
version_is_valid(const char *text)
{
	return strcmp(text, VERSION_ABSENT) == 0 ||
	       (text[0] == 'b' && strlen(text) == VERSION_LEN &&
		strspn(text, digits) == VERSION_LEN);
}

void
version_of_digest(struct digest *digest, struct version *ret_version)
{
	unsigned char bytes[DIGEST_LEN];
	unsigned int bits = 0, n = 0;
	char *at = ret_version->text;

	digest_end(digest, bytes);
	*at++ = 'b';
	for (size_t i = 0; i < DIGEST_LEN; i++) {
		bits = bits << 8 | bytes[i];
		for (n += 8; n >= 6; n -= 6)
			*at++ = digits[bits >> (n - 6) & 63];
	}
	*at++ = digits[bits << (6 - n) & 63];
	*at = '\0';
}

void
version_of_bytes(const void *data, size_t len, struct version *ret_version)
{
	struct digest digest;

	digest_init(&digest);
	digest_add(&digest, data, len);
	version_of_digest(&digest, ret_version);
}

int
version_of_fd(int fd, struct version *ret_version)
{
	return version_of_fd_upto(fd, INT64_MAX, ret_version);
}

int
version_of_fd_upto(int fd, off_t max, struct version *ret_version)
{
	_cleanup_(freep) unsigned char *chunk = malloc(CHUNK);
	struct digest digest;
	off_t at = 0;
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	digest_init(&digest);
	while ((n = pread(fd, chunk, CHUNK, at)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n > max - at)
			return -EFBIG;
		digest_add(&digest, chunk, (size_t)n);
		at += n;
	}
	version_of_digest(&digest, ret_version);
	return 0;
}
