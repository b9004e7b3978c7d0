/* SPDX-License-Identifier: MIT */

#include "warden/rows_rpc.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "jobs/jobs.h"
#include "warden/server_priv.h"

/* ---- all of them ---- */

struct listing {
	struct buf *out;
	void (*put)(const struct job *core, struct buf *out);
	int64_t left; /* as many as were asked for */
	bool full;    /* the answer is as long as a line may be */
};

static bool
goes_on(const struct listing *listing)
{
	return listing->left > 0 && !listing->full;
}

static void
list_some(const struct jobs *core, bool live, struct listing *listing)
{
	size_t n = jobs_count(core);

	while (n-- > 0 && goes_on(listing)) {
		_cleanup_(buf_fini) struct buf one = { 0 };
		const struct job *job = jobs_at(core, n);

		if (job_state_is_final(job->state) == live)
			continue;
		listing->put(job, &one);
		listing->full =
			listing->out->len + one.len > LIMIT_RPC_LINE - 1024;
		if (!listing->full)
			jsonw_raw(listing->out, one.data, one.len);
		listing->left--;
	}
}

int
rows_list(const struct rpc_message *message, const struct jobs *core,
	  const char *member,
	  void (*put)(const struct job *core, struct buf *out),
	  struct buf *ret_json, struct rpc_fault *ret_fault)
{
	bool all = false;
	int64_t limit = LIMIT_LIST_ROWS;
	const struct rpc_field fields[] = {
		{ "all", RPC_BOOLEAN, false, &all },
		{ "limit", RPC_INTEGER, false, &limit },
	};
	struct listing listing = { .out = ret_json, .put = put };
	int r = rpc_params(message, fields, 2, ret_fault);

	if (r < 0)
		return r;
	if (limit < 1 || limit > LIMIT_LIST_ROWS)
		return rpc_fault_param(ret_fault, "limit", "1 to 10000");
	listing.left = limit;
	jsonw_begin(ret_json, '{');
	jsonw_key(ret_json, member);
	jsonw_begin(ret_json, '[');
	list_some(core, true, &listing);
	if (all)
		list_some(core, false, &listing);
	jsonw_end(ret_json, ']');
	jsonw_pair_bool(ret_json, "more", !goes_on(&listing));
	jsonw_pair_uint(ret_json, "running", jobs_running(core));
	jsonw_pair_uint(ret_json, "limit", jobs_limits(core)->running);
	jsonw_end(ret_json, '}');
	return 0;
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
