/* SPDX-License-Identifier: MIT */

#include "warden/terms_ready.h"

#include <string.h>
#include <termios.h>

#include "base/clock.h"
#include "warden/terms_priv.h"

#define POLL_MS	  50
#define PROBE_MS  150 /* after the write: it must have had the time to run */
#define TIMES	  2
#define QUIET_MS  POLL_MS
#define MIXED_MS  1000
#define IDLE_MS	  3000
#define SETTLE_MS 100 /* a command may follow a prompt */
#define END_MS	  500 /* no prompt came after the end of a command */

const char *
ready_name(enum ready_reason reason)
{
	static const char *const names[] = {
		[READY_NOT] = NULL,	      [READY_PROMPT] = "prompt",
		[READY_STDIN] = "stdin_read", [READY_IDLE] = "idle",
		[READY_EXIT] = "exit",	      [READY_TIMEOUT] = "timeout",
	};

	return names[reason];
}

static uint64_t
now_ms(void)
{
	return (uint64_t)(clock_mono_ns() / 1000000);
}

static void
probe(const struct ready *ready, struct probe *ret_probe)
{
	const struct wterm *term =
		terms_host_find(ready->warden->terms, ready->id);

	probe_group(term ? term->core.pid : 0,
		    terms_foreground(ready->warden, ready->id), ret_probe);
}

void
ready_prepare(struct ready *ready, struct warden *warden, uint64_t id)
{
	const struct wterm *term = terms_host_find(warden->terms, id);

	*ready = (struct ready){ .warden = warden, .id = id, .exit_code = -1 };
	ready->was_running = term && term_shell_runs(&term->shell);
	probe(ready, &ready->before);
}

void
ready_tty(const struct ready *ready, bool *ret_echo, bool *ret_canonical)
{
	const struct wterm *term =
		terms_host_find(ready->warden->terms, ready->id);
	struct termios mode = { 0 };

	if (term && term->pty && tcgetattr(term->pty->master, &mode) < 0)
		mode.c_lflag = 0;
	*ret_echo = (mode.c_lflag & ECHO) != 0;
	*ret_canonical = (mode.c_lflag & ICANON) != 0;
}

void
ready_begin(struct ready *ready, uint64_t cursor, const void *bytes, size_t len,
	    uint64_t timeout_ms)
{
	static const char ends[] = "\r\n\003\004\032\034";
	const char *at = bytes;
	size_t lines = 0, controls = 0;
	bool echo = false, canonical = false;

	ready_tty(ready, &echo, &canonical);
	for (size_t i = 0; i < len; i++) {
		lines += at[i] == '\r' || at[i] == '\n';
		controls += at[i] && strchr(ends, at[i]);
	}
	ready->cursor = cursor;
	ready->several = lines > 1;
	/* By lines: one that is not ended wakes nobody. */
	ready->unfinished = controls == 0 && canonical;
	ready->began_ms = now_ms();
	ready->grew_ms = ready->began_ms;
	ready->deadline_ms = timeout_ms < UINT64_MAX / 2
				     ? ready->began_ms + timeout_ms
				     : UINT64_MAX;
}

void
ready_note(struct ready *ready, const struct vt_event *event)
{
	if (event->kind != VT_EVENT_MARK || !event->trusted ||
	    event->from < ready->cursor)
		return;
	switch (event->mark) {
	case 'C':
		if (!ready->has_output)
			ready->output_from = event->to;
		ready->has_output = true;
		/* That was the end of what came before. */
		ready->has_end = false;
		ready->exit_code = -1;
		break;
	case 'D':
		ready->has_end = true;
		ready->output_to = event->from;
		ready->exit_code = event->exit_code;
		break;
	case 'A':
	case 'B':
		break;
	default:
		return;
	}
	ready->last = event->mark;
	ready->last_ms = now_ms();
}

void
ready_grew(struct ready *ready)
{
	ready->grew_ms = now_ms();
	ready->times = 0;
}

/* ---- the ladder ---- */

static bool
is_at_prompt(const struct ready *ready, uint64_t now)
{
	/* Without a command's begin, it may be the prompt before. */
	if (ready->last == 'B')
		return ((ready->has_output ||
			 (ready->was_running && ready->has_end)) &&
			!ready->several) ||
		       now >= ready->last_ms + SETTLE_MS;
	return (ready->last == 'D' || ready->last == 'A') && ready->has_end &&
	       now >= ready->last_ms + END_MS;
}

static bool
waits_for_input(struct ready *ready, uint64_t now)
{
	uint64_t quiet = now - ready->grew_ms;
	struct probe seen;

	if (now < ready->began_ms + PROBE_MS ||
	    now < ready->probe_ms + POLL_MS ||
	    terms_input_waits(ready->warden, ready->id) > 0)
		return false;
	ready->probe_ms = now;
	probe(ready, &seen);
	/* Who looks at other things now and then does not wait in one go. */
	if (seen.state < PROBE_MIXED || seen.group != ready->seen.group)
		ready->times = 0;
	ready->seen = seen;
	if (seen.state < PROBE_MIXED ||
	    (probe_is_same(&seen, &ready->before) && !ready->unfinished))
		return false;
	ready->times++;
	return ready->times >= TIMES &&
	       quiet >= (seen.state == PROBE_READS ? QUIET_MS : MIXED_MS);
}

/* The terminal's first program, or nobody knows; and it is not at work. */
static bool
is_idle(const struct ready *ready, uint64_t now)
{
	const struct wterm *term =
		terms_host_find(ready->warden->terms, ready->id);

	if (now < ready->grew_ms + IDLE_MS || !term)
		return false;
	if (term_shell_runs(&term->shell) && ready->seen.state != PROBE_UNKNOWN)
		return false;
	return term->core.pid > 0 &&
	       terms_foreground(ready->warden, ready->id) == term->core.pid;
}

static enum ready_reason
look(struct ready *ready, uint64_t now)
{
	if (terms_is_told(ready->warden, ready->id))
		return READY_EXIT;
	if (is_at_prompt(ready, now))
		return READY_PROMPT;
	if (waits_for_input(ready, now))
		return READY_STDIN;
	if (is_idle(ready, now))
		return READY_IDLE;
	return now >= ready->deadline_ms ? READY_TIMEOUT : READY_NOT;
}

enum ready_reason
ready_look(struct ready *ready, uint64_t *ret_due_ms)
{
	uint64_t now = now_ms();

	if (ready->reason == READY_NOT)
		ready->reason = look(ready, now);
	*ret_due_ms = POLL_MS;
	if (ready->deadline_ms > now && ready->deadline_ms - now < POLL_MS)
		*ret_due_ms = ready->deadline_ms - now;
	return ready->reason;
}
