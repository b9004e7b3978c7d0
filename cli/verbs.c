/* SPDX-License-Identifier: MIT */

#include "cli/verbs.h"

#include <string.h>

static const struct cli_verb *
find(const struct cli_verbs *verbs, const char *name)
{
	const char *row = verbs->rows;

	for (size_t i = 0; i < verbs->count; i++, row += verbs->size) {
		const struct cli_verb *verb = (const void *)row;

		/* "job list" after its blank */
		if (strcmp(strchr(verb->usage.command, ' ') + 1, name) == 0)
			return verb;
	}
	return NULL;
}

const void *
cli_verbs_find(const struct cli_verbs *verbs, int argc, char **argv,
	       int *ret_status)
{
	const struct cli_group none[] = { { 0 } };
	const struct cli_verb *verb;

	if (argc < 2) {
		*ret_status = cli_usage_error(verbs->usage, "which verb?");
		return NULL;
	}
	if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) {
		cli_usage_print(verbs->usage, none);
		*ret_status = 0;
		return NULL;
	}
	verb = find(verbs, argv[1]);
	if (!verb)
		*ret_status =
			cli_usage_error(verbs->usage, "no verb '%s'", argv[1]);
	return verb;
}

bool
cli_verb_parse(const struct cli_verb *verb, const struct cli_verb_into *into,
	       int argc, char **argv, int *ret_first, int *ret_status)
{
	const struct cli_group groups[] = {
		{ verb->rows, into->rows },
		{ verb->has_policy ? cli_policy_options : cli_place_options,
		  into->policy },
		{ cli_common_options, into->common },
		{ 0 },
	};
	int n;

	if (!cli_parse(&verb->usage, groups, argc, argv, ret_first, ret_status))
		return false;
	n = argc - *ret_first;
	if (n >= verb->operands.min && n <= verb->operands.max)
		return true;
	*ret_status =
		cli_usage_error(&verb->usage, "%s",
				n < verb->operands.min ? "something is missing"
						       : "too many operands");
	return false;
}
