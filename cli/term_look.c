/* SPDX-License-Identifier: MIT */

/* pale term list, show, status, path: what is known of terminals. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostmount.h"
#include "base/json.h"
#include "cli/show.h"
#include "cli/term.h"

/* ---- list ---- */

struct listing {
	const struct term_options *options;
	bool ended; /* else those that live */
};

static int
list_one(const struct store_term *row, void *data)
{
	const struct listing *listing = data;
	_cleanup_(buf_fini) struct buf out = { 0 };
	char line[512];

	if ((row->ended_ns > 0) != listing->ended)
		return 0;
	if (listing->options->common.json) {
		terms_row_json(row, &out);
		return cli_print_json(&out);
	}
	terms_row_line(row, line, sizeof(line));
	show_row_begin(&out, 't', row->id,
		       row->started_ns ? row->started_ns : row->created_ns,
		       line);
	buf_putf(&out, "%4ux%-4u  ", row->cols, row->rows);
	show_row_command(&out, row->name, row->label);
	if (row->title && *row->title) {
		buf_puts(&out, "  \"");
		show_safe(&out, row->title);
		buf_puts(&out, "\"");
	}
	return show_row_end(&out);
}

static int
list_all(struct record_places *places, const struct term_options *options,
	 struct errmsg *why)
{
	const struct policy_request *request = &options->policy.request;
	_cleanup_(freep) char *workspace = NULL;
	struct store_terms_query query = { .newest_first = true,
					   .world = options->world,
					   .session = request->session };
	struct listing listing = { .options = options };
	int r = 0;

	if (!places->store)
		return 0;
	(void)terms_settle_dead(places->store, places->state, 0);
	if (request->workspace)
		r = hostmount_canonical(request->workspace, &workspace);
	if (r < 0)
		return errmsg_set(why, r, "'%s': %s", request->workspace,
				  strerror(-r));
	query.workspace = workspace;
	r = store_each_term(places->store, &query, list_one, &listing);
	listing.ended = true;
	if (r == 0 && options->all)
		r = store_each_term(places->store, &query, list_one, &listing);
	return r < 0 ? errmsg_set(why, r, "cannot list terminals: %s",
				  strerror(-r))
		     : 0;
}

int
term_list(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	struct errmsg why = { "" };
	int r = record_places_open(&places, &why);

	(void)argc;
	(void)argv;
	if (r == 0)
		r = list_all(&places, options, &why);
	return r < 0 ? record_fail(&why) : 0;
}

/* ---- show, status ---- */

int
term_show(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(term_record_fini) struct term_record record = { 0 };
	_cleanup_(buf_fini) struct buf out = { 0 };
	struct errmsg why = { "" };

	(void)argc;
	if (term_open(options, argv[0], &record, &why) < 0)
		return record_fail(&why);
	if (options->common.json)
		return term_print(options, &record.row, "");
	terms_row_json(&record.row, &out);
	return show_members(&out);
}

int
term_status(const struct term_options *options, int argc, char **argv)
{
	struct errmsg why = { "" };
	int status = 0;

	for (int i = 0; i < argc; i++) {
		_cleanup_(term_record_fini) struct term_record record = { 0 };
		char prefix[TERMS_ID_MAX + 1] = "";

		if (term_open(options, argv[i], &record, &why) < 0) {
			status = record_fail(&why);
			continue;
		}
		if (argc > 1) {
			(void)snprintf(prefix, sizeof(prefix), "t%llu ",
				       (unsigned long long)record.row.id);
		}
		(void)term_print(options, &record.row, prefix);
	}
	return status;
}

/* ---- path ---- */

int
term_path(const struct term_options *options, int argc, char **argv)
{
	static const char *const files[] = {
		"command", "status",	  "status.json", "size",
		"screen",  "screen.ansi", "scrollback",	 "raw",
		"last",	   "follow",	  "input",	 "keys",
		"title",   "ctl",	  "wait",	 "events",
	};
	_cleanup_(term_record_fini) struct term_record record = { 0 };
	char id[TERMS_ID_MAX];
	struct errmsg why = { "" };
	bool known = argc == 1;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		known = known || strcmp(files[i], argv[1]) == 0;
	if (!known) {
		(void)errmsg_set(&why, 0, "a terminal has no file '%s'",
				 argv[1]);
		return record_fail(&why);
	}
	if (term_open(options, argv[0], &record, &why) < 0)
		return record_fail(&why);
	terms_id_text(record.row.id, id);
	return record_print_path(&options->common,
				 &(struct record_path){
					 .world = record.row.world,
					 .workspace = record.row.workspace,
					 .kind = "terminals",
					 .id = id,
				 },
				 argc > 1 ? argv[1] : NULL);
}
