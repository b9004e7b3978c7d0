/* SPDX-License-Identifier: MIT */

/* Names of modes, operations and codes, each from its one list. */

#include <errno.h>
#include <string.h>

#include "policy/policy.h"

static const char *const mode_names[] = {
	[POLICY_READ_ONLY] = "read-only",
	[POLICY_WORKSPACE_WRITE] = "workspace-write",
	[POLICY_DANGER_FULL_ACCESS] = "danger-full-access",
};

static const char *const op_names[] = {
#define X(id, name) [POLICY_OP_##id] = (name),
	POLICY_OPS(X)
#undef X
};

static const char *const code_names[] = {
#define X(id, name) [POLICY_CODE_##id] = (name),
	POLICY_CODES(X)
#undef X
};

_Static_assert(sizeof(op_names) / sizeof(*op_names) == POLICY_OP_COUNT,
	       "every operation has a name");
_Static_assert(sizeof(code_names) / sizeof(*code_names) == POLICY_CODE_COUNT,
	       "every code has a name");

/* The index of `name`, or -EINVAL. */
static int
find(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -EINVAL;
}

const char *
policy_mode_name(enum policy_mode mode)
{
	return mode_names[mode];
}

int
policy_mode_parse(const char *name, enum policy_mode *ret_mode)
{
	int i = find(mode_names, sizeof(mode_names) / sizeof(*mode_names),
		     name);

	if (i < 0)
		return i;
	*ret_mode = (enum policy_mode)i;
	return 0;
}

const char *
policy_op_name(enum policy_op op)
{
	return op_names[op];
}

int
policy_op_parse(const char *name, enum policy_op *ret_op)
{
	int i = find(op_names, POLICY_OP_COUNT, name);

	if (i < 0)
		return i;
	*ret_op = (enum policy_op)i;
	return 0;
}

const char *
policy_code_name(enum policy_code code)
{
	return code_names[code];
}
