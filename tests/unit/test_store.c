/* SPDX-License-Identifier: MIT */

#include "policy/store_priv.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "tests/unit/small_store.h"
#include "tests/unit/suite.h"

static struct denial
sample(uint64_t seq, const char *world, const char *file)
{
	return (struct denial){
		.seq = seq,
		.time_ns = clock_real_ns(),
		.last_ns = clock_real_ns(),
		.count = 1,
		.session = "default",
		.world = world,
		.origin = "job j3",
		.source = DENIAL_OBSERVED,
		.code = POLICY_CODE_PROTECTED,
		.mode = POLICY_WORKSPACE_WRITE,
		.rule = "*.pem",
		.op = POLICY_OP_UNLINK,
		.path = file,
		.error = EACCES,
		.pid = 10,
		.comm = "rm",
		.remedy = DENIAL_REMEDY_ALLOW,
		.remedy_text = "*.pem",
	};
}

static void
put(uint64_t seq, const char *world, const char *file)
{
	struct denial denial = sample(seq, world, file);

	ck_assert_int_eq(store_put_denials(store, &denial, 1), 0);
	ck_assert_uint_gt(denial.id, 0);
}

struct rows {
	struct buf json;
	uint64_t ids[32];
	size_t n;
};

static int
note(const struct denial *denial, void *data)
{
	struct rows *rows = data;

	ck_assert_uint_lt(rows->n, 32);
	rows->ids[rows->n++] = denial->id;
	buf_fini(&rows->json);
	denial_to_json(denial, &rows->json);
	return 0;
}

static size_t
count(const struct store_query *query)
{
	struct rows rows = { 0 };

	ck_assert_int_eq(store_each_denial(store, query, note, &rows), 0);
	buf_fini(&rows.json);
	return rows.n;
}

START_TEST(the_file_is_for_its_user_alone)
{
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
}
END_TEST

/* The field list is chapter 20's table; scripts rely on each name. */
START_TEST(a_row_comes_back_as_json_with_exactly_the_fields)
{
	static const char *const fields[] = {
		"id",	     "time", "last_time", "count", "session", "world",
		"origin",    "call", "source",	  "code",  "mode",    "rule",
		"op",	     "path", "path2",	  "errno", "pid",     "ppid",
		"inner_pid", "comm", "exe",	  "uid",   "gid",     "remedy",
	};
	struct rows rows = { 0 };
	const struct store_query all = { 0 };
	json_t *row;

	put(1, "w", "/w/\xff\"\n");
	ck_assert_int_eq(store_each_denial(store, &all, note, &rows), 0);
	row = json_loadb((const char *)rows.json.data, rows.json.len,
			 JSON_REJECT_DUPLICATES, NULL);
	ck_assert_ptr_nonnull(row);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		ck_assert_ptr_nonnull(json_object_get(row, fields[i]));
	ck_assert_uint_eq(json_object_size(row),
			  sizeof(fields) / sizeof(fields[0]));
	ck_assert_str_eq(json_string_value(json_object_get(row, "path")),
			 "/w/\\xff\"\n");
	ck_assert_str_eq(json_string_value(json_object_get(row, "source")),
			 "observed");
	ck_assert_str_eq(json_string_value(json_object_get(row, "mode")),
			 "workspace-write");
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(row, "errno"), "name")),
			 "EACCES");
	ck_assert_str_eq(json_string_value(json_object_get(
				 json_object_get(row, "remedy"), "allow")),
			 "*.pem");
	ck_assert(json_is_null(json_object_get(row, "path2")));
	json_decref(row);
	buf_fini(&rows.json);
}
END_TEST

START_TEST(putting_a_record_twice_is_putting_it_once)
{
	struct denial denial = sample(1, "w", "/w/a"), again = denial;
	const struct store_query all = { 0 };

	ck_assert_int_eq(store_put_denials(store, &denial, 1), 0);
	again.count = 5;
	ck_assert_int_eq(store_put_denials(store, &again, 1), 0);
	ck_assert_uint_eq(again.id, denial.id);
	/* A count never falls. */
	denial.count = 3;
	ck_assert_int_eq(store_put_denials(store, &denial, 1), 0);
	ck_assert_uint_eq(count(&all), 1);
}
END_TEST

