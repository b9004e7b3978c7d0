/* SPDX-License-Identifier: MIT */

/*
 * Reading guarded files, and putting our own copy in their place: the bytes
 * that were judged, in an inode that no inmate has a descriptor, a mapping or
 * a second name of.
 *
 * The copy is written without a name, gets a random one and is renamed over
 * the target.  During that the kernel holds the directory for the request that
 * is being served, so no inmate can look the random name up.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "fusefs/gitguard_priv.h"

#define TEMP_NAME_MAX 32

void
gg_bytes_fini(struct gg_bytes *bytes)
{
	free(bytes->data);
	bytes->data = NULL;
}

int
gg_read(int dirfd, const char *name, struct gg_bytes *ret_bytes)
{
	_cleanup_(closep) int fd = -1;
	struct gg_bytes bytes = { 0 };
	struct stat st;
	int r;

	/* The type comes first: opening a device or a FIFO may have effects. */
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	fd = openat(dirfd, name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;

	r = fd_read_file(fd,
			 st.st_size > LIMIT_GITCONFIG ? LIMIT_GITINDEX
						      : LIMIT_GITCONFIG,
			 &bytes.data, &bytes.len);
	if (r < 0)
		return r;
	bytes.mode = st.st_mode & 07777;
	bytes.uid = st.st_uid;
	bytes.gid = st.st_gid;
	*ret_bytes = bytes;
	return 0;
}

static int
temp_name(char ret_name[TEMP_NAME_MAX])
{
	unsigned long long random[1];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(ret_name, TEMP_NAME_MAX, ".pale-%016llx", random[0]);
	return 0;
}

/* A new file under `temp`, filled; the caller unlinks it on a failure. */
static int
fill_temp(int dirfd, const char *temp, const struct gg_bytes *bytes)
{
	_cleanup_(closep) int fd = -1;
	bool named = false;
	char link[32];
	int r;

	fd = openat(dirfd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
		fd = openat(dirfd, temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
			    0600);
		named = true;
	}
	if (fd < 0)
		return -errno;

	r = fd_write_all(fd, bytes->data, bytes->len);
	if (r < 0)
		return r;
	/* Another owner can only be given by root; then it has to be. */
	if (fchown(fd, bytes->uid, bytes->gid) < 0 && errno != EPERM)
		return -errno;
	if (fchmod(fd, bytes->mode) < 0)
		return -errno;
	if (named)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, link, dirfd, temp, AT_SYMLINK_FOLLOW) < 0
		       ? -errno
		       : 0;
}

int
gg_replace(int dirfd, const char *name, const struct gg_bytes *bytes)
{
	char temp[TEMP_NAME_MAX];
	int r = temp_name(temp);

	if (r < 0)
		return r;
	r = fill_temp(dirfd, temp, bytes);
	if (r == 0 && renameat(dirfd, temp, dirfd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dirfd, temp, 0);
	return r;
}

int
gitguard_publish(const struct gitguard_at *from, const struct gitguard_at *to,
		 struct gitguard_check *check)
{
	_cleanup_(gg_bytes_fini) struct gg_bytes bytes = { 0 };
	int r;

	/* The bytes may have changed since the check: these are the ones. */
	r = gg_read(from->dirfd, from->name, &bytes);
	if (r < 0)
		return r;
	r = gg_judge(check->kind, to->dirfd, bytes.data, bytes.len, check);
	if (r < 0)
		return r;
	r = gg_replace(to->dirfd, to->name, &bytes);
	if (r < 0)
		return r;
	return unlinkat(from->dirfd, from->name, 0) < 0 ? -errno : 0;
}
