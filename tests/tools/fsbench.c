/* SPDX-License-Identifier: MIT */

/*
 * What a benchmark does to a filesystem, timed where it happens.
 *
 *	fsbench               commands from stdin, one a line
 *	fsbench :KIND ...     one of them
 *
 * A line that starts with a colon is a storm of the table below, in this very
 * process; any other is a shell command.  Each is answered by one line,
 * "NANOSECONDS STATUS": 0 or an errno for a storm, the wait status for a shell.
 * The process stays between the commands, so that several fences can stand side
 * by side and take turns.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define BLOCK 1048576L
#define SMALL 4096

/* A storm's arguments: a path and up to two numbers. */
struct storm {
	char kind[16], path[256];
	long n, m;
};

static void
name_of(const struct storm *storm, char kind, long i, char name[300])
{
	(void)snprintf(name, 300, "%s/%c%ld", storm->path, kind, i);
}

static int
touch(const char *name, int flags, size_t bytes)
{
	static const char content[SMALL];
	_cleanup_(closep) int fd = open(name, flags | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	if (bytes && write(fd, content, bytes) < 0)
		return -errno;
	return 0;
}

/* N files of 100 bytes: what the storms below work on. */
static int
storm_prepare(const struct storm *storm)
{
	char name[300];
	int r = 0;

	if (mkdir(storm->path, 0755) < 0 && errno != EEXIST)
		return -errno;
	for (long i = 0; i < storm->n && r == 0; i++) {
		name_of(storm, 'f', i, name);
		r = touch(name, O_WRONLY | O_CREAT | O_TRUNC, 100);
	}
	return r;
}

static int
storm_stat(const struct storm *storm)
{
	char name[300];
	struct stat st;

	for (long i = 0; i < storm->n; i++) {
		name_of(storm, 'f', i % storm->m, name);
		if (lstat(name, &st) < 0)
			return -errno;
	}
	return 0;
}

static int
storm_absent(const struct storm *storm)
{
	char name[300];
	struct stat st;

	for (long i = 0; i < storm->n; i++) {
		name_of(storm, 'n', i % storm->m, name);
		if (lstat(name, &st) == 0)
			return -EEXIST;
		if (errno != ENOENT)
			return -errno;
	}
	return 0;
}

static int
storm_open(const struct storm *storm)
{
	char name[300], content[128];

	for (long i = 0; i < storm->n; i++) {
		_cleanup_(closep) int fd = -1;

		name_of(storm, 'f', i % storm->m, name);
		fd = open(name, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, content, sizeof(content)) < 0)
			return -errno;
	}
	return 0;
}

static int
storm_create(const struct storm *storm)
{
	char name[300];
	int r = 0;

	for (long i = 0; i < storm->n && r == 0; i++) {
		name_of(storm, 'c', i, name);
		r = touch(name, O_WRONLY | O_CREAT | O_EXCL, (size_t)storm->m);
	}
	return r;
}

static int
storm_unlink(const struct storm *storm)
{
	char name[300];

	for (long i = 0; i < storm->n; i++) {
		name_of(storm, 'c', i, name);
		if (unlink(name) < 0)
			return -errno;
	}
	return 0;
}

static int
storm_readdir(const struct storm *storm)
{
	for (long i = 0; i < storm->n; i++) {
		DIR *dir = opendir(storm->path);

		if (!dir)
			return -errno;
		while (readdir(dir))
			;
		(void)closedir(dir);
	}
	return 0;
}

/* N files held open at once; then all closed. */
static int
storm_hold(const struct storm *storm)
{
	_cleanup_(freep) int *fds = malloc(sizeof(int) * (size_t)storm->n);
	char name[300];
	long held = 0;
	int r = fds ? 0 : -ENOMEM;

	while (r == 0 && held < storm->n) {
		name_of(storm, 'f', held, name);
		fds[held] = open(name, O_RDWR | O_CLOEXEC);
		if (fds[held] < 0)
			r = -errno;
		else
			held++;
	}
	while (held > 0)
		(void)close(fds[--held]);
	return r;
}

/* ---- data ---- */

