/* SPDX-License-Identifier: MIT */

/*
 * pale job VERB: the verbs, their options and operands.
 */

#include "cli/job.h"
#include "cli/verbs.h"

#define JOB(field) offsetof(struct job_options, field)

/* Rows by name, so that each verb has only those that it knows. */
static const struct cli_option start_rows[] = {
	{ "world", 0, CLI_STRING, JOB(world), "WORLD",
	  "this standing world: an id, or a workspace", NULL },
	{ "name", 0, CLI_STRING, JOB(name), "TEXT", "a name for people", NULL },
	{ "cwd", 'C', CLI_STRING, JOB(command.cwd), "DIR",
	  "the command's directory (default: the current one)", NULL },
	{ "env", 0, CLI_LIST, JOB(command.env), "NAME=VALUE",
	  "set an environment variable", NULL },
	{ "clear-env", 0, CLI_FLAG, JOB(command.clear_env), NULL,
	  "start with an empty environment", NULL },
	{ "env-profile", 0, CLI_STRING, JOB(profile), "NAME",
	  "plain (default), or agent: no colours, pagers and questions", NULL },
	{ "stdin", 0, CLI_STRING, JOB(input), "FILE|-",
	  "its input; -: what pale job write says (default: none)", NULL },
	{ "merge", 0, CLI_FLAG, JOB(merge), NULL,
	  "keep stdout and stderr as one stream", NULL },
	{ "queue", 0, CLI_FLAG, JOB(queue), NULL,
	  "wait for a place when all are taken", NULL },
	{ "after", 0, CLI_STRING, JOB(after), "ID",
	  "start when that job has ended with 0", NULL },
	{ "retry", 0, CLI_NUMBER, JOB(retry), "N",
	  "start it again up to N times while it does not end with 0", NULL },
	{ "client-token", 0, CLI_STRING, JOB(token), "TEXT",
	  "the same text gives the same job", NULL },
	CLI_END,
};

#define ROW_WORLD                                                            \
	{                                                                    \
		"world", 0, CLI_STRING, JOB(world), "ID", "this world", NULL \
	}

static const struct cli_option list_rows[] = {
	ROW_WORLD,
	{ "all", 'a', CLI_FLAG, JOB(all), NULL, "ended ones, too", NULL },
	{ "follow", 'f', CLI_FLAG, JOB(follow), NULL,
	  "then tell each end, once", NULL },
	CLI_END,
};

static const struct cli_option none_rows[] = { CLI_END };

static const struct cli_option out_rows[] = {
	{ "stream", 0, CLI_STRING, JOB(stream), "NAME",
	  "stdout, stderr or both (default), in the order written", NULL },
	{ "offset", 0, CLI_STRING, JOB(offset), "N",
	  "from this byte on; -N: the last N", NULL },
	{ "max", 0, CLI_SIZE, JOB(max), "SIZE", "at most so many bytes", NULL },
	{ "follow", 'f', CLI_FLAG, JOB(follow), NULL,
	  "go on until all has been written", NULL },
	{ "wait", 0, CLI_DURATION, JOB(wait_ms), "DURATION",
	  "wait so long when nothing is there yet", NULL },
	CLI_END,
};

static const struct cli_option wait_rows[] = {
	{ "any", 0, CLI_FLAG, JOB(any), NULL, "until one has ended", NULL },
	{ "timeout", 0, CLI_DURATION, JOB(timeout_ms), "DURATION",
	  "give up after this time", NULL },
	CLI_END,
};

static const struct cli_option kill_rows[] = {
	{ "signal", 0, CLI_STRING, JOB(signal), "NAME",
	  "the first signal (default: TERM)", NULL },
	{ "grace", 0, CLI_DURATION, JOB(grace_ms), "DURATION",
	  "the time until KILL (default: 3s)", NULL },
	CLI_END,
};

static const struct cli_option prune_rows[] = {
	ROW_WORLD,
	{ "keep", 0, CLI_NUMBER, JOB(keep), "N", "but the newest N", NULL },
	CLI_END,
};

static const struct cli_option write_rows[] = {
	{ "close", 0, CLI_FLAG, JOB(close), NULL, "and end its input", NULL },
	CLI_END,
};

static const struct cli_option notify_rows[] = { ROW_WORLD, CLI_END };

