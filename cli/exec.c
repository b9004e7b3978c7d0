/* SPDX-License-Identifier: MIT */

/*
 * pale exec: one command in the standing world.
 *
 * It gets our own descriptors, so a pipe stays a pipe; signals that are sent
 * to us are passed on, and it ends when we do.  One that has our terminal is
 * our descendant and in our process group (cli/exec_tty.h).
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/exec_tty.h"
#include "cli/run_loop.h"
#include "cli/run_report.h"
#include "cli/standing.h"

struct exec_options {
	struct cli_common common;
	struct cli_policy_options policy;
	const char *world, *report, *cwd, *call, *escalate, *why;
	bool clear_env;
	struct strv env;
};

#define EXEC(field) offsetof(struct exec_options, field)

static const struct cli_option exec_rows[] = {
	{ "world", 0, CLI_STRING, EXEC(world), "WORLD",
	  "this standing world: an id, or a workspace", NULL },
	{ "cwd", 'C', CLI_STRING, EXEC(cwd), "DIR",
	  "the command's directory (default: the current one)", NULL },
	{ "env", 0, CLI_LIST, EXEC(env), "NAME=VALUE",
	  "set an environment variable", NULL },
	{ "clear-env", 0, CLI_FLAG, EXEC(clear_env), NULL,
	  "start with an empty environment", NULL },
	{ "call", 0, CLI_STRING, EXEC(call), "ID",
	  "an id of yours, put in every record of what is refused", NULL },
	{ "report", 0, CLI_STRING, EXEC(report), "FILE|fd:N",
	  "write one JSON object about the command when it is done", NULL },
	{ "escalate", 0, CLI_STRING, EXEC(escalate), "MODE",
	  "ask the operator for a wider mode: a fresh world, this call alone",
	  NULL },
	{ "why", 0, CLI_STRING, EXEC(why), "TEXT",
	  "what the wider mode is needed for", NULL },
	CLI_END,
};

static const struct cli_usage exec_usage = {
	.command = "exec",
	.synopsis = "[options] [--] COMMAND [ARGUMENT]...",
	.about = "Runs a command in the standing world of this workspace and "
		 "session, which is\nmade when there is none.  Exits as pale "
		 "run does.",
	.usage_status = COMMAND_EXIT_PALE,
	.stop_at_operand = true,
};

static const struct cli_usage shell_usage = {
	.command = "shell",
	.synopsis = "[options] [--] [COMMAND [ARGUMENT]...]",
	.about = "Runs a shell (default: $SHELL) in the standing world of this "
		 "workspace and\nsession, which is made when there is none.",
	.usage_status = COMMAND_EXIT_PALE,
	.stop_at_operand = true,
};

struct execution {
	const struct exec_options *options;
	struct strv argv, env;
	char *cwd;
	struct standing standing;
	struct policy *policy; /* as far as we know it; for the report */
	uint64_t request;
	int signals;
	struct tty tty;
	struct exec_tty way_in; /* where we have a terminal */
	struct run_result result;
	char *summary; /* JSON */
};

/* ---- the request ---- */

static void
put_request(const struct execution *ex, struct buf *out)
{
	const struct policy_limits *limits =
		&ex->options->policy.request.limits;

	jsonw_begin(out, '{');
	jsonw_pair_strv(out, "argv", &ex->argv);
	jsonw_pair_strv(out, "env", &ex->env);
	jsonw_pair(out, "cwd", ex->cwd);
	jsonw_pair(out, "call", ex->options->call);
	jsonw_pair_int(out, "umask", command_umask());
	if (ex->tty.fd >= 0)
		jsonw_pair(out, "console", ex->tty.path ? ex->tty.path : "");
	jsonw_pair_uint(out, "timeout_ms", limits->timeout_ms);
	jsonw_pair_uint(out, "linger_ms", limits->linger_ms);
	jsonw_end(out, '}');
}

static int
send_request(struct execution *ex)
{
	static const int stdio[] = { STDIN_FILENO, STDOUT_FILENO,
				     STDERR_FILENO };
	bool terminal = ex->tty.fd >= 0;
	_cleanup_(buf_fini) struct buf params = { 0 };
	int r;

	put_request(ex, &params);
	r = buf_error(&params);
	if (r == 0)
		r = rpc_client_send(ex->standing.client, RPC_RUN_EXEC, &params,
				    terminal ? &ex->way_in.world : stdio,
				    terminal ? 1 : 3, &ex->request);
	closep(&ex->way_in.world);
	ex->way_in.world = -1;
	if (r < 0)
		return errmsg_set(&ex->result.error, r,
				  "cannot ask the world: %s", strerror(-r));
	return 0;
}

/* ---- while it runs ---- */

