/* SPDX-License-Identifier: MIT */

/*
 * What a client can ask.  The list of methods and who may call them is
 * RPC_METHODS; a test calls every row of it.
 */

#include "warden/server_priv.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/world_flags.h"
#include "warden/face.h"
#include "warden/jobs_rpc.h"
#include "warden/terms_rpc.h"

typedef int handler_fn(struct client *client, const struct rpc_message *message,
		       struct buf *ret_json, struct rpc_fault *ret_fault);

static void
hello_json(const struct client *client, struct buf *out)
{
	jsonw_begin(out, '{');
	jsonw_pair_int(out, "protocol", RPC_PROTOCOL);
	jsonw_pair(out, "version", VERSION);
	jsonw_pair(out, "world", client->server->warden->opt.world);
	jsonw_pair(out, "role", rpc_role_name(client->role));

	jsonw_key(out, "capabilities");
	jsonw_begin(out, '[');
	for (int m = 0; m < RPC_METHOD_COUNT; m++)
		if (rpc_method_allowed((enum rpc_method)m, client->role))
			jsonw_text(out, rpc_method_name((enum rpc_method)m));
	jsonw_end(out, ']');

	jsonw_key(out, "limits");
	jsonw_begin(out, '{');
	jsonw_pair_uint(out, "line_bytes", LIMIT_RPC_LINE);
	jsonw_pair_uint(out, "depth", LIMIT_RPC_DEPTH);
	jsonw_pair_uint(out, "backlog_bytes", LIMIT_CLIENT_BACKLOG);
	jsonw_pair_uint(out, "clients", LIMIT_CLIENTS);
	jsonw_end(out, '}');
	jsonw_end(out, '}');
}

static int
handle_hello(struct client *client, const struct rpc_message *message,
	     struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *name = NULL, *role_name = "operator";
	enum rpc_role role;
	int64_t protocol = 0;
	const struct rpc_field fields[] = {
		{ "protocol", RPC_INTEGER, true, &protocol },
		{ "client", RPC_STRING, false, &name },
		{ "role", RPC_STRING, false, &role_name },
	};
	int r;

	/* An agent must not become the operator by asking again. */
	if (client->role)
		return rpc_fault_set(ret_fault, RPC_INVALID_REQUEST, NULL,
				     "hello was said already");
	r = rpc_params(message, fields, 3, ret_fault);
	if (r < 0)
		return r;
	if (protocol != RPC_PROTOCOL)
		return rpc_fault_set(
			ret_fault, RPC_FAILED, "PROTOCOL_MISMATCH",
			"this world speaks protocol %d; end it with: pale "
			"world stop %s",
			RPC_PROTOCOL, client->server->warden->opt.world);
	if (rpc_role_parse(role_name, &role) < 0)
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				     "role: 'operator' or 'agent'");
	client->role = role;
	hello_json(client, ret_json);
	return 0;
}

static int
handle_cancel(struct client *client, const struct rpc_message *message,
	      struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const json_t *id =
		message->params ? json_object_get(message->params, "id") : NULL;
	char text[RPC_ID_MAX] = "";
	size_t len = 0;

	if (json_is_string(id) || json_is_integer(id))
		len = json_dumpb(id, text, sizeof(text) - 1,
				 JSON_ENCODE_ANY | JSON_COMPACT);
	if (len == 0 || len >= sizeof(text))
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				     "id: the id of a request");
	text[len] = '\0';
	jsonw_begin(ret_json, '{');
	jsonw_pair_bool(ret_json, "found",
			call_cancel(client, text) ||
				exec_cancel(client, text) ||
				jobs_cancel(client, text) ||
				terms_cancel(client, text));
	jsonw_end(ret_json, '}');
	return 0;
}

static void
denials_json(const struct warden *warden, struct buf *out)
{
	struct denials_summary summary = { 0 };

	denials_summarize(warden->denials, &summary);
	jsonw_key(out, "denials");
	denials_counts_json(&summary, NULL, out);
}

/* A mount fences only those who go through it. */
static const char *
level_of(struct warden *warden)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);

	if (policy->mode == POLICY_DANGER_FULL_ACCESS)
		return "none";
	return warden->opt.mountpoint
		       ? "partial"
		       : world_level(warden->world_flags, policy->landlock);
}

bool
warden_is_full(struct warden *warden)
{
	return strcmp(level_of(warden), "full") == 0;
}

