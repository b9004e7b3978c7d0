/* SPDX-License-Identifier: MIT */

#include "fusefs/inodes.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/ops.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static struct fs fs;
static struct fs_inode *root;

static struct fs_ident
dir_ident(uint64_t ino)
{
	return (struct fs_ident){ .ino = ino, .type = S_IFDIR >> 12 };
}

static struct fs_ident
file_ident(uint64_t ino)
{
	return (struct fs_ident){ .ino = ino, .type = S_IFREG >> 12 };
}

/* As LOOKUP does: the kernel's count keeps the result. */
static struct fs_inode *
look_up(struct fs_inode *parent, const char *name, struct fs_ident ident)
{
	const struct fs_marks marks = { .policy_gen = 2 };
	const struct fs_seen seen = {
		.parent = parent, .name = name, .marks = &marks, .counted = true
	};
	struct fs_inode *inode = NULL;

	ck_assert_int_eq(fs_inode_upsert(&fs, &ident, &seen, &inode), 0);
	fs_inode_put(&fs, inode);
	return inode;
}

static size_t
n_inodes(void)
{
	size_t n = 0;

	for (size_t i = 0; i < FS_SHARDS; i++)
		n += fs.shards[i].count;
	return n;
}

static size_t
n_fds(void)
{
	size_t n = 0;

	for (size_t i = 0; i < FS_SHARDS; i++)
		n += fs.shards[i].n_fds;
	return n;
}

static void
setup(void)
{
	const struct fs_seen seen = { 0 };
	const struct fs_ident ident = dir_ident(1);

	memset(&fs, 0, sizeof(fs));
	pthread_mutex_init(&fs.dev_lock, NULL);
	ck_assert_int_eq(fs_inodes_init(&fs, 128), 0);
	ck_assert_int_eq(fs_inode_upsert(&fs, &ident, &seen, &root), 0);
	root->flags |= FS_INODE_ROOT;
	fs.roots[0] = root;
}

static void
teardown(void)
{
	fs_inodes_fini(&fs);
}

START_TEST(names_of_one_object_are_one_inode)
{
	struct fs_inode *a = look_up(root, "a", file_ident(10));
	struct fs_inode *parent;
	char name[NAME_MAX + 1];

	ck_assert_ptr_eq(look_up(root, "b", file_ident(10)), a);
	ck_assert_uint_eq(a->nlookup, 2);
	ck_assert_int_eq(fs_inode_place(&fs, a, &parent, name), 0);
	ck_assert_str_eq(name, "b");
	ck_assert_ptr_eq(fs_inode_put(&fs, parent), NULL);
	fs_inode_forget(&fs, a, 2);
	ck_assert_uint_eq(n_inodes(), 1);
}
END_TEST

START_TEST(what_the_kernel_forgets_is_gone_with_the_last_count)
{
	struct fs_inode *a = look_up(root, "a", file_ident(10));

	look_up(root, "a", file_ident(10));
	look_up(root, "a", file_ident(10));
	fs_inode_forget(&fs, a, 2);
	ck_assert_uint_eq(n_inodes(), 2);
	/* One more than there are does not wrap. */
	fs_inode_forget(&fs, a, 2);
	ck_assert_uint_eq(n_inodes(), 1);
}
END_TEST

/* Around the room that an inode has for its name, and that of malloc(). */
START_TEST(a_name_of_any_length_is_kept_through_moves)
{
	char text[2][NAME_MAX + 1], name[NAME_MAX + 1];
	struct fs_inode *parent;

	for (unsigned int len = 1; len <= NAME_MAX; len++) {
		struct fs_ident ident =
			len % 2 ? file_ident(100 + len) : dir_ident(100 + len);
		struct fs_inode *a;

		for (int i = 0; i < 2; i++) {
			memset(text[i], 'a' + i, len);
			text[i][len] = '\0';
		}
		a = look_up(root, text[0], ident);
		for (int i = 1; i < 5; i++) {
			ck_assert_int_eq(fs_inode_place(&fs, a, &parent, name),
					 0);
			fs_inode_put(&fs, parent);
			ck_assert_str_eq(name, text[(i - 1) % 2]);
			ck_assert_ptr_eq(look_up(root, text[i % 2], ident), a);
		}
		if (len % 3 == 0)
			fs_inode_forget(&fs, a, 5);
	}
}
END_TEST

START_TEST(what_can_be_counted_no_further_is_never_forgotten)
{
	struct fs_inode *a = look_up(root, "a", file_ident(10));

	a->nlookup = FS_LOOKUPS_MAX - 1;
	look_up(root, "a", file_ident(10));
	look_up(root, "a", file_ident(10));
	ck_assert_uint_eq(a->nlookup, FS_LOOKUPS_MAX);
	fs_inode_forget(&fs, a, UINT64_MAX);
	ck_assert_ptr_eq(look_up(root, "a", file_ident(10)), a);
	ck_assert_uint_eq(n_inodes(), 2);
}
END_TEST

