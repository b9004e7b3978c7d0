/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_SUITE_H
#define TESTS_UNIT_SUITE_H

/* The end of every unit test's main(): runs one case, returns its status. */

#include <check.h>
#include <stdlib.h>

static inline int
suite_run(const char *name, TCase *tc)
{
	Suite *suite = suite_create(name);
	SRunner *runner;
	int failed;

	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
