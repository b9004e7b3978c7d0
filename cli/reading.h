/* SPDX-License-Identifier: MIT */
#ifndef CLI_READING_H
#define CLI_READING_H

/*
 * Writes what a job or a terminal has written, from the files where it lies:
 * what there is now, and then what comes.  What is read and whom to ask for
 * more differs, and is in the functions of a struct reading_kind.
 *
 * Thread: main.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/errmsg.h"
#include "base/segments.h"
#include "cli/cli.h"

/* The first member of what reads a kind of output. */
struct reading {
	const struct reading_kind *kind;
	const struct cli_common *common;
	uint64_t offset, left; /* left: of --max */
	unsigned char *bytes;  /* of the piece that is put */
};

struct reading_kind {
	const char *position;  /* "offset", "cursor" */
	unsigned int pause_ms; /* when following brought nothing */

	/* 1, and close() ends it; 0: nothing has been written. */
	int (*open)(struct reading *reading, struct errmsg *why);
	void (*close)(struct reading *reading);
	/* As segments_read() and segments_end(). */
	int (*read)(struct reading *reading, size_t size,
		    struct segments_view *ret_view);
	uint64_t (*end)(const struct reading *reading);

	/* With --json only what says something is put. */
	int (*put)(const struct reading *reading,
		   const struct segments_view *view);
	/* Until there is more; *ret_final: there will be none. */
	int (*await)(struct reading *reading, uint64_t wait_ms, bool *ret_final,
		     struct errmsg *why);
};

/* `max`: at most so much, 0: all.  Errors with a sentence. */
int reading_init(struct reading *reading, uint64_t max, struct errmsg *why);
void reading_fini(struct reading *reading);

/*
 * --offset and --cursor: N, or -N from the end on, which *ret_back says.
 * -EINVAL with a sentence.
 */
int reading_parse(const struct reading *reading, const char *text,
		  uint64_t *ret_value, bool *ret_back, struct errmsg *why);

/*
 * All that there is, and with `follow` all that will be; else, when there is
 * nothing, what comes within `wait_ms`.
 */
int reading_run(struct reading *reading, bool follow, uint64_t wait_ms,
		struct errmsg *why);

/* Whether a warden's answer says that nothing will follow. */
bool reading_is_final(const struct reading *reading, const json_t *answer);

#endif