/* Of the table: names are as long as they are. */
START_TEST(an_inode_costs_no_more_than_a_hundred_and_twenty_bytes)
{
	struct fs_stats stats;
	char name[16];

	for (unsigned int i = 0; i < 50000; i++) {
		(void)snprintf(name, sizeof(name), "f%u", i);
		look_up(root, name, file_ident(1000 + i));
		if (i < 1000 || i % 1000)
			continue;
		fs_stats(&fs, &stats);
		ck_assert_uint_le(stats.inode_bytes, stats.inodes * 120);
	}
}
END_TEST

START_TEST(a_parent_lives_as_long_as_its_children)
{
	struct fs_inode *d = look_up(root, "d", dir_ident(2));
	struct fs_inode *e = look_up(d, "e", dir_ident(3));
	struct fs_inode *f = look_up(e, "f", file_ident(4));

	fs_inode_forget(&fs, d, 1);
	fs_inode_forget(&fs, e, 1);
	ck_assert_uint_eq(n_inodes(), 4);
	fs_inode_forget(&fs, f, 1);
	ck_assert_uint_eq(n_inodes(), 1);
}
END_TEST

START_TEST(a_number_that_is_used_again_is_another_inode)
{
	struct fs_ident ident = file_ident(10);
	struct fs_inode *old = look_up(root, "a", ident), *fresh;

	ident.btime = 7;
	fresh = look_up(root, "a", ident);
	ck_assert_ptr_ne(fresh, old);
	ck_assert_ptr_eq(look_up(root, "a", ident), fresh);
	/* The older one is never found again, whatever asks. */
	ck_assert_ptr_eq(
		fs_inode_find(&fs, &(struct fs_ident){ .ino = 10,
						       .type = ident.type }),
		NULL);
	fs_inode_forget(&fs, old, 1);
	fs_inode_forget(&fs, fresh, 2);
	ck_assert_uint_eq(n_inodes(), 1);
}
END_TEST

START_TEST(a_root_found_below_itself_is_refused)
{
	const struct fs_seen seen = { .parent = root, .name = "loop" };
	const struct fs_ident ident = dir_ident(1);
	struct fs_inode *inode;

	ck_assert_int_eq(fs_inode_upsert(&fs, &ident, &seen, &inode), -ELOOP);
}
END_TEST

START_TEST(places_never_form_a_ring)
{
	struct fs_inode *a = look_up(root, "a", dir_ident(2));
	struct fs_inode *b = look_up(a, "b", dir_ident(3));
	struct fs_chain chain;

	/* The host moved b up and a into it, and only the latter was seen. */
	look_up(b, "a", dir_ident(2));
	ck_assert_int_eq(fs_chain_climb(&fs, a, NULL, 0, &chain), -ESTALE);
	look_up(root, "b", dir_ident(3));
	ck_assert_int_eq(fs_chain_climb(&fs, a, NULL, 0, &chain), 0);
	ck_assert_uint_eq(chain.count, 3);
	fs_chain_fini(&chain);

	/* Left as it is, nothing keeps itself. */
	look_up(a, "b", dir_ident(3));
	fs_inode_forget(&fs, a, 2);
	fs_inode_forget(&fs, b, 3);
	ck_assert_uint_eq(n_inodes(), 1);
}
END_TEST

START_TEST(marks_of_several_names_add_up_within_one_policy)
{
	struct fs_marks marks = { .policy_gen = 2,
				  .flags = FS_INODE_PROTECTED };
	struct fs_inode *a = look_up(root, "a", file_ident(10));

	fs_inode_set_marks(&fs, a, &marks);
	look_up(root, "b", file_ident(10));
	ck_assert(a->flags & FS_INODE_PROTECTED);
	marks = (struct fs_marks){ .policy_gen = 4 };
	fs_inode_set_marks(&fs, a, &marks);
	ck_assert(!(a->flags & FS_INODE_PROTECTED));
}
END_TEST

START_TEST(out_of_memory_is_told_and_leaves_nothing)
{
	const struct fs_ident ident = file_ident(10);
	const struct fs_seen seen = { .parent = root, .name = "a" };
	struct fs_inode *inode;
	unsigned int n = 1;

	for (;; n++) {
		int r;

		oom_arm(n);
		r = fs_inode_upsert(&fs, &ident, &seen, &inode);
		if (!oom_disarm())
			break;
		ck_assert_int_eq(r, -ENOMEM);
		ck_assert_uint_eq(n_inodes(), 1);
	}
	ck_assert_uint_ge(n, 2);
	fs_inode_put(&fs, inode);
}
END_TEST

