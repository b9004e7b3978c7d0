/* SPDX-License-Identifier: MIT */

#include <check.h>
#include <string.h>

#include "policy/policy_priv.h"
#include "tests/unit/suite.h"

static struct policy *policy;

static void
setup(void)
{
	policy = calloc(1, sizeof(*policy));
	ck_assert_ptr_nonnull(policy);
	policy->refs = 1;
	policy->mode = POLICY_WORKSPACE_WRITE;
	policy->tmp_writable = true;
	policy->session = strdup("s");
	policy->mode_source = strdup("default");
	ck_assert_int_eq(rules_new(&policy->rules), 0);
	ck_assert_int_eq(rules_add_builtin(policy->rules), 0);
	ck_assert_int_eq(
		rules_add(policy->rules, RULE_HIDE, ".env", "config", NULL), 0);
	ck_assert_int_eq(policy_add_root(policy, POLICY_ROOT_WORKSPACE, "/w"),
			 0);
	ck_assert_int_eq(policy_add_root(policy, POLICY_ROOT_RW, "/rw"), 0);
}

static void
teardown(void)
{
	policy = policy_unref(policy);
}

static struct policy_verdict
decide(enum policy_op op, const char *path)
{
	return policy_decide_path(policy, op, path, false);
}

static void
is(enum policy_op op, const char *path, int error, enum policy_code code)
{
	struct policy_verdict v = decide(op, path);

	ck_assert_msg(v.error == error && v.code == code, "%s %s: %d %s",
		      policy_op_name(op), path, v.error,
		      policy_code_name(v.code));
}

