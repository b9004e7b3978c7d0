/* SPDX-License-Identifier: MIT */

#include "policy/rules.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "policy/policy_priv.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static struct rules *rules;

static void
setup(void)
{
	ck_assert_int_eq(rules_new(&rules), 0);
}

static void
teardown(void)
{
	rules = rules_free(rules);
}

static void
add(enum rule_kind kind, const char *pattern, const char *source)
{
	ck_assert_int_eq(rules_add(rules, kind, pattern, source, NULL), 0);
}

static bool
is_protected(const char *path, bool is_dir)
{
	struct rule_match match;

	ck_assert_int_eq(rules_match_path(rules, path, is_dir, &match), 0);
	return match.protect.text != NULL;
}

static bool
is_hidden(const char *path)
{
	struct rule_match match;

	ck_assert_int_eq(rules_match_path(rules, path, false, &match), 0);
	return match.hide.text != NULL;
}

/* The state at a directory. */
static const struct rule_state *
state_at(const char *path)
{
	const struct rule_state *state = rules_root(rules);
	char copy[256];

	(void)snprintf(copy, sizeof(copy), "%s", path);
	for (char *save, *name = strtok_r(copy, "/", &save); name;
	     name = strtok_r(NULL, "/", &save)) {
		struct rule_match match;

		ck_assert_int_eq(
			rules_step(rules, state, name, true, &match, &state),
			0);
	}
	return state;
}

/* Whether a symlink of that name would lead around a rule. */
static bool
goes_through(const char *dir, const char *name)
{
	bool through;

	ck_assert_int_eq(rules_go_through(rules, state_at(dir), name, &through),
			 0);
	return through;
}

START_TEST(a_plain_name_matches_at_any_depth_and_all_below_it)
{
	add(RULE_PROTECT, "keep", "config");
	ck_assert(is_protected("keep", false));
	ck_assert(is_protected("a/b/keep", false));
	ck_assert(is_protected("a/keep/x/y", false));
	ck_assert(!is_protected("a/keeper", false));
	ck_assert(!is_protected("", true));
}
END_TEST

START_TEST(a_slash_at_the_front_or_inside_anchors)
{
	add(RULE_PROTECT, "/top", "config");
	add(RULE_PROTECT, "a/b.c", "config");
	ck_assert(is_protected("top", false));
	ck_assert(!is_protected("x/top", false));
	ck_assert(is_protected("a/b.c", false));
	ck_assert(!is_protected("x/a/b.c", false));
}
END_TEST

START_TEST(a_slash_at_the_end_means_directories_only)
{
	add(RULE_PROTECT, "out/", "config");
	ck_assert(!is_protected("out", false));
	ck_assert(is_protected("out", true));
	ck_assert(is_protected("x/out/file", false));
}
END_TEST

START_TEST(two_stars_span_any_number_of_directories)
{
	add(RULE_PROTECT, "a/**/z", "config");
	add(RULE_PROTECT, "b/**", "config");
	add(RULE_PROTECT, "**/c/d", "config");
	ck_assert(is_protected("a/z", false));
	ck_assert(is_protected("a/1/2/3/z", false));
	ck_assert(!is_protected("x/a/z", false));
	ck_assert(!is_protected("b", true));
	ck_assert(is_protected("b/x", false));
	ck_assert(is_protected("c/d", false));
	ck_assert(is_protected("x/y/c/d", false));
	ck_assert(!is_protected("c/x/d", false));
}
END_TEST

START_TEST(the_last_match_of_a_list_wins)
{
	add(RULE_PROTECT, "*.lock", "config");
	add(RULE_PROTECT, "!free.lock", "config");
	add(RULE_PROTECT, "/x/free.lock", "config");
	ck_assert(is_protected("a.lock", false));
	ck_assert(!is_protected("free.lock", false));
	ck_assert(is_protected("x/free.lock", false));
}
END_TEST

START_TEST(no_list_lifts_a_rule_of_another)
{
	add(RULE_PROTECT, "*.lock", "config");
	add(RULE_PROTECT, "!a.lock", ".palerc");
	ck_assert(is_protected("a.lock", false));
}
END_TEST

START_TEST(an_exclamation_mark_does_not_reach_below_a_match)
{
	add(RULE_HIDE, "dir/", "config");
	add(RULE_HIDE, "!dir/file", "config");
	ck_assert(is_hidden("dir/file"));
}
END_TEST

START_TEST(two_stars_at_the_end_reach_every_depth_also_to_lift)
{
	add(RULE_HIDE, "[ab]/", "config");
	add(RULE_HIDE, "!/top/**", "config");
	ck_assert(is_hidden("x/a/f"));
	ck_assert(!is_hidden("top/x/a/f"));
}
END_TEST