/* Real directories: only so many stay open, and each can be reached again. */
START_TEST(idle_descriptors_are_bounded)
{
	char path[] = "/tmp/pale-inodes.XXXXXX", name[16];
	struct fs_inode *dirs[1000];
	int top;

	ck_assert_ptr_nonnull(mkdtemp(path));
	top = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(top, 0);
	fs_inode_pin(&fs, root, fcntl(top, F_DUPFD_CLOEXEC, 3));
	for (int i = 0; i < 1000; i++) {
		struct fs_ident ident;
		struct statx stx;

		(void)snprintf(name, sizeof(name), "d%d", i);
		ck_assert_int_eq(mkdirat(top, name, 0700), 0);
		ck_assert_int_eq(fs_statx_at(top, name, &stx), 0);
		ck_assert_int_eq(fs_ident_of(&fs, &stx, &ident), 0);
		dirs[i] = look_up(root, name, ident);
	}
	for (int i = 0; i < 3000; i++) {
		struct fs_hold hold;

		ck_assert_int_eq(fs_hold(&fs, dirs[i % 1000], &hold), 0);
		ck_assert_int_ge(hold.fd, 0);
		fs_hold_done(&hold);
		/* 128 and one for each shard, and the root. */
		ck_assert_uint_le(n_fds(), 128 + FS_SHARDS + 1);
	}
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "d%d", i);
		ck_assert_int_eq(unlinkat(top, name, AT_REMOVEDIR), 0);
	}
	/* Without its name, only what is open can still be reached. */
	for (int i = 0; i < 1000; i++) {
		struct fs_hold hold = FS_HOLD_NONE;
		int r = fs_hold(&fs, dirs[i], &hold);

		ck_assert(r == 0 || r == -ESTALE);
		fs_hold_done(&hold);
		fs_inode_forget(&fs, dirs[i], 1);
	}
	ck_assert_uint_eq(n_inodes(), 1);
	ck_assert_uint_eq(n_fds(), 1);
	(void)close(top);
	ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

/* ---- against the obvious model ---- */

#define OBJECTS 40

struct model {
	struct fs_inode *inode;
	unsigned int count;
};

START_TEST(any_order_of_lookups_and_forgets_counts_right)
{
	struct model model[OBJECTS] = { 0 };
	unsigned int seed = (unsigned int)_i + 1;

	for (int step = 0; step < 20000; step++) {
		unsigned int i = (unsigned int)rand_r(&seed) % OBJECTS;
		struct model *m = &model[i];
		char name[16];

		(void)snprintf(name, sizeof(name), "n%u",
			       (unsigned int)rand_r(&seed) % 8);
		if (rand_r(&seed) % 2 || m->count == 0) {
			struct fs_inode *inode =
				look_up(root, name, file_ident(100 + i));

			if (m->count > 0)
				ck_assert_ptr_eq(inode, m->inode);
			m->inode = inode;
			m->count++;
		} else {
			unsigned int n =
				1 + (unsigned int)rand_r(&seed) % m->count;

			fs_inode_forget(&fs, m->inode, n);
			m->count -= n;
		}
		if (m->count > 0)
			ck_assert_uint_eq(m->inode->nlookup, m->count);
	}
	for (unsigned int i = 0; i < OBJECTS; i++)
		if (model[i].count > 0)
			fs_inode_forget(&fs, model[i].inode, model[i].count);
	ck_assert_uint_eq(n_inodes(), 1);
	ck_assert_uint_eq(atomic_load(&root->refs), 1);
}
END_TEST

/* Two threads look up and forget the same few objects. */
static void *
churn(void *data)
{
	unsigned int seed = (unsigned int)(uintptr_t)data;

	for (int step = 0; step < 50000; step++) {
		uint64_t ino = 50 + (uint64_t)(rand_r(&seed) % 4);
		struct fs_inode *d = look_up(root, "d", dir_ident(ino));
		struct fs_inode *f = look_up(d, "f", file_ident(ino + 100));

		fs_inode_forget(&fs, d, 1);
		fs_inode_forget(&fs, f, 1);
	}
	return NULL;
}

START_TEST(lookup_and_forget_at_the_same_time_lose_nothing)
{
	pthread_t threads[4];

	for (uintptr_t i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, churn,
						(void *)(i + 1)),
				 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
	ck_assert_uint_eq(n_inodes(), 1);
	ck_assert_uint_eq(atomic_load(&root->refs), 1);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("inodes");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, names_of_one_object_are_one_inode);
	tcase_add_test(tc, what_the_kernel_forgets_is_gone_with_the_last_count);
	tcase_add_test(tc, a_name_of_any_length_is_kept_through_moves);
	tcase_add_test(tc, what_can_be_counted_no_further_is_never_forgotten);
	tcase_add_test(tc,
		       an_inode_costs_no_more_than_a_hundred_and_twenty_bytes);
	tcase_add_test(tc, a_parent_lives_as_long_as_its_children);
	tcase_add_test(tc, a_number_that_is_used_again_is_another_inode);
	tcase_add_test(tc, a_root_found_below_itself_is_refused);
	tcase_add_test(tc, places_never_form_a_ring);
	tcase_add_test(tc, marks_of_several_names_add_up_within_one_policy);
	tcase_add_test(tc, out_of_memory_is_told_and_leaves_nothing);
	tcase_add_test(tc, idle_descriptors_are_bounded);
	tcase_add_loop_test(tc, any_order_of_lookups_and_forgets_counts_right,
			    0, 5);
	tcase_add_test(tc, lookup_and_forget_at_the_same_time_lose_nothing);
	return suite_run("fusefs/inodes", tc);
}
