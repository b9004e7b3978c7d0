/* SPDX-License-Identifier: MIT */

/* pale term wait: until something has happened. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/term.h"

#define MARGIN_MS 10000

/* ---- conditions ---- */

static void
put_amount(struct buf *out, const char *key, uint64_t amount)
{
	jsonw_begin(out, '{');
	jsonw_pair_uint(out, key, amount);
	jsonw_end(out, '}');
}

/* A word of ours, or a pattern; "pattern=exit" is one in any case. */
static int
put_condition(struct buf *out, const char *text, struct errmsg *why)
{
	uint64_t amount;

	if (strcmp(text, "exit") == 0 || strcmp(text, "prompt") == 0 ||
	    strcmp(text, "idle") == 0) {
		jsonw_text(out, text);
		return 0;
	}
	if (strncmp(text, "idle=", 5) == 0) {
		if (units_duration_ms(text + 5, &amount) < 0 || amount == 0)
			return errmsg_set(why, -EINVAL,
					  "--for idle= takes a duration, not "
					  "'%s'",
					  text + 5);
		put_amount(out, "idle", amount);
		return 0;
	}
	if (strncmp(text, "bytes=", 6) == 0) {
		if (units_size(text + 6, &amount) < 0 || amount == 0)
			return errmsg_set(why, -EINVAL,
					  "--for bytes= takes a size, not '%s'",
					  text + 6);
		put_amount(out, "bytes", amount);
		return 0;
	}
	if (strncmp(text, "pattern=", 8) == 0)
		text += 8;
	jsonw_begin(out, '{');
	jsonw_pair(out, "pattern", text);
	jsonw_end(out, '}');
	return 0;
}

static int
put_params(const struct term_options *options, struct buf *out,
	   struct errmsg *why)
{
	const char *cursor = options->cursor;
	char *rest = NULL;
	int r = 0;

	if (cursor) {
		long long at = strtoll(cursor, &rest, 10);

		if (rest == cursor || *rest)
			return errmsg_set(why, -EINVAL,
					  "--cursor takes a number");
		jsonw_pair_int(out, "cursor", at);
	}
	jsonw_pair_uint(out, "timeout_ms", options->timeout_ms);
	if (options->until.count == 0)
		return 0;
	jsonw_key(out, "for");
	jsonw_begin(out, '[');
	for (size_t i = 0; r == 0 && i < options->until.count; i++)
		r = put_condition(out, options->until.items[i], why);
	jsonw_end(out, ']');
	return r;
}

/* ---- results ---- */

static const char *
text_of(const json_t *result, const char *key)
{
	const char *text = json_string_value(json_object_get(result, key));

	return text ? text : "";
}

static int
print_result(const struct term_options *options, const json_t *result)
{
	_cleanup_(freep) char *text = NULL;
	const json_t *match = json_object_get(result, "match");
	struct buf out = { 0 };

	if (options->common.json) {
		text = json_dumps(result, JSON_COMPACT | JSON_SORT_KEYS);
		if (!text)
			return -ENOMEM;
		buf_puts(&out, text);
		return cli_print_json(&out);
	}
	if (options->common.quiet)
		return 0;
	text = json_unescape(match ? text_of(match, "text")
				   : text_of(result, "reason"));
	if (!text)
		return -ENOMEM;
	printf("%s\n", text);
	return 0;
}

/* Whether its end is all that is waited for. */
static bool
is_for_exit(const struct term_options *options)
{
	for (size_t i = 0; i < options->until.count; i++)
		if (strcmp(options->until.items[i], "exit") != 0)
			return false;
	return true;
}

static int
ask(const struct term_options *options, const struct term_record *record,
    json_t **ret_result, struct errmsg *why)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	uint64_t ms = options->timeout_ms;
	int r;

	term_begin(&params, record);
	r = put_params(options, &params, why);
	return r < 0 ? r
		     : term_ask(record, RPC_TERM_WAIT, &params,
				ms > 0 && ms < INT_MAX - MARGIN_MS
					? (int)ms + MARGIN_MS
					: -1,
				ret_result, why);
}

/* By its record alone where it has ended, or no warden lives. */
static int
wait_exit(const struct term_options *options, struct term_record *record)
{
	struct errmsg why = { "" };
	json_t *result = NULL;
	bool timeout = false;
	int r = 0, status;

	if (record->row.ended_ns == 0) {
		r = ask(options, record, &result, &why);
		timeout = strcmp(text_of(result, "reason"), "timeout") == 0;
		json_decref(result);
		if (r == 0)
			r = term_reload(record, &why);
		else if (record_is_nobody(r))
			r = term_reload_gone(record, &why);
	}
	if (r < 0)
		return record_fail(&why);
	if (!options->common.quiet || options->common.json)
		(void)term_print(options, &record->row, "");
	status = terms_row_exit(&record->row);
	return timeout || status < 0 ? RECORD_EXIT_TIMEOUT : status;
}

static int
wait_any(const struct term_options *options, struct term_record *record)
{
	struct errmsg why = { "" };
	json_t *result = NULL;
	const char *reason;
	int r = ask(options, record, &result, &why), status = 0;

	if (record_is_nobody(r))
		(void)errmsg_set(&why, r, "the terminal has ended");
	if (r == 0 && print_result(options, result) < 0)
		r = errmsg_set(&why, -ENOMEM, "out of memory");
	reason = text_of(result, "reason");
	if (r == 0 && strcmp(reason, "timeout") == 0)
		status = RECORD_EXIT_TIMEOUT;
	else if (r == 0 && strcmp(reason, "exit") == 0) {
		/* Of a program that ended first, nothing was waited for. */
		r = term_reload(record, &why);
		status = json_is_null(json_object_get(result, "index"))
				 ? RECORD_EXIT_FAILED
				 : terms_row_exit(&record->row);
	}
	json_decref(result);
	return r < 0 ? record_fail(&why) : status;
}

int
term_wait(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(term_record_fini) struct term_record record = { 0 };
	struct errmsg why = { "" };
	int r = term_open(options, argv[0], &record, &why);

	(void)argc;
	if (r < 0)
		return record_fail(&why);
	return is_for_exit(options) ? wait_exit(options, &record)
				    : wait_any(options, &record);
}
