/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_VERSION_H
#define FUSEFS_VERSION_H

/*
 * The version of a file: a text that is equal for equal bytes and for nothing
 * else.
 *
 * It is made of the content alone (a digest), never of times, sizes or inode
 * numbers: two changes within one tick of the clock, a change that puts the
 * times back and a store through a mapping are changes; touch, chmod, a link
 * and the same bytes again are none.  A signature of stat(2) could only save
 * the reading where somebody remembers both it and the digest, and knows that
 * nobody has the file open for writing; a command remembers nothing.
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/digest.h"

/* "b", and 43 digits; [A-Za-z0-9_-]. */
#define VERSION_LEN 44

/* What stands for the version of a file that is not there. */
#define VERSION_ABSENT "absent"

struct version {
	char text[VERSION_LEN + 1];
};

/* What is taken from a caller: a version, or VERSION_ABSENT. */
bool version_is_valid(const char *text);

void version_of_digest(struct digest *digest, struct version *ret_version);
void version_of_bytes(const void *data, size_t len,
		      struct version *ret_version);

/*
 * Reads the file from offset 0 to its end, wherever it stands.  Errors: what
 * pread(2) said.
 */
int version_of_fd(int fd, struct version *ret_version);
/* The same of a file of at most `max` bytes, which may grow meanwhile; -EFBIG. */
int version_of_fd_upto(int fd, off_t max, struct version *ret_version);

#endif
