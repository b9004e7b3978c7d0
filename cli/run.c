/* SPDX-License-Identifier: MIT */

/*
 * pale run: one command in a fresh world.
 *
 * What the caller typed becomes a policy, the policy a world, and the
 * command's end our own: its status is ours, and whatever goes wrong on pale's
 * side is 125, so that neither can be taken for the other.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/escalate.h"
#include "cli/fallback.h"
#include "cli/launch.h"
#include "cli/run_loop.h"
#include "cli/run_report.h"
#include "cli/tty.h"

/* How long the warden may take to say what was refused. */
#define SUMMARY_MS 10000

struct run_options {
	struct cli_common common;
	struct cli_policy_options policy;
	const char *report, *cwd, *escalate, *why, *call;
	bool clear_env, no_passthrough;
	struct strv env;
};

#define RUN(field) offsetof(struct run_options, field)

static const struct cli_option run_rows[] = {
	{ "cwd", 'C', CLI_STRING, RUN(cwd), "DIR",
	  "the command's directory (default: the current one)", NULL },
	{ "env", 0, CLI_LIST, RUN(env), "NAME=VALUE",
	  "set an environment variable", NULL },
	{ "clear-env", 0, CLI_FLAG, RUN(clear_env), NULL,
	  "start with an empty environment", NULL },
	{ "call", 0, CLI_STRING, RUN(call), "ID",
	  "an id of yours, put in every record of what is refused", NULL },
	{ "report", 0, CLI_STRING, RUN(report), "FILE|fd:N",
	  "write one JSON object about the run when it is done", NULL },
	{ "escalate", 0, CLI_STRING, RUN(escalate), "MODE",
	  "ask the operator for a wider mode, for this call alone", NULL },
	{ "why", 0, CLI_STRING, RUN(why), "TEXT",
	  "what the wider mode is needed for", NULL },
	{ "no-passthrough", 0, CLI_FLAG, RUN(no_passthrough), NULL,
	  "keep the mode changeable: all data goes by way of the warden",
	  NULL },
	CLI_END,
};

static const struct cli_usage run_usage = {
	.command = "run",
	.synopsis = "[options] [--] [COMMAND [ARGUMENT]...]",
	.about = "Runs a command (default: $SHELL) in a fresh fenced world.\n"
		 "Exits with its status; 128+N: killed by signal N; 124: timed "
		 "out; 125: pale\nfailed and nothing ran; 126: cannot be "
		 "executed; 127: not found.",
	.usage_status = COMMAND_EXIT_PALE,
	.stop_at_operand = true,
};

/* ---- the run ---- */

/* What an attempt leaves for the report: the world's id is in the launch. */
struct attempt {
	struct launch launch;
	struct fallback fallback;
};

static void
run_world(const struct launch_request *request, struct tty *tty, int signals,
	  struct run_report *report, struct launch *launch)
{
	struct run_result *result = report->result;
	int r;

	r = launch_start(request, launch, &result->error);
	if (r < 0) {
		result->failed = true;
		/* In a world of pale there is no place for ours. */
		result->no_world = r == -EROFS;
		return;
	}
	report->world = launch->world;
	run_loop(launch, signals, tty, request->policy->limits.timeout_ms,
		 result);
	tty_restore(tty);
	if (launch->summary >= 0 && (result->ended || result->started))
		(void)launch_summary(launch, SUMMARY_MS, &report->summary);
	launch_fini(launch);
}

/* Where no world can be made; the first attempt said why in `result`. */
static void
run_fallback(const struct launch_request *request, struct tty *tty, int signals,
	     struct run_report *report, struct attempt *attempt)
{
	struct run_result *result = report->result;
	struct launch_request weaker = *request;
	struct errmsg first = result->error, why = { "" };
	int r;

	r = fallback_prepare(request->policy, request->console,
			     &attempt->fallback, &why);
	if (r < 0) {
		(void)errmsg_set(&result->error, r,
				 "%s; and Landlock alone will not do: %s",
				 first.text, why.text);
		return;
	}
	weaker.policy = report->policy = attempt->fallback.policy;
	weaker.temp = attempt->fallback.temp;
	*result = (struct run_result){ .limits = "none" };
	run_world(&weaker, tty, signals, report, &attempt->launch);
	report->lack = first;
	if (!result->failed || result->started)
		return;
	why = result->error;
	(void)errmsg_set(&result->error, 0, "%s; and with Landlock alone: %s",
			 first.text, why.text);
}

static void
run_worlds(const struct launch_request *request, struct tty *tty,
	   struct run_report *report, struct attempt *attempt)
{
	struct run_result *result = report->result;
	_cleanup_(closep) int signals = run_signals();

