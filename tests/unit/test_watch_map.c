/* SPDX-License-Identifier: MIT */

#include "fusefs/watch_map.h"

#include <check.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

enum {
	N = 2000
};

static struct watch_map map;
static struct fs_inode inodes[N];
static uint64_t keys[N]; /* 0: not in the map */

static void
setup(void)
{
	memset(keys, 0, sizeof(keys));
}

static void
teardown(void)
{
	watch_map_fini(&map);
}

/* Few lower halves, so that many keys want one slot. */
static uint64_t
random_key(void)
{
	return ((uint64_t)(rand() % 3) << 32 | (unsigned int)(rand() % 700)) +
	       1;
}

START_TEST(finds_what_a_list_of_keys_finds)
{
	srand((unsigned int)_i);
	for (int step = 0; step < 20000; step++) {
		int i = rand() % N;
		struct fs_inode *found[N];
		uint64_t key, was = 0;
		size_t n, want = 0;

		if (keys[i]) {
			ck_assert(watch_map_remove(&map, (uint32_t)keys[i],
						   &inodes[i], &was));
			ck_assert_uint_eq(was, keys[i]);
			keys[i] = 0;
		} else {
			keys[i] = random_key();
			ck_assert_int_eq(
				watch_map_add(&map, keys[i], &inodes[i]), 0);
		}
		key = random_key();
		n = watch_map_find(&map, key, found, N);
		for (int k = 0; k < N; k++)
			want += keys[k] == key;
		ck_assert_uint_eq(n, want);
		for (size_t k = 0; k < n; k++)
			ck_assert_uint_eq(keys[found[k] - inodes], key);
	}
}
END_TEST

START_TEST(shrinks_when_it_empties)
{
	uint64_t key;
	size_t full;

	for (int i = 0; i < N; i++)
		ck_assert_int_eq(
			watch_map_add(&map, (uint64_t)i * 2, &inodes[i]), 0);
	full = map.n_slots;
	ck_assert_uint_le(full * 16, (size_t)N * 48);
	for (int i = 0; i < N; i++)
		ck_assert(watch_map_remove(&map, (uint32_t)i * 2, &inodes[i],
					   &key));
	ck_assert_uint_eq(map.count, 0);
	ck_assert_uint_lt(map.n_slots, full / 8);
}
END_TEST

START_TEST(what_is_not_there_is_not_removed)
{
	uint64_t key;

	ck_assert(!watch_map_remove(&map, 7, &inodes[0], &key));
	ck_assert_int_eq(watch_map_add(&map, 7, &inodes[0]), 0);
	ck_assert(!watch_map_remove(&map, 7, &inodes[1], &key));
	ck_assert_uint_eq(map.count, 1);
}
END_TEST

START_TEST(without_memory_nothing_is_added)
{
	struct fs_inode *found[1];

	oom_arm(1);
	ck_assert_int_eq(watch_map_add(&map, 7, &inodes[0]), -ENOMEM);
	oom_disarm();
	ck_assert_uint_eq(watch_map_find(&map, 7, found, 1), 0);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("watch_map");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, finds_what_a_list_of_keys_finds, 0, 4);
	tcase_add_test(tc, shrinks_when_it_empties);
	tcase_add_test(tc, what_is_not_there_is_not_removed);
	tcase_add_test(tc, without_memory_nothing_is_added);
	return suite_run("fusefs/watch_map", tc);
}