static void
pass_on(struct execution *ex, int signal)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	uint64_t ignored;

	jsonw_begin(&params, '{');
	jsonw_pair_uint(&params, "request", ex->request);
	jsonw_pair_int(&params, "signal", signal);
	jsonw_end(&params, '}');
	(void)rpc_client_send(ex->standing.client, RPC_RUN_SIGNAL, &params,
			      NULL, 0, &ignored);
}

static void
on_signal(struct execution *ex)
{
	struct signalfd_siginfo info;

	if (read(ex->signals, &info, sizeof(info)) != sizeof(info))
		return;
	pass_on(ex, (int)info.ssi_signo);
	/* The command is in no group of ours: it stops, and then we do. */
	if (info.ssi_signo == SIGTSTP || info.ssi_signo == SIGTTIN) {
		(void)kill(getpid(), SIGSTOP);
		pass_on(ex, SIGCONT);
	}
}

static uint64_t
number(const json_t *object, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(object, key));

	return value < 0 ? 0 : (uint64_t)value;
}

static void
take_result(struct execution *ex, const json_t *result)
{
	const json_t *killed = json_object_get(result, "signal");
	struct run_result *to = &ex->result;
	enum policy_mode mode;
	struct policy *other;

	to->ended = to->started = true;
	to->status = json_is_integer(killed)
			     ? (int)json_integer_value(killed)
			     : (int)number(result, "exit_code") << 8;
	to->timed_out = json_is_true(json_object_get(result, "timed_out"));
	to->user_us = number(result, "user_ms") * 1000;
	to->sys_us = number(result, "sys_ms") * 1000;
	to->max_rss_kib = number(result, "max_rss_kib");
	ex->summary = json_dumps(result, JSON_COMPACT);

	/* Of the world that was joined, which may have another mode. */
	if (ex->policy &&
	    policy_mode_parse(
		    json_string_value(json_object_get(result, "mode")),
		    &mode) == 0 &&
	    policy_with_mode(ex->policy, mode, &other) == 0) {
		policy_unref(ex->policy);
		ex->policy = other;
	}
}

static void
take_fault(struct execution *ex, const json_t *error)
{
	const json_t *data = json_object_get(error, "data");
	const char *code = json_string_value(json_object_get(data, "code"));
	const char *text = json_string_value(json_object_get(error, "message"));
	struct run_result *to = &ex->result;
	int system = (int)number(data, "errno");

	if (code && strcmp(code, "EXEC_FAILED") == 0 && system > 0) {
		to->ended = true;
		to->exec_error = system;
		to->status = (system == ENOENT || system == ENOTDIR ? 127 : 126)
			     << 8;
		return;
	}
	to->failed = true;
	(void)errmsg_set(&to->error, 0, "%s",
			 text ? text : "the world refused the command");
}

/* True when it was the answer. */
static bool
on_message(struct execution *ex, const struct rpc_message *message)
{
	if (message->kind == RPC_NOTIFICATION && message->name &&
	    strcmp(message->name, "run.started") == 0)
		ex->result.started = true;
	if (!rpc_client_answers(message, ex->request))
		return false;
	if (message->kind == RPC_RESPONSE)
		take_result(ex, message->result);
	else
		take_fault(ex, message->error);
	return true;
}

static int
take_messages(struct execution *ex, bool *ret_done)
{
	struct rpc_message message = { 0 };
	int r;

	while ((r = rpc_client_next(ex->standing.client, 0, &message)) > 0) {
		*ret_done = on_message(ex, &message);
		rpc_message_fini(&message);
		if (*ret_done)
			return 0;
	}
	return r;
}

/* The answer to the request tells the end; this is until then. */
static void
share_terminal(struct execution *ex)
{
	struct run_result seen;

	run_loop(&ex->way_in.launch, ex->signals, &ex->tty, 0, &seen);
	tty_restore(&ex->tty);
}

static void
await_end(struct execution *ex)
{
	int64_t start = clock_mono_ns();
	bool done = false;
	int r = 0;

	if (ex->tty.fd >= 0)
		share_terminal(ex);
	while (!done && r == 0) {
		struct pollfd polls[2] = {
			{ .fd = rpc_client_socket(ex->standing.client),
			  .events = POLLIN },
			{ .fd = ex->signals, .events = POLLIN },
		};

		if (poll(polls, 2, -1) < 0 && errno != EINTR)
			r = -errno;
		if (r == 0 && polls[1].revents)
			on_signal(ex);
		if (r == 0 && polls[0].revents)
			r = take_messages(ex, &done);
	}
	ex->result.duration_ns = clock_mono_ns() - start;
	if (!done) {
		ex->result.failed = true;
		(void)errmsg_set(&ex->result.error, 0,
				 "the world has ended, and the command with "
				 "it: %s",
				 strerror(-r));
	}
}

/* ---- the whole ---- */

