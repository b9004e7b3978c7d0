/* SPDX-License-Identifier: MIT */

#include "base/spawn_spec.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static struct spawn_spec spec;
static struct buf bytes;

static void
setup(void)
{
	spec = (struct spawn_spec){ .flags = SPAWN_SPEC_UMASK, .umask = 027 };
	bytes = (struct buf){ 0 };
	spec.cwd = strdup("/a/b");
	spec.console = strdup("/dev/pts/3");
	ck_assert_int_eq(strv_add(&spec.argv, "sh"), 0);
	ck_assert_int_eq(strv_add(&spec.argv, ""), 0);
	ck_assert_int_eq(strv_add(&spec.env, "A=b"), 0);
}

static void
teardown(void)
{
	spawn_spec_fini(&spec);
	buf_fini(&bytes);
}

static int
round_trip(struct spawn_spec *ret_spec)
{
	ck_assert_int_eq(spawn_spec_encode(&spec, &bytes), 0);
	return spawn_spec_decode(bytes.data, bytes.len, ret_spec, NULL);
}

START_TEST(what_is_encoded_is_decoded)
{
	struct spawn_spec got;

	ck_assert_int_eq(round_trip(&got), 0);
	ck_assert_uint_eq(got.flags, SPAWN_SPEC_UMASK);
	ck_assert_uint_eq(got.umask, 027);
	ck_assert_str_eq(got.cwd, "/a/b");
	ck_assert_str_eq(got.console, "/dev/pts/3");
	ck_assert_uint_eq(got.argv.count, 2);
	ck_assert_str_eq(got.argv.items[1], "");
	ck_assert_uint_eq(got.env.count, 1);
	ck_assert_str_eq(got.env.items[0], "A=b");
	spawn_spec_fini(&got);
}
END_TEST

START_TEST(every_cut_is_refused)
{
	struct spawn_spec got;
	struct errmsg why;

	ck_assert_int_eq(spawn_spec_encode(&spec, &bytes), 0);
	for (size_t len = 0; len < bytes.len; len++) {
		why.text[0] = '\0';
		ck_assert_int_eq(spawn_spec_decode(bytes.data, len, &got, &why),
				 -EINVAL);
		ck_assert_str_ne(why.text, "");
	}
	buf_u32(&bytes, 0);
	ck_assert_int_eq(spawn_spec_decode(bytes.data, bytes.len, &got, NULL),
			 -EINVAL);
}
END_TEST

START_TEST(values_that_are_not_known_are_refused)
{
	static const char *const directories[] = { "", "a", "/a/../b", "/a/" };
	struct spawn_spec got;

	for (size_t i = 0; i < sizeof(directories) / sizeof(*directories);
	     i++) {
		free(spec.cwd);
		spec.cwd = strdup(directories[i]);
		ck_assert_int_eq(round_trip(&got), -EINVAL);
		buf_fini(&bytes);
	}
	free(spec.cwd);
	spec.cwd = strdup("/");
	spec.umask = 01000;
	ck_assert_int_eq(round_trip(&got), -EINVAL);
	buf_fini(&bytes);
	spec.umask = 0;
	spec.flags = 1u << 31;
	ck_assert_int_eq(round_trip(&got), -EINVAL);
}
END_TEST

START_TEST(a_command_has_a_name)
{
	struct spawn_spec got;

	strv_fini(&spec.argv);
	ck_assert_int_eq(round_trip(&got), -EINVAL);
}
END_TEST

START_TEST(too_much_is_refused)
{
	char *big = malloc(LIMIT_SPAWN_BYTES + 1);
	struct spawn_spec got;

	memset(big, 'x', LIMIT_SPAWN_BYTES);
	big[LIMIT_SPAWN_BYTES] = '\0';
	ck_assert_int_eq(strv_add(&spec.env, big), 0);
	ck_assert_int_eq(spawn_spec_encode(&spec, &bytes), -E2BIG);
	ck_assert_int_eq(
		spawn_spec_decode(big, LIMIT_SPAWN_BYTES + 1, &got, NULL),
		-E2BIG);
	free(big);
}
END_TEST

/* Every byte of it, to every of some values: refused or the same again. */
START_TEST(what_is_changed_decodes_to_itself_or_not)
{
	static const unsigned char values[] = { 0, 1, 0x7f, 0x80, 0xff };

	ck_assert_int_eq(spawn_spec_encode(&spec, &bytes), 0);
	for (size_t i = 0; i < bytes.len * sizeof(values); i++) {
		struct buf copy = { 0 }, again = { 0 };
		struct spawn_spec got;

		buf_put(&copy, bytes.data, bytes.len);
		copy.data[i / sizeof(values)] = values[i % sizeof(values)];
		if (spawn_spec_decode(copy.data, copy.len, &got, NULL) == 0) {
			ck_assert_int_eq(spawn_spec_encode(&got, &again), 0);
			ck_assert_mem_eq(again.data, copy.data, copy.len);
			spawn_spec_fini(&got);
		}
		buf_fini(&copy);
		buf_fini(&again);
	}
}
END_TEST

START_TEST(without_memory_nothing_is_left)
{
	struct spawn_spec got;

	ck_assert_int_eq(spawn_spec_encode(&spec, &bytes), 0);
	for (unsigned int n = 1; n < 40; n++) {
		int r;

		oom_arm(n);
		r = spawn_spec_decode(bytes.data, bytes.len, &got, NULL);
		oom_disarm();
		if (r == 0) {
			spawn_spec_fini(&got);
			return;
		}
	}
	ck_abort_msg("never enough memory");
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("all");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_encoded_is_decoded);
	tcase_add_test(tc, every_cut_is_refused);
	tcase_add_test(tc, values_that_are_not_known_are_refused);
	tcase_add_test(tc, a_command_has_a_name);
	tcase_add_test(tc, too_much_is_refused);
	tcase_add_test(tc, what_is_changed_decodes_to_itself_or_not);
	tcase_add_test(tc, without_memory_nothing_is_left);
	return suite_run("base/spawn_spec", tc);
}
