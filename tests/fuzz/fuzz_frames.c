/* SPDX-License-Identifier: MIT */

/*
 * Frames: the first byte says how the rest comes in pieces.  Whatever comes
 * out must be what a writer would have written.
 */

#include "rpc/frames.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frames frames = { 0 };
	struct buf out = { 0 };
	size_t step, at = 1;
	int r = 0;

	if (size < 2)
		return 0;
	step = (size_t)data[0] + 1;
	while (at < size && r >= 0) {
		size_t n = size - at < step ? size - at : step, room;
		struct frame frame;
		unsigned char *to;

		if (frames_room(&frames, &to, &room) < 0)
			break;
		n = n < room ? n : room;
		memcpy(to, data + at, n);
		frames_added(&frames, n);
		at += n;
		while ((r = frames_next(&frames, &frame)) == 1) {
			unsigned int cols, rows;

			(void)frame_get_size(&frame, &cols, &rows);
			frame_put(&out, frame.type, frame.flags, frame.payload,
				  frame.len);
		}
	}
	if (out.len >= size || (out.len > 0 && buf_error(&out) == 0 &&
				memcmp(out.data, data + 1, out.len) != 0))
		abort();
	buf_fini(&out);
	frames_fini(&frames);
	return 0;
}
