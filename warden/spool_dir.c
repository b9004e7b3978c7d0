/* SPDX-License-Identifier: MIT */

#include "warden/spool_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/dirs.h"
#include "base/fd.h"

char *
spool_dir_path(const char *state, const char *world, const char *kind,
	       const char *id)
{
	char *path;

	if (asprintf(&path, "%s/worlds/%s/%s/%s", state, world, kind, id) < 0)
		return NULL;
	return path;
}

int
spool_dir_lock(int parent, const char *path, int *ret_fd)
{
	_cleanup_(closep) int fd = openat(
		parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

int
spool_dir_own(const char *path, int *ret_parent, int *ret_dir)
{
	_cleanup_(closep) int parent = -1;
	_cleanup_(freep) char *above = strdup(path);
	char *slash;
	int r;

	if (!above)
		return -ENOMEM;
	slash = strrchr(above, '/');
	*slash = '\0';
	r = spool_dir_lock(AT_FDCWD, above, &parent);
	if (r == 0)
		r = spool_dir_lock(parent, slash + 1, ret_dir);
	if (r == 0)
		*ret_parent = take_fd(&parent);
	return r;
}

bool
spool_dir_is_orphan(const char *state, const char *world, const char *kind)
{
	_cleanup_(freep) char *path = spool_dir_path(state, world, kind, ".");
	_cleanup_(closep) int fd = -1;

	return path && spool_dir_lock(AT_FDCWD, path, &fd) != -EBUSY;
}

void
spool_dir_fate(int dir, struct spool_fate *fate)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;

	fate->state = "lost";
	fate->reason =
		dir < 0 ? "its warden died before it began" : "its warden died";
	if (dir < 0 || fd_read_path(dir, "exit", 64, &text, &len) < 0)
		return;
	if (sscanf(text, "killed %d", &fate->value) == 1)
		fate->state = "killed";
	else if (sscanf(text, "exited %d", &fate->value) == 1)
		fate->state = "exited";
	else
		return;
	fate->reason = "its warden died; told by the keeper";
}

static void
remove_parents(const char *path)
{
	_cleanup_(freep) char *above = strdup(path);
	_cleanup_(closep) int fd = -1;

	if (!above)
		return;
	*strrchr(above, '/') = '\0';
	if (spool_dir_lock(AT_FDCWD, above, &fd) < 0 || rmdir(above) < 0)
		return;
	*strrchr(above, '/') = '\0';
	(void)rmdir(above);
}

int
spool_dir_remove(const char *path)
{
	_cleanup_(closep) int fd = -1;
	struct dirent *entry;
	DIR *dir;
	int copy;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno != ENOENT)
		return -errno;
	if (fd < 0) {
		remove_parents(path);
		return 0;
	}
	/* It has ended, but something that it left behind lives. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	dir = copy < 0 ? NULL : fdopendir(copy);
	if (!dir) {
		closep(&copy);
		return -ENOMEM;
	}
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			(void)unlinkat(fd, entry->d_name, 0);
	(void)closedir(dir);
	if (rmdir(path) < 0 && errno != ENOENT)
		return -errno;
	remove_parents(path);
	return 0;
}

int
spool_dir_make_root(const char *state, const char *world, const char *kind,
		    int *ret_fd, char **ret_path, struct errmsg *why)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(closep) int fd = -1;
	int r;

	if (asprintf(&path, "%s/worlds/%s/%s", state, world, kind) < 0) {
		path = NULL;
		return errmsg_set(why, -ENOMEM, "out of memory");
	}
	r = dirs_make(path, why);
	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return errmsg_set(why, -errno, "cannot lock '%s': %s", path,
				  strerror(errno));
	*ret_fd = take_fd(&fd);
	*ret_path = take_ptr(&path);
	return 0;
}
