/* SPDX-License-Identifier: MIT */

#include "warden/jobs_rpc.h"
#include "jobs/jobs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "warden/jobs_priv.h"
#include "warden/rows_rpc.h"
#include "warden/stream_json.h"

#define TIMEOUT_MAX (365ll * 24 * 3600 * 1000)

/* ---- parameters ---- */

static int
not_found(struct rpc_fault *fault, const char *id)
{
	return rpc_fault_set(fault, RPC_FAILED, JOB_NOT_FOUND,
			     "no job '%s' in this world", id);
}

static int
take_ids(const struct client *client, const json_t *array, uint64_t *ret_ids,
	 size_t *ret_count, struct rpc_fault *fault)
{
	size_t i;
	const json_t *item;

	if (json_array_size(array) == 0 ||
	    json_array_size(array) > LIMIT_JOB_IDS)
		return rpc_fault_param(fault, "ids", "1 to 1000 ids of jobs");
	json_array_foreach(array, i, item)
	{
		const char *text = json_string_value(item);

		if (!text || jobs_id_parse(text, &ret_ids[i]) < 0)
			return rpc_fault_param(fault, "ids", "an array of ids");
		if (!jobs_host_find(client->server->warden->jobs, ret_ids[i]))
			return not_found(fault, text);
	}
	*ret_count = i;
	return 0;
}

static int
still_runs(struct rpc_fault *fault, const char *id)
{
	return rpc_fault_set(fault, RPC_FAILED, "JOB_RUNNING",
			     "job %s still runs, or something that it left "
			     "behind does",
			     id);
}

/* Who was to answer `wait` has begun, or has not (`result`). */
static int
begun(struct job_wait *wait, int result, struct rpc_fault *fault)
{
	if (result < 0) {
		job_wait_answer(wait, result, NULL, fault);
		job_wait_unref(wait);
	}
	return CALL_LATER;
}

/* -ENOTSUP as a sentence: a world that takes no commands has no jobs. */
static int
enter(struct client *client, struct rpc_fault *fault)
{
	int r = jobs_rpc_watch(client->server->warden);

	if (r == -ENOTSUP)
		return rpc_fault_set(fault, RPC_FAILED, "NOT_STANDING",
				     "this world runs one command and has no "
				     "jobs");
	return r;
}

static int
find(struct client *client, const char *text, struct wjob **ret_job,
     struct rpc_fault *fault)
{
	struct warden *warden = client->server->warden;
	uint64_t id;
	int r = enter(client, fault);

	if (r < 0)
		return r;
	if (jobs_id_parse(text, &id) < 0)
		return rpc_fault_param(fault, "id", "an id such as j3");
	*ret_job = jobs_host_find(warden->jobs, id);
	return *ret_job ? 0 : not_found(fault, text);
}

/* ---- job.start ---- */

void
jobs_start_params_fini(struct jobs_start_params *params)
{
	strv_fini(&params->argv);
	strv_fini(&params->env);
	free(params->cwd);
	free(params->name);
}

static int
take_command(const json_t *argv, const char *command, struct strv *ret_argv,
	     struct rpc_fault *fault)
{
	int r;

	if ((argv != NULL) == (command != NULL))
		return rpc_fault_param(fault, "argv", "either argv or command");
	if (argv)
		r = stream_take_texts(argv, "argv", ret_argv, fault);
	else if ((r = strv_add(ret_argv, "sh")) == 0 &&
		 (r = strv_add(ret_argv, "-c")) == 0)
		r = strv_add(ret_argv, command);
	if (r == 0 && (ret_argv->count == 0 || !ret_argv->items[0][0]))
		return rpc_fault_param(fault, "argv", "names a program");
	return r;
}

static int
take_stdin(const char *text, enum jobs_stdin *ret_kind, struct rpc_fault *fault)
{
	if (!text || strcmp(text, "null") == 0)
		*ret_kind = JOBS_STDIN_NULL;
	else if (strcmp(text, "pipe") == 0)
		*ret_kind = JOBS_STDIN_PIPE;
	else if (strcmp(text, "file") == 0)
		*ret_kind = JOBS_STDIN_FD;
	else
		return rpc_fault_param(fault, "stdin",
				       "'null', 'pipe' or 'file'");
	return 0;
}

