/* SPDX-License-Identifier: MIT */

/*
 * Lines of patterns, an empty line, lines of paths.  A "+" at the front puts a
 * pattern into a second list, a "-" makes it an --allow.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
take_pattern(struct rules *rules, const char *line)
{
	if (*line == '+')
		(void)rules_add(rules, RULE_HIDE, line + 1, "b", NULL);
	else if (*line == '-')
		(void)rules_add(rules, RULE_ALLOW, line + 1, "c", NULL);
	else
		(void)rules_add(rules, RULE_PROTECT, line, "a", NULL);
}

/* The same question twice has the same answer, a directory's the same state. */
static void
ask(struct rules *rules, const char *path)
{
	struct rule_match one, two;

	(void)rules_match_path(rules, path, true, &one);
	(void)rules_match_path(rules, path, true, &two);
	if (one.protect.text != two.protect.text ||
	    one.hide.text != two.hide.text)
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(rules_freep) struct rules *rules = NULL;
	_cleanup_(freep) char *text = malloc(size + 1);
	bool asking = false;

	if (!text || rules_new(&rules) < 0 || rules_add_builtin(rules) < 0)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *line = text, *end; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		if (*line == '\0')
			asking = true;
		else if (asking)
			ask(rules, line);
		else
			take_pattern(rules, line);
	}
	return 0;
}
