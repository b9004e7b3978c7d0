/* SPDX-License-Identifier: MIT */

/*
 * run.exec: one command in a standing world, with the caller's own stdio.
 *
 *	asked ──▶ started ──▶ exited ──▶ (linger) ──▶ gone ──▶ answered
 *	     └──▶ failed ────────────────────────────────────▶ answered
 *
 * The request is answered when nothing of the command is left and what it was
 * refused is in the store.  What its client no longer waits for is killed: a
 * command ends with who asked for it, as one of `pale run` does.
 *
 * Thread: loop; finish() runs on the pool.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/strv.h"
#include "policy/store.h"
#include "policy/world_plan.h"
#include "warden/server_priv.h"
#include "warden/spawn.h"

/* Between the polite and the final signal of a time-out. */
#define GRACE_MS 2000

/* Rows of what was refused in an answer. */
#define FIRST_ROWS 5

struct exec {
	LIST_ENTRY(exec) link; /* of client->execs */
	struct client *client; /* NULL: gone */
	struct warden *warden;
	struct rpc_id id;
	char origin[32];
	uv_timer_t timer;
	uint64_t spawn;
	uint64_t linger_ms;
	uint64_t rows_before; /* records of the world when it started */
	int64_t started_ns;
	int status;
	struct rusage usage;
	int error; /* errno of starting it; 0: it ran */
	bool by_exec, running, timed_out;
	char why[256];
};

/* ---- the answer ---- */

struct refused {
	struct buf rows;
	uint64_t count, n;
};

static int
add_refused(const struct denial *denial, void *data)
{
	struct refused *refused = data;

	refused->count += denial->count;
	if (refused->n++ < FIRST_ROWS)
		denial_to_json(denial, &refused->rows);
	return buf_error(&refused->rows);
}

static void
put_refused(struct call *call, const struct exec *exec, struct buf *out)
{
	_cleanup_(store_closep) struct store *store = NULL;
	struct refused refused = { 0 };
	const struct store_query query = { .world = call->warden->opt.world,
					   .origin = exec->origin };
	struct errmsg why = { "" };
	struct denials_summary summary = { 0 }, counts;
	int r = 0;

	jsonw_begin(&refused.rows, '[');
	denials_flush(call->warden->denials);
	denials_summarize(call->warden->denials, &summary);
	/* Most commands are refused nothing, and need no database for that. */
	if (summary.rows > exec->rows_before) {
		r = store_open(call->warden->places.db, &store, &why);
		if (r == 0)
			r = store_each_denial(store, &query, add_refused,
					      &refused);
	}
	jsonw_end(&refused.rows, ']');
	counts = (struct denials_summary){ .count = refused.count,
					   .rows = refused.n,
					   .degraded = r < 0 };
	jsonw_key(out, "denials");
	denials_counts_json(&counts, &refused.rows, out);
	buf_fini(&refused.rows);
}

static uint64_t
msec(const struct timeval *time)
{
	return (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_usec / 1000;
}

static void
put_end(const struct exec *exec, struct buf *out)
{
	bool killed = WIFSIGNALED(exec->status);
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {
		{ "user_ms", msec(&exec->usage.ru_utime) },
		{ "sys_ms", msec(&exec->usage.ru_stime) },
		{ "max_rss_kib", (uint64_t)exec->usage.ru_maxrss },
		{ "duration_ms",
		  (uint64_t)(clock_mono_ns() - exec->started_ns) / 1000000 },
	};

	jsonw_pair_known(out, "exit_code", !killed, WEXITSTATUS(exec->status));
	jsonw_pair_known(out, "signal", killed, WTERMSIG(exec->status));
	jsonw_pair_bool(out, "timed_out", exec->timed_out);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		jsonw_pair_uint(out, rows[i].name, rows[i].value);
}

static int
finish(struct call *call)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(call->warden);
	const struct exec *exec = call->data;

	jsonw_begin(&call->json, '{');
	jsonw_pair(&call->json, "origin", exec->origin);
	jsonw_pair(&call->json, "mode", policy_mode_name(policy->mode));
	put_end(exec, &call->json);
	put_refused(call, exec, &call->json);
	jsonw_end(&call->json, '}');
	return 0;
}

