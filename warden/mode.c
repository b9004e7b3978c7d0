/* SPDX-License-Identifier: MIT */

/*
 * The policy in force, and its live change.
 *
 * The fs takes the new policy first: when its call returns, every mutation is
 * judged by it.  Then the observer's and everybody's view changes, then the
 * event is written and the caller answered: nobody is told of a mode that is
 * not yet enforced.  Flushing dirty pages can take long, so all of it runs on
 * the pool, one change at a time (mode_lock), and whether a change widens is
 * judged under that lock, against the mode that it replaces.
 */

#include "warden/mode.h"

#include "warden/face.h"
#include "warden/server_priv.h"
#include "warden/tree.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

struct policy *
warden_policy_get(struct warden *warden)
{
	struct policy *policy;

	(void)pthread_mutex_lock(&warden->policy_lock);
	policy = policy_ref(warden->policy);
	(void)pthread_mutex_unlock(&warden->policy_lock);
	return policy;
}

static void
swap_policy(struct warden *warden, struct policy *policy)
{
	struct policy *old;

	(void)pthread_mutex_lock(&warden->policy_lock);
	old = warden->policy;
	warden->policy = policy;
	(void)pthread_mutex_unlock(&warden->policy_lock);
	policy_unref(old);
}

struct change {
	enum rpc_role role;
	enum policy_mode before, after;
};

/* The change stands, whether it can be written down or not. */
static void
record_change(struct warden *warden, const struct change *change,
	      const struct policy *policy)
{
	_cleanup_(buf_fini) struct buf body = { 0 };

	jsonw_begin(&body, '{');
	jsonw_pair(&body, "mode", policy_mode_name(change->after));
	jsonw_pair(&body, "previous", policy_mode_name(change->before));
	jsonw_pair(&body, "by", rpc_role_name(change->role));
	jsonw_pair(&body, "workspace", policy->roots[0].path);
	jsonw_end(&body, '}');
	warden_record_event(warden, "mode.set", &body);
}

static int
change_mode(struct warden *warden, struct change *change,
	    struct rpc_fault *fault)
{
	_cleanup_(policy_unrefp) struct policy *current = NULL;
	_cleanup_(policy_unrefp) struct policy *changed = NULL;
	int r;

	current = warden_policy_get(warden);
	change->before = current->mode;
	if (change->after > current->mode && change->role != RPC_OPERATOR)
		return rpc_fault_set(fault, RPC_FAILED, "NOT_PERMITTED",
				     "only the operator widens a mode");
	if (change->after == current->mode)
		return 0;
	if (current->mode == POLICY_DANGER_FULL_ACCESS)
		return rpc_fault_set(fault, RPC_FAILED, "NOT_SUPPORTED",
				     "this world has no fence, and what runs "
				     "cannot be put into one");
	if (current->landlock)
		return rpc_fault_set(fault, RPC_FAILED, "NOT_SUPPORTED",
				     "this world is fenced by Landlock alone, "
				     "which nothing can change");

	r = policy_with_mode(current, change->after, &changed);
	if (r == 0)
		r = fs_set_policy(warden->fs, changed);
	if (r == -EBUSY)
		return rpc_fault_set(fault, RPC_FAILED, "MODE_FIXED",
				     "started with passthrough; start it with "
				     "--no-passthrough to keep its mode "
				     "changeable");
	if (r < 0)
		return r;
	record_change(warden, change, changed);
	swap_policy(warden, policy_ref(changed));
	/* Last: a mount that comes meanwhile takes the policy in force. */
	return faces_set_policy(warden, changed);
}

int
warden_change_mode(struct warden *warden, enum rpc_role role,
		   enum policy_mode mode, enum policy_mode *ret_before,
		   struct rpc_fault *ret_fault)
{
	struct change change = { .role = role, .after = mode };
	int r;

	(void)pthread_mutex_lock(&warden->mode_lock);
	r = change_mode(warden, &change, ret_fault);
	(void)pthread_mutex_unlock(&warden->mode_lock);
	*ret_before = change.before;
	return r;
}

void
warden_mode_changed(struct warden *warden, enum policy_mode before,
		    enum policy_mode after)
{
	if (before == after)
		return;
	if (world_dir_describe(warden) < 0)
		log_line(warden->log, LOG_ERROR, "info.json is out of date");
	server_mode_changed(warden->server, before, after);
	warden_tree_mode(warden->tree);
}

static int
run_mode(struct call *call)
{
	int r = warden_change_mode(call->warden, call->role, call->mode,
				   &call->mode_before, &call->fault);

	if (r < 0)
		return r;
	jsonw_begin(&call->json, '{');
	jsonw_pair(&call->json, "mode", policy_mode_name(call->mode));
	jsonw_pair(&call->json, "previous",
		   policy_mode_name(call->mode_before));
	jsonw_end(&call->json, '}');
	return 0;
}

static void
mode_done(struct call *call)
{
	if (call->result == 0)
		warden_mode_changed(call->warden, call->mode_before,
				    call->mode);
}

int
mode_handle(struct client *client, const struct rpc_message *message,
	    struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *name = NULL;
	const struct rpc_field fields[] = {
		{ "mode", RPC_STRING, true, &name },
	};
	enum policy_mode mode;
	struct call *call;
	int r;

	(void)ret_json;
	r = rpc_params(message, fields, 1, ret_fault);
	if (r < 0)
		return r;
	if (policy_mode_parse(name, &mode) < 0 ||
	    mode == POLICY_DANGER_FULL_ACCESS)
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, "BAD_MODE",
				     "mode: a running world is read-only or "
				     "workspace-write");
	r = call_new(client, &message->id, run_mode, &call);
	if (r < 0)
		return r;
	call->mode = mode;
	call->done = mode_done;
	return call_start(call);
}
