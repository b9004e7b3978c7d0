/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_LOG_H
#define WARDEN_LOG_H

/*
 * The warden's own log, for whoever asks why a world misbehaved.  The file is
 * made by the first line that is written: most worlds never have one.  It
 * holds at most LIMIT_LOG_BYTES; then it starts again from empty.
 *
 * Thread: any.
 */

#include "base/cleanup.h"

enum log_level {
	LOG_ERROR,
	LOG_NOTE,
	LOG_DEBUG,
	LOG_LEVELS
};

struct log;

/* `path` is copied; nothing is opened.  Errors: -ENOMEM. */
int log_new(const char *path, struct log **ret_log);
struct log *log_free(struct log *log);
DEFINE_CLEANUP(log)

/* Writes a line when the level is asked for.  NULL log: nothing. */
void log_line(struct log *log, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

void log_set_level(struct log *log, enum log_level level);
const char *log_level_name(enum log_level level);
/* Errors: -EINVAL. */
int log_level_parse(const char *name, enum log_level *ret_level);

#endif
