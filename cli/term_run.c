/* SPDX-License-Identifier: MIT */

/*
 * pale term run, and send where it is more than bytes: what a terminal answers
 * is written when it is ready for more.
 *
 * How much that is the warden says; the bytes are read where they lie.
 */

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/term.h"
#include "pty/plain.h"
#include "warden/jobs_row.h"

#define WAIT_MS	  30000
#define MARGIN_MS 20000
#define CHUNK	  65536u
#define JSON_MAX  262144u
#define EXIT_NONE 125 /* how a command ended cannot be told */

/* ---- the output ---- */

struct output {
	struct segments *raw;
	struct plain *plain; /* NULL: as it came */
	uint64_t at, end;
};

static void
output_fini(struct output *output)
{
	segments_free(output->raw);
	plain_free(output->plain);
}

static int
put(const struct output *output, const void *bytes, size_t len, bool last)
{
	_cleanup_(buf_fini) struct buf text = { 0 };
	int r;

	if (!output->plain)
		return fd_write_all(STDOUT_FILENO, bytes, len);
	plain_feed(output->plain, bytes, len, &text);
	if (last)
		plain_end(output->plain, &text);
	r = buf_error(&text);
	return r < 0 ? r : fd_write_all(STDOUT_FILENO, text.data, text.len);
}

static int
copy(struct output *output)
{
	static unsigned char chunk[CHUNK];
	struct segments_view view = { 0 };
	int r = 0;

	while (r == 0 && output->at < output->end) {
		uint64_t left = output->end - output->at;

		r = segments_read(output->raw, NULL, output->at, chunk,
				  left < CHUNK ? (size_t)left : CHUNK, &view);
		if (r < 0 || view.next == output->at)
			break;
		/* Behind a gap, it may be more than was asked for. */
		if (view.next > output->end)
			view.len = 0;
		r = put(output, chunk, view.len, false);
		output->at = view.next;
	}
	return r == 0 ? put(output, "", 0, true) : r;
}

static uint64_t
number(const json_t *result, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(result, key));
}

static int
write_output(const struct term_record *record, const json_t *result, bool plain,
	     struct errmsg *why)
{
	_cleanup_(output_fini) struct output output = {
		.at = number(result, "offset"),
		.end = number(result, "to"),
	};
	_cleanup_(closep) int dir = -1;
	const json_t *terminal = json_object_get(result, "terminal");
	int r = term_open_dir(record, &dir, why);

	if (r < 0)
		return r;
	r = segments_open(dir, "raw", NULL, &output.raw);
	if (r == 0 && plain)
		r = plain_new((unsigned int)number(terminal, "cols"),
			      &output.plain);
	if (r == 0)
		r = copy(&output);
	return r < 0 ? errmsg_set(why, r, "cannot write the output: %s",
				  strerror(-r))
		     : 0;
}

/* ---- the request ---- */

struct sent {
	const struct term_options *options;
	struct term_record record;
	enum rpc_method method;
	bool waits, plain;
	json_t *result;
};

static int
ask(struct sent *sent, struct buf *params, struct errmsg *why)
{
	const struct term_options *options = sent->options;
	uint64_t ms = options->timeout_ms ? options->timeout_ms : WAIT_MS;
	int timeout = TERM_ASK_MS;
	int r;

	if (sent->waits) {
		jsonw_pair_uint(params, "timeout_ms", ms);
		jsonw_pair_bool(params, "plain", sent->plain);
		jsonw_pair_uint(params, "max",
				options->common.json ? JSON_MAX : 4);
		timeout = ms < INT_MAX - MARGIN_MS ? (int)ms + MARGIN_MS : -1;
	}
	r = term_ask(&sent->record, sent->method, params, timeout,
		     &sent->result, why);
	if (record_is_nobody(r))
		return errmsg_set(why, r, "the terminal has ended");
	return r;
}

static int
print_result(const struct sent *sent)
{
	_cleanup_(freep) char *text =
		json_dumps(sent->result, JSON_COMPACT | JSON_SORT_KEYS);
	struct buf out = { 0 };

	if (!text)
		return -ENOMEM;
	buf_puts(&out, text);
	return cli_print_json(&out);
}

static const char *
reason_of(const struct sent *sent)
{
	const char *reason =
		json_string_value(json_object_get(sent->result, "reason"));

	return reason ? reason : "";
}

