/* SPDX-License-Identifier: MIT */
#ifndef JOBS_OUTPUT_H
#define JOBS_OUTPUT_H

/*
 * What one job wrote, in its directory: the streams `stdout` and `stderr`
 * (base/segments.h) and `index`, a stream of fixed records that tell in which
 * order the two came.
 *
 *	index	| time, 0, 0, 6, out | time, 6, 0, 4, err | time, 6, 4, …
 *	both	  o1 o1 o1 o1 o1 o1    e1 e1 e1 e1          o2 …
 *
 * A record holds the positions of both streams where it begins, and its own
 * place in the joint stream is their sum.  So it needs no neighbours: what no
 * record tells of (dropped by retention, or written in the moment of a crash)
 * is the difference between two of them, and reads as stdout, then stderr.
 * The order is that in which the pipes were found to have something.
 *
 * Thread: one writes; any reads, each with its own cursor.
 */

#include "base/segments.h"

enum output_stream {
	OUTPUT_STDOUT,
	OUTPUT_STDERR,
	OUTPUT_BOTH,
};

/* "stdout", "stderr", "both". */
const char *output_stream_name(enum output_stream stream);
/* The same names, and "output" for both; -EINVAL. */
int output_stream_parse(const char *name, enum output_stream *ret_stream);

struct output;

/* As segments_open(), for all three; `limits` are those of each stream. */
int output_open(int dir, const struct segments_limits *limits,
		struct output **ret_output);
struct output *output_free(struct output *output);
DEFINE_CLEANUP(output)

/* As segments_splice(); `stream` is not OUTPUT_BOTH. */
ssize_t output_splice(struct output *output, enum output_stream stream,
		      int pipe, size_t max);

/*
 * After a writer that did not come to output_finish(): what its keeper saved
 * beside it becomes part of the streams.
 */
int output_recover(struct output *output);

/* No more will come. */
void output_finish(struct output *output);

uint64_t output_end(const struct output *output, enum output_stream stream);

/* Bytes on disk. */
uint64_t output_stored(const struct output *output);

#define OUTPUT_RECORD  32
#define OUTPUT_RECORDS 64

/* Where a reader is; a fresh one is zeroed but for its stream. */
struct output_cursor {
	enum output_stream stream;
	struct segments_file files[3];
	uint64_t first; /* number of the first of `records` */
	size_t count;
	unsigned char records[OUTPUT_RECORDS * OUTPUT_RECORD];
};
void output_cursor_fini(struct output_cursor *cursor);

/* As segments_read(); positions are of the cursor's stream. */
int output_read(struct output *output, struct output_cursor *cursor,
		uint64_t offset, void *buf, size_t size,
		struct segments_view *ret_view);

#endif
