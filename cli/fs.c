/* SPDX-License-Identifier: MIT */

/*
 * pale fs VERB: the verbs, their options and operands.
 */

#include "cli/fs.h"

#include <signal.h>
#include <string.h>

#define FS(field) offsetof(struct fs_options, field)

#define ROW_WORLD                                                          \
	{                                                                  \
		"world", 0, CLI_STRING, FS(world), "WORLD",                \
			"judged by the policy of this world: an id, or a " \
			"workspace",                                       \
			NULL                                               \
	}
#define ROW_EXPECT                                                         \
	{                                                                  \
		"expect", 0, CLI_STRING, FS(expect), "VERSION",            \
			"only while this is its version; absent: only if " \
			"there is nothing",                                \
			NULL                                               \
	}
#define ROW_TEXT                                                     \
	{                                                            \
		"text", 0, CLI_FLAG, FS(text), NULL,                 \
			"refuse what is not UTF-8, or has NUL", NULL \
	}

#define ROW_MAX                                                          \
	{                                                                \
		"max", 0, CLI_NUMBER, FS(max), "N",                      \
			"at most so many entries (default: 10000)", NULL \
	}

static const struct cli_option look_rows[] = { ROW_WORLD, CLI_END };

static const struct cli_option write_rows[] = {
	ROW_WORLD,
	ROW_EXPECT,
	{ "mkdir", 0, CLI_FLAG, FS(make_parents), NULL,
	  "make the directories on the way", NULL },
	{ "force", 0, CLI_FLAG, FS(force), NULL,
	  "whatever is there (the default); not with --expect", NULL },
	ROW_TEXT,
	CLI_END,
};

static const struct cli_option edit_rows[] = {
	ROW_WORLD,
	ROW_EXPECT,
	{ "old", 0, CLI_STRING, FS(old), "TEXT",
	  "what is replaced; it must be there exactly once", NULL },
	{ "new", 0, CLI_STRING, FS(new), "TEXT", "by what", NULL },
	{ "all", 0, CLI_FLAG, FS(all), NULL, "wherever it is", NULL },
	{ "edits", 0, CLI_STRING, FS(edits), "FILE|-",
	  "several, as JSON: [{\"old\", \"new\", \"all\"}, ...]", NULL },
	ROW_TEXT,
	CLI_END,
};

static const struct cli_option read_rows[] = {
	ROW_WORLD,
	{ "lines", 'l', CLI_STRING, FS(lines), "FIRST[-LAST]",
	  "these lines, counted from 1", NULL },
	{ "bytes", 'b', CLI_STRING, FS(bytes), "OFFSET[+LENGTH]",
	  "these bytes, counted from 0", NULL },
	{ "number", 'n', CLI_FLAG, FS(number), NULL,
	  "with the number before each line", NULL },
	ROW_TEXT,
	CLI_END,
};

static const struct cli_option list_rows[] = {
	ROW_WORLD,
	ROW_MAX,
	CLI_END,
};

#define ROW_NO_IGNORE                                                      \
	{                                                                  \
		"no-ignore", 0, CLI_FLAG, FS(no_ignore), NULL,             \
			"also what a .gitignore tells git to ignore", NULL \
	}

static const struct cli_option glob_rows[] = { ROW_WORLD, ROW_MAX,
					       ROW_NO_IGNORE, CLI_END };

static const struct cli_option grep_rows[] = {
	ROW_WORLD,
	ROW_MAX,
	ROW_NO_IGNORE,
	{ "fixed", 'F', CLI_FLAG, FS(fixed), NULL,
	  "PATTERN is a text, not an expression", NULL },
	{ "ignore-case", 'i', CLI_FLAG, FS(ignore_case), NULL,
	  "upper and lower case are the same", NULL },
	{ "files", 'l', CLI_FLAG, FS(files), NULL, "only the names of files",
	  NULL },
	{ "glob", 'g', CLI_STRING, FS(glob), "GLOB",
	  "only in files whose path matches", NULL },
	CLI_END,
};

struct verb {
	const char *name;
	const struct cli_option *rows;
	struct cli_usage usage;
	int least, most; /* operands */
	int (*run)(struct fs_verb *verb, char **operands);
};

#define EXITS                                                            \
	"Exit status: 0 done, 13 refused, 65 not text, too large or no " \
	"single match,\n"                                                \
	"66 not there, 74 disk, 75 another version, 2 the question is "  \
	"wrong."