/* What came, and on stderr why it was the time. */
static int
tell(const struct sent *sent, struct errmsg *why)
{
	const json_t *code = json_object_get(sent->result, "exit_code");
	int r;

	if (sent->options->common.json)
		return print_result(sent);
	if (!sent->waits)
		return 0;
	r = write_output(&sent->record, sent->result, sent->plain, why);
	if (r < 0 || sent->options->common.quiet)
		return r;
	if (!json_is_integer(code))
		cli_error("%s", reason_of(sent));
	else if (sent->method == RPC_TERM_SEND)
		cli_error("%s, exit code %lld", reason_of(sent),
			  (long long)json_integer_value(code));
	return 0;
}

static int
exit_status(const struct sent *sent)
{
	const json_t *code = json_object_get(sent->result, "exit_code");

	if (strcmp(reason_of(sent), "timeout") == 0)
		return RECORD_EXIT_TIMEOUT;
	if (sent->method == RPC_TERM_SEND)
		return 0;
	return json_is_integer(code) ? (int)json_integer_value(code)
				     : EXIT_NONE;
}

static void
sent_fini(struct sent *sent)
{
	term_record_fini(&sent->record);
	json_decref(sent->result);
}

static int
finish(struct sent *sent, struct buf *params, struct errmsg *why)
{
	int r = ask(sent, params, why);

	if (r == 0)
		r = tell(sent, why);
	return r < 0 ? record_fail(why) : exit_status(sent);
}

/* ---- send ---- */

int
term_send_typed(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(sent_fini) struct sent sent = { .options = options,
						  .method = RPC_TERM_SEND,
						  .waits = options->wait,
						  .plain = options->plain };
	_cleanup_(buf_fini) struct buf params = { 0 }, text = { 0 };
	struct errmsg why = { "" };
	int r = 0;

	if (options->from_stdin)
		r = errmsg_set(&why, -EINVAL,
			       "--stdin does not go with --keys, --paste or "
			       "--wait");
	for (int i = 1; i < argc; i++) {
		if (i > 1)
			buf_puts(&text, " ");
		buf_puts(&text, argv[i]);
	}
	if (r == 0 && buf_error(&text) < 0)
		r = errmsg_set(&why, -ENOMEM, "out of memory");
	if (r == 0)
		r = term_open(options, argv[0], &sent.record, &why);
	if (r < 0)
		return record_fail(&why);
	term_begin(&params, &sent.record);
	jsonw_key(&params, "data");
	jobs_put_base64(&params, text.data, text.len);
	jsonw_pair(&params, "encoding", "base64");
	if (options->keys)
		jsonw_pair(&params, "keys", options->keys);
	if (options->paste)
		jsonw_pair_bool(&params, "paste", true);
	jsonw_pair_bool(&params, "enter", options->enter);
	jsonw_pair_bool(&params, "wait", options->wait);
	jsonw_pair_bool(&params, "whole", true);
	r = finish(&sent, &params, &why);
	if (r == 0 && json_is_string(json_object_get(sent.result, "code"))) {
		cli_error("%s: the program does not read what waits already",
			  TERM_INPUT_FULL);
		return RECORD_EXIT_FAILED;
	}
	return r;
}

/* ---- run ---- */

static bool
is_safe(const char *word)
{
	static const char safe[] = "abcdefghijklmnopqrstuvwxyz"
				   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				   "_-./:=@,+";

	return *word && word[strspn(word, safe)] == '\0';
}

/* As bash, zsh and fish all read it: fish has an escape within quotes. */
static void
quote(const char *word, struct buf *out)
{
	if (is_safe(word)) {
		buf_puts(out, word);
		return;
	}
	buf_puts(out, "'");
	for (; *word; word++) {
		if (*word == '\'')
			buf_puts(out, "'\\''");
		else if (*word == '\\')
			buf_puts(out, "'\\\\'");
		else
			buf_put(out, word, 1);
	}
	buf_puts(out, "'");
}

int
term_run(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(sent_fini) struct sent sent = { .options = options,
						  .method = RPC_TERM_RUN,
						  .waits = true,
						  .plain = !options->raw };
	_cleanup_(buf_fini) struct buf params = { 0 }, text = { 0 };
	struct errmsg why = { "" };
	int r = term_open(options, argv[0], &sent.record, &why);

	if (r < 0)
		return record_fail(&why);
	if (argc == 2)
		buf_puts(&text, argv[1]);
	for (int i = 1; argc > 2 && i < argc; i++) {
		if (i > 1)
			buf_puts(&text, " ");
		quote(argv[i], &text);
	}
	term_begin(&params, &sent.record);
	jsonw_key(&params, "command");
	jsonw_bytes(&params, text.data, text.len);
	return finish(&sent, &params, &why);
}
