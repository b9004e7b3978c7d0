/* SPDX-License-Identifier: MIT */

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "policy/policy_priv.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

/* A directory of its own, with home/, ws/ and an empty configuration. */
static char base[64], workspace[128];
static struct policy_request request;
static struct policy *policy;
static struct errmsg why;

static const char *
at(const char *rest)
{
	static char paths[8][PATH_MAX];
	static int next;
	char *path = paths[next++ % 8];

	(void)snprintf(path, PATH_MAX, "%s/%s", base, rest);
	return path;
}

static void
make_dir(const char *rest)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s", at(rest));
	for (char *slash = strchr(path + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
	(void)mkdir(path, 0755);
}

static void
make_file(const char *rest, const char *text)
{
	int fd = open(at(rest), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	(void)close(fd);
}

static int
resolve(void)
{
	policy = policy_unref(policy);
	why.text[0] = '\0';
	return policy_resolve(&request, &policy, &why);
}

static void
resolved(void)
{
	int r = resolve();

	ck_assert_msg(r == 0, "%s", why.text);
}

static void
setup(void)
{
	(void)snprintf(base, sizeof(base), "/tmp/pale-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	make_dir("home");
	make_dir("ws");
	make_dir("conf/pale");
	ck_assert_int_eq(setenv("HOME", at("home"), 1), 0);
	ck_assert_int_eq(setenv("XDG_CONFIG_HOME", at("conf"), 1), 0);
	request = policy_request_none();
	(void)snprintf(workspace, sizeof(workspace), "%s/ws", base);
	request.workspace = workspace;
}

static void
teardown(void)
{
	char command[128];

	policy = policy_unref(policy);
	strv_fini(&request.rw);
	strv_fini(&request.hide);
	strv_fini(&request.protect);
	strv_fini(&request.allow);
	strv_fini(&request.hide_paths);
	strv_fini(&request.sockets);
	strv_fini(&request.devices);
	(void)snprintf(command, sizeof(command), "rm -rf %s", base);
	ck_assert_int_eq(system(command), 0); // NOLINT(cert-env33-c)
}

static void
verdict_is(enum policy_op op, const char *rest, int error)
{
	struct policy_verdict v =
		policy_decide_path(policy, op, at(rest), false);

	ck_assert_msg(v.error == error, "%s: %d", rest, v.error);
}

START_TEST(nothing_asked_for_is_read_only)
{
	resolved();
	ck_assert_int_eq((int)policy->mode, (int)POLICY_READ_ONLY);
	ck_assert_str_eq(policy->mode_source, "default");
	ck_assert_str_eq(policy->session, "default");
	ck_assert_uint_eq(policy->n_roots, 1);
	ck_assert(policy->git_guard && policy->nest && !policy->tmp_writable);
	verdict_is(POLICY_OP_OPEN_WRITE, "ws/f", -EROFS);
}
END_TEST

START_TEST(the_command_line_beats_the_workspace_section_beats_the_default)
{
	char text[512];

	make_file("conf/pale/config.ini",
		  "[default]\nmode = workspace-write\nnet = none\n");
	resolved();
	ck_assert_int_eq((int)policy->mode, (int)POLICY_WORKSPACE_WRITE);
	ck_assert_str_eq(policy->mode_source, "config");

	(void)snprintf(text, sizeof(text),
		       "[default]\nmode = workspace-write\nnet = none\n"
		       "[workspace %s]\nmode = read-only\n",
		       at("ws"));
	make_file("conf/pale/config.ini", text);
	resolved();
	ck_assert_int_eq((int)policy->mode, (int)POLICY_READ_ONLY);
	ck_assert_int_eq((int)policy->net, (int)POLICY_NET_NONE);

	request.mode = "workspace-write";
	request.net = "host";
	resolved();
	ck_assert_str_eq(policy->mode_source, "command line");
	ck_assert_int_eq((int)policy->mode, (int)POLICY_WORKSPACE_WRITE);
	ck_assert_int_eq((int)policy->net, (int)POLICY_NET_HOST);
}
END_TEST

START_TEST(only_the_last_choice_of_a_preset_counts)
{
	make_file("conf/pale/config.ini", "[default]\npreset = ci\n");
	resolved();
	ck_assert_int_eq((int)policy->net, (int)POLICY_NET_NONE);
	ck_assert_str_eq(policy->mode_source, "preset");
	request.preset = "work";
	resolved();
	ck_assert_int_eq((int)policy->net, (int)POLICY_NET_HOST);
	ck_assert_int_eq((int)policy->home, (int)POLICY_HOME_PRIVATE);
	request.mode = "read-only";
	resolved();
	ck_assert_int_eq((int)policy->mode, (int)POLICY_READ_ONLY);
}
END_TEST

START_TEST(an_unknown_preset_or_mode_is_refused_with_the_nearest)
{
	request.preset = "worm";
	ck_assert_int_eq(resolve(), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why.text, "'work'"));
	request.preset = "custom";
	ck_assert_int_eq(resolve(), -EINVAL);
	request.preset = NULL;
	request.mode = "readonly";
	ck_assert_int_eq(resolve(), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why.text, "'read-only'"));
}
END_TEST

START_TEST(a_palerc_adds_rules_and_cannot_widen)
{
	request.mode = "workspace-write";
	make_file("ws/.palerc", "protect = /locked\nhide = *.secret\n");
	resolved();
	verdict_is(POLICY_OP_CREATE, "ws/locked/x", -EACCES);
	verdict_is(POLICY_OP_READ, "ws/a/b.secret", -ENOENT);
	verdict_is(POLICY_OP_CREATE, "ws/b.secret", -EACCES);
	verdict_is(POLICY_OP_OPEN_WRITE, "ws/.palerc", -EACCES);
	make_file("ws/.palerc", "mode = danger-full-access\n");
	ck_assert_int_eq(resolve(), -EINVAL);
	(void)unlink(at("ws/.palerc"));
	ck_assert_int_eq(symlink("/etc/passwd", at("ws/.palerc")), 0);
	ck_assert_int_lt(resolve(), 0);
}
END_TEST

START_TEST(protect_none_lifts_the_built_in_set_and_the_git_guard)
{
	request.mode = "workspace-write";
	resolved();
	verdict_is(POLICY_OP_MKDIR, "ws/.idea", -EACCES);
	ck_assert_int_eq(strv_add(&request.protect, "none"), 0);
	resolved();
	verdict_is(POLICY_OP_MKDIR, "ws/.idea", 0);
	ck_assert(!policy->git_guard);
}
END_TEST

START_TEST(allow_lifts_one_name)
{
	request.mode = "workspace-write";
	ck_assert_int_eq(strv_add(&request.allow, ".envrc"), 0);
	resolved();
	verdict_is(POLICY_OP_CREATE, "ws/.envrc", 0);
	verdict_is(POLICY_OP_CREATE, "ws/.mcp.json", -EACCES);
}
END_TEST

START_TEST(places_that_cannot_be_fenced_are_refused_with_the_reason)
{
	static const char *const places[] = { "/", "/proc", "/sys", "/dev",
					      "/proc/self" };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		request.workspace = places[i];
		ck_assert_int_eq(resolve(), -EINVAL);
		ck_assert(why.text[0] != '\0');
	}
	request.workspace = at("none");
	ck_assert_int_eq(resolve(), -ENOENT);
	make_file("file", "");
	request.workspace = at("file");
	ck_assert_int_eq(resolve(), -ENOTDIR);
	request.workspace = "/tmp";
	resolved();
	request.workspace = at("home");
	request.preset = "work";
	resolved();
	ck_assert_int_eq((int)policy->home, (int)POLICY_HOME_RO);
	request.home = "private";
	ck_assert_int_eq(resolve(), -EINVAL);
}
END_TEST