static void
on_timer_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void
exec_free(struct exec *exec)
{
	warden_release(exec->warden);
	uv_close((uv_handle_t *)&exec->timer, on_timer_closed);
}

static void
finished(struct call *call)
{
	exec_free(call->data);
}

/* Says what it came to, if somebody still listens. */
static void
answer(struct exec *exec)
{
	struct rpc_fault fault = { 0 };
	struct call *call = NULL;
	struct client *client = exec->client;

	if (client) {
		LIST_REMOVE(exec, link);
		exec->client = NULL;
	}
	if (client && exec->error == 0 &&
	    call_new(client, &exec->id, finish, &call) == 0) {
		call->data = exec;
		call->done = finished;
		if (call_start(call) == CALL_LATER)
			return;
	}
	if (client && exec->error != 0) {
		(void)rpc_fault_set(&fault, RPC_FAILED,
				    exec->by_exec ? "EXEC_FAILED"
						  : "SPAWN_FAILED",
				    "%s", exec->why);
		fault.number = exec->error;
	}
	if (client)
		client_answer(client, &exec->id, -EIO, NULL, &fault);
	exec_free(exec);
}

/* ---- its life ---- */

static void
kill_tree(struct exec *exec)
{
	(void)spawn_kill(exec->warden, exec->spawn);
}

static void
on_linger_over(uv_timer_t *timer)
{
	kill_tree(timer->data);
}

static void
on_time_over(uv_timer_t *timer)
{
	struct exec *exec = timer->data;

	if (exec->timed_out) {
		kill_tree(exec);
		return;
	}
	exec->timed_out = true;
	(void)spawn_signal(exec->warden, exec->spawn, SIGTERM, false);
	(void)spawn_signal(exec->warden, exec->spawn, SIGCONT, false);
	(void)uv_timer_start(timer, on_time_over, GRACE_MS, 0);
}

static void
on_started(void *data, pid_t pid)
{
	struct exec *exec = data;
	struct buf params = { 0 }, line = { 0 };

	exec->running = true;
	if (!exec->client)
		return;
	jsonw_begin(&params, '{');
	jsonw_key(&params, "request");
	jsonw_raw(&params, exec->id.json, strlen(exec->id.json));
	jsonw_pair(&params, "origin", exec->origin);
	jsonw_pair_int(&params, "pid", pid);
	jsonw_end(&params, '}');
	rpc_write_notification(&line, "run.started", &params);
	client_send(exec->client, &line);
	buf_fini(&params);
}

static void
on_failed(void *data, int error, bool by_exec, const char *why)
{
	struct exec *exec = data;

	exec->error = error < 0 ? -error : error;
	exec->by_exec = by_exec;
	(void)snprintf(exec->why, sizeof(exec->why), "%s",
		       why && *why ? why : strerror(exec->error));
	spawn_forget(exec->warden, exec->spawn);
	answer(exec);
}

static void
on_exited(void *data, int status, const struct rusage *usage)
{
	struct exec *exec = data;

	exec->running = false;
	exec->status = status;
	exec->usage = *usage;
	if (exec->linger_ms == 0)
		kill_tree(exec);
	else
		(void)uv_timer_start(&exec->timer, on_linger_over,
				     exec->linger_ms, 0);
}

static void
on_gone(void *data)
{
	struct exec *exec = data;

	(void)uv_timer_stop(&exec->timer);
	spawn_forget(exec->warden, exec->spawn);
	answer(exec);
}

void
exec_client_gone(struct client *client)
{
	struct exec *exec;

	while ((exec = LIST_FIRST(&client->execs))) {
		LIST_REMOVE(exec, link);
		exec->client = NULL;
		kill_tree(exec);
	}
}

/* ---- the request ---- */

