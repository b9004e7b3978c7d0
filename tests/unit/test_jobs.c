/* SPDX-License-Identifier: MIT */

#include "jobs/jobs.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

#define JOBS_MAX  400
#define PLACES	  3
#define MS	  1000000LL
#define CODE(n)	  ((n) << 8)
#define SIGNAL(n) (n)

static struct jobs *jobs;
static struct job all[JOBS_MAX];
static int64_t now;

/* What the owner was asked for, per job. */
static struct {
	int spawned, signals, last_signal, kills, changes, settled;
	enum job_state last;
} seen[JOBS_MAX];
static int spawn_error;

static size_t
index_of(const struct job *job)
{
	return (size_t)(job - all);
}

static int
on_spawn(struct job *job, void *data)
{
	(void)data;
	seen[index_of(job)].spawned++;
	return spawn_error;
}

static void
on_signal(struct job *job, int signal, void *data)
{
	(void)data;
	seen[index_of(job)].signals++;
	seen[index_of(job)].last_signal = signal;
}

static void
on_kill(struct job *job, void *data)
{
	(void)data;
	seen[index_of(job)].kills++;
}

static void
on_changed(struct job *job, void *data)
{
	(void)data;
	seen[index_of(job)].changes++;
	seen[index_of(job)].last = job->state;
	if (job_state_is_final(job->state))
		seen[index_of(job)].settled++;
}

static int64_t
on_now(void *data)
{
	(void)data;
	return now;
}

static const struct jobs_ops ops = { on_spawn, on_signal, on_kill, on_changed,
				     on_now };
static const struct jobs_limits limits = { PLACES, 300 };

static void
setup(void)
{
	memset(all, 0, sizeof(all));
	memset(seen, 0, sizeof(seen));
	now = 1000 * MS;
	spawn_error = 0;
	ck_assert_int_eq(jobs_new(&limits, &ops, NULL, &jobs), 0);
}

static void
teardown(void)
{
	jobs = jobs_free(jobs);
	for (size_t i = 0; i < JOBS_MAX; i++)
		free(all[i].reason);
}

static struct job *
add(size_t i)
{
	all[i].id = i + 1;
	ck_assert_int_eq(jobs_admit(jobs, true), 0);
	ck_assert_int_eq(jobs_add(jobs, &all[i]), 0);
	return &all[i];
}

static struct job *
run(size_t i)
{
	struct job *job = add(i);

	jobs_started(jobs, job, 100 + (pid_t)i);
	ck_assert_int_eq(job->state, JOB_RUNNING);
	return job;
}

static void
pass(int64_t ms)
{
	now += ms * MS;
	jobs_tick(jobs);
}

static void
end(struct job *job, int status)
{
	jobs_ended(jobs, job, status);
	jobs_written(jobs, job);
}

static void
status_is(const struct job *job, const char *want)
{
	char text[128];

	(void)job_status_text(job, text, sizeof(text));
	ck_assert_str_eq(text, want);
}

/* ---- the table ---- */

START_TEST(every_pair_is_decided)
{
	for (int s = 0; s < JOB_STATE_COUNT; s++)
		for (int e = 0; e < JOB_EVENT_COUNT; e++) {
			struct job_step step =
				job_step((enum job_state)s, (enum job_event)e);
			bool final = job_state_is_final((enum job_state)s);

			/* A row left out would lead to `queued`, silently. */
			if (step.next == JOB_QUEUED)
				ck_assert_int_eq(s, JOB_QUEUED);
			if (final)
				ck_assert_int_eq((int)step.next, s);
			if (step.action == JOB_DO_NEVER ||
			    step.action == JOB_DO_NOTHING)
				ck_assert_int_eq((int)step.next, s);
		}
}
END_TEST

START_TEST(states_have_names)
{
	enum job_state state;

	for (int s = 0; s < JOB_STATE_COUNT; s++) {
		ck_assert_int_eq(
			job_state_parse(job_state_name((enum job_state)s),
					&state),
			0);
		ck_assert_str_eq(job_state_name(state),
				 job_state_name((enum job_state)s));
	}
	ck_assert_int_eq(job_state_parse("dead", &state), -EINVAL);
}
END_TEST

/* ---- one job ---- */

