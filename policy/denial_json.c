/* SPDX-License-Identifier: MIT */

/* A record as one JSON object, with exactly the fields of docs/DENIALS. */

#include "policy/denial_priv.h"

#include <string.h>

#include "base/json.h"

const char *
denial_source_name(enum denial_source source)
{
	switch (source) {
	case DENIAL_FUSE:
		return "fuse";
	case DENIAL_API:
		return "api";
	case DENIAL_OBSERVED:
		return "observed";
	}
	return "";
}

const char *
denial_remedy_name(enum denial_remedy remedy)
{
	switch (remedy) {
	case DENIAL_REMEDY_NONE:
		return NULL;
	case DENIAL_REMEDY_ESCALATE:
		return "escalate";
	case DENIAL_REMEDY_ALLOW:
		return "allow";
	case DENIAL_REMEDY_REREAD:
		return "reread";
	}
	return NULL;
}

static void
put_errno(struct buf *out, int error)
{
	jsonw_key(out, "errno");
	jsonw_begin(out, '{');
	jsonw_pair(out, "name", strerrorname_np(error));
	jsonw_pair_int(out, "number", error);
	jsonw_end(out, '}');
}

static void
put_remedy(struct buf *out, const struct denial *denial)
{
	const char *name = denial_remedy_name(denial->remedy);

	jsonw_key(out, "remedy");
	if (!name) {
		jsonw_null(out);
		return;
	}
	jsonw_begin(out, '{');
	jsonw_pair(out, name, denial->remedy_text);
	jsonw_end(out, '}');
}

void
denial_to_json(const struct denial *denial, struct buf *ret_json)
{
	jsonw_begin(ret_json, '{');
	jsonw_pair_known(ret_json, "id", denial->id != 0, (int64_t)denial->id);
	jsonw_pair_int(ret_json, "time", denial->time_ns);
	jsonw_pair_int(ret_json, "last_time", denial->last_ns);
	jsonw_pair_int(ret_json, "count", (int64_t)denial->count);
	jsonw_pair(ret_json, "session", denial->session);
	jsonw_pair(ret_json, "world", denial->world);
	jsonw_pair(ret_json, "origin", denial->origin);
	jsonw_pair(ret_json, "call", denial->call);
	jsonw_pair(ret_json, "source", denial_source_name(denial->source));
	jsonw_pair(ret_json, "code", policy_code_name(denial->code));
	jsonw_pair(ret_json, "mode", policy_mode_name(denial->mode));
	jsonw_pair(ret_json, "rule", denial->rule);
	jsonw_pair(ret_json, "op", policy_op_name(denial->op));
	jsonw_pair(ret_json, "path", denial->path);
	jsonw_pair(ret_json, "path2", denial->path2);
	put_errno(ret_json, denial->error);
	jsonw_pair_known(ret_json, "pid", denial->pid != 0, denial->pid);
	jsonw_pair_known(ret_json, "ppid", denial->ppid != 0, denial->ppid);
	jsonw_pair_known(ret_json, "inner_pid", denial->inner_pid != 0,
			 denial->inner_pid);
	jsonw_pair(ret_json, "comm", denial->comm);
	jsonw_pair(ret_json, "exe", denial->exe);
	jsonw_pair_int(ret_json, "uid", denial->uid);
	jsonw_pair_int(ret_json, "gid", denial->gid);
	put_remedy(ret_json, denial);
	jsonw_end(ret_json, '}');
}

void
denials_counts_json(const struct denials_summary *summary,
		    const struct buf *first, struct buf *out)
{
	jsonw_begin(out, '{');
	jsonw_pair_uint(out, "count", summary->count);
	jsonw_pair_uint(out, "rows", summary->rows);
	jsonw_pair_bool(out, "degraded", summary->degraded);
	if (first && buf_error(first) == 0) {
		jsonw_key(out, "first");
		jsonw_raw(out, first->data, first->len);
	}
	jsonw_end(out, '}');
}
