/* SPDX-License-Identifier: MIT */

/*
 * The record of denials as a whole: nothing that was acknowledged is lost, and
 * nothing is counted twice, whoever dies when.
 *
 * PALE_KILL_ROUNDS sets the number of kill -9 rounds (40).
 */

#include "policy/denial_priv.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "tests/unit/suite.h"

static char dir[64];
static char db_path[128];

static void
setup(void)
{
	(void)snprintf(dir, sizeof(dir), "/tmp/pale-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(db_path, sizeof(db_path), "%s/pale.db", dir);
}

static void
teardown(void)
{
	char command[128];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	ck_assert_int_eq(system(command), 0);
}

static struct denials *
open_world(const char *world_dir, const char *world)
{
	const struct denials_config config = {
		.dir = world_dir,
		.db_path = db_path,
		.session = "default",
		.world = world,
	};
	struct denials *denials = NULL;
	struct errmsg why = { "" };
	int r = denials_open(&config, &denials, &why);

	ck_assert_msg(r == 0, "%s", why.text);
	return denials;
}

static int
record(struct denials *denials, pid_t pid, const char *path)
{
	const struct denial denial = {
		.origin = "run",
		.source = DENIAL_FUSE,
		.code = POLICY_CODE_SANDBOX_DENIED,
		.mode = POLICY_READ_ONLY,
		.rule = "mode",
		.op = POLICY_OP_OPEN_WRITE,
		.path = path,
		.error = EROFS,
		.pid = pid,
		.uid = 1000,
		.gid = 1000,
		.remedy = DENIAL_REMEDY_ESCALATE,
		.remedy_text = "workspace-write",
	};

	return denial_record(denials, &denial);
}

/* One number out of the database. */
static long long
ask(const char *sql)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	long long value = -1;

	ck_assert_int_eq(sqlite3_open(db_path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 5000);
	ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL),
			 SQLITE_OK);
	if (sqlite3_step(stmt) == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return value;
}

static void
assert_integrity(void)
{
	ck_assert_int_eq(ask("SELECT integrity_check = 'ok' "
			     "FROM pragma_integrity_check"),
			 1);
}

START_TEST(a_run_without_denials_makes_no_database)
{
	struct denials *denials = open_world(dir, "w");

	denials_flush(denials);
	denials_close(denials);
	ck_assert_int_lt(access(db_path, F_OK), 0);
}
END_TEST

START_TEST(a_flushed_denial_is_in_the_store_and_the_spool_goes)
{
	struct denials *denials = open_world(dir, "w");
	struct denials_summary summary;
	char spool[128];

	ck_assert_int_eq(record(denials, getpid(), "/w/a"), 0);
	denials_flush(denials);
	ck_assert_int_eq(ask("SELECT count(*) FROM denials WHERE path = "
			     "CAST('/w/a' AS BLOB) AND comm IS NOT NULL AND "
			     "ppid > 0 AND inner_pid > 0 AND exe IS NOT NULL"),
			 1);
	denials_summarize(denials, &summary);
	ck_assert_uint_eq(summary.count, 1);
	ck_assert_uint_eq(summary.rows, 1);
	ck_assert(!summary.degraded);
	ck_assert_uint_eq(summary.n_first, 1);
	ck_assert_uint_eq(summary.first[0].id, 1);
	ck_assert_str_eq(summary.first[0].path, "/w/a");
	denials_close(denials);
	(void)snprintf(spool, sizeof(spool), "%s/denials.spool", dir);
	ck_assert_int_lt(access(spool, F_OK), 0);
}
END_TEST

START_TEST(a_denial_is_in_the_store_soon_without_a_flush)
{
	struct denials *denials = open_world(dir, "w");
	const struct timespec pause = { .tv_nsec = 5000000 };
	int64_t start = clock_mono_ns();

	ck_assert_int_eq(record(denials, 1, "/w/a"), 0);
	while (access(db_path, F_OK) < 0 ||
	       ask("SELECT count(*) FROM sqlite_master WHERE name = "
		   "'denials'") != 1 ||
	       ask("SELECT count(*) FROM denials") != 1) {
		/* Five times the goal, plus the making of the database. */
		ck_assert_int_lt(clock_mono_ns() - start, 1000000000);
		(void)nanosleep(&pause, NULL);
	}
	denials_close(denials);
}
END_TEST

