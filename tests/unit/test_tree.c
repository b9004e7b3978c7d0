/* SPDX-License-Identifier: MIT */

#include <check.h>
#include <poll.h>
#include <stdio.h>

#include "tests/unit/small_tree.h"
#include "tests/unit/suite.h"

static struct small_tree small;

static void
setup(void)
{
	small_start(&small);
}

static void
teardown(void)
{
	small_end(&small);
}

/* ---- requests ---- */

static int
lookup(uint64_t dir, const char *name, uint64_t *ret_node)
{
	struct fuse_entry_out entry;
	int r = small_ask(&small, FUSE_LOOKUP, dir, name, strlen(name) + 1,
			  NULL, 0);

	if (r == 0) {
		memcpy(&entry, small.body, sizeof(entry));
		*ret_node = entry.nodeid;
	}
	return r;
}

static uint64_t
size_of(uint64_t node)
{
	struct fuse_getattr_in in = { 0 };
	struct fuse_attr_out out;

	ck_assert_int_eq(
		small_ask(&small, FUSE_GETATTR, node, &in, sizeof(in), NULL, 0),
		0);
	memcpy(&out, small.body, sizeof(out));
	return out.attr.size;
}

static uint64_t
open_file(uint64_t node, int flags)
{
	struct fuse_open_in in = { .flags = (uint32_t)flags };
	struct fuse_open_out out;

	ck_assert_int_eq(
		small_ask(&small, FUSE_OPEN, node, &in, sizeof(in), NULL, 0),
		0);
	memcpy(&out, small.body, sizeof(out));
	return out.fh;
}

static void
close_file(uint64_t node, uint64_t fh)
{
	struct fuse_release_in in = { .fh = fh };

	ck_assert_int_eq(
		small_ask(&small, FUSE_RELEASE, node, &in, sizeof(in), NULL, 0),
		0);
}

static int
read_file(uint64_t node, uint64_t fh, uint64_t offset, uint32_t size, int flags)
{
	struct fuse_read_in in = { .fh = fh,
				   .offset = offset,
				   .size = size,
				   .flags = (uint32_t)flags };

	return small_ask(&small, FUSE_READ, node, &in, sizeof(in), NULL, 0);
}

static int
write_file(uint64_t node, uint64_t fh, const char *text)
{
	struct fuse_write_in in = { .fh = fh, .size = (uint32_t)strlen(text) };

	return small_ask(&small, FUSE_WRITE, node, &in, sizeof(in), text,
			 strlen(text));
}

static void
assert_body(const char *want)
{
	ck_assert_uint_eq(small.body_len, strlen(want));
	ck_assert_mem_eq(small.body, want, strlen(want));
}

static void
interrupt(uint64_t unique)
{
	struct fuse_interrupt_in in = { .unique = unique };

	(void)small_ask(&small, FUSE_INTERRUPT, 0, &in, sizeof(in), NULL, 0);
}

static void
grow(const char *text)
{
	memcpy(small.out + small.out_len, text, strlen(text));
	small.out_len += strlen(text);
	small.n_answers = 0;
	tree_changed(small.tree,
		     (struct tree_node){ .row = SMALL_ITEM, .item = 1 });
}

/* ---- names ---- */

START_TEST(names_lead_to_rows_and_items)
{
	static const char *const none[] = {
		"j",   "j0", "j01", "j3",  "j1x", "j-1",   "k1", "J1",
		"j+1", "1",  "",    "j 1", "jj1", "text2", "j1/"
	};
	uint64_t root, jobs, job, node;

	ck_assert_int_eq(lookup(FUSE_ROOT_ID, ".pale", &root), 0);
	ck_assert_int_eq(lookup(root, "text", &node), 0);
	ck_assert_uint_eq(node, small_node(SMALL_TEXT, 0));
	ck_assert_int_eq(lookup(root, "jobs", &jobs), 0);
	ck_assert_int_eq(lookup(jobs, "j2", &job), 0);
	ck_assert_uint_eq(job, small_node(SMALL_ITEM, 2));
	ck_assert_int_eq(lookup(job, "out", &node), 0);
	ck_assert_uint_eq(node, small_node(SMALL_OUT, 2));
	ck_assert_int_eq(lookup(root, "out", &node), -ENOENT);
	ck_assert_int_eq(lookup(job, "text", &node), -ENOENT);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (none[i][0])
			ck_assert_int_eq(lookup(jobs, none[i], &node), -ENOENT);
	ck_assert_int_eq(lookup(jobs, "j99999999999999999999999", &node),
			 -ENOENT);
}
END_TEST