START_TEST(the_operator_s_allow_lifts_by_name_and_below)
{
	ck_assert_int_eq(rules_add_builtin(rules), 0);
	add(RULE_ALLOW, ".vscode/settings.json", "command line");
	add(RULE_ALLOW, ".idea", "command line");
	ck_assert(is_protected(".vscode/tasks.json", false));
	ck_assert(!is_protected(".vscode/settings.json", false));
	ck_assert(!is_protected("a/.idea/x", false));
}
END_TEST

START_TEST(the_built_in_set_ignores_case_and_spares_node_modules)
{
	ck_assert_int_eq(rules_add_builtin(rules), 0);
	ck_assert(is_protected(".VSCode/x.json", false));
	ck_assert(is_protected("a/b/.EnvRC", false));
	ck_assert(is_protected(".mcp.json", false));
	ck_assert(is_protected("a/.vscode/sub/tasks.json", false));
	ck_assert(!is_protected("a/.vscode/ipch", true));
	ck_assert(!is_protected("node_modules/p/.vscode/x.json", false));
	ck_assert(is_protected("Node_Modules/.vscode/x.json", false));
	ck_assert(is_protected(".idea/node_modules/x", false));
}
END_TEST

START_TEST(a_link_named_like_a_protected_directory_is_protected)
{
	ck_assert_int_eq(rules_add_builtin(rules), 0);
	ck_assert(is_protected(".idea", false));
}
END_TEST

START_TEST(escapes_and_classes_work_as_in_git)
{
	add(RULE_PROTECT, "\\!odd", "config");
	add(RULE_PROTECT, "\\#odd", "config");
	add(RULE_PROTECT, "sp\\ ace", "config");
	add(RULE_PROTECT, "[a-c]1", "config");
	add(RULE_PROTECT, "[!x]2", "config");
	add(RULE_PROTECT, "[[:digit:]]3", "config");
	add(RULE_PROTECT, "[]]4", "config");
	add(RULE_PROTECT, "st\\*r", "config");
	ck_assert(is_protected("!odd", false));
	ck_assert(is_protected("#odd", false));
	ck_assert(is_protected("sp ace", false));
	ck_assert(is_protected("b1", false) && !is_protected("d1", false));
	ck_assert(is_protected("a2", false) && !is_protected("x2", false));
	ck_assert(is_protected("73", false) && !is_protected("a3", false));
	ck_assert(is_protected("]4", false) && !is_protected("a4", false));
	ck_assert(is_protected("st*r", false) && !is_protected("star", false));
}
END_TEST

START_TEST(a_pattern_that_can_match_nothing_is_refused_with_a_sentence)
{
	static const char *const bad[] = { "",	     "/",	"!",  "a//b",
					   "a/../b", "./a",	"[a", "a\\",
					   "#x",     "[[:no:]]" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct errmsg why = { "" };

		ck_assert_int_eq(
			rules_add(rules, RULE_HIDE, bad[i], "config", &why),
			-EINVAL);
		ck_assert(why.text[0] != '\0');
	}
	ck_assert(rules_empty(rules));
}
END_TEST

START_TEST(ordinary_directories_are_in_one_state)
{
	ck_assert_int_eq(rules_add_builtin(rules), 0);
	add(RULE_HIDE, "*.pem", "config");
	add(RULE_PROTECT, "**/secret*", "config");
	ck_assert_ptr_eq(state_at("src/a"), state_at("lib"));
	ck_assert_ptr_eq(state_at("a/b/c"), state_at("z"));
}
END_TEST

START_TEST(places_where_rules_differ_are_in_different_states)
{
	ck_assert_int_eq(rules_add_builtin(rules), 0);
	add(RULE_PROTECT, "conf/key", "config");
	add(RULE_PROTECT, "**/deep/x", "config");
	ck_assert_ptr_ne(state_at("conf"), state_at("other"));
	ck_assert_ptr_ne(state_at("a/deep"), state_at("a/b"));
	ck_assert_ptr_eq(state_at("a/deep"), state_at("b/c/deep"));
	ck_assert_ptr_ne(state_at("node_modules"), state_at("b"));
	ck_assert_ptr_eq(state_at("node_modules/p"),
			 state_at("x/node_modules/q/r"));
	ck_assert_ptr_ne(state_at(".vscode"), state_at("b"));
}
END_TEST

