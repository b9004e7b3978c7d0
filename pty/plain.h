/* SPDX-License-Identifier: MIT */
#ifndef PTY_PLAIN_H
#define PTY_PLAIN_H

/*
 * A terminal's output as text that can be read: no sequences, and each line as
 * it stood in the end.  A line is written over by what follows a carriage
 * return or a backspace, so that of a progress bar its last state is left.
 *
 * A line comes out when it is finished.  Whatever moves the cursor to another
 * row finishes it, too: of a program that paints a screen one gets the pieces
 * in the order of painting, and had better look at the screen (pty/vt.h).
 *
 * Any split of the bytes gives the same text, which is well-formed UTF-8.
 * Control characters are shown (^C, and M-^[ for C1), but for those that make
 * no text: bell and the shifts.
 *
 * Thread: the owner's.
 */

#include <stddef.h>

#include "base/buf.h"
#include "base/cleanup.h"

/*
 * Columns of a line that can still change; what is before them has come out.
 */
#define PLAIN_LINE_MAX 8192

/* What is unfinished for longer than this is no longer waited for. */
#define PLAIN_UNFINISHED_MAX 4096

struct plain;

/*
 * `cols`: the width of the terminal; a long line is wrapped there, and a
 * carriage return goes to the beginning of the last row of it.  0: no limit.
 * Errors: -ENOMEM.
 */
int plain_new(unsigned int cols, struct plain **ret_plain);
struct plain *plain_free(struct plain *plain);
DEFINE_CLEANUP(plain)

/* Appends the lines that are finished.  Errors are the buffer's. */
void plain_feed(struct plain *plain, const void *bytes, size_t len,
		struct buf *out);

/* Appends what stands on the last line, without a newline, and begins anew. */
void plain_end(struct plain *plain, struct buf *out);

/*
 * How many of the last bytes belong to a character or sequence that is not
 * complete: who reads on later begins with them.
 */
size_t plain_unfinished(const struct plain *plain);

#endif
