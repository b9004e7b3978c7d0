/* SPDX-License-Identifier: MIT */

/*
 * Nothing is answered from within an event of a terminal: who is answered may
 * go, and what he waited for with him.  An event is noted, and has the timer of
 * the request run out, which is where everything is decided.
 */

#include "warden/terms_rpc_until.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/limits.h"
#include "pty/keys.h"
#include "pty/plain.h"
#include "warden/stream_json.h"
#include "warden/terms_priv.h"

#define TIMEOUT_MAX (365ll * 24 * 3600 * 1000)
#define IDLE_MS	    3000
#define BYTES_MAX   (1ll << 53)
#define FIRST_MS    5000 /* for the first prompt of a shell */
#define PASTE_MS    200	 /* for what it says right after one */
#define EARLY_MS    10
#define CHUNK	    (64u << 10)

struct pending {
	struct term_wait *wait;
	uint64_t fed;	      /* as far as growth was noticed */
	uint64_t deadline_ms; /* UINT64_MAX: none */

	/* term.wait */
	struct until until;
	enum wait_for whats[WAITS_MAX];

	/* term.send, term.run */
	bool sends;
	struct sending sending;
	bool written;
	size_t taken;
	struct ready ready;
};

static const struct term_wait_ops pending_ops;

static uint64_t
now_ms(void)
{
	return (uint64_t)(clock_mono_ns() / 1000000);
}

static struct term_shell *
shell_of(const struct pending *p)
{
	struct wterm *term =
		terms_host_find(p->wait->warden->terms, p->wait->id);

	return term ? &term->shell : NULL;
}

/* ---- its life ---- */

static void on_timer(uv_timer_t *timer);

static void
arm(struct pending *p, uint64_t ms)
{
	(void)uv_timer_start(&p->wait->timer, on_timer, ms, 0);
}

static void
pending_gone(struct term_wait *wait)
{
	struct pending *p = wait->data;
	struct term_shell *shell;

	if (!p)
		return;
	shell = shell_of(p);
	if (p->sends && shell)
		shell->sending = false;
	wait->warden->terms->n_until--;
	until_fini(&p->until);
	buf_fini(&p->sending.bytes);
	free(p->sending.command);
	free(p);
	wait->data = NULL;
}

static int
pending_new(struct client *client, const struct rpc_message *message,
	    uint64_t id, struct pending **ret_pending)
{
	struct terms_host *host = client->server->warden->terms;
	struct pending *p;
	int r;

	if (host->n_until >= LIMIT_TERM_UNTIL)
		return -ENOBUFS;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	r = term_wait_new(client, message, &pending_ops, id, &p->wait);
	if (r < 0) {
		free(p);
		return r;
	}
	host->n_until++;
	p->wait->data = p;
	p->deadline_ms = UINT64_MAX;
	p->fed = terms_fed(p->wait->warden, id);
	*ret_pending = p;
	return 0;
}

static void
answer(struct pending *p, int r, struct buf *json, struct rpc_fault *fault)
{
	struct term_wait *wait = p->wait;

	if (r == 0)
		r = buf_error(json);
	term_wait_answer(wait, r, json, fault);
}

static void
fail(struct pending *p, int r)
{
	struct rpc_fault fault = { 0 };

	if (r == -ELOOP)
		r = rpc_fault_set(&fault, RPC_FAILED, TERM_PATTERN,
				  "a pattern takes too long on this output");
	else if (r == -ENOENT)
		r = rpc_fault_set(&fault, RPC_FAILED, TERM_NOT_FOUND,
				  "the terminal was removed");
	answer(p, r, NULL, &fault);
}

static void
put_terminal(const struct pending *p, struct buf *json)
{
	struct buf row = { 0 };

	jsonw_key(json, "terminal");
	if (terms_state_json(p->wait->warden, p->wait->id, &row) == 0)
		jsonw_raw(json, row.data, row.len);
	else
		jsonw_null(json);
	buf_fini(&row);
}

/* ---- term.wait ---- */

static const char *const what_names[] = {
	[WAIT_FOR_PATTERN] = "pattern", [WAIT_FOR_IDLE] = "idle",
	[WAIT_FOR_PROMPT] = "prompt",	[WAIT_FOR_EXIT] = "exit",
	[WAIT_FOR_BYTES] = "bytes",
};

static void
put_match(const struct waits_result *result, struct buf *json)
{
	jsonw_key(json, "match");
	jsonw_begin(json, '{');
	jsonw_key(json, "text");
	jsonw_bytes(json, result->text.data, result->text.len);
	jsonw_pair_uint(json, "from", result->from);
	jsonw_pair_uint(json, "to", result->to);
	jsonw_pair_strv(json, "groups", &result->groups);
	jsonw_end(json, '}');
}

