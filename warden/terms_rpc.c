/* SPDX-License-Identifier: MIT */

#include "warden/terms_rpc.h"
#include "jobs/jobs.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "jobs/orders.h"
#include "warden/rows_rpc.h"
#include "warden/stream_json.h"
#include "warden/terms_priv.h"

#define IDS_MAX 1000

/* ---- parameters ---- */

int
terms_rpc_fault(int r, const char *text, struct rpc_fault *fault)
{
	if (r == -ENOENT)
		return rpc_fault_set(fault, RPC_FAILED, TERM_NOT_FOUND,
				     "no terminal '%s' in this world", text);
	if (r == -EPIPE)
		return rpc_fault_set(fault, RPC_FAILED, TERM_EXITED,
				     "the program of terminal %s has ended",
				     text);
	if (r == -EALREADY)
		return rpc_fault_set(fault, RPC_FAILED, TERM_EXITED,
				     "terminal %s has ended and nothing of it "
				     "is left",
				     text);
	if (r == -EBUSY)
		return rpc_fault_set(fault, RPC_FAILED, TERM_BUSY,
				     "terminal %s still runs, or something "
				     "that it left behind does",
				     text);
	if (r == -ERANGE)
		return rpc_fault_set(fault, RPC_FAILED, TERM_BAD_OFFSET,
				     "the offset is beyond the end");
	if (r == -EEXIST)
		return rpc_fault_set(fault, RPC_FAILED, TERM_NAME_TAKEN,
				     "another terminal of this world has that "
				     "name");
	return r;
}

int
terms_rpc_find(struct client *client, const char *text, uint64_t *ret_id,
	       struct rpc_fault *fault)
{
	int r = terms_rpc_enter(client, fault);

	if (r == 0)
		r = terms_find(client->server->warden, text, ret_id);
	return r == -ENOENT ? terms_rpc_fault(r, text, fault) : r;
}

/* ---- term.new ---- */

void
terms_new_params_fini(struct terms_new_params *params)
{
	strv_fini(&params->argv);
	strv_fini(&params->env);
	free(params->cwd);
}

static int
take_size(const char *field, int64_t cells, unsigned int *ret_cells,
	  struct rpc_fault *fault)
{
	if (cells < 0 || cells > 65535)
		return rpc_fault_param(fault, field, "1 to 65535");
	*ret_cells = (unsigned int)cells;
	return 0;
}

int
terms_new_params_take(const struct rpc_message *message,
		      struct terms_new_params *params, struct rpc_fault *fault)
{
	struct terms_request *request = &params->request;
	const json_t *argv = NULL, *env = NULL;
	const char *cwd = NULL;
	int64_t cols = 0, rows = 0, mask = -1;
	const struct rpc_field fields[] = {
		{ "argv", RPC_ARRAY, false, &argv },
		{ "env", RPC_ARRAY, false, &env },
		{ "cwd", RPC_STRING, false, &cwd },
		{ "name", RPC_STRING, false, &request->name },
		{ "cols", RPC_INTEGER, false, &cols },
		{ "rows", RPC_INTEGER, false, &rows },
		{ "umask", RPC_INTEGER, false, &mask },
	};
	int r = rpc_params(message, fields, sizeof(fields) / sizeof(fields[0]),
			   fault);

	if (r == 0 && argv)
		r = stream_take_texts(argv, "argv", &params->argv, fault);
	if (r == 0 && env)
		r = stream_take_texts(env, "env", &params->env, fault);
	if (r == 0)
		r = take_size("cols", cols, &request->cols, fault);
	if (r == 0)
		r = take_size("rows", rows, &request->rows, fault);
	if (r < 0)
		return r;
	params->cwd = cwd ? json_unescape(cwd) : NULL;
	if (cwd && !params->cwd)
		return -ENOMEM;
	if (cwd && params->cwd[0] != '/')
		return rpc_fault_param(fault, "cwd", "absolute");
	if (mask < -1 || mask > 0777)
		return rpc_fault_param(fault, "umask", "0 to 0777");
	if (params->argv.count > 0 && !params->argv.items[0][0])
		return rpc_fault_param(fault, "argv", "names a program");
	for (size_t i = 0; i < params->env.count; i++)
		if (!strchr(params->env.items[i], '='))
			return rpc_fault_param(fault, "env",
					       "texts NAME=VALUE");
	request->argv = params->argv.count > 0 ? &params->argv : NULL;
	request->env = env ? &params->env : NULL;
	request->cwd = params->cwd;
	request->umask = (int)mask;
	return 0;
}