static int
check_start(const struct jobs_start_params *params, int64_t timeout,
	    int64_t retry, int64_t mask, struct rpc_fault *fault)
{
	const struct jobs_request *request = &params->request;

	if (params->cwd && params->cwd[0] != '/')
		return rpc_fault_param(fault, "cwd", "absolute");
	if (timeout < 0 || timeout > TIMEOUT_MAX)
		return rpc_fault_param(fault, "timeout_ms",
				       "0 (none) to a year");
	if (retry < 0 || retry > LIMIT_JOB_RETRY)
		return rpc_fault_param(fault, "retry", "0 to 1000");
	if (mask < -1 || mask > 0777)
		return rpc_fault_param(fault, "umask", "0 to 0777");
	if (strcmp(request->profile, "agent") != 0 &&
	    strcmp(request->profile, "plain") != 0)
		return rpc_fault_param(fault, "env_profile",
				       "'agent' or 'plain'");
	if (params->name && strlen(params->name) > LIMIT_JOB_NAME)
		return rpc_fault_param(fault, "name", "at most 256 bytes");
	if (request->token &&
	    (!*request->token || strlen(request->token) > LIMIT_JOB_NAME))
		return rpc_fault_param(fault, "client_token", "1 to 256 bytes");
	for (size_t i = 0; i < params->env.count; i++)
		if (!strchr(params->env.items[i], '='))
			return rpc_fault_param(fault, "env",
					       "texts NAME=VALUE");
	return 0;
}

int
jobs_start_params_take(const struct rpc_message *message,
		       struct jobs_start_params *params,
		       struct rpc_fault *fault)
{
	struct jobs_request *request = &params->request;
	const json_t *argv = NULL, *env = NULL;
	const char *command = NULL, *cwd = NULL, *name = NULL, *after = NULL,
		   *stdin_text = NULL;
	int64_t timeout = 0, retry = 0, mask = -1;
	const struct rpc_field fields[] = {
		{ "argv", RPC_ARRAY, false, &argv },
		{ "command", RPC_STRING, false, &command },
		{ "env", RPC_ARRAY, false, &env },
		{ "env_profile", RPC_STRING, false, &request->profile },
		{ "cwd", RPC_STRING, false, &cwd },
		{ "name", RPC_STRING, false, &name },
		{ "client_token", RPC_STRING, false, &request->token },
		{ "stdin", RPC_STRING, false, &stdin_text },
		{ "merge", RPC_BOOLEAN, false, &request->merge },
		{ "queue", RPC_BOOLEAN, false, &request->queue },
		{ "timeout_ms", RPC_INTEGER, false, &timeout },
		{ "after", RPC_STRING, false, &after },
		{ "retry", RPC_INTEGER, false, &retry },
		{ "umask", RPC_INTEGER, false, &mask },
	};
	int r;

	request->profile = "agent";
	r = rpc_params(message, fields, sizeof(fields) / sizeof(fields[0]),
		       fault);
	if (r == 0)
		r = take_command(argv, command, &params->argv, fault);
	if (r == 0)
		r = stream_take_texts(env, "env", &params->env, fault);
	if (r == 0)
		r = take_stdin(stdin_text, &request->stdin_kind, fault);
	if (r == 0 && after && jobs_id_parse(after, &request->after) < 0)
		r = rpc_fault_param(fault, "after", "an id such as j3");
	if (r < 0)
		return r;
	params->cwd = cwd ? json_unescape(cwd) : NULL;
	params->name = name ? json_unescape(name) : NULL;
	if ((cwd && !params->cwd) || (name && !params->name))
		return -ENOMEM;
	request->argv = &params->argv;
	request->env = env ? &params->env : NULL;
	request->cwd = params->cwd;
	request->name = params->name;
	request->timeout_ms = (uint64_t)timeout;
	request->retry = (unsigned int)retry;
	request->umask = (int)mask;
	return check_start(params, timeout, retry, mask, fault);
}

static void
on_start(const struct jobs_started *result, void *data)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	struct job_wait *wait = data;
	struct rpc_fault fault = { 0 };
	struct store_job row = { .state = "" };
	char id[JOBS_ID_MAX], line[512] = "";
	int r = 0;

	if (result->id == 0) {
		r = rpc_fault_set(&fault, RPC_FAILED,
				  result->code ? result->code : "JOB_STORE",
				  "%s", result->why.text);
		fault.number = -result->error;
	} else {
		jobs_id_text(result->id, id);
		jsonw_begin(&json, '{');
		jsonw_pair(&json, "id", id);
		/* A known one may be of a world before this one. */
		if (jobs_get_row(wait->warden, result->id, &row) == 0) {
			jobs_row_line(&row, line, sizeof(line));
			jsonw_pair(&json, "state", row.state);
			jsonw_pair(&json, "status", line);
			jsonw_pair_known(&json, "pid", row.pid > 0, row.pid);
		}
		jsonw_pair_bool(&json, "known", result->known);
		jsonw_end(&json, '}');
	}
	if (wait->client)
		job_wait_answer(wait, r, &json, &fault);
	job_wait_unref(wait);
}

