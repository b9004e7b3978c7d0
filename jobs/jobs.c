/* SPDX-License-Identifier: MIT */

/*
 * All jobs are in `all`, in order of their ids, which only grow; those that
 * wait for a place are in `queue`, in the same order; those that have
 * something to be timed, or anything alive, are in `live`.
 *
 * Every event goes through apply(), which looks the step up in the table,
 * enters the new state and then acts: an action that leads to further events
 * (a refusal, a place that came free) finds the state entered.
 */

#include "jobs/jobs.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define NS_PER_MS 1000000LL

TAILQ_HEAD(job_list, job);

struct jobs {
	struct jobs_limits limits;
	const struct jobs_ops *ops;
	void *data;
	struct job **all;
	size_t count, room;
	struct job_list queue, live;
	size_t running;	 /* places taken by jobs */
	size_t waiting;	 /* length of queue */
	size_t admitted; /* on their way to jobs_add() */
	size_t others;	 /* places that are not ours to give */
	bool filling, closed;
};

static void apply(struct jobs *jobs, struct job *job, enum job_event event);

/* ---- the set ---- */

int
jobs_new(const struct jobs_limits *limits, const struct jobs_ops *ops,
	 void *data, struct jobs **ret_jobs)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs)
		return -ENOMEM;
	jobs->limits = *limits;
	jobs->ops = ops;
	jobs->data = data;
	TAILQ_INIT(&jobs->queue);
	TAILQ_INIT(&jobs->live);
	*ret_jobs = jobs;
	return 0;
}

struct jobs *
jobs_free(struct jobs *jobs)
{
	if (!jobs)
		return NULL;
	free(jobs->all);
	free(jobs);
	return NULL;
}