START_TEST(a_rule_goes_through_the_names_above_its_last)
{
	ck_assert_int_eq(rules_add_builtin(rules), 0);
	add(RULE_PROTECT, "/keep/hooks/pre", "config");
	add(RULE_PROTECT, "*.pem", "config");
	add(RULE_PROTECT, "docs/**", "config");
	add(RULE_HIDE, "/x?/secret", "config");
	ck_assert(goes_through("", ".vscode"));
	ck_assert(goes_through("a/b", ".VSCode"));
	ck_assert(goes_through("", "keep"));
	ck_assert(goes_through("keep", "hooks"));
	ck_assert(goes_through("", "x1"));
	ck_assert(goes_through("", "docs"));
	/* The last name is the rule's own. */
	ck_assert(!goes_through("keep/hooks", "pre"));
	ck_assert(!goes_through("a", "keep"));
	ck_assert(!goes_through("", "node_modules"));
	ck_assert(!goes_through("node_modules", "x"));
	ck_assert(!goes_through("", "src"));
	ck_assert(!goes_through("a", "b.pem"));
}
END_TEST

START_TEST(what_only_lifts_goes_through_nothing)
{
	add(RULE_PROTECT, "*.txt", "config");
	add(RULE_PROTECT, "!/free/x.txt", "config");
	add(RULE_ALLOW, "/open/x.txt", "--allow");
	ck_assert(!goes_through("", "free"));
	ck_assert(!goes_through("", "open"));
}
END_TEST

START_TEST(no_memory_means_that_everything_is_refused)
{
	const struct rule_state *dir, *below;
	struct rule_match match;

	rules_free(rules);
	ck_assert_int_eq(rules_new(&rules), 0);
	add(RULE_PROTECT, "conf/key", "config");
	dir = rules_root(rules);
	oom_arm(1);
	ck_assert_int_eq(rules_step(rules, dir, "conf", true, &match, &below),
			 -ENOMEM);
	ck_assert(oom_disarm());
	ck_assert(match.protect.text && match.hide.text);
}
END_TEST

/* Building is put off to the first use, which is to refuse everything then. */
START_TEST(building_reports_that_memory_is_out)
{
	for (unsigned int nth = 1;; nth++) {
		struct rule_match match = { 0 };
		struct rules *made = NULL;
		bool open = false;
		int r;

		oom_arm(nth);
		r = rules_new(&made);
		if (r == 0)
			r = rules_add(made, RULE_HIDE, "a/**/b*/c", "x", NULL);
		if (r == 0) {
			r = rules_step(made, rules_root(made), "other", false,
				       &match, NULL);
			open = r < 0 &&
			       !(match.protect.text && match.hide.text);
		}
		if (!oom_disarm()) {
			ck_assert_int_eq(r, 0);
			rules_free(made);
			break;
		}
		ck_assert_int_eq(r, -ENOMEM);
		ck_assert(!open);
		rules_free(made);
	}
}
END_TEST

START_TEST(the_number_of_states_is_bounded)
{
	struct rule_match match;
	int r = 0;

	/* 2^20 subsets are reachable. */
	for (int i = 0; i < 20; i++) {
		char text[32];

		(void)snprintf(text, sizeof(text), "**/%c/**/zz", 'a' + i);
		add(RULE_HIDE, text, "config");
	}
	for (unsigned int set = 0; set < 1u << 18 && r == 0; set++) {
		const struct rule_state *at = rules_root(rules);

		for (int i = 0; i < 18 && r == 0; i++) {
			char name[2] = { (char)('a' + i), '\0' };

			if (set >> i & 1)
				r = rules_step(rules, at, name, true, &match,
					       &at);
		}
	}
	ck_assert_int_eq(r, -ENOMEM);
	ck_assert(match.hide.text != NULL);
}
END_TEST

/* ---- the obvious model: each pattern against the whole path ---- */

static bool
model_parts(const struct pattern_parts *parts, size_t part, char *const *names,
	    size_t n)
{
	if (part == parts->count)
		return n == 0;
	if (strcmp(parts->items[part], "**") == 0) {
		for (size_t skip = 0; skip <= n; skip++)
			if (model_parts(parts, part + 1, names + skip,
					n - skip))
				return true;
		return false;
	}
	return n > 0 && glob_match(parts->items[part], names[0], false) &&
	       model_parts(parts, part + 1, names + 1, n - 1);
}

static bool
model_pattern(const struct pattern *p, char *const *names, size_t n,
	      bool is_dir)
{
	if (p->dir_only && !is_dir)
		return false;
	if (!p->floating)
		return model_parts(&p->parts, 0, names, n);
	for (size_t skip = 0; skip < n; skip++)
		if (model_parts(&p->parts, 0, names + skip, n - skip))
			return true;
	return false;
}

