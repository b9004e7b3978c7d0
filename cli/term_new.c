/* SPDX-License-Identifier: MIT */

/* pale term new: a terminal, and who sits at it. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/show.h"
#include "cli/standing.h"
#include "cli/term.h"
#include "cli/term_attach.h"

/* A start may wait for a busy store. */
#define START_TIMEOUT_MS 60000

/* As asked for, else that of our own terminal, else the warden's. */
static int
put_size(const struct term_options *options, struct buf *out,
	 struct errmsg *why)
{
	struct winsize size = { 0 };
	unsigned int cols = 0, rows = 0;
	int r = 0;

	if (options->size)
		r = term_parse_size(options->size, &cols, &rows, why);
	else if (!options->detach && isatty(STDIN_FILENO) &&
		 ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
		 size.ws_col > 0 && size.ws_row > 0) {
		cols = size.ws_col;
		rows = size.ws_row;
	}
	if (r == 0 && cols > 0) {
		jsonw_pair_uint(out, "cols", cols);
		jsonw_pair_uint(out, "rows", rows);
	}
	return r;
}

static int
put_request(const struct term_options *options, int argc, char **argv,
	    struct buf *out, struct errmsg *why)
{
	int r = command_begin_params(&options->command, argc, argv, out, why);

	if (r == 0)
		r = put_size(options, out, why);
	if (r < 0)
		return r;
	jsonw_pair(out, "name", options->name);
	jsonw_end(out, '}');
	return buf_error(out);
}

static int
sit_down(const struct term_options *options, struct standing *standing,
	 const json_t *result)
{
	const struct person_options person = {
		.id = json_string_value(json_object_get(result, "id")),
		.quiet = options->common.quiet,
	};
	struct rpc_client *client = standing->client;

	standing->client = NULL;
	return person_attach(client, &person);
}

int
term_new(const struct term_options *options, int argc, char **argv)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	const struct standing_request request = {
		.request = &options->policy.request,
		.world = options->world,
		.make = true,
	};
	struct standing standing = { .sock = -1 };
	struct errmsg why = { "" };
	json_t *result = NULL;
	bool attach = !options->detach && !options->common.json &&
		      isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	int r = put_request(options, argc, argv, &params, &why), status;

	if (r == 0)
		r = standing_connect(&request, &standing, &why);
	if (r == 0)
		r = rpc_client_call(standing.client, RPC_TERM_NEW, &params,
				    START_TIMEOUT_MS, &result, &why);
	if (r < 0)
		status = record_fail(&why);
	else
		status = attach ? sit_down(options, &standing, result)
				: show_started(&options->common, result);
	json_decref(result);
	standing_fini(&standing);
	return status;
}