static void
answer_until(struct pending *p, const char *reason)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	const struct waits_result *result = waits_result(p->until.waits);
	struct rpc_fault fault = { 0 };

	jsonw_begin(&json, '{');
	jsonw_pair(&json, "reason",
		   reason ? reason : what_names[p->whats[result->index]]);
	jsonw_key(&json, "index");
	if (reason)
		jsonw_null(&json);
	else
		jsonw_uint(&json, result->index);
	jsonw_pair_uint(&json, "cursor",
			reason ? until_resume(&p->until) : result->to);
	if (!reason && p->whats[result->index] == WAIT_FOR_PATTERN)
		put_match(result, &json);
	put_terminal(p, &json);
	jsonw_end(&json, '}');
	answer(p, 0, &json, &fault);
}

static void
look_until(struct pending *p)
{
	uint64_t due = UINT64_MAX, now;
	int r = until_look(&p->until, &due);

	if (r < 0) {
		fail(p, r);
		return;
	}
	now = now_ms();
	if (r == UNTIL_HAPPENED)
		answer_until(p, NULL);
	else if (r == UNTIL_ENDED)
		answer_until(p, "exit");
	else if (now >= p->deadline_ms)
		answer_until(p, "timeout");
	else if (r == UNTIL_BEHIND)
		arm(p, 0);
	else if (due != UINT64_MAX || p->deadline_ms != UINT64_MAX) {
		due = due < p->deadline_ms ? due : p->deadline_ms;
		arm(p, due > now ? due - now : 1);
	}
}

static int
find_what(const char *word)
{
	const size_t n = sizeof(what_names) / sizeof(what_names[0]);

	for (size_t i = 0; word && i < n; i++)
		if (strcmp(word, what_names[i]) == 0)
			return (int)i;
	return -1;
}

/* "exit", or {"idle": 500}: a word, or a word and its amount or pattern. */
static int
take_condition(const json_t *item, struct wait_condition *ret,
	       struct rpc_fault *fault)
{
	const char *word = json_string_value(item);
	const json_t *amount = NULL;
	int what;

	if (json_is_object(item) && json_object_size(item) == 1) {
		void *at = json_object_iter((json_t *)(uintptr_t)item);

		word = json_object_iter_key(at);
		amount = json_object_iter_value(at);
	}
	what = find_what(word);
	if (what < 0)
		return rpc_fault_param(fault, "for",
				       "pattern, idle, prompt, exit or bytes");
	*ret = (struct wait_condition){ .what = (enum wait_for)what,
					.amount = IDLE_MS };
	if (what == WAIT_FOR_PATTERN) {
		ret->pattern = json_string_value(amount);
		return ret->pattern ? 0
				    : rpc_fault_param(fault, "for",
						      "{\"pattern\": TEXT}");
	}
	if (what == WAIT_FOR_PROMPT || what == WAIT_FOR_EXIT ||
	    (what == WAIT_FOR_IDLE && !amount))
		return 0;
	if (!json_is_integer(amount) || json_integer_value(amount) < 1 ||
	    json_integer_value(amount) > BYTES_MAX)
		return rpc_fault_param(fault, "for", "an amount from 1 on");
	ret->amount = (uint64_t)json_integer_value(amount);
	return 0;
}

struct wait_params {
	uint64_t id, timeout_ms;
	struct wait_condition conditions[WAITS_MAX];
	struct until_start start;
};

static int
take_conditions(const json_t *array, struct wait_params *params,
		struct rpc_fault *fault)
{
	const json_t *item;
	size_t i;
	int r;

	params->start.conditions = params->conditions;
	if (!array) {
		params->conditions[0].what = WAIT_FOR_EXIT;
		params->start.n = 1;
		return 0;
	}
	if (json_array_size(array) == 0 || json_array_size(array) > WAITS_MAX)
		return rpc_fault_param(fault, "for", "1 to 16 conditions");
	json_array_foreach(array, i, item)
	{
		r = take_condition(item, &params->conditions[i], fault);
		if (r < 0)
			return r;
	}
	params->start.n = i;
	return 0;
}