START_TEST(a_storm_is_one_row_with_the_right_count)
{
	struct denials *denials = open_world(dir, "w");
	struct denials_summary summary;
	int64_t start = clock_mono_ns(), ns;
	int failed = 0;

	/* Check's assertions cost more than what is measured. */
	for (int i = 0; i < 100000; i++)
		failed += record(denials, 7, "/w/storm") < 0;
	ns = clock_mono_ns() - start;
	ck_assert_int_eq(failed, 0);
	denials_flush(denials);
	denials_summarize(denials, &summary);
	denials_close(denials);
	if (getenv("PALE_SHOW_TIMES"))
		printf("  a repeat takes %.2f us\n", (double)ns / 1e8);
	ck_assert_uint_eq(summary.count, 100000);
	ck_assert_uint_eq(summary.rows, 1);
	ck_assert_uint_eq(summary.first[0].count, 100000);
	ck_assert_int_eq(ask("SELECT count(*) FROM denials"), 1);
	ck_assert_int_eq(ask("SELECT count FROM denials"), 100000);
	ck_assert_int_eq(ask("SELECT last_time >= time FROM denials"), 1);
}
END_TEST

START_TEST(a_storm_over_fifty_paths_is_fifty_rows)
{
	struct denials *denials = open_world(dir, "w");
	char path[64];

	for (int i = 0; i < 20000; i++) {
		(void)snprintf(path, sizeof(path), "/out/f%d", i % 50);
		ck_assert_int_eq(record(denials, 7, path), 0);
	}
	ck_assert_int_eq(record(denials, 7, "/out/later"), 0);
	denials_close(denials);
	ck_assert_int_eq(ask("SELECT count(*) FROM denials"), 51);
	ck_assert_int_eq(ask("SELECT sum(count) FROM denials"), 20001);
}
END_TEST

START_TEST(a_hit_after_a_second_is_a_new_row)
{
	struct denials *denials = open_world(dir, "w");
	const struct timespec pause = { .tv_sec = 1, .tv_nsec = 50000000 };

	ck_assert_int_eq(record(denials, 7, "/w/a"), 0);
	(void)nanosleep(&pause, NULL);
	ck_assert_int_eq(record(denials, 7, "/w/a"), 0);
	ck_assert_int_eq(record(denials, 8, "/w/a"), 0);
	denials_close(denials);
	ck_assert_int_eq(ask("SELECT count(*) FROM denials"), 3);
}
END_TEST

#define THREADS 4L
#define HITS	20000

static void *
hit_from_thread(void *data)
{
	char path[64];

	for (int i = 0; i < HITS; i++) {
		(void)snprintf(path, sizeof(path), "/w/t%d", i % 20);
		ck_assert_int_eq(record(data, 7, path), 0);
	}
	return NULL;
}

START_TEST(many_threads_share_runs_without_losing_a_hit)
{
	struct denials *denials = open_world(dir, "w");
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL,
						hit_from_thread, denials),
				 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	denials_close(denials);
	ck_assert_int_eq(ask("SELECT sum(count) FROM denials"), THREADS * HITS);
	ck_assert_int_eq(ask("SELECT count(*) FROM denials"), 20);
}
END_TEST

