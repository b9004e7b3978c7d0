/* SPDX-License-Identifier: MIT */

#include "warden/jobs_row.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/units.h"
#include "jobs/state.h"

const struct segments_limits jobs_output_limits = { 1u << 20, 16u << 20 };

int
jobs_id_parse(const char *text, uint64_t *ret_id)
{
	return units_id('j', text, ret_id);
}

void
jobs_id_text(uint64_t id, char text[JOBS_ID_MAX])
{
	(void)snprintf(text, JOBS_ID_MAX, "j%llu", (unsigned long long)id);
}

static enum job_state
state_of(const struct store_job *row)
{
	enum job_state state;

	/* A later pale may know more of them. */
	return job_state_parse(row->state, &state) == 0 ? state : JOB_LOST;
}

/* ---- in words ---- */

static void
put_since(int64_t ns, char *text, size_t size)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;

	if (ns > 0 && gmtime_r(&seconds, &tm))
		(void)strftime(text, size, " since %FT%TZ", &tm);
}

void
jobs_row_line(const struct store_job *row, char *text, size_t size)
{
	enum job_state state = state_of(row);
	int n;

	switch (state) {
	case JOB_RUNNING:
	case JOB_STOPPING:
		/* One that was over before it could be seen has none. */
		n = row->pid > 0 ? snprintf(text, size, "%s %lld", row->state,
					    (long long)row->pid)
				 : snprintf(text, size, "%s", row->state);
		if (n > 0 && (size_t)n < size)
			put_since(row->started_ns, text + n, size - (size_t)n);
		return;
	case JOB_EXITED:
	case JOB_KILLED:
		(void)snprintf(text, size, "%s %lld", row->state,
			       (long long)row->value);
		return;
	case JOB_FAILED:
		(void)snprintf(text, size, "%s %s", row->state,
			       row->reason ? row->reason : "");
		/* One line is one line, whatever the program is called. */
		for (; *text; text++)
			if (*text == '\n' || *text == '\r')
				*text = ' ';
		return;
	case JOB_QUEUED:
	case JOB_STARTING:
	case JOB_DRAINING:
	case JOB_TIMED_OUT:
	case JOB_LOST:
	case JOB_STATE_COUNT:
		break;
	}
	(void)snprintf(text, size, "%s", row->state);
}

int
jobs_row_exit(const struct store_job *row)
{
	enum job_state state = state_of(row);

	if (state == JOB_EXITED)
		return (int)row->value;
	if (state == JOB_KILLED)
		return 128 + (int)row->value;
	if (state == JOB_TIMED_OUT)
		return 124;
	if (state == JOB_FAILED)
		return (row->flags & STORE_JOB_BY_EXEC) &&
				       !(row->flags & STORE_JOB_MAY_EXECUTE)
			       ? 127
			       : 126;
	return state == JOB_LOST ? 125 : -1;
}

/* ---- as JSON ---- */

void
jobs_row_put_state(const struct store_job *row, struct buf *out)
{
	enum job_state state = state_of(row);
	char line[512];

	jobs_row_line(row, line, sizeof(line));
	jsonw_pair(out, "state", row->state);
	jsonw_pair(out, "status", line);
	jsonw_pair_known(out, "code", state == JOB_EXITED, row->value);
	jsonw_pair_known(out, "signal", state == JOB_KILLED, row->value);
	jsonw_pair(out, "reason", row->reason);
	jsonw_pair_known(out, "pid", row->pid > 0, row->pid);
	jsonw_pair_bool(out, "stop_requested",
			row->flags & STORE_JOB_STOP_REQUESTED);
	jsonw_pair_bool(out, "output_open", row->flags & STORE_JOB_OUTPUT_OPEN);
	jsonw_pair_int(out, "created", row->created_ns);
	jsonw_pair_known(out, "started", row->started_ns > 0, row->started_ns);
	jsonw_pair_known(out, "ended", row->ended_ns > 0, row->ended_ns);
}

void
jobs_row_put_spec(const char *spec, struct buf *out)
{
	size_t len = spec ? strlen(spec) : 0;

	if (len > 2 && spec[0] == '{' && spec[len - 1] == '}') {
		buf_puts(out, ",");
		buf_put(out, spec + 1, len - 2);
	}
}

void
jobs_row_json(const struct store_job *row, struct buf *out)
{
	char id[JOBS_ID_MAX];

	jobs_id_text(row->id, id);
	jsonw_begin(out, '{');
	jsonw_pair(out, "id", id);
	jsonw_pair(out, "name", row->name);
	jsonw_pair(out, "command", row->label);
	jobs_row_put_state(row, out);
	jsonw_pair_int(out, "attempt", row->attempt);
	jsonw_pair(out, "world", row->world);
	jsonw_pair(out, "workspace", row->workspace);
	jsonw_pair(out, "session", row->session);
	jsonw_pair(out, "client_token", row->token);
	jsonw_pair_uint(out, "stdout_bytes", row->out_bytes);
	jsonw_pair_uint(out, "stderr_bytes", row->err_bytes);
	jsonw_pair_uint(out, "stored_bytes", row->stored_bytes);
	jsonw_pair_uint(out, "user_ms", row->user_us / 1000);
	jsonw_pair_uint(out, "sys_ms", row->sys_us / 1000);
	jsonw_pair_uint(out, "max_rss_kib", row->max_rss_kib);
	jobs_row_put_spec(row->spec, out);
	jsonw_end(out, '}');
}
