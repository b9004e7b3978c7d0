/* SPDX-License-Identifier: MIT */

/*
 * Small files that are written directly (gitfiles, commondir, gitdir, a config
 * that is not there yet): each write is judged as if the file ended with it.
 *
 * The wanted content is kept here; a write is tried on a copy of it, judged,
 * and on success the file gets the whole copy.  So the file on disk always
 * holds something that was accepted, or what it held before.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "fusefs/gitguard_priv.h"

struct gitguard_small {
	int fd;	   /* the file, O_RDWR */
	int dirfd; /* its directory, O_PATH: relative paths start there */
	enum gg_kind kind;
	bool append;
	bool created; /* it may have come with this handle */
	char *name;
	pthread_mutex_t lock; /* over what follows and the file's content */
	char *data;	      /* len bytes */
	size_t len;
	size_t kept;  /* of these, counted in kept_bytes */
	bool dropped; /* taken away again: nothing was acceptable */
};

/* By all handles of all mounts: each has its file's content in memory. */
static atomic_size_t kept_bytes;

/* The handle needs room for `len` bytes; what it has once stays its own. */
static bool
keep(struct gitguard_small *small, size_t len)
{
	size_t more = len > small->kept ? len - small->kept : 0;

	if (atomic_fetch_add(&kept_bytes, more) + more > LIMIT_GITKEPT) {
		atomic_fetch_sub(&kept_bytes, more);
		return false;
	}
	small->kept += more;
	return true;
}

static size_t
max_of(const struct gitguard_small *small)
{
	switch (small->kind) {
	case GG_KIND_INDEX:
		return LIMIT_GITINDEX_OPEN;
	case GG_KIND_TODO:
		return LIMIT_GITCONFIG;
	case GG_KIND_STRATEGY:
	case GG_KIND_OPTS:
	case GG_KIND_NONE:
	case GG_KIND_CONFIG:
	case GG_KIND_CONFIG_WORKTREE:
	case GG_KIND_GITFILE:
	case GG_KIND_COMMONDIR:
	case GG_KIND_GITDIR:
		break;
	}
	return LIMIT_GITSMALL;
}

static int
read_present(struct gitguard_small *small, bool truncate)
{
	struct stat st;
	int r;

	if (fstat(small->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1)
		return -EACCES;
	if (truncate)
		return 0;
	r = fd_read_file(small->fd, max_of(small), &small->data, &small->len);
	if (r < 0)
		return r;
	return keep(small, small->len) ? 0 : -ENFILE;
}

int
gitguard_small_open(const struct gitguard_at *at, int flags, mode_t mode,
		    struct gitguard_check *check,
		    struct gitguard_small **ret_small)
{
	_cleanup_(gitguard_small_freep) struct gitguard_small *small = NULL;
	int r;

	small = calloc(1, sizeof(*small));
	if (!small)
		return -ENOMEM;
	pthread_mutex_init(&small->lock, NULL);
	small->kind = check->kind;
	small->append = flags & O_APPEND;
	small->created = flags & O_CREAT;
	small->name = strdup(at->name);
	small->fd = -1;
	small->dirfd = fcntl(at->dirfd, F_DUPFD_CLOEXEC, 3);
	if (small->dirfd < 0)
		return -errno;
	if (!small->name)
		return -ENOMEM;
	small->fd = openat(at->dirfd, at->name,
			   (flags & (O_CREAT | O_EXCL)) | O_RDWR | O_NOFOLLOW |
				   O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
			   mode);
	if (small->fd < 0)
		return -errno;
	r = read_present(small, flags & O_TRUNC);
	if (r == -EACCES)
		return gg_refuse(check, "git-dir");
	if (r < 0)
		return r;
	*ret_small = take_ptr(&small);
	return 0;
}

struct gitguard_small *
gitguard_small_free(struct gitguard_small *small)
{
	if (!small)
		return NULL;
	closep(&small->fd);
	closep(&small->dirfd);
	atomic_fetch_sub(&kept_bytes, small->kept);
	pthread_mutex_destroy(&small->lock);
	free(small->data);
	free(small->name);
	free(small);
	return NULL;
}

int
gitguard_small_fd(const struct gitguard_small *small)
{
	return small->fd;
}

ssize_t
gitguard_small_read(struct gitguard_small *small, void *buf, size_t size,
		    off_t offset)
{
	ssize_t n = pread(small->fd, buf, size, offset);

	return n < 0 ? -errno : n;
}

/* The file's whole content becomes `data`. */
static int
store(struct gitguard_small *small, const char *data, size_t len)
{
	ssize_t n = pwrite(small->fd, data, len, 0);

	if (n < 0)
		return -errno;
	if ((size_t)n != len)
		return -ENOSPC;
	return ftruncate(small->fd, (off_t)len) < 0 ? -errno : 0;
}

static ssize_t
write_locked(struct gitguard_small *small, const void *buf, size_t size,
	     off_t offset, struct gitguard_check *check)
{
	_cleanup_(freep) char *data = NULL;
	size_t at = small->append ? small->len : (size_t)offset, len;
	size_t max = max_of(small);
	int r;

	if (offset < 0)
		return -EINVAL;
	if (small->dropped)
		return gg_refuse(check, "git-dir");
	/* A hole would be NUL bytes, which no such file holds. */
	if (at > small->len)
		return gg_refuse(check, "git-dir");
	if (at > max || size > max - at)
		return -EFBIG;
	len = at + size > small->len ? at + size : small->len;

	if (!keep(small, len))
		return -ENOSPC;
	data = malloc(len + 1);
	if (!data)
		return -ENOMEM;
	if (small->len > 0)
		memcpy(data, small->data, small->len);
	memcpy(data + at, buf, size);

	r = gg_judge(small->kind, small->dirfd, data, len, check);
	if (r < 0)
		return r;
	r = store(small, data, len);
	if (r < 0)
		return r;
	free(small->data);
	small->data = take_ptr(&data);
	small->len = len;
	return (ssize_t)size;
}

/*
 * A new file whose first content is refused would stay behind empty, and an
 * empty gitfile or commondir makes git give up on the whole tree.
 */
static bool
drop_locked(struct gitguard_small *small)
{
	struct stat mine, there;

	if (!small->created || small->dropped || fstat(small->fd, &mine) < 0 ||
	    mine.st_size > 0 ||
	    fstatat(small->dirfd, small->name, &there, AT_SYMLINK_NOFOLLOW) <
		    0 ||
	    mine.st_ino != there.st_ino || mine.st_dev != there.st_dev)
		return false;
	small->dropped = unlinkat(small->dirfd, small->name, 0) == 0;
	return small->dropped;
}

ssize_t
gitguard_small_write(struct gitguard_small *small, const struct policy *policy,
		     const void *buf, size_t size, off_t offset,
		     struct gitguard_check *ret_check)
{
	ssize_t r;

	*ret_check = (struct gitguard_check){ .policy = policy };
	pthread_mutex_lock(&small->lock);
	r = write_locked(small, buf, size, offset, ret_check);
	if (r == -EACCES)
		ret_check->removed = drop_locked(small);
	pthread_mutex_unlock(&small->lock);
	return r;
}

int
gitguard_small_truncate(struct gitguard_small *small, off_t size)
{
	int r = -EACCES;

	pthread_mutex_lock(&small->lock);
	if (size == (off_t)small->len) {
		r = 0;
	} else if (size == 0) {
		/* As with O_TRUNC: the disk follows with the next write. */
		small->len = 0;
		r = 0;
	}
	pthread_mutex_unlock(&small->lock);
	return r;
}
