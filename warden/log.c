/* SPDX-License-Identifier: MIT */

#include "warden/log.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/fd.h"
#include "base/limits.h"

struct log {
	char *path;
	atomic_int level;
	pthread_mutex_t lock;
	int fd;	      /* lock; -1 until the first line */
	size_t bytes; /* lock; written since the file was empty */
};

static const char *const level_names[] = {
	[LOG_ERROR] = "error",
	[LOG_NOTE] = "note",
	[LOG_DEBUG] = "debug",
};

int
log_new(const char *path, struct log **ret_log)
{
	struct log *log = calloc(1, sizeof(*log));

	if (!log)
		return -ENOMEM;
	log->path = strdup(path);
	if (!log->path) {
		free(log);
		return -ENOMEM;
	}
	log->fd = -1;
	atomic_init(&log->level, LOG_ERROR);
	(void)pthread_mutex_init(&log->lock, NULL);
	*ret_log = log;
	return 0;
}

struct log *
log_free(struct log *log)
{
	if (!log)
		return NULL;
	closep(&log->fd);
	(void)pthread_mutex_destroy(&log->lock);
	free(log->path);
	free(log);
	return NULL;
}

/* Room for `len` more bytes in an open file, or false. */
static bool
make_room(struct log *log, size_t len)
{
	if (log->fd < 0) {
		off_t end;

		log->fd = open(log->path,
			       O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC |
				       O_NOFOLLOW,
			       0600);
		if (log->fd < 0)
			return false;
		end = lseek(log->fd, 0, SEEK_END);
		log->bytes = end > 0 ? (size_t)end : 0;
	}
	if (log->bytes + len > LIMIT_LOG_BYTES) {
		if (ftruncate(log->fd, 0) < 0)
			return false;
		log->bytes = 0;
	}
	return true;
}

/* A log that cannot be written must not disturb what it speaks of. */
static void
write_line(struct log *log, const char *line, size_t len)
{
	(void)pthread_mutex_lock(&log->lock);
	if (make_room(log, len) && fd_write_all(log->fd, line, len) == 0)
		log->bytes += len;
	(void)pthread_mutex_unlock(&log->lock);
}

void
log_line(struct log *log, enum log_level level, const char *format, ...)
{
	char line[1024], stamp[32];
	struct timespec now;
	struct tm utc;
	va_list args;
	size_t len;

	if (!log || (int)level > atomic_load(&log->level))
		return;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)strftime(stamp, sizeof(stamp), "%FT%TZ",
		       gmtime_r(&now.tv_sec, &utc));
	len = (size_t)snprintf(line, sizeof(line), "%s %s ", stamp,
			       level_names[level]);
	va_start(args, format);
	(void)vsnprintf(line + len, sizeof(line) - len - 1, format, args);
	va_end(args);
	len = strlen(line);
	line[len++] = '\n';
	write_line(log, line, len);
}

void
log_set_level(struct log *log, enum log_level level)
{
	if (log)
		atomic_store(&log->level, (int)level);
}

const char *
log_level_name(enum log_level level)
{
	return level_names[level];
}

int
log_level_parse(const char *name, enum log_level *ret_level)
{
	for (int i = 0; i < LOG_LEVELS; i++) {
		if (strcmp(level_names[i], name) != 0)
			continue;
		*ret_level = (enum log_level)i;
		return 0;
	}
	return -EINVAL;
}
