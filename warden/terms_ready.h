/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_READY_H
#define WARDEN_TERMS_READY_H

/*
 * When a terminal that was given something is ready for more: the first of
 *
 *	prompt	    its shell says so, by a mark that can be trusted
 *	stdin_read  the foreground program waits for input from the terminal,
 *		    and not still from before (warden/terms_probe.h)
 *	idle	    3 s of silence with the shell in the foreground
 *	exit	    the program has ended
 *	timeout
 *
 * A program that waits for other things as well may just be at work: its wait
 * counts when it has been silent for a second.
 *
 * Thread: loop.
 */

#include <stdbool.h>
#include <stdint.h>

#include "warden/terms_probe.h"

struct vt_event;
struct warden;

enum ready_reason {
	READY_NOT,
	READY_PROMPT,
	READY_STDIN,
	READY_IDLE,
	READY_EXIT,
	READY_TIMEOUT,
};

/* "prompt", "stdin_read" …; NULL for READY_NOT. */
const char *ready_name(enum ready_reason reason);

struct ready {
	struct warden *warden;
	uint64_t id, cursor; /* of the write */
	bool several;	     /* commands were sent: one may follow a prompt */
	bool unfinished;     /* no line was ended */
	bool was_running;    /* a command, when it was written */
	uint64_t began_ms, deadline_ms;
	uint64_t grew_ms; /* the last output, or the beginning */

	/* The marks since then: where the output was, and how it ended. */
	char last;
	uint64_t last_ms;
	bool has_output, has_end;
	uint64_t output_from, output_to;
	int exit_code; /* −1: none was told */

	struct probe before, seen;
	unsigned int times; /* that it was seen so */
	uint64_t probe_ms;
	enum ready_reason reason;
};

/* Before the write: whose wait is not news. */
void ready_prepare(struct ready *ready, struct warden *warden, uint64_t id);

/* After it; `bytes` are what was written. */
void ready_begin(struct ready *ready, uint64_t cursor, const void *bytes,
		 size_t len, uint64_t timeout_ms);

void ready_note(struct ready *ready, const struct vt_event *event);
void ready_grew(struct ready *ready);

/*
 * Looks again; READY_NOT: not yet, *ret_due_ms says when to ask again, in
 * milliseconds from now.
 */
enum ready_reason ready_look(struct ready *ready, uint64_t *ret_due_ms);

/* How the terminal takes input now: what types a password has no echo. */
void ready_tty(const struct ready *ready, bool *ret_echo, bool *ret_canonical);

#endif
