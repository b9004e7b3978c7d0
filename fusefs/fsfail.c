/* SPDX-License-Identifier: MIT */

#include "fusefs/fsfail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int error, status;
} codes[] = {
#define X(id, name, error, status) { name, error, status },
	FSFAIL_CODES(X)
#undef X
};

const char *
fsfail_name(enum fsfail_code code)
{
	return codes[code].name;
}

int
fsfail_status(enum fsfail_code code)
{
	return codes[code].status;
}

int
fsfail_set(struct fsfail *fail, enum fsfail_code code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(fail->text, sizeof(fail->text), format, args);
	va_end(args);
	fail->code = code;
	return -codes[code].error;
}

static enum fsfail_code
code_of(int r)
{
	switch (-r) {
	case ENOENT:
		return FSFAIL_NOT_FOUND;
	case ENOTDIR:
		return FSFAIL_NOT_DIRECTORY;
	case EISDIR:
		return FSFAIL_IS_DIRECTORY;
	case EEXIST:
		return FSFAIL_EXISTS;
	case EACCES:
	case EPERM:
	case EROFS:
		return FSFAIL_PERMISSION_DENIED;
	case ENOSPC:
	case EDQUOT:
		return FSFAIL_NO_SPACE;
	case EFBIG:
		return FSFAIL_TOO_LARGE;
	case ENXIO:
	case ENODEV:
		return FSFAIL_NOT_REGULAR_FILE;
	default:
		return FSFAIL_IO_ERROR;
	}
}

int
fsfail_errno(struct fsfail *fail, int r, const char *doing, const char *path)
{
	const char *what = r == -ELOOP ? "a symlink came in the way; try again"
				       : strerror(-r);

	return fsfail_set(fail, code_of(r), "cannot %s '%s': %s", doing, path,
			  what);
}

/* ---- the fence ---- */

static enum fsfail_code
code_of_verdict(enum policy_code code)
{
	switch (code) {
	case POLICY_CODE_PROTECTED:
		return FSFAIL_PROTECTED;
	case POLICY_CODE_HIDDEN:
		return FSFAIL_HIDDEN;
	case POLICY_CODE_STALE_VERSION:
		return FSFAIL_STALE_VERSION;
	case POLICY_CODE_NOT_OBSERVED:
		return FSFAIL_NOT_OBSERVED;
	case POLICY_CODE_NONE:
	case POLICY_CODE_SANDBOX_DENIED:
	case POLICY_CODE_COUNT:
		break;
	}
	return FSFAIL_SANDBOX_DENIED;
}

static const char *
advice_on(enum fsfail_code code)
{
	switch ((int)code) {
	case FSFAIL_SANDBOX_DENIED:
		return "a wider --mode allows it, if the operator grants one";
	case FSFAIL_PROTECTED:
		return "leave it, or ask the operator for --allow";
	default:
		return "it is not for you to see";
	}
}

static int
refuse(struct fsfail *fail, enum policy_op op, const char *path)
{
	const struct policy_verdict *verdict = &fail->answer.verdict;
	enum fsfail_code code = code_of_verdict(verdict->code);

	fail->op = op;
	(void)snprintf(fail->path, sizeof(fail->path), "%s", path);
	return fsfail_set(fail, code, "%s of '%s' is refused by %s (%s); %s",
			  policy_op_name(op), path,
			  verdict->rule ? verdict->rule : "mode",
			  verdict->source ? verdict->source : "mode",
			  advice_on(code));
}

int
fsfail_judge(struct fsfail *fail, struct policy *policy, enum policy_op op,
	     const char *path)
{
	int r;

	if (policy->mode == POLICY_DANGER_FULL_ACCESS)
		return 0;
	r = fence_why(policy, op, path, NULL, &fail->answer);
	if (r < 0)
		return fsfail_errno(fail, r, "judge", path);
	/* A world's private /tmp and home are not those of the host. */
	if (fail->answer.verdict.error == 0 &&
	    policy_root_of(policy, path, NULL) < 0) {
		fail->answer.verdict = policy_deny_mode();
		fail->answer.verdict.rule = "outside the workspace";
	}
	if (fail->answer.verdict.error == 0 && !fail->answer.by_content)
		return 0;
	/* Who judges the bytes of these is the mount, write by write. */
	if (fail->answer.verdict.error == 0)
		fail->answer.verdict =
			(struct policy_verdict){ .error = -EACCES,
						 .code = POLICY_CODE_PROTECTED,
						 .rule = "git-content",
						 .source = "built-in" };
	fail->denied = true;
	return refuse(fail, op, path);
}

int
fsfail_judge_look(struct fsfail *fail, const struct policy *policy,
		  const char *path, bool is_dir)
{
	fail->answer.verdict =
		policy_decide_path(policy, POLICY_OP_READ, path, is_dir);
	if (fail->answer.verdict.error == 0)
		return 0;
	return refuse(fail, POLICY_OP_READ, path);
}