START_TEST(a_job_comes_to_its_end)
{
	struct job *job = add(0);

	status_is(job, "queued");
	jobs_started(jobs, job, 7);
	status_is(job, "running 7");
	jobs_ended(jobs, job, CODE(3));
	status_is(job, "draining");
	ck_assert_int_eq(seen[0].settled, 0);
	jobs_written(jobs, job);
	status_is(job, "exited 3");
	ck_assert(!job->output_open);
	ck_assert_int_eq(seen[0].settled, 1);
	ck_assert_int_eq(jobs_stop(jobs, job, SIGTERM, 3000), 0);
	ck_assert_int_eq(seen[0].last_signal, SIGTERM);
	jobs_gone(jobs, job);
	ck_assert_int_eq(jobs_stop(jobs, job, SIGTERM, 3000), -EALREADY);
	status_is(job, "exited 3");
	ck_assert(!job->stop_requested);
	ck_assert_int_eq(jobs_running(jobs), 0);
}
END_TEST

START_TEST(output_that_stays_open_is_awaited_half_a_second)
{
	struct job *job = run(0);

	jobs_ended(jobs, job, SIGNAL(SIGSEGV));
	ck_assert_int_eq(jobs_deadline(jobs), now + JOBS_DRAIN_NS);
	pass(499);
	status_is(job, "draining");
	pass(1);
	status_is(job, "killed 11");
	ck_assert(job->output_open);
	jobs_written(jobs, job);
	ck_assert(job->output_open);
	ck_assert_int_eq(seen[0].settled, 1);
}
END_TEST

START_TEST(a_stop_is_polite_first)
{
	struct job *job = run(0);

	ck_assert_int_eq(jobs_stop(jobs, job, SIGTERM, 3000), 0);
	status_is(job, "stopping 100");
	ck_assert_int_eq(seen[0].last_signal, SIGTERM);
	pass(2999);
	ck_assert_int_eq(seen[0].kills, 0);
	pass(1);
	ck_assert_int_eq(seen[0].kills, 1);
	end(job, SIGNAL(SIGKILL));
	status_is(job, "killed 9");
	ck_assert(job->stop_requested);

	/* One that asks again has no patience. */
	job = run(1);
	ck_assert_int_eq(jobs_stop(jobs, job, SIGTERM, 3000), 0);
	ck_assert_int_eq(jobs_stop(jobs, job, SIGTERM, 3000), 0);
	ck_assert_int_eq(seen[1].kills, 1);
	end(job, CODE(4));
	status_is(job, "exited 4");
	ck_assert(job->stop_requested);
}
END_TEST

START_TEST(what_ignores_the_stop_outlives_its_parent_for_the_grace_only)
{
	struct job *job = run(0);

	(void)jobs_stop(jobs, job, SIGTERM, 1000);
	end(job, CODE(0));
	status_is(job, "exited 0");
	ck_assert_int_eq(seen[0].kills, 0);
	pass(1000);
	ck_assert_int_eq(seen[0].kills, 1);
	jobs_gone(jobs, job);
	ck_assert_int_eq(jobs_deadline(jobs), JOBS_NEVER);
}
END_TEST

START_TEST(a_stop_before_the_start_is_not_forgotten)
{
	struct job *job = add(0);

	ck_assert_int_eq(jobs_stop(jobs, job, SIGTERM, 3000), 0);
	ck_assert_int_eq(seen[0].signals, 0);
	jobs_started(jobs, job, 7);
	status_is(job, "stopping 7");
	ck_assert_int_eq(seen[0].signals, 1);
}
END_TEST

START_TEST(the_clock_runs_from_the_start_and_the_first_cause_stays)
{
	struct job *job = &all[0];

	job->timeout_ms = 100;
	job = add(0);
	pass(500);
	jobs_started(jobs, job, 7);
	pass(99);
	status_is(job, "running 7");
	pass(1);
	status_is(job, "stopping 7");
	ck_assert_int_eq(seen[0].last_signal, SIGTERM);
	/* Whatever it says in the end, its time was over. */
	end(job, CODE(0));
	status_is(job, "timed_out");
	ck_assert(!job->stop_requested);

	all[1].timeout_ms = 100;
	job = run(1);
	(void)jobs_stop(jobs, job, SIGTERM, 3000);
	pass(200);
	end(job, SIGNAL(SIGTERM));
	status_is(job, "killed 15");
}
END_TEST

START_TEST(a_job_that_cannot_start_has_failed)
{
	struct job *job = add(0);

	jobs_refused(jobs, job, -ENOENT, true, "no such program");
	status_is(job, "failed no such program");
	ck_assert(job->by_exec);
	ck_assert(!job->may_execute);
	spawn_error = -EPIPE;
	job = add(1);
	status_is(job, "failed Broken pipe");
	ck_assert_int_eq(jobs_running(jobs), 0);
}
END_TEST