/* As git: the first directory on the way whose last match is no "!". */
static bool
model_list(const struct pattern *list, size_t count, char *const *names,
	   size_t n, bool is_dir)
{
	for (size_t depth = 1; depth <= n; depth++) {
		bool matched = false;

		for (size_t i = 0; i < count; i++)
			if (model_pattern(&list[i], names, depth,
					  depth < n || is_dir))
				matched = !list[i].negated;
		if (matched)
			return true;
	}
	return false;
}

static void
random_pattern(unsigned int *seed, char *text, size_t size)
{
	static const char *const parts[] = { "a",   "b",    "ab",   "*",
					     "a*",  "*b",   "**",   "?",
					     "*a*", "[ab]", "*ab*", "[!a]" };
	int n = rand_r(seed) % 4 + 1;
	size_t len;

	(void)snprintf(text, size, "%s%s", rand_r(seed) % 4 ? "" : "!",
		       rand_r(seed) % 4 ? "" : "/");
	for (int i = 0; i < n; i++) {
		len = strlen(text);
		(void)snprintf(text + len, size - len, "%s%s", i ? "/" : "",
			       parts[(size_t)rand_r(seed) % 12]);
	}
	len = strlen(text);
	(void)snprintf(text + len, size - len, "%s",
		       rand_r(seed) % 4 ? "" : "/");
}

#define PATTERNS 6

static void
compare_paths(const struct pattern *list, unsigned int *seed)
{
	static char pool[][4] = { "a", "b", "ab", "ba", "c", "aab" };

	for (int round = 0; round < 200; round++) {
		size_t n = (size_t)rand_r(seed) % 5 + 1;
		bool is_dir = rand_r(seed) % 2;
		char path[64] = "", *names[5];

		for (size_t i = 0; i < n; i++) {
			names[i] = pool[(size_t)rand_r(seed) % 6];
			(void)snprintf(path + strlen(path),
				       sizeof(path) - strlen(path), "%s%s",
				       i ? "/" : "", names[i]);
		}
		ck_assert_msg(
			is_protected(path, is_dir) ==
				model_list(list, PATTERNS, names, n, is_dir),
			"path %s", path);
	}
}

START_TEST(stepping_agrees_with_matching_whole_paths)
{
	unsigned int seed = (unsigned int)_i + 1;

	for (int round = 0; round < 100; round++) {
		struct pattern list[PATTERNS];

		teardown();
		setup();
		for (int i = 0; i < PATTERNS; i++) {
			char text[64];

			random_pattern(&seed, text, sizeof(text));
			add(RULE_PROTECT, text, "config");
			ck_assert_int_eq(pattern_parse(text, &list[i], NULL),
					 0);
		}
		compare_paths(list, &seed);
		for (int i = 0; i < PATTERNS; i++)
			pattern_fini(&list[i]);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("rules");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, a_plain_name_matches_at_any_depth_and_all_below_it);
	tcase_add_test(tc, a_slash_at_the_front_or_inside_anchors);
	tcase_add_test(tc, a_slash_at_the_end_means_directories_only);
	tcase_add_test(tc, two_stars_span_any_number_of_directories);
	tcase_add_test(tc, the_last_match_of_a_list_wins);
	tcase_add_test(tc, no_list_lifts_a_rule_of_another);
	tcase_add_test(tc, an_exclamation_mark_does_not_reach_below_a_match);
	tcase_add_test(tc, two_stars_at_the_end_reach_every_depth_also_to_lift);
	tcase_add_test(tc, the_operator_s_allow_lifts_by_name_and_below);
	tcase_add_test(tc,
		       the_built_in_set_ignores_case_and_spares_node_modules);
	tcase_add_test(tc,
		       a_link_named_like_a_protected_directory_is_protected);
	tcase_add_test(tc, escapes_and_classes_work_as_in_git);
	tcase_add_test(
		tc,
		a_pattern_that_can_match_nothing_is_refused_with_a_sentence);
	tcase_add_test(tc, ordinary_directories_are_in_one_state);
	tcase_add_test(tc, places_where_rules_differ_are_in_different_states);
	tcase_add_test(tc, a_rule_goes_through_the_names_above_its_last);
	tcase_add_test(tc, what_only_lifts_goes_through_nothing);
	tcase_add_test(tc, no_memory_means_that_everything_is_refused);
	tcase_add_test(tc, building_reports_that_memory_is_out);
	tcase_add_test(tc, the_number_of_states_is_bounded);
	tcase_add_loop_test(tc, stepping_agrees_with_matching_whole_paths, 0,
			    4);
	return suite_run("policy/rules", tc);
}
