/* SPDX-License-Identifier: MIT */

/*
 * The content guard on hostile bytes: OLD, a byte 0xff, NEW.  Beyond not
 * crashing it must hold that a text may replace itself, and that an allowed
 * change keeps whatever is not safe.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/gitconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int
count_unsafe(void *data, const char *key, const char *value)
{
	*(size_t *)data += !gitconfig_is_safe(key, value, NULL);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *split = size ? memchr(data, 0xff, size) : NULL;
	size_t len = split ? (size_t)(split - data) : size;
	struct gitconfig_text before = { (const char *)data, len };
	struct gitconfig_text after = before;
	char key[64];
	size_t was = 0, is = 0;

	if (split) {
		after.bytes = (const char *)split + 1;
		after.len = size - len - 1;
	}
	if (gitconfig_walk(&before, count_unsafe, &was) == 0 &&
	    gitconfig_judge(&before, &before, NULL, key, sizeof(key)) != 0)
		abort();
	if (gitconfig_judge(&before, &after, NULL, key, sizeof(key)) == 0 &&
	    (gitconfig_walk(&after, count_unsafe, &is) != 0 || was != is))
		abort();
	return 0;
}
