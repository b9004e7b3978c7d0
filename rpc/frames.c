/* SPDX-License-Identifier: MIT */

#include "rpc/frames.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- out ---- */

void
frame_header(uint8_t type, uint8_t flags, size_t len,
	     unsigned char ret_header[FRAME_HEADER])
{
	assert(len <= FRAME_PAYLOAD);
	ret_header[0] = type;
	ret_header[1] = flags;
	ret_header[2] = ret_header[3] = 0;
	for (unsigned int i = 0; i < 4; i++)
		ret_header[4 + i] = (unsigned char)(len >> (8 * i));
}

void
frame_put(struct buf *out, uint8_t type, uint8_t flags, const void *payload,
	  size_t len)
{
	unsigned char header[FRAME_HEADER];

	frame_header(type, flags, len, header);
	buf_put(out, header, sizeof(header));
	if (len > 0)
		buf_put(out, payload, len);
}

void
frame_put_all(struct buf *out, uint8_t type, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	while (len > 0) {
		size_t n = len < FRAME_PAYLOAD ? len : FRAME_PAYLOAD;

		frame_put(out, type, 0, at, n);
		at += n;
		len -= n;
	}
}

void
frame_put_size(struct buf *out, unsigned int cols, unsigned int rows)
{
	const unsigned char payload[FRAME_SIZE_BYTES] = {
		(unsigned char)cols,
		(unsigned char)(cols >> 8),
		(unsigned char)rows,
		(unsigned char)(rows >> 8),
	};

	frame_put(out, FRAME_RESIZE, 0, payload, sizeof(payload));
}

/* ---- in ---- */

bool
frame_get_size(const struct frame *frame, unsigned int *ret_cols,
	       unsigned int *ret_rows)
{
	const unsigned char *at = frame->payload;

	if (frame->len != FRAME_SIZE_BYTES)
		return false;
	*ret_cols = at[0] | (unsigned int)at[1] << 8;
	*ret_rows = at[2] | (unsigned int)at[3] << 8;
	return true;
}

int
frames_room(struct frames *frames, unsigned char **ret_at, size_t *ret_size)
{
	if (!frames->bytes)
		frames->bytes = malloc(FRAMES_ROOM);
	if (!frames->bytes)
		return -ENOMEM;
	frames->len -= frames->taken;
	if (frames->taken > 0 && frames->len > 0)
		memmove(frames->bytes, frames->bytes + frames->taken,
			frames->len);
	frames->taken = 0;
	*ret_at = frames->bytes + frames->len;
	*ret_size = FRAMES_ROOM - frames->len;
	return 0;
}

void
frames_added(struct frames *frames, size_t len)
{
	assert(len <= FRAMES_ROOM - frames->len);
	frames->len += len;
}

int
frames_next(struct frames *frames, struct frame *ret_frame)
{
	const unsigned char *at = frames->bytes + frames->taken;
	size_t held = frames->len - frames->taken, len = 0;

	if (held < FRAME_HEADER)
		return 0;
	for (unsigned int i = 0; i < 4; i++)
		len |= (size_t)at[4 + i] << (8 * i);
	if (at[2] != 0 || at[3] != 0 || len > FRAME_PAYLOAD)
		return -EBADMSG;
	if (held - FRAME_HEADER < len)
		return 0;
	*ret_frame = (struct frame){ .type = at[0],
				     .flags = at[1],
				     .len = len,
				     .payload = at + FRAME_HEADER };
	frames->taken += FRAME_HEADER + len;
	return 1;
}

void
frames_fini(struct frames *frames)
{
	free(frames->bytes);
	*frames = (struct frames){ 0 };
}
