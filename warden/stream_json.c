/* SPDX-License-Identifier: MIT */

#include "warden/stream_json.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "warden/jobs_row.h"

static size_t
whole_characters(const unsigned char *bytes, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char byte = bytes[len - back];
		size_t want = byte >= 0xf0   ? 4
			      : byte >= 0xe0 ? 3
			      : byte >= 0xc0 ? 2
					     : 1;

		if ((byte & 0xc0) == 0x80)
			continue;
		return want > back && len > back ? len - back : len;
	}
	return len;
}

void
stream_cut_text(const unsigned char *bytes, struct segments_view *view)
{
	size_t whole = whole_characters(bytes, view->len);

	view->next -= view->len - whole;
	view->len = whole;
}

void
stream_put_lost(const struct segments_view *view, struct buf *out)
{
	jsonw_key(out, "lost");
	if (view->reason == SEGMENTS_KEPT) {
		jsonw_null(out);
	} else {
		jsonw_begin(out, '{');
		jsonw_pair_uint(out, "from", view->lost_from);
		jsonw_pair_uint(out, "to", view->lost_to);
		jsonw_pair(out, "reason", segments_reason_name(view->reason));
		jsonw_end(out, '}');
	}
}

void
stream_put_view(const struct segments_view *view, struct buf *out)
{
	jsonw_pair_uint(out, "offset", view->next - view->len);
	jsonw_pair_uint(out, "next", view->next);
	jsonw_pair_uint(out, "base", view->base);
	jsonw_pair_uint(out, "end", view->end);
	stream_put_lost(view, out);
}

void
stream_put_data(const unsigned char *bytes, size_t len, bool base64,
		struct buf *out)
{
	jsonw_pair(out, "encoding", base64 ? "base64" : "text");
	jsonw_key(out, "data");
	if (base64)
		jobs_put_base64(out, bytes, len);
	else
		jsonw_bytes(out, bytes, len);
}

int
stream_take_data(const char *data, const char *encoding, struct buf *out,
		 struct rpc_fault *fault)
{
	_cleanup_(freep) char *text = NULL;
	int r;

	if (strcmp(encoding, "base64") == 0) {
		r = jobs_base64_decode(data, strlen(data), out);
		if (r == -EINVAL)
			return rpc_fault_set(fault, RPC_INVALID_PARAMS, NULL,
					     "data: no base64");
		return r;
	}
	if (strcmp(encoding, "text") != 0)
		return rpc_fault_set(fault, RPC_INVALID_PARAMS, NULL,
				     "encoding: 'text' or 'base64'");
	text = json_unescape(data);
	if (!text)
		return -ENOMEM;
	buf_puts(out, text);
	return buf_error(out);
}

int
stream_take_texts(const json_t *array, const char *field, struct strv *ret_list,
		  struct rpc_fault *fault)
{
	const json_t *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		_cleanup_(freep) char *text = NULL;

		if (!json_is_string(item) ||
		    strlen(json_string_value(item)) != json_string_length(item))
			return rpc_fault_param(fault, field,
					       "an array of texts");
		text = json_unescape(json_string_value(item));
		if (!text || strv_add(ret_list, text) < 0)
			return -ENOMEM;
	}
	return 0;
}
