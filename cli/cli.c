/* SPDX-License-Identifier: MIT */

/*
 * The option parser.  getopt_long(3) would do most of it, but it abbreviates
 * long names (a script that relies on `--hi` breaks when a second such option
 * comes), and it would need its own table beside ours.
 */

#include "cli/cli.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/units.h"

/* Where the usage text begins to explain. */
#define HELP_COLUMN 28

struct parse {
	const struct cli_usage *usage;
	const struct cli_group *groups;
	int argc;
	char **argv;
	int at; /* the argument under inspection */
};

void
cli_error(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("pale: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

int
cli_usage_error(const struct cli_usage *usage, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "pale %s: ", usage->command);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "; see pale %s --help\n", usage->command);
	return usage->usage_status;
}

int
cli_print_json(struct buf *json)
{
	int r = buf_error(json);

	if (r < 0) {
		cli_error("out of memory");
	} else {
		fwrite(json->data, 1, json->len, stdout);
		putchar('\n');
	}
	buf_fini(json);
	return r;
}

static void
print_option(const struct cli_option *option)
{
	char left[64];
	int len;

	if (option->letter)
		len = snprintf(left, sizeof(left), "  -%c, --%s",
			       option->letter, option->name);
	else
		len = snprintf(left, sizeof(left), "      --%s", option->name);
	if (option->argument)
		len += snprintf(left + len, sizeof(left) - (size_t)len, " %s",
				option->argument);
	assert((size_t)len < sizeof(left));

	if (len >= HELP_COLUMN)
		printf("%s\n%*s%s\n", left, HELP_COLUMN, "", option->help);
	else
		printf("%-*s%s\n", HELP_COLUMN, left, option->help);
}

void
cli_usage_print(const struct cli_usage *usage, const struct cli_group *groups)
{
	printf("usage: pale %s%s%s\n\n%s\n\n", usage->command,
	       *usage->synopsis ? " " : "", usage->synopsis, usage->about);
	for (; groups->options; groups++)
		for (const struct cli_option *o = groups->options; o->name; o++)
			print_option(o);
	printf("%-*s%s\n", HELP_COLUMN, "  -h, --help", "this text");
}

/* Stores one value; a bad one is told in `why`. */
static int
store(const struct cli_option *option, void *into, const char *value,
      struct errmsg *why)
{
	void *field = (char *)into + option->offset;
	const char *form = NULL;
	int r = 0;

	/* A row without an argument takes no value: see take_option(). */
	assert(value || option->kind < CLI_STRING);
	switch (option->kind) {
	case CLI_FLAG:
		*(bool *)field = true;
		break;
	case CLI_YES:
	case CLI_NO:
		*(int *)field = option->kind == CLI_YES;
		break;
	case CLI_COUNT:
		++*(int *)field;
		break;
	case CLI_STRING:
		*(const char **)field = value;
		break;
	case CLI_LIST:
		r = strv_add(field, value);
		break;
	case CLI_DURATION:
		r = units_duration_ms(value, field);
		form = "a duration such as 500ms, 1.5s, 5m or 2h";
		break;
	case CLI_SIZE:
		r = units_size(value, field);
		form = "a size such as 65536, 64K, 4M or 1G";
		break;
	case CLI_NUMBER:
		r = units_number(value, field);
		form = "a number";
		break;
	case CLI_APPLY:
		return option->apply(into, value, why);
	}
	if (r == -EINVAL)
		return errmsg_set(why, r, "--%s takes %s, not '%s'",
				  option->name, form, value);
	if (r < 0)
		return errmsg_set(why, r, "--%s '%s': %s", option->name, value,
				  strerror(-r));
	return 0;
}

static const struct cli_option *
find_option(const struct parse *parse, const char *name, size_t len,
	    char letter, void **ret_into)
{
	for (const struct cli_group *g = parse->groups; g->options; g++)
		for (const struct cli_option *o = g->options; o->name; o++) {
			if (name ? strlen(o->name) != len ||
					    strncmp(o->name, name, len) != 0
				 : o->letter != letter)
				continue;
			*ret_into = g->into;
			return o;
		}
	return NULL;
}

/*
 * Takes the value of `option`: what is `attached` ("--x=V", "-xV"), else the
 * next argument.  Returns false after telling what is wrong.
 */
static bool
take_option(struct parse *parse, const struct cli_option *option, void *into,
	    const char *attached)
{
	const char *value = attached;
	struct errmsg why = { "" };

	if (!option->argument && value) {
		cli_usage_error(parse->usage, "--%s takes no value",
				option->name);
		return false;
	}
	if (option->argument && !value) {
		if (parse->at + 1 >= parse->argc) {
			cli_usage_error(parse->usage, "--%s needs %s",
					option->name, option->argument);
			return false;
		}
		value = parse->argv[++parse->at];
	}
	if (store(option, into, value, &why) < 0) {
		cli_usage_error(parse->usage, "%s", why.text);
		return false;
	}
	return true;
}

static bool
take_long(struct parse *parse, const char *name)
{
	const char *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct cli_option *option;
	void *into;

	option = find_option(parse, name, len, 0, &into);
	if (!option) {
		cli_usage_error(parse->usage, "unknown option '--%.*s'",
				(int)len, name);
		return false;
	}
	return take_option(parse, option, into, equals ? equals + 1 : NULL);
}

/* "-qv", "-wDIR", "-w DIR". */
static bool
take_letters(struct parse *parse, const char *letters)
{
	const struct cli_option *option;
	void *into;

	for (; *letters; letters++) {
		option = find_option(parse, NULL, 0, *letters, &into);
		if (!option) {
			cli_usage_error(parse->usage, "unknown option '-%c'",
					*letters);
			return false;
		}
		if (option->argument)
			return take_option(parse, option, into,
					   letters[1] ? letters + 1 : NULL);
		if (!take_option(parse, option, into, NULL))
			return false;
	}
	return true;
}

/* Moves the argument at `from` to `to`, before those that lie between. */
static void
move_argument(char **argv, int from, int to)
{
	char *moved = argv[from];

	memmove(argv + to + 1, argv + to, (size_t)(from - to) * sizeof(*argv));
	argv[to] = moved;
}

bool
cli_parse(const struct cli_usage *usage, const struct cli_group *groups,
	  int argc, char **argv, int *ret_first, int *ret_status)
{
	struct parse parse = { usage, groups, argc, argv, 1 };
	int first = 1; /* options end here, operands seen so far follow */

	for (; parse.at < argc; parse.at++) {
		const char *arg = argv[parse.at];
		int start = parse.at;
		bool ok;

		if (arg[0] != '-' || !arg[1]) {
			if (usage->stop_at_operand)
				break;
			continue;
		}
		if (strcmp(arg, "--") == 0) {
			move_argument(argv, start, first++);
			break;
		}
		if (strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0) {
			cli_usage_print(usage, groups);
			*ret_status = 0;
			return false;
		}
		ok = arg[1] == '-' ? take_long(&parse, arg + 2)
				   : take_letters(&parse, arg + 1);
		if (!ok) {
			*ret_status = usage->usage_status;
			return false;
		}
		for (; start <= parse.at; start++)
			move_argument(argv, start, first++);
	}
	*ret_first = first;
	return true;
}
