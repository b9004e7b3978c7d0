/* SPDX-License-Identifier: MIT */

#include "warden/rows_rpc.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "warden/server_priv.h"

void
listing_add(struct listing *listing, struct buf *one)
{
	listing->full = listing->out->len + one->len > LIMIT_RPC_LINE - 1024;
	if (!listing->full)
		jsonw_raw(listing->out, one->data, one->len);
	buf_fini(one);
	listing->left--;
}

/* ---- one, with what was asked for ---- */

struct show {
	struct buf row;
	uint64_t id;
	int (*read_spec)(const struct warden *warden, uint64_t id,
			 char **ret_spec);
};

static int
run_show(struct call *call)
{
	struct show *show = call->data;
	_cleanup_(freep) char *spec = NULL;
	int r = show->read_spec(call->warden, show->id, &spec);

	if (r == 0 && spec[0] == '{' && spec[1] != '}') {
		/* Its members follow ours: "}" and "{" become ",". */
		show->row.len--;
		buf_puts(&show->row, ",");
		buf_puts(&show->row, spec + 1);
	}
	buf_put(&call->json, show->row.data, show->row.len);
	return buf_error(&show->row);
}

static void
show_free(struct show *show)
{
	buf_fini(&show->row);
	free(show);
}

static void
done_show(struct call *call)
{
	show_free(call->data);
}

int
rows_show(struct client *client, const struct rpc_message *message,
	  struct buf *row, uint64_t id,
	  int (*read_spec)(const struct warden *warden, uint64_t id,
			   char **ret_spec))
{
	struct show *show = calloc(1, sizeof(*show));
	struct call *call = NULL;
	int r;

	if (!show) {
		buf_fini(row);
		return -ENOMEM;
	}
	*show = (struct show){ .row = *row, .id = id, .read_spec = read_spec };
	*row = (struct buf){ 0 };
	r = call_new(client, &message->id, run_show, &call);
	if (r < 0) {
		show_free(show);
		return r;
	}
	call->data = show;
	call->done = done_show;
	return call_start(call);
}