START_TEST(more_distinct_rows_than_the_spool_holds_all_arrive)
{
	struct denials *denials = open_world(dir, "w");
	struct denials_summary summary;
	char path[256];
	long refused = 0;

	for (int i = 0; i < 60000; i++) {
		(void)snprintf(path, sizeof(path), "/w/%0200d", i);
		while (record(denials, 7, path) == -ENOSPC) {
			/* Faster than any inmate: let the thread follow. */
			refused++;
			denials_flush(denials);
		}
	}
	denials_flush(denials);
	denials_summarize(denials, &summary);
	ck_assert_uint_eq(summary.rows, 60000);
	ck_assert_uint_eq(summary.count, 60000 + (uint64_t)refused);
	denials_close(denials);
	ck_assert_int_eq(ask("SELECT count(*) FROM denials"), 60000);
	ck_assert_int_eq(ask("SELECT count(*) FROM denials AS a JOIN denials "
			     "AS b ON b.id = a.id + 1 WHERE b.seq <= a.seq"),
			 0);
}
END_TEST

/* A database that is none: everything stays in the spool. */
START_TEST(without_a_store_the_spool_keeps_all_and_says_degraded)
{
	struct denials_summary summary;
	struct denials *denials;
	struct errmsg why;
	FILE *bad = fopen(db_path, "we");
	char path[256];
	int n = 0, r;

	ck_assert_ptr_nonnull(bad);
	for (int i = 0; i < 1000; i++)
		(void)fputs("this is not a database\n", bad);
	(void)fclose(bad);

	denials = open_world(dir, "w");
	for (;;) {
		(void)snprintf(path, sizeof(path), "/w/%0200d", n);
		r = record(denials, 7, path);
		if (r < 0)
			break;
		n++;
	}
	ck_assert_int_eq(r, -ENOSPC);
	ck_assert_int_gt(n, 5000);
	/* Counting goes on where a row is there already. */
	(void)snprintf(path, sizeof(path), "/w/%0200d", n - 1);
	ck_assert_int_eq(record(denials, 7, path), 0);
	denials_flush(denials);
	denials_summarize(denials, &summary);
	ck_assert(summary.degraded);
	ck_assert_uint_eq(summary.count, (uint64_t)n + 2);
	denials_close(denials);

	ck_assert_int_eq(denials_import(dir, db_path, &why), -EBADMSG);
	ck_assert_int_eq(unlink(db_path), 0);
	ck_assert_int_eq(denials_import(dir, db_path, &why), 0);
	ck_assert_int_eq(ask("SELECT count(*) FROM denials"), n);
	ck_assert_int_eq(ask("SELECT sum(count) FROM denials"), n + 1);
	ck_assert_int_eq(ask("SELECT sum(json_extract(body, '$.count')) FROM "
			     "events WHERE kind = 'denials.lost'"),
			 1);
	ck_assert_int_eq(denials_import(dir, db_path, &why), -ENOENT);
}
END_TEST

START_TEST(a_living_spool_is_not_imported)
{
	struct denials *denials = open_world(dir, "w");
	struct errmsg why;

	ck_assert_int_eq(record(denials, 7, "/w/a"), 0);
	ck_assert_int_eq(denials_import(dir, db_path, &why), -EBUSY);
	denials_close(denials);
}
END_TEST

