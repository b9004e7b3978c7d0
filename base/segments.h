/* SPDX-License-Identifier: MIT */
#ifndef BASE_SEGMENTS_H
#define BASE_SEGMENTS_H

/*
 * An append-only stream of bytes on disk, kept in files of at most
 * SEGMENT_BYTES:
 *
 *	NAME.000000000000000	    bytes 0 …
 *	NAME.000000001048576	    bytes 1048576 …
 *	NAME.000000009437184-4096   … and the 4096 bytes before were lost
 *
 * A position is the number of bytes that came before it, counted from 0 and
 * never reused.  A file's name is the position of its first byte and its
 * length says how many there are: names and lengths are the whole state, so
 * that a crash leaves nothing to mend and anyone can read the directory.
 *
 * Bytes are missing for two reasons: retention unlinked their segment
 * (SEGMENTS_CAP; the first `head` and the last `tail` bytes are kept), or they
 * could not be stored (SEGMENTS_ENOSPC; any error of the disk), in which case
 * the end advances all the same, storing is tried again each second, and the
 * next segment's name tells how many went; until there is one, an empty file
 * does, which is at most a second behind.
 *
 * A reader owns an offset and perhaps a file to go on with; any number of them
 * read, in this process or another, and none consumes.
 *
 * Thread: one appends; any reads.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"

#define SEGMENT_BYTES (1u << 20)

struct segments;

struct segments_limits {
	uint64_t head; /* bytes from the beginning that stay */
	uint64_t tail; /* bytes before the end that stay; 0: everything does */
};

enum segments_reason {
	SEGMENTS_KEPT, /* nothing was lost */
	SEGMENTS_CAP,
	SEGMENTS_ENOSPC,
};

/* "cap", "enospc"; NULL for SEGMENTS_KEPT. */
const char *segments_reason_name(enum segments_reason reason);

/* What one read found. */
struct segments_view {
	size_t len;    /* bytes in the reader's buffer */
	uint64_t next; /* where to go on */
	uint64_t base; /* oldest byte that is kept */
	uint64_t end;  /* of the stream */
	/* [lost_from, lost_to) is missing before the data; else reason KEPT. */
	uint64_t lost_from, lost_to;
	enum segments_reason reason;
};

/* A reader's open segment; a zeroed struct is none. */
struct segments_file {
	int fd_plus_one;
	uint64_t start;
};
void segments_file_fini(struct segments_file *file);

/*
 * Opens the stream `name` in the directory `dir`, which is duplicated.  An
 * absent one is empty.  `limits` NULL: only to be read, nothing is changed on
 * disk.  Errors: -ENOMEM, what open(2) says.
 */
int segments_open(int dir, const char *name,
		  const struct segments_limits *limits,
		  struct segments **ret_log);
struct segments *segments_free(struct segments *log);
DEFINE_CLEANUP(segments)

uint64_t segments_end(const struct segments *log);

/* Bytes on disk. */
uint64_t segments_stored(const struct segments *log);

/*
 * Moves up to `max` bytes out of the non-blocking pipe without a copy in
 * memory: what has left the pipe is in the page cache, or counted as lost.
 * Returns how many, 0 at the end of the pipe, -EAGAIN when it is empty.
 */
ssize_t segments_splice(struct segments *log, int pipe, size_t max);

/* Appends bytes; those that cannot be stored are lost, as above. */
void segments_append(struct segments *log, const void *data, size_t len);

/*
 * Overwrites stored bytes of the newest segment.  -ERANGE: they are not in it.
 */
int segments_amend(struct segments *log, uint64_t offset, const void *data,
		   size_t len);

/* Counts `len` bytes that nobody will bring any more as lost. */
void segments_lose(struct segments *log, uint64_t len);

/*
 * Makes the file `from` of the same directory the stream's next segment, in
 * one step.  It vanishes if it is empty; -ENOENT: there is none.
 */
int segments_adopt(struct segments *log, const char *from);

/* No more will come: a loss at the end is told on disk as well. */
void segments_finish(struct segments *log);

/*
 * Reads up to `size` bytes from `offset` on.  What is missing there is told in
 * *ret_view and skipped; a read that ends before a gap is short.  `file`
 * (NULL allowed) makes reading on cheap.  Errors: -ERANGE (offset beyond the
 * end), what open(2) and read(2) say.
 */
int segments_read(struct segments *log, struct segments_file *file,
		  uint64_t offset, void *buf, size_t size,
		  struct segments_view *ret_view);

#endif
