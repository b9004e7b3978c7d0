/* SPDX-License-Identifier: MIT */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "policy/policy_priv.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static struct config config;
static struct errmsg why;

static int
parse(const char *text, enum config_syntax syntax)
{
	config_fini(&config);
	why.text[0] = '\0';
	return config_parse(text, strlen(text), "f", syntax, &config, &why);
}

static void
teardown(void)
{
	config_fini(&config);
}

static void
setup(void)
{
	config = (struct config){ 0 };
}

/* The text is refused, with a message that says all of `parts`. */
static void
refused(const char *text, const char *message)
{
	ck_assert_int_eq(parse(text, CONFIG_SYNTAX_FILE), -EINVAL);
	ck_assert_str_eq(why.text, message);
}

START_TEST(every_key_is_taken)
{
	const struct policy_request *r;

	ck_assert_int_eq(parse("# comment\n"
			       "[default]\n"
			       "mode = workspace-write\n"
			       "preset = work\n"
			       "net = none\nhome = private\ntmp = yes\n"
			       "nest = no\nprotect = *.lock\nhide = .env\n"
			       "  *.pem\n"
			       "allow = .vscode/x\nrw = /srv\n"
			       "hide-path = ~/.ssh\nsocket = docker\n"
			       "dev = /dev/kvm\nenv-hide = *KEY*\n"
			       "timeout = 5m\nlinger = 1s\nmemory = 1G\n"
			       "pids = 10\ncpu = 150\nrequire = full\n"
			       "jobs = 64\njobs-kept = 1000\n"
			       "jobs-bytes = 3G\n",
			       CONFIG_SYNTAX_FILE),
			 0);
	ck_assert_uint_eq(config.count, 1);
	r = &config.sections[0].request;
	ck_assert_str_eq(r->mode, "workspace-write");
	ck_assert_str_eq(r->preset, "work");
	ck_assert_str_eq(r->net, "none");
	ck_assert_int_eq(r->tmp, 1);
	ck_assert_int_eq(r->nest, 0);
	ck_assert_uint_eq(r->hide.count, 2);
	ck_assert_str_eq(r->hide.items[1], "*.pem");
	ck_assert_uint_eq(r->limits.timeout_ms, 300000);
	ck_assert_uint_eq(r->limits.memory, UINT64_C(1) << 30);
	ck_assert_uint_eq(r->limits.cpu_percent, 150);
	ck_assert_uint_eq(r->limits.jobs, 64);
	ck_assert_uint_eq(r->limits.jobs_kept, 1000);
	ck_assert_uint_eq(r->limits.jobs_bytes, UINT64_C(3) << 30);
	ck_assert(r->require_full && !r->require_limits);
}
END_TEST

START_TEST(an_unknown_name_is_an_error_with_the_nearest)
{
	refused("[default]\n\nmod = read-only\n",
		"f:3: unknown key 'mod'; did you mean 'mode'?");
	refused("[default]\nmode = readonly\n",
		"f:2: unknown mode 'readonly'; did you mean 'read-only'?");
	refused("[defualt]\n",
		"f:1: unknown section 'defualt'; did you mean 'default'?");
	refused("[default]\nzzzzzzzzzzzzzzz = 1\n",
		"f:2: unknown key 'zzzzzzzzzzzzzzz'");
}
END_TEST

START_TEST(a_value_that_cannot_be_is_an_error_with_its_line)
{
	refused("[default]\ntimeout = soon\n",
		"f:2: 'soon' is not a duration such as 90s or 5m");
	refused("[default]\nrw = here\n",
		"f:2: 'here' must begin with '/' or '~/'");
	refused("[default]\nmode = read-only\nmode = read-only\n",
		"f:3: this key was given before in this section");
	refused("[default]\nhide = [a\n", "f:2: pattern '[a': '[a' has an "
					  "unclosed '[' or ends in a "
					  "backslash");
	refused("[default]\nnonsense\n", "f:2: expected 'key = value'");
	refused("mode = read-only\n", "f:1: 'mode' stands before any section");
	refused("[default]\nmode =\n", "f:2: 'mode' has no value");
}
END_TEST