static int
take_wait(struct client *client, const struct rpc_message *message,
	  struct wait_params *params, struct rpc_fault *fault)
{
	const char *text = NULL;
	const json_t *conditions = NULL;
	int64_t timeout = 0, cursor = INT64_MIN;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "for", RPC_ARRAY, false, &conditions },
		{ "cursor", RPC_INTEGER, false, &cursor },
		{ "timeout_ms", RPC_INTEGER, false, &timeout },
	};
	uint64_t end;
	int r = rpc_params(message, fields, 4, fault);

	if (r == 0)
		r = terms_rpc_find(client, text, &params->id, fault);
	if (r == 0)
		r = take_conditions(conditions, params, fault);
	if (r < 0)
		return r;
	if (timeout < 0 || timeout > TIMEOUT_MAX)
		return rpc_fault_param(fault, "timeout_ms",
				       "0 (for ever) to a year");
	params->timeout_ms = (uint64_t)timeout;
	(void)terms_catch_up(client->server->warden, params->id);
	r = terms_end(client->server->warden, params->id, &end, NULL);
	params->start.now = cursor == INT64_MIN;
	params->start.offset = end;
	if (cursor >= 0)
		params->start.offset = (uint64_t)cursor;
	else if (cursor != INT64_MIN)
		params->start.offset =
			(uint64_t)-cursor < end ? end - (uint64_t)-cursor : 0;
	return r == 0 && params->start.offset > end ? -ERANGE : r;
}

