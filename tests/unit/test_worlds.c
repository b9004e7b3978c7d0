/* SPDX-License-Identifier: MIT */

#include "cli/worlds.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "tests/unit/suite.h"

static char base[64], runtime[128];
static struct world_list list;
static struct errmsg why;

static void
setup(void)
{
	char path[160];

	(void)strcpy(base, "/tmp/pale-test-worlds.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	(void)setenv("XDG_RUNTIME_DIR", base, 1);
	(void)setenv("XDG_STATE_HOME", base, 1);
	(void)snprintf(runtime, sizeof(runtime), "%s/pale", base);
	ck_assert_int_eq(mkdir(runtime, 0700), 0);
	(void)snprintf(path, sizeof(path), "%s/worlds", runtime);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	list = (struct world_list){ 0 };
}

static void
teardown(void)
{
	char command[128];

	world_list_fini(&list);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", base);
	ck_assert_int_eq(system(command), 0);
}

/* A world's directory; *ret_fd holds its lock, as its warden would. */
static void
make_world(const char *id, const char *info, int *ret_fd)
{
	char path[256];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/worlds/%s", runtime, id);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	if (ret_fd) {
		*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		ck_assert_int_eq(flock(*ret_fd, LOCK_EX), 0);
	}
	if (!info)
		return;
	(void)snprintf(path, sizeof(path), "%s/worlds/%s/info.json", runtime,
		       id);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(fd_write_all(fd, info, strlen(info)), 0);
	(void)close(fd);
}

static bool
exists(const char *id)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/worlds/%s", runtime, id);
	return access(path, F_OK) == 0;
}

#define INFO(id, started, ws, point)                                        \
	"{\"id\":\"" id "\",\"pid\":1,\"kind\":\"run\",\"workspace\":\"" ws \
	"\",\"session\":\"default\",\"mode\":\"read-only\","                \
	"\"started\":" started ",\"mountpoint\":" point "}\n"

START_TEST(no_directory_is_no_world)
{
	char none[80];

	(void)snprintf(none, sizeof(none), "%s/none", base);
	/* One that is there, or a place of the machine stands in. */
	ck_assert_int_eq(mkdir(none, 0700), 0);
	(void)setenv("XDG_RUNTIME_DIR", none, 1);
	ck_assert_int_eq(worlds_list(&list, &why), 0);
	ck_assert_uint_eq(list.count, 0);
}
END_TEST

START_TEST(the_oldest_comes_first)
{
	int one, other;

	make_world("younger", INFO("younger", "20", "/w", "null"), &one);
	make_world("elder", INFO("elder", "10", "/w", "\"/mnt\""), &other);
	ck_assert_int_eq(worlds_list(&list, &why), 0);
	ck_assert_uint_eq(list.count, 2);
	ck_assert_str_eq(list.items[0].id, "elder");
	ck_assert_str_eq(list.items[0].mountpoint, "/mnt");
	ck_assert_ptr_null(list.items[1].mountpoint);
	(void)close(one);
	(void)close(other);
}
END_TEST

START_TEST(a_name_of_any_bytes_comes_back)
{
	int fd;

	make_world("odd", INFO("odd", "1", "/w\\\\xff\\\\x5cx41", "null"), &fd);
	ck_assert_int_eq(worlds_list(&list, &why), 0);
	ck_assert_uint_eq(list.count, 1);
	ck_assert_str_eq(list.items[0].workspace, "/w\xff\\x41");
	(void)close(fd);
}
END_TEST

START_TEST(who_holds_no_lock_is_dead_and_goes)
{
	make_world("dead", INFO("dead", "1", "/w", "null"), NULL);
	ck_assert_int_eq(worlds_list(&list, &why), 0);
	ck_assert_uint_eq(list.count, 0);
	ck_assert(!exists("dead"));
}
END_TEST

START_TEST(who_holds_the_lock_is_never_removed)
{
	int fd;

	make_world("alive", INFO("alive", "1", "/w", "null"), &fd);
	ck_assert_int_eq(worlds_reap("alive", &why), -EBUSY);
	ck_assert(exists("alive"));
	(void)close(fd);
}
END_TEST