#define OK(op, path) is(POLICY_OP_##op, path, 0, POLICY_CODE_NONE)
#define MODE(op, path) \
	is(POLICY_OP_##op, path, -EROFS, POLICY_CODE_SANDBOX_DENIED)
#define PROTECTED(op, path) \
	is(POLICY_OP_##op, path, -EACCES, POLICY_CODE_PROTECTED)
#define HIDDEN(op, path, error) \
	is(POLICY_OP_##op, path, error, POLICY_CODE_HIDDEN)

START_TEST(no_mutation_at_all_in_read_only)
{
	policy->mode = POLICY_READ_ONLY;
	policy->tmp_writable = false;
	for (int op = 0; op < POLICY_OP_COUNT; op++) {
		bool looks = op == POLICY_OP_READ || op == POLICY_OP_CONNECT;

		ck_assert_int_eq(decide((enum policy_op)op, "/w/f").error,
				 looks ? 0 : -EROFS);
		looks = op == POLICY_OP_READ;
		ck_assert_int_eq(decide((enum policy_op)op, "/etc/f").error,
				 looks ? 0 : -EROFS);
	}
	MODE(CREATE, "/rw/f");
	MODE(CREATE, "/tmp/f");
	policy->tmp_writable = true;
	OK(CREATE, "/tmp/f");
}
END_TEST

START_TEST(the_workspace_its_roots_and_private_areas_take_writes)
{
	OK(CREATE, "/w/f");
	OK(RENAME, "/rw/a/b");
	OK(UNLINK, "/tmp/f");
	OK(MKDIR, "/dev/shm/f");
	OK(OPEN_WRITE, "/var/tmp/f");
	MODE(OPEN_WRITE, "/etc/passwd");
	MODE(CREATE, "/ww/f");
	MODE(CREATE, "/tmpx");
	MODE(CREATE, "/run/f");
}
END_TEST

START_TEST(a_denial_by_mode_names_the_mode)
{
	struct policy_verdict v = decide(POLICY_OP_CREATE, "/etc/x");

	ck_assert_str_eq(v.rule, "mode");
	ck_assert_str_eq(v.source, "mode");
}
END_TEST

START_TEST(a_denial_by_rule_names_the_rule_and_its_source)
{
	struct policy_verdict v =
		decide(POLICY_OP_CREATE, "/w/a/.vscode/x.json");

	ck_assert_str_eq(v.rule, "**/.vscode/**/*.json");
	ck_assert_str_eq(v.source, "built-in");
	PROTECTED(UNLINK, "/w/.envrc");
	PROTECTED(SYMLINK, "/w/.claude");
	OK(READ, "/w/.envrc");
	/* A plain bind has no rules. */
	OK(CREATE, "/rw/.envrc");
}
END_TEST

START_TEST(a_hidden_name_does_not_exist_and_cannot_be_made)
{
	HIDDEN(READ, "/w/.env", -ENOENT);
	HIDDEN(OPEN_WRITE, "/w/.env", -ENOENT);
	HIDDEN(CREATE, "/w/.env", -EACCES);
	HIDDEN(RENAME, "/w/a/.env", -EACCES);
	policy->mode = POLICY_READ_ONLY;
	HIDDEN(READ, "/w/.env", -ENOENT);
	MODE(CREATE, "/w/.env");
}
END_TEST

START_TEST(nothing_is_found_below_a_hidden_directory)
{
	ck_assert_int_eq(
		rules_add(policy->rules, RULE_HIDE, "secret/", "config", NULL),
		0);
	ck_assert_int_eq(
		rules_add(policy->rules, RULE_ALLOW, "e", "--allow", NULL), 0);
	HIDDEN(CREATE, "/w/secret/new", -ENOENT);
	HIDDEN(RENAME, "/w/a/secret/new", -ENOENT);
	HIDDEN(MKDIR, "/w/secret/.envrc", -ENOENT);
	HIDDEN(READ, "/w/secret/d/f", -ENOENT);
	/* What is let in below it cannot be reached. */
	HIDDEN(READ, "/w/secret/e", -ENOENT);
	HIDDEN(CREATE, "/w/secret/e/f", -ENOENT);
	policy->mode = POLICY_READ_ONLY;
	HIDDEN(CREATE, "/w/secret/new", -ENOENT);
}
END_TEST

START_TEST(a_hidden_path_outside_covers_all_below_it)
{
	ck_assert_int_eq(strv_add(&policy->hide_paths, "/home/u/.ssh"), 0);
	HIDDEN(READ, "/home/u/.ssh", -ENOENT);
	HIDDEN(READ, "/home/u/.ssh/id", -ENOENT);
	OK(READ, "/home/u/.sshx");
}
END_TEST

START_TEST(sinks_take_bytes_and_nothing_else)
{
	policy->mode = POLICY_READ_ONLY;
	policy->tmp_writable = false;
	OK(OPEN_WRITE, "/dev/null");
	OK(TRUNCATE, "/dev/null");
	OK(OPEN_WRITE, "/dev/pts/3");
	OK(OPEN_WRITE, "/dev/fd/1");
	OK(OPEN_WRITE, "/dev/tty");
	MODE(UNLINK, "/dev/null");
	MODE(CHMOD, "/dev/null");
	MODE(OPEN_WRITE, "/dev/sda");
	MODE(CREATE, "/dev/x");
	ck_assert_int_eq(strv_add(&policy->devices, "/dev/kvm"), 0);
	OK(IOCTL, "/dev/kvm");
}
END_TEST

START_TEST(files_of_processes_in_proc_are_the_kernel_s_business)
{
	OK(OPEN_WRITE, "/proc/self/uid_map");
	OK(OPEN_WRITE, "/proc/17/oom_score_adj");
	MODE(OPEN_WRITE, "/proc/sys/kernel/core_pattern");
	MODE(OPEN_WRITE, "/proc/sysrq-trigger");
	MODE(OPEN_WRITE, "/proc/17x/y");
}
END_TEST

START_TEST(host_sockets_are_out_of_reach_unless_let_in)
{
	MODE(CONNECT, "/run/docker.sock");
	OK(CONNECT, "/w/own.sock");
	OK(CONNECT, "/tmp/own.sock");
	ck_assert_int_eq(strv_add(&policy->sockets, "/run/docker.sock"), 0);
	OK(CONNECT, "/run/docker.sock");
	MODE(CONNECT, "/run/nscd/socket");
	ck_assert_int_eq(strv_add(&policy->name_sockets, "/run/nscd/socket"),
			 0);
	OK(CONNECT, "/run/nscd/socket");
	MODE(CONNECT, "/run/nscd/other");
}
END_TEST

START_TEST(nothing_is_fenced_without_a_fence)
{
	policy->mode = POLICY_DANGER_FULL_ACCESS;
	OK(CREATE, "/etc/x");
	OK(READ, "/w/.env");
	OK(CREATE, "/w/.vscode");
}
END_TEST

START_TEST(the_deepest_root_has_the_path)
{
	const char *rest;

	ck_assert_int_eq(policy_add_root(policy, POLICY_ROOT_RW, "/w/in"), 0);
	ck_assert_int_eq(policy_root_of(policy, "/w/in/x/y", &rest), 2);
	ck_assert_str_eq(rest, "x/y");
	ck_assert_int_eq(policy_root_of(policy, "/w", &rest), 0);
	ck_assert_str_eq(rest, "");
	ck_assert_int_eq(policy_root_of(policy, "/wx", NULL), -1);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, no_mutation_at_all_in_read_only);
	tcase_add_test(tc,
		       the_workspace_its_roots_and_private_areas_take_writes);
	tcase_add_test(tc, a_denial_by_mode_names_the_mode);
	tcase_add_test(tc, a_denial_by_rule_names_the_rule_and_its_source);
	tcase_add_test(tc, a_hidden_name_does_not_exist_and_cannot_be_made);
	tcase_add_test(tc, nothing_is_found_below_a_hidden_directory);
	tcase_add_test(tc, a_hidden_path_outside_covers_all_below_it);
	tcase_add_test(tc, sinks_take_bytes_and_nothing_else);
	tcase_add_test(tc,
		       files_of_processes_in_proc_are_the_kernel_s_business);
	tcase_add_test(tc, host_sockets_are_out_of_reach_unless_let_in);
	tcase_add_test(tc, nothing_is_fenced_without_a_fence);
	tcase_add_test(tc, the_deepest_root_has_the_path);
	return suite_run("policy/decide", tc);
}
