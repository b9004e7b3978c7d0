/* SPDX-License-Identifier: MIT */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

/*
 * How jobs and terminals are shown to people.  Nothing in a name, a title or a
 * command steers the terminal.
 *
 * Thread: main.
 */

#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/cli.h"

void show_safe(struct buf *out, const char *text);

/*
 * The line of a list begins: letter and number of its id, since when, and the
 * state by its status line, which is cut.
 */
void show_row_begin(struct buf *out, char letter, uint64_t id, int64_t since_ns,
		    char *line);
/* Its name, if it has one, and its command. */
void show_row_command(struct buf *out, const char *name, const char *label);
/* Ends it and prints it.  -ENOMEM. */
int show_row_end(struct buf *out);

/* All members of an object, one a line; the exit status. */
int show_members(const struct buf *json);

/* One line, `prefix` before it; the exit status. */
int show_line(const char *prefix, const char *line);

/* What a warden answered to a start; the exit status. */
int show_started(const struct cli_common *common, const json_t *result);

#endif
