/* SPDX-License-Identifier: MIT */

#include "policy/store_jobs.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "tests/unit/small_store.h"
#include "tests/unit/suite.h"

static struct store_job
sample(const char *world, const char *token)
{
	return (struct store_job){
		.world = world,
		.workspace = "/w/\xff",
		.session = "default",
		.token = token,
		.name = "n",
		.label = "true",
		.spec = "{\"argv\":[\"true\"]}",
		.state = "queued",
		.created_ns = clock_real_ns(),
	};
}

static uint64_t
add(const char *world, const char *token)
{
	struct store_job job = sample(world, token);
	struct store_job_added added = { .known = true };

	ck_assert_int_eq(store_job_add(store, &job, UINT64_MAX, &added), 0);
	ck_assert(!added.known);
	return added.id;
}

struct rows {
	uint64_t ids[64];
	size_t n;
	struct store_job last;
	char state[16], spec[64], workspace[16];
};

static int
note(const struct store_job *job, void *data)
{
	struct rows *rows = data;

	ck_assert_uint_lt(rows->n, 64);
	rows->ids[rows->n++] = job->id;
	rows->last = *job;
	(void)snprintf(rows->state, sizeof(rows->state), "%s", job->state);
	(void)snprintf(rows->spec, sizeof(rows->spec), "%s",
		       job->spec ? job->spec : "-");
	(void)snprintf(rows->workspace, sizeof(rows->workspace), "%s",
		       job->workspace);
	return 0;
}

static struct rows
find(const struct store_jobs_query *query)
{
	struct rows rows = { .n = 0 };

	ck_assert_int_eq(store_each_job(store, query, note, &rows), 0);
	return rows;
}

static void
end(uint64_t id, const char *state, int64_t at, uint64_t stored)
{
	struct store_job job = sample("w", NULL);

	job.id = id;
	job.state = state;
	job.value = 3;
	job.ended_ns = at;
	job.stored_bytes = stored;
	ck_assert_int_eq(store_jobs_update(store, &job, 1), 0);
}

START_TEST(an_id_is_never_given_twice)
{
	uint64_t first = add("w", NULL), second = add("w", NULL);

	ck_assert_uint_eq(first, 1);
	ck_assert_uint_eq(second, 2);
	ck_assert_int_eq(store_job_remove(store, second), 0);
	ck_assert_uint_eq(add("w", NULL), 3);
}
END_TEST

START_TEST(a_token_gives_the_same_job)
{
	uint64_t id = add("w", "t");
	struct store_job job = sample("other", "t");
	struct store_job_added again = { 0 };

	(void)add("w", NULL);
	/* It takes no place. */
	ck_assert_int_eq(store_job_add(store, &job, 0, &again), 0);
	ck_assert(again.known);
	ck_assert_uint_eq(again.id, id);
	/* Another session's is its own. */
	job.session = "s";
	ck_assert_int_eq(store_job_add(store, &job, 0, &again), 0);
	ck_assert(!again.known);
	ck_assert_uint_ne(again.id, id);
}
END_TEST

START_TEST(places_are_of_the_session)
{
	struct store_job job = sample("m", NULL);
	struct store_job_added added = { 0 };
	struct store_job_others others;
	uint64_t first = add("a", NULL);

	(void)add("z", NULL);
	(void)add("m", NULL);
	ck_assert_int_eq(store_job_add(store, &job, 1, &added), -EAGAIN);
	ck_assert_int_eq(store_job_add(store, &job, 2, &added), 0);
	ck_assert_uint_eq(added.others.live, 2);
	ck_assert_uint_eq(added.others.started, 0);
	/* What was refused has no record. */
	ck_assert_uint_eq(find(&(struct store_jobs_query){ 0 }).n, 4);
	end(first, "exited", 5, 0);
	ck_assert_int_eq(store_jobs_others(store, &job, &others), 0);
	ck_assert_uint_eq(others.live, 1);
	job.session = "s";
	ck_assert_int_eq(store_job_add(store, &job, 0, &added), 0);
}
END_TEST

START_TEST(the_first_to_settle_is_the_last)
{
	const struct store_jobs_query one = { .id = add("w", NULL) };
	struct store_job job = sample("w", NULL);
	struct rows rows;

	job.id = one.id;
	job.state = "running";
	job.pid = 44;
	job.started_ns = 7;
	ck_assert_int_eq(store_jobs_update(store, &job, 1), 0);
	rows = find(&one);
	ck_assert_str_eq(rows.state, "running");
	ck_assert_int_eq(rows.last.pid, 44);
	ck_assert_int_eq(rows.last.ended_ns, 0);

	end(one.id, "exited", 9, 100);
	end(one.id, "lost", 10, 120);
	rows = find(&one);
	ck_assert_str_eq(rows.state, "exited");
	ck_assert_str_eq(rows.spec, "{\"argv\":[\"true\"]}");
	ck_assert_str_eq(rows.workspace, "/w/\xff");
	ck_assert_int_eq(rows.last.ended_ns, 9);
	ck_assert_uint_eq(rows.last.stored_bytes, 120);
}
END_TEST

START_TEST(rows_are_found_by_what_is_asked_for)
{
	static const struct store_jobs_query live = { .live = true },
					     ended = { .ended = true },
					     world = { .world = "v" },
					     newest = { .newest_first = true,
							.limit = 2 },
					     light = { .light = true,
						       .limit = 1 },
					     place = { .workspace = "/w/\xff",
						       .session = "default" };
	struct rows rows;

	(void)add("w", NULL);
	(void)add("v", NULL);
	(void)add("w", NULL);
	end(1, "exited", 5, 0);
	ck_assert_uint_eq(find(&live).n, 2);
	ck_assert_uint_eq(find(&ended).n, 1);
	ck_assert_uint_eq(find(&world).ids[0], 2);
	ck_assert_uint_eq(find(&place).n, 3);
	rows = find(&newest);
	ck_assert_uint_eq(rows.n, 2);
	ck_assert_uint_eq(rows.ids[0], 3);
	ck_assert_str_eq(find(&light).spec, "-");
}
END_TEST

static struct rows
excess(int64_t oldest, uint64_t kept, uint64_t bytes)
{
	struct rows rows = { .n = 0 };

	ck_assert_int_eq(
		store_jobs_excess(store, oldest, kept, bytes, note, &rows), 0);
	return rows;
}

START_TEST(what_is_too_much_is_the_oldest)
{
	for (int i = 1; i <= 6; i++)
		end(add("w", NULL), "exited", 100 + i, 10);
	/* One that runs is never too much. */
	(void)add("w", NULL);
	ck_assert_uint_eq(excess(0, 100, 1000).n, 0);
	ck_assert_uint_eq(excess(103, 100, 1000).n, 2);
	ck_assert_uint_eq(excess(0, 4, 1000).n, 2);
	ck_assert_uint_eq(excess(0, 4, 1000).ids[1], 2);
	ck_assert_uint_eq(excess(0, 100, 30).n, 3);
	ck_assert_uint_eq(excess(0, 100, 35).ids[2], 3);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("store_jobs");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, places_are_of_the_session);
	tcase_add_test(tc, an_id_is_never_given_twice);
	tcase_add_test(tc, a_token_gives_the_same_job);
	tcase_add_test(tc, the_first_to_settle_is_the_last);
	tcase_add_test(tc, rows_are_found_by_what_is_asked_for);
	tcase_add_test(tc, what_is_too_much_is_the_oldest);
	return suite_run("store_jobs", tc);
}
