/* SPDX-License-Identifier: MIT */

/* What decodes must encode to the very bytes it came from. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct errmsg why = { "" };
	struct buf bytes = { 0 };
	struct plan plan;
	int r = plan_decode(data, size, &plan, &why);

	if (r < 0) {
		if (why.text[0] == '\0')
			abort();
		return 0;
	}
	if (plan_encode(&plan, &bytes) < 0 || bytes.len != size ||
	    memcmp(bytes.data, data, size) != 0)
		abort();
	buf_fini(&bytes);
	plan_fini(&plan);
	return 0;
}
