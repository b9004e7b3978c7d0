/* SPDX-License-Identifier: MIT */

/* term.send and term.run: what is typed. */

#include <string.h>

#include "base/json.h"
#include "pty/keys.h"
#include "pty/vt.h"
#include "warden/stream_json.h"
#include "warden/terms_rpc_until.h"

#define TIMEOUT_MAX (24ll * 3600 * 1000)

/* As the parameters have it. */
struct typed {
	const char *data, *encoding, *keys;
	bool paste, enter;
	bool as_it_is; /* `paste` is said to be false */
};

static struct keys_modes
key_modes(struct vt *vt)
{
	struct vt_state state = { 0 };

	if (vt)
		vt_state(vt, &state);
	return (struct keys_modes){ .app_cursor = state.app_cursor,
				    .app_keypad = state.app_keypad };
}

/*
 * Several lines are pasted where the program wants to know of pastes; the end
 * of the last one is Enter.  True: it was, and half of it would not do.
 */
static bool
put_text(const struct typed *typed, const struct buf *text, bool bracketed,
	 struct buf *out)
{
	size_t len = text->len;

	if (typed->paste) {
		keys_paste(text->data, len, bracketed, out);
		return true;
	}
	if (typed->as_it_is || !bracketed || len < 2 ||
	    !memchr(text->data, '\n', len - 1)) {
		buf_put(out, text->data, len);
		return false;
	}
	if (text->data[len - 1] == '\n')
		len--;
	keys_paste(text->data, len, true, out);
	if (len < text->len)
		buf_puts(out, "\r");
	return true;
}

/* First the text, then the keys, then Enter. */
static int
make_bytes(struct client *client, const struct typed *typed,
	   struct sending *sending, struct rpc_fault *fault)
{
	struct vt *vt = terms_vt(client->server->warden, sending->id);
	struct buf *out = &sending->bytes;
	bool bracketed = vt && vt_bracketed_paste(vt);
	_cleanup_(buf_fini) struct buf text = { 0 };
	struct keys_modes modes = key_modes(vt);
	struct errmsg why = { "" };
	int r = stream_take_data(typed->data, typed->encoding, &text, fault);

	if (r < 0)
		return r;
	sending->whole |= put_text(typed, &text, bracketed, out);
	if (typed->keys) {
		r = keys_encode(typed->keys, &modes, out, &why);
		if (r == -EINVAL)
			return rpc_fault_param(fault, "keys", why.text);
	}
	if (typed->enter)
		buf_puts(out, "\r");
	return buf_error(out);
}

static int
check_sending(int64_t timeout, int64_t max, struct sending *sending,
	      struct rpc_fault *fault)
{
	if (timeout < 1 || timeout > TIMEOUT_MAX)
		return rpc_fault_param(fault, "timeout_ms", "1 ms to a day");
	if (max < 1 || max > SEND_MAX_MAX)
		return rpc_fault_param(fault, "max", "1 to 262144");
	sending->timeout_ms = (uint64_t)timeout;
	/* One character at least. */
	sending->max = max < 4 ? 4 : (uint64_t)max;
	return 0;
}

static int
send_now(struct client *client, const struct sending *sending,
	 struct buf *ret_json, struct rpc_fault *fault)
{
	struct terms_written written = { 0 };
	size_t len = sending->bytes.len;
	int r = terms_write(client->server->warden, sending->id,
			    sending->bytes.data, len,
			    sending->whole ? TERMS_WRITE_WHOLE : 0, &written);

	if (r == 0 && written.too_long)
		r = terms_rpc_check_written(&written, len, fault);
	if (r < 0)
		return r;
	jsonw_begin(ret_json, '{');
	jsonw_pair_uint(ret_json, "cursor", written.cursor);
	jsonw_pair_uint(ret_json, "taken", written.taken);
	jsonw_pair(ret_json, "code",
		   written.taken < len ? TERM_INPUT_FULL : NULL);
	jsonw_end(ret_json, '}');
	return 0;
}

int
terms_rpc_send(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct typed typed = { .data = "", .encoding = "text" };
	struct sending sending = { 0 };
	const char *text = NULL;
	int64_t timeout = SEND_TIMEOUT_MS, max = SEND_MAX;
	bool wait = false;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "data", RPC_STRING, false, &typed.data },
		{ "encoding", RPC_STRING, false, &typed.encoding },
		{ "paste", RPC_BOOLEAN, false, &typed.paste },
		{ "keys", RPC_STRING, false, &typed.keys },
		{ "enter", RPC_BOOLEAN, false, &typed.enter },
		{ "whole", RPC_BOOLEAN, false, &sending.whole },
		{ "wait", RPC_BOOLEAN, false, &wait },
		{ "timeout_ms", RPC_INTEGER, false, &timeout },
		{ "plain", RPC_BOOLEAN, false, &sending.plain },
		{ "max", RPC_INTEGER, false, &max },
	};
	int r = rpc_params(message, fields, sizeof(fields) / sizeof(fields[0]),
			   ret_fault);

	if (r == 0)
		r = terms_rpc_find(client, text, &sending.id, ret_fault);
	if (r == 0)
		r = check_sending(timeout, max, &sending, ret_fault);
	typed.as_it_is =
		json_is_false(json_object_get(message->params, "paste"));
	if (r == 0)
		r = make_bytes(client, &typed, &sending, ret_fault);
	if (r == 0)
		r = wait ? terms_rpc_send_wait(client, message, &sending,
					       ret_fault)
			 : send_now(client, &sending, ret_json, ret_fault);
	buf_fini(&sending.bytes);
	return r < 0 ? terms_rpc_fault(r, text, ret_fault) : r;
}

/* Without the end of the line, which Enter is. */
static int
take_command(const char *command, char **ret_command, struct rpc_fault *fault)
{
	char *text = json_unescape(command);
	size_t len;

	if (!text)
		return -ENOMEM;
	len = strlen(text);
	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		text[--len] = '\0';
	if (len == 0) {
		free(text);
		return rpc_fault_param(fault, "command", "not empty");
	}
	*ret_command = text;
	return 0;
}

int
terms_rpc_run(struct client *client, const struct rpc_message *message,
	      struct buf *ret_json, struct rpc_fault *ret_fault)
{
	struct sending sending = { .plain = true, .whole = true };
	const char *text = NULL, *given = NULL;
	int64_t timeout = SEND_TIMEOUT_MS, max = SEND_MAX;
	const struct rpc_field fields[] = {
		{ "id", RPC_STRING, true, &text },
		{ "command", RPC_STRING, true, &given },
		{ "timeout_ms", RPC_INTEGER, false, &timeout },
		{ "plain", RPC_BOOLEAN, false, &sending.plain },
		{ "max", RPC_INTEGER, false, &max },
	};
	int r = rpc_params(message, fields, 5, ret_fault);

	(void)ret_json;
	if (r == 0)
		r = terms_rpc_find(client, text, &sending.id, ret_fault);
	if (r == 0)
		r = check_sending(timeout, max, &sending, ret_fault);
	if (r == 0)
		r = take_command(given, &sending.command, ret_fault);
	if (r == 0)
		r = terms_rpc_send_wait(client, message, &sending, ret_fault);
	free(sending.command);
	return r < 0 ? terms_rpc_fault(r, text, ret_fault) : r;
}