START_TEST(a_list_is_what_exists_now)
{
	uint64_t jobs = small_node(SMALL_ITEMS, 0);
	struct fuse_open_in in = { 0 };
	struct fuse_open_out out;
	struct fuse_read_in read = { .size = 4096 };
	size_t n = 0;

	small.n_items = 10000;
	ck_assert_int_eq(
		small_ask(&small, FUSE_OPENDIR, jobs, &in, sizeof(in), NULL, 0),
		0);
	memcpy(&out, small.body, sizeof(out));
	read.fh = out.fh;
	for (;;) {
		size_t at = 0;

		ck_assert_int_eq(small_ask(&small, FUSE_READDIR, jobs, &read,
					   sizeof(read), NULL, 0),
				 0);
		if (small.body_len == 0)
			break;
		while (at < small.body_len) {
			struct fuse_dirent entry;
			char name[32] = "", want[32];

			memcpy(&entry, small.body + at, sizeof(entry));
			memcpy(name,
			       small.body + at +
				       offsetof(struct fuse_dirent, name),
			       entry.namelen);
			(void)snprintf(want, sizeof(want), "j%zu", n - 1);
			ck_assert_str_eq(name, n == 0	? "."
					       : n == 1 ? ".."
							: want);
			n++;
			read.offset = entry.off;
			at += FUSE_DIRENT_ALIGN(
				offsetof(struct fuse_dirent, name) +
				entry.namelen);
		}
	}
	ck_assert_uint_eq(n, 10002);
}
END_TEST

START_TEST(only_an_item_that_ended_is_removed)
{
	uint64_t root = small_node(0, 0), jobs = small_node(SMALL_ITEMS, 0);

#define RMDIR(dir, name) \
	small_ask(&small, FUSE_RMDIR, dir, name, strlen(name) + 1, NULL, 0)
	ck_assert_int_eq(RMDIR(root, "jobs"), -EPERM);
	ck_assert_int_eq(RMDIR(FUSE_ROOT_ID, ".pale"), -EPERM);
	ck_assert_int_eq(RMDIR(jobs, "j1"), -EBUSY);
	ck_assert_int_eq(RMDIR(jobs, "j7"), -ENOENT);
	small.ended = true;
	ck_assert_int_eq(RMDIR(jobs, "j1"), 0);
	ck_assert_int_eq(RMDIR(jobs, "j1"), -ENOENT);
#undef RMDIR
}
END_TEST