int
jobs_rpc_start(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault)
{
	_cleanup_(jobs_start_params_fini) struct jobs_start_params params = {
		.request = { .stdin_fd = -1 }
	};
	struct job_wait *wait = NULL;
	int r = enter(client, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = jobs_start_params_take(message, &params, ret_fault);
	if (r == 0 && params.request.stdin_kind == JOBS_STDIN_FD &&
	    client_take_fds(client, &params.request.stdin_fd, 1) < 0)
		r = rpc_fault_set(ret_fault, RPC_FAILED, "NO_DESCRIPTORS",
				  "one descriptor must come with the request: "
				  "the command's stdin");
	if (r == 0)
		r = job_wait_new(client, message, JOB_WAIT_CALL, NULL, 0,
				 &wait);
	if (r < 0) {
		closep(&params.request.stdin_fd);
		return r;
	}
	job_wait_ref(wait);
	r = jobs_start(client->server->warden, &params.request, on_start, wait);
	return begun(wait, r, ret_fault);
}

/* ---- job.list, job.show ---- */

static void
put_row(const struct job *core, struct buf *out)
{
	struct store_job row;

	wjob_row(core->data, &row);
	jobs_row_json(&row, out);
}

int
jobs_rpc_list(struct client *client, const struct rpc_message *message,
	      struct buf *ret_json, struct rpc_fault *ret_fault)
{
	int r = enter(client, ret_fault);

	return r < 0 ? r
		     : rows_list(message, client->server->warden->jobs->core,
				 "jobs", put_row, ret_json, ret_fault);
}

int
jobs_rpc_show(struct client *client, const struct rpc_message *message,
	      struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *id = NULL;
	const struct rpc_field fields[] = { { "id", RPC_STRING, true, &id } };
	_cleanup_(buf_fini) struct buf row = { 0 };
	struct wjob *job = NULL;
	int r = rpc_params(message, fields, 1, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = find(client, id, &job, ret_fault);
	if (!job)
		return r;
	r = jobs_state_json(client->server->warden, job->core.id, &row);
	return r != 0 ? r
		      : rows_show(client, message, &row, job->core.id,
				  jobs_read_spec);
}

/* ---- job.wait, job.kill ---- */

int
jobs_rpc_wait(struct client *client, const struct rpc_message *message,
	      struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const json_t *array = NULL;
	bool any = false;
	int64_t timeout = 0;
	const struct rpc_field fields[] = {
		{ "ids", RPC_ARRAY, true, &array },
		{ "any", RPC_BOOLEAN, false, &any },
		{ "timeout_ms", RPC_INTEGER, false, &timeout },
	};
	uint64_t ids[LIMIT_JOB_IDS];
	struct job_wait *wait = NULL;
	size_t count = 0;
	int r = enter(client, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = rpc_params(message, fields, 3, ret_fault);
	if (r == 0 && (timeout < 0 || timeout > TIMEOUT_MAX))
		r = rpc_fault_param(ret_fault, "timeout_ms",
				    "0 (for ever) to a year");
	if (r == 0)
		r = take_ids(client, array, ids, &count, ret_fault);
	if (r == 0)
		r = job_wait_new(client, message, JOB_WAIT_END, ids, count,
				 &wait);
	if (r != 0)
		return r;
	wait->any = any;
	job_wait_limit(wait, (uint64_t)timeout);
	job_wait_check(wait);
	return CALL_LATER;
}

int
jobs_rpc_kill(struct client *client, const struct rpc_message *message,
	      struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *id = NULL;
	int64_t signal = SIGTERM, grace = JOBS_GRACE_MS;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &id },
		{ "signal", RPC_INTEGER, false, &signal },
		{ "grace_ms", RPC_INTEGER, false, &grace },
	};
	struct job_wait *wait = NULL;
	struct wjob *job = NULL;
	uint64_t number;
	int r = rpc_params(message, fields, 3, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = find(client, id, &job, ret_fault);
	if (!job)
		return r;
	if (signal < 1 || signal > SIGRTMAX)
		return rpc_fault_param(ret_fault, "signal",
				       "the number of a signal");
	if (grace < 0 || grace > JOBS_GRACE_MAX_MS)
		return rpc_fault_param(ret_fault, "grace_ms", "0 to 600000");
	number = job->core.id;
	r = jobs_kill(client->server->warden, number, (int)signal,
		      (uint64_t)grace);
	if (r == -EALREADY)
		return rpc_fault_set(ret_fault, RPC_FAILED, JOB_NOT_RUNNING,
				     "job %s has ended and nothing of it is "
				     "left",
				     id);
	if (r == 0)
		r = job_wait_new(client, message, JOB_WAIT_GONE, &number, 1,
				 &wait);
	if (r != 0)
		return r;
	job_wait_limit(wait, (uint64_t)grace + JOBS_KILL_MS);
	job_wait_check(wait);
	return CALL_LATER;
}

/* ---- job.rm, job.prune ---- */

static void
on_removed(const struct jobs_removed *result, void *data)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	struct job_wait *wait = data;
	struct rpc_fault fault = { 0 };
	char id[JOBS_ID_MAX];
	int r = result->error;

	jobs_id_text(result->failed, id);
	if (r == -EBUSY)
		r = still_runs(&fault, id);
	else if (r < 0)
		r = rpc_fault_set(&fault, RPC_FAILED, "JOB_STORE",
				  "cannot remove job %s: %s", id, strerror(-r));
	jsonw_begin(&json, '{');
	jsonw_pair_uint(&json, "removed", result->count);
	jsonw_end(&json, '}');
	if (wait->client)
		job_wait_answer(wait, r, &json, &fault);
	job_wait_unref(wait);
}

/* The one of whom it is true; who was named twice or is gone is no fault. */
static int
busy_one(const struct jobs_host *host, const uint64_t *ids, size_t count,
	 struct rpc_fault *fault)
{
	char text[JOBS_ID_MAX];

	for (size_t i = 0; i < count; i++) {
		const struct wjob *job = jobs_host_find(host, ids[i]);

		if (!job || (!job->held && job->told))
			continue;
		jobs_id_text(ids[i], text);
		return still_runs(fault, text);
	}
	return 0;
}

int
jobs_rpc_rm(struct client *client, const struct rpc_message *message,
	    struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const json_t *array = NULL;
	const struct rpc_field fields[] = {
		{ "ids", RPC_ARRAY, true, &array },
	};
	struct warden *warden = client->server->warden;
	struct job_wait *wait = NULL;
	uint64_t ids[LIMIT_JOB_IDS];
	size_t count = 0;
	int r = enter(client, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = rpc_params(message, fields, 1, ret_fault);
	if (r == 0)
		r = take_ids(client, array, ids, &count, ret_fault);
	if (r == 0)
		r = busy_one(warden->jobs, ids, count, ret_fault);
	if (r == 0)
		r = job_wait_new(client, message, JOB_WAIT_CALL, NULL, 0,
				 &wait);
	if (r < 0)
		return r;
	job_wait_ref(wait);
	r = jobs_remove(warden, ids, count, on_removed, wait);
	return begun(wait, r, ret_fault);
}

int
jobs_rpc_prune(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct warden *warden = client->server->warden;
	int64_t keep = 0;
	const struct rpc_field fields[] = {
		{ "keep", RPC_INTEGER, false, &keep },
	};
	struct job_wait *wait = NULL;
	int r = enter(client, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = rpc_params(message, fields, 1, ret_fault);
	if (r < 0)
		return r;
	if (keep < 0)
		return rpc_fault_param(ret_fault, "keep",
				       "how many ended ones stay");
	r = job_wait_new(client, message, JOB_WAIT_CALL, NULL, 0, &wait);
	if (r < 0)
		return r;
	job_wait_ref(wait);
	r = jobs_remove_ended(warden, (uint64_t)keep, on_removed, wait);
	return begun(wait, r, ret_fault);
}

int
jobs_rpc_subscribe(struct client *client, const struct rpc_message *message,
		   struct buf *ret_json, struct rpc_fault *ret_fault)
{
	int r = enter(client, ret_fault);

	if (r == 0)
		r = rpc_params(message, NULL, 0, ret_fault);
	if (r < 0)
		return r;
	client->wants_jobs = true;
	jsonw_begin(ret_json, '{');
	jsonw_end(ret_json, '}');
	return 0;
}
