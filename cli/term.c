/* SPDX-License-Identifier: MIT */

/*
 * pale term VERB: the verbs, their options and operands.
 */

#include "cli/term.h"
#include "cli/verbs.h"

#define TERM(field) offsetof(struct term_options, field)

#define ROW_WORLD                                                \
	{                                                        \
		"world", 0, CLI_STRING, TERM(world), "ID",       \
			"of this world, where it is named", NULL \
	}

/* Rows by name, so that each verb has only those that it knows. */
static const struct cli_option new_rows[] = {
	{ "world", 0, CLI_STRING, TERM(world), "WORLD",
	  "this standing world: an id, or a workspace", NULL },
	{ "name", 0, CLI_STRING, TERM(name), "TEXT",
	  "a name, usable wherever an id is", NULL },
	{ "size", 0, CLI_STRING, TERM(size), "COLSxROWS",
	  "its size (default: that of this terminal, else 80x24)", NULL },
	{ "cwd", 'C', CLI_STRING, TERM(command.cwd), "DIR",
	  "the program's directory (default: the current one)", NULL },
	{ "env", 0, CLI_LIST, TERM(command.env), "NAME=VALUE",
	  "set an environment variable", NULL },
	{ "clear-env", 0, CLI_FLAG, TERM(command.clear_env), NULL,
	  "start with an empty environment", NULL },
	{ "detach", 'd', CLI_FLAG, TERM(detach), NULL,
	  "print the id and do not attach", NULL },
	CLI_END,
};

static const struct cli_option none_rows[] = { ROW_WORLD, CLI_END };

#define ROW_TIMEOUT(text)                                                 \
	{                                                                 \
		"timeout", 0, CLI_DURATION, TERM(timeout_ms), "DURATION", \
			text, NULL                                        \
	}

static const struct cli_option send_rows[] = {
	ROW_WORLD,
	{ "paste", 0, CLI_FLAG, TERM(paste), NULL,
	  "the text is pasted, not typed", NULL },
	{ "keys", 'K', CLI_STRING, TERM(keys), "KEYS",
	  "then these keys: 'C-c Up F5 M-x'", NULL },
	{ "enter", 0, CLI_FLAG, TERM(enter), NULL, "and the Enter key", NULL },
	{ "stdin", 0, CLI_FLAG, TERM(from_stdin), NULL,
	  "then all of stdin, at the pace of the program", NULL },
	{ "wait", 0, CLI_FLAG, TERM(wait), NULL,
	  "until it is ready for more; write the output since", NULL },
	{ "plain", 0, CLI_FLAG, TERM(plain), NULL,
	  "of that output, the text alone", NULL },
	ROW_TIMEOUT("of the wait (default: 30s)"),
	CLI_END,
};

static const struct cli_option run_rows[] = {
	ROW_WORLD,
	ROW_TIMEOUT("give up after this time (default: 30s)"),
	{ "raw", 0, CLI_FLAG, TERM(raw), NULL,
	  "the output as it came, with its sequences", NULL },
	CLI_END,
};

static const struct cli_option read_rows[] = {
	ROW_WORLD,
	{ "cursor", 0, CLI_STRING, TERM(cursor), "N",
	  "from this byte on; -N: the last N", NULL },
	{ "max", 0, CLI_SIZE, TERM(max), "SIZE", "at most so many bytes",
	  NULL },
	{ "follow", 'f', CLI_FLAG, TERM(follow), NULL,
	  "go on until all has been written", NULL },
	{ "wait", 0, CLI_DURATION, TERM(wait_ms), "DURATION",
	  "wait so long when nothing is there yet", NULL },
	{ "plain", 0, CLI_FLAG, TERM(plain), NULL,
	  "the text alone, each line as it stood in the end", NULL },
	CLI_END,
};

static const struct cli_option screen_rows[] = {
	ROW_WORLD,
	{ "scrollback", 0, CLI_NUMBER, TERM(scrollback), "N",
	  "and so many rows that scrolled off", NULL },
	{ "format", 0, CLI_STRING, TERM(format), "NAME",
	  "text (default), ansi or json", NULL },
	CLI_END,
};

static const struct cli_option lines_rows[] = {
	ROW_WORLD,
	{ "offset", 0, CLI_NUMBER, TERM(offset), "N", "but not the newest N",
	  NULL },
	{ "count", 0, CLI_NUMBER, TERM(count), "N", "so many (default: 100)",
	  NULL },
	CLI_END,
};