START_TEST(what_is_not_offered_is_not_permitted)
{
	uint64_t root = small_node(0, 0), talk = small_node(SMALL_TALK, 0);
	struct fuse_mkdir_in mkdir_in = { .mode = 0755 };
	struct fuse_mknod_in mknod_in = { .mode = S_IFREG | 0644 };
	struct fuse_create_in create_in = { .flags = O_WRONLY };
	struct fuse_rename_in rename_in = { .newdir = root };
	struct fuse_link_in link_in = { .oldnodeid = talk };
	struct fuse_setattr_in setattr_in = { .valid = FATTR_MODE };
	struct fuse_setxattr_in setxattr_in = { .size = 1 };

#define REFUSED(opcode, node, in, text)                                     \
	ck_assert_int_eq(small_ask(&small, opcode, node, in, sizeof(*(in)), \
				   text, sizeof(text)),                     \
			 -EPERM)
	REFUSED(FUSE_MKDIR, root, &mkdir_in, "x");
	REFUSED(FUSE_MKNOD, root, &mknod_in, "x");
	REFUSED(FUSE_CREATE, root, &create_in, "x");
	REFUSED(FUSE_RENAME, root, &rename_in, "text\0x");
	REFUSED(FUSE_RENAME, FUSE_ROOT_ID, &rename_in, "f\0x");
	REFUSED(FUSE_RENAME, FUSE_ROOT_ID, &rename_in, ".pale\0x");
	REFUSED(FUSE_LINK, root, &link_in, "x");
	REFUSED(FUSE_LINK, FUSE_ROOT_ID, &link_in, "x");
	REFUSED(FUSE_SETATTR, talk, &setattr_in, "");
	REFUSED(FUSE_SETXATTR, talk, &setxattr_in, "user.x\0y");
#undef REFUSED
	ck_assert_int_eq(
		small_ask(&small, FUSE_UNLINK, root, "text", 5, NULL, 0),
		-EPERM);
	ck_assert_int_eq(
		small_ask(&small, FUSE_SYMLINK, root, "x\0y", 4, NULL, 0),
		-EPERM);
	/* A row that there is not. */
	ck_assert_int_eq(small_ask(&small, FUSE_UNLINK, small_node(200, 0), "x",
				   2, NULL, 0),
			 -EPERM);
	ck_assert_int_eq(lookup(small_node(200, 0), "x", &root), -ESTALE);
}
END_TEST

/* ---- texts ---- */

START_TEST(a_text_is_as_it_was_when_it_was_opened)
{
	uint64_t node = small_node(SMALL_TEXT, 0);
	uint64_t one = open_file(node, O_RDONLY), two;

	ck_assert_int_eq(read_file(node, one, 0, 3, 0), 0);
	assert_body("fir");
	small.text = "a second one";
	ck_assert_uint_eq(size_of(node), 5);
	two = open_file(node, O_RDONLY);
	ck_assert_uint_eq(size_of(node), 12);
	ck_assert_int_eq(read_file(node, one, 3, 100, 0), 0);
	assert_body("st");
	ck_assert_int_eq(read_file(node, two, 2, 100, 0), 0);
	assert_body("second one");
	ck_assert_int_eq(read_file(node, two, 100, 100, 0), 0);
	assert_body("");
	close_file(node, one);
	close_file(node, two);
	small.text = "third";
	ck_assert_uint_eq(size_of(node), 5);
}
END_TEST

START_TEST(what_is_written_is_answered_to_who_reads_on)
{
	uint64_t node = small_node(SMALL_TALK, 0);
	uint64_t fh = open_file(node, O_RDWR);

	ck_assert_int_eq(write_file(node, fh, "hello"), 0);
	/* The position is that of the write: it means nothing. */
	ck_assert_int_eq(read_file(node, fh, 5, 8, O_RDWR), 0);
	assert_body("heard he");
	ck_assert_int_eq(read_file(node, fh, 13, 100, O_RDWR), 0);
	assert_body("llo");
	ck_assert_int_eq(read_file(node, fh, 16, 100, O_RDWR), 0);
	assert_body("");
	ck_assert_int_eq(write_file(node, fh, "no"), -EINVAL);
	ck_assert_int_eq(read_file(node, fh, 0, 100, O_RDWR), 0);
	assert_body("first");
	close_file(node, fh);
}
END_TEST

START_TEST(a_write_that_takes_time_is_done_once)
{
	uint64_t node = small_node(SMALL_TALK, 0);
	uint64_t fh = open_file(node, O_RDWR);

	small.pending = true;
	ck_assert_int_eq(write_file(node, fh, "later"), 1);
	small.pending = false;
	tree_changed(small.tree, (struct tree_node){ .row = SMALL_TALK });
	ck_assert_int_eq(small.head.error, 0);
	ck_assert_uint_ne(small.head.unique, 0);
	close_file(node, fh);
	ck_assert_uint_eq(small.closed, 1);
}
END_TEST