START_TEST(one_that_fails_is_tried_again)
{
	struct job *job = &all[0];

	job->retry = 2;
	job = run(0);
	end(job, CODE(1));
	status_is(job, "queued");
	ck_assert_int_eq(seen[0].settled, 0);
	jobs_started(jobs, job, 8);
	end(job, SIGNAL(SIGABRT));
	jobs_started(jobs, job, 9);
	end(job, CODE(5));
	status_is(job, "exited 5");
	ck_assert_uint_eq(job->attempt, 3);
	ck_assert_int_eq(seen[0].spawned, 3);

	/* One that is stopped is not. */
	all[1].retry = 2;
	job = run(1);
	(void)jobs_stop(jobs, job, SIGTERM, 1);
	end(job, CODE(1));
	status_is(job, "exited 1");
	/* Nor one that ended well. */
	all[2].retry = 2;
	job = run(2);
	end(job, CODE(0));
	status_is(job, "exited 0");
}
END_TEST

/* ---- many ---- */

START_TEST(places_go_by_id)
{
	for (size_t i = 0; i < 8; i++)
		(void)add(i < 6 ? i : 13 - i);
	ck_assert_uint_eq(jobs_running(jobs), PLACES);
	for (size_t i = 0; i < 8; i++) {
		ck_assert_int_eq(seen[i].spawned, i < PLACES + i ? 1 : 0);
		jobs_started(jobs, &all[i], 100);
		end(&all[i], CODE(0));
		jobs_gone(jobs, &all[i]);
		ck_assert_uint_le(jobs_running(jobs), PLACES);
	}
	ck_assert_ptr_eq(jobs_at(jobs, 6), &all[6]);
	ck_assert_ptr_eq(jobs_find(jobs, 7), &all[6]);
	ck_assert_ptr_null(jobs_find(jobs, 9));
}
END_TEST

START_TEST(who_does_not_wait_is_refused_when_all_places_are_taken)
{
	for (size_t i = 0; i < PLACES; i++) {
		ck_assert_int_eq(jobs_admit(jobs, false), 0);
		all[i].id = i + 1;
		if (i > 0)
			ck_assert_int_eq(jobs_add(jobs, &all[i]), 0);
	}
	/* One of them is still on its way. */
	ck_assert_int_eq(jobs_admit(jobs, false), -EAGAIN);
	ck_assert_int_eq(jobs_admit(jobs, true), 0);
	jobs_give_up(jobs);
	jobs_give_up(jobs);
	ck_assert_int_eq(jobs_admit(jobs, false), 0);
	jobs_give_up(jobs);
	for (size_t i = PLACES; i < PLACES + 301; i++)
		(void)add(i);
	ck_assert_int_eq(jobs_admit(jobs, true), -ENOBUFS);
}
END_TEST

START_TEST(one_waits_for_another_to_end_well)
{
	struct job *first = run(0);

	all[1].after = 1;
	all[2].after = 2;
	all[3].after = 1;
	(void)add(1);
	(void)add(2);
	ck_assert_int_eq(seen[1].spawned, 0);
	end(first, CODE(0));
	ck_assert_int_eq(seen[1].spawned, 1);
	ck_assert_int_eq(seen[2].spawned, 0);
	/* Late, when the first is over. */
	(void)add(3);
	ck_assert_int_eq(seen[3].spawned, 1);
	jobs_started(jobs, &all[1], 9);
	end(&all[1], CODE(1));
	status_is(&all[2], "failed j2 did not end well");

	/* And so on down a chain. */
	all[4].after = 3;
	status_is(add(4), "failed j3 did not end well");
}
END_TEST

START_TEST(a_waiting_job_can_be_cancelled)
{
	for (size_t i = 0; i <= PLACES; i++)
		(void)add(i);
	ck_assert_int_eq(jobs_stop(jobs, &all[PLACES], SIGTERM, 3000), 0);
	status_is(&all[PLACES], "killed 15");
	ck_assert_int_eq(seen[PLACES].spawned, 0);
	ck_assert_int_eq(jobs_stop(jobs, &all[PLACES], SIGTERM, 3000),
			 -EALREADY);
}
END_TEST

START_TEST(the_end_of_the_world_settles_everything)
{
	(void)run(0);
	(void)run(1);
	(void)add(2);
	(void)add(3);
	jobs_ended(jobs, &all[1], CODE(6));
	jobs_close(jobs);
	status_is(&all[0], "killed 9");
	status_is(&all[1], "exited 6");
	status_is(&all[2], "killed 9");
	status_is(&all[3], "killed 9");
	ck_assert_int_eq(seen[3].spawned, 0);
	jobs_ended(jobs, &all[0], CODE(0));
	status_is(&all[0], "killed 9");
	ck_assert_int_eq(jobs_admit(jobs, true), -ESHUTDOWN);
}
END_TEST