/* One line for who has just got a terminal. */
static void
put_motd(struct warden *warden, struct buf *out)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);
	char text[128];

	(void)snprintf(text, sizeof(text),
		       "pale: mode %s; what is refused: pale denials",
		       policy_mode_name(policy->mode));
	jsonw_pair(out, "motd", text);
}

static void
put_started(const struct term_wait *wait, uint64_t number, struct buf *out)
{
	struct store_term row = { .state = "" };
	char id[TERMS_ID_MAX], line[512] = "";

	(void)terms_get_row(wait->warden, number, &row);
	terms_row_line(&row, line, sizeof(line));
	terms_id_text(number, id);
	jsonw_begin(out, '{');
	jsonw_pair(out, "id", id);
	jsonw_pair(out, "name", row.name);
	jsonw_pair(out, "state", row.state);
	jsonw_pair(out, "status", line);
	jsonw_pair_known(out, "pid", row.pid > 0, row.pid);
	jsonw_pair_uint(out, "cols", row.cols);
	jsonw_pair_uint(out, "rows", row.rows);
	put_motd(wait->warden, out);
	jsonw_end(out, '}');
}

static void
on_new(const struct terms_started *result, void *data)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	struct term_wait *wait = data;
	struct rpc_fault fault = { 0 };
	int r = 0;

	if (result->id != 0) {
		put_started(wait, result->id, &json);
	} else {
		bool named = result->error == -EINVAL && !result->code;

		r = rpc_fault_set(
			&fault, named ? RPC_INVALID_PARAMS : RPC_FAILED,
			result->code || named ? result->code : "TERM_STORE",
			"%s", result->why.text);
		fault.number = -result->error;
		if (named)
			(void)snprintf(fault.field, sizeof(fault.field),
				       "name");
	}
	if (wait->client)
		term_wait_answer(wait, r, &json, &fault);
	term_wait_unref(wait);
}

/* Answered by on_new() alone. */
static const struct term_wait_ops wait_new = { 0 };

