/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TERMS_UNTIL_H
#define WARDEN_TERMS_UNTIL_H

/*
 * The conditions of pty/waits.h on a terminal of this warden: its output is
 * read from the log as far as the model has read it, so that what the model
 * saw (a prompt) is told at its place.
 *
 * Thread: loop.
 */

#include <stdint.h>

#include "base/segments.h"
#include "pty/waits.h"

struct vt_event;
struct warden;

struct until {
	struct warden *warden;
	uint64_t id;
	struct waits *waits;
	struct segments_file file;
	uint64_t prompt_at; /* that was not told yet; UINT64_MAX: none */
	int64_t began_ns;   /* this search, by the processor's clock */
};

struct until_start {
	const struct wait_condition *conditions;
	size_t n;
	uint64_t offset;
	bool now; /* from now on; a prompt that stands there counts */
};

/* Errors: -EINVAL with a sentence, -E2BIG, -ENOMEM, -ENOENT. */
int until_init(struct until *until, struct warden *warden, uint64_t id,
	       const struct until_start *start, struct errmsg *why);
void until_fini(struct until *until);

/* An event of the terminal's model. */
void until_note(struct until *until, const struct vt_event *event);

enum until_state {
	UNTIL_WAITS,
	UNTIL_BEHIND,	/* there is more to look at: ask again soon */
	UNTIL_HAPPENED, /* waits_result() */
	UNTIL_ENDED,	/* nothing of it can happen any more */
};

/*
 * Looks at what is new.  *ret_due_ms: when to ask again although nothing is.
 * Errors: -ELOOP (pty/waits.h), -ENOENT, what read(2) says.
 */
int until_look(struct until *until, uint64_t *ret_due_ms);

/* Where to begin again, so that nothing is missed. */
uint64_t until_resume(const struct until *until);

#endif
