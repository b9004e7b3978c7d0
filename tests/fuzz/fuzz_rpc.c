/* SPDX-License-Identifier: MIT */

/* The codec: the first byte says how the rest comes in pieces. */

#include "rpc/rpc.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_line(const char *line, size_t len)
{
	struct rpc_message message;
	struct rpc_fault fault;
	struct buf out = { 0 };
	const char *text = NULL;
	int64_t number = 0;
	const struct rpc_field fields[] = {
		{ "world", RPC_STRING, false, &text },
		{ "since", RPC_INTEGER, true, &number },
	};
	int r;

	r = rpc_parse(line, len, &message, &fault);
	if (r == 0)
		r = rpc_admit(&message, RPC_AGENT, &fault);
	if (r == 0)
		r = rpc_params(&message, fields, 2, &fault);
	if (r < 0)
		rpc_write_fault(&out, &message.id, &fault);
	else
		rpc_write_result(&out, &message.id, NULL);
	/* What we write must be what we would read. */
	if (out.len > 0 && buf_error(&out) == 0) {
		struct rpc_message answer;

		if (rpc_parse((const char *)out.data, out.len - 1, &answer,
			      &fault) < 0 &&
		    message.id.json[0])
			abort();
		rpc_message_fini(&answer);
	}
	buf_fini(&out);
	rpc_message_fini(&message);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rpc_lines lines = { 0 };
	size_t step, at = 1;

	if (size < 2)
		return 0;
	step = (size_t)data[0] + 1;
	while (at < size) {
		size_t n = size - at < step ? size - at : step, len;
		const char *line;

		if (rpc_lines_put(&lines, data + at, n) < 0)
			break;
		at += n;
		while (rpc_lines_next(&lines, &line, &len) == 1)
			read_line(line, len);
	}
	rpc_lines_fini(&lines);
	return 0;
}