START_TEST(a_link_to_the_workspace_is_the_workspace)
{
	ck_assert_int_eq(symlink(at("ws"), at("link")), 0);
	request.workspace = at("link");
	resolved();
	ck_assert_str_eq(policy->roots[0].path, at("ws"));
}
END_TEST

START_TEST(writable_roots_are_canonical_and_none_is_there_twice)
{
	const char *roots[64];

	make_dir("out");
	make_dir("ws/in");
	ck_assert_int_eq(symlink(at("out"), at("link")), 0);
	ck_assert_int_eq(strv_add(&request.rw, at("link")), 0);
	ck_assert_int_eq(strv_add(&request.rw, at("out")), 0);
	ck_assert_int_eq(strv_add(&request.rw, at("ws/in")), 0);
	request.mode = "workspace-write";
	resolved();
	ck_assert_uint_eq(policy_writable_roots(policy, roots), 2);
	ck_assert_str_eq(roots[0], at("ws"));
	ck_assert_str_eq(roots[1], at("out"));
	request.mode = "read-only";
	resolved();
	ck_assert_uint_eq(policy_writable_roots(policy, roots), 0);
}
END_TEST

START_TEST(a_hidden_path_in_the_workspace_is_a_rule_outside_a_cover)
{
	make_file("ws/a*b", "");
	make_file("home/.netrc", "");
	ck_assert_int_eq(strv_add(&request.hide_paths, at("ws/a*b")), 0);
	ck_assert_int_eq(strv_add(&request.hide_paths, "~/.netrc"), 0);
	resolved();
	ck_assert_uint_eq(policy->hide_paths.count, 1);
	ck_assert_str_eq(policy->hide_paths.items[0], at("home/.netrc"));
	verdict_is(POLICY_OP_READ, "ws/a*b", -ENOENT);
	verdict_is(POLICY_OP_READ, "ws/axb", 0);
	verdict_is(POLICY_OP_READ, "home/.netrc", -ENOENT);
	ck_assert_int_eq(strv_add(&request.hide_paths, base), 0);
	ck_assert_int_eq(resolve(), -EINVAL);
}
END_TEST

