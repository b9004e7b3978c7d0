/* SPDX-License-Identifier: MIT */

/* What decodes must encode to the very bytes it came from. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/spawn_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct errmsg why = { "" };
	struct buf bytes = { 0 };
	struct spawn_spec spec;
	int r = spawn_spec_decode(data, size, &spec, &why);

	if (r < 0) {
		if (why.text[0] == '\0')
			abort();
		return 0;
	}
	if (spawn_spec_encode(&spec, &bytes) < 0 || bytes.len != size ||
	    memcmp(bytes.data, data, size) != 0)
		abort();
	buf_fini(&bytes);
	spawn_spec_fini(&spec);
	return 0;
}