START_TEST(queries_restrict_by_id_world_session_and_number)
{
	for (uint64_t i = 1; i <= 5; i++)
		put(i, "w1", "/w/a");
	put(1, "w2", "/v/b");
	ck_assert_uint_eq(count(&(struct store_query){ 0 }), 6);
	ck_assert_uint_eq(count(&(struct store_query){ .world = "w2" }), 1);
	ck_assert_uint_eq(count(&(struct store_query){ .session = "x" }), 0);
	ck_assert_uint_eq(count(&(struct store_query){ .since = 4 }), 2);
	ck_assert_uint_eq(count(&(struct store_query){ .last = 2 }), 2);
	ck_assert_uint_eq(count(&(struct store_query){ .since = UINT64_MAX }),
			  0);
}
END_TEST

START_TEST(the_last_ones_come_oldest_first)
{
	struct rows rows = { 0 };
	const struct store_query query = { .last = 3 };

	for (uint64_t i = 1; i <= 5; i++)
		put(i, "w1", "/w/a");
	ck_assert_int_eq(store_each_denial(store, &query, note, &rows), 0);
	ck_assert_uint_eq(rows.n, 3);
	ck_assert_uint_eq(rows.ids[0], 3);
	ck_assert_uint_eq(rows.ids[2], 5);
	buf_fini(&rows.json);
}
END_TEST

START_TEST(a_workspace_has_its_worlds_and_the_paths_in_it)
{
	const struct store_query query = { .workspace = "/w" };

	put(1, "w1", "/outside"); /* of a world on /w */
	put(1, "w2", "/w/in");
	put(2, "w2", "/w");
	put(3, "w2", "/ww");
	ck_assert_int_eq(store_event(store, "default", "w1", "world.started",
				     "{\"workspace\":\"/w\"}"),
			 0);
	ck_assert_uint_eq(count(&query), 3);
}
END_TEST

START_TEST(events_are_never_changed_nor_removed)
{
	ck_assert_int_eq(store_event(store, "s", NULL, "mode.set", "{}"), 0);
	ck_assert_int_lt(store_event(store, "s", NULL, "mode.set", "no"), 0);
	ck_assert_int_lt(store_exec(store, "UPDATE events SET kind = 'x'"), 0);
	ck_assert_int_lt(store_exec(store, "DELETE FROM events"), 0);
	ck_assert_int_lt(store_exec(store, "REPLACE INTO events (id, time, "
					   "session, kind, body) VALUES "
					   "(1, 1, 's', 'x', '{}')"),
			 0);
}
END_TEST

static int
note_event(const struct store_event_row *row, void *data)
{
	struct buf *seen = data;

	buf_putf(seen, "%s/%s/%s;", row->kind, row->session,
		 row->world ? row->world : "-");
	return 0;
}

static void
check_events(const struct store_query *query, const char *want)
{
	struct buf seen = { 0 };

	ck_assert_int_eq(store_each_event(store, query, note_event, &seen), 0);
	buf_put(&seen, "", 1);
	ck_assert_str_eq((const char *)seen.data, want);
	buf_fini(&seen);
}

START_TEST(a_session_is_created_once_for_a_workspace_and_a_name)
{
	ck_assert_int_eq(store_session(store, "a", "/w"), 0);
	ck_assert_int_eq(store_session(store, "a", "/w"), 0);
	ck_assert_int_eq(store_session(store, "a", "/v"), 0);
	ck_assert_int_eq(store_session(store, "b", "/w"), 0);
	check_events(&(struct store_query){ 0 },
		     "session.created/a/-;session.created/a/-;"
		     "session.created/b/-;");
	check_events(&(struct store_query){ .workspace = "/v" },
		     "session.created/a/-;");
}
END_TEST