int
terms_rpc_wait(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct wait_params params = { 0 };
	struct pending *p = NULL;
	struct errmsg why = { "" };
	int r = take_wait(client, message, &params, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = pending_new(client, message, params.id, &p);
	if (!p)
		return terms_rpc_fault(r, "", ret_fault);
	for (size_t i = 0; i < params.start.n; i++)
		p->whats[i] = params.conditions[i].what;
	if (params.timeout_ms > 0)
		p->deadline_ms = now_ms() + params.timeout_ms;
	r = until_init(&p->until, client->server->warden, params.id,
		       &params.start, &why);
	if (r == -EINVAL) {
		r = rpc_fault_set(ret_fault, RPC_INVALID_PARAMS, NULL, "%s",
				  why.text);
		(void)snprintf(ret_fault->field, sizeof(ret_fault->field),
			       "for");
	}
	if (r < 0)
		answer(p, r, NULL, ret_fault);
	else
		arm(p, 0);
	return CALL_LATER;
}

/* ---- what a terminal answered ---- */

struct range {
	uint64_t from, to;
};

/* Of a command, its own; else all that came since. */
static struct range
find_range(const struct pending *p)
{
	const struct ready *ready = &p->ready;
	struct range range = { ready->cursor, 0 };
	bool run = p->sending.command != NULL;

	range.to = terms_fed(p->wait->warden, p->wait->id);
	if (run && ready->has_output)
		range.from = ready->output_from;
	if (run && ready->has_end && ready->output_to >= range.from)
		range.to = ready->output_to;
	if (range.to < range.from)
		range.to = range.from;
	return range;
}

/* *ret_view: `len` is what was read in all. */
static int
read_range(const struct pending *p, struct range range, struct buf *bytes,
	   struct segments_view *ret_view)
{
	static unsigned char chunk[CHUNK];
	uint64_t at = range.from, left = p->sending.max;
	struct segments_view view = { .next = range.from };

	*ret_view = view;
	while (at < range.to && left > 0) {
		uint64_t size = range.to - at < left ? range.to - at : left;
		const struct terms_span span = {
			.offset = at,
			.buf = chunk,
			.size = size < CHUNK ? (size_t)size : CHUNK,
		};
		int r = terms_read(p->wait->warden, p->wait->id, NULL, &span,
				   &view);

		if (r < 0)
			return r;
		if (view.reason != SEGMENTS_KEPT &&
		    ret_view->reason == SEGMENTS_KEPT)
			*ret_view = view;
		if (view.next == at || view.lost_to > range.to)
			break;
		buf_put(bytes, chunk, view.len);
		at = view.next;
		left -= view.len;
	}
	ret_view->len = bytes->len;
	ret_view->next = at;
	return buf_error(bytes);
}

static int
make_plain(const struct pending *p, const struct buf *bytes, bool more,
	   struct segments_view *view, struct buf *out)
{
	_cleanup_(plain_freep) struct plain *plain = NULL;
	struct terms_size size = { 0 };
	int r;

	(void)terms_get_size(p->wait->warden, p->wait->id, &size);
	r = plain_new(size.cols, &plain);
	if (r < 0)
		return r;
	plain_feed(plain, bytes->data, bytes->len, out);
	/* Who reads on later begins with what is cut. */
	if (more)
		view->next -= plain_unfinished(plain);
	plain_end(plain, out);
	return buf_error(out);
}

static int
put_output(const struct pending *p, struct buf *json)
{
	_cleanup_(buf_fini) struct buf bytes = { 0 }, text = { 0 };
	struct range range = find_range(p);
	struct segments_view view = { 0 };
	int r = read_range(p, range, &bytes, &view);

	if (r == 0 && p->sending.plain)
		r = make_plain(p, &bytes, view.next < range.to, &view, &text);
	else if (r == 0 && view.next < range.to)
		stream_cut_text(bytes.data, &view);
	if (r < 0)
		return r;
	jsonw_pair_uint(json, "offset", range.from);
	jsonw_pair_uint(json, "next", view.next);
	jsonw_pair_uint(json, "to", range.to);
	jsonw_pair_bool(json, "truncated", view.next < range.to);
	jsonw_pair_bool(json, "lost", view.reason != SEGMENTS_KEPT);
	jsonw_pair_bool(json, "plain", p->sending.plain);
	jsonw_key(json, "data");
	if (p->sending.plain)
		jsonw_bytes(json, text.data, text.len);
	else
		jsonw_bytes(json, bytes.data, view.len);
	return 0;
}

static void
answer_ready(struct pending *p)
{
	_cleanup_(buf_fini) struct buf json = { 0 };
	const struct ready *ready = &p->ready;
	struct rpc_fault fault = { 0 };
	bool echo = false, canonical = false;
	int r;

	jsonw_begin(&json, '{');
	jsonw_pair(&json, "reason", ready_name(ready->reason));
	jsonw_key(&json, "exit_code");
	if (ready->has_end && ready->exit_code >= 0)
		jsonw_int(&json, ready->exit_code);
	else
		jsonw_null(&json);
	jsonw_pair_uint(&json, "cursor", ready->cursor);
	jsonw_pair_uint(&json, "taken", p->taken);
	(void)terms_catch_up(p->wait->warden, p->wait->id);
	r = put_output(p, &json);
	ready_tty(ready, &echo, &canonical);
	jsonw_pair_bool(&json, "echo", echo);
	jsonw_pair_bool(&json, "canonical", canonical);
	put_terminal(p, &json);
	jsonw_end(&json, '}');
	answer(p, r, &json, &fault);
}

/* ---- term.send, term.run ---- */

int
terms_rpc_check_written(const struct terms_written *written, size_t len,
			struct rpc_fault *fault)
{
	if (written->too_long)
		return rpc_fault_set(
			fault, RPC_FAILED, TERM_INPUT_FULL,
			"0 of %zu bytes were taken: the program reads lines, "
			"and a line of more than 4095 bytes would be cut; send "
			"it by parts, or through a file",
			len);
	if (written->taken < len)
		return rpc_fault_set(
			fault, RPC_FAILED, TERM_INPUT_FULL,
			"%zu of %zu bytes were taken, the program does not "
			"read the rest now",
			written->taken, len);
	return 0;
}

/* Lines are one input, where the shell knows what is pasted. */
static int
type_command(struct pending *p)
{
	const char *command = p->sending.command;
	const struct vt *vt = terms_vt(p->wait->warden, p->wait->id);
	struct buf *bytes = &p->sending.bytes;
	struct term_shell *shell = shell_of(p);

	/* What stands in its editor would become part of the command. */
	if (shell && term_shell_at_prompt(shell)) {
		if (shell->keeps || shell->answered)
			buf_puts(bytes, "\025");
		shell->answered = false;
	}
	keys_paste(command, strlen(command),
		   vt && vt_bracketed_paste(vt) && strchr(command, '\n'),
		   bytes);
	buf_puts(bytes, "\r");
	return buf_error(bytes);
}

static void
write_now(struct pending *p)
{
	struct sending *sending = &p->sending;
	struct terms_written written = { 0 };
	struct rpc_fault fault = { 0 };
	int r;

	p->written = true;
	r = sending->command ? type_command(p) : 0;
	if (r == 0)
		r = terms_write(p->wait->warden, p->wait->id,
				sending->bytes.data, sending->bytes.len,
				sending->whole ? TERMS_WRITE_WHOLE : 0,
				&written);
	r = r < 0 ? terms_rpc_fault(r, "", &fault)
		  : terms_rpc_check_written(&written, sending->bytes.len,
					    &fault);
	if (r < 0) {
		answer(p, r, NULL, &fault);
		return;
	}
	p->taken = written.taken;
	ready_begin(&p->ready, written.cursor, sending->bytes.data,
		    sending->bytes.len, sending->timeout_ms);
	arm(p, 1);
}

/*
 * What a shell is given before its first prompt may be lost; and that it wants
 * to know of pastes it says right after the prompt.
 */
static bool
is_early(const struct pending *p, const struct term_shell *shell)
{
	uint64_t now = now_ms();
	const struct vt *vt;

	if (!p->sending.command || now >= p->deadline_ms)
		return false;
	if (term_shell_will_prompt(shell))
		return true;
	if (!term_shell_at_prompt(shell) || !strchr(p->sending.command, '\n') ||
	    now + FIRST_MS - PASTE_MS >= p->deadline_ms)
		return false;
	vt = terms_vt(p->wait->warden, p->wait->id);
	return vt && !vt_bracketed_paste(vt);
}

static void
look_ready(struct pending *p)
{
	const struct term_shell *shell = shell_of(p);
	uint64_t due = 0;

	if (!shell)
		fail(p, -ENOENT);
	else if (!p->written && is_early(p, shell))
		arm(p, EARLY_MS);
	else if (!p->written)
		write_now(p);
	else if (ready_look(&p->ready, &due) != READY_NOT)
		answer_ready(p);
	else
		arm(p, due > 0 ? due : 1);
}

static int
check_free(struct warden *warden, const struct sending *sending,
	   const struct ready *ready, struct rpc_fault *fault)
{
	const struct wterm *term = terms_host_find(warden->terms, sending->id);

	if (!term)
		return -ENOENT;
	if (!term->pty || !terms_is_live(warden, sending->id))
		return -EPIPE;
	if (term->shell.sending)
		return rpc_fault_set(fault, RPC_FAILED, TERM_BUSY,
				     "somebody sends to this terminal and "
				     "waits");
	/* Of a program that waits for input the text may well be one. */
	if (sending->command && term_shell_runs(&term->shell) &&
	    ready->before.state < PROBE_MIXED)
		return rpc_fault_set(fault, RPC_FAILED, TERM_BUSY,
				     "a command runs in this terminal, and "
				     "does not wait for input");
	return 0;
}

int
terms_rpc_send_wait(struct client *client, const struct rpc_message *message,
		    struct sending *sending, struct rpc_fault *fault)
{
	struct warden *warden = client->server->warden;
	struct pending *p = NULL;
	struct ready ready;
	int r;

	(void)terms_catch_up(warden, sending->id);
	ready_prepare(&ready, warden, sending->id);
	r = check_free(warden, sending, &ready, fault);
	if (r == 0)
		r = pending_new(client, message, sending->id, &p);
	if (!p)
		return r;
	p->sends = true;
	p->sending = *sending;
	sending->bytes = (struct buf){ 0 };
	sending->command = NULL;
	p->ready = ready;
	p->deadline_ms = now_ms() + FIRST_MS;
	shell_of(p)->sending = true;
	look_ready(p);
	return CALL_LATER;
}

/* ---- what happens ---- */

static void
look(struct pending *p)
{
	if (p->sends)
		look_ready(p);
	else
		look_until(p);
}

static void
on_timer(uv_timer_t *timer)
{
	struct term_wait *wait = timer->data;

	if (wait->data)
		look(wait->data);
}

/* Its timer is ours, and so is every decision. */
static const struct term_wait_ops pending_ops = { .gone = pending_gone };

static void
note(struct pending *p, enum terms_event event, const struct vt_event *model)
{
	uint64_t fed = terms_fed(p->wait->warden, p->wait->id);

	if (event == TERMS_MODEL && p->sends && p->written)
		ready_note(&p->ready, model);
	if (event == TERMS_MODEL && !p->sends)
		until_note(&p->until, model);
	if (event == TERMS_FED && p->sends && p->written && fed != p->fed)
		ready_grew(&p->ready);
	if (event == TERMS_FED)
		p->fed = fed;
	if (event == TERMS_EXITED || event == TERMS_GONE ||
	    (event == TERMS_FED && !p->sends) ||
	    (event == TERMS_MODEL && model->kind == VT_EVENT_MARK))
		arm(p, 0);
}

void
terms_until_event(struct warden *warden, uint64_t id, enum terms_event event,
		  const struct vt_event *model)
{
	struct client *client;
	struct term_wait *wait;

	if (!warden->server || warden->terms->n_until == 0)
		return;
	LIST_FOREACH(client, &warden->server->clients, link)
	LIST_FOREACH(wait, &client->term_waits, link)
	if (wait->ops == &pending_ops && wait->id == id && wait->data)
		note(wait->data, event, model);
}
