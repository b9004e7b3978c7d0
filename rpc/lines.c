/* SPDX-License-Identifier: MIT */

/*
 * Lines out of a stream.  `held` has given-out bytes at its front (dropped by
 * the next put), then at most one incomplete line.  `scanned` makes a line that
 * comes a byte at a time cost one pass, not a pass a byte.
 */

#include "rpc/rpc.h"

#include <string.h>

#include "base/limits.h"

int
rpc_lines_put(struct rpc_lines *lines, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	if (lines->taken > 0) {
		buf_drop(&lines->held, lines->taken);
		lines->scanned -= lines->taken;
		lines->taken = 0;
	}
	if (lines->skipping) {
		const unsigned char *end = memchr(at, '\n', len);

		if (!end)
			return 0;
		len -= (size_t)(end + 1 - at);
		at = end + 1;
		lines->skipping = false;
		lines->skipped = true;
	}
	buf_put(&lines->held, at, len);
	return buf_error(&lines->held);
}

/* Gives up an incomplete line that has outgrown the limit. */
static void
skip_line(struct rpc_lines *lines)
{
	buf_fini(&lines->held);
	lines->taken = lines->scanned = 0;
	lines->skipping = true;
}

int
rpc_lines_next(struct rpc_lines *lines, const char **ret_line, size_t *ret_len)
{
	const unsigned char *line, *end;
	size_t len;

	if (lines->skipped) {
		lines->skipped = false;
		return -EMSGSIZE;
	}
	do {
		if (lines->skipping || lines->scanned == lines->held.len)
			end = NULL;
		else
			end = memchr(lines->held.data + lines->scanned, '\n',
				     lines->held.len - lines->scanned);
		if (!end) {
			lines->scanned = lines->held.len;
			if (lines->held.len - lines->taken > LIMIT_RPC_LINE)
				skip_line(lines);
			return 0;
		}
		line = lines->held.data + lines->taken;
		len = (size_t)(end - line);
		lines->taken += len + 1;
		lines->scanned = lines->taken;
		if (len > LIMIT_RPC_LINE)
			return -EMSGSIZE;
		if (len > 0 && line[len - 1] == '\r')
			len--;
	} while (len == 0);
	*ret_line = (const char *)line;
	*ret_len = len;
	return 1;
}

void
rpc_lines_rest(const struct rpc_lines *lines, const unsigned char **ret_bytes,
	       size_t *ret_len)
{
	*ret_len = lines->held.len - lines->taken;
	*ret_bytes = *ret_len > 0 ? lines->held.data + lines->taken : NULL;
}

void
rpc_lines_fini(struct rpc_lines *lines)
{
	buf_fini(&lines->held);
	*lines = (struct rpc_lines){ 0 };
}