START_TEST(an_event_of_a_world_can_be_put_once)
{
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(
			store_event_once(store, "s", "w1", "world.ended", "{}"),
			0);
	ck_assert_int_eq(
		store_event_once(store, "s", "w2", "world.ended", "{}"), 0);
	check_events(&(struct store_query){ 0 },
		     "world.ended/s/w1;world.ended/s/w2;");
	check_events(&(struct store_query){ .world = "w2" },
		     "world.ended/s/w2;");
	check_events(&(struct store_query){ .since = 1, .last = 1 },
		     "world.ended/s/w2;");
}
END_TEST

START_TEST(what_is_begun_is_done_whole_or_not_at_all)
{
	ck_assert_int_eq(store_begin(store), 0);
	ck_assert_int_eq(store_session(store, "a", "/w"), 0);
	ck_assert_int_eq(store_end(store, -EIO), -EIO);
	check_events(&(struct store_query){ 0 }, "");
	ck_assert_int_eq(store_begin(store), 0);
	ck_assert_int_eq(store_session(store, "a", "/w"), 0);
	ck_assert_int_eq(store_end(store, 0), 0);
	check_events(&(struct store_query){ 0 }, "session.created/a/-;");
}
END_TEST

static int
note_row(const struct denial *denial, void *data)
{
	*(uint64_t *)data = denial->id;
	ck_assert_str_eq(denial->call, "tool 7");
	return 0;
}

START_TEST(a_call_finds_its_records)
{
	struct denial denial = sample(1, "w", "/w/x");
	uint64_t id = 0;

	ck_assert_int_eq(store_put_denials(store, &denial, 1), 0);
	denial = sample(2, "w", "/w/y");
	denial.call = "tool 7";
	ck_assert_int_eq(store_put_denials(store, &denial, 1), 0);
	ck_assert_int_eq(
		store_each_denial(store,
				  &(struct store_query){ .call = "tool 7" },
				  note_row, &id),
		0);
	ck_assert_uint_eq(id, denial.id);
	ck_assert_uint_ne(id, 0);
}
END_TEST

/* ---- what earlier versions of pale have left ---- */

/* The first version's file, as it was made then. */
static const char *const version_1[] = {
	"CREATE TABLE denials (id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" seq INTEGER NOT NULL, time INTEGER NOT NULL,"
	" last_time INTEGER NOT NULL, count INTEGER NOT NULL,"
	" session TEXT NOT NULL, world TEXT NOT NULL, origin TEXT, call TEXT,"
	" source TEXT NOT NULL, code TEXT NOT NULL, mode TEXT NOT NULL,"
	" rule BLOB, op TEXT NOT NULL, path BLOB, path2 BLOB,"
	" errno INTEGER NOT NULL, pid INTEGER, ppid INTEGER,"
	" inner_pid INTEGER, comm BLOB, exe BLOB, uid INTEGER, gid INTEGER,"
	" remedy_kind TEXT, remedy BLOB, UNIQUE (world, seq, time));"
	"CREATE INDEX denials_time ON denials (time);",
	"CREATE TABLE events (id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" time INTEGER NOT NULL, session TEXT NOT NULL, world TEXT,"
	" kind TEXT NOT NULL, body TEXT NOT NULL CHECK (json_valid(body)));"
	"CREATE INDEX events_kind ON events (kind, world);"
	"CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN"
	" SELECT RAISE(ABORT, 'events are never changed'); END;"
	"CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN"
	" SELECT RAISE(ABORT, 'events are never removed'); END;",
	"INSERT INTO denials (seq, time, last_time, count, session, world,"
	" source, code, mode, op, path, errno, pid) VALUES (1, 5, 6, 7, 's',"
	" 'w', 'fuse', 'FS_SANDBOX_DENIED', 'read-only', 'unlink', '/w/x',"
	" 30, 10);"
	"INSERT INTO events (time, session, world, kind, body) VALUES"
	" (5, 's', 'w', 'world.started', '{\"workspace\":\"/w\"}');"
	"PRAGMA user_version = 1",
};

/* Puts the file back to what version 1 left. */
static void
go_back(void)
{
	char command[160];

	store = store_close(store);
	(void)snprintf(command, sizeof(command), "rm -f '%s'*", path);
	ck_assert_int_eq(system(command), 0);
	store = calloc(1, sizeof(*store));
	ck_assert_int_eq(sqlite3_open(path, &store->db), SQLITE_OK);
	for (size_t i = 0; i < sizeof(version_1) / sizeof(*version_1); i++)
		ck_assert_int_eq(store_exec(store, version_1[i]), 0);
}