static int
storm_write(const struct storm *storm)
{
	_cleanup_(freep) char *block = calloc(1, BLOCK);
	_cleanup_(closep) int fd = open(
		storm->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (!block || fd < 0)
		return block ? -errno : -ENOMEM;
	for (long i = 0; i < storm->n; i++)
		if (write(fd, block, BLOCK) != BLOCK)
			return -EIO;
	return 0;
}

static int
storm_read(const struct storm *storm)
{
	_cleanup_(freep) char *block = malloc(BLOCK);
	_cleanup_(closep) int fd = open(storm->path, O_RDONLY | O_CLOEXEC);

	if (!block || fd < 0)
		return block ? -errno : -ENOMEM;
	for (long i = 0; i < storm->n; i++)
		if (read(fd, block, BLOCK) != BLOCK)
			return -EIO;
	return 0;
}

/* N small reads, or writes, at random places of the first M MiB. */
static int
random_io(const struct storm *storm, int flags)
{
	_cleanup_(closep) int fd = open(storm->path, flags | O_CLOEXEC);
	static char content[SMALL];
	unsigned int seed = 1;

	if (fd < 0)
		return -errno;
	for (long i = 0; i < storm->n; i++) {
		off_t at = (off_t)rand_r(&seed) % (storm->m * BLOCK / SMALL);
		ssize_t done;

		if (flags == O_RDONLY)
			done = pread(fd, content, SMALL, at * SMALL);
		else
			done = pwrite(fd, content, SMALL, at * SMALL);
		if (done != SMALL)
			return -EIO;
	}
	return 0;
}

static int
storm_pread(const struct storm *storm)
{
	return random_io(storm, O_RDONLY);
}

static int
storm_pwrite(const struct storm *storm)
{
	return random_io(storm, O_WRONLY);
}

/* N transactions of one row. */
static int
transactions(const struct storm *storm, const char *pragmas)
{
	sqlite3 *db = NULL;
	int r = sqlite3_open(storm->path, &db);

	if (r == SQLITE_OK)
		r = sqlite3_exec(db, pragmas, NULL, NULL, NULL);
	if (r == SQLITE_OK)
		r = sqlite3_exec(db, "CREATE TABLE t (a, b)", NULL, NULL, NULL);
	for (long i = 0; i < storm->n && r == SQLITE_OK; i++)
		r = sqlite3_exec(db, "INSERT INTO t VALUES (1, zeroblob(100))",
				 NULL, NULL, NULL);
	(void)sqlite3_close(db);
	return r == SQLITE_OK ? 0 : -EIO;
}

static int
storm_wal_off(const struct storm *storm)
{
	return transactions(storm, "PRAGMA journal_mode = WAL;"
				   "PRAGMA synchronous = OFF");
}

static int
storm_wal_full(const struct storm *storm)
{
	return transactions(storm, "PRAGMA journal_mode = WAL;"
				   "PRAGMA synchronous = FULL");
}

static int
storm_rollback(const struct storm *storm)
{
	return transactions(storm, "PRAGMA journal_mode = DELETE;"
				   "PRAGMA synchronous = FULL");
}

/* ---- growth: ten files a directory, numbered on from M ---- */

/* The directory of every `span` files, made with the first of them. */
static int
directory(const struct storm *storm, long i, long span, char name[300])
{
	if (span == 10)
		(void)snprintf(name, 300, "%s/%ld/%ld", storm->path, i / 10000,
			       i / 10);
	else
		(void)snprintf(name, 300, "%s/%ld", storm->path, i / span);
	if (i % span == 0 && mkdir(name, 0755) < 0)
		return -errno;
	return 0;
}

static int
storm_grow(const struct storm *storm)
{
	char name[400];
	int r = 0;

	for (long i = storm->m; i < storm->m + storm->n && r == 0; i++) {
		r = directory(storm, i, 10000, name);
		if (r == 0)
			r = directory(storm, i, 10, name);
		if (r < 0)
			break;
		(void)snprintf(name, sizeof(name), "%s/%ld/%ld/%ld",
			       storm->path, i / 10000, i / 10, i);
		r = touch(name, O_WRONLY | O_CREAT | O_EXCL, 0);
	}
	return r;
}

static int
storm_grown(const struct storm *storm)
{
	char name[400];
	struct stat st;

	for (long i = storm->m; i < storm->m + storm->n; i++) {
		(void)snprintf(name, sizeof(name), "%s/%ld/%ld/%ld",
			       storm->path, i / 10000, i / 10, i);
		if (lstat(name, &st) < 0)
			return -errno;
	}
	return 0;
}

static const struct {
	const char *kind;
	int (*run)(const struct storm *storm);
} STORMS[] = {
	{ "prepare", storm_prepare },	{ "stat", storm_stat },
	{ "absent", storm_absent },	{ "open", storm_open },
	{ "create", storm_create },	{ "unlink", storm_unlink },
	{ "readdir", storm_readdir },	{ "hold", storm_hold },
	{ "write", storm_write },	{ "read", storm_read },
	{ "pread", storm_pread },	{ "pwrite", storm_pwrite },
	{ "wal-off", storm_wal_off },	{ "wal-full", storm_wal_full },
	{ "rollback", storm_rollback }, { "grow", storm_grow },
	{ "grown", storm_grown },
};

static int
run_storm(const char *line)
{
	struct storm storm = { .m = 1 };

	if (sscanf(line, ":%15s %255s %ld %ld", storm.kind, storm.path,
		   &storm.n, &storm.m) < 3)
		return EINVAL;
	for (size_t i = 0; i < sizeof(STORMS) / sizeof(STORMS[0]); i++)
		if (strcmp(STORMS[i].kind, storm.kind) == 0)
			return -STORMS[i].run(&storm);
	return EINVAL;
}

static int
run_shell(const char *line)
{
	int status, null;
	pid_t pid = vfork();

	if (pid == 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		(void)dup2(null, STDIN_FILENO);
		(void)dup2(null, STDOUT_FILENO);
		(void)execl("/bin/sh", "sh", "-c", line, NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return errno;
	return status;
}

static int
run_line(const char *line)
{
	int64_t started = clock_mono_ns();
	int status = line[0] == ':' ? run_storm(line) : run_shell(line);

	printf("%" PRId64 " %d\n", clock_mono_ns() - started, status);
	(void)fflush(stdout);
	return status;
}

int
main(int argc, char **argv)
{
	char line[4096];

	if (argc > 1) {
		line[0] = '\0';
		for (int i = 1; i < argc; i++) {
			size_t at = strlen(line);

			(void)snprintf(line + at, sizeof(line) - at, "%s ",
				       argv[i]);
		}
		return run_line(line) != 0;
	}
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		(void)run_line(line);
	}
	return 0;
}
