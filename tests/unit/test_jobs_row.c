/* SPDX-License-Identifier: MIT */

#include "warden/jobs_row.h"

#include <check.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "tests/unit/small_store.h"
#include "tests/unit/suite.h"

START_TEST(an_id_is_j_and_a_number)
{
	static const char *const bad[] = { "",	  "j",	"j0", "j-1", "j1x",
					   "jj1", "x1", "0",  "j 1", "j01" };
	uint64_t id = 0;

	ck_assert_int_eq(jobs_id_parse("j17", &id), 0);
	ck_assert_uint_eq(id, 17);
	ck_assert_int_eq(jobs_id_parse("3", &id), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(jobs_id_parse(bad[i], &id) == -EINVAL, "'%s'",
			      bad[i]);
	ck_assert_int_eq(jobs_id_parse("j9999999999999999999", &id), -EINVAL);
}
END_TEST

static const struct {
	struct store_job row;
	const char *line;
	int exit;
} ends[] = {
	{ { .state = "queued" }, "queued", -1 },
	{ { .state = "running", .pid = 7 }, "running 7", -1 },
	{ { .state = "running" }, "running", -1 },
	{ { .state = "stopping", .pid = 7, .started_ns = 1000000000 },
	  "stopping 7 since 1970-01-01T00:00:01Z",
	  -1 },
	{ { .state = "draining" }, "draining", -1 },
	{ { .state = "exited", .value = 7 }, "exited 7", 7 },
	{ { .state = "killed", .value = 9 }, "killed 9", 137 },
	{ { .state = "timed_out" }, "timed_out", 124 },
	{ { .state = "failed", .reason = "no\nway" }, "failed no way", 126 },
	{ { .state = "failed", .reason = "x", .flags = STORE_JOB_BY_EXEC },
	  "failed x",
	  127 },
	{ { .state = "failed",
	    .reason = "x",
	    .flags = STORE_JOB_BY_EXEC | STORE_JOB_MAY_EXECUTE },
	  "failed x",
	  126 },
	{ { .state = "lost" }, "lost", 125 },
};

START_TEST(each_state_has_its_line_and_its_exit_status)
{
	char line[64];

	jobs_row_line(&ends[_i].row, line, sizeof(line));
	ck_assert_str_eq(line, ends[_i].line);
	ck_assert_int_eq(jobs_row_exit(&ends[_i].row), ends[_i].exit);
}
END_TEST

START_TEST(a_job_is_one_object_with_what_was_asked_for)
{
	const struct store_job row = {
		.id = 3,
		.world = "w",
		.workspace = "/w/\xff",
		.session = "default",
		.label = "a \"b\"",
		.state = "exited",
		.spec = "{\"argv\":[\"a\"],\"cwd\":\"/\"}",
	};
	struct buf out = { 0 };
	json_t *object;

	jobs_row_json(&row, &out);
	ck_assert_int_eq(buf_error(&out), 0);
	object = json_loadb((const char *)out.data, out.len,
			    JSON_REJECT_DUPLICATES, NULL);
	ck_assert_ptr_nonnull(object);
	ck_assert_str_eq(json_string_value(json_object_get(object, "id")),
			 "j3");
	ck_assert_str_eq(json_string_value(json_object_get(object, "cwd")),
			 "/");
	ck_assert_str_eq(
		json_string_value(json_object_get(object, "workspace")),
		"/w/\\xff");
	ck_assert(json_is_null(json_object_get(object, "signal")));
	ck_assert(json_is_null(json_object_get(object, "pid")));
	json_decref(object);
	buf_fini(&out);
}
END_TEST

START_TEST(bytes_come_back_from_base64)
{
	unsigned char bytes[64];
	unsigned int seed = (unsigned int)_i;
	struct buf text = { 0 }, back = { 0 };

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)rand_r(&seed);
	jobs_put_base64(&text, bytes, (size_t)_i);
	ck_assert_uint_eq((text.len - 2) % 4, 0);
	ck_assert_int_eq(jobs_base64_decode((const char *)text.data + 1,
					    text.len - 2, &back),
			 0);
	ck_assert_uint_eq(back.len, (size_t)_i);
	if (_i > 0)
		ck_assert_int_eq(memcmp(back.data, bytes, (size_t)_i), 0);
	buf_fini(&text);
	buf_fini(&back);
}
END_TEST

START_TEST(what_is_no_base64_is_refused)
{
	static const char *const bad[] = { "a",	   "ab",      "abc",
					   "ab=a", "====",    "a===",
					   "ab c", "abc\x80", "ab==abcd" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buf out = { 0 };

		ck_assert_msg(jobs_base64_decode(bad[i], strlen(bad[i]),
						 &out) == -EINVAL,
			      "'%s'", bad[i]);
		buf_fini(&out);
	}
}
END_TEST

/* ---- of dead wardens ---- */