START_TEST(input_is_taken_as_far_as_there_is_room)
{
	uint64_t node = small_node(SMALL_IN, 1);
	uint64_t fh = open_file(node, O_WRONLY);
	struct fuse_write_out out;

	small.room = 3;
	ck_assert_int_eq(write_file(node, fh, "hello"), 0);
	memcpy(&out, small.body, sizeof(out));
	ck_assert_uint_eq(out.size, 3);
	/* Not even who could wait does. */
	ck_assert_int_eq(write_file(node, fh, "lo"), -EAGAIN);
	close_file(node, fh);
}
END_TEST

START_TEST(open_files_are_no_more_than_a_number)
{
	uint64_t node = small_node(SMALL_OUT, 1), first = 0;
	struct fuse_open_in in = { .flags = O_RDONLY };

	for (int i = 0; i < LIMIT_TREE_OPENS; i++) {
		uint64_t fh = open_file(node, O_RDONLY);

		if (i == 0)
			first = fh;
	}
	ck_assert_int_eq(
		small_ask(&small, FUSE_OPEN, node, &in, sizeof(in), NULL, 0),
		-ENFILE);
	close_file(node, first);
	(void)open_file(node, O_RDONLY);
}
END_TEST

START_TEST(texts_are_no_more_than_a_number)
{
	static char large[1 << 20];
	uint64_t node = small_node(SMALL_TEXT, 0), first;
	struct fuse_open_in in = { .flags = O_RDONLY };

	memset(large, 'x', sizeof(large) - 1);
	small.text = large;
	first = open_file(node, O_RDONLY);
	for (unsigned int i = 1; i < LIMIT_TREE_TEXT / sizeof(large); i++)
		(void)open_file(node, O_RDONLY);
	ck_assert_int_eq(
		small_ask(&small, FUSE_OPEN, node, &in, sizeof(in), NULL, 0),
		-ENFILE);
	close_file(node, first);
	(void)open_file(node, O_RDONLY);
}
END_TEST

START_TEST(who_may_not_does_not)
{
	struct fuse_open_in in = { .flags = O_WRONLY };

	ck_assert_int_eq(small_ask(&small, FUSE_OPEN, small_node(SMALL_TEXT, 0),
				   &in, sizeof(in), NULL, 0),
			 -EACCES);
	in.flags = O_RDONLY;
	ck_assert_int_eq(small_ask(&small, FUSE_OPEN, small_node(SMALL_IN, 1),
				   &in, sizeof(in), NULL, 0),
			 -EACCES);
	ck_assert_int_eq(small_ask(&small, FUSE_OPEN, small_node(SMALL_OUT, 9),
				   &in, sizeof(in), NULL, 0),
			 -ESTALE);
}
END_TEST

/* ---- streams ---- */

START_TEST(a_stream_ends_where_its_size_said)
{
	uint64_t node = small_node(SMALL_OUT, 1);
	uint64_t fh;

	grow("one ");
	fh = open_file(node, O_RDONLY);
	grow("two ");
	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), 0);
	assert_body("one ");
	ck_assert_int_eq(read_file(node, fh, 4, 100, 0), 0);
	assert_body("");
	/* Who goes on after the end goes on. */
	ck_assert_int_eq(read_file(node, fh, 4, 100, 0), 0);
	assert_body("two ");
	/* And so does who asks how long it is, as tail does. */
	grow("three ");
	ck_assert_uint_eq(size_of(node), 14);
	ck_assert_int_eq(read_file(node, fh, 8, 100, 0), 0);
	assert_body("three ");
	close_file(node, fh);
}
END_TEST

