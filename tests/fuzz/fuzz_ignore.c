/* SPDX-License-Identifier: MIT */

/*
 * A hostile .gitignore, in the directory named by what comes before the first
 * NUL.  Beyond not crashing: what it says never holds outside that directory.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/ignore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, '\0', size) : NULL;
	const char *path = end && end > data ? (const char *)data : "d";
	const char *text = end ? (const char *)end + 1 : (const char *)data;
	size_t len = size - (size_t)(text - (const char *)data);
	struct rule_match match = { 0 };
	struct strv patterns = { 0 };
	struct rules *rules = NULL;

	if (ignore_parse(path, text, len, &patterns) < 0 ||
	    rules_new(&rules) < 0)
		abort();
	for (size_t i = 0; i < patterns.count; i++)
		(void)rules_add(rules, RULE_HIDE, patterns.items[i],
				"gitignore", NULL);
	/* No such name comes out of `path`, which has no NUL and is not this. */
	if (path[0] != '/' && strncmp(path, "elsewhere", 9) != 0 &&
	    rules_match_path(rules, "elsewhere/x", false, &match) == 0 &&
	    match.hide.text)
		abort();
	(void)rules_match_path(rules, "d/x/y", false, &match);
	rules_free(rules);
	strv_fini(&patterns);
	return 0;
}