static const struct verb {
	struct cli_verb verb;
	int (*run)(const struct job_options *options, int argc, char **argv);
} rows[] = {
	{ { { .command = "job start",
	      .synopsis = "[options] [--] COMMAND [ARGUMENT]...",
	      .about = "Starts a command in the standing world of this "
		       "workspace and session, which is\n"
		       "made when there is none, and prints its id.",
	      .usage_status = 2,
	      .stop_at_operand = true },
	    .operands = { 1, 1 << 20 },
	    .rows = start_rows,
	    .has_policy = true },
	  job_start },
	{ { { .command = "job list",
	      .synopsis = "[options]",
	      .about = "Lists the jobs of the user that have not ended, newest "
		       "first.",
	      .usage_status = 2 },
	    .operands = { 0, 0 },
	    .rows = list_rows },
	  job_list },
	{ { { .command = "job show",
	      .synopsis = "[options] ID",
	      .about = "Shows all that is on record of a job.",
	      .usage_status = 2 },
	    .operands = { 1, 1 },
	    .rows = none_rows },
	  job_show },
	{ { { .command = "job status",
	      .synopsis = "[options] ID...",
	      .about = "Prints one line that begins: queued, running PID, "
		       "stopping PID, draining,\n"
		       "exited N, killed N, timed_out, failed REASON, lost.",
	      .usage_status = 2 },
	    .operands = { 1, 1000 },
	    .rows = none_rows },
	  job_status },
	{ { { .command = "job out",
	      .synopsis = "[options] ID",
	      .about = "Writes what a job has written; reading takes nothing "
		       "away.",
	      .usage_status = 2 },
	    .operands = { 1, 1 },
	    .rows = out_rows },
	  job_out },
	{ { { .command = "job logs",
	      .synopsis = "[options] ID",
	      .about = "The same as pale job out.",
	      .usage_status = 2 },
	    .operands = { 1, 1 },
	    .rows = out_rows },
	  job_out },
	{ { { .command = "job wait",
	      .synopsis = "[options] ID...",
	      .about = "Waits for the end of jobs and exits as they did: N, "
		       "128 and the signal, 124 (timed\n"
		       "out, or our own time is over), 126 or 127 (failed), "
		       "125 (lost).",
	      .usage_status = 2 },
	    .operands = { 1, 1000 },
	    .rows = wait_rows },
	  job_wait },
	{ { { .command = "job kill",
	      .synopsis = "[options] ID...",
	      .about = "Ends jobs, and returns when nothing of them is left.",
	      .usage_status = 2 },
	    .operands = { 1, 1000 },
	    .rows = kill_rows },
	  job_kill },
	{ { { .command = "job rm",
	      .synopsis = "[options] ID...",
	      .about = "Forgets ended jobs and their output.",
	      .usage_status = 2 },
	    .operands = { 1, 1000 },
	    .rows = none_rows },
	  job_rm },
	{ { { .command = "job prune",
	      .synopsis = "[options]",
	      .about = "Forgets all ended jobs of the user, or of -w, -s or "
		       "--world.",
	      .usage_status = 2 },
	    .operands = { 0, 0 },
	    .rows = prune_rows },
	  job_prune },
	{ { { .command = "job write",
	      .synopsis = "[options] ID",
	      .about = "Passes stdin on to a job started with --stdin -.",
	      .usage_status = 2 },
	    .operands = { 1, 1 },
	    .rows = write_rows },
	  job_write },
	{ { { .command = "job notify",
	      .synopsis = "[options] [ID...]",
	      .about = "Prints a line for each job of the standing world that "
		       "ends from now on; with ids,\n"
		       "until those have.",
	      .usage_status = 2 },
	    .operands = { 0, 1000 },
	    .rows = notify_rows },
	  job_notify },
	{ { { .command = "job path",
	      .synopsis = "[options] ID [FILE]",
	      .about = "Prints where a job is in the control tree.",
	      .usage_status = 2 },
	    .operands = { 1, 2 },
	    .rows = none_rows },
	  job_path },
};

static const struct cli_usage job_usage = {
	.command = "job",
	.synopsis = "start|list|show|status|out|logs|wait|kill|rm|prune|write|"
		    "notify|path [options]",
	.about = "Background jobs of standing worlds; see pale job VERB "
		 "--help.",
	.usage_status = 2,
};

static const struct cli_verbs verbs = CLI_VERBS(&job_usage, rows);

static int
run_verb(const struct verb *verb, int argc, char **argv)
{
	struct job_options options = { .policy = CLI_POLICY_INIT,
				       .grace_ms = UINT64_MAX };
	const struct cli_verb_into into = { &options, &options.policy,
					    &options.common };
	int first, status;

	if (cli_verb_parse(&verb->verb, &into, argc, argv, &first, &status))
		status = verb->run(&options, argc - first, argv + first);
	strv_fini(&options.command.env);
	cli_policy_fini(&options.policy);
	return status;
}

int
cmd_job(int argc, char **argv)
{
	int status;
	const struct verb *verb = cli_verbs_find(&verbs, argc, argv, &status);

	return verb ? run_verb(verb, argc - 1, argv + 1) : status;
}