START_TEST(a_hole_reads_as_zeros_and_is_sought_over)
{
	uint64_t node = small_node(SMALL_OUT, 1), fh;
	struct fuse_lseek_in in = { .whence = SEEK_HOLE };
	struct fuse_lseek_out out;
	char want[12] = "abc";

	grow("abcdefghijkl");
	small.hole_from = 3;
	small.hole_to = 9;
	fh = open_file(node, O_RDONLY);
	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), 0);
	memcpy(want + 9, "jkl", 3);
	ck_assert_uint_eq(small.body_len, 12);
	ck_assert_mem_eq(small.body, want, 12);

	static const struct {
		uint64_t offset;
		uint32_t whence;
		uint64_t want;
	} rows[] = { { 0, SEEK_DATA, 0 },  { 0, SEEK_HOLE, 3 },
		     { 3, SEEK_DATA, 9 },  { 5, SEEK_HOLE, 5 },
		     { 8, SEEK_DATA, 9 },  { 9, SEEK_DATA, 9 },
		     { 9, SEEK_HOLE, 12 }, { 11, SEEK_HOLE, 12 } };
	in.fh = fh;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		in.offset = rows[i].offset;
		in.whence = rows[i].whence;
		ck_assert_int_eq(small_ask(&small, FUSE_LSEEK, node, &in,
					   sizeof(in), NULL, 0),
				 0);
		memcpy(&out, small.body, sizeof(out));
		ck_assert_uint_eq(out.offset, rows[i].want);
	}
	in.offset = 12;
	ck_assert_int_eq(
		small_ask(&small, FUSE_LSEEK, node, &in, sizeof(in), NULL, 0),
		-ENXIO);
	close_file(node, fh);
}
END_TEST

/* ---- waiting ---- */

START_TEST(who_follows_waits_for_more_and_for_the_end)
{
	uint64_t node = small_node(SMALL_FOLLOW, 1);
	uint64_t fh = open_file(node, O_RDONLY);

	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), 1);
	/* Nobody else is kept. */
	ck_assert_uint_eq(size_of(small_node(SMALL_TEXT, 0)), 5);
	grow("more");
	ck_assert_uint_eq(small.n_answers, 1);
	assert_body("more");
	ck_assert_int_eq(read_file(node, fh, 4, 100, O_NONBLOCK), -EAGAIN);
	ck_assert_int_eq(read_file(node, fh, 4, 100, 0), 1);
	small.ended = true;
	grow("");
	ck_assert_uint_eq(small.n_answers, 1);
	assert_body("");
	close_file(node, fh);
}
END_TEST

START_TEST(others_are_not_woken)
{
	uint64_t node = small_node(SMALL_FOLLOW, 2);
	uint64_t fh = open_file(node, O_RDONLY);

	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), 1);
	grow("of item 1");
	ck_assert_uint_eq(small.n_answers, 0);
	small.out_len = 0;
	tree_changed(small.tree,
		     (struct tree_node){ .row = SMALL_ITEM, .item = 2 });
	ck_assert_uint_eq(small.n_answers, 0);
	tree_leave(small.tree, &small.fs);
	ck_assert_uint_eq(small.n_answers, 1);
	ck_assert_int_eq(small.head.error, -ENODEV);
}
END_TEST

START_TEST(an_interrupt_ends_that_wait)
{
	uint64_t node = small_node(SMALL_WAIT, 1);
	uint64_t fh = open_file(node, O_RDONLY), one, two;

	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), 1);
	one = small.unique;
	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), 1);
	two = small.unique;
	small.n_answers = 0;
	interrupt(one);
	ck_assert_uint_eq(small.n_answers, 1);
	ck_assert_uint_eq(small.head.unique, one);
	ck_assert_int_eq(small.head.error, -EINTR);
	small.ended = true;
	grow("");
	ck_assert_uint_eq(small.head.unique, two);
	assert_body("over");
	/* Too late. */
	interrupt(two);
	close_file(node, fh);
}
END_TEST

START_TEST(closing_ends_what_waits_on_it)
{
	uint64_t node = small_node(SMALL_WAIT, 1);
	uint64_t fh = open_file(node, O_RDONLY);
	uint64_t other = open_file(node, O_RDONLY), last;

	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), 1);
	ck_assert_int_eq(read_file(node, other, 0, 100, 0), 1);
	last = small.unique;
	small.n_answers = 0;
	close_file(node, fh);
	ck_assert_uint_eq(small.n_answers, 2);
	small.ended = true;
	grow("");
	ck_assert_uint_eq(small.n_answers, 1);
	ck_assert_uint_eq(small.head.unique, last);
	assert_body("over");
	close_file(node, other);
}
END_TEST

