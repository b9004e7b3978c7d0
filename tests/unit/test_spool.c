/* SPDX-License-Identifier: MIT */

#include "policy/spool_priv.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/suite.h"

/* A small ring in memory, so that wrapping is frequent. */
#define SIZE (SPOOL_HEADER + 8192u)

static _Alignas(8) unsigned char bytes[SIZE];
static struct spool spool;
static char dir[64];

static void
setup(void)
{
	struct spool_header *header = (struct spool_header *)bytes;

	memset(bytes, 0, sizeof(bytes));
	header->magic = SPOOL_MAGIC;
	header->size = SIZE;
	header->key = 0x1234567890abcdefull;
	(void)snprintf(header->world, sizeof(header->world), "w");
	(void)snprintf(header->session, sizeof(header->session), "s");
	ck_assert_int_eq(spool_view(bytes, SIZE, &spool), 0);
	(void)snprintf(dir, sizeof(dir), "/tmp/pale-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void
teardown(void)
{
	static const char *const names[] = { "denials.spool",
					     "denials.spool.bad" };
	char path[128];

	for (int i = 0; i < 2; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		(void)unlink(path);
	}
	ck_assert_int_eq(rmdir(dir), 0);
}

static int
append(uint64_t seq, const char *path, const char *path2, uint64_t *ret_offset)
{
	const struct denial denial = {
		.seq = seq,
		.time_ns = 1,
		.last_ns = 1,
		.count = 1,
		.op = POLICY_OP_RENAME,
		.code = POLICY_CODE_PROTECTED,
		.rule = "*.pem",
		.path = path,
		.path2 = path2,
		.pid = 3,
		.error = EACCES,
	};

	return spool_append(&spool, &denial, ret_offset);
}

struct seen {
	uint64_t seqs[64];
	size_t n;
};

static int
note(const struct denial *denial, void *data)
{
	struct seen *seen = data;

	ck_assert_uint_lt(seen->n, 64);
	seen->seqs[seen->n++] = denial->seq;
	return 0;
}

START_TEST(a_record_is_read_back_field_by_field)
{
	struct denial back;
	uint64_t at;

	ck_assert_int_eq(append(9, "/a\xff", NULL, &at), 0);
	spool_read(&spool, at, &back);
	ck_assert_uint_eq(back.seq, 9);
	ck_assert_str_eq(back.path, "/a\xff");
	ck_assert_ptr_null(back.path2);
	ck_assert_ptr_null(back.exe);
	ck_assert_str_eq(back.rule, "*.pem");
	ck_assert_str_eq(back.session, "s");
	ck_assert_int_eq(back.op, POLICY_OP_RENAME);
	ck_assert_int_eq(back.error, EACCES);
	ck_assert_uint_eq(spool_hit(&spool, at, 77), 2);
	spool_read(&spool, at, &back);
	ck_assert_uint_eq(back.count, 2);
	ck_assert_int_eq(back.last_ns, 77);
}
END_TEST

START_TEST(what_cannot_fit_is_counted)
{
	static char longest[2 * SPOOL_TEXT_MAX];
	uint64_t at;

	memset(longest, 'x', sizeof(longest) - 1);
	ck_assert_int_eq(append(1, longest, NULL, &at), -ENOSPC);
	ck_assert_uint_eq(spool_lost(&spool), 1);
}
END_TEST

/* A queue of (seq, offset) is the model of the ring. */
START_TEST(appends_and_releases_in_any_order_match_a_queue)
{
	uint64_t offsets[64] = { 0 }, first = 1, next = 1;
	unsigned int seed = (unsigned int)_i + 1;
	char path[700];

	for (int step = 0; step < 20000; step++) {
		struct seen seen = { 0 };

		if (rand_r(&seed) % 3) {
			size_t len = (size_t)rand_r(&seed) % sizeof(path);
			int r;

			memset(path, 'p', len);
			path[len ? len - 1 : 0] = '\0';
			r = append(next, path, NULL, &offsets[next % 64]);
			ck_assert(r == 0 || r == -ENOSPC);
			if (r == 0)
				next++;
		} else if (first < next) {
			spool_release(&spool, offsets[first % 64]);
			first++;
		}
		ck_assert_int_eq(spool_each(&spool, note, &seen), 0);
		ck_assert_uint_eq(seen.n, next - first);
		for (size_t i = 0; i < seen.n; i++)
			ck_assert_uint_eq(seen.seqs[i], first + i);
	}
}
END_TEST

START_TEST(a_torn_record_is_dropped_and_its_neighbours_are_not)
{
	struct seen seen = { 0 };
	uint64_t at[3];

	for (uint64_t i = 0; i < 3; i++)
		ck_assert_int_eq(append(i + 1, "/some/path", NULL, &at[i]), 0);
	memset(spool.ring + at[1] + 40, 0xee, 8);
	ck_assert_int_eq(spool_each(&spool, note, &seen), 0);
	ck_assert_uint_eq(seen.n, 2);
	ck_assert_uint_eq(seen.seqs[0], 1);
	ck_assert_uint_eq(seen.seqs[1], 3);
}
END_TEST

START_TEST(a_header_older_than_its_records_loses_none)
{
	struct seen seen = { 0 };
	uint64_t at;

	for (uint64_t i = 1; i <= 3; i++)
		ck_assert_int_eq(append(i, "/some/path", NULL, &at), 0);
	spool.header->tail = spool.header->head + 8;
	ck_assert_int_eq(spool_each(&spool, note, &seen), 0);
	ck_assert_uint_eq(seen.n, 3);
}
END_TEST

START_TEST(a_record_made_without_the_key_is_none)
{
	struct seen seen = { 0 };
	uint64_t at;

	ck_assert_int_eq(append(1, "/some/path", NULL, &at), 0);
	spool.header->key++;
	ck_assert_int_eq(spool_each(&spool, note, &seen), 0);
	ck_assert_uint_eq(seen.n, 0);
}
END_TEST

START_TEST(a_living_file_is_locked_and_complete)
{
	struct spool *made = NULL, *orphan = NULL, *second = NULL;
	struct errmsg why;
	struct stat st;
	char path[128];

	ck_assert_int_eq(spool_create(dir, "s", "w", &made, &why), 0);
	(void)snprintf(path, sizeof(path), "%s/denials.spool", dir);
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	/* Allocated: a full disk cannot matter later. */
	ck_assert_int_ge(st.st_blocks * 512, st.st_size);
	ck_assert_int_eq(spool_open_orphan(dir, &orphan, &why), -EBUSY);
	ck_assert_int_eq(spool_create(dir, "s", "w", &second, &why), -EBUSY);
	spool_free(made);
	ck_assert_int_eq(spool_create(dir, "s", "w", &second, &why), -EEXIST);
	ck_assert_int_eq(spool_open_orphan(dir, &orphan, &why), 0);
	ck_assert_str_eq(spool_world(orphan), "w");
	spool_unlink(orphan);
	spool_free(orphan);
	ck_assert_int_lt(access(path, F_OK), 0);
}
END_TEST

START_TEST(what_is_no_spool_is_told_and_put_aside)
{
	struct spool *orphan = NULL;
	struct errmsg why;
	char path[128];
	FILE *file;

	(void)snprintf(path, sizeof(path), "%s/denials.spool", dir);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	for (int i = 0; i < 10000; i++)
		(void)fputc('x', file);
	(void)fclose(file);
	ck_assert_int_eq(spool_open_orphan(dir, &orphan, &why), -EBADMSG);
	spool_put_aside(dir);
	ck_assert_int_eq(spool_open_orphan(dir, &orphan, &why), -ENOENT);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("spool");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_record_is_read_back_field_by_field);
	tcase_add_test(tc, what_cannot_fit_is_counted);
	tcase_add_loop_test(tc, appends_and_releases_in_any_order_match_a_queue,
			    0, 5);
	tcase_add_test(tc, a_torn_record_is_dropped_and_its_neighbours_are_not);
	tcase_add_test(tc, a_header_older_than_its_records_loses_none);
	tcase_add_test(tc, a_record_made_without_the_key_is_none);
	tcase_add_test(tc, a_living_file_is_locked_and_complete);
	tcase_add_test(tc, what_is_no_spool_is_told_and_put_aside);
	return suite_run("spool", tc);
}
