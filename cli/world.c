/* SPDX-License-Identifier: MIT */

/*
 * pale world list|show|mode|stop|log
 *
 * `list` reads what the wardens have written down, `log` what is kept of them;
 * the others speak to one warden.  A world is named by its id, its mount point or its workspace.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostmount.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/log.h"
#include "cli/verbs.h"
#include "cli/worlds.h"

#define CALL_TIMEOUT_MS 30000
#define STOP_TIMEOUT_MS 40000

struct opts {
	struct cli_common common;
	const char *workspace, *session, *world;
};

static const struct cli_option rows[] = {
	{ "world", 0, CLI_STRING, offsetof(struct opts, world), "ID",
	  "this world", NULL },
	{ "workspace", 'w', CLI_STRING, offsetof(struct opts, workspace), "DIR",
	  "the worlds of this workspace", NULL },
	{ "session", 's', CLI_STRING, offsetof(struct opts, session), "NAME",
	  "the worlds of this session", NULL },
	CLI_END,
};

/* ---- list ---- */

static bool
is_wanted(const struct world_info *world, const struct opts *opts,
	  const char *workspace)
{
	if (opts->world && strcmp(opts->world, world->id) != 0)
		return false;
	if (opts->session && strcmp(opts->session, world->session) != 0)
		return false;
	return !workspace || strcmp(workspace, world->workspace) == 0;
}

/* A name may hold anything; a line of the list is one line. */
static void
put_line_safe(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte < ' ' || byte == 0x7f)
			printf("\\x%02x", byte);
		else
			putchar(byte);
	}
}

static void
put_text(const char *text)
{
	_cleanup_(buf_fini) struct buf shown = { 0 };

	escape_bytes(&shown, text, strlen(text));
	put_line_safe((const char *)shown.data, shown.len);
}

static void
print_world(const struct world_info *world)
{
	printf("%-8s  %-5s  %-15s  %-8s  %7d  ", world->id, world->kind,
	       world->mode, world->session, (int)world->pid);
	put_text(world->workspace);
	if (world->mountpoint) {
		fputs(" on ", stdout);
		put_text(world->mountpoint);
	}
	putchar('\n');
}

static int
run_list(const struct opts *opts, int argc, char **argv, struct errmsg *why)
{
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	_cleanup_(freep) char *workspace = NULL;
	int r;

	(void)argc;
	(void)argv;
	if (opts->workspace) {
		r = hostmount_canonical(opts->workspace, &workspace);
		if (r < 0)
			return errmsg_set(why, r, "'%s': %s", opts->workspace,
					  strerror(-r));
	}
	worlds_import_left();
	r = worlds_list(&list, why);
	if (r < 0)
		return r;
	if (isatty(STDOUT_FILENO) && !opts->common.json)
		printf("%-8s  %-5s  %-15s  %-8s  %7s  %s\n", "ID", "KIND",
		       "MODE", "SESSION", "PID", "WORKSPACE");
	for (size_t i = 0; i < list.count; i++) {
		if (!is_wanted(&list.items[i], opts, workspace))
			continue;
		if (opts->common.json)
			puts(list.items[i].json);
		else
			print_world(&list.items[i]);
	}
	return 0;
}

/* ---- one world ---- */

/* The world meant by an operand, or by the options, or by where we are. */
static int
find_world(const struct opts *opts, const char *operand,
	   const struct world_list *list, const struct world_info **ret_world,
	   struct errmsg *why)
{
	const char *name = operand	 ? operand
			   : opts->world ? opts->world
					 : opts->workspace;

	return worlds_find(list, name, opts->session, ret_world, why);
}

/* The same, of all that are alive. */
static int
pick_world(const struct opts *opts, const char *operand,
	   struct world_list *ret_list, const struct world_info **ret_world,
	   struct errmsg *why)
{
	int r = worlds_list(ret_list, why);

	if (r < 0)
		return r;
	return find_world(opts, operand, ret_list, ret_world, why);
}