static const struct cli_option list_rows[] = {
	ROW_WORLD,
	{ "all", 'a', CLI_FLAG, TERM(all), NULL, "ended ones, too", NULL },
	CLI_END,
};

static const struct cli_option attach_rows[] = {
	ROW_WORLD,
	{ "read-only", 'r', CLI_FLAG, TERM(read_only), NULL,
	  "look on: nothing that is typed reaches the program", NULL },
	{ "scrollback", 0, CLI_NUMBER, TERM(scrollback), "N",
	  "show N lines that have scrolled off first", NULL },
	{ "detach-key", 0, CLI_STRING, TERM(detach_key), "KEYS",
	  "two keys that detach (default: C-\\ d), or none", NULL },
	{ "titles", 0, CLI_FLAG, TERM(titles), NULL,
	  "let its titles be those of this window", NULL },
	{ "clipboard", 0, CLI_FLAG, TERM(clipboard), NULL,
	  "let its programs write to the clipboard", NULL },
	CLI_END,
};

static const struct cli_option wait_rows[] = {
	ROW_WORLD,
	{ "for", 0, CLI_LIST, TERM(until), "CONDITION",
	  "exit (default), prompt, idle[=DURATION],\n"
	  "                            bytes=SIZE or a pattern",
	  NULL },
	{ "cursor", 0, CLI_STRING, TERM(cursor), "N",
	  "look from this byte of the output on (default: now)", NULL },
	ROW_TIMEOUT("give up after this time"),
	CLI_END,
};

static const struct cli_option resize_rows[] = {
	ROW_WORLD,
	{ "pin", 0, CLI_FLAG, TERM(pin), NULL,
	  "and who attaches does not change it", NULL },
	{ "unpin", 0, CLI_FLAG, TERM(unpin), NULL,
	  "who attaches may change it again", NULL },
	CLI_END,
};

static const struct cli_option kill_rows[] = {
	ROW_WORLD,
	{ "grace", 0, CLI_DURATION, TERM(grace_ms), "DURATION",
	  "the time until KILL (default: 3s)", NULL },
	CLI_END,
};

