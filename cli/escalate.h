/* SPDX-License-Identifier: MIT */
#ifndef CLI_ESCALATE_H
#define CLI_ESCALATE_H

/*
 * `pale run --escalate MODE --why TEXT`: a wider mode for this one call, if
 * the operator says so at the terminal that it was typed at.  Everything else
 * (no terminal, no answer in time, a question that cannot be put on record)
 * means no.  The question and its one answer are events of the session.
 *
 * Thread: main.
 */

#include "base/errmsg.h"
#include "base/strv.h"
#include "policy/policy.h"

struct escalation {
	const char *mode, *why; /* as given; both or neither */
	const struct strv *argv;
	const char *cwd;
};

/*
 * On success *ret_policy is a reference to the wider policy.  Errors, with a
 * sentence: -EINVAL (not wider, no reason), -EPERM (the answer was no),
 * -ENOTTY (nobody can be asked), -ETIMEDOUT, or what kept it off the record.
 */
int escalate(const struct policy *policy, const struct escalation *wanted,
	     struct policy **ret_policy, struct errmsg *why);

#endif