static int
text_list(const json_t *array, const char *field, struct strv *ret_list,
	  struct rpc_fault *ret_fault)
{
	const json_t *item;
	size_t i;
	int r = 0;

	json_array_foreach(array, i, item)
	{
		_cleanup_(freep) char *text = NULL;

		if (!json_is_string(item) ||
		    strlen(json_string_value(item)) != json_string_length(item))
			r = -EINVAL;
		else
			text = json_unescape(json_string_value(item));
		if (r == 0 && !text)
			return -ENOMEM;
		if (r == 0)
			r = strv_add(ret_list, text);
		if (r < 0)
			return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS,
					     NULL, "%s: an array of texts",
					     field);
	}
	return 0;
}

struct exec_params {
	struct strv argv, env;
	char *cwd;
	const char *call;
	const char *console; /* of a client with a terminal; NULL: none */
	int64_t timeout_ms, linger_ms, umask;
};

static void
exec_params_fini(struct exec_params *params)
{
	strv_fini(&params->argv);
	strv_fini(&params->env);
	free(params->cwd);
}

static int
take_params(struct warden *warden, const struct rpc_message *message,
	    struct exec_params *params, struct rpc_fault *ret_fault)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);
	_cleanup_(strv_fini) struct strv env = { 0 };
	const json_t *argv_json = NULL, *env_json = NULL;
	const char *cwd = policy->roots[0].path;
	const struct rpc_field fields[] = {
		{ "argv", RPC_ARRAY, true, &argv_json },
		{ "env", RPC_ARRAY, false, &env_json },
		{ "cwd", RPC_STRING, false, &cwd },
		{ "call", RPC_STRING, false, &params->call },
		{ "console", RPC_STRING, false, &params->console },
		{ "timeout_ms", RPC_INTEGER, false, &params->timeout_ms },
		{ "linger_ms", RPC_INTEGER, false, &params->linger_ms },
		{ "umask", RPC_INTEGER, false, &params->umask },
	};
	int r;

	params->umask = -1;
	r = rpc_params(message, fields, 8, ret_fault);

	if (r == 0)
		r = text_list(argv_json, "argv", &params->argv, ret_fault);
	if (r == 0)
		r = text_list(env_json, "env", &env, ret_fault);
	if (r < 0)
		return r;
	if (params->argv.count == 0 || cwd[0] != '/' ||
	    params->timeout_ms < 0 || params->linger_ms < 0 ||
	    params->umask < -1 || params->umask > 0777)
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				     "argv names a command, cwd is absolute, "
				     "no time is negative, umask at most 0777");
	if (params->call && !denial_call_is_valid(params->call))
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				     "call: one line, at most %d bytes",
				     LIMIT_CALL);
	params->cwd = json_unescape(cwd);
	if (!params->cwd)
		return -ENOMEM;
	return world_plan_env(policy, warden->opt.world, true, &env,
			      &params->env);
}

static struct exec *
exec_new(struct client *client, const struct rpc_id *id,
	 const struct exec_params *params)
{
	static uint64_t last;
	struct denials_summary summary = { 0 };
	struct exec *exec = calloc(1, sizeof(*exec));

	if (!exec)
		return NULL;
	exec->client = client;
	exec->warden = client->server->warden;
	exec->id = *id;
	exec->linger_ms = (uint64_t)params->linger_ms;
	exec->started_ns = clock_mono_ns();
	denials_summarize(exec->warden->denials, &summary);
	exec->rows_before = summary.rows;
	(void)snprintf(exec->origin, sizeof(exec->origin), "exec e%llu",
		       (unsigned long long)++last);
	(void)uv_timer_init(&exec->warden->loop, &exec->timer);
	exec->timer.data = exec;
	LIST_INSERT_HEAD(&client->execs, exec, link);
	warden_hold(exec->warden);
	return exec;
}

