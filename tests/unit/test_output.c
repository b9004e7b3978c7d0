/* SPDX-License-Identifier: MIT */

#include "jobs/output.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/suite.h"

static const struct segments_limits all = { 0 };
static const struct segments_limits small = { 1u << 20, 2u << 20 };

static char dir[64];
static int dir_fd;
static struct output *output;
static int pipes[2][2];

/* What each stream and both together should be. */
static struct model {
	unsigned char *bytes;
	size_t len;
} models[3];

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/pale-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pipe2(pipes[i], O_CLOEXEC | O_NONBLOCK), 0);
	for (int i = 0; i < 3; i++)
		models[i].bytes = malloc(32u << 20);
}

static void
teardown(void)
{
	char command[128];

	output = output_free(output);
	for (int i = 0; i < 3; i++) {
		free(models[i].bytes);
		models[i] = (struct model){ 0 };
	}
	for (int i = 0; i < 4; i++)
		(void)close(pipes[i / 2][i % 2]);
	(void)close(dir_fd);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

static void
reopen(const struct segments_limits *limits)
{
	output = output_free(output);
	ck_assert_int_eq(output_open(dir_fd, limits, &output), 0);
}

static void
put(enum output_stream stream, const void *bytes, size_t len)
{
	ck_assert_int_eq(write(pipes[stream][1], bytes, len), (ssize_t)len);
	for (size_t left = len; left > 0;) {
		ssize_t n =
			output_splice(output, stream, pipes[stream][0], left);

		ck_assert_int_gt(n, 0);
		left -= (size_t)n;
	}
	for (int i = 0; i < 3; i++) {
		if (i != OUTPUT_BOTH && i != (int)stream)
			continue;
		memcpy(models[i].bytes + models[i].len, bytes, len);
		models[i].len += len;
	}
}

/* Everything of a stream; returns the bytes that are lost. */
static uint64_t
check_all(struct output *from, enum output_stream stream, size_t step)
{
	struct output_cursor cursor = { .stream = stream };
	const struct model *model = &models[stream];
	unsigned char *got = malloc(step);
	struct segments_view view;
	uint64_t at = 0, lost = 0;

	do {
		ck_assert_int_eq(
			output_read(from, &cursor, at, got, step, &view), 0);
		if (view.reason != SEGMENTS_KEPT) {
			ck_assert_uint_eq(view.lost_from, at);
			lost += view.lost_to - view.lost_from;
			at = view.lost_to;
		}
		ck_assert_uint_le(at + view.len, model->len);
		ck_assert_int_eq(memcmp(got, model->bytes + at, view.len), 0);
		at += view.len;
		ck_assert_uint_eq(at, view.next);
	} while (view.len > 0 || view.reason != SEGMENTS_KEPT);
	ck_assert_uint_eq(at, model->len);
	output_cursor_fini(&cursor);
	free(got);
	return lost;
}

START_TEST(lines_of_two_streams_come_in_the_order_written)
{
	_cleanup_(output_freep) struct output *other = NULL;

	reopen(&all);
	for (int i = 0; i < 300; i++) {
		char line[16];

		(void)snprintf(line, sizeof(line), "o%d\n", i);
		put(OUTPUT_STDOUT, line, strlen(line));
		line[0] = 'e';
		put(OUTPUT_STDERR, line, strlen(line));
	}
	ck_assert_int_eq(output_open(dir_fd, NULL, &other), 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(check_all(output, (enum output_stream)i, 77),
				  0);
		ck_assert_uint_eq(check_all(other, (enum output_stream)i, 4096),
				  0);
	}
}
END_TEST

/* Without its order, nothing but the order is lost. */
START_TEST(what_the_index_does_not_tell_is_read_all_the_same)
{
	unsigned char got[32] = { 0 };
	struct output_cursor cursor = { .stream = OUTPUT_BOTH };
	struct segments_view view;
	int fd;

	reopen(&all);
	put(OUTPUT_STDERR, "e1", 2);
	put(OUTPUT_STDOUT, "o1", 2);
	output_finish(output);
	fd = openat(dir_fd, "stdout.tail", O_WRONLY | O_CREAT | O_CLOEXEC,
		    0600);
	ck_assert_int_eq(write(fd, "o2", 2), 2);
	(void)close(fd);
	fd = openat(dir_fd, "stderr.tail", O_WRONLY | O_CREAT | O_CLOEXEC,
		    0600);
	ck_assert_int_eq(write(fd, "e2", 2), 2);
	(void)close(fd);
	reopen(&all);
	ck_assert_int_eq(output_recover(output), 0);
	ck_assert_int_eq(output_read(output, &cursor, 0, got, 32, &view), 0);
	ck_assert_str_eq((const char *)got, "e1o1o2e2");

	output_cursor_fini(&cursor);
	cursor.stream = OUTPUT_BOTH;
	ck_assert_int_eq(unlinkat(dir_fd, "index.000000000000000", 0), 0);
	reopen(NULL);
	ck_assert_int_eq(output_read(output, &cursor, 1, got, 32, &view), 0);
	ck_assert_uint_eq(view.len, 7);
	ck_assert_int_eq(memcmp(got, "1o2e1e2", 7), 0);
	output_cursor_fini(&cursor);
}
END_TEST

static void
random_history(unsigned int *seed, int steps, size_t most)
{
	static unsigned char bytes[65536];

	for (int step = 0; step < steps; step++) {
		size_t len = (size_t)rand_r(seed) % most + 1;

		for (size_t i = 0; i < len; i++)
			bytes[i] = (unsigned char)rand_r(seed);
		put((enum output_stream)(rand_r(seed) % 2), bytes, len);
	}
}

START_TEST(any_history_reads_like_its_model)
{
	unsigned int seed = (unsigned int)_i + 1;
	uint64_t lost = 0;

	reopen(_i % 2 ? &small : &all);
	random_history(&seed, 400, _i % 2 ? 60000 : 3000);
	for (int i = 0; i < 3; i++) {
		uint64_t n = check_all(output, (enum output_stream)i,
				       (size_t)rand_r(&seed) % 100000 + 1);

		if (i == OUTPUT_BOTH)
			ck_assert_uint_eq(n, lost);
		lost += n;
	}
	if (_i % 2)
		ck_assert_uint_gt(lost, 0);
	else
		ck_assert_uint_eq(lost, 0);
}
END_TEST

/* 250,000 changes of stream: more than the index keeps. */
START_TEST(an_index_with_a_gap_keeps_every_byte)
{
	struct output_cursor cursor = { .stream = OUTPUT_BOTH };
	struct segments_view view;
	uint64_t at = 0, sum = 0;
	unsigned char got[4096];

	reopen(&all);
	for (int i = 0; i < 125000; i++) {
		if (write(pipes[0][1], "o", 1) != 1 ||
		    output_splice(output, OUTPUT_STDOUT, pipes[0][0], 1) != 1 ||
		    write(pipes[1][1], "e", 1) != 1 ||
		    output_splice(output, OUTPUT_STDERR, pipes[1][0], 1) != 1)
			ck_abort_msg("round %d", i);
	}
	do {
		ck_assert_int_eq(output_read(output, &cursor, at, got,
					     sizeof(got), &view),
				 0);
		ck_assert_int_eq(view.reason, SEGMENTS_KEPT);
		for (size_t i = 0; i < view.len; i++)
			sum += got[i] == 'o';
		at = view.next;
	} while (view.len > 0);
	ck_assert_uint_eq(at, 250000);
	ck_assert_uint_eq(sum, 125000);
	output_cursor_fini(&cursor);
}
END_TEST

START_TEST(streams_have_names)
{
	enum output_stream stream;

	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(
			output_stream_parse(
				output_stream_name((enum output_stream)i),
				&stream),
			0);
		ck_assert_int_eq((int)stream, i);
	}
	ck_assert_int_eq(output_stream_parse("output", &stream), 0);
	ck_assert_int_eq((int)stream, OUTPUT_BOTH);
	ck_assert_int_eq(output_stream_parse("", &stream), -EINVAL);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("output");

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, lines_of_two_streams_come_in_the_order_written);
	tcase_add_test(tc, what_the_index_does_not_tell_is_read_all_the_same);
	tcase_add_loop_test(tc, any_history_reads_like_its_model, 0, 10);
	tcase_add_test(tc, an_index_with_a_gap_keeps_every_byte);
	tcase_add_test(tc, streams_have_names);
	return suite_run("output", tc);
}