int
terms_rpc_new(struct client *client, const struct rpc_message *message,
	      struct buf *ret_json, struct rpc_fault *ret_fault)
{
	_cleanup_(terms_new_params_fini) struct terms_new_params params = { 0 };
	struct term_wait *wait = NULL;
	int r = terms_rpc_enter(client, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = terms_new_params_take(message, &params, ret_fault);
	if (r == 0)
		r = term_wait_new(client, message, &wait_new, 0, &wait);
	if (r < 0)
		return r;
	term_wait_ref(wait);
	r = terms_new(client->server->warden, &params.request, on_new, wait);
	if (r < 0) {
		term_wait_answer(wait, r, NULL, ret_fault);
		term_wait_unref(wait);
	}
	return CALL_LATER;
}

/* ---- term.list, term.show ---- */

static void
put_row(const struct job *core, struct buf *out)
{
	struct store_term row;

	wterm_row(core->data, &row);
	terms_row_json(&row, out);
}

int
terms_rpc_list(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault)
{
	int r = terms_rpc_enter(client, ret_fault);

	return r < 0 ? r
		     : rows_list(message, client->server->warden->terms->core,
				 "terminals", put_row, ret_json, ret_fault);
}

int
terms_rpc_show(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *text = NULL;
	const struct rpc_field fields[] = { { "id", RPC_STRING, true, &text } };
	_cleanup_(buf_fini) struct buf row = { 0 };
	uint64_t id = 0;
	int r = rpc_params(message, fields, 1, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = terms_rpc_find(client, text, &id, ret_fault);
	if (r == 0)
		r = terms_state_json(client->server->warden, id, &row);
	return r != 0 ? r
		      : rows_show(client, message, &row, id, terms_read_spec);
}

/* ---- what is done to one ---- */

/* Whoever looks at the record after the answer finds it there. */
static int
answer_state(struct client *client, const struct rpc_message *message,
	     uint64_t id)
{
	struct term_wait *wait = NULL;
	int r = term_wait_new(client, message, &term_wait_recorded, id, &wait);

	if (r < 0)
		return r;
	term_wait_check(wait);
	return CALL_LATER;
}

int
terms_rpc_resize(struct client *client, const struct rpc_message *message,
		 struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *text = NULL;
	int64_t cols = 0, rows = 0;
	bool pin = false, unpin = false;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "cols", RPC_INTEGER, false, &cols },
		{ "rows", RPC_INTEGER, false, &rows },
		{ "pin", RPC_BOOLEAN, false, &pin },
		{ "unpin", RPC_BOOLEAN, false, &unpin },
	};
	uint64_t id = 0;
	int r = rpc_params(message, fields, 5, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = terms_rpc_find(client, text, &id, ret_fault);
	if (r < 0)
		return r;
	if (cols < 0 || rows < 0 || cols > 65535 || rows > 65535 ||
	    (cols == 0) != (rows == 0) || (cols == 0 && !unpin) ||
	    (pin && unpin))
		return rpc_fault_param(ret_fault, "cols",
				       "with rows, 1 to 65535, and either pin "
				       "or unpin");
	r = terms_resize(client->server->warden, id, (unsigned int)cols,
			 (unsigned int)rows,
			 pin	 ? TERMS_SIZE_PIN
			 : unpin ? TERMS_SIZE_UNPIN
				 : TERMS_SIZE_SET);
	return r < 0 ? terms_rpc_fault(r, text, ret_fault)
		     : answer_state(client, message, id);
}

static int
take_signal(const char *name, int *ret_signal, struct rpc_fault *fault)
{
	*ret_signal = job_signal_parse(name);
	if (*ret_signal <= 0)
		return rpc_fault_param(fault, "signal",
				       "a name such as INT, or a number");
	return 0;
}

int
terms_rpc_signal(struct client *client, const struct rpc_message *message,
		 struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *text = NULL, *name = NULL;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "signal", RPC_STRING, true, &name },
	};
	pid_t group = 0;
	uint64_t id = 0;
	int signal = 0;
	int r = rpc_params(message, fields, 2, ret_fault);

	if (r == 0)
		r = terms_rpc_find(client, text, &id, ret_fault);
	if (r == 0)
		r = take_signal(name, &signal, ret_fault);
	if (r < 0)
		return r;
	r = terms_signal(client->server->warden, id, signal, &group);
	if (r < 0)
		return terms_rpc_fault(r, text, ret_fault);
	jsonw_begin(ret_json, '{');
	jsonw_pair_int(ret_json, "signal", signal);
	jsonw_key(ret_json, "group");
	if (group > 0)
		jsonw_int(ret_json, group);
	else
		jsonw_null(ret_json);
	jsonw_end(ret_json, '}');
	return 0;
}

int
terms_rpc_kill(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *text = NULL;
	int64_t grace = JOBS_GRACE_MS;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "grace_ms", RPC_INTEGER, false, &grace },
	};
	struct term_wait *wait = NULL;
	uint64_t id = 0;
	int r = rpc_params(message, fields, 2, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = terms_rpc_find(client, text, &id, ret_fault);
	if (r < 0)
		return r;
	if (grace < 0 || grace > JOBS_GRACE_MAX_MS)
		return rpc_fault_param(ret_fault, "grace_ms", "0 to 600000");
	r = terms_kill(client->server->warden, id, (uint64_t)grace);
	if (r < 0)
		return terms_rpc_fault(r, text, ret_fault);
	r = term_wait_new(client, message, &term_wait_over, id, &wait);
	if (r < 0)
		return r;
	term_wait_limit(wait, (uint64_t)grace + JOBS_KILL_MS);
	term_wait_check(wait);
	return CALL_LATER;
}

