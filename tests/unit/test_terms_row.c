/* SPDX-License-Identifier: MIT */

#include "warden/terms_row.h"

#include <check.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "pty/vt.h"
#include "tests/unit/suite.h"

static char state[64];
static struct store *store;

static void
setup(void)
{
	struct errmsg why = { "" };
	char db[128];

	(void)snprintf(state, sizeof(state), "/tmp/pale-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(state));
	(void)snprintf(db, sizeof(db), "%s/pale.db", state);
	ck_assert_msg(store_open(db, &store, &why) == 0, "%s", why.text);
}

static void
teardown(void)
{
	char command[128];

	store = store_close(store);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", state);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(an_id_is_t_and_a_number)
{
	static const char *const bad[] = { "",	 "t",	"t0", "t-1",
					   "j1", "t1x", "0",  "t01" };
	uint64_t id = 0;

	ck_assert_int_eq(terms_id_parse("t17", &id), 0);
	ck_assert_uint_eq(id, 17);
	ck_assert_int_eq(terms_id_parse("3", &id), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(terms_id_parse(bad[i], &id) == -EINVAL, "'%s'",
			      bad[i]);
}
END_TEST

START_TEST(a_name_is_short_and_no_id)
{
	static const char *const good[] = { "a",   "j1234",    "build 2",
					    "t1x", "\xc3\xa9", "x-" };
	static const char *const bad[] = { "",	  "t1", "17", "a/b",
					   "a\n", "-x", ".x", "a\x7f" };
	char text[TERMS_NAME_MAX + 2] = "";

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		ck_assert_msg(terms_name_is_valid(good[i]), "'%s'", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!terms_name_is_valid(bad[i]), "'%s'", bad[i]);
	memset(text, 'x', TERMS_NAME_MAX);
	ck_assert(terms_name_is_valid(text));
	text[TERMS_NAME_MAX] = 'x';
	ck_assert(!terms_name_is_valid(text));
}
END_TEST

START_TEST(a_terminal_is_one_object)
{
	const struct store_term row = {
		.id = 3,
		.world = "w",
		.workspace = "/w/\xff",
		.session = "default",
		.label = "cat",
		.title = "a \"b\"",
		.state = "killed",
		.value = 9,
		.cols = 80,
		.rows = 24,
		.spec = "{\"argv\":[\"a\"],\"cwd\":\"/\"}",
	};
	struct buf out = { 0 };
	json_t *object;

	terms_row_json(&row, &out);
	ck_assert_int_eq(buf_error(&out), 0);
	object = json_loadb((const char *)out.data, out.len,
			    JSON_REJECT_DUPLICATES, NULL);
	ck_assert_ptr_nonnull(object);
	ck_assert_str_eq(json_string_value(json_object_get(object, "id")),
			 "t3");
	ck_assert_str_eq(json_string_value(json_object_get(object, "cwd")),
			 "/");
	ck_assert_int_eq(json_integer_value(json_object_get(object, "signal")),
			 9);
	ck_assert_int_eq(json_integer_value(json_object_get(object, "cols")),
			 80);
	ck_assert_int_eq(terms_row_exit(&row), 137);
	json_decref(object);
	buf_fini(&out);
}
END_TEST

/* A terminal on record whose warden is no more, with its directory. */
static uint64_t
orphan(int *ret_dir)
{
	const struct store_term row = { .world = "w",
					.workspace = "/w",
					.session = "default",
					.name = "n",
					.label = "cat",
					.spec = "{}",
					.state = "running",
					.cols = 20,
					.rows = 4,
					.created_ns = 1 };
	char path[256];
	uint64_t id = 0;

	ck_assert_int_eq(store_term_add(store, &row, &id), 0);
	(void)snprintf(path, sizeof(path), "%s/worlds/w/terminals/t%llu", state,
		       (unsigned long long)id);
	for (char *at = path + strlen(state) + 1; (at = strchr(at, '/'));
	     at++) {
		*at = '\0';
		(void)mkdir(path, 0700);
		*at = '/';
	}
	ck_assert_int_eq(mkdir(path, 0700), 0);
	*ret_dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(*ret_dir, 0);
	return id;
}

static void
put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	(void)close(fd);
}

struct copy {
	char state[32], name[32];
	int64_t value, ended_ns;
	uint64_t bytes;
};

static int
take(const struct store_term *row, void *data)
{
	struct copy *copy = data;

	(void)snprintf(copy->state, sizeof(copy->state), "%s", row->state);
	(void)snprintf(copy->name, sizeof(copy->name), "%s",
		       row->name ? row->name : "");
	copy->value = row->value;
	copy->ended_ns = row->ended_ns;
	copy->bytes = row->bytes;
	return 1;
}

static struct copy
record(uint64_t id)
{
	const struct store_terms_query query = { .id = id };
	struct copy copy = { 0 };

	ck_assert_int_eq(store_each_term(store, &query, take, &copy), 1);
	return copy;
}

START_TEST(what_has_no_owner_is_settled_once)
{
	struct copy copy;
	int dir = -1;
	uint64_t id = orphan(&dir);

	put(dir, "raw.000000000000000", "one\r\n");
	put(dir, "raw.tail", "two\r\n");
	if (_i == 1)
		put(dir, "exit", "exited 4\n");
	/* While its keeper lives, it is not ours. */
	ck_assert_int_eq(flock(dir, LOCK_EX), 0);
	ck_assert_int_eq(terms_settle_dead(store, state, 0), 0);
	ck_assert_int_eq(record(id).ended_ns, 0);
	(void)flock(dir, LOCK_UN);

	ck_assert_int_eq(terms_settle_dead(store, state, id), 0);
	copy = record(id);
	ck_assert_str_eq(copy.state, _i == 1 ? "exited" : "lost");
	ck_assert_int_eq(copy.value, _i == 1 ? 4 : 0);
	ck_assert_uint_eq(copy.bytes, 10);
	ck_assert_str_eq(copy.name, "n");
	ck_assert_int_eq(faccessat(dir, "raw.tail", F_OK, 0), -1);
	(void)close(dir);
}
END_TEST

/* From the beginning, from what was saved, from what is no model at all. */
START_TEST(the_screen_is_that_of_the_last_moment)
{
	struct store_term row = { .world = "w", .cols = 20, .rows = 4 };
	struct buf out = { 0 }, saved = { 0 };
	struct vt *vt = NULL;
	int dir = -1;

	row.id = orphan(&dir);
	put(dir, "raw.000000000000000", "one\r\n\033[1mtwo\033[6n\r\n");
	put(dir, "raw.000000000000018", "three");
	if (_i == 1) {
		ck_assert_int_eq(vt_new(20, 4, NULL, NULL, NULL, &vt), 0);
		vt_feed(vt, "one\r\n\033[1mtw", 11);
		vt_save(vt, &saved);
		ck_assert_int_eq(buf_error(&saved), 0);
		buf_put(&saved, "", 1);
		vt = vt_free(vt);
		int fd = openat(dir, "screen", O_WRONLY | O_CREAT | O_CLOEXEC,
				0600);

		ck_assert_int_eq(fd_write_all(fd, saved.data, saved.len - 1),
				 0);
		(void)close(fd);
		buf_fini(&saved);
	} else if (_i == 2) {
		put(dir, "screen", "something else");
	}
	ck_assert_int_eq(terms_dump_screen(dir, &row, TERMS_TEXT, 0, &out), 0);
	buf_put(&out, "", 1);
	ck_assert_str_eq((const char *)out.data, "one\ntwo\nthree\n\n");
	buf_fini(&out);
	/* One that never began has an empty one. */
	ck_assert_int_eq(terms_dump_screen(-1, &row, TERMS_TEXT, 0, &out), 0);
	buf_put(&out, "", 1);
	ck_assert_str_eq((const char *)out.data, "\n\n\n\n");
	buf_fini(&out);
	(void)close(dir);
}
END_TEST

START_TEST(a_removed_one_leaves_nothing)
{
	struct store_term row = { .world = "w" };
	char path[128];
	int dir = -1;

	row.id = orphan(&dir);
	put(dir, "raw.000000000000000", "x");
	put(dir, "screen", "x");
	(void)close(dir);
	ck_assert_int_eq(terms_settle_dead(store, state, 0), 0);
	ck_assert_int_eq(terms_remove_row(store, state, &row), 0);
	(void)snprintf(path, sizeof(path), "%s/worlds/w", state);
	ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("terms_row");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, an_id_is_t_and_a_number);
	tcase_add_test(tc, a_name_is_short_and_no_id);
	tcase_add_test(tc, a_terminal_is_one_object);
	tcase_add_loop_test(tc, what_has_no_owner_is_settled_once, 0, 2);
	tcase_add_loop_test(tc, the_screen_is_that_of_the_last_moment, 0, 3);
	tcase_add_test(tc, a_removed_one_leaves_nothing);
	return suite_run("terms_row", tc);
}