static int
prepare(struct execution *ex, char **operands)
{
	const struct exec_options *options = ex->options;
	struct errmsg *why = &ex->result.error;
	struct standing_request request = {
		.request = &options->policy.request,
		.world = options->world,
		.make = true,
	};
	int r;

	r = command_cwd(options->cwd, &ex->cwd, why);
	if (r == 0)
		r = command_env(&options->env, options->clear_env, &ex->env,
				why);
	if (r == 0)
		r = command_argv(operands, &ex->argv, why);
	if (r == 0)
		r = policy_resolve(request.request, &ex->policy, why);
	if (r < 0)
		return r;
	ex->signals = run_signals();
	if (ex->signals < 0)
		return errmsg_set(why, ex->signals,
				  "cannot wait for signals: %s",
				  strerror(-ex->signals));
	request.policy = ex->policy;
	r = standing_connect(&request, &ex->standing, why);
	if (r < 0)
		return r;
	tty_save(&ex->tty);
	return ex->tty.fd >= 0 ? exec_tty_start(&ex->way_in, why) : 0;
}

static void
tell(const struct execution *ex, const struct run_report *report)
{
	const struct run_result *result = &ex->result;
	bool quiet = ex->options->common.quiet;

	if (result->failed)
		cli_error("%s", result->error.text);
	else if (result->exec_error != 0)
		cli_error("cannot run '%s': %s", ex->argv.items[0],
			  strerror(result->exec_error));
	else if (result->timed_out && !quiet)
		cli_error("the command was ended: its time was over");
	if (!quiet)
		run_report_markers(report);
}

static void
execution_fini(struct execution *ex)
{
	strv_fini(&ex->argv);
	strv_fini(&ex->env);
	free(ex->cwd);
	free(ex->summary);
	policy_unref(ex->policy);
	standing_fini(&ex->standing);
	exec_tty_fini(&ex->way_in);
	tty_fini(&ex->tty);
	closep(&ex->signals);
}

static int
execute(const struct exec_options *options, char **operands)
{
	_cleanup_(execution_fini) struct execution ex = {
		.options = options,
		.signals = -1,
		.tty = { .fd = -1 },
		.way_in = EXEC_TTY_NONE,
		.standing = { .sock = -1 },
		.result = { .limits = "none" }
	};
	_cleanup_(closep) int report_fd = -1;
	struct run_report report = { .result = &ex.result };
	int r;

	r = command_open_report(options->report, &report_fd, &ex.result.error);
	if (r == 0)
		r = command_check_call(options->call, &ex.result.error);
	if (r == 0)
		r = prepare(&ex, operands);
	if (r == 0)
		r = send_request(&ex);
	if (r < 0) {
		ex.result.failed = true;
	} else {
		command_let_go_of_stdio();
		await_end(&ex);
	}
	report.policy = ex.policy;
	report.world = ex.standing.world[0] ? ex.standing.world : NULL;
	report.summary = ex.summary;
	report.exit_code = command_exit_code(&ex.result);
	tell(&ex, &report);
	if (report_fd >= 0) {
		r = run_report_write(&report, report_fd);
		if (r < 0)
			cli_error("cannot write the report: %s", strerror(-r));
	}
	return report.exit_code;
}

/* Nothing standing is widened: as pale run, which has no --world. */
static int
run_wider(int argc, char **argv, int first)
{
	char **words = calloc((size_t)argc + 1, sizeof(*words));
	int n = 0, status;

	if (!words) {
		cli_error("out of memory");
		return COMMAND_EXIT_PALE;
	}
	for (int i = 0; i < argc; i++) {
		if (i > 0 && i < first && strncmp(argv[i], "--world", 7) == 0)
			i += argv[i][7] == '\0';
		else
			words[n++] = argv[i];
	}
	words[0] = (char *)"run";
	status = cmd_run(n, words);
	free(words);
	return status;
}

static int
run_command(const struct cli_usage *usage, bool needs_command, int argc,
	    char **argv)
{
	struct exec_options options = { .policy = CLI_POLICY_INIT };
	const struct cli_group groups[] = {
		{ exec_rows, &options },
		{ cli_policy_options, &options.policy },
		{ cli_common_options, &options.common },
		{ NULL, NULL },
	};
	int first, status;

	if (cli_parse(usage, groups, argc, argv, &first, &status)) {
		if (needs_command && first == argc)
			status = cli_usage_error(usage, "which command?");
		else if (options.escalate || options.why)
			status = run_wider(argc, argv, first);
		else
			status = execute(&options, argv + first);
	}
	strv_fini(&options.env);
	cli_policy_fini(&options.policy);
	return status;
}

int
cmd_exec(int argc, char **argv)
{
	return run_command(&exec_usage, true, argc, argv);
}

int
cmd_shell(int argc, char **argv)
{
	return run_command(&shell_usage, false, argc, argv);
}
