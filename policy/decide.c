/* SPDX-License-Identifier: MIT */

/*
 * Verdicts from a path alone.  Where a mutation is possible is said once, by
 * policy_writable_roots(); world_plan.c mounts by it, and what is here answers
 * by it.
 */

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include "base/limits.h"
#include "policy/policy_priv.h"

const char *
policy_temp_area(const char *path)
{
	static const char *const areas[] = { "/tmp", "/var/tmp", "/dev/shm" };

	for (size_t i = 0; i < sizeof(areas) / sizeof(*areas); i++)
		if (path_is_in(path, areas[i], NULL))
			return areas[i];
	return NULL;
}

size_t
policy_writable_roots(const struct policy *policy, const char **ret_roots)
{
	size_t n = 0;

	if (!policy_root_writable(policy))
		return 0;
	for (; n < policy->n_roots && n < LIMIT_ROOTS; n++)
		ret_roots[n] = policy->roots[n].path;
	return n;
}

int
policy_root_of(const struct policy *policy, const char *path,
	       const char **ret_rest)
{
	size_t deepest = 0;
	int found = -1;

	for (size_t i = 0; i < policy->n_roots; i++) {
		size_t len = strlen(policy->roots[i].path);
		const char *rest;

		if (!path_is_in(path, policy->roots[i].path, &rest) ||
		    (found >= 0 && len <= deepest))
			continue;
		found = (int)i;
		deepest = len;
		if (ret_rest)
			*ret_rest = rest;
	}
	return found;
}

struct policy_verdict
policy_deny_mode(void)
{
	return (struct policy_verdict){
		.error = -EROFS,
		.code = POLICY_CODE_SANDBOX_DENIED,
		.rule = "mode",
		.source = "mode",
	};
}

struct policy_verdict
policy_deny_symlink(void)
{
	return (struct policy_verdict){
		.error = -EACCES,
		.code = POLICY_CODE_PROTECTED,
		.rule = "a rule goes through the symlink's name",
		.source = "fence",
	};
}

static bool
creates(enum policy_op op)
{
	return op == POLICY_OP_CREATE || op == POLICY_OP_TMPFILE ||
	       op == POLICY_OP_MKDIR || op == POLICY_OP_MKNOD ||
	       op == POLICY_OP_SYMLINK || op == POLICY_OP_LINK ||
	       op == POLICY_OP_RENAME;
}

static struct policy_verdict
deny(int error, enum policy_code code, const char *rule, const char *source)
{
	return (struct policy_verdict){ error, code, rule, source };
}

/* A hidden name does not exist, and cannot be made to. */
static struct policy_verdict
deny_hidden(enum policy_op op, const char *rule, const char *source)
{
	return deny(creates(op) ? -EACCES : -ENOENT, POLICY_CODE_HIDDEN, rule,
		    source);
}

static struct policy_verdict
allow(void)
{
	return (struct policy_verdict){ 0 };
}

/*
 * Nothing below a hidden directory is found, whatever is asked of it, and
 * whatever an exception says of names below.
 */
static bool
parent_hidden(const struct policy *policy, const char *rest,
	      struct rule_match *ret_match)
{
	const struct rule_state *dir = rules_root(policy->rules);
	const char *slash;

	for (; dir && (slash = strchr(rest, '/')); rest = slash + 1) {
		char name[NAME_MAX + 1];
		size_t len = (size_t)(slash - rest);

		/* No file system has such a name. */
		if (len >= sizeof(name))
			return false;
		memcpy(name, rest, len);
		name[len] = '\0';
		if (rules_step(policy->rules, dir, name, true, ret_match,
			       &dir) < 0 ||
		    ret_match->hide.text)
			return true;
	}
	return false;
}

/* Inside a root that the FUSE session serves. */
static struct policy_verdict
decide_fenced(const struct policy *policy, enum policy_op op, const char *rest,
	      bool is_dir)
{
	struct rule_match match;

	if (parent_hidden(policy, rest, &match))
		return deny_hidden(POLICY_OP_READ, match.hide.text,
				   match.hide.source);
	/*
	 * A symlink may lead to a directory, and then stands for one.  When
	 * memory is out the match says so itself: it refuses.
	 */
	(void)rules_match_path(policy->rules, rest,
			       is_dir || op == POLICY_OP_SYMLINK, &match);
	if (match.hide.text && !(creates(op) && !policy_root_writable(policy)))
		return deny_hidden(op, match.hide.text, match.hide.source);
	if (op == POLICY_OP_READ || op == POLICY_OP_CONNECT)
		return allow();
	if (!policy_root_writable(policy))
		return policy_deny_mode();
	if (match.protect.text)
		return deny(-EACCES, POLICY_CODE_PROTECTED, match.protect.text,
			    match.protect.source);
	return allow();
}

