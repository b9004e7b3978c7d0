/* SPDX-License-Identifier: MIT */

/* pale term resize, signal, kill, rename, rm: what is done to one. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/term.h"

#define GRACE_MS       3000
#define KILL_MARGIN_MS 15000

/* One request to the warden of a terminal that lives. */
struct act {
	const struct term_options *options;
	struct term_record record;
	struct buf params;
	json_t *result;
	struct errmsg why;
};

static void
act_fini(struct act *act)
{
	term_record_fini(&act->record);
	buf_fini(&act->params);
	json_decref(act->result);
}

static int
act_begin(struct act *act, const char *id)
{
	int r = term_open(act->options, id, &act->record, &act->why);

	if (r == 0)
		term_begin(&act->params, &act->record);
	return r;
}

static int
act_do(struct act *act, enum rpc_method method, int timeout_ms)
{
	int r = term_ask(&act->record, method, &act->params, timeout_ms,
			 &act->result, &act->why);

	if (record_is_nobody(r))
		(void)errmsg_set(&act->why, r, "terminal t%llu has ended",
				 (unsigned long long)act->record.row.id);
	return r;
}

static int
act_print(const struct act *act)
{
	if (!act->options->common.json)
		return 0;
	if (json_dumpf(act->result, stdout, JSON_COMPACT) < 0)
		return RECORD_EXIT_FAILED;
	putchar('\n');
	return 0;
}

int
term_resize(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(act_fini) struct act act = { .options = options };
	unsigned int cols = 0, rows = 0;
	int r = 0;

	if (argc > 1)
		r = term_parse_size(argv[1], &cols, &rows, &act.why);
	else if (!options->unpin)
		r = errmsg_set(&act.why, -EINVAL, "which size, such as 80x24?");
	if (r == 0)
		r = act_begin(&act, argv[0]);
	if (r == 0) {
		if (cols > 0) {
			jsonw_pair_uint(&act.params, "cols", cols);
			jsonw_pair_uint(&act.params, "rows", rows);
		}
		jsonw_pair_bool(&act.params, "pin", options->pin);
		jsonw_pair_bool(&act.params, "unpin", options->unpin);
		r = act_do(&act, RPC_TERM_RESIZE, TERM_ASK_MS);
	}
	return r < 0 ? record_fail(&act.why) : act_print(&act);
}

int
term_signal(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(act_fini) struct act act = { .options = options };
	const json_t *group;
	int r = act_begin(&act, argv[0]);

	(void)argc;
	if (r == 0) {
		jsonw_pair(&act.params, "signal", argv[1]);
		r = act_do(&act, RPC_TERM_SIGNAL, TERM_ASK_MS);
	}
	if (r < 0)
		return record_fail(&act.why);
	group = json_object_get(act.result, "group");
	if (!options->common.json && !options->common.quiet &&
	    json_is_integer(group))
		printf("to process group %lld\n",
		       (long long)json_integer_value(group));
	return act_print(&act);
}

static int
kill_one(const struct term_options *options, const char *id, bool with_id)
{
	_cleanup_(act_fini) struct act act = { .options = options };
	uint64_t grace =
		options->grace_ms != UINT64_MAX ? options->grace_ms : GRACE_MS;
	char prefix[TERMS_ID_MAX + 1] = "";
	int r = act_begin(&act, id);

	if (r == 0) {
		jsonw_pair_uint(&act.params, "grace_ms", grace);
		r = act_do(&act, RPC_TERM_KILL, (int)grace + KILL_MARGIN_MS);
	}
	/* With its world all of it went. */
	if (record_is_nobody(r) && act.record.row.id != 0 &&
	    act.record.row.ended_ns == 0)
		r = term_reload_gone(&act.record, &act.why);
	else if (r == 0)
		r = term_reload(&act.record, &act.why);
	if (r < 0)
		return record_fail(&act.why);
	if (with_id) {
		(void)snprintf(prefix, sizeof(prefix), "t%llu ",
			       (unsigned long long)act.record.row.id);
	}
	return options->common.quiet
		       ? 0
		       : term_print(options, &act.record.row, prefix);
}

int
term_kill(const struct term_options *options, int argc, char **argv)
{
	int status = 0, one;

	for (int i = 0; i < argc; i++) {
		one = kill_one(options, argv[i], argc > 1);
		status = one ? one : status;
	}
	return status;
}

int
term_rename(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(act_fini) struct act act = { .options = options };
	int r = act_begin(&act, argv[0]);

	if (r == 0) {
		jsonw_pair(&act.params, "name", argc > 1 ? argv[1] : NULL);
		r = act_do(&act, RPC_TERM_RENAME, TERM_ASK_MS);
	}
	return r < 0 ? record_fail(&act.why) : act_print(&act);
}

/* By its warden, which knows it, where it lives; else here. */
static int
remove_one(struct act *act, const char *id)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	struct term_record *record = &act->record;
	char text[TERMS_ID_MAX];
	unsigned int tries = 0;
	int r = term_open(act->options, id, record, &act->why);

	if (r < 0)
		return r;
	terms_id_text(record->row.id, text);
	jsonw_begin(&params, '{');
	jsonw_key(&params, "ids");
	jsonw_begin(&params, '[');
	jsonw_text(&params, text);
	jsonw_end(&params, ']');
	r = term_ask(record, RPC_TERM_RM, &params, TERM_ASK_MS, NULL,
		     &act->why);
	if (!record_is_nobody(r))
		return r;
	if (record->row.ended_ns == 0)
		return errmsg_set(&act->why, -EBUSY,
				  "terminal %s has not ended", text);
	do {
		r = terms_remove_row(record->places.store, record->places.state,
				     &record->row);
	} while (record_again(r, &tries));
	return r < 0 ? errmsg_set(&act->why, r, "cannot remove %s: %s", text,
				  strerror(-r))
		     : 0;
}

int
term_rm(const struct term_options *options, int argc, char **argv)
{
	int status = 0;

	for (int i = 0; i < argc; i++) {
		_cleanup_(act_fini) struct act act = { .options = options };

		if (remove_one(&act, argv[i]) < 0)
			status = record_fail(&act.why);
		else if (options->common.json)
			printf("{\"id\":\"t%llu\",\"removed\":true}\n",
			       (unsigned long long)act.record.row.id);
	}
	return status;
}
