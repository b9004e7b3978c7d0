/* SPDX-License-Identifier: MIT */
#ifndef PTY_WAITS_H
#define PTY_WAITS_H

/*
 * Waiting for one of several things to happen on a terminal, from a place in
 * its output on: the first one that happens is the result.  It has no clock and
 * reads nothing: its owner feeds the output in order, says what else happened
 * at the place where it did, and what time it is.
 *
 * A pattern is searched in the text of pty/window.h, of which it sees the last
 * MiB or more.  Where more output could still change what it matches ("\d+" at
 * the end of what there is, or "$ $") it is waited for until WAITS_SETTLE_MS
 * have passed without any.
 *
 * Patterns are PCRE2; ^ and $ are those of a line, and as every line end of the
 * text is a newline, a carriage return in a pattern is that, too.  A match is
 * never empty.
 *
 * Thread: the owner's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/errmsg.h"
#include "base/strv.h"

#define WAITS_MAX	 16	     /* conditions of one */
#define WAITS_PATTERN	 4096	     /* bytes of one pattern */
#define WAITS_TEXT_MAX	 (16u << 10) /* of a match that are told */
#define WAITS_SETTLE_MS	 50
#define WAITS_GROUPS_MAX 32

enum wait_for {
	WAIT_FOR_PATTERN,
	WAIT_FOR_IDLE,	 /* no output for `amount` ms, from the start on */
	WAIT_FOR_PROMPT, /* the shell said so, with the right nonce */
	WAIT_FOR_EXIT,
	WAIT_FOR_BYTES, /* `amount` of output */
};

struct wait_condition {
	enum wait_for what;
	const char *pattern;
	uint64_t amount;
};

struct waits_result {
	size_t index; /* of the condition */
	uint64_t from,
		to;	 /* of the match, or where in the output it happened */
	struct buf text; /* PATTERN: what matched */
	struct strv groups; /* … and its groups; one without a part in it: "" */
};

struct waits;

/*
 * From `offset` on, at `now_ms`.  `begin` is told that a search begins, `spent`
 * is asked now and then during it whether it has lasted too long; NULL is
 * allowed for both.  Errors: -EINVAL with a
 * sentence about the pattern; -E2BIG: more than WAITS_MAX; -ENOMEM.
 */
struct waits_start {
	const struct wait_condition *conditions;
	size_t n_conditions;
	uint64_t offset, now_ms;
	void (*begin)(void *data);
	bool (*spent)(void *data);
	void *data;
};
int waits_new(const struct waits_start *start, struct waits **ret_waits,
	      struct errmsg *why);
struct waits *waits_free(struct waits *waits);
DEFINE_CLEANUP(waits)

/*
 * Each of these returns 1 when one has happened (waits_result()), 0 when not;
 * errors: -ELOOP: a pattern takes too long on this output, and the wait is
 * over; -ENOMEM.
 */
int waits_feed(struct waits *waits, const void *bytes, size_t len,
	       uint64_t now_ms);
/* The output up to `offset` is lost; nothing matches across. */
int waits_skip(struct waits *waits, uint64_t offset, uint64_t now_ms);
/* A prompt that can be trusted stands at the end of what was fed. */
int waits_prompt(struct waits *waits);
/* There will be no more output. */
int waits_exit(struct waits *waits);
int waits_tick(struct waits *waits, uint64_t now_ms);

/* When waits_tick() has something to do; UINT64_MAX: never, as things are. */
uint64_t waits_due(const struct waits *waits);

/* Where the next feed belongs. */
uint64_t waits_offset(const struct waits *waits);

/*
 * Where another wait for the same would have to begin, so that nothing is
 * missed: before what could become a match.
 */
uint64_t waits_resume(const struct waits *waits);

/* Of one that has happened; borrowed. */
const struct waits_result *waits_result(const struct waits *waits);

#endif