static void
make(const char *place, const char *content)
{
	char full[256];
	FILE *file;

	(void)snprintf(full, sizeof(full), "%s/worlds/w/jobs/%s", dir, place);
	file = fopen(full, "we");
	ck_assert_ptr_nonnull(file);
	ck_assert_int_ge(fputs(content, file), 0);
	ck_assert_int_eq(fclose(file), 0);
}

/* A job that runs, by its record, and its directory. */
static uint64_t
running(bool with_dir)
{
	struct store_job job = { .world = "w",
				 .workspace = "/w",
				 .session = "s",
				 .label = "x",
				 .spec = "{}",
				 .state = "running",
				 .created_ns = 1 };
	char command[256];
	struct store_job_added added = { 0 };

	ck_assert_int_eq(store_job_add(store, &job, UINT64_MAX, &added), 0);
	(void)snprintf(command, sizeof(command),
		       "mkdir -p '%s/worlds/w/jobs/%s%d'", dir,
		       with_dir ? "j" : "../x", (int)added.id);
	ck_assert_int_eq(system(command), 0);
	return added.id;
}

static int
note(const struct store_job *row, void *data)
{
	jobs_row_line(row, data, 64);
	return 1;
}

static const char *
line_of(uint64_t id)
{
	static char line[64];
	const struct store_jobs_query query = { .id = id };

	ck_assert_int_eq(store_each_job(store, &query, note, line), 1);
	return line;
}

START_TEST(the_dead_are_settled_by_what_is_written_down)
{
	uint64_t lost = running(true), never = running(false),
		 exited = running(true), killed = running(true),
		 odd = running(true);
	unsigned int busy = 9;

	make("j3/exit", "exited 6\n");
	make("j3/stdout.tail", "last words");
	make("j4/exit", "killed 11\n");
	make("j5/exit", "fine\n");
	ck_assert_int_eq(jobs_settle_dead(store, dir, 0, &busy), 0);
	ck_assert_uint_eq(busy, 0);
	ck_assert_str_eq(line_of(lost), "lost");
	ck_assert_str_eq(line_of(never), "lost");
	ck_assert_str_eq(line_of(exited), "exited 6");
	ck_assert_str_eq(line_of(killed), "killed 11");
	ck_assert_str_eq(line_of(odd), "lost");
}
END_TEST

START_TEST(whoever_has_an_owner_is_left_alone)
{
	uint64_t id = running(true);
	char place[128];
	unsigned int busy = 0;
	int fd;

	(void)snprintf(place, sizeof(place), "%s/worlds/w/jobs%s", dir,
		       _i ? "/j1" : "");
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(jobs_settle_dead(store, dir, 0, &busy), 0);
	ck_assert_uint_eq(busy, 1);
	ck_assert_str_eq(line_of(id), "running");
	ck_assert(jobs_owner_is_dead(dir, "w") == (_i == 1));
	(void)close(fd);
	ck_assert_int_eq(jobs_settle_dead(store, dir, 0, &busy), 0);
	ck_assert_str_eq(line_of(id), "lost");
}
END_TEST

START_TEST(what_is_pruned_is_gone)
{
	char place[128];
	int fd;

	for (int i = 0; i < 4; i++)
		(void)running(true);
	make("j1/stdout.000000000000000", "x");
	ck_assert_int_eq(jobs_settle_dead(store, dir, 0, NULL), 0);
	/* One whose children live on is not. */
	(void)snprintf(place, sizeof(place), "%s/worlds/w/jobs/j2", dir);
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	ck_assert_int_eq(jobs_prune(store, dir, 2, 0, NULL, NULL), 1);
	ck_assert_str_eq(line_of(2), "lost");
	(void)close(fd);
	ck_assert_int_eq(jobs_prune(store, dir, 2, 0, NULL, NULL), 1);
	(void)snprintf(place, sizeof(place), "%s/worlds/w/jobs/j1", dir);
	ck_assert_int_ne(access(place, F_OK), 0);
	ck_assert_str_eq(line_of(3), "lost");
	ck_assert_int_eq(jobs_prune(store, dir, 2, 0, NULL, NULL), 0);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("jobs_row");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_id_is_j_and_a_number);
	tcase_add_loop_test(tc, each_state_has_its_line_and_its_exit_status, 0,
			    sizeof(ends) / sizeof(ends[0]));
	tcase_add_test(tc, a_job_is_one_object_with_what_was_asked_for);
	tcase_add_loop_test(tc, bytes_come_back_from_base64, 0, 10);
	tcase_add_test(tc, what_is_no_base64_is_refused);
	tcase_add_test(tc, the_dead_are_settled_by_what_is_written_down);
	tcase_add_loop_test(tc, whoever_has_an_owner_is_left_alone, 0, 2);
	tcase_add_test(tc, what_is_pruned_is_gone);
	return suite_run("jobs_row", tc);
}
