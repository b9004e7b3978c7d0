/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "suite.h"
#include "warden/watch.h"

static char top[64], upper[128], ws[160];
static struct watch watch;
static struct errmsg why;

static void
setup(void)
{
	(void)strcpy(top, "/tmp/pale-watch.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(upper, sizeof(upper), "%s/upper", top);
	(void)snprintf(ws, sizeof(ws), "%s/ws", upper);
	ck_assert_int_eq(mkdir(upper, 0755), 0);
	ck_assert_int_eq(mkdir(ws, 0755), 0);
	why.text[0] = '\0';
	ck_assert_int_eq(watch_open(&watch, ws, &why), 0);
}

static void
teardown(void)
{
	char command[128];

	watch_fini(&watch);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", top);
	ck_assert_int_eq(system(command), 0);
}

static void
move(const char *from, const char *to)
{
	ck_assert_int_eq(rename(from, to), 0);
}

START_TEST(a_workspace_that_stays_is_there)
{
	char beside[256];

	(void)snprintf(beside, sizeof(beside), "%s/x", upper);
	ck_assert_int_eq(mkdir(beside, 0755), 0);
	ck_assert_int_eq(rmdir(beside), 0);
	ck_assert_int_eq(watch_check(&watch, &why), 0);
	ck_assert(!watch.gaps);
}
END_TEST

START_TEST(renamed_removed_and_back)
{
	char other[256];

	(void)snprintf(other, sizeof(other), "%s/ws2", upper);
	move(ws, other);
	/* Something else of the same name does not help. */
	ck_assert_int_eq(mkdir(ws, 0755), 0);
	ck_assert_int_eq(watch_check(&watch, &why), -ESTALE);
	ck_assert_ptr_nonnull(strstr(why.text, "was renamed"));
	ck_assert_int_eq(rmdir(ws), 0);
	move(other, ws);
	ck_assert_int_eq(watch_check(&watch, &why), 0);
	ck_assert_int_eq(rmdir(ws), 0);
	ck_assert_int_eq(watch_check(&watch, &why), -ESTALE);
	ck_assert_ptr_nonnull(strstr(why.text, "was removed"));
}
END_TEST

static int told;

static void
on_gone(void *data, const struct errmsg *reason)
{
	ck_assert_ptr_eq(data, &watch);
	ck_assert_ptr_nonnull(strstr(reason->text, "the world has ended"));
	told++;
	watch_close(&watch);
}

static void
run_move(uv_timer_t *timer)
{
	char other[256];

	switch (*(int *)timer->data) {
	case 0: /* what lies above */
		(void)snprintf(other, sizeof(other), "%s/upper2", top);
		move(upper, other);
		break;
	case 1:
		ck_assert_int_eq(rmdir(ws), 0);
		break;
	default: /* another one over it */
		(void)snprintf(other, sizeof(other), "%s/new", top);
		ck_assert_int_eq(mkdir(other, 0755), 0);
		move(other, ws);
	}
	uv_close((uv_handle_t *)timer, NULL);
}

START_TEST(the_loop_is_told_once)
{
	uv_loop_t loop;
	uv_timer_t timer;
	int how = _i;

	told = 0;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(uv_timer_init(&loop, &timer), 0);
	timer.data = &how;
	ck_assert_int_eq(uv_timer_start(&timer, run_move, 10, 0), 0);
	ck_assert_int_eq(watch_start(&watch, &loop, on_gone, &watch), 0);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(told, 1);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

START_TEST(what_is_not_there_is_an_error)
{
	struct watch other;

	ck_assert_int_eq(watch_open(&other, "/nowhere/at/all", &why), -ENOENT);
	watch_fini(&other);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("watch");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_workspace_that_stays_is_there);
	tcase_add_test(tc, renamed_removed_and_back);
	tcase_add_loop_test(tc, the_loop_is_told_once, 0, 3);
	tcase_add_test(tc, what_is_not_there_is_an_error);
	return suite_run("watch", tc);
}