	if (signals < 0) {
		(void)errmsg_set(&result->error, signals,
				 "cannot wait for signals: %s",
				 strerror(-signals));
		result->failed = true;
		return;
	}
	run_world(request, tty, signals, report, &attempt->launch);
	if (result->failed && result->no_world)
		run_fallback(request, tty, signals, report, attempt);
}

static void
tell(const struct run_report *report, const char *program, bool quiet)
{
	const struct run_result *result = report->result;

	if (result->failed)
		cli_error("%s%s",
			  report->world && !result->started
				  ? "SANDBOX_UNAVAILABLE: "
				  : "",
			  result->error.text);
	else if (result->exec_error != 0)
		cli_error("cannot run '%s': %s", program,
			  strerror(result->exec_error));
	else if (result->timed_out && !quiet)
		cli_error("the command was ended: its time was over");
	if (*report->lack.text && !result->failed && !quiet)
		cli_error("%s; Landlock alone fenced this run: enforcement was "
			  "partial (pale doctor)",
			  report->lack.text);
	if (!quiet)
		run_report_markers(report);
}

static int
widen(const struct run_options *options, const struct strv *argv,
      const char *cwd, struct policy **policy, struct errmsg *why)
{
	const struct escalation wanted = { .mode = options->escalate,
					   .why = options->why,
					   .argv = argv,
					   .cwd = cwd };
	struct policy *wider;
	int r;

	if (!options->escalate && !options->why)
		return 0;
	r = escalate(*policy, &wanted, &wider, why);
	if (r < 0)
		return r;
	policy_unref(*policy);
	*policy = wider;
	return 0;
}

static int
check_requirements(const struct run_options *options,
		   const struct policy *policy, struct errmsg *why)
{
	int r = command_check_call(options->call, why);

	if (r < 0)
		return r;
	if (policy->require_full && policy->mode == POLICY_DANGER_FULL_ACCESS)
		return errmsg_set(why, -EINVAL,
				  "--require full cannot be had: under "
				  "danger-full-access there is no fence");
	return 0;
}

static int
run(const struct run_options *options, char **operands)
{
	_cleanup_(policy_unrefp) struct policy *policy = NULL;
	_cleanup_(strv_fini) struct strv argv = { 0 }, env = { 0 };
	_cleanup_(tty_fini) struct tty tty = { .fd = -1 };
	_cleanup_(freep) char *cwd = NULL;
	_cleanup_(closep) int report_fd = -1;
	struct run_result result = { .limits = "none" };
	struct run_report report = { .result = &result };
	struct attempt attempt = { .launch = LAUNCH_NONE };
	int r;

	r = command_open_report(options->report, &report_fd, &result.error);
	if (r == 0)
		r = policy_resolve(&options->policy.request, &policy,
				   &result.error);
	if (r == 0)
		r = command_cwd(options->cwd, &cwd, &result.error);
	if (r == 0)
		r = command_env(&options->env, options->clear_env, &env,
				&result.error);
	if (r == 0)
		r = command_argv(operands, &argv, &result.error);
	if (r == 0)
		r = widen(options, &argv, cwd, &policy, &result.error);
	if (r == 0)
		r = check_requirements(options, policy, &result.error);
	report.policy = policy;
	if (r != 0) {
		result.failed = true;
	} else {
		tty_save(&tty);

		const struct launch_request request = {
			.policy = policy,
			.cwd = cwd,
			.argv = &argv,
			.env = &env,
			.passthrough = !options->no_passthrough,
			.call = options->call,
			.console = tty.path,
		};

		run_worlds(&request, &tty, &report, &attempt);
	}
	report.exit_code = command_exit_code(&result);
	tell(&report, argv.count > 0 ? argv.items[0] : "",
	     options->common.quiet);
	if (report_fd >= 0) {
		r = run_report_write(&report, report_fd);
		if (r < 0)
			cli_error("cannot write the report: %s", strerror(-r));
	}
	free(report.summary);
	fallback_fini(&attempt.fallback);
	return report.exit_code;
}

int
cmd_run(int argc, char **argv)
{
	struct run_options options = { .policy = CLI_POLICY_INIT };
	const struct cli_group groups[] = {
		{ run_rows, &options },
		{ cli_policy_options, &options.policy },
		{ cli_common_options, &options.common },
		{ NULL, NULL },
	};
	int first, status;

	if (cli_parse(&run_usage, groups, argc, argv, &first, &status))
		status = run(&options, argv + first);
	strv_fini(&options.env);
	cli_policy_fini(&options.policy);
	return status;
}