START_TEST(the_secrets_preset_goes_with_another)
{
	make_dir("home/.ssh");
	request.preset = "ci,secrets";
	resolved();
	ck_assert_int_eq((int)policy->mode, (int)POLICY_WORKSPACE_WRITE);
	verdict_is(POLICY_OP_READ, "ws/.env", -ENOENT);
	verdict_is(POLICY_OP_READ, "ws/.env.example", 0);
	verdict_is(POLICY_OP_READ, "home/.ssh/id_rsa", -ENOENT);
	ck_assert_uint_eq(policy->env_hide.count, 5);
}
END_TEST

START_TEST(a_session_name_is_checked)
{
	static const char *const bad[] = { "", "a/b", "a b", "\xc3\xa4" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		request.session = bad[i];
		ck_assert_int_eq(resolve(), -EINVAL);
	}
	request.session = "Ok.1_-";
	resolved();
}
END_TEST

/* ---- git directories outside the workspace ---- */

static void
make_git_dir(const char *rest)
{
	char path[PATH_MAX];

	(void)snprintf(path, sizeof(path), "%s/objects", rest);
	make_dir(path);
	(void)snprintf(path, sizeof(path), "%s/refs", rest);
	make_dir(path);
	(void)snprintf(path, sizeof(path), "%s/HEAD", rest);
	make_file(path, "ref: refs/heads/main\n");
}

static void
make_linked_worktree(const char *back)
{
	char text[PATH_MAX];

	make_git_dir("repo/.git");
	make_dir("repo/.git/worktrees/ws");
	(void)snprintf(text, sizeof(text), "gitdir: %s\n",
		       at("repo/.git/worktrees/ws"));
	make_file("ws/.git", text);
	make_file("repo/.git/worktrees/ws/commondir", "../..\n");
	(void)snprintf(text, sizeof(text), "%s\n", at(back));
	make_file("repo/.git/worktrees/ws/gitdir", text);
}

