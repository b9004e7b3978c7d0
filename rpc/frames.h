/* SPDX-License-Identifier: MIT */
#ifndef RPC_FRAMES_H
#define RPC_FRAMES_H

/*
 * What a connection carries after `term.attach`, in both directions:
 *
 *	0      1       2         4           8
 *	| type | flags | 0     0 | length LE | payload, at most FRAME_PAYLOAD …
 *
 * Frames come out of whatever pieces the bytes come in.  What comes in is
 * hostile: a length that is too great, or a byte that must be 0 and is not, is
 * the end of the connection, for nobody could say where the next frame begins.
 * A type that is not known is for its reader to skip.
 *
 * Thread: the owner's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define FRAME_HEADER  8u
#define FRAME_PAYLOAD ((size_t)65536)

enum frame_type {
	FRAME_DATA = 1, /* bytes for the terminal, or from it */
	FRAME_RESIZE,	/* to the warden: the size of the window */
	FRAME_SYNC,	/* what follows repaints; to the warden: do so */
	FRAME_STATE,	/* from the warden: a JSON object */
	FRAME_DETACH,	/* the last frame; from the warden: a JSON object */
	FRAME_EXIT,	/* the last frame, from the warden: a JSON object */
	FRAME_PING,	/* comes back as it is, with FRAME_ANSWER */
};

/* Of a PING: it is the answer. */
#define FRAME_ANSWER 1u

struct frame {
	uint8_t type;
	uint8_t flags;
	size_t len;
	const unsigned char *payload; /* borrowed */
};

void frame_header(uint8_t type, uint8_t flags, size_t len,
		  unsigned char ret_header[FRAME_HEADER]);

/* Appends one frame; `len` is at most FRAME_PAYLOAD. */
void frame_put(struct buf *out, uint8_t type, uint8_t flags,
	       const void *payload, size_t len);

/* Appends bytes as so many frames of the type as it takes. */
void frame_put_all(struct buf *out, uint8_t type, const void *bytes,
		   size_t len);

/* The payload of a RESIZE: columns and rows, each 16 bits LE. */
#define FRAME_SIZE_BYTES 4u
void frame_put_size(struct buf *out, unsigned int cols, unsigned int rows);
/* False: it has not that form. */
bool frame_get_size(const struct frame *frame, unsigned int *ret_cols,
		    unsigned int *ret_rows);

/*
 * Frames out of a stream.  The owner reads from his descriptor into the room
 * that there is, so that what comes in is copied by the kernel alone.  A zeroed
 * struct is ready for use.
 */
struct frames {
	unsigned char *bytes; /* room for two of the greatest frames */
	size_t taken, len;    /* [taken, len) is not given out yet */
};

#define FRAMES_ROOM (2 * (FRAME_HEADER + FRAME_PAYLOAD))

/*
 * Where the next bytes go, and how many at most: at least one, after
 * frames_next() has said 0.  Frames given out before are gone.  -ENOMEM.
 */
int frames_room(struct frames *frames, unsigned char **ret_at,
		size_t *ret_size);
void frames_added(struct frames *frames, size_t len);

/*
 * 1: *ret_frame is set, borrowed until the next frames_room(); 0: nothing
 * complete; -EBADMSG: these are no frames.
 */
int frames_next(struct frames *frames, struct frame *ret_frame);

void frames_fini(struct frames *frames);

#endif
