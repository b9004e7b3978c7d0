/* SPDX-License-Identifier: MIT */

#include "jobs/state.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define STEP(state, action)                  \
	{                                    \
		JOB_##state, JOB_DO_##action \
	}

/*
 * A settled job has no way out.  What its command left behind may still be
 * swept away, may go, and may end the output.
 */
#define SETTLED(state)                                   \
	{                                                \
		[JOB_EV_PLACE] = STEP(state, NEVER),     \
		[JOB_EV_STARTED] = STEP(state, NEVER),   \
		[JOB_EV_REFUSED] = STEP(state, NEVER),   \
		[JOB_EV_STOP] = STEP(state, SWEEP),      \
		[JOB_EV_TIMEOUT] = STEP(state, NOTHING), \
		[JOB_EV_GRACE] = STEP(state, KILL),      \
		[JOB_EV_ENDED] = STEP(state, NOTHING),   \
		[JOB_EV_WRITTEN] = STEP(state, NOTE),    \
		[JOB_EV_GONE] = STEP(state, NOTE),       \
		[JOB_EV_CLOSE] = STEP(state, NOTHING),   \
	}

static const struct job_step table[JOB_STATE_COUNT][JOB_EVENT_COUNT] = {
	[JOB_QUEUED] = {
		[JOB_EV_PLACE] = STEP(STARTING, SPAWN),
		[JOB_EV_STARTED] = STEP(QUEUED, NEVER),
		/* What it was to come after did not end well. */
		[JOB_EV_REFUSED] = STEP(FAILED, FAIL),
		[JOB_EV_STOP] = STEP(KILLED, CANCEL),
		/* The clock runs from the start on. */
		[JOB_EV_TIMEOUT] = STEP(QUEUED, NEVER),
		[JOB_EV_GRACE] = STEP(QUEUED, NOTHING),
		/* Of an attempt before this one. */
		[JOB_EV_ENDED] = STEP(QUEUED, NOTHING),
		[JOB_EV_WRITTEN] = STEP(QUEUED, NOTHING),
		[JOB_EV_GONE] = STEP(QUEUED, NOTHING),
		[JOB_EV_CLOSE] = STEP(KILLED, CANCEL),
	},
	[JOB_STARTING] = {
		[JOB_EV_PLACE] = STEP(STARTING, NEVER),
		[JOB_EV_STARTED] = STEP(RUNNING, RUN),
		[JOB_EV_REFUSED] = STEP(FAILED, FAIL),
		/* There is nothing to be signalled yet. */
		[JOB_EV_STOP] = STEP(STARTING, REMEMBER),
		[JOB_EV_TIMEOUT] = STEP(STARTING, NEVER),
		[JOB_EV_GRACE] = STEP(STARTING, NEVER),
		[JOB_EV_ENDED] = STEP(DRAINING, AWAIT),
		[JOB_EV_WRITTEN] = STEP(STARTING, NOTE),
		[JOB_EV_GONE] = STEP(STARTING, NOTE),
		[JOB_EV_CLOSE] = STEP(KILLED, CUT),
	},
	[JOB_RUNNING] = {
		[JOB_EV_PLACE] = STEP(RUNNING, NEVER),
		[JOB_EV_STARTED] = STEP(RUNNING, NEVER),
		[JOB_EV_REFUSED] = STEP(RUNNING, NEVER),
		[JOB_EV_STOP] = STEP(STOPPING, TERM),
		[JOB_EV_TIMEOUT] = STEP(STOPPING, TERM),
		[JOB_EV_GRACE] = STEP(RUNNING, NEVER),
		[JOB_EV_ENDED] = STEP(DRAINING, AWAIT),
		/* It may close what it writes to, and go on. */
		[JOB_EV_WRITTEN] = STEP(RUNNING, NOTE),
		[JOB_EV_GONE] = STEP(RUNNING, NOTE),
		[JOB_EV_CLOSE] = STEP(KILLED, CUT),
	},
	[JOB_STOPPING] = {
		[JOB_EV_PLACE] = STEP(STOPPING, NEVER),
		[JOB_EV_STARTED] = STEP(STOPPING, NEVER),
		[JOB_EV_REFUSED] = STEP(STOPPING, NEVER),
		/* Who asks twice has no patience left. */
		[JOB_EV_STOP] = STEP(STOPPING, KILL),
		[JOB_EV_TIMEOUT] = STEP(STOPPING, NOTHING),
		[JOB_EV_GRACE] = STEP(STOPPING, KILL),
		[JOB_EV_ENDED] = STEP(DRAINING, AWAIT),
		[JOB_EV_WRITTEN] = STEP(STOPPING, NOTE),
		[JOB_EV_GONE] = STEP(STOPPING, NOTE),
		[JOB_EV_CLOSE] = STEP(KILLED, CUT),
	},
	[JOB_DRAINING] = {
		[JOB_EV_PLACE] = STEP(DRAINING, NEVER),
		[JOB_EV_STARTED] = STEP(DRAINING, NOTHING),
		[JOB_EV_REFUSED] = STEP(DRAINING, NEVER),
		[JOB_EV_STOP] = STEP(DRAINING, SWEEP),
		/* It ended in time. */
		[JOB_EV_TIMEOUT] = STEP(DRAINING, NOTHING),
		[JOB_EV_GRACE] = STEP(DRAINING, KILL),
		[JOB_EV_ENDED] = STEP(DRAINING, NEVER),
		[JOB_EV_WRITTEN] = STEP(EXITED, SETTLE),
		[JOB_EV_GONE] = STEP(DRAINING, NOTE),
		[JOB_EV_CLOSE] = STEP(EXITED, SETTLE),
	},
	[JOB_EXITED] = SETTLED(EXITED),
	[JOB_KILLED] = SETTLED(KILLED),
	[JOB_TIMED_OUT] = SETTLED(TIMED_OUT),
	[JOB_FAILED] = SETTLED(FAILED),
	[JOB_LOST] = SETTLED(LOST),
};

static const struct {
	const char *name;
	bool place, final;
} states[] = {
#define X(id, name, place, final) { name, place, final },
	JOB_STATES(X)
#undef X
};

struct job_step
job_step(enum job_state state, enum job_event event)
{
	assert(state < JOB_STATE_COUNT && event < JOB_EVENT_COUNT);
	return table[state][event];
}

const char *
job_state_name(enum job_state state)
{
	return states[state].name;
}

int
job_state_parse(const char *name, enum job_state *ret_state)
{
	for (int i = 0; i < JOB_STATE_COUNT; i++) {
		if (strcmp(states[i].name, name) != 0)
			continue;
		*ret_state = (enum job_state)i;
		return 0;
	}
	return -EINVAL;
}

bool
job_state_has_place(enum job_state state)
{
	return states[state].place;
}

bool
job_state_is_final(enum job_state state)
{
	return states[state].final;
}