static const struct verb verbs[] = {
	{ "version",
	  look_rows,
	  { .command = "fs version",
	    .synopsis = "[options] PATH",
	    .about = "Prints the version of a file: equal for equal bytes "
		     "and for nothing else;\n"
		     "'absent' when there is none.\n" EXITS },
	  1,
	  1,
	  fs_run_version },
	{ "read",
	  read_rows,
	  { .command = "fs read",
	    .synopsis = "[options] PATH",
	    .about = "Prints a file, or some lines or bytes of it.\n" EXITS },
	  1,
	  1,
	  fs_run_read },
	{ "write",
	  write_rows,
	  { .command = "fs write",
	    .synopsis = "[options] PATH -|FILE",
	    .about = "Makes or replaces a file in one step by what stdin or "
		     "FILE says,\n"
		     "and prints its new version.\n" EXITS },
	  2,
	  2,
	  fs_run_write },
	{ "edit",
	  edit_rows,
	  { .command = "fs edit",
	    .synopsis = "[options] --old TEXT --new TEXT PATH",
	    .about = "Replaces text in a file in one step, and prints its "
		     "new version.  Line ends\n"
		     "and all other bytes stay as they are.\n" EXITS },
	  1,
	  1,
	  fs_run_edit },
	{ "stat",
	  look_rows,
	  { .command = "fs stat",
	    .synopsis = "[options] PATH",
	    .about = "Tells type, size, mode and version.\n" EXITS },
	  1,
	  1,
	  fs_run_stat },
	{ "list",
	  list_rows,
	  { .command = "fs list",
	    .synopsis = "[options] [DIR]",
	    .about = "Lists a directory without what is hidden, sorted by "
		     "bytes.\n" EXITS },
	  0,
	  1,
	  fs_run_list },
	{ "glob",
	  glob_rows,
	  { .command = "fs glob",
	    .synopsis = "[options] GLOB [DIR]",
	    .about =
		    "Lists the files below DIR whose path matches, as by a "
		    "line of a .gitignore:\n"
		    "*.c at any depth, /*.c right there, src/**/*.c.\n" EXITS },
	  1,
	  2,
	  fs_run_glob },
	{ "grep",
	  grep_rows,
	  { .command = "fs grep",
	    .synopsis = "[options] PATTERN [PATH]",
	    .about = "Prints the lines of files below PATH that match a "
		     "regular expression (PCRE2).\n"
		     "Files with NUL are left out.\n" EXITS },
	  1,
	  2,
	  fs_run_grep },
};

static const struct cli_usage usage = {
	.command = "fs",
	.synopsis = "version|read|write|edit|stat|list|glob|grep ...",
	.about = "Files of the workspace, judged by its policy as if from "
		 "inside, and changed only\n"
		 "from the version that was seen.  See pale fs VERB --help.",
	.usage_status = FS_EXIT_USAGE,
};

/* What options may not be together, or must be. */
static const char *
wrong_options(const struct verb *verb, const struct fs_options *options)
{
	if (options->force && options->expect)
		return "--force and --expect exclude each other";
	if (options->lines && options->bytes)
		return "--lines and --bytes exclude each other";
	if (options->bytes && options->number)
		return "--number goes with --lines";
	if (verb->run != fs_run_edit)
		return NULL;
	if (options->edits && (options->old || options->new || options->all))
		return "--edits says it all; --old, --new and --all go alone";
	if (!options->edits && (!options->old || !options->new))
		return "--old and --new are expected, or --edits";
	return NULL;
}

static int
run_verb(const struct verb *verb, int argc, char **argv)
{
	struct fs_options options = { .policy = CLI_POLICY_INIT };
	const struct cli_group groups[] = {
		{ verb->rows, &options },
		{ cli_policy_options, &options.policy },
		{ cli_common_options, &options.common },
		{ 0 },
	};
	struct cli_usage about = verb->usage;
	struct fs_verb at;
	const char *wrong;
	int first, status;

	about.usage_status = FS_EXIT_USAGE;
	if (!cli_parse(&about, groups, argc, argv, &first, &status))
		goto out;
	wrong = wrong_options(verb, &options);
	if (argc - first < verb->least || argc - first > verb->most)
		wrong = "the wrong number of operands";
	if (wrong) {
		status = cli_usage_error(&about, "%s", wrong);
		goto out;
	}
	status = FS_EXIT_USAGE;
	if (fs_verb_init(&at, &options) == 0)
		status = verb->run(&at, argv + first);
	fs_verb_fini(&at);
out:
	cli_policy_fini(&options.policy);
	return status;
}

int
cmd_fs(int argc, char **argv)
{
	const struct cli_group none[] = { { 0 } };

	/* The kernel tells by SIGIO that a lease is wanted; we look instead. */
	(void)signal(SIGIO, SIG_IGN);
	for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]);
	     i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return run_verb(&verbs[i], argc - 1, argv + 1);
	if (argc > 1 &&
	    (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
		cli_usage_print(&usage, none);
		return 0;
	}
	return cli_usage_error(&usage, "version, read, write, edit, stat, "
				       "list, glob or grep is expected");
}