/* What fences now, for who judges by it elsewhere (pale fs). */
static void
policy_json(struct warden *warden, struct buf *out)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);
	_cleanup_(freep) char *json = NULL;

	if (policy_encode(policy, &json) < 0)
		return;
	jsonw_key(out, "policy");
	jsonw_raw(out, json, strlen(json));
}

static int
handle_show(struct client *client, const struct rpc_message *message,
	    struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct warden *warden = client->server->warden;
	_cleanup_(freep) char *face = faces_mountpoint(warden);
	bool policy = false;
	const struct rpc_field fields[] = {
		{ "policy", RPC_BOOLEAN, false, &policy },
	};
	int r = rpc_params(message, fields, 1, ret_fault);

	if (r < 0)
		return r;
	jsonw_begin(ret_json, '{');
	if (policy)
		policy_json(warden, ret_json);
	world_dir_members(warden, ret_json);
	jsonw_pair(ret_json, "enforcement", level_of(warden));
	/* Who goes around a mount of the host is not fenced by it. */
	if (face)
		jsonw_pair(ret_json, "mount_enforcement", "partial");
	jsonw_pair(ret_json, "observer", warden_observer_name(warden));
	denials_json(warden, ret_json);
	jsonw_key(ret_json, "stats");
	warden_stats_json(warden, ret_json);
	jsonw_pair_uint(ret_json, "clients", client->server->n_clients);
	jsonw_end(ret_json, '}');
	return 0;
}

static int
handle_stop(struct client *client, const struct rpc_message *message,
	    struct buf *ret_json, struct rpc_fault *ret_fault)
{
	int r = rpc_params(message, NULL, 0, ret_fault);

	if (r < 0)
		return r;
	jsonw_begin(ret_json, '{');
	jsonw_end(ret_json, '}');
	/* The end drops all clients: this one shall have its answer first. */
	client_answer(client, &message->id, 0, ret_json, ret_fault);
	warden_end(client->server->warden, "asked to stop");
	return CALL_LATER;
}

static int
handle_subscribe(struct client *client, const struct rpc_message *message,
		 struct buf *ret_json, struct rpc_fault *ret_fault)
{
	int r = rpc_params(message, NULL, 0, ret_fault);

	if (r < 0)
		return r;
	client->wants_world = true;
	jsonw_begin(ret_json, '{');
	jsonw_end(ret_json, '}');
	return 0;
}

static int
handle_log_level(struct client *client, const struct rpc_message *message,
		 struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *name = NULL;
	const struct rpc_field fields[] = {
		{ "level", RPC_STRING, true, &name },
	};
	enum log_level level;
	int r = rpc_params(message, fields, 1, ret_fault);

	if (r < 0)
		return r;
	if (log_level_parse(name, &level) < 0)
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				     "level: 'error', 'note' or 'debug'");
	log_set_level(client->server->warden->log, level);
	jsonw_begin(ret_json, '{');
	jsonw_end(ret_json, '}');
	return 0;
}

static handler_fn *const handlers[] = {
	[RPC_HELLO] = handle_hello,
	[RPC_CANCEL] = handle_cancel,
	[RPC_WORLD_SHOW] = handle_show,
	[RPC_WORLD_MODE] = mode_handle,
	[RPC_WORLD_STOP] = handle_stop,
	[RPC_WORLD_SUBSCRIBE] = handle_subscribe,
	[RPC_DENIAL_LIST] = records_list,
	[RPC_DENIAL_SUBSCRIBE] = records_subscribe,
	[RPC_WORLD_MOUNT] = face_mount,
	[RPC_WORLD_SERVE] = face_serve,
	[RPC_WORLD_UNMOUNT] = face_unmount,
	[RPC_RUN_EXEC] = exec_handle,
	[RPC_RUN_SIGNAL] = exec_signal,
#define X(method, handler) [RPC_JOB_##method] = (handler),
	JOBS_METHODS(X)
#undef X
#define X(method, handler) [RPC_TERM_##method] = (handler),
		TERMS_METHODS(X)
#undef X
			[RPC_TERM_ATTACH] = attach_handle,
	[RPC_LOG_LEVEL] = handle_log_level,
};

_Static_assert(sizeof(handlers) / sizeof(handlers[0]) == RPC_METHOD_COUNT,
	       "every method has a handler");

int
method_handle(struct client *client, const struct rpc_message *message,
	      struct buf *ret_json, struct rpc_fault *ret_fault)
{
	return handlers[message->method](client, message, ret_json, ret_fault);
}
