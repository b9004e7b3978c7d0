/* SPDX-License-Identifier: MIT */

/*
 * pale policy show: the policy that a run with the same options would have,
 * complete.  pale policy check is pale why.
 */

#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "policy/rules.h"

static const struct cli_usage usage_show = {
	.command = "policy show",
	.synopsis = "[options]",
	.about = "Shows the policy that these options, the configuration and "
		 "the workspace make.",
	.usage_status = 2,
};

static const struct cli_usage usage_policy = {
	.command = "policy",
	.synopsis = "show [options] | check [options] OP PATH [PATH2]",
	.about = "show    the policy that a run with these options would have\n"
		 "check   the same as pale why",
	.usage_status = 2,
};

static const char *
yes_no(bool value)
{
	return value ? "yes" : "no";
}

static void
print_list(const char *title, const struct strv *items)
{
	for (size_t i = 0; i < items->count; i++)
		printf("%-12s%s\n", title, items->items[i]);
}

static void
print_limit(const char *title, uint64_t value, const char *unit)
{
	if (value)
		printf("%-12s%llu%s\n", title, (unsigned long long)value, unit);
}

static void
print_roots(const struct policy *policy)
{
	static const char *const kinds[] = {
		[POLICY_ROOT_WORKSPACE] = "workspace",
		[POLICY_ROOT_GIT] = "git",
		[POLICY_ROOT_RW] = "rw",
	};

	for (size_t i = 0; i < policy->n_roots; i++)
		printf("%-12s%s\n", kinds[policy->roots[i].kind],
		       policy->roots[i].path);
}

static void
print_rules(const struct policy *policy)
{
	static const char *const kinds[] = {
		[RULE_PROTECT] = "protect",
		[RULE_HIDE] = "hide",
		[RULE_ALLOW] = "allow",
	};
	const char *pattern, *source;
	enum rule_kind kind;

	for (size_t i = 0; policy->rules && rules_get(policy->rules, i, &kind,
						      &pattern, &source);
	     i++)
		printf("%-12s%s (%s)\n", kinds[kind], pattern, source);
}

static void
print_policy(const struct policy *policy)
{
	printf("%-12s%s (%s)\n", "mode", policy_mode_name(policy->mode),
	       policy->mode_source ? policy->mode_source : "default");
	printf("%-12s%s\n", "session", policy->session);
	print_roots(policy);
	print_rules(policy);
	print_list("hide-path", &policy->hide_paths);
	print_list("socket", &policy->sockets);
	print_list("name-socket", &policy->name_sockets);
	print_list("dev", &policy->devices);
	print_list("env-hide", &policy->env_hide);
	printf("%-12s%s\n", "git guard", yes_no(policy->git_guard));
	printf("%-12s%s\n", "tmp",
	       policy->tmp_writable ? "writable" : "read-only");
	printf("%-12s%s\n", "home",
	       policy->home == POLICY_HOME_PRIVATE ? "private" : "ro");
	printf("%-12s%s\n", "net",
	       policy->net == POLICY_NET_NONE ? "none" : "host");
	printf("%-12s%s\n", "nest", yes_no(policy->nest));
	print_limit("timeout", policy->limits.timeout_ms, "ms");
	print_limit("linger", policy->limits.linger_ms, "ms");
	print_limit("memory", policy->limits.memory, "");
	print_limit("pids", policy->limits.pids, "");
	print_limit("cpu", policy->limits.cpu_percent, "%");
}

static int
show(const struct policy_request *request, bool json)
{
	_cleanup_(policy_unrefp) struct policy *policy = NULL;
	_cleanup_(freep) char *text = NULL;
	struct errmsg why = { "" };
	int r = policy_resolve(request, &policy, &why);

	if (r < 0) {
		cli_error("%s", why.text);
		return 1;
	}
	if (!json) {
		print_policy(policy);
		return 0;
	}
	r = policy_encode(policy, &text);
	if (r < 0) {
		cli_error("cannot encode the policy: %s", strerror(-r));
		return 1;
	}
	puts(text);
	return 0;
}

static int
cmd_show(int argc, char **argv)
{
	struct cli_policy_options policy = CLI_POLICY_INIT;
	struct cli_common common = { 0 };
	const struct cli_group groups[] = {
		{ cli_policy_options, &policy },
		{ cli_common_options, &common },
		{ 0 },
	};
	int first, status;

	if (cli_parse(&usage_show, groups, argc, argv, &first, &status)) {
		if (first < argc)
			status = cli_usage_error(&usage_show,
						 "no operand is expected");
		else
			status = show(&policy.request, common.json);
	}
	cli_policy_fini(&policy);
	return status;
}

int
cmd_policy(int argc, char **argv)
{
	const struct cli_group none[] = { { 0 } };

	if (argc > 1 && strcmp(argv[1], "show") == 0)
		return cmd_show(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "check") == 0)
		return cmd_why(argc - 1, argv + 1);
	if (argc > 1 &&
	    (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)) {
		cli_usage_print(&usage_policy, none);
		return 0;
	}
	return cli_usage_error(&usage_policy, "show or check is expected");
}
