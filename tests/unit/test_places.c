/* SPDX-License-Identifier: MIT */

#include "fusefs/places.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/inodes.h"
#include "tests/unit/suite.h"

#define DIRS  4
#define NAMES 40

static struct fs fs;
static struct fs_inode dirs[DIRS];

static void
setup(void)
{
	memset(&fs, 0, sizeof(fs));
	ck_assert_int_eq(fs_places_init(&fs), 0);
}

static void
teardown(void)
{
	fs_places_fini(&fs);
}

static struct fs_inode *
new_inode(void)
{
	struct fs_inode *inode = calloc(1, sizeof(*inode));

	ck_assert_ptr_nonnull(inode);
	atomic_init(&inode->refs, 1);
	return inode;
}

static void
move(struct fs_inode *inode, unsigned int dir, unsigned int name)
{
	char text[16];

	fs_places_remove(&fs, inode);
	free(inode->name);
	(void)snprintf(text, sizeof(text), "n%u", name);
	inode->parent = &dirs[dir];
	inode->name = strdup(text);
	ck_assert_ptr_nonnull(inode->name);
	fs_places_add(&fs, inode);
}

START_TEST(finds_what_a_list_of_places_finds)
{
	enum {
		N = 500
	};
	static struct fs_inode *inodes[N];
	static unsigned int at[N][2];

	srand((unsigned int)_i);
	for (int i = 0; i < N; i++)
		inodes[i] = new_inode();
	for (int step = 0; step < 5000; step++) {
		int i = rand() % N;
		unsigned int dir = (unsigned int)rand() % DIRS;
		unsigned int name = (unsigned int)rand() % NAMES;
		struct fs_inode *found[N];
		size_t n, want = 0;
		char text[16];

		move(inodes[i], dir, name);
		at[i][0] = dir;
		at[i][1] = name;
		dir = (unsigned int)rand() % DIRS;
		name = (unsigned int)rand() % NAMES;
		(void)snprintf(text, sizeof(text), "n%u", name);
		n = fs_places_find(&fs, &dirs[dir], text, found, N);
		for (int k = 0; k < N; k++)
			want += inodes[k]->parent && at[k][0] == dir &&
				at[k][1] == name;
		ck_assert_uint_eq(n, want);
		for (size_t k = 0; k < n; k++) {
			ck_assert_str_eq(found[k]->name, text);
			atomic_fetch_sub(&found[k]->refs, 1);
		}
	}
	for (int i = 0; i < N; i++) {
		fs_places_remove(&fs, inodes[i]);
		ck_assert_uint_eq(atomic_load(&inodes[i]->refs), 1);
		free(inodes[i]->name);
		free(inodes[i]);
	}
}
END_TEST

START_TEST(passes_over_what_is_being_freed)
{
	struct fs_inode *inode = new_inode(), *found[2];

	move(inode, 0, 1);
	atomic_store(&inode->refs, 0);
	ck_assert_uint_eq(fs_places_find(&fs, &dirs[0], "n1", found, 2), 0);
	atomic_store(&inode->refs, 1);
	ck_assert_uint_eq(fs_places_find(&fs, &dirs[0], "n1", found, 2), 1);
	ck_assert_ptr_eq(found[0], inode);
	fs_places_remove(&fs, inode);
	free(inode->name);
	free(inode);
}
END_TEST

START_TEST(an_inode_without_a_place_is_nowhere)
{
	struct fs_inode *inode = new_inode(), *found[1];

	fs_places_add(&fs, inode);
	fs_places_remove(&fs, inode);
	ck_assert_uint_eq(fs_places_find(&fs, NULL, "", found, 1), 0);
	free(inode);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("places");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, finds_what_a_list_of_places_finds, 0, 4);
	tcase_add_test(tc, passes_over_what_is_being_freed);
	tcase_add_test(tc, an_inode_without_a_place_is_nowhere);
	return suite_run("fusefs/places", tc);
}
