/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"

#include <string.h>

#include "tests/unit/suite.h"

struct opts {
	bool flag;
	int count;
	const char *text;
	struct strv list;
	uint64_t ms;
};

static const struct cli_option rows[] = {
	{ "flag", 'f', CLI_FLAG, offsetof(struct opts, flag), NULL, "f", NULL },
	{ "count", 'c', CLI_COUNT, offsetof(struct opts, count), NULL, "c",
	  NULL },
	{ "text", 't', CLI_STRING, offsetof(struct opts, text), "TEXT", "t",
	  NULL },
	{ "list", 0, CLI_LIST, offsetof(struct opts, list), "ITEM", "l", NULL },
	{ "wait", 0, CLI_DURATION, offsetof(struct opts, ms), "DURATION", "w",
	  NULL },
	CLI_END,
};

static struct cli_usage usage = {
	.command = "x",
	.synopsis = "",
	.about = "",
	.usage_status = 2,
};

static struct opts opts;
static const struct cli_group groups[] = { { rows, &opts }, { 0 } };
static char *args[16];
static int n_args, first, status;

/* Splits "a b c" into args after a command name, and parses. */
static bool
parse(char *line)
{
	strv_fini(&opts.list);
	memset(&opts, 0, sizeof(opts));
	args[0] = (char *)"x";
	n_args = 1;
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		args[n_args++] = word;
	args[n_args] = NULL;
	first = status = -1;
	return cli_parse(&usage, groups, n_args, args, &first, &status);
}

#define PARSE(text)                         \
	__extension__({                     \
		static char line_[] = text; \
		parse(line_);               \
	})

START_TEST(options_and_operands_may_be_mixed)
{
	ck_assert(PARSE("one -fcc two --text=v --list a --list=b three"));
	ck_assert(opts.flag);
	ck_assert_int_eq(opts.count, 2);
	ck_assert_str_eq(opts.text, "v");
	ck_assert_uint_eq(opts.list.count, 2);
	ck_assert_int_eq(n_args - first, 3);
	ck_assert_str_eq(args[first], "one");
	ck_assert_str_eq(args[first + 1], "two");
	ck_assert_str_eq(args[first + 2], "three");
}
END_TEST

START_TEST(a_double_dash_ends_the_options)
{
	ck_assert(PARSE("one -tv -- -f --text"));
	ck_assert(!opts.flag);
	ck_assert_str_eq(opts.text, "v");
	ck_assert_int_eq(n_args - first, 3);
	ck_assert_str_eq(args[first], "one");
	ck_assert_str_eq(args[first + 1], "-f");
}
END_TEST

START_TEST(a_command_keeps_its_own_options)
{
	usage.stop_at_operand = true;
	ck_assert(PARSE("-f ls -c -- x"));
	usage.stop_at_operand = false;
	ck_assert(opts.flag);
	ck_assert_int_eq(opts.count, 0);
	ck_assert_str_eq(args[first], "ls");
	ck_assert_int_eq(n_args - first, 4);
}
END_TEST

START_TEST(wrong_usage_has_the_status_of_the_command)
{
	usage.usage_status = 125;
	ck_assert(!PARSE("--unknown"));
	ck_assert_int_eq(status, 125);
	usage.usage_status = 2;
	ck_assert(!PARSE("-z"));
	ck_assert_int_eq(status, 2);
	ck_assert(!PARSE("--text"));
	ck_assert(!PARSE("--flag=1"));
	ck_assert(!PARSE("--wait 5x"));
	ck_assert(!PARSE("--tex v"));
}
END_TEST

START_TEST(help_is_no_error)
{
	ck_assert(!PARSE("one --help"));
	ck_assert_int_eq(status, 0);
	ck_assert(PARSE("-- --help"));
}
END_TEST

START_TEST(policy_options_fill_the_request)
{
	char *argv[] = { (char *)"x",
			 (char *)"-m",
			 (char *)"read-only",
			 (char *)"--rw=/a",
			 (char *)"--rw",
			 (char *)"/b",
			 (char *)"--no-nest",
			 (char *)"--tmp",
			 (char *)"--require",
			 (char *)"full",
			 (char *)"--memory",
			 (char *)"1G",
			 (char *)"--timeout=2s",
			 NULL };
	struct cli_policy_options policy = CLI_POLICY_INIT;
	const struct cli_group policy_groups[] = {
		{ cli_policy_options, &policy },
		{ 0 },
	};

	ck_assert(cli_parse(&usage, policy_groups, 13, argv, &first, &status));
	ck_assert_str_eq(policy.request.mode, "read-only");
	ck_assert_uint_eq(policy.request.rw.count, 2);
	ck_assert_int_eq(policy.request.nest, 0);
	ck_assert_int_eq(policy.request.tmp, 1);
	ck_assert(policy.request.require_full);
	ck_assert(!policy.request.require_limits);
	ck_assert_uint_eq(policy.request.limits.memory, 1u << 30);
	ck_assert_uint_eq(policy.request.limits.timeout_ms, 2000);
	cli_policy_fini(&policy);
}
END_TEST

int
main(void)
{
	TCase *tcase = tcase_create("options");

	tcase_add_test(tcase, options_and_operands_may_be_mixed);
	tcase_add_test(tcase, a_double_dash_ends_the_options);
	tcase_add_test(tcase, a_command_keeps_its_own_options);
	tcase_add_test(tcase, wrong_usage_has_the_status_of_the_command);
	tcase_add_test(tcase, help_is_no_error);
	tcase_add_test(tcase, policy_options_fill_the_request);
	return suite_run("cli", tcase);
}