/* The index of the first job whose id is not below `id`. */
static size_t
lower_bound(const struct jobs *jobs, uint64_t id)
{
	size_t low = 0, high = jobs->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (jobs->all[mid]->id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct job *
jobs_find(const struct jobs *jobs, uint64_t id)
{
	size_t i = lower_bound(jobs, id);

	return i < jobs->count && jobs->all[i]->id == id ? jobs->all[i] : NULL;
}

struct job *
jobs_at(const struct jobs *jobs, size_t index)
{
	return index < jobs->count ? jobs->all[index] : NULL;
}

struct job *
jobs_after(const struct jobs *jobs, uint64_t id)
{
	return id == UINT64_MAX ? NULL
				: jobs_at(jobs, lower_bound(jobs, id + 1));
}

size_t
jobs_count(const struct jobs *jobs)
{
	return jobs->count;
}

size_t
jobs_running(const struct jobs *jobs)
{
	return jobs->running;
}

const struct jobs_limits *
jobs_limits(const struct jobs *jobs)
{
	return &jobs->limits;
}

static int
insert(struct jobs *jobs, struct job *job)
{
	size_t at;

	if (jobs->count == jobs->room) {
		size_t room = jobs->room ? jobs->room * 2 : 16;
		struct job **all =
			realloc(jobs->all, room * sizeof(struct job *));

		if (!all)
			return -ENOMEM;
		jobs->all = all;
		jobs->room = room;
	}
	at = lower_bound(jobs, job->id);
	memmove(&jobs->all[at + 1], &jobs->all[at],
		(jobs->count - at) * sizeof(struct job *));
	jobs->all[at] = job;
	jobs->count++;
	return 0;
}

/* Ids come from a store that many use: they may come out of order. */
static void
enqueue(struct jobs *jobs, struct job *job)
{
	struct job *before = TAILQ_LAST(&jobs->queue, job_list);

	while (before && before->id > job->id)
		before = TAILQ_PREV(before, job_list, waiting);
	if (before)
		TAILQ_INSERT_AFTER(&jobs->queue, before, job, waiting);
	else
		TAILQ_INSERT_HEAD(&jobs->queue, job, waiting);
	job->is_waiting = true;
	jobs->waiting++;
}

/* Keeps the lists and the places in step with the state. */
static void
enter(struct jobs *jobs, struct job *job, enum job_state state)
{
	bool had = job_state_has_place(job->state);
	bool has = job_state_has_place(state);
	bool live = has || job->tree_alive;

	job->state = state;
	jobs->running += (size_t)has - (size_t)had;
	if (job->is_waiting != (state == JOB_QUEUED)) {
		if (!job->is_waiting) {
			enqueue(jobs, job);
		} else {
			TAILQ_REMOVE(&jobs->queue, job, waiting);
			job->is_waiting = false;
			jobs->waiting--;
		}
	}
	if (live != job->is_live) {
		if (live)
			TAILQ_INSERT_TAIL(&jobs->live, job, live);
		else
			TAILQ_REMOVE(&jobs->live, job, live);
		job->is_live = live;
	}
}

/* ---- the queue ---- */

bool
job_ended_well(const struct job *job)
{
	return job->state == JOB_EXITED && job->value == 0;
}

static void
say(struct job *job, const char *text)
{
	free(job->reason);
	job->reason = text ? strdup(text) : NULL;
}

/* 1: its turn may come; 0: not yet; −1: never. */
static int
may_run(const struct jobs *jobs, struct job *job)
{
	const struct job *other;
	char text[64];

	if (!job->after)
		return 1;
	other = jobs_find(jobs, job->after);
	if (other && !job_state_is_final(other->state))
		return 0;
	if (other && job_ended_well(other))
		return 1;
	(void)snprintf(text, sizeof(text), "j%llu did not end well",
		       (unsigned long long)job->after);
	say(job, text);
	return -1;
}

/*
 * Gives free places away.  Whatever that leads to comes back here: once is
 * enough, since the outer call starts over.
 */
static void
fill_places(struct jobs *jobs)
{
	struct job *job, *next;
	bool again = true;

	if (jobs->filling || jobs->closed)
		return;
	jobs->filling = true;
	while (again) {
		again = false;
		for (job = TAILQ_FIRST(&jobs->queue); job; job = next) {
			int may;

			next = TAILQ_NEXT(job, waiting);
			if (jobs->running + jobs->others >=
			    jobs->limits.running)
				break;
			may = may_run(jobs, job);
			if (may == 0)
				continue;
			apply(jobs, job,
			      may > 0 ? JOB_EV_PLACE : JOB_EV_REFUSED);
			/* Others may have waited for just this one to fail. */
			again = again || job_state_is_final(job->state);
		}
	}
	jobs->filling = false;
}

size_t
jobs_taken(const struct jobs *jobs)
{
	return jobs->running + jobs->waiting + jobs->admitted;
}

bool
jobs_some_wait(const struct jobs *jobs)
{
	return jobs->waiting > 0;
}

bool
jobs_wait_for_others(const struct jobs *jobs)
{
	return jobs->others > 0 && jobs->waiting > 0 &&
	       jobs->running < jobs->limits.running;
}

void
jobs_set_others(struct jobs *jobs, size_t others)
{
	bool fewer = others < jobs->others;

	jobs->others = others;
	if (fewer)
		fill_places(jobs);
}

int
jobs_admit(struct jobs *jobs, bool queue)
{
	size_t taken = jobs_taken(jobs);

	if (jobs->closed)
		return -ESHUTDOWN;
	if (!queue && taken >= jobs->limits.running)
		return -EAGAIN;
	if (taken >= jobs->limits.running + jobs->limits.queued)
		return -ENOBUFS;
	jobs->admitted++;
	return 0;
}

void
jobs_give_up(struct jobs *jobs)
{
	assert(jobs->admitted > 0);
	jobs->admitted--;
}

int
jobs_add(struct jobs *jobs, struct job *job)
{
	int r = insert(jobs, job);

	if (r < 0)
		return r;
	jobs_give_up(jobs);
	job->state = JOB_QUEUED;
	enter(jobs, job, JOB_QUEUED);
	if (jobs->closed)
		apply(jobs, job, JOB_EV_CLOSE);
	else
		fill_places(jobs);
	return 0;
}

void
jobs_forget(struct jobs *jobs, struct job *job)
{
	size_t at = lower_bound(jobs, job->id);

	assert(job_state_is_final(job->state));
	assert(at < jobs->count && jobs->all[at] == job);
	job->tree_alive = false;
	enter(jobs, job, job->state);
	jobs->count--;
	memmove(&jobs->all[at], &jobs->all[at + 1],
		(jobs->count - at) * sizeof(struct job *));
}

/* ---- what follows ---- */

static void
publish(struct jobs *jobs, struct job *job)
{
	if (job_state_is_final(job->state)) {
		job->timeout_at = job->drain_at = 0;
		if (!job->tree_alive)
			job->grace_at = 0;
	}
	jobs->ops->changed(job, jobs->data);
}

static void
send_kill(struct jobs *jobs, struct job *job)
{
	job->grace_at = 0;
	job->kill_sent = true;
	jobs->ops->kill(job, jobs->data);
}

static void
send_term(struct jobs *jobs, struct job *job)
{
	if (job->stop_signal == SIGKILL || job->grace_ms == 0 ||
	    job->term_sent) {
		send_kill(jobs, job);
		return;
	}
	job->term_sent = true;
	job->grace_at =
		jobs->ops->now(jobs->data) + (int64_t)job->grace_ms * NS_PER_MS;
	jobs->ops->signal(job, job->stop_signal, jobs->data);
}

static void
do_spawn(struct jobs *jobs, struct job *job)
{
	int r;

	job->attempt++;
	job->ended = job->written = job->term_sent = job->kill_sent = false;
	job->timeout_at = job->grace_at = job->drain_at = 0;
	job->pid = 0;
	r = jobs->ops->spawn(job, jobs->data);
	if (r < 0) {
		say(job, strerror(-r));
		apply(jobs, job, JOB_EV_REFUSED);
	}
}

static void
do_run(struct jobs *jobs, struct job *job)
{
	job->started_ns = jobs->ops->now(jobs->data);
	if (job->timeout_ms > 0)
		job->timeout_at =
			job->started_ns + (int64_t)job->timeout_ms * NS_PER_MS;
	publish(jobs, job);
	if (job->stop_wanted)
		apply(jobs, job, JOB_EV_STOP);
}

static void
do_await(struct jobs *jobs, struct job *job)
{
	job->timeout_at = 0;
	job->drain_at = jobs->ops->now(jobs->data) + JOBS_DRAIN_NS;
	if (job->written)
		apply(jobs, job, JOB_EV_WRITTEN);
}

static void
do_settle(struct jobs *jobs, struct job *job)
{
	bool well = WIFEXITED(job->status) && WEXITSTATUS(job->status) == 0;
	enum job_state state = JOB_EXITED;

	job->output_open = !job->written;
	if (!well && !job->stop_requested && !jobs->closed &&
	    job->attempt <= job->retry) {
		/* What the attempt left behind would mix with the next. */
		if (job->tree_alive)
			send_kill(jobs, job);
		job->timed_out = job->output_open = false;
		enter(jobs, job, JOB_QUEUED);
		publish(jobs, job);
		fill_places(jobs);
		return;
	}
	job->value = WIFSIGNALED(job->status) ? WTERMSIG(job->status)
					      : WEXITSTATUS(job->status);
	if (job->timed_out)
		state = JOB_TIMED_OUT;
	else if (WIFSIGNALED(job->status))
		state = JOB_KILLED;
	enter(jobs, job, state);
	publish(jobs, job);
	fill_places(jobs);
}

static void
do_cut(struct jobs *jobs, struct job *job)
{
	job->stop_requested = true;
	job->value = SIGKILL;
	say(job, "the world ended");
	send_kill(jobs, job);
	publish(jobs, job);
}

static void
do_cancel(struct jobs *jobs, struct job *job)
{
	job->stop_requested = true;
	job->value = job->stop_signal ? job->stop_signal : SIGKILL;
	say(job, jobs->closed ? "the world ended before it began"
			      : "it had not begun");
	publish(jobs, job);
	fill_places(jobs);
}

static void
act(struct jobs *jobs, struct job *job, enum job_action action)
{
	switch (action) {
	case JOB_DO_NOTHING:
	case JOB_DO_NEVER:
	case JOB_DO_NOTE:
		break;
	case JOB_DO_SPAWN:
		do_spawn(jobs, job);
		break;
	case JOB_DO_RUN:
		do_run(jobs, job);
		break;
	case JOB_DO_REMEMBER:
		job->stop_wanted = true;
		break;
	case JOB_DO_TERM:
		publish(jobs, job);
		send_term(jobs, job);
		break;
	case JOB_DO_KILL:
		send_kill(jobs, job);
		break;
	case JOB_DO_SWEEP:
		if (job->tree_alive)
			send_term(jobs, job);
		break;
	case JOB_DO_AWAIT:
		do_await(jobs, job);
		break;
	case JOB_DO_CANCEL:
		do_cancel(jobs, job);
		break;
	case JOB_DO_FAIL:
		publish(jobs, job);
		fill_places(jobs);
		break;
	case JOB_DO_SETTLE:
		do_settle(jobs, job);
		break;
	case JOB_DO_CUT:
		do_cut(jobs, job);
		break;
	}
}

static void
apply(struct jobs *jobs, struct job *job, enum job_event event)
{
	struct job_step step = job_step(job->state, event);

	/* The state that SETTLE leads to is for do_settle() to find. */
	if (step.action != JOB_DO_SETTLE)
		enter(jobs, job, step.next);
	act(jobs, job, step.action);
}

/* ---- what happened ---- */

void
jobs_started(struct jobs *jobs, struct job *job, pid_t pid)
{
	job->pid = pid;
	job->tree_alive = true;
	apply(jobs, job, JOB_EV_STARTED);
}

void
jobs_refused(struct jobs *jobs, struct job *job, int error, bool by_exec,
	     const char *why)
{
	if (job->state != JOB_STARTING)
		return;
	job->by_exec = by_exec;
	job->may_execute = error != -ENOENT && error != -ENOTDIR;
	say(job, why && *why ? why : strerror(-error));
	apply(jobs, job, JOB_EV_REFUSED);
}

void
jobs_ended(struct jobs *jobs, struct job *job, int status)
{
	if (!job->ended)
		job->status = status;
	job->ended = true;
	apply(jobs, job, JOB_EV_ENDED);
}

void
jobs_written(struct jobs *jobs, struct job *job)
{
	if (job->written)
		return;
	job->written = true;
	apply(jobs, job, JOB_EV_WRITTEN);
}

void
jobs_gone(struct jobs *jobs, struct job *job)
{
	job->tree_alive = false;
	job->grace_at = 0;
	apply(jobs, job, JOB_EV_GONE);
}

int
jobs_stop(struct jobs *jobs, struct job *job, int signal, uint64_t grace_ms)
{
	bool final = job_state_is_final(job->state);

	if (final && !job->tree_alive)
		return -EALREADY;
	job->stop_signal = signal;
	job->grace_ms = grace_ms;
	/* What ended without us is not said to have been stopped. */
	if (!final && job->state != JOB_DRAINING)
		job->stop_requested = true;
	apply(jobs, job, JOB_EV_STOP);
	return 0;
}

void
jobs_close(struct jobs *jobs)
{
	jobs->closed = true;
	for (size_t i = 0; i < jobs->count; i++) {
		struct job *job = jobs->all[i];

		if (!job_state_is_final(job->state))
			apply(jobs, job, JOB_EV_CLOSE);
	}
}

/* ---- time ---- */

static int64_t
sooner(int64_t one, int64_t other)
{
	return other != 0 && other < one ? other : one;
}

static int64_t
deadline_of(const struct job *job)
{
	int64_t at = JOBS_NEVER;

	at = sooner(at, job->timeout_at);
	at = sooner(at, job->grace_at);
	return sooner(at, job->drain_at);
}

int64_t
jobs_deadline(const struct jobs *jobs)
{
	int64_t at = JOBS_NEVER;
	const struct job *job;

	TAILQ_FOREACH(job, &jobs->live, live)
	at = sooner(at, deadline_of(job));
	return at;
}

static void
tick(struct jobs *jobs, struct job *job, int64_t now)
{
	if (job->timeout_at && job->timeout_at <= now) {
		job->timeout_at = 0;
		if (job->state == JOB_RUNNING) {
			job->timed_out = true;
			job->stop_signal = SIGTERM;
			job->grace_ms = 3000;
		}
		apply(jobs, job, JOB_EV_TIMEOUT);
	}
	if (job->grace_at && job->grace_at <= now) {
		job->grace_at = 0;
		apply(jobs, job, JOB_EV_GRACE);
	}
	if (job->drain_at && job->drain_at <= now) {
		job->drain_at = 0;
		if (job->state == JOB_DRAINING)
			apply(jobs, job, JOB_EV_WRITTEN);
	}
}

void
jobs_tick(struct jobs *jobs)
{
	int64_t now = jobs->ops->now(jobs->data);
	struct job *job, *next;

	for (job = TAILQ_FIRST(&jobs->live); job; job = next) {
		next = TAILQ_NEXT(job, live);
		if (deadline_of(job) <= now)
			tick(jobs, job, now);
	}
}

/* ---- in words ---- */

int
job_status_text(const struct job *job, char *text, size_t size)
{
	const char *name = job_state_name(job->state);

	switch (job->state) {
	case JOB_RUNNING:
	case JOB_STOPPING:
		return snprintf(text, size, "%s %d", name, (int)job->pid);
	case JOB_EXITED:
	case JOB_KILLED:
		return snprintf(text, size, "%s %d", name, job->value);
	case JOB_FAILED:
		return snprintf(text, size, "%s %s", name,
				job->reason ? job->reason : "");
	case JOB_QUEUED:
	case JOB_STARTING:
	case JOB_DRAINING:
	case JOB_TIMED_OUT:
	case JOB_LOST:
	case JOB_STATE_COUNT:
		break;
	}
	return snprintf(text, size, "%s", name);
}