START_TEST(a_file_of_an_earlier_version_is_brought_up_to_date)
{
	struct errmsg why = { "" };

	go_back();
	store = store_close(store);
	ck_assert_msg(store_open(path, &store, &why) == 0, "%s", why.text);
	ck_assert_uint_eq(count(&(struct store_query){ .workspace = "/w" }), 1);
	check_events(&(struct store_query){ 0 }, "world.started/s/w;");
	put(2, "w", "/w/y");
	ck_assert_uint_eq(count(&(struct store_query){ 0 }), 2);
	ck_assert_int_eq(store_event(store, "s", NULL, "mode.set", "{}"), 0);
}
END_TEST

/* A step in the middle fails: what was done before it stays, and no more. */
START_TEST(a_migration_that_fails_leaves_the_last_whole_version)
{
	struct store *other = NULL;
	struct errmsg why = { "" };
	sqlite3_stmt *stmt = NULL;

	go_back();
	ck_assert_int_eq(store_exec(store, "CREATE TABLE denials_call (x)"), 0);
	ck_assert_int_lt(store_open(path, &other, &why), 0);
	ck_assert_ptr_nonnull(strstr(why.text, path));
	ck_assert_int_eq(sqlite3_prepare_v2(store->db, "PRAGMA user_version",
					    -1, &stmt, NULL),
			 SQLITE_OK);
	ck_assert_int_eq(sqlite3_step(stmt), SQLITE_ROW);
	ck_assert_int_eq(sqlite3_column_int(stmt, 0), 2);
	(void)sqlite3_finalize(stmt);
	ck_assert_int_eq(store_exec(store, "DROP TABLE denials_call"), 0);
	ck_assert_int_eq(store_open(path, &other, &why), 0);
	store_close(other);
}
END_TEST

static int
note_group(const struct store_group *group, void *data)
{
	struct store_group *first = data;

	if (first->count == 0) {
		ck_assert_str_eq(group->directory, "/w/d");
		ck_assert_str_eq(group->program, "rm");
		ck_assert_str_eq(group->rule, "*.pem");
		*first = *group;
	}
	return 0;
}

START_TEST(a_summary_groups_by_rule_op_directory_and_program)
{
	struct store_group first = { 0 };
	const struct store_query all = { 0 };

	put(1, "w", "/w/x");
	put(2, "w", "/w/d/a");
	put(3, "w", "/w/d/b");
	ck_assert_int_eq(store_each_group(store, &all, note_group, &first), 0);
	ck_assert_uint_eq(first.count, 2);
	ck_assert_uint_eq(first.rows, 2);
	ck_assert_uint_eq(first.last_id, 3);
}
END_TEST

START_TEST(old_rows_are_pruned_and_ids_are_not_used_again)
{
	struct denial old = sample(1, "w", "/w/a"), young;
	uint64_t removed = 0;

	old.time_ns = clock_real_ns() - 31LL * 24 * 3600 * 1000000000;
	ck_assert_int_eq(store_put_denials(store, &old, 1), 0);
	ck_assert_int_eq(store_prune(store, &removed), 0);
	ck_assert_uint_eq(removed, 1);
	young = sample(2, "w", "/w/a");
	ck_assert_int_eq(store_put_denials(store, &young, 1), 0);
	ck_assert_uint_gt(young.id, old.id);
}
END_TEST

START_TEST(a_failed_batch_leaves_nothing_behind)
{
	struct denial batch[2] = { sample(1, "w", "/a"), sample(2, "w", "/b") };

	batch[1].session = NULL; /* NOT NULL */
	ck_assert_int_lt(store_put_denials(store, batch, 2), 0);
	ck_assert_uint_eq(batch[0].id, 0);
	ck_assert_uint_eq(count(&(struct store_query){ 0 }), 0);
}
END_TEST