START_TEST(who_is_being_born_is_left_alone)
{
	make_world("newborn", NULL, NULL);
	ck_assert_int_eq(worlds_reap("newborn", &why), -EBUSY);
	ck_assert(exists("newborn"));
}
END_TEST

static const char *const broken[] = { "", "{", "[]", "{\"id\":\"broken\"}",
				      "{\"id\":1,\"kind\":2}" };

START_TEST(a_broken_description_hides_one_world_only)
{
	int one, other;

	make_world("broken", broken[_i], &one);
	make_world("sound", INFO("sound", "1", "/w", "null"), &other);
	ck_assert_int_eq(worlds_list(&list, &why), 0);
	ck_assert_uint_eq(list.count, 1);
	ck_assert_str_eq(list.items[0].id, "sound");
	(void)close(one);
	(void)close(other);
}
END_TEST

START_TEST(a_world_is_found_by_id_workspace_and_mount_point)
{
	const struct world_info *world;
	int one, other;

	make_world("first", INFO("first", "1", "/usr", "null"), &one);
	make_world("second", INFO("second", "2", "/usr", "\"/var\""), &other);
	ck_assert_int_eq(worlds_list(&list, &why), 0);
	ck_assert_int_eq(worlds_find(&list, "second", NULL, &world, &why), 0);
	ck_assert_str_eq(world->id, "second");
	ck_assert_int_eq(worlds_find(&list, "/usr/../usr", NULL, &world, &why),
			 0);
	ck_assert_str_eq(world->id, "first");
	ck_assert_int_eq(worlds_find(&list, "/var", NULL, &world, &why), 0);
	ck_assert_str_eq(world->id, "second");
	ck_assert_int_eq(worlds_find(&list, "/usr", "mine", &world, &why),
			 -ENOENT);
	ck_assert_int_eq(worlds_find(&list, "none", NULL, &world, &why),
			 -ENOENT);
	(void)close(one);
	(void)close(other);
}
END_TEST

START_TEST(ids_are_fresh_names)
{
	char one[WORLD_ID_LEN + 1], other[WORLD_ID_LEN + 1];

	ck_assert_int_eq(worlds_new_id(one), 0);
	ck_assert_int_eq(worlds_new_id(other), 0);
	ck_assert_uint_eq(strspn(one, "abcdefghijklmnopqrstuvwxyz234567"),
			  WORLD_ID_LEN);
	ck_assert_str_ne(one, other);
}
END_TEST

START_TEST(the_empty_state_of_a_young_world_stays)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	char path[256];

	/* The runtime directory is the state's too, in this test. */
	make_world("aaaaaaaa", NULL, NULL);
	(void)snprintf(path, sizeof(path), "%s/worlds/aaaaaaaa", runtime);
	worlds_import_left();
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, old, 0), 0);
	worlds_import_left();
	ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

START_TEST(worlds_that_somebody_else_may_make_are_none)
{
	bool is_root = geteuid() == 0;
	int fd, r;

	make_world("aaaaaaaa", "{}", &fd);
	ck_assert_int_eq(chmod(base, 0755), 0);
	ck_assert_int_eq(chmod(runtime, is_root ? 0755 : 0777), 0);
	ck_assert(!is_root || seteuid(65534) == 0);
	r = worlds_list(&list, &why);
	ck_assert(!is_root || seteuid(0) == 0);
	ck_assert_int_eq(r, -EPERM);
	(void)close(fd);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("worlds");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, no_directory_is_no_world);
	tcase_add_test(tc, the_oldest_comes_first);
	tcase_add_test(tc, a_name_of_any_bytes_comes_back);
	tcase_add_test(tc, who_holds_no_lock_is_dead_and_goes);
	tcase_add_test(tc, who_holds_the_lock_is_never_removed);
	tcase_add_test(tc, who_is_being_born_is_left_alone);
	tcase_add_loop_test(tc, a_broken_description_hides_one_world_only, 0,
			    sizeof(broken) / sizeof(broken[0]));
	tcase_add_test(tc, a_world_is_found_by_id_workspace_and_mount_point);
	tcase_add_test(tc, ids_are_fresh_names);
	tcase_add_test(tc, the_empty_state_of_a_young_world_stays);
	tcase_add_test(tc, worlds_that_somebody_else_may_make_are_none);
	return suite_run("worlds", tc);
}
