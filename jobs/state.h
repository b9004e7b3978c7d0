/* SPDX-License-Identifier: MIT */
#ifndef JOBS_STATE_H
#define JOBS_STATE_H

/*
 * The states of a job, what can happen to it, and what follows: the table
 * state × event of state.c is the whole behaviour, and decides every pair.
 *
 *	queued ─▶ starting ─▶ running ─▶ draining ─▶ exited | killed | timed_out
 *	  │          │          │ ▲          ▲
 *	  │          │          ▼ │(retry)   │
 *	  │          │        stopping ──────┘
 *	  └──────────┴─▶ failed | killed                            lost
 *
 * To the world, `starting` is still queued: the child does not run yet.
 * `lost` is set by whoever finds a record without an owner, never here.
 *
 * Thread: any; there is no state in this module.
 */

#include <stdbool.h>

/* The name, whether it holds a place, whether it is the last. */
#define JOB_STATES(X)                          \
	X(QUEUED, "queued", false, false)      \
	X(STARTING, "queued", true, false)     \
	X(RUNNING, "running", true, false)     \
	X(STOPPING, "stopping", true, false)   \
	X(DRAINING, "draining", true, false)   \
	X(EXITED, "exited", false, true)       \
	X(KILLED, "killed", false, true)       \
	X(TIMED_OUT, "timed_out", false, true) \
	X(FAILED, "failed", false, true)       \
	X(LOST, "lost", false, true)

enum job_state {
#define X(id, name, place, final) JOB_##id,
	JOB_STATES(X)
#undef X
	JOB_STATE_COUNT
};

#define JOB_EVENTS(X)                                        \
	X(PLACE)   /* there is a place for it */             \
	X(STARTED) /* the command runs */                    \
	X(REFUSED) /* it could not be started */             \
	X(STOP)	   /* somebody wants it to end */            \
	X(TIMEOUT) /* its time is over */                    \
	X(GRACE)   /* the time to end politely is over */    \
	X(ENDED)   /* the command ended */                   \
	X(WRITTEN) /* its output is whole, or was awaited */ \
	X(GONE)	   /* nothing of its tree is left */         \
	X(CLOSE)   /* the world ends */

enum job_event {
#define X(id) JOB_EV_##id,
	JOB_EVENTS(X)
#undef X
	JOB_EVENT_COUNT
};

enum job_action {
	JOB_DO_NOTHING, /* it may come, and changes nothing */
	JOB_DO_NEVER,	/* it cannot come; it changes nothing */
	JOB_DO_SPAWN,
	JOB_DO_RUN,	 /* publish, start the clock */
	JOB_DO_REMEMBER, /* stop it as soon as it runs */
	JOB_DO_TERM,	 /* politely, and start the grace */
	JOB_DO_KILL,
	JOB_DO_SWEEP,  /* what the command left behind, if anything */
	JOB_DO_AWAIT,  /* the rest of the output */
	JOB_DO_CANCEL, /* settle what never ran as killed */
	JOB_DO_FAIL,   /* settle as failed */
	JOB_DO_SETTLE, /* by how the command ended, or try again */
	JOB_DO_CUT,    /* settle as killed: the world takes it along */
	JOB_DO_NOTE,   /* remember that it came */
};

/* The state is that of the cell; SETTLE alone finds its own. */
struct job_step {
	enum job_state next;
	enum job_action action;
};

struct job_step job_step(enum job_state state, enum job_event event);

const char *job_state_name(enum job_state state);
/* -EINVAL; "queued" is JOB_QUEUED. */
int job_state_parse(const char *name, enum job_state *ret_state);
bool job_state_has_place(enum job_state state);
bool job_state_is_final(enum job_state state);

#endif