static int
call_world(const struct world_info *world, enum rpc_method method,
	   const struct buf *params, json_t **ret_result, struct errmsg *why)
{
	_cleanup_(rpc_client_closep) struct rpc_client *client = NULL;
	int r = rpc_client_open(world->dir, RPC_OPERATOR, &client, why);

	if (r < 0)
		return r;
	return rpc_client_call(client, method, params, CALL_TIMEOUT_MS,
			       ret_result, why);
}

static void
print_member(const char *prefix, const char *key, const json_t *value)
{
	printf("%s%s: ", prefix, key);
	/* What comes by JSON is escaped already. */
	if (json_is_string(value))
		put_line_safe(json_string_value(value),
			      json_string_length(value));
	else if (json_is_integer(value))
		printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
	else if (json_is_boolean(value))
		fputs(json_is_true(value) ? "yes" : "no", stdout);
	else
		putchar('-');
	putchar('\n');
}

/* "workspace: /p", "denials.count: 3": objects are flattened. */
static void
print_members(const char *prefix, json_t *object)
{
	for (void *at = json_object_iter(object); at;
	     at = json_object_iter_next(object, at)) {
		const char *key = json_object_iter_key(at);
		json_t *value = json_object_iter_value(at);
		char inner[64];

		if (!json_is_object(value)) {
			print_member(prefix, key, value);
			continue;
		}
		(void)snprintf(inner, sizeof(inner), "%s%s.", prefix, key);
		print_members(inner, value);
	}
}

static int
run_show(const struct opts *opts, int argc, char **argv, struct errmsg *why)
{
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	const struct world_info *world = NULL;
	json_t *result = NULL;
	int r;

	r = pick_world(opts, argc > 0 ? argv[0] : NULL, &list, &world, why);
	if (r < 0)
		return r;
	r = call_world(world, RPC_WORLD_SHOW, NULL, &result, why);
	if (r < 0)
		return r;
	if (opts->common.json) {
		(void)json_dumpf(result, stdout, JSON_COMPACT);
		putchar('\n');
	} else {
		print_members("", result);
	}
	json_decref(result);
	return 0;
}

static int
run_mode(const struct opts *opts, int argc, char **argv, struct errmsg *why)
{
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	_cleanup_(buf_fini) struct buf params = { 0 };
	const struct world_info *world = NULL;
	json_t *result = NULL;
	int r;

	jsonw_begin(&params, '{');
	jsonw_pair(&params, "mode", argv[argc - 1]);
	jsonw_end(&params, '}');
	r = pick_world(opts, argc > 1 ? argv[0] : NULL, &list, &world, why);
	if (r < 0)
		return r;
	r = call_world(world, RPC_WORLD_MODE, &params, &result, why);
	if (r < 0)
		return r;
	if (opts->common.json) {
		(void)json_dumpf(result, stdout, JSON_COMPACT);
		putchar('\n');
	} else if (!opts->common.quiet) {
		printf("%s %s (was %s)\n", world->id,
		       json_string_value(json_object_get(result, "mode")),
		       json_string_value(json_object_get(result, "previous")));
	}
	json_decref(result);
	return 0;
}

static int
stop_world(const struct world_info *world, struct errmsg *why)
{
	int r = call_world(world, RPC_WORLD_STOP, NULL, NULL, why);

	/* It may end by itself meanwhile, which is as well. */
	if (r < 0 && r != -ECONNRESET && r != -ECONNREFUSED && r != -ENOENT)
		return r;
	r = worlds_await_end(world->dir, STOP_TIMEOUT_MS);
	return r < 0 ? errmsg_set(why, r, "world %s (process %d) does not end",
				  world->id, (int)world->pid)
		     : 0;
}