static uint32_t
poll_file(uint64_t node, uint64_t fh, bool notify)
{
	struct fuse_poll_in in = { .fh = fh,
				   .kh = 7,
				   .flags = notify ? FUSE_POLL_SCHEDULE_NOTIFY
						   : 0 };
	struct fuse_poll_out out;

	ck_assert_int_eq(
		small_ask(&small, FUSE_POLL, node, &in, sizeof(in), NULL, 0),
		0);
	memcpy(&out, small.body, sizeof(out));
	return out.revents;
}

START_TEST(poll_goes_by_what_was_read)
{
	uint64_t node = small_node(SMALL_FOLLOW, 1);
	uint64_t wait = small_node(SMALL_WAIT, 1);
	uint64_t fh = open_file(node, O_RDONLY), wfh;

	ck_assert_uint_eq(poll_file(node, fh, true) & POLLIN, 0);
	/* A second one takes the place of the first. */
	ck_assert_uint_eq(poll_file(node, fh, true) & POLLIN, 0);
	grow("more");
	ck_assert_uint_eq(small.n_polls, 1);
	ck_assert_uint_ne(poll_file(node, fh, false) & POLLIN, 0);
	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), 0);
	/* All is read: who polled by length would spin. */
	ck_assert_uint_eq(poll_file(node, fh, false) & POLLIN, 0);
	grow("");
	ck_assert_uint_eq(small.n_polls, 1);

	wfh = open_file(wait, O_RDONLY);
	ck_assert_uint_eq(poll_file(wait, wfh, true), 0);
	small.ended = true;
	grow("");
	ck_assert_uint_eq(small.n_polls, 2);
	ck_assert_uint_ne(poll_file(wait, wfh, false) & POLLIN, 0);
	ck_assert_uint_ne(poll_file(node, fh, false) & POLLHUP, 0);
	close_file(node, fh);
	close_file(wait, wfh);
}
END_TEST

START_TEST(after_the_end_all_is_answered)
{
	uint64_t node = small_node(SMALL_WAIT, 1);
	uint64_t fh = open_file(node, O_RDONLY);

	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), 1);
	small.n_answers = 0;
	tree_close(small.tree);
	ck_assert_uint_eq(small.n_answers, 1);
	ck_assert_int_eq(small.head.error, -ENODEV);
	ck_assert_int_eq(read_file(node, fh, 0, 100, 0), -ENODEV);
	close_file(node, fh);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("tree");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, names_lead_to_rows_and_items);
	tcase_add_test(tc, a_list_is_what_exists_now);
	tcase_add_test(tc, only_an_item_that_ended_is_removed);
	tcase_add_test(tc, what_is_not_offered_is_not_permitted);
	tcase_add_test(tc, a_text_is_as_it_was_when_it_was_opened);
	tcase_add_test(tc, what_is_written_is_answered_to_who_reads_on);
	tcase_add_test(tc, a_write_that_takes_time_is_done_once);
	tcase_add_test(tc, input_is_taken_as_far_as_there_is_room);
	tcase_add_test(tc, open_files_are_no_more_than_a_number);
	tcase_add_test(tc, texts_are_no_more_than_a_number);
	tcase_add_test(tc, who_may_not_does_not);
	tcase_add_test(tc, a_stream_ends_where_its_size_said);
	tcase_add_test(tc, a_hole_reads_as_zeros_and_is_sought_over);
	tcase_add_test(tc, who_follows_waits_for_more_and_for_the_end);
	tcase_add_test(tc, others_are_not_woken);
	tcase_add_test(tc, an_interrupt_ends_that_wait);
	tcase_add_test(tc, closing_ends_what_waits_on_it);
	tcase_add_test(tc, poll_goes_by_what_was_read);
	tcase_add_test(tc, after_the_end_all_is_answered);
	return suite_run("tree", tc);
}
