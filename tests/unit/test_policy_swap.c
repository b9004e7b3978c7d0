/* SPDX-License-Identifier: MIT */

#include <check.h>
#include <string.h>
#include <time.h>

#include "fusefs/inodes.h"
#include "fusefs/ops.h"
#include "tests/unit/suite.h"

static struct fs fs;

static struct policy *
make_policy(enum policy_mode mode)
{
	struct policy *policy = calloc(1, sizeof(*policy));

	ck_assert_ptr_nonnull(policy);
	policy->refs = 1;
	policy->mode = mode;
	ck_assert_int_eq(rules_new(&policy->rules), 0);
	return policy;
}

static void
setup(void)
{
	memset(&fs, 0, sizeof(fs));
	pthread_mutex_init(&fs.swap_lock, NULL);
	ck_assert_int_eq(fs_inodes_init(&fs, 128), 0);
	atomic_init(&fs.policy, make_policy(POLICY_WORKSPACE_WRITE));
	atomic_init(&fs.policy_gen, 2);
}

static void
teardown(void)
{
	policy_unref(atomic_load(&fs.policy));
	fs_inodes_fini(&fs);
}

static void *
tighten(void *data)
{
	struct policy *policy = make_policy(POLICY_READ_ONLY);

	(void)data;
	ck_assert_int_eq(fs_set_policy(&fs, policy), 0);
	policy_unref(policy);
	return NULL;
}

/* A rename under way may have to say so while a swap waits for it. */
START_TEST(marks_become_outdated_in_a_call_that_a_swap_waits_for)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct fs_call call = { .fs = &fs };
	pthread_t thread;

	fs_policy_enter(&call);
	ck_assert_int_eq(pthread_create(&thread, NULL, tighten, NULL), 0);
	while (atomic_load(&fs.epoch) == call.epoch)
		(void)nanosleep(&pause, NULL);
	fs_marks_outdated(&fs);
	fs_policy_leave(&call);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);

	fs_policy_enter(&call);
	ck_assert_int_eq(call.policy->mode, POLICY_READ_ONLY);
	ck_assert_uint_eq(call.policy_gen, 6);
	fs_policy_leave(&call);
}
END_TEST

static void *
outdate(void *data)
{
	atomic_bool *stop = data;

	while (!atomic_load(stop))
		fs_marks_outdated(&fs);
	return NULL;
}

START_TEST(a_call_sees_a_policy_and_its_generation_together)
{
	struct fs_call call = { .fs = &fs };
	atomic_bool stop = false;
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, outdate, &stop), 0);
	for (int i = 0; i < 1000; i++) {
		enum policy_mode mode =
			i % 2 ? POLICY_WORKSPACE_WRITE : POLICY_READ_ONLY;
		struct policy *policy = make_policy(mode);

		ck_assert_int_eq(fs_set_policy(&fs, policy), 0);
		policy_unref(policy);
		fs_policy_enter(&call);
		ck_assert_uint_eq(call.policy_gen & 1, 0);
		ck_assert_int_eq(call.policy->mode, mode);
		fs_policy_leave(&call);
	}
	atomic_store(&stop, true);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("policy_swap");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 30);
	tcase_add_test(tc,
		       marks_become_outdated_in_a_call_that_a_swap_waits_for);
	tcase_add_test(tc, a_call_sees_a_policy_and_its_generation_together);
	return suite_run("fusefs/policy_swap", tc);
}
