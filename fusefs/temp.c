/* SPDX-License-Identifier: MIT */

#include "fusefs/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/xattr.h>

#include "base/clock.h"
#include "base/fd.h"

#define LOCK_NS	   10000000000LL
#define XATTR_ROOM (64u << 10)

int
temp_lock(int dirfd)
{
	int64_t until = clock_mono_ns() + LOCK_NS;

	while (flock(dirfd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (clock_mono_ns() > until)
			return -EBUSY;
		(void)usleep(500);
	}
	return 0;
}

int
temp_init(int dirfd, struct temp *ret_temp)
{
	uint64_t number = 0;

	*ret_temp = (struct temp)TEMP_NONE;
	ret_temp->dirfd = dirfd;
	if (getrandom(&number, sizeof(number), 0) < 0)
		return -errno;
	(void)snprintf(ret_temp->name, sizeof(ret_temp->name),
		       TEMP_PREFIX "%016llx", (unsigned long long)number);
	return 0;
}

int
temp_make(struct temp *temp, mode_t mode, const void *data, size_t len)
{
	temp->fd =
		openat(temp->dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (temp->fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR ||
			     errno == EINVAL || errno == ENOENT)) {
		temp->fd = openat(temp->dirfd, temp->name,
				  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		temp->named = temp->fd >= 0;
	}
	return temp->fd < 0 ? -errno : fd_write_all(temp->fd, data, len);
}

/* What is of no meaning for other bytes, or is not ours to give. */
static bool
is_copied(const char *name)
{
	return strncmp(name, "user.", 5) == 0 ||
	       strncmp(name, "system.posix_acl_", 17) == 0 ||
	       strncmp(name, "trusted.", 8) == 0;
}

static int
copy_attributes(int to, int from)
{
	_cleanup_(freep) char *names = malloc(XATTR_ROOM);
	_cleanup_(freep) char *value = malloc(XATTR_ROOM);
	ssize_t len, n;

	if (!names || !value)
		return -ENOMEM;
	len = flistxattr(from, names, XATTR_ROOM);
	if (len < 0)
		return errno == ENOTSUP ? 0 : -errno;
	for (const char *at = names; at < names + len; at += strlen(at) + 1) {
		if (!is_copied(at))
			continue;
		n = fgetxattr(from, at, value, XATTR_ROOM);
		if (n < 0 && errno == ENODATA)
			continue;
		if (n < 0 || fsetxattr(to, at, value, (size_t)n, 0) < 0)
			return -errno;
	}
	return 0;
}

int
temp_dress(const struct temp *temp, int old, const struct stat *st)
{
	struct stat mine;

	if (fstat(temp->fd, &mine) < 0)
		return -errno;
	if ((mine.st_uid != st->st_uid || mine.st_gid != st->st_gid) &&
	    fchown(temp->fd, st->st_uid, st->st_gid) < 0)
		return -errno;
	/* The owner first: a change of it takes bits of the mode away. */
	if (fchmod(temp->fd, st->st_mode & 07777) < 0)
		return -errno;
	return copy_attributes(temp->fd, old);
}

int
temp_link(struct temp *temp, const char *name)
{
	char path[64];

	if (temp->named) {
		if (renameat2(temp->dirfd, temp->name, temp->dirfd, name,
			      RENAME_NOREPLACE) < 0)
			return -errno;
		temp->named = false;
		return 0;
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", temp->fd);
	return linkat(AT_FDCWD, path, temp->dirfd, name, AT_SYMLINK_FOLLOW) < 0
		       ? -errno
		       : 0;
}

int
temp_name(struct temp *temp)
{
	int r = temp->named ? 0 : temp_link(temp, temp->name);

	if (r == 0)
		temp->named = true;
	return r;
}

void
temp_fini(struct temp *temp)
{
	if (temp->named)
		(void)unlinkat(temp->dirfd, temp->name, 0);
	temp->named = false;
	closep(&temp->fd);
	temp->fd = -1;
}