START_TEST(a_preset_named_custom_or_as_a_built_in_one_is_refused)
{
	ck_assert_int_eq(parse("[preset custom]\n", CONFIG_SYNTAX_FILE),
			 -EINVAL);
	ck_assert_int_eq(parse("[preset work]\n", CONFIG_SYNTAX_FILE), -EINVAL);
	ck_assert_int_eq(parse("[preset mine]\n", CONFIG_SYNTAX_FILE), 0);
	ck_assert_ptr_nonnull(config_find(&config, CONFIG_PRESET, "mine"));
}
END_TEST

START_TEST(a_long_workspace_path_is_not_cut)
{
	char path[3000], text[3100];

	for (size_t i = 0; i + 1 < sizeof(path); i++)
		path[i] = i % 100 ? 'd' : '/';
	path[sizeof(path) - 1] = '\0';
	(void)snprintf(text, sizeof(text), "[workspace %s]\ntmp = yes\n", path);
	ck_assert_int_eq(parse(text, CONFIG_SYNTAX_FILE), 0);
	ck_assert_ptr_nonnull(config_find(&config, CONFIG_WORKSPACE, path));
}
END_TEST

START_TEST(a_line_that_is_too_long_is_refused_not_cut)
{
	static char text[20000];

	memset(text, 'a', sizeof(text) - 1);
	memcpy(text, "[default]\nhide = ", 17);
	ck_assert_int_eq(parse(text, CONFIG_SYNTAX_FILE), -EINVAL);
}
END_TEST

START_TEST(a_palerc_may_only_tighten)
{
	ck_assert_int_eq(
		parse("protect = *.lock\nhide = .env\n", CONFIG_SYNTAX_RC), 0);
	ck_assert_str_eq(config.sections[0].request.hide.items[0], ".env");
	ck_assert_int_eq(parse("mode = workspace-write\n", CONFIG_SYNTAX_RC),
			 -EINVAL);
	ck_assert_int_eq(parse("allow = x\n", CONFIG_SYNTAX_RC), -EINVAL);
	ck_assert_int_eq(parse("protect = none\n", CONFIG_SYNTAX_RC), -EINVAL);
	ck_assert_int_eq(parse("[default]\n", CONFIG_SYNTAX_RC), -EINVAL);
}
END_TEST

START_TEST(the_built_in_presets_parse)
{
	ck_assert_int_eq(parse(preset_builtin_text, CONFIG_SYNTAX_BUILTIN), 0);
	ck_assert_uint_eq(config.count, 5);
	for (size_t i = 0; i < config.count; i++)
		ck_assert(preset_is_builtin(config.sections[i].name));
}
END_TEST

START_TEST(parsing_reports_that_memory_is_out)
{
	static const char text[] = "[default]\nmode = read-only\nhide = a/b\n";

	for (unsigned int nth = 1;; nth++) {
		int r;

		config_fini(&config);
		oom_arm(nth);
		r = config_parse(text, strlen(text), "f", CONFIG_SYNTAX_FILE,
				 &config, NULL);
		if (!oom_disarm()) {
			ck_assert_int_eq(r, 0);
			break;
		}
		ck_assert_int_lt(r, 0);
	}
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, every_key_is_taken);
	tcase_add_test(tc, an_unknown_name_is_an_error_with_the_nearest);
	tcase_add_test(tc, a_value_that_cannot_be_is_an_error_with_its_line);
	tcase_add_test(tc,
		       a_preset_named_custom_or_as_a_built_in_one_is_refused);
	tcase_add_test(tc, a_long_workspace_path_is_not_cut);
	tcase_add_test(tc, a_line_that_is_too_long_is_refused_not_cut);
	tcase_add_test(tc, a_palerc_may_only_tighten);
	tcase_add_test(tc, the_built_in_presets_parse);
	tcase_add_test(tc, parsing_reports_that_memory_is_out);
	return suite_run("policy/config", tc);
}