START_TEST(a_linked_worktree_brings_its_common_directory)
{
	make_linked_worktree("ws/.git");
	resolved();
	ck_assert_uint_eq(policy->n_roots, 2);
	ck_assert_int_eq((int)policy->roots[1].kind, (int)POLICY_ROOT_GIT);
	ck_assert_str_eq(policy->roots[1].path, at("repo/.git"));
}
END_TEST

START_TEST(a_git_directory_that_names_another_worktree_is_not_ours)
{
	make_dir("other");
	make_file("other/.git", "");
	make_linked_worktree("other/.git");
	resolved();
	ck_assert_uint_eq(policy->n_roots, 1);
}
END_TEST

START_TEST(a_commondir_that_points_elsewhere_opens_nothing)
{
	make_linked_worktree("ws/.git");
	make_git_dir("victim/.git");
	make_file("repo/.git/worktrees/ws/commondir",
		  "../../../../victim/.git\n");
	resolved();
	ck_assert_uint_eq(policy->n_roots, 1);
}
END_TEST

START_TEST(a_submodule_brings_its_git_directory)
{
	make_git_dir("super/.git/modules/ws");
	make_file("super/.git/modules/ws/config",
		  "[core]\n\tbare = false\n\tworktree = ../../../../ws\n");
	make_file("ws/.git", "gitdir: ../super/.git/modules/ws\n");
	resolved();
	ck_assert_uint_eq(policy->n_roots, 2);
	ck_assert_str_eq(policy->roots[1].path, at("super/.git/modules/ws"));
	make_file("super/.git/modules/ws/config", "[core]\n\tbare = false\n");
	resolved();
	ck_assert_uint_eq(policy->n_roots, 1);
}
END_TEST

START_TEST(a_plain_repository_or_a_broken_gitfile_adds_nothing)
{
	make_file("ws/.git", "gitdir: /nowhere/at/all\n");
	resolved();
	ck_assert_uint_eq(policy->n_roots, 1);
	(void)unlink(at("ws/.git"));
	ck_assert_int_eq(mkfifo(at("ws/.git"), 0600), 0);
	resolved();
	ck_assert_uint_eq(policy->n_roots, 1);
}
END_TEST

/* ---- copies ---- */

static void
protects(const char *rest, bool is)
{
	verdict_is(POLICY_OP_CREATE, rest, is ? -EACCES : 0);
}

static void
make_repository(const char *config)
{
	make_dir("ws/.git/objects");
	make_dir("ws/.git/refs");
	make_file("ws/.git/HEAD", "ref: refs/heads/main\n");
	make_file("ws/.git/config", config);
	request.mode = "workspace-write";
}

START_TEST(what_the_host_s_git_configuration_names_is_protected)
{
	make_repository("[core]\n\thooksPath = .husky/_\n"
			"[include]\n\tpath = ../dev/git [1].conf\n"
			"[includeIf \"onbranch:x\"]\n\tpath = deep\n");
	make_dir("ws/dev");
	make_file("ws/dev/git [1].conf",
		  "[core]\n\tattributesFile = dev/attr\n[include]\n"
		  "\tpath = more\n[bad");
	make_file("home/.gitconfig", "[core]\n\thooksPath = ./my-hooks/\n"
				     "[init]\n\ttemplateDir = ~/../ws/tmpl\n");
	resolved();
	protects("ws/.husky/pre-commit", true);
	protects("ws/.husky/_/h", true);
	protects("ws/dev/git [1].conf", true);
	protects("ws/dev/git 1.conf", false);
	protects("ws/dev/attr", true);
	protects("ws/dev/more", true);
	protects("ws/dev/else", false);
	protects("ws/.git/deep", true);
	protects("ws/my-hooks/x", true);
	protects("ws/sub/my-hooks/x", true);
	protects("ws/tmpl/hooks/x", true);
	protects("ws/pre-commit", false);
}
END_TEST

