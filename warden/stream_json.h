/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_STREAM_JSON_H
#define WARDEN_STREAM_JSON_H

/*
 * A piece of a stream of bytes as an answer has it, and bytes as a request has
 * them: as text, where anything else than UTF-8 is spelled out (docs/
 * PROTOCOL.md, "escapes"), or as base64.  Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/segments.h"
#include "base/strv.h"
#include "rpc/rpc.h"

/*
 * Of a text that goes on, a character that is cut at the end is left for the
 * next reading: takes it out of the view.
 */
void stream_cut_text(const unsigned char *bytes, struct segments_view *view);

/* offset, next, base, end, lost: members of an object that is begun. */
void stream_put_view(const struct segments_view *view, struct buf *out);
/* lost alone: null, or what is missing before the view and why. */
void stream_put_lost(const struct segments_view *view, struct buf *out);
/* encoding, data. */
void stream_put_data(const unsigned char *bytes, size_t len, bool base64,
		     struct buf *out);

/* Of `encoding` "text" or "base64"; -EBADMSG with a fault, -ENOMEM. */
int stream_take_data(const char *data, const char *encoding, struct buf *out,
		     struct rpc_fault *fault);

/* An array of texts, which may be any bytes.  -EBADMSG, -ENOMEM. */
int stream_take_texts(const json_t *array, const char *field,
		      struct strv *ret_list, struct rpc_fault *fault);

#endif