static int
start(struct client *client, const struct rpc_message *message,
      const struct exec_params *params, const int fds[3])
{
	static const struct spawn_events events = { .started = on_started,
						    .failed = on_failed,
						    .exited = on_exited,
						    .gone = on_gone };
	const struct spawn_terminal terminal = { .sock = fds[0],
						 .console = params->console };
	struct exec *exec = exec_new(client, &message->id, params);
	struct spawn_request request = {
		.call = params->call,
		.argv = &params->argv,
		.env = &params->env,
		.cwd = params->cwd,
		.umask = (int)params->umask,
		.fds = { fds[0], fds[1], fds[2] },
		.drain = { -1, -1 },
		.dir = -1,
	};
	int r;

	if (!exec)
		return -ENOMEM;
	request.origin = exec->origin;
	if (params->console)
		r = spawn_enter(exec->warden, &request, &terminal, &events,
				exec, &exec->spawn);
	else
		r = spawn_start(exec->warden, &request, &events, exec,
				&exec->spawn);
	if (r < 0) {
		LIST_REMOVE(exec, link);
		exec_free(exec);
		return r;
	}
	if (params->timeout_ms > 0)
		(void)uv_timer_start(&exec->timer, on_time_over,
				     (uint64_t)params->timeout_ms, 0);
	return CALL_LATER;
}

int
exec_handle(struct client *client, const struct rpc_message *message,
	    struct buf *ret_json, struct rpc_fault *ret_fault)
{
	_cleanup_(exec_params_fini) struct exec_params params = { 0 };
	int fds[3] = { -1, -1, -1 }, r;

	(void)ret_json;
	if (!client->server->warden->opt.standing)
		return rpc_fault_set(ret_fault, RPC_FAILED, "NOT_STANDING",
				     "this world runs one command and takes no "
				     "others");
	if (message->kind != RPC_REQUEST)
		return rpc_fault_set(ret_fault, RPC_INVALID_REQUEST, NULL,
				     "a command needs an id to be told by");
	r = take_params(client->server->warden, message, &params, ret_fault);
	if (client_take_fds(client, fds, params.console ? 1 : 3) < 0)
		return rpc_fault_set(ret_fault, RPC_FAILED, "NO_DESCRIPTORS",
				     "descriptors must come with the request: "
				     "the command's stdin, stdout and stderr, "
				     "or with `console` the way in");
	if (r == 0)
		r = start(client, message, &params, fds);
	for (size_t i = 0; i < 3; i++)
		closep(&fds[i]);
	return r;
}

/* ---- what is asked of one that runs ---- */

static struct exec *
find(struct client *client, const char *id_json)
{
	struct exec *exec;

	LIST_FOREACH(exec, &client->execs, link)
	if (strcmp(exec->id.json, id_json) == 0)
		return exec;
	return NULL;
}

bool
exec_cancel(struct client *client, const char *id_json)
{
	struct exec *exec = find(client, id_json);

	if (exec)
		kill_tree(exec);
	return exec != NULL;
}

int
exec_signal(struct client *client, const struct rpc_message *message,
	    struct buf *ret_json, struct rpc_fault *ret_fault)
{
	int64_t request = 0, signal = 0;
	bool tree = false;
	const struct rpc_field fields[] = {
		{ "request", RPC_INTEGER, true, &request },
		{ "signal", RPC_INTEGER, true, &signal },
		{ "tree", RPC_BOOLEAN, false, &tree },
	};
	char id[RPC_ID_MAX];
	struct exec *exec;
	int r = rpc_params(message, fields, 3, ret_fault);

	if (r < 0)
		return r;
	if (signal < 1 || signal > SIGRTMAX)
		return rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL,
				     "signal: 1 to %d", SIGRTMAX);
	(void)snprintf(id, sizeof(id), "%lld", (long long)request);
	exec = find(client, id);
	if (!exec)
		return rpc_fault_set(ret_fault, RPC_FAILED, "NOT_RUNNING",
				     "no command of this connection has the "
				     "request id %s",
				     id);
	r = spawn_signal(exec->warden, exec->spawn, (int)signal, tree);
	jsonw_begin(ret_json, '{');
	jsonw_end(ret_json, '}');
	return r;
}
