/* SPDX-License-Identifier: MIT */

#include "rpc/frames.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static struct frames frames;
static struct frame frame;
static struct buf out;

static void
setup(void)
{
	frames = (struct frames){ 0 };
	out = (struct buf){ 0 };
}

static void
teardown(void)
{
	frames_fini(&frames);
	buf_fini(&out);
}

/* As much as there is room for; how many bytes that were. */
static size_t
give(const unsigned char *bytes, size_t len)
{
	unsigned char *at;
	size_t size;

	ck_assert_int_eq(frames_room(&frames, &at, &size), 0);
	ck_assert_uint_gt(size, 0);
	if (len > size)
		len = size;
	memcpy(at, bytes, len);
	frames_added(&frames, len);
	return len;
}

START_TEST(what_is_written_is_read)
{
	frame_put(&out, FRAME_DATA, 3, "hello", 5);
	ck_assert_uint_eq(give(out.data, out.len), FRAME_HEADER + 5);
	ck_assert_int_eq(frames_next(&frames, &frame), 1);
	ck_assert_uint_eq(frame.type, FRAME_DATA);
	ck_assert_uint_eq(frame.flags, 3);
	ck_assert_uint_eq(frame.len, 5);
	ck_assert_mem_eq(frame.payload, "hello", 5);
	ck_assert_int_eq(frames_next(&frames, &frame), 0);
}
END_TEST

START_TEST(the_form_on_the_wire_is_fixed)
{
	static const unsigned char want[] = { 2, 0, 0,	0, 4,	 0,
					      0, 0, 80, 0, 0x2c, 1 };

	frame_put_size(&out, 80, 300);
	ck_assert_uint_eq(out.len, sizeof(want));
	ck_assert_mem_eq(out.data, want, sizeof(want));
}
END_TEST

START_TEST(a_size_comes_back)
{
	unsigned int cols, rows;

	frame_put_size(&out, 500, 65535);
	give(out.data, out.len);
	ck_assert_int_eq(frames_next(&frames, &frame), 1);
	ck_assert(frame_get_size(&frame, &cols, &rows));
	ck_assert_uint_eq(cols, 500);
	ck_assert_uint_eq(rows, 65535);
	frame.len = 3;
	ck_assert(!frame_get_size(&frame, &cols, &rows));
}
END_TEST

START_TEST(the_greatest_frame_is_taken_and_none_beyond)
{
	unsigned char *payload = calloc(1, FRAME_PAYLOAD);
	unsigned char header[FRAME_HEADER];

	ck_assert_ptr_nonnull(payload);
	frame_put(&out, FRAME_DATA, 0, payload, FRAME_PAYLOAD);
	ck_assert_uint_eq(give(out.data, out.len), out.len);
	ck_assert_int_eq(frames_next(&frames, &frame), 1);
	ck_assert_uint_eq(frame.len, FRAME_PAYLOAD);
	free(payload);

	frame_header(FRAME_DATA, 0, FRAME_PAYLOAD, header);
	header[4] = 1;
	give(header, sizeof(header));
	ck_assert_int_eq(frames_next(&frames, &frame), -EBADMSG);
	ck_assert_int_eq(frames_next(&frames, &frame), -EBADMSG);
}
END_TEST

START_TEST(what_must_be_zero_is_looked_at)
{
	unsigned char header[FRAME_HEADER];

	frame_header(FRAME_PING, 0, 0, header);
	header[2 + _i] = 1;
	give(header, sizeof(header));
	ck_assert_int_eq(frames_next(&frames, &frame), -EBADMSG);
}
END_TEST

START_TEST(much_goes_in_several_frames)
{
	size_t len = (size_t)3 * FRAME_PAYLOAD + 17, at = 0, got = 0;
	unsigned char *bytes = calloc(1, len);

	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)(i % 251);
	frame_put_all(&out, FRAME_DATA, bytes, len);
	ck_assert_uint_eq(out.len, len + (size_t)4 * FRAME_HEADER);
	while (at < out.len) {
		at += give(out.data + at, out.len - at);
		while (frames_next(&frames, &frame) == 1) {
			ck_assert_mem_eq(frame.payload, bytes + got, frame.len);
			got += frame.len;
		}
	}
	ck_assert_uint_eq(got, len);
	free(bytes);
}
END_TEST

/* Frames of any length, cut anywhere. */
START_TEST(any_split_gives_the_same_frames)
{
	unsigned int seed = (unsigned int)_i + 1;
	unsigned char payload[3000];
	size_t at = 0;
	unsigned int n = 0;

	memset(payload, 'x', sizeof(payload));
	for (unsigned int i = 0; i < 200; i++)
		frame_put(&out, (uint8_t)i, 0, payload, (i * 37) % 3000);
	while (at < out.len) {
		size_t most = (size_t)rand_r(&seed) % 5000 + 1;

		if (most > out.len - at)
			most = out.len - at;
		at += give(out.data + at, most);
		while (frames_next(&frames, &frame) == 1) {
			ck_assert_uint_eq(frame.type, (uint8_t)n);
			ck_assert_uint_eq(frame.len, (n * 37) % 3000);
			n++;
		}
	}
	ck_assert_uint_eq(n, 200);
}
END_TEST

START_TEST(no_memory_is_told)
{
	unsigned char *at;
	size_t size;

	oom_arm(1);
	ck_assert_int_eq(frames_room(&frames, &at, &size), -ENOMEM);
	oom_arm(0);
	ck_assert_int_eq(frames_room(&frames, &at, &size), 0);
	ck_assert_uint_eq(size, FRAMES_ROOM);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("frames");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, what_is_written_is_read);
	tcase_add_test(tc, the_form_on_the_wire_is_fixed);
	tcase_add_test(tc, a_size_comes_back);
	tcase_add_test(tc, the_greatest_frame_is_taken_and_none_beyond);
	tcase_add_loop_test(tc, what_must_be_zero_is_looked_at, 0, 2);
	tcase_add_test(tc, much_goes_in_several_frames);
	tcase_add_loop_test(tc, any_split_gives_the_same_frames, 0, 20);
	tcase_add_test(tc, no_memory_is_told);
	return suite_run("frames", tc);
}
