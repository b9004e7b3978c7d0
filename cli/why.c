/* SPDX-License-Identifier: MIT */

/*
 * pale why: what the fence would answer, by which rule of which source, and
 * what would allow it; nothing is done.  The verdict is the mount's own
 * (fence_why), asked about the path as the kernel would find it inside.
 */

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/place.h"
#include "fusefs/fs.h"

struct question {
	enum policy_op op;
	char *path, *path2; /* owned */
	struct policy *policy;
};

static const struct cli_usage usage = {
	.command = "why",
	.synopsis = "[options] OP PATH [PATH2]",
	.about = "Tells what the fence would answer to OP on PATH (and PATH2, "
		 "for rename and link),\n"
		 "by which rule, and what would allow it.  Nothing is done.\n"
		 "OP: read open-write create mkdir mknod symlink link unlink "
		 "rmdir rename truncate\n"
		 "fallocate chmod chown utimens setxattr removexattr "
		 "copy-range write ioctl ...\n"
		 "Exit status: 0 allowed, 1 refused, 2 the question is wrong.",
	.usage_status = 2,
};

/* Does the kernel follow a symlink at the end of the path? */
static bool
follows(enum policy_op op)
{
	switch ((int)op) {
	case POLICY_OP_MKDIR:
	case POLICY_OP_MKNOD:
	case POLICY_OP_SYMLINK:
	case POLICY_OP_LINK:
	case POLICY_OP_UNLINK:
	case POLICY_OP_RMDIR:
	case POLICY_OP_RENAME:
		return false;
	default:
		return true;
	}
}

static bool
takes_two(enum policy_op op)
{
	return op == POLICY_OP_RENAME || op == POLICY_OP_LINK;
}

/*
 * The option that would allow it, as for a record: the next mode that is wide
 * enough, or the operator's exception for this name.
 */
static bool
remedy(const struct question *q, const struct policy_verdict *verdict,
       const char **ret_key, const char **ret_value)
{
	const char *rest = NULL, *path = q->path;
	bool inside;

	/* Of two ends, the one that is at fault. */
	if (q->path2 &&
	    policy_decide_path(q->policy, q->op, q->path, false).error == 0)
		path = q->path2;
	inside = policy_root_of(q->policy, path, &rest) >= 0;

	switch (verdict->code) {
	case POLICY_CODE_SANDBOX_DENIED:
		*ret_key = "escalate";
		*ret_value = policy_mode_name(
			inside && q->policy->mode == POLICY_READ_ONLY
				? POLICY_WORKSPACE_WRITE
				: POLICY_DANGER_FULL_ACCESS);
		return true;
	case POLICY_CODE_PROTECTED:
	case POLICY_CODE_HIDDEN:
		if (!inside || !verdict->rule ||
		    strncmp(verdict->rule, "git-", 4) == 0)
			return false;
		*ret_key = "allow";
		*ret_value = *rest ? rest : ".";
		return true;
	case POLICY_CODE_NONE:
	case POLICY_CODE_STALE_VERSION:
	case POLICY_CODE_NOT_OBSERVED:
	case POLICY_CODE_COUNT:
		break;
	}
	return false;
}

static int
print_json(const struct question *q, const struct policy_verdict *verdict)
{
	const char *key = NULL, *value = NULL;
	struct buf out = { 0 };

	jsonw_begin(&out, '{');
	jsonw_pair(&out, "verdict", verdict->error ? "deny" : "allow");
	jsonw_pair(&out, "op", policy_op_name(q->op));
	jsonw_pair(&out, "path", q->path);
	jsonw_pair(&out, "path2", q->path2);
	jsonw_pair(&out, "mode", policy_mode_name(q->policy->mode));
	jsonw_pair(&out, "rule", verdict->rule ? verdict->rule : "mode");
	jsonw_pair(&out, "source", verdict->source ? verdict->source : "mode");
	if (verdict->error) {
		jsonw_pair(&out, "code", policy_code_name(verdict->code));
		jsonw_key(&out, "errno");
		jsonw_begin(&out, '{');
		jsonw_pair(&out, "name", strerrorname_np(-verdict->error));
		jsonw_pair_int(&out, "number", -verdict->error);
		jsonw_end(&out, '}');
	}
	jsonw_key(&out, "remedy");
	if (verdict->error && remedy(q, verdict, &key, &value)) {
		jsonw_begin(&out, '{');
		jsonw_pair(&out, key, value);
		jsonw_end(&out, '}');
	} else {
		jsonw_null(&out);
	}
	jsonw_end(&out, '}');
	return cli_print_json(&out);
}