static void
make_world_dir(char *path, size_t size, int number)
{
	(void)snprintf(path, size, "%s/w%d", dir, number);
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

#define PROCESSES 16L
#define EACH	  1000

START_TEST(sixteen_processes_share_one_database)
{
	pid_t pids[PROCESSES];
	int status;

	for (int i = 0; i < PROCESSES; i++) {
		char world_dir[128], world[16], path[64];
		struct denials *denials;

		make_world_dir(world_dir, sizeof(world_dir), i);
		pids[i] = fork();
		ck_assert_int_ge(pids[i], 0);
		if (pids[i] > 0)
			continue;
		(void)snprintf(world, sizeof(world), "w%d", i);
		denials = open_world(world_dir, world);
		for (int n = 0; n < EACH; n++) {
			(void)snprintf(path, sizeof(path), "/w/%d/%d", i, n);
			if (record(denials, getpid(), path) < 0)
				_exit(1);
		}
		denials_close(denials);
		_exit(0);
	}
	for (int i = 0; i < PROCESSES; i++) {
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert_int_eq(status, 0);
	}
	ck_assert_int_eq(ask("SELECT count(*) FROM denials"), PROCESSES * EACH);
	ck_assert_int_eq(ask("SELECT count(DISTINCT path) FROM denials"),
			 PROCESSES * EACH);
	ck_assert_int_eq(ask("SELECT count(*) FROM denials AS a JOIN denials "
			     "AS b ON a.world = b.world AND "
			     "b.seq = a.seq + 1 WHERE b.id <= a.id"),
			 0);
	assert_integrity();
}
END_TEST

/* Records without end; says after each on the pipe that it is done. */
static void
record_until_killed(const char *world_dir, const char *world, int ack)
{
	struct denials *denials = open_world(world_dir, world);
	char path[300];

	for (uint32_t n = 1;; n++) {
		/* Two hits of each, so that counts move as well. */
		(void)snprintf(path, sizeof(path), "/w/%u/%.*s", n,
			       (int)(n * 7 % 200), "x/y/z/x/y/z/x/y/z/x/y/z/");
		for (int hit = 0; hit < 2; hit++)
			if (record(denials, 7, path) < 0)
				_exit(1);
		if (write(ack, &n, sizeof(n)) != sizeof(n))
			_exit(1);
	}
}

START_TEST(kill_at_any_instant_loses_nothing_acknowledged)
{
	const char *wanted = getenv("PALE_KILL_ROUNDS");
	int rounds = wanted ? atoi(wanted) : 40;
	unsigned int seed = 1;

	for (int i = 0; i < rounds; i++) {
		char world_dir[128], world[16], sql[128];
		struct timespec pause = { 0 };
		struct errmsg why = { "" };
		uint32_t n = 0, last = 0;
		int ack[2], status, r;
		pid_t pid;

		make_world_dir(world_dir, sizeof(world_dir), i);
		(void)snprintf(world, sizeof(world), "w%d", i);
		ck_assert_int_eq(pipe2(ack, O_CLOEXEC), 0);
		pid = fork();
		ck_assert_int_ge(pid, 0);
		if (pid == 0)
			record_until_killed(world_dir, world, ack[1]);
		(void)close(ack[1]);
		pause.tv_nsec = 1000L * (rand_r(&seed) % 120000);
		(void)nanosleep(&pause, NULL);
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		ck_assert_int_eq(waitpid(pid, &status, 0), pid);
		while (read(ack[0], &n, sizeof(n)) == (ssize_t)sizeof(n))
			last = n;
		(void)close(ack[0]);

		r = denials_import(world_dir, db_path, &why);
		ck_assert_msg(r == 0 || (r == -ENOENT && last == 0), "%d %s", r,
			      why.text);
		if (last == 0)
			continue;
		(void)snprintf(sql, sizeof(sql),
			       "SELECT count(*) FROM denials WHERE world = "
			       "'%s' AND seq <= %u AND count = 2",
			       world, last);
		ck_assert_int_eq(ask(sql), last);
	}
	assert_integrity();
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("denial");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, a_run_without_denials_makes_no_database);
	tcase_add_test(tc, a_flushed_denial_is_in_the_store_and_the_spool_goes);
	tcase_add_test(tc, a_denial_is_in_the_store_soon_without_a_flush);
	tcase_add_test(tc, a_storm_is_one_row_with_the_right_count);
	tcase_add_test(tc, a_storm_over_fifty_paths_is_fifty_rows);
	tcase_add_test(tc, a_hit_after_a_second_is_a_new_row);
	tcase_add_test(tc, many_threads_share_runs_without_losing_a_hit);
	tcase_add_test(tc, more_distinct_rows_than_the_spool_holds_all_arrive);
	tcase_add_test(tc,
		       without_a_store_the_spool_keeps_all_and_says_degraded);
	tcase_add_test(tc, a_living_spool_is_not_imported);
	tcase_add_test(tc, sixteen_processes_share_one_database);
	tcase_add_test(tc, kill_at_any_instant_loses_nothing_acknowledged);
	return suite_run("denial", tc);
}
