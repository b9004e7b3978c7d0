/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_SMALL_STORE_H
#define TESTS_UNIT_SMALL_STORE_H

/* A store in a directory of its own: the checked fixture of who tests one. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/store.h"

static char dir[64], path[128];
static struct store *store;

static void
setup(void)
{
	struct errmsg why = { "" };

	(void)snprintf(dir, sizeof(dir), "/tmp/pale-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/pale.db", dir);
	ck_assert_msg(store_open(path, &store, &why) == 0, "%s", why.text);
}

static void
teardown(void)
{
	char command[128];

	store = store_close(store);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

#endif
