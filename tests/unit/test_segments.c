/* SPDX-License-Identifier: MIT */

#include "base/segments.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "tests/unit/suite.h"

#define MIB ((size_t)1 << 20)

static const struct segments_limits all = { 0 };
static const struct segments_limits small = { .head = MIB, .tail = 3 * MIB };

static char dir[64];
static int dir_fd;
static struct segments *stream;
static unsigned char chunk[4 * MIB];

/* The byte at every offset is known from the offset. */
static unsigned char
byte_at(uint64_t offset)
{
	return (unsigned char)(offset * 2654435761u >> 13);
}

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/pale-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir_fd, 0);
	(void)signal(SIGXFSZ, SIG_IGN);
}

static void
teardown(void)
{
	char command[128];

	stream = segments_free(stream);
	(void)close(dir_fd);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

static void
begin(const struct segments_limits *limits)
{
	stream = segments_free(stream);
	ck_assert_int_eq(segments_open(dir_fd, "stdout", limits, &stream), 0);
}

static void
fill(uint64_t from, size_t len)
{
	ck_assert_uint_le(len, sizeof(chunk));
	for (size_t i = 0; i < len; i++)
		chunk[i] = byte_at(from + i);
}

static void
append(size_t len)
{
	fill(segments_end(stream), len);
	segments_append(stream, chunk, len);
}

/* The same through a pipe. */
static void
splice_in(size_t len)
{
	int fds[2];
	ssize_t n;

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	ck_assert_int_ge(fcntl(fds[1], F_SETPIPE_SZ, MIB), 0);
	while (len > 0) {
		size_t part = len < MIB ? len : MIB;

		fill(segments_end(stream), part);
		n = write(fds[1], chunk, part);
		ck_assert_int_gt(n, 0);
		for (size_t left = (size_t)n; left > 0;) {
			ssize_t moved = segments_splice(stream, fds[0], left);

			ck_assert_int_gt(moved, 0);
			left -= (size_t)moved;
		}
		len -= (size_t)n;
	}
	ck_assert_int_eq(segments_splice(stream, fds[0], MIB), -EAGAIN);
	(void)close(fds[1]);
	ck_assert_int_eq(segments_splice(stream, fds[0], MIB), 0);
	(void)close(fds[0]);
}

/* Check notes each assertion in a file, so there are not too many. */
static void
check(const unsigned char *got, uint64_t at, size_t len)
{
	size_t good = 0;

	while (good < len && got[good] == byte_at(at + good))
		good++;
	ck_assert_uint_eq(good, len);
}

struct walk {
	uint64_t read, lost[3];
};

/* Reads all from `from` on, checks each byte, and adds up. */
static struct walk
walk(struct segments *log, uint64_t from, size_t step)
{
	_cleanup_(segments_file_fini) struct segments_file file = { 0 };
	static unsigned char got[2 * MIB];
	struct segments_view view;
	struct walk sum = { 0 };
	uint64_t at = from;

	do {
		ck_assert_int_eq(
			segments_read(log, &file, at, got, step, &view), 0);
		if (view.reason != SEGMENTS_KEPT) {
			ck_assert_uint_eq(view.lost_from, at);
			ck_assert_uint_gt(view.lost_to, at);
			sum.lost[view.reason] += view.lost_to - view.lost_from;
			at = view.lost_to;
		}
		ck_assert_uint_eq(view.next, at + view.len);
		check(got, at, view.len);
		sum.read += view.len;
		at = view.next;
	} while (view.len > 0 || view.reason != SEGMENTS_KEPT);
	ck_assert_uint_eq(at, segments_end(log));
	return sum;
}

START_TEST(an_empty_stream_reads_as_its_end)
{
	struct segments_view view;
	char c;

	begin(&all);
	ck_assert_int_eq(segments_read(stream, NULL, 0, &c, 1, &view), 0);
	ck_assert_uint_eq(view.len + view.end + view.base + view.next, 0);
	ck_assert_int_eq(segments_read(stream, NULL, 1, &c, 1, &view), -ERANGE);
}
END_TEST

START_TEST(what_went_in_comes_out_also_in_another_process)
{
	_cleanup_(segments_freep) struct segments *other = NULL;
	struct walk sum;

	begin(&all);
	append(5);
	splice_in(3 * MIB + 77);
	append(MIB);
	ck_assert_int_eq(segments_open(dir_fd, "stdout", NULL, &other), 0);
	sum = walk(stream, 0, 70001);
	ck_assert_uint_eq(sum.read, 4 * MIB + 82);
	sum = walk(other, 3, MIB);
	ck_assert_uint_eq(sum.read, 4 * MIB + 79);
}
END_TEST

START_TEST(the_first_and_the_last_bytes_are_kept)
{
	struct segments_view view;
	struct walk sum;
	char c;

	begin(&small);
	for (int i = 0; i < 20; i++)
		splice_in(MIB - 1);
	ck_assert_uint_le(segments_stored(stream), 5 * MIB);
	sum = walk(stream, 0, MIB);
	ck_assert_uint_ge(sum.read, 4 * MIB);
	ck_assert_uint_eq(sum.read + sum.lost[SEGMENTS_CAP], 20 * (MIB - 1));
	ck_assert_uint_eq(sum.lost[SEGMENTS_ENOSPC], 0);

	/* The loss is told exactly, from wherever one asks. */
	ck_assert_int_eq(segments_read(stream, NULL, 2 * MIB, &c, 1, &view), 0);
	ck_assert_int_eq(view.reason, SEGMENTS_CAP);
	ck_assert_uint_eq(view.lost_to - MIB, sum.lost[SEGMENTS_CAP]);
	ck_assert_uint_eq(view.base, 0);
}
END_TEST

static void
limit_files(rlim_t bytes)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

START_TEST(a_full_disk_costs_exactly_what_it_says)
{
	_cleanup_(segments_freep) struct segments *other = NULL;
	struct walk sum;

	begin(&all);
	splice_in(100000);
	limit_files(150000);
	if (_i)
		splice_in(1000000);
	else
		append(1000000);
	sum = walk(stream, 0, 33333);
	ck_assert_uint_eq(sum.read, 150000);
	ck_assert_uint_eq(sum.lost[SEGMENTS_ENOSPC], 950000);

	/* Others see that something is lost, if not yet how much. */
	ck_assert_int_eq(segments_open(dir_fd, "stdout", NULL, &other), 0);
	ck_assert_uint_gt(walk(other, 0, 33333).lost[SEGMENTS_ENOSPC], 0);
	other = segments_free(other);

	/* Not before the second is over is it tried again. */
	limit_files(RLIM_INFINITY);
	append(10);
	(void)usleep(1100000);
	append(20);
	splice_in(30);
	sum = walk(stream, 0, 33333);
	ck_assert_uint_eq(sum.read, 150050);
	ck_assert_uint_eq(sum.lost[SEGMENTS_ENOSPC], 950010);

	ck_assert_int_eq(segments_open(dir_fd, "stdout", NULL, &other), 0);
	sum = walk(other, 0, 33333);
	ck_assert_uint_eq(sum.read, 150050);
	ck_assert_uint_eq(sum.lost[SEGMENTS_ENOSPC], 950010);
	ck_assert_uint_eq(sum.lost[SEGMENTS_CAP], 0);
}
END_TEST

START_TEST(a_loss_at_the_end_is_told_on_disk)
{
	struct walk sum;

	begin(&all);
	append(100);
	segments_lose(stream, 11);
	segments_lose(stream, 12);
	segments_finish(stream);
	sum = walk(stream, 0, 64);
	ck_assert_uint_eq(sum.lost[SEGMENTS_ENOSPC], 23);
	begin(NULL);
	sum = walk(stream, 0, 64);
	ck_assert_uint_eq(sum.read, 100);
	ck_assert_uint_eq(sum.lost[SEGMENTS_ENOSPC], 23);
	ck_assert_uint_eq(segments_end(stream), 123);
}
END_TEST

START_TEST(a_tail_becomes_the_next_segment)
{
	int fd;

	begin(&all);
	append(100);
	fill(100, 50);
	fd = openat(dir_fd, "stdout.tail", O_WRONLY | O_CREAT | O_CLOEXEC,
		    0600);
	ck_assert_int_eq(write(fd, chunk, 50), 50);
	(void)close(fd);
	begin(&all);
	ck_assert_int_eq(segments_adopt(stream, "stdout.tail"), 0);
	ck_assert_int_eq(segments_adopt(stream, "stdout.tail"), -ENOENT);
	append(7);
	ck_assert_uint_eq(walk(stream, 0, 33).read, 157);
	begin(NULL);
	ck_assert_uint_eq(walk(stream, 0, 33).read, 157);
}
END_TEST

START_TEST(the_newest_bytes_can_be_amended)
{
	unsigned char got[20];
	struct segments_view view;

	begin(&all);
	append(100);
	ck_assert_int_eq(segments_amend(stream, 90, "0123456789", 10), 0);
	ck_assert_int_eq(segments_amend(stream, 91, "0123456789", 10), -ERANGE);
	ck_assert_int_eq(segments_read(stream, NULL, 85, got, 20, &view), 0);
	ck_assert_uint_eq(view.len, 15);
	ck_assert_int_eq(memcmp(got + 5, "0123456789", 10), 0);
	ck_assert_uint_eq(got[4], byte_at(89));
}
END_TEST

/* Names that are not ours are nobody's business. */
START_TEST(foreign_files_are_passed_over)
{
	static const char *const names[] = { "stdout",	  "stdout.",
					     "stdout.x",  "stdout.1x",
					     "stdout.1-", "stderr.000000000000",
					     "stdoutx.0", "stdout.5-1y" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int fd = openat(dir_fd, names[i],
				O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		ck_assert_int_eq(write(fd, "x", 1), 1);
		(void)close(fd);
	}
	ck_assert_int_eq(mkdirat(dir_fd, "stdout.3", 0700), 0);
	begin(&all);
	ck_assert_uint_eq(segments_end(stream), 0);
}
END_TEST

/* Any order of appends, losses and reopenings against plain counting. */
START_TEST(any_history_reads_like_its_model)
{
	unsigned int seed = (unsigned int)_i + 1;
	uint64_t end = 0, lost = 0;
	struct walk sum;

	begin(_i % 2 ? &small : &all);
	for (int step = 0; step < 60; step++) {
		size_t len = (size_t)rand_r(&seed) % (MIB / 2) + 1;

		switch (rand_r(&seed) % 6) {
		case 0:
		case 1:
			append(len);
			end += len;
			break;
		case 2:
		case 3:
			splice_in(len);
			end += len;
			break;
		case 4:
			/* Before the retry, what comes is lost as well. */
			segments_lose(stream, len);
			append(10);
			end += len + 10;
			lost += len + 10;
			segments_finish(stream);
			begin(_i % 2 ? &small : &all);
			break;
		default:
			segments_finish(stream);
			begin(_i % 2 ? &small : &all);
			break;
		}
		ck_assert_uint_eq(segments_end(stream), end);
	}
	sum = walk(stream, 0, (size_t)rand_r(&seed) % MIB + 1);
	ck_assert_uint_eq(sum.read, segments_stored(stream));
	ck_assert_uint_eq(sum.read + sum.lost[1] + sum.lost[2], end);
	if (_i % 2 == 0)
		ck_assert_uint_eq(sum.lost[SEGMENTS_ENOSPC], lost);
}
END_TEST

static void *
read_along(void *data)
{
	_cleanup_(segments_file_fini) struct segments_file file = { 0 };
	unsigned char *got = malloc(100000);
	struct segments_view view;
	uint64_t at = 0;

	ck_assert_ptr_nonnull(got);
	while (at < 40 * MIB) {
		ck_assert_int_eq(
			segments_read(data, &file, at, got, 100000, &view), 0);
		at = view.next;
		check(got, at - view.len, view.len);
	}
	free(got);
	return NULL;
}

START_TEST(readers_go_along_with_the_writer)
{
	_cleanup_(segments_freep) struct segments *other = NULL;
	pthread_t threads[3];

	begin(&small);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(
			pthread_create(&threads[i], NULL, read_along, stream),
			0);
	for (int i = 0; i < 40; i++) {
		append(MIB);
		if (i == 10)
			ck_assert_int_eq(
				segments_open(dir_fd, "stdout", NULL, &other),
				0);
	}
	for (size_t i = 0; i < 3; i++)
		(void)pthread_join(threads[i], NULL);
	/* What was dropped under another process is lost to it, no error. */
	ck_assert_uint_gt(walk(other, 0, MIB).lost[SEGMENTS_CAP], 0);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("segments");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_empty_stream_reads_as_its_end);
	tcase_add_test(tc, what_went_in_comes_out_also_in_another_process);
	tcase_add_test(tc, the_first_and_the_last_bytes_are_kept);
	tcase_add_loop_test(tc, a_full_disk_costs_exactly_what_it_says, 0, 2);
	tcase_add_test(tc, a_loss_at_the_end_is_told_on_disk);
	tcase_add_test(tc, a_tail_becomes_the_next_segment);
	tcase_add_test(tc, the_newest_bytes_can_be_amended);
	tcase_add_test(tc, foreign_files_are_passed_over);
	tcase_add_loop_test(tc, any_history_reads_like_its_model, 0, 20);
	tcase_add_test(tc, readers_go_along_with_the_writer);
	return suite_run("segments", tc);
}