static int
run_stop(const struct opts *opts, int argc, char **argv, struct errmsg *why)
{
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	int r = worlds_list(&list, why);

	for (int i = 0; r == 0 && (i == 0 || i < argc); i++) {
		const struct world_info *world = NULL;

		r = find_world(opts, argc > 0 ? argv[i] : NULL, &list, &world,
			       why);
		if (r == 0)
			r = stop_world(world, why);
	}
	return r;
}

/* An id, of a world that may be long gone; all else is a workspace. */
static bool
is_id(const char *name)
{
	return strlen(name) == WORLD_ID_LEN &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz234567") == WORLD_ID_LEN;
}

static int
run_log(const struct opts *opts, int argc, char **argv, struct errmsg *why)
{
	struct log_query query = {
		.world = opts->world,
		.session = opts->session,
		.workspace = opts->workspace,
		.json = opts->common.json,
	};

	if (argc > 0 && is_id(argv[0]))
		query.world = argv[0];
	else if (argc > 0)
		query.workspace = argv[0];
	return log_show(&query, why);
}

/* ---- the verbs ---- */

static const struct verb {
	struct cli_verb verb;
	int (*run)(const struct opts *opts, int argc, char **argv,
		   struct errmsg *why);
} verb_rows[] = {
	{ { { .command = "world list",
	      .synopsis = "[options]",
	      .about = "Lists the worlds that are alive: id, kind, mode, "
		       "session, process, workspace.",
	      .usage_status = 2 },
	    .operands = { 0, 0 } },
	  run_list },
	{ { { .command = "world show",
	      .synopsis = "[options] [WORLD]",
	      .about = "Shows one world.  WORLD is an id, a workspace or a "
		       "mount point; without it,\n"
		       "the world of the current directory.",
	      .usage_status = 2 },
	    .operands = { 0, 1 } },
	  run_show },
	{ { { .command = "world mode",
	      .synopsis = "[options] [WORLD] read-only|workspace-write",
	      .about = "Changes the mode of a running world.  When it returns, "
		       "the new mode holds, also\n"
		       "for files that are open already.",
	      .usage_status = 2 },
	    .operands = { 1, 2 } },
	  run_mode },
	{ { { .command = "world stop",
	      .synopsis = "[options] [WORLD...]",
	      .about = "Ends worlds and waits until they are gone.",
	      .usage_status = 2 },
	    .operands = { 0, 256 } },
	  run_stop },
	{ { { .command = "world log",
	      .synopsis = "[options] [WORLD]",
	      .about = "Shows what happened to worlds: begun, changed, ended "
		       "and why; also to those\n"
		       "that are gone.  WORLD is an id, whose warden's own "
		       "lines follow, or a workspace.",
	      .usage_status = 2 },
	    .operands = { 0, 1 } },
	  run_log },
};

static const struct cli_usage world_usage = {
	.command = "world",
	.synopsis = "list|show|mode|stop|log [options]",
	.about = "Lists, shows, changes and stops worlds; see pale world VERB "
		 "--help.",
	.usage_status = 2,
};

static const struct cli_verbs verbs = CLI_VERBS(&world_usage, verb_rows);

static int
run_verb(const struct verb *verb, int argc, char **argv)
{
	struct opts opts = { 0 };
	const struct cli_group groups[] = {
		{ rows, &opts },
		{ cli_common_options, &opts.common },
		{ 0 },
	};
	struct errmsg why = { "" };
	int first, status;

	if (!cli_parse(&verb->verb.usage, groups, argc, argv, &first, &status))
		return status;
	if (argc - first < verb->verb.operands.min ||
	    argc - first > verb->verb.operands.max)
		return cli_usage_error(&verb->verb.usage,
				       "wrong number of arguments");
	if (verb->run(&opts, argc - first, argv + first, &why) < 0) {
		cli_error("%s", why.text);
		return 1;
	}
	return 0;
}

int
cmd_world(int argc, char **argv)
{
	int status;
	const struct verb *verb = cli_verbs_find(&verbs, argc, argv, &status);

	return verb ? run_verb(verb, argc - 1, argv + 1) : status;
}
