/* SPDX-License-Identifier: MIT */

/*
 * 0, 1 and 2 are the caller's own descriptors, and with them the mounts that
 * the caller opened them on: /proc/self/fd/0 opens a file for writing that was
 * given for reading, fchmod() changes it, and a directory leads to all that is
 * around it.  So what is open for reading only is opened again:
 *
 *   a file       on a mount of its own, read-only and attached nowhere.  Found
 *                by its path before the world's mounts cover it, and compared
 *   a directory  by its path in the world; where it is not there, /dev/null
 *
 * What is open for writing the program may change anyhow, but for the sinks of
 * /dev: root's `> /dev/null` would let it take the mode of the machine's null
 * device away.  They are opened again in the world's own /dev, whose mounts are
 * read-only.
 *
 * The caller's offset does not move along, so it is set when the command has
 * ended: `{ pale run head -n 1; cat; } < file` works.
 */

#include "mount-helper/stdfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "mount-helper/steps.h"

/* Above 0, 1, 2 and what init numbers itself. */
#define FD_MIN 10

/* What a program can have set on its descriptor. */
#define KEPT_FLAGS (O_NONBLOCK | O_NOATIME | O_DIRECT)

/* By their numbers, Documentation/admin-guide/devices.txt of Linux. */
static const struct {
	unsigned int minor; /* of major 1 */
	const char *path;
} sinks[] = {
	{ 3, "/dev/null" },   { 5, "/dev/zero" },    { 7, "/dev/full" },
	{ 8, "/dev/random" }, { 9, "/dev/urandom" },
};

/* Its path in every world, or NULL. */
static const char *
sink_path(const struct stat *st)
{
	if (!S_ISCHR(st->st_mode) || major(st->st_rdev) != 1)
		return NULL;
	for (size_t i = 0; i < sizeof(sinks) / sizeof(*sinks); i++)
		if (minor(st->st_rdev) == sinks[i].minor)
			return sinks[i].path;
	return NULL;
}

void
stdfiles_init(struct stdfiles *files)
{
	for (int i = 0; i < STDFILES; i++)
		files->original[i] = files->copy[i] = -1;
}

/* The file of `fd` and no other, on a mount that takes no writes. */
static int
clone_read_only(int fd, const struct stat *st, int *ret_tree)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE,
	};
	_cleanup_(closep) int tree = -1;
	char path[PATH_MAX];
	struct stat found;
	int r;

	r = fd_path(fd, path);
	if (r < 0)
		return r;
	tree = open_tree(AT_FDCWD, path,
			 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
				 AT_SYMLINK_NOFOLLOW);
	if (tree < 0 || fstat(tree, &found) < 0)
		return -errno;
	if (found.st_dev != st->st_dev || found.st_ino != st->st_ino)
		return -ESTALE;
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	*ret_tree = take_fd(&tree);
	return 0;
}

static int
reopen_file(int fd, const struct stat *st, int *ret_original)
{
	_cleanup_(closep) int tree = -1, opened = -1, original = -1;
	int flags = fcntl(fd, F_GETFL), r;
	char link[32];
	off_t offset;

	r = clone_read_only(fd, st, &tree);
	if (r < 0)
		return r;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", tree);
	opened = open(link, O_RDONLY | O_CLOEXEC | (flags & KEPT_FLAGS));
	original = fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);
	if (opened < 0 || original < 0)
		return -errno;
	offset = lseek(fd, 0, SEEK_CUR);
	if (offset > 0 && lseek(opened, offset, SEEK_SET) < 0)
		return -errno;
	if (dup2(opened, fd) < 0)
		return -errno;
	*ret_original = take_fd(&original);
	return 0;
}

/* Whether it is open for reading, and not on a read-only mount already. */
static bool
is_wider_than_given(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	struct statvfs fs;

	return flags >= 0 && (flags & O_ACCMODE) == O_RDONLY &&
	       (fstatvfs(fd, &fs) < 0 || !(fs.f_flag & ST_RDONLY));
}

/* A file without a name is nobody's but its holders'. */
static bool
is_file_for_reading(int fd, const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_nlink > 0 &&
	       is_wider_than_given(fd);
}

bool
stdfiles_are_files(void)
{
	struct stat st;

	for (int fd = 0; fd < STDFILES; fd++)
		if (fstat(fd, &st) == 0 && is_file_for_reading(fd, &st))
			return true;
	return false;
}

int
stdfiles_fence(struct stdfiles *files, struct errmsg *why)
{
	static const char *const names[] = { "input", "output", "error" };
	int begun = step_begin(STEP_STDIO, why);

	if (begun < 0)
		return begun;
	for (int fd = 0; fd < STDFILES; fd++) {
		struct stat st;
		int r = 0;

		if (fstat(fd, &st) < 0)
			continue;
		/* A read-only mount would not hold a device. */
		if (S_ISBLK(st.st_mode) ||
		    (S_ISCHR(st.st_mode) && !sink_path(&st) && !isatty(fd)))
			r = -ENOTSUP;
		else if (is_file_for_reading(fd, &st))
			r = reopen_file(fd, &st, &files->original[fd]);
		if (r < 0)
			return errmsg_set(why, r,
					  "cannot give standard %s to the "
					  "world for reading only: %s; a pipe "
					  "can be given (cat FILE | pale run)",
					  names[fd], strerror(-r));
	}
	return 0;
}

/* Opens again, inside, what is named by a path there. */
static void
reopen_inside(int fd, const char *path, int flags)
{
	_cleanup_(closep) int opened = -1;

	if (path)
		opened = open(path, flags | O_NOCTTY | O_CLOEXEC);
	if (opened < 0)
		opened = open("/dev/null", (flags & O_ACCMODE) | O_CLOEXEC);
	if (opened < 0 || dup2(opened, fd) < 0)
		(void)close(fd);
}

void
stdfiles_enter_world(void)
{
	for (int fd = 0; fd < STDFILES; fd++) {
		char path[PATH_MAX];
		struct stat st;

		if (fstat(fd, &st) < 0)
			continue;
		if (sink_path(&st))
			reopen_inside(
				fd, sink_path(&st),
				fcntl(fd, F_GETFL) &
					(O_ACCMODE | O_APPEND | KEPT_FLAGS));
		else if (S_ISDIR(st.st_mode))
			reopen_inside(fd, fd_path(fd, path) == 0 ? path : NULL,
				      O_RDONLY | O_DIRECTORY);
	}
}

void
stdfiles_keep(struct stdfiles *files)
{
	for (int fd = 0; fd < STDFILES; fd++)
		if (files->original[fd] >= 0)
			files->copy[fd] = fcntl(fd, F_DUPFD_CLOEXEC, FD_MIN);
}

void
stdfiles_settle(const struct stdfiles *files)
{
	for (int fd = 0; fd < STDFILES; fd++) {
		off_t offset;

		if (files->copy[fd] < 0)
			continue;
		offset = lseek(files->copy[fd], 0, SEEK_CUR);
		if (offset >= 0)
			(void)lseek(files->original[fd], offset, SEEK_SET);
	}
}

void
stdfiles_fini(struct stdfiles *files)
{
	for (int fd = 0; fd < STDFILES; fd++) {
		closep(&files->original[fd]);
		closep(&files->copy[fd]);
	}
}