static const struct verb {
	struct cli_verb verb;
	int (*run)(const struct term_options *options, int argc, char **argv);
} rows[] = {
	{ { { .command = "term new",
	      .synopsis = "[options] [--] [COMMAND [ARGUMENT]...]",
	      .about = "Makes a terminal in the standing world of this "
		       "workspace and session, which is\n"
		       "made when there is none, and attaches to it, or prints "
		       "its id where there is no\n"
		       "terminal to attach from.  Without a command it runs "
		       "$SHELL -i.",
	      .usage_status = 2,
	      .stop_at_operand = true },
	    .operands = { 0, 1 << 20 },
	    .rows = new_rows,
	    .has_policy = true },
	  term_new },
	{ { { .command = "term send",
	      .synopsis = "[options] ID [TEXT]...",
	      .about = "Types into a terminal.",
	      .usage_status = 2 },
	    .operands = { 1, 1 << 20 },
	    .rows = send_rows },
	  term_send },
	{ { { .command = "term run",
	      .synopsis = "[options] ID [--] COMMAND [ARGUMENT]...",
	      .about = "Runs a command in a terminal's shell; writes its "
		       "output and exits as it did, 124\n"
		       "when the time is over, 125 when how it ended cannot be "
		       "told.  One word is a line of\n"
		       "the shell's language, several are the command's.",
	      .usage_status = 2 },
	    .operands = { 2, 1 << 20 },
	    .rows = run_rows },
	  term_run },
	{ { { .command = "term read",
	      .synopsis = "[options] ID",
	      .about = "Writes what a terminal's programs have written, byte "
		       "by byte; reading takes\n"
		       "nothing away.",
	      .usage_status = 2 },
	    .operands = { 1, 1 },
	    .rows = read_rows },
	  term_read },
	{ { { .command = "term screen",
	      .synopsis = "[options] ID",
	      .about = "Shows what a person would see now, or saw last.",
	      .usage_status = 2 },
	    .operands = { 1, 1 },
	    .rows = screen_rows },
	  term_screen },
	{ { { .command = "term lines",
	      .synopsis = "[options] ID",
	      .about = "Shows lines of the screen and of what scrolled off, "
		       "whole again where they were\n"
		       "wrapped.",
	      .usage_status = 2 },
	    .operands = { 1, 1 },
	    .rows = lines_rows },
	  term_lines },
	{ { { .command = "term list",
	      .synopsis = "[options]",
	      .about = "Lists the terminals of the user that live, newest "
		       "first.",
	      .usage_status = 2 },
	    .operands = { 0, 0 },
	    .rows = list_rows },
	  term_list },
	{ { { .command = "term show",
	      .synopsis = "[options] ID",
	      .about = "Shows all that is on record of a terminal.",
	      .usage_status = 2 },
	    .operands = { 1, 1 },
	    .rows = none_rows },
	  term_show },
	{ { { .command = "term status",
	      .synopsis = "[options] ID...",
	      .about = "Prints one line that begins: queued, running PID, "
		       "stopping PID, draining,\n"
		       "exited N, killed N, failed REASON, lost.",
	      .usage_status = 2 },
	    .operands = { 1, 1000 },
	    .rows = none_rows },
	  term_status },
	{ { { .command = "term attach",
	      .synopsis = "[options] [ID]",
	      .about = "Makes this terminal that one, until C-\\ d is typed or "
		       "it ends; without an id, the\n"
		       "only one of this workspace and session, or the one "
		       "attached to last.  Exits as\n"
		       "its program does, 0 when detached.",
	      .usage_status = 2 },
	    .operands = { 0, 1 },
	    .rows = attach_rows },
	  term_attach },
	{ { { .command = "term wait",
	      .synopsis = "[options] ID",
	      .about = "Waits for the first of several things to happen.  Of "
		       "the end of its program it\n"
		       "exits as that did: N, 128 and the signal, 126 or 127 "
		       "(failed), 125 (lost); 124: our\n"
		       "own time is over.",
	      .usage_status = 2 },
	    .operands = { 1, 1 },
	    .rows = wait_rows },
	  term_wait },
	{ { { .command = "term resize",
	      .synopsis = "[options] ID [COLSxROWS]",
	      .about = "Changes the size of a terminal.",
	      .usage_status = 2 },
	    .operands = { 1, 2 },
	    .rows = resize_rows },
	  term_resize },
	{ { { .command = "term signal",
	      .synopsis = "[options] ID INT|TERM|KILL|TSTP|HUP|QUIT|CONT",
	      .about = "Sends a signal to the foreground process group, and "
		       "tells which that is.",
	      .usage_status = 2 },
	    .operands = { 2, 2 },
	    .rows = none_rows },
	  term_signal },
	{ { { .command = "term kill",
	      .synopsis = "[options] ID...",
	      .about = "Hangs up, asks by TERM, and kills after the grace; "
		       "returns when nothing is left.",
	      .usage_status = 2 },
	    .operands = { 1, 1000 },
	    .rows = kill_rows },
	  term_kill },
	{ { { .command = "term rename",
	      .synopsis = "[options] ID [NAME]",
	      .about = "Gives a terminal another name, or none.",
	      .usage_status = 2 },
	    .operands = { 1, 2 },
	    .rows = none_rows },
	  term_rename },
	{ { { .command = "term rm",
	      .synopsis = "[options] ID...",
	      .about = "Forgets ended terminals and their output.",
	      .usage_status = 2 },
	    .operands = { 1, 1000 },
	    .rows = none_rows },
	  term_rm },
	{ { { .command = "term path",
	      .synopsis = "[options] ID [FILE]",
	      .about = "Prints where a terminal is in the control tree.",
	      .usage_status = 2 },
	    .operands = { 1, 2 },
	    .rows = none_rows },
	  term_path },
};

static const struct cli_usage term_usage = {
	.command = "term",
	.synopsis =
		"new|send|run|read|screen|lines|list|show|status|wait|attach|"
		"resize|"
		"signal|kill|rename|rm|path\n       [options]",
	.about = "Persistent terminals of standing worlds; see pale term VERB "
		 "--help.",
	.usage_status = 2,
};

static const struct cli_verbs verbs = CLI_VERBS(&term_usage, rows);

static int
run_verb(const struct verb *verb, int argc, char **argv)
{
	struct term_options options = { .policy = CLI_POLICY_INIT,
					.grace_ms = UINT64_MAX };
	const struct cli_verb_into into = { &options, &options.policy,
					    &options.common };
	int first, status;

	if (cli_verb_parse(&verb->verb, &into, argc, argv, &first, &status))
		status = verb->run(&options, argc - first, argv + first);
	strv_fini(&options.command.env);
	strv_fini(&options.until);
	cli_policy_fini(&options.policy);
	return status;
}

int
cmd_term(int argc, char **argv)
{
	int status;
	const struct verb *verb = cli_verbs_find(&verbs, argc, argv, &status);

	return verb ? run_verb(verb, argc - 1, argv + 1) : status;
}