static void
print_text(const struct question *q, const struct policy_verdict *verdict)
{
	const char *key = NULL, *value = NULL;

	printf("%s %s %s", verdict->error ? "deny" : "allow",
	       policy_op_name(q->op), q->path);
	if (q->path2)
		printf(" -> %s", q->path2);
	putchar('\n');
	printf("mode:   %s\n", policy_mode_name(q->policy->mode));
	printf("rule:   %s (%s)\n", verdict->rule ? verdict->rule : "mode",
	       verdict->source ? verdict->source : "mode");
	if (!verdict->error)
		return;
	printf("answer: %s, %s\n", strerrorname_np(-verdict->error),
	       policy_code_name(verdict->code));
	if (!remedy(q, verdict, &key, &value))
		return;
	if (strcmp(key, "escalate") == 0)
		printf("remedy: --mode %s\n", value);
	else
		printf("remedy: --allow '/%s'\n", value);
}

static int
answer(const struct question *q, bool json)
{
	struct fence_answer got = { .rule = "" };
	int r = 0;

	if (q->policy->mode != POLICY_DANGER_FULL_ACCESS)
		r = fence_why(q->policy, q->op, q->path, q->path2, &got);
	if (r < 0) {
		cli_error("cannot judge '%s': %s", q->path, strerror(-r));
		return 2;
	}
	if (!json)
		print_text(q, &got.verdict);
	else if (print_json(q, &got.verdict) < 0)
		return 2;
	return got.verdict.error ? 1 : 0;
}

static int
locate(struct question *q, const char *path, bool follow, char **ret_path)
{
	int r = place_canonical(path, follow && follows(q->op), ret_path);

	if (r < 0)
		cli_error("cannot find '%s': %s", path, strerror(-r));
	return r;
}

static int
ask(const struct policy_request *request, char **operands, int count, bool json)
{
	struct question q = { 0 };
	struct errmsg why = { "" };
	int status = 2;

	if (policy_op_parse(operands[0], &q.op) < 0)
		return cli_usage_error(&usage, "no operation '%s'",
				       operands[0]);
	if ((count == 3) != takes_two(q.op))
		return cli_usage_error(&usage, "%s takes %s", operands[0],
				       takes_two(q.op) ? "two paths"
						       : "one path");

	if (locate(&q, operands[1], true, &q.path) == 0 &&
	    (count < 3 || locate(&q, operands[2], false, &q.path2) == 0)) {
		if (policy_resolve(request, &q.policy, &why) < 0)
			cli_error("%s", why.text);
		else
			status = answer(&q, json);
	}
	free(q.path);
	free(q.path2);
	policy_unref(q.policy);
	return status;
}

int
cmd_why(int argc, char **argv)
{
	struct cli_policy_options policy = CLI_POLICY_INIT;
	struct cli_common common = { 0 };
	const struct cli_group groups[] = {
		{ cli_policy_options, &policy },
		{ cli_common_options, &common },
		{ 0 },
	};
	int first, status;

	if (cli_parse(&usage, groups, argc, argv, &first, &status)) {
		if (argc - first < 2 || argc - first > 3)
			status = cli_usage_error(&usage,
						 "OP and PATH are expected");
		else
			status = ask(&policy.request, argv + first,
				     argc - first, common.json);
	}
	cli_policy_fini(&policy);
	return status;
}
