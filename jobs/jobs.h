/* SPDX-License-Identifier: MIT */
#ifndef JOBS_JOBS_H
#define JOBS_JOBS_H

/*
 * The jobs of one world: which may run, which wait, when one's time is over,
 * and what each came to.
 *
 * This module starts no process, keeps no file and has no clock: its owner
 * does that through `struct jobs_ops`, tells what happened by the functions
 * below, and calls jobs_tick() when jobs_deadline() has come.  A job settles
 * once: whatever comes later changes nothing that was said.
 *
 * Thread: the owner's (the loop).
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "jobs/state.h"

/* How long an ended command's output is waited for. */
#define JOBS_DRAIN_NS 500000000LL

/* From asking it to end to SIGKILL, where nobody says, and at most. */
#define JOBS_GRACE_MS	  3000
#define JOBS_GRACE_MAX_MS 600000
/* For SIGKILL to have done its work. */
#define JOBS_KILL_MS 10000

#define JOBS_NEVER INT64_MAX

struct jobs;

/* A zeroed struct with an id is a job; the owner's until jobs_add(). */
struct job {
	/* Set before jobs_add(), never changed by this module. */
	uint64_t id;
	uint64_t after;	     /* runs when that one ended well; 0: at once */
	uint64_t timeout_ms; /* 0: none */
	unsigned int retry;  /* how often it is started again */
	void *data;

	/* What became of it; for the owner to read. */
	enum job_state state;
	int value;    /* EXITED: the code; KILLED: the signal */
	char *reason; /* in words; NULL: none */
	pid_t pid;
	unsigned int attempt; /* 1 is the first */
	bool stop_requested, output_open;
	bool by_exec;	    /* FAILED: the program is not there */
	bool may_execute;   /* FAILED: it is there and is no program */
	int64_t started_ns; /* by the owner's clock, the last attempt */
	int64_t ended_ns;   /* settled */
	bool tree_alive;    /* something of it may live */

	/* This module's own. */
	int status;
	int stop_signal;
	uint64_t grace_ms;
	bool ended, written, timed_out, stop_wanted, term_sent, kill_sent;
	int64_t timeout_at, grace_at, drain_at;
	bool is_waiting, is_live;
	TAILQ_ENTRY(job) waiting, live;
};

struct jobs_ops {
	/*
	 * Starts it; jobs_started() or jobs_refused() follows, not from
	 * within.  An error is a refusal.
	 */
	int (*spawn)(struct job *job, void *data);
	void (*signal)(struct job *job, int signal, void *data);
	void (*kill)(struct job *job, void *data);
	/* It is in another state.  The owner must not free it from within. */
	void (*changed)(struct job *job, void *data);
	int64_t (*now)(void *data); /* monotonic, ns */
};

struct jobs_limits {
	size_t running; /* places */
	size_t queued;	/* that wait for one */
};

int jobs_new(const struct jobs_limits *limits, const struct jobs_ops *ops,
	     void *data, struct jobs **ret_jobs);
/* The jobs themselves are the owner's.  Returns NULL. */
struct jobs *jobs_free(struct jobs *jobs);

/*
 * Whether one more may come; it then has its place among the limits until
 * jobs_add() or jobs_give_up().  `queue`: it may wait.
 * -EAGAIN: all places are taken; -ENOBUFS: too many wait.
 */
int jobs_admit(struct jobs *jobs, bool queue);
/* How many have, or want, a place now, with those on their way. */
size_t jobs_taken(const struct jobs *jobs);
void jobs_give_up(struct jobs *jobs);

/* Takes an admitted job and starts it when its turn has come.  -ENOMEM. */
int jobs_add(struct jobs *jobs, struct job *job);
/* Forgets a settled job; it is the owner's again. */
void jobs_forget(struct jobs *jobs, struct job *job);

struct job *jobs_find(const struct jobs *jobs, uint64_t id);
/* The first above `id`; NULL: no more. */
struct job *jobs_after(const struct jobs *jobs, uint64_t id);
/* In order of ids; NULL: no more. */
struct job *jobs_at(const struct jobs *jobs, size_t index);
size_t jobs_count(const struct jobs *jobs);
size_t jobs_running(const struct jobs *jobs);
const struct jobs_limits *jobs_limits(const struct jobs *jobs);
bool jobs_some_wait(const struct jobs *jobs);
/* Whether one waits though there is a place for it among our own. */
bool jobs_wait_for_others(const struct jobs *jobs);
/* How many of the places others have. */
void jobs_set_others(struct jobs *jobs, size_t others);

/* ---- what happened ---- */

void jobs_started(struct jobs *jobs, struct job *job, pid_t pid);
/* `error`: a negative errno. */
void jobs_refused(struct jobs *jobs, struct job *job, int error, bool by_exec,
		  const char *why);
void jobs_ended(struct jobs *jobs, struct job *job, int status);
void jobs_written(struct jobs *jobs, struct job *job);
void jobs_gone(struct jobs *jobs, struct job *job);

/*
 * Ends it: `signal` to its tree, and SIGKILL after the grace; asked again, at
 * once.  -EALREADY: nothing of it lives.
 */
int jobs_stop(struct jobs *jobs, struct job *job, int signal,
	      uint64_t grace_ms);

/* Settles all that live: the world goes, and takes them along. */
void jobs_close(struct jobs *jobs);

/* When jobs_tick() is due, by the owner's clock; JOBS_NEVER. */
int64_t jobs_deadline(const struct jobs *jobs);
void jobs_tick(struct jobs *jobs);

/* Whether it did what it was to do. */
bool job_ended_well(const struct job *job);

/*
 * "running 1234", "exited 0", "failed REASON": what `pale job status` prints
 * first.  Returns the length, as snprintf(3).
 */
int job_status_text(const struct job *job, char *text, size_t size);

#endif
