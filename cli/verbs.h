/* SPDX-License-Identifier: MIT */
#ifndef CLI_VERBS_H
#define CLI_VERBS_H

/*
 * Commands with verbs, such as `pale job list`.  The table of a command has
 * rows of its own kind, so that the functions that run its verbs are typed;
 * each begins with a struct cli_verb:
 *
 *	static const struct verb {
 *		struct cli_verb verb;
 *		int (*run)(const struct opts *opts, int argc, char **argv);
 *	} rows[] = { ... };
 *	static const struct cli_verbs verbs = CLI_VERBS(&job_usage, rows);
 *
 * Thread: main.
 */

#include "cli/cli.h"

struct cli_verb {
	struct cli_usage usage; /* .command: "job list" */
	struct {
		int min, max;
	} operands;
	/* For cli_verb_parse(). */
	const struct cli_option *rows;
	bool has_policy; /* else -w, -m and -s */
};

/* Where the values of options go. */
struct cli_verb_into {
	void *rows;
	struct cli_policy_options *policy;
	struct cli_common *common;
};

struct cli_verbs {
	const struct cli_usage *usage; /* of the command */
	const void *rows;	       /* each begins with a struct cli_verb */
	size_t size, count;
};

#define CLI_VERBS(usage, rows)                           \
	{                                                \
		(usage), (rows), sizeof((rows)[0]),      \
			sizeof(rows) / sizeof((rows)[0]) \
	}

/*
 * The row that argv[1] names.  NULL: help was asked for, or no verb is named,
 * which has been answered; *ret_status is the exit status.
 */
const void *cli_verbs_find(const struct cli_verbs *verbs, int argc, char **argv,
			   int *ret_status);

/*
 * As cli_parse(), with argv[0] the verb; a number of operands that the verb
 * does not take is wrong usage.
 */
bool cli_verb_parse(const struct cli_verb *verb,
		    const struct cli_verb_into *into, int argc, char **argv,
		    int *ret_first, int *ret_status);

#endif