int
terms_rpc_rename(struct client *client, const struct rpc_message *message,
		 struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const char *text = NULL, *name = NULL;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "name", RPC_STRING, false, &name },
	};
	uint64_t id = 0;
	int r = rpc_params(message, fields, 2, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = terms_rpc_find(client, text, &id, ret_fault);
	if (r == 0) {
		r = terms_rename(client->server->warden, id, name);
		if (r == -EINVAL)
			return rpc_fault_param(ret_fault, "name",
					       "1 to 64 bytes, no slash, and "
					       "not like an id");
		if (r < 0)
			return terms_rpc_fault(r, text, ret_fault);
	}
	return r < 0 ? r : answer_state(client, message, id);
}

/* ---- term.rm ---- */

struct rm {
	size_t left; /* on their way, and one for the asking */
	uint64_t count;
	int error;
	uint64_t failed;
	struct term_wait *wait;
};

static void
rm_done(struct rm *rm)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	struct rpc_fault fault = { 0 };
	struct term_wait *wait = rm->wait;
	char id[TERMS_ID_MAX];
	int r = rm->error;

	if (--rm->left > 0)
		return;
	terms_id_text(rm->failed, id);
	if (r < 0)
		r = terms_rpc_fault(r, id, &fault);
	jsonw_begin(&json, '{');
	jsonw_pair_uint(&json, "removed", rm->count);
	jsonw_end(&json, '}');
	if (wait->client)
		term_wait_answer(wait, r, &json, &fault);
	term_wait_unref(wait);
	free(rm);
}

static void
rm_failed(struct rm *rm, uint64_t id, int error)
{
	if (rm->error == 0) {
		rm->error = error;
		rm->failed = id;
	}
}

static void
on_removed(uint64_t id, int result, void *data)
{
	struct rm *rm = data;

	if (result == 0)
		rm->count++;
	else
		rm_failed(rm, id, result);
	rm_done(rm);
}

static int
take_ids(struct client *client, const json_t *array, uint64_t *ids,
	 struct rpc_fault *fault)
{
	size_t i;
	const json_t *item;
	int r;

	if (json_array_size(array) == 0 || json_array_size(array) > IDS_MAX)
		return rpc_fault_param(fault, "ids", "1 to 1000 ids");
	json_array_foreach(array, i, item)
	{
		if (!json_is_string(item))
			return rpc_fault_param(fault, "ids", "an array of ids");
		r = terms_rpc_find(client, json_string_value(item), &ids[i],
				   fault);
		if (r < 0)
			return r;
	}
	return 0;
}

int
terms_rpc_rm(struct client *client, const struct rpc_message *message,
	     struct buf *ret_json, struct rpc_fault *ret_fault)
{
	const json_t *array = NULL;
	const struct rpc_field fields[] = {
		{ "ids", RPC_ARRAY, true, &array },
	};
	struct warden *warden = client->server->warden;
	uint64_t ids[IDS_MAX] = { 0 };
	struct rm *rm;
	int r = rpc_params(message, fields, 1, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = take_ids(client, array, ids, ret_fault);
	if (r < 0)
		return r;
	rm = calloc(1, sizeof(*rm));
	if (!rm)
		return -ENOMEM;
	r = term_wait_new(client, message, &wait_new, 0, &rm->wait);
	if (r < 0) {
		free(rm);
		return r;
	}
	term_wait_ref(rm->wait);
	rm->left = 1;
	for (size_t i = 0; i < json_array_size(array) && rm->error == 0; i++) {
		r = terms_remove(warden, ids[i], on_removed, rm);
		if (r < 0)
			rm_failed(rm, ids[i], r);
		else
			rm->left++;
	}
	rm_done(rm);
	return CALL_LATER;
}