START_TEST(a_settled_job_can_be_forgotten)
{
	(void)run(0);
	end(run(1), CODE(0));
	jobs_forget(jobs, &all[1]);
	ck_assert_uint_eq(jobs_count(jobs), 1);
	ck_assert_ptr_null(jobs_find(jobs, 2));
	ck_assert_int_eq(jobs_deadline(jobs), JOBS_NEVER);
}
END_TEST

/* ---- anything at all ---- */

static void
do_something(struct job *job, unsigned int *seed)
{
	switch (rand_r(seed) % 8) {
	case 0:
	case 1:
		if (job->state == JOB_STARTING)
			jobs_started(jobs, job, 50);
		break;
	case 2:
		jobs_refused(jobs, job, -EACCES, true, "no");
		break;
	case 3:
	case 4:
		if (job->pid && !job->ended)
			jobs_ended(jobs, job, CODE(rand_r(seed) % 2));
		break;
	case 5:
		if (job->pid)
			jobs_written(jobs, job);
		break;
	case 6:
		if (job->ended && job->tree_alive)
			jobs_gone(jobs, job);
		break;
	default:
		if (rand_r(seed) % 4 == 0)
			(void)jobs_stop(jobs, job, SIGTERM, 20);
		break;
	}
}

START_TEST(any_history_keeps_what_was_promised)
{
	unsigned int seed = (unsigned int)_i + 1;
	size_t n = 0;

	for (int step = 0; step < 5000; step++) {
		if (n < JOBS_MAX && rand_r(&seed) % 4 == 0 &&
		    jobs_admit(jobs, true) == 0) {
			struct job *job = &all[n];

			job->id = ++n;
			job->retry = (unsigned int)rand_r(&seed) % 2;
			job->timeout_ms = rand_r(&seed) % 3 ? 0 : 30;
			if (rand_r(&seed) % 3 == 0)
				job->after = (uint64_t)rand_r(&seed) % n + 1;
			if (job->after == job->id)
				job->after = 0;
			ck_assert_int_eq(jobs_add(jobs, job), 0);
		}
		if (n > 0)
			do_something(&all[(size_t)rand_r(&seed) % n], &seed);
		if (rand_r(&seed) % 3 == 0)
			pass(rand_r(&seed) % 10);
		if (jobs_running(jobs) > PLACES)
			ck_abort_msg("too many run");
	}
	jobs_close(jobs);
	for (size_t i = 0; i < n; i++) {
		ck_assert(job_state_is_final(all[i].state));
		ck_assert_int_eq(seen[i].settled, 1);
		ck_assert_int_eq((int)seen[i].last, (int)all[i].state);
		ck_assert_int_le(seen[i].spawned, (int)all[i].retry + 1);
		if (all[i].state == JOB_EXITED)
			ck_assert_int_eq(all[i].value, all[i].status >> 8);
	}
	ck_assert_uint_eq(jobs_running(jobs), 0);
}
END_TEST

int
main(void)
{
	TCase *tc = tcase_create("jobs");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, every_pair_is_decided);
	tcase_add_test(tc, states_have_names);
	tcase_add_test(tc, a_job_comes_to_its_end);
	tcase_add_test(tc, output_that_stays_open_is_awaited_half_a_second);
	tcase_add_test(tc, a_stop_is_polite_first);
	tcase_add_test(
		tc,
		what_ignores_the_stop_outlives_its_parent_for_the_grace_only);
	tcase_add_test(tc, a_stop_before_the_start_is_not_forgotten);
	tcase_add_test(tc,
		       the_clock_runs_from_the_start_and_the_first_cause_stays);
	tcase_add_test(tc, a_job_that_cannot_start_has_failed);
	tcase_add_test(tc, one_that_fails_is_tried_again);
	tcase_add_test(tc, places_go_by_id);
	tcase_add_test(tc,
		       who_does_not_wait_is_refused_when_all_places_are_taken);
	tcase_add_test(tc, one_waits_for_another_to_end_well);
	tcase_add_test(tc, a_waiting_job_can_be_cancelled);
	tcase_add_test(tc, the_end_of_the_world_settles_everything);
	tcase_add_test(tc, a_settled_job_can_be_forgotten);
	tcase_add_loop_test(tc, any_history_keeps_what_was_promised, 0, 50);
	return suite_run("jobs", tc);
}
