/* SPDX-License-Identifier: MIT */

/*
 * pale term attach: which terminal, and whether there is one to attach to.
 *
 * The terminal that a person used last is a name in the directory of its
 * world's terminals; without a name on the command line it is meant, unless
 * there is only one.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/hostmount.h"
#include "cli/term.h"
#include "cli/term_attach.h"

/* Its warden says so beside the directories of the terminals. */
#define LAST "../last"

/* ---- which one ---- */

struct choice {
	const char *state;
	uint64_t newest; /* 0: there is none */
	uint64_t last;	 /* that was used, of those that live */
	unsigned int n;
};

static int
last_of(const char *state, const struct store_term *row, uint64_t *ret_id)
{
	_cleanup_(freep) char *path =
		terms_dir_path(state, row->world, row->id);
	_cleanup_(freep) char *text = NULL;
	_cleanup_(closep) int dir = -1;
	size_t len;

	if (path)
		dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || fd_read_path(dir, LAST, TERMS_ID_MAX, &text, &len) < 0)
		return -ENOENT;
	return terms_id_parse(text, ret_id);
}

static int
consider(const struct store_term *row, void *data)
{
	struct choice *choice = data;
	uint64_t last = 0;

	if (row->ended_ns > 0)
		return 0;
	choice->n++;
	if (choice->newest == 0)
		choice->newest = row->id;
	if (choice->last == 0 && last_of(choice->state, row, &last) == 0 &&
	    last == row->id)
		choice->last = last;
	return 0;
}

static int
choose(const struct term_options *options, char ret_id[TERMS_ID_MAX],
       struct errmsg *why)
{
	const struct policy_request *request = &options->policy.request;
	const char *place = request->workspace ? request->workspace : ".";
	_cleanup_(record_places_fini) struct record_places places = { 0 };
	_cleanup_(freep) char *workspace = NULL;
	struct store_terms_query query = { .open = true,
					   .newest_first = true,
					   .world = options->world,
					   .session = request->session };
	struct choice choice = { 0 };
	int r = record_places_open(&places, why);

	if (r < 0)
		return r;
	if (!options->world) {
		r = hostmount_canonical(place, &workspace);
		if (r < 0)
			return errmsg_set(why, r, "'%s': %s", place,
					  strerror(-r));
		query.workspace = workspace;
	}
	choice.state = places.state;
	if (places.store)
		r = store_each_term(places.store, &query, consider, &choice);
	if (r < 0)
		return errmsg_set(why, r, "cannot look for terminals: %s",
				  strerror(-r));
	if (choice.n == 0)
		return errmsg_set(why, -ENOENT,
				  "no terminal runs here; one is made by: pale "
				  "term new");
	terms_id_text(choice.last ? choice.last : choice.newest, ret_id);
	return 0;
}

/* ---- what there is to see ---- */

static int
show_ended(const struct term_options *options, const char *called,
	   const struct term_record *record, struct errmsg *why)
{
	_cleanup_(closep) int dir = -1;
	_cleanup_(buf_fini) struct buf out = { 0 };
	char line[512];
	int r = term_open_dir(record, &dir, why);

	if (r < 0)
		return r;
	r = terms_dump_screen(dir, &record->row, TERMS_ANSI,
			      (unsigned int)options->scrollback, &out);
	if (r == 0)
		r = buf_error(&out);
	if (r == 0)
		r = fd_write_all(STDOUT_FILENO, out.data, out.len);
	if (r < 0)
		return errmsg_set(why, r, "cannot show the screen of %s: %s",
				  called, strerror(-r));
	terms_row_line(&record->row, line, sizeof(line));
	if (!options->common.quiet)
		fprintf(stderr, "[%s: %s]\n", called, line);
	return terms_row_exit(&record->row);
}

static int
attach(const struct term_options *options, const char *called,
       struct term_record *record, struct errmsg *why)
{
	char id[TERMS_ID_MAX];
	const struct person_options person = {
		.id = id,
		.called = called,
		.detach_key = options->detach_key,
		.scrollback = options->scrollback,
		.read_only = options->read_only,
		.titles = options->titles,
		.clipboard = options->clipboard,
		.quiet = options->common.quiet,
	};
	struct rpc_client *client = NULL;
	int r = person_check(&person, why);

	terms_id_text(record->row.id, id);
	if (r == 0)
		r = record_connect(&record->places, record->row.world, &client,
				   why);
	if (r < 0)
		return r;
	/* Its lock and its file are of no use to a person. */
	record_places_fini(&record->places);
	return person_attach(client, &person);
}

int
term_attach(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(term_record_fini) struct term_record record = { 0 };
	struct errmsg why = { "" };
	char chosen[TERMS_ID_MAX];
	const char *called = argc > 0 ? argv[0] : chosen;
	int r = argc > 0 ? 0 : choose(options, chosen, &why);

	if (r == 0)
		r = term_open(options, called, &record, &why);
	if (argc == 0 && record.row.name)
		called = record.row.name;
	if (r == 0)
		r = record.row.ended_ns > 0
			    ? show_ended(options, called, &record, &why)
			    : attach(options, called, &record, &why);
	if (r >= 0)
		return r;
	cli_error("%s", why.text);
	return r == -EINVAL   ? RECORD_EXIT_USAGE
	       : r == -ENOTTY ? PERSON_EXIT_FAILED
			      : RECORD_EXIT_FAILED;
}