START_TEST(another_connections_write_is_noticed)
{
	struct store *other = NULL;
	struct denial denial = sample(1, "w", "/a");
	int64_t before, after;

	ck_assert_int_eq(store_open(path, &other, NULL), 0);
	ck_assert_int_eq(store_version(store, &before), 0);
	ck_assert_int_eq(store_put_denials(other, &denial, 1), 0);
	ck_assert_int_eq(store_version(store, &after), 0);
	ck_assert_int_ne(before, after);
	store_close(other);
}
END_TEST

START_TEST(what_is_not_ours_is_refused)
{
	struct store *other = NULL;
	struct errmsg why = { "" };
	char wal[160];
	FILE *file;

	ck_assert_int_eq(store_exec(store, "PRAGMA user_version = 999"), 0);
	ck_assert_int_eq(store_open(path, &other, &why), -EPROTO);
	ck_assert_ptr_nonnull(strstr(why.text, "written by a later pale"));
	store = store_close(store);

	/* Else the log would mend the file. */
	(void)snprintf(wal, sizeof(wal), "%s-wal", path);
	ck_assert_int_eq(unlink(wal), 0);
	file = fopen(path, "we");
	ck_assert_ptr_nonnull(file);
	for (int i = 0; i < 1000; i++)
		(void)fputs("this is not a database\n", file);
	(void)fclose(file);
	ck_assert_int_eq(store_open(path, &other, &why), -EBADMSG);
	ck_assert_ptr_nonnull(strstr(why.text, "damaged"));
	(void)snprintf(path, sizeof(path), "%s/none/pale.db", dir);
	ck_assert_int_eq(store_open(path, &other, &why), -ENOENT);
}
END_TEST

/* Where SQLite locks a file that is open; a child sees whose locks are there. */
#define SHARED_FIRST 0x40000002
#define SHARED_SIZE  510

static bool
seems_open_to_others(void)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct flock lock = { .l_type = F_WRLCK,
				      .l_whence = SEEK_SET,
				      .l_start = SHARED_FIRST,
				      .l_len = SHARED_SIZE };
		int fd = open(path, O_RDWR | O_CLOEXEC);

		_exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 &&
		      lock.l_type != F_UNLCK);
	}
	ck_assert_int_gt(pid, 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status) == 1;
}

START_TEST(a_further_connection_drops_no_lock)
{
	struct store *other = NULL;
	struct errmsg why = { "" };

	ck_assert(seems_open_to_others());
	ck_assert_int_eq(store_open(path, &other, &why), 0);
	ck_assert(seems_open_to_others());
	other = store_close(other);
	ck_assert(seems_open_to_others());
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("store");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, the_file_is_for_its_user_alone);
	tcase_add_test(tc, a_further_connection_drops_no_lock);
	tcase_add_test(tc, a_row_comes_back_as_json_with_exactly_the_fields);
	tcase_add_test(tc, putting_a_record_twice_is_putting_it_once);
	tcase_add_test(tc, queries_restrict_by_id_world_session_and_number);
	tcase_add_test(tc, the_last_ones_come_oldest_first);
	tcase_add_test(tc, a_workspace_has_its_worlds_and_the_paths_in_it);
	tcase_add_test(tc, events_are_never_changed_nor_removed);
	tcase_add_test(tc, a_summary_groups_by_rule_op_directory_and_program);
	tcase_add_test(tc, old_rows_are_pruned_and_ids_are_not_used_again);
	tcase_add_test(tc, a_failed_batch_leaves_nothing_behind);
	tcase_add_test(tc, another_connections_write_is_noticed);
	tcase_add_test(tc, what_is_not_ours_is_refused);
	tcase_add_test(tc,
		       a_session_is_created_once_for_a_workspace_and_a_name);
	tcase_add_test(tc, an_event_of_a_world_can_be_put_once);
	tcase_add_test(tc, what_is_begun_is_done_whole_or_not_at_all);
	tcase_add_test(tc, a_call_finds_its_records);
	tcase_add_test(tc, a_file_of_an_earlier_version_is_brought_up_to_date);
	tcase_add_test(tc,
		       a_migration_that_fails_leaves_the_last_whole_version);
	return suite_run("store", tc);
}
