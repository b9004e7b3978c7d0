/* SPDX-License-Identifier: MIT */

/*
 * A journal is a head of fixed size, rewritten in place by one pwrite(2), and
 * three texts, each with its NUL.  One without a whole head says nothing: no
 * temporary has been made by then.
 */

#include "fusefs/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fd.h"
#include "fusefs/temp.h"

#define MAGIC	 UINT64_C(0x31656c6170646531)
#define TEXT_MAX (PATH_MAX + 2 * (NAME_MAX + 1))
#define TURNS	 64
#define CHUNK	 (256u << 10)

struct head {
	uint64_t magic, kind;
	uint64_t dir_dev, dir_ino;
	uint64_t old_ino, new_ino;
};

struct left {
	struct head head;
	char text[TEXT_MAX + 1];
	const char *parent, *name, *temp;
};

/* ---- while it is done ---- */

static int
write_first(int fd, const struct journal_about *about)
{
	struct head head = { .magic = MAGIC, .kind = JOURNAL_MAKING };
	char text[TEXT_MAX];
	struct stat st;
	int len;

	if (fstat(about->dirfd, &st) < 0)
		return -errno;
	head.dir_dev = st.st_dev;
	head.dir_ino = st.st_ino;
	len = snprintf(text, sizeof(text), "%s%c%s%c%s", about->parent, 0,
		       about->name, 0, about->temp);
	if (len < 0 || (size_t)len >= sizeof(text))
		return -ENAMETOOLONG;
	if (pwrite(fd, text, (size_t)len + 1, sizeof(head)) != len + 1 ||
	    pwrite(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return errno ? -errno : -ENOSPC;
	return 0;
}

int
journal_begin(const struct journal_about *about, struct journal *ret_journal)
{
	struct journal journal = JOURNAL_NONE;
	uint64_t number = 0;
	struct stat st;
	int r = 0;

	/* Who sweeps takes a fresh one for a dead one until it is locked. */
	for (int i = 0; i < TURNS; i++) {
		if (getrandom(&number, sizeof(number), 0) < 0)
			return -errno;
		(void)snprintf(journal.path, sizeof(journal.path), "%s/%016llx",
			       about->dir, (unsigned long long)number);
		journal.fd = open(journal.path,
				  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (journal.fd < 0)
			return -errno;
		if (flock(journal.fd, LOCK_EX | LOCK_NB) == 0 &&
		    fstat(journal.fd, &st) == 0 && st.st_nlink > 0)
			break;
		closep(&journal.fd);
		journal.fd = -1;
	}
	if (journal.fd < 0)
		return -EBUSY;
	errno = 0;
	r = write_first(journal.fd, about);
	if (r < 0) {
		journal_end(&journal);
		return r;
	}
	*ret_journal = journal;
	return 0;
}

int
journal_say(struct journal *journal, enum journal_kind kind,
	    const struct stat *old, const struct stat *new)
{
	struct head head;

	if (pread(journal->fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
		return -EIO;
	head.kind = kind;
	head.old_ino = old->st_ino;
	head.new_ino = new->st_ino;
	if (pwrite(journal->fd, &head, sizeof(head), 0) !=
	    (ssize_t)sizeof(head))
		return -EIO;
	return 0;
}

void
journal_end(struct journal *journal)
{
	if (journal->fd < 0)
		return;
	(void)unlink(journal->path);
	closep(&journal->fd);
	journal->fd = -1;
}

static ino_t
ino_of(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_ino
								   : 0;
}

int
journal_put_back(int dirfd, const char *temp, const char *name,
		 const struct stat *mine)
{
	ino_t last = 0;

	for (int i = 0; i < TURNS; i++) {
		ino_t put = ino_of(dirfd, temp), got;

		if (renameat2(dirfd, temp, dirfd, name, RENAME_EXCHANGE) < 0) {
			/* The name is gone: what had it was removed. */
			if (errno != ENOENT)
				return -errno;
			break;
		}
		got = ino_of(dirfd, temp);
		if (got == mine->st_ino || got == last)
			break;
		last = put;
	}
	return unlinkat(dirfd, temp, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int
journal_fill(int to, int from)
{
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	off_t at = 0;
	ssize_t n;

	if (!chunk)
		return -ENOMEM;
	while ((n = pread(from, chunk, CHUNK, at)) > 0) {
		for (ssize_t done = 0, k; done < n; done += k) {
			k = pwrite(to, chunk + done, (size_t)(n - done),
				   at + done);
			if (k < 0)
				return -errno;
		}
		at += n;
	}
	if (n < 0 || ftruncate(to, at) < 0)
		return -errno;
	return 0;
}

/* ---- after somebody was killed ---- */

static int
read_left(int fd, struct left *ret_left)
{
	const char *at = ret_left->text, *end;
	const char **parts[] = { &ret_left->parent, &ret_left->name,
				 &ret_left->temp };
	ssize_t len;

	if (pread(fd, &ret_left->head, sizeof(ret_left->head), 0) !=
		    (ssize_t)sizeof(ret_left->head) ||
	    ret_left->head.magic != MAGIC)
		return -EBADMSG;
	len = pread(fd, ret_left->text, TEXT_MAX, sizeof(ret_left->head));
	if (len <= 0)
		return -EBADMSG;
	ret_left->text[len] = '\0';
	end = at + len;
	for (size_t i = 0; i < 3; i++) {
		if (at >= end)
			return -EBADMSG;
		*parts[i] = at;
		at += strlen(at) + 1;
	}
	return strchr(ret_left->name, '/') || strchr(ret_left->temp, '/')
		       ? -EBADMSG
		       : 0;
}

static int
finish_filling(int dirfd, const struct left *left)
{
	_cleanup_(closep) int from =
		openat(dirfd, left->temp, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	_cleanup_(closep) int to =
		openat(dirfd, left->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int r;

	if (from < 0 || to < 0 || fstat(to, &st) < 0)
		return -errno;
	r = st.st_ino == left->head.old_ino ? journal_fill(to, from) : 0;
	if (r == 0 && unlinkat(dirfd, left->temp, 0) < 0)
		r = -errno;
	return r;
}

/* Somebody's file that has no name but the temporary's. */
static int
keep(int dirfd, const struct left *left, void (*kept)(const char *path))
{
	char name[2 * NAME_MAX], path[PATH_MAX + 2 * NAME_MAX];

	(void)snprintf(name, sizeof(name), "%.*s.pale-conflict-%s",
		       NAME_MAX - 40, left->name,
		       left->temp + strlen(TEMP_PREFIX));
	if (renameat2(dirfd, left->temp, dirfd, name, RENAME_NOREPLACE) < 0)
		return -errno;
	(void)snprintf(path, sizeof(path), "%s/%s", left->parent, name);
	if (kept)
		kept(path);
	return 0;
}

/* 0: nothing is left to be done. */
static int
finish(int dirfd, const struct left *left, void (*kept)(const char *path))
{
	const struct stat mine = { .st_ino = left->head.new_ino };
	ino_t there = ino_of(dirfd, left->temp);

	if (there == 0)
		return 0;
	if (left->head.kind == JOURNAL_FILLING)
		return finish_filling(dirfd, left);
	if (left->head.kind == JOURNAL_MAKING || there == left->head.new_ino ||
	    there == left->head.old_ino)
		return unlinkat(dirfd, left->temp, 0) < 0 ? -errno : 0;
	if (ino_of(dirfd, left->name) == left->head.new_ino)
		return journal_put_back(dirfd, left->temp, left->name, &mine);
	return keep(dirfd, left, kept);
}

static int
sweep_one(int fd, void (*kept)(const char *path))
{
	_cleanup_(freep) struct left *left = calloc(1, sizeof(*left));
	_cleanup_(closep) int dirfd = -1;
	struct stat st;

	if (!left)
		return -ENOMEM;
	if (read_left(fd, left) < 0 ||
	    strncmp(left->temp, TEMP_PREFIX, strlen(TEMP_PREFIX)) != 0)
		return 0;
	dirfd = open(left->parent,
		     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dirfd < 0 || fstat(dirfd, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	if (st.st_dev != left->head.dir_dev || st.st_ino != left->head.dir_ino)
		return 0;
	if (temp_lock(dirfd) < 0)
		return -EBUSY;
	return finish(dirfd, left, kept);
}

void
journal_sweep(const char *dir, void (*kept)(const char *path))
{
	DIR *list = opendir(dir);
	const struct dirent *entry;

	while (list && (entry = readdir(list))) {
		_cleanup_(closep) int fd = -1;

		if (entry->d_name[0] == '.')
			continue;
		fd = openat(dirfd(list), entry->d_name,
			    O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
			continue;
		if (sweep_one(fd, kept) == 0)
			(void)unlinkat(dirfd(list), entry->d_name, 0);
	}
	if (list)
		(void)closedir(list);
}
