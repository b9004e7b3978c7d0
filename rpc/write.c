/* SPDX-License-Identifier: MIT */

/* Messages into lines. */

#include "rpc/rpc.h"

#include "base/json.h"

static void
begin(struct buf *out)
{
	jsonw_begin(out, '{');
	jsonw_pair(out, "jsonrpc", "2.0");
}

static void
end(struct buf *out)
{
	jsonw_end(out, '}');
	buf_puts(out, "\n");
}

static void
put_id(struct buf *out, const struct rpc_id *id)
{
	jsonw_key(out, "id");
	if (id->json[0])
		buf_puts(out, id->json);
	else
		jsonw_null(out);
}

static void
put_value(struct buf *out, const char *key, const struct buf *json)
{
	jsonw_key(out, key);
	if (json)
		jsonw_raw(out, json->data, json->len);
	else
		jsonw_null(out);
}

void
rpc_write_result(struct buf *out, const struct rpc_id *id,
		 const struct buf *json)
{
	begin(out);
	put_id(out, id);
	put_value(out, "result", json);
	end(out);
}

void
rpc_write_fault(struct buf *out, const struct rpc_id *id,
		const struct rpc_fault *fault)
{
	begin(out);
	put_id(out, id);
	jsonw_key(out, "error");
	jsonw_begin(out, '{');
	jsonw_pair_int(out, "code", fault->error);
	jsonw_pair(out, "message", fault->text);
	if (fault->code || fault->field[0] || fault->number) {
		jsonw_key(out, "data");
		jsonw_begin(out, '{');
		if (fault->code)
			jsonw_pair(out, "code", fault->code);
		if (fault->field[0]) {
			jsonw_pair(out, "field", fault->field);
		}
		if (fault->number)
			jsonw_pair_int(out, "errno", fault->number);
		jsonw_end(out, '}');
	}
	jsonw_end(out, '}');
	end(out);
}

void
rpc_write_notification(struct buf *out, const char *name,
		       const struct buf *json)
{
	begin(out);
	jsonw_pair(out, "method", name);
	if (json)
		put_value(out, "params", json);
	end(out);
}

void
rpc_write_request(struct buf *out, uint64_t id, enum rpc_method method,
		  const struct buf *json)
{
	begin(out);
	jsonw_pair_uint(out, "id", id);
	jsonw_pair(out, "method", rpc_method_name(method));
	if (json)
		put_value(out, "params", json);
	end(out);
}
