/* SPDX-License-Identifier: MIT */

/* The first byte chooses the syntax; the rest is the file. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "policy/policy_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config config = { 0 };
	struct errmsg why = { "" };
	enum config_syntax syntax;
	int r;

	if (size == 0)
		return 0;
	syntax = data[0] & 1 ? CONFIG_SYNTAX_RC : CONFIG_SYNTAX_FILE;
	r = config_parse((const char *)data + 1, size - 1, "fuzz", syntax,
			 &config, &why);
	/* A refusal has its sentence; a .palerc never more than its rules. */
	if (r < 0 && why.text[0] == '\0')
		abort();
	if (r == 0 && syntax == CONFIG_SYNTAX_RC &&
	    (config.count != 1 || config.sections[0].request.mode ||
	     config.sections[0].request.allow.count > 0))
		abort();
	config_fini(&config);
	return 0;
}
