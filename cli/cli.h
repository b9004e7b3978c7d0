/* SPDX-License-Identifier: MIT */
#ifndef CLI_CLI_H
#define CLI_CLI_H

/*
 * What all commands of `pale` share: the table of commands, options as tables
 * of rows, usage texts, and the options that make a policy.
 *
 * A command is `int cmd_x(int argc, char **argv)` with argv[0] the command's
 * name; it returns the exit status.  Its options are static tables whose rows
 * say where in a struct the value goes, so that the usage text, the shell
 * completions and the check of the man pages come from the same rows:
 *
 *	struct opts { struct cli_common common; bool follow; };
 *	static const struct cli_option rows[] = {
 *		{ "follow", 'f', CLI_FLAG, offsetof(struct opts, follow),
 *		  NULL, "go on showing new ones", NULL },
 *		CLI_END,
 *	};
 *	static const struct cli_usage usage = {
 *		.command = "denials", .synopsis = "[options]",
 *		.about = "Shows what was refused.", .usage_status = 2,
 *	};
 *
 *	struct opts opts = { 0 };
 *	const struct cli_group groups[] = {
 *		{ rows, &opts }, { cli_common_options, &opts.common }, { 0 },
 *	};
 *	if (!cli_parse(&usage, groups, argc, argv, &first, &status))
 *		return status;
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/strv.h"
#include "policy/policy.h"

/*
 * Every command: name, function, hidden, summary.  Hidden ones are not for
 * people to type.
 */
#define CLI_COMMANDS(X)                                                      \
	X("run", cmd_run, false, "run one command in a fresh fenced world")  \
	X("exec", cmd_exec, false, "run a command in the standing world")    \
	X("shell", cmd_shell, false, "a shell in the standing world")        \
	X("job", cmd_job, false, "background jobs of standing worlds")       \
	X("term", cmd_term, false, "persistent terminals")                   \
	X("fs", cmd_fs, false, "files: read, write and edit by version")     \
	X("stdio", cmd_stdio, false, "speak to the standing world")          \
	X("denials", cmd_denials, false, "show what was refused")            \
	X("why", cmd_why, false, "tell what the fence would answer")         \
	X("policy", cmd_policy, false, "show or check the policy in force")  \
	X("world", cmd_world, false, "list, show, change and stop worlds")   \
	X("log", cmd_log, false, "show what happened to worlds and modes")   \
	X("home", cmd_home, false, "show or reset a private home")           \
	X("mount", cmd_mount, false, "mount a fenced view for the host")     \
	X("umount", cmd_umount, false, "take such a mount away")             \
	X("doctor", cmd_doctor, false, "tell what this machine can enforce") \
	X("version", cmd_version, false, "print versions")                   \
	X("warden", cmd_warden, true, "serve one world")                     \
	X("mount.fuse.pale", cmd_mount_fuse, true, "mount -t fuse.pale")

#define X(name, fn, hidden, summary) int fn(int argc, char **argv);
CLI_COMMANDS(X)
#undef X

enum cli_kind {
	CLI_FLAG,     /* bool: set to true */
	CLI_YES,      /* int: set to 1 */
	CLI_NO,	      /* int: set to 0 */
	CLI_COUNT,    /* int: one more */
	CLI_STRING,   /* const char *: borrowed from argv */
	CLI_LIST,     /* struct strv: a copy is added */
	CLI_DURATION, /* uint64_t: milliseconds; see base/units.h */
	CLI_SIZE,     /* uint64_t: bytes; "64K 4M 1G" */
	CLI_NUMBER,   /* uint64_t */
	CLI_APPLY,    /* apply(into, value, why) */
};

struct cli_option {
	const char *name; /* long name without dashes; NULL ends the table */
	char letter;	  /* 0: none */
	enum cli_kind kind;
	size_t offset;	      /* in the struct of the group */
	const char *argument; /* its name in the usage; NULL: takes none */
	const char *help;
	int (*apply)(void *into, const char *value, struct errmsg *why);
};

#define CLI_END                                        \
	{                                              \
		NULL, 0, CLI_FLAG, 0, NULL, NULL, NULL \
	}

struct cli_group {
	const struct cli_option *options; /* NULL ends the array */
	void *into;
};

struct cli_usage {
	const char *command;  /* "run", "policy show" */
	const char *synopsis; /* what follows the command */
	const char *about;    /* a sentence or a few; lines ≤ 80 columns */
	int usage_status;     /* exit status of wrong usage: 2 or 125 */
	bool stop_at_operand; /* what follows the first operand is data */
};

/* -q, -v and --json: what commands that print share. */
struct cli_common {
	bool quiet;
	int verbose;
	bool json;
};
extern const struct cli_option cli_common_options[];

/*
 * Parses options until "--" or the end (or the first operand); operands are
 * moved behind the options, argv[*ret_first] being the first of them.  -h and
 * --help are known everywhere.  Returns true to go on; false when the command
 * shall return *ret_status: the usage was printed to stdout (0), or wrong
 * usage was told in one line on stderr (usage_status).
 */
bool cli_parse(const struct cli_usage *usage, const struct cli_group *groups,
	       int argc, char **argv, int *ret_first, int *ret_status);

/* Prints the usage text to stdout. */
void cli_usage_print(const struct cli_usage *usage,
		     const struct cli_group *groups);

/* One line of wrong usage on stderr; returns usage->usage_status. */
int cli_usage_error(const struct cli_usage *usage, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "pale: …" on stderr. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * Prints one JSON text and a newline, and empties the buffer.  Returns 0, or
 * -ENOMEM (told) when the text could not be built.
 */
struct buf;
int cli_print_json(struct buf *json);

/*
 * The options of chapter 90 that make a policy, parsed into a request: -w -m -s
 * --rw --hide --protect --allow --hide-path --socket --dev --env-hide --home
 * --net --tmp --no-nest --preset --config --timeout --linger
 * --memory --pids --cpu --require.  Initialise with CLI_POLICY_INIT, release
 * with cli_policy_fini().
 */
struct cli_policy_options {
	struct policy_request request;
};
#define CLI_POLICY_INIT                               \
	{                                             \
		.request = { .tmp = -1, .nest = -1 }, \
	}
extern const struct cli_option cli_policy_options[];
void cli_policy_fini(struct cli_policy_options *options);

/* -w, -m and -s alone, for the commands that only name a world. */
extern const struct cli_option cli_place_options[];

#endif