START_TEST(symlinks_on_the_way_of_git_s_configuration_are_protected)
{
	make_repository("[core]\n\thooksPath = one/hooks\n");
	make_dir("ws/real");
	ck_assert_int_eq(symlink("two", at("ws/one")), 0);
	ck_assert_int_eq(symlink("../ws/./real", at("ws/two")), 0);
	ck_assert_int_eq(symlink("loop", at("ws/loop")), 0);
	make_file("home/.gitconfig", "[core]\n\tattributesFile = loop/x\n");
	resolved();
	verdict_is(POLICY_OP_UNLINK, "ws/one", -EACCES);
	verdict_is(POLICY_OP_UNLINK, "ws/two", -EACCES);
	protects("ws/real/hooks/x", true);
	protects("ws/real/x", false);
}
END_TEST

START_TEST(hooks_at_the_top_are_protected_by_name)
{
	make_repository("[core]\n\thooksPath = .\n");
	resolved();
	protects("ws/pre-commit", true);
	protects("ws/file", false);
}
END_TEST

START_TEST(a_repository_around_the_workspace_counts)
{
	make_repository("[core]\n\thooksPath = ws/in\n");
	ck_assert_int_eq(rename(at("ws/.git"), at(".git")), 0);
	make_repository("");
	resolved();
	protects("ws/in/pre-commit", true);
}
END_TEST

START_TEST(hooks_in_their_usual_place_are_the_guard_s)
{
	make_repository("[core]\n\thooksPath = .git/hooks/\n");
	resolved();
	protects("ws/.git/hooks/x.sample", false);
	(void)strv_add(&request.protect, "none");
	make_file("ws/.git/config", "[core]\n\thooksPath = h\n");
	resolved();
	protects("ws/h/x", false);
}
END_TEST

START_TEST(a_policy_of_another_mode_shares_the_rules)
{
	struct policy *other;

	request.mode = "workspace-write";
	resolved();
	ck_assert_int_eq(policy_with_mode(policy, POLICY_READ_ONLY, &other), 0);
	ck_assert_ptr_eq(other->rules, policy->rules);
	policy = policy_unref(policy);
	policy = other;
	verdict_is(POLICY_OP_CREATE, "ws/x", -EROFS);
}
END_TEST

START_TEST(what_is_encoded_is_decoded)
{
	_cleanup_(freep) char *text = NULL, *again = NULL;
	struct policy *copy;

	make_file("ws/\xff.secret", "");
	request.preset = "work,secrets";
	ck_assert_int_eq(strv_add(&request.protect, "a/**/\xfe*"), 0);
	ck_assert_int_eq(strv_add(&request.allow, ".envrc"), 0);
	request.limits.memory = 1 << 30;
	resolved();
	ck_assert_int_eq(policy_encode(policy, &text), 0);
	ck_assert_msg(policy_decode(text, strlen(text), &copy, &why) == 0, "%s",
		      why.text);
	ck_assert_int_eq(policy_encode(copy, &again), 0);
	ck_assert_str_eq(text, again);
	policy_unref(policy);
	policy = copy;
	verdict_is(POLICY_OP_CREATE, "ws/a/b/\xfe", -EACCES);
	verdict_is(POLICY_OP_CREATE, "ws/.IDEA", -EACCES);
	verdict_is(POLICY_OP_CREATE, "ws/.envrc", 0);
}
END_TEST

START_TEST(a_digest_tells_policies_apart_that_fence_differently)
{
	char plain[POLICY_DIGEST_LEN + 1], other[POLICY_DIGEST_LEN + 1];

	resolved();
	ck_assert_int_eq(policy_digest(policy, plain), 0);
	ck_assert_uint_eq(strlen(plain), POLICY_DIGEST_LEN);

	/* Said aloud what holds anyway, for a command of limited time. */
	request.mode = "read-only";
	request.limits.timeout_ms = 1000;
	resolved();
	ck_assert_int_eq(policy_digest(policy, other), 0);
	ck_assert_str_eq(other, plain);

	ck_assert_int_eq(strv_add(&request.protect, "*.lock"), 0);
	resolved();
	ck_assert_int_eq(policy_digest(policy, other), 0);
	ck_assert_str_ne(other, plain);
}
END_TEST