/* Writing into what is open to all; not making, renaming or chmod. */
static bool
only_writes(enum policy_op op)
{
	return op == POLICY_OP_OPEN_WRITE || op == POLICY_OP_WRITE ||
	       op == POLICY_OP_TRUNCATE || op == POLICY_OP_IOCTL;
}

static bool
is_sink(const struct policy *policy, const char *path)
{
	static const char *const sinks[] = {
		"null",	 "zero",   "full",   "random",	"urandom", "tty",
		"stdin", "stdout", "stderr", "console", "ptmx",
	};
	/* The last two are the world's own terminals, where it has such. */
	const size_t n =
		sizeof(sinks) / sizeof(*sinks) - (policy->landlock ? 2 : 0);
	const char *name;

	if (strv_has(&policy->devices, path))
		return true;
	if (!path_is_in(path, "/dev", &name))
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, sinks[i]) == 0)
			return true;
	/* Without a devpts of its own, these are other people's terminals. */
	if (strncmp(name, "pts/", 4) == 0)
		return !policy->landlock;
	return strncmp(name, "fd/", 3) == 0;
}

/*
 * A process' own files in /proc: the kernel itself judges who may write them,
 * and programs do (nested sandboxes write uid_map).
 */
static bool
is_proc_of_process(const char *path)
{
	const char *name;

	if (!path_is_in(path, "/proc", &name))
		return false;
	if (strncmp(name, "self/", 5) == 0 ||
	    strncmp(name, "thread-self/", 12) == 0)
		return true;
	if (!isdigit((unsigned char)*name))
		return false;
	while (isdigit((unsigned char)*name))
		name++;
	return *name == '/';
}

static const char *
hidden_path(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->hide_paths.count; i++)
		if (path_is_in(path, policy->hide_paths.items[i], NULL))
			return policy->hide_paths.items[i];
	return NULL;
}

static bool
in_private_home(const struct policy *policy, const char *path)
{
	return policy->home == POLICY_HOME_PRIVATE && policy->home_path &&
	       !policy->landlock && path_is_in(path, policy->home_path, NULL);
}

int
policy_mounted_root(const struct policy *policy, const char *path,
		    const char **ret_rest)
{
	size_t deepest = 0;
	int found = -1;

	for (size_t i = 0; i < policy->n_roots; i++) {
		const struct policy_root *root = &policy->roots[i];
		size_t len = strlen(root->path);
		const char *rest;

		if (root->kind == POLICY_ROOT_RW &&
		    !policy_root_writable(policy))
			continue;
		if (!path_is_in(path, root->path, &rest) ||
		    (found >= 0 && len <= deepest))
			continue;
		found = (int)i;
		deepest = len;
		if (ret_rest)
			*ret_rest = rest;
	}
	return found;
}

/* Whether the world lets this be mutated, rules aside. */
static bool
is_writable(const struct policy *policy, const char *path)
{
	const char *roots[LIMIT_ROOTS];
	size_t n = policy_writable_roots(policy, roots);

	for (size_t i = 0; i < n; i++)
		if (path_is_in(path, roots[i], NULL))
			return true;
	if (policy_mounted_root(policy, path, NULL) >= 0)
		return false;
	if (policy->landlock)
		return policy->tmp_writable && policy->tmp_dir &&
		       path_is_in(path, policy->tmp_dir, NULL);
	if (policy_temp_area(path))
		return policy->tmp_writable;
	return in_private_home(policy, path);
}

/* Sockets that the world itself can have made, or that were let in. */
static bool
may_connect(const struct policy *policy, const char *path)
{
	return strv_has(&policy->sockets, path) ||
	       strv_has(&policy->name_sockets, path) ||
	       policy_temp_area(path) || is_writable(policy, path);
}

struct policy_verdict
policy_decide_path(const struct policy *policy, enum policy_op op,
		   const char *path, bool is_dir)
{
	const char *rest = NULL, *hidden;
	int root;

	if (policy->mode == POLICY_DANGER_FULL_ACCESS)
		return allow();
	root = policy_mounted_root(policy, path, &rest);
	if (root >= 0 && policy->roots[root].kind != POLICY_ROOT_RW)
		return decide_fenced(policy, op, rest, is_dir);

	hidden = hidden_path(policy, path);
	if (hidden)
		return deny_hidden(op, hidden, "hide-path");
	if (op == POLICY_OP_READ || is_writable(policy, path))
		return allow();
	if (op == POLICY_OP_CONNECT)
		return may_connect(policy, path) ? allow() : policy_deny_mode();
	if (only_writes(op) &&
	    (is_sink(policy, path) ||
	     (!policy->landlock && is_proc_of_process(path))))
		return allow();
	return policy_deny_mode();
}
