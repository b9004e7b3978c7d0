/* SPDX-License-Identifier: MIT */

#include "mount-helper/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(id, name) name,
	STEPS(X)
#undef X
};
_Static_assert(sizeof(names) / sizeof(names[0]) == STEP_COUNT,
	       "every step has a name");

static enum step current;
static enum step failing = STEP_COUNT;

int
step_setup(struct errmsg *why)
{
	const char *wanted = getenv("PALE_FAIL_STEP");

	if (!wanted || !*wanted)
		return 0;
	for (int i = 0; i < STEP_COUNT; i++) {
		if (strcmp(names[i], wanted) != 0)
			continue;
		failing = (enum step)i;
		return 0;
	}
	return errmsg_set(why, -EINVAL, "PALE_FAIL_STEP names no step: '%s'",
			  wanted);
}

int
step_begin(enum step step, struct errmsg *why)
{
	current = step;
	if (step != failing)
		return 0;
	return errmsg_set(why, -ECANCELED,
			  "step '%s' was made to fail by PALE_FAIL_STEP",
			  names[step]);
}

enum step
step_current(void)
{
	return current;
}

const char *
step_name(enum step step)
{
	return step < STEP_COUNT ? names[step] : "?";
}