START_TEST(a_decoder_fed_with_cut_text_refuses_it)
{
	_cleanup_(freep) char *text = NULL;
	struct policy *copy;

	resolved();
	ck_assert_int_eq(policy_encode(policy, &text), 0);
	for (size_t len = 0; len < strlen(text); len++) {
		why.text[0] = '\0';
		ck_assert_int_eq(policy_decode(text, len, &copy, &why),
				 -EINVAL);
		ck_assert(why.text[0] != '\0');
	}
	ck_assert_int_eq(policy_decode("{}", 2, &copy, &why), -EINVAL);
	ck_assert_int_eq(policy_decode("[]", 2, &copy, &why), -EINVAL);
}
END_TEST

START_TEST(resolving_reports_that_memory_is_out)
{
	make_file("ws/.palerc", "hide = x\n");
	ck_assert_int_eq(strv_add(&request.hide_paths, "~/.netrc"), 0);
	for (unsigned int nth = 1;; nth++) {
		int r;

		policy = policy_unref(policy);
		oom_arm(nth);
		r = policy_resolve(&request, &policy, NULL);
		if (!oom_disarm()) {
			ck_assert_int_eq(r, 0);
			break;
		}
		/* A git directory is looked for, and may not be found. */
		ck_assert_msg(r == 0 || r == -ENOMEM, "%u: %d", nth, r);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, nothing_asked_for_is_read_only);
	tcase_add_test(
		tc,
		the_command_line_beats_the_workspace_section_beats_the_default);
	tcase_add_test(tc, only_the_last_choice_of_a_preset_counts);
	tcase_add_test(tc,
		       an_unknown_preset_or_mode_is_refused_with_the_nearest);
	tcase_add_test(tc, a_palerc_adds_rules_and_cannot_widen);
	tcase_add_test(tc,
		       protect_none_lifts_the_built_in_set_and_the_git_guard);
	tcase_add_test(tc, allow_lifts_one_name);
	tcase_add_test(
		tc, places_that_cannot_be_fenced_are_refused_with_the_reason);
	tcase_add_test(tc, a_link_to_the_workspace_is_the_workspace);
	tcase_add_test(tc,
		       writable_roots_are_canonical_and_none_is_there_twice);
	tcase_add_test(
		tc, a_hidden_path_in_the_workspace_is_a_rule_outside_a_cover);
	tcase_add_test(tc, the_secrets_preset_goes_with_another);
	tcase_add_test(tc, a_session_name_is_checked);
	tcase_add_test(tc, a_linked_worktree_brings_its_common_directory);
	tcase_add_test(tc,
		       a_git_directory_that_names_another_worktree_is_not_ours);
	tcase_add_test(tc, a_commondir_that_points_elsewhere_opens_nothing);
	tcase_add_test(tc, a_submodule_brings_its_git_directory);
	tcase_add_test(tc, a_plain_repository_or_a_broken_gitfile_adds_nothing);
	tcase_add_test(tc,
		       what_the_host_s_git_configuration_names_is_protected);
	tcase_add_test(
		tc, symlinks_on_the_way_of_git_s_configuration_are_protected);
	tcase_add_test(tc, hooks_at_the_top_are_protected_by_name);
	tcase_add_test(tc, a_repository_around_the_workspace_counts);
	tcase_add_test(tc, hooks_in_their_usual_place_are_the_guard_s);
	tcase_add_test(tc, a_policy_of_another_mode_shares_the_rules);
	tcase_add_test(tc, what_is_encoded_is_decoded);
	tcase_add_test(tc,
		       a_digest_tells_policies_apart_that_fence_differently);
	tcase_add_test(tc, a_decoder_fed_with_cut_text_refuses_it);
	tcase_add_test(tc, resolving_reports_that_memory_is_out);
	return suite_run("policy/resolve", tc);
}
