/* SPDX-License-Identifier: MIT */

/*
 * The private home: an overlay over the real one.
 *
 * The upper layer is kept in pale's state, which usually lies below the home
 * itself.  The kernel refuses an upper layer inside a lower one (ELOOP), so
 * the lower layer is an overlay of its own without an upper one: for the
 * check, another file system.  That takes two lower layers, the second one
 * empty, and layers must be attached somewhere: a scratch tmpfs over /dev
 * holds them, and is gone before the world's own /dev comes.
 *
 * Made before the seal, since a layer keeps the flags that its mount had.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mount-helper/mounts.h"
#include "mount-helper/steps.h"

#define LAYER_MAX 8192

#define SCRATCH	      "/dev"
#define SCRATCH_EMPTY SCRATCH "/empty"
#define SCRATCH_HOME  SCRATCH "/home"

/* ':' separates layers, so it is escaped in one. */
static int
put_layer(char *to, size_t size, const char *path)
{
	size_t at = strlen(to);

	for (; *path; path++) {
		if (at + 3 >= size)
			return -ENAMETOOLONG;
		if (*path == ':' || *path == '\\')
			to[at++] = '\\';
		to[at++] = *path;
	}
	to[at] = '\0';
	return 0;
}

static int
set_layer(int fs, const char *key, const char *path)
{
	char value[LAYER_MAX] = "";
	int r = put_layer(value, sizeof(value), path);

	if (r < 0)
		return r;
	return fsconfig(fs, FSCONFIG_SET_STRING, key, value, 0) < 0 ? -errno
								    : 0;
}

static int
finish(int fs, bool userns, int *ret_fd)
{
	int fd;

	if (userns && fsconfig(fs, FSCONFIG_SET_FLAG, "userxattr", NULL, 0) < 0)
		return -errno;
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* The home alone, as a lower layer. */
static int
make_lower(const char *home, bool userns, int *ret_fd)
{
	_cleanup_(closep) int fs = fsopen("overlay", FSOPEN_CLOEXEC);
	char value[LAYER_MAX] = "";
	size_t len;
	int r;

	if (fs < 0)
		return -errno;
	r = put_layer(value, sizeof(value) - sizeof(":" SCRATCH_EMPTY), home);
	if (r < 0)
		return r;
	len = strlen(value);
	memcpy(value + len, ":" SCRATCH_EMPTY, sizeof(":" SCRATCH_EMPTY));
	if (fsconfig(fs, FSCONFIG_SET_STRING, "lowerdir", value, 0) < 0)
		return -errno;
	return finish(fs, userns, ret_fd);
}

static int
make_overlay(const struct plan_mount *entry, bool userns, int *ret_fd)
{
	_cleanup_(closep) int fs = -1, lower = -1;
	int r;

	if (mkdir(SCRATCH_EMPTY, 0755) < 0 || mkdir(SCRATCH_HOME, 0755) < 0)
		return -errno;
	r = make_lower(entry->source, userns, &lower);
	if (r < 0)
		return r;
	if (move_mount(lower, "", AT_FDCWD, SCRATCH_HOME,
		       MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	fs = fsopen("overlay", FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	r = set_layer(fs, "lowerdir", SCRATCH_HOME);
	if (r == 0)
		r = set_layer(fs, "upperdir", entry->upper);
	if (r == 0)
		r = set_layer(fs, "workdir", entry->work);
	return r < 0 ? r : finish(fs, userns, ret_fd);
}

/* What cannot be layered (NFS, an overlay already) starts empty each time. */
static int
make_tmpfs(int *ret_fd)
{
	_cleanup_(closep) int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "700", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	fd = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int
overlay_prepare(const struct plan_mount *entry, bool userns, int *ret_fd,
		bool *ret_tmpfs, struct errmsg *why)
{
	int r;

	r = step_begin(STEP_OVERLAY, why);
	if (r < 0)
		return r;
	if (mount("tmpfs", SCRATCH, "tmpfs", 0, "mode=755") < 0)
		return errmsg_set(why, -errno,
				  "cannot mount a place for layers: %s",
				  strerror(errno));
	r = make_overlay(entry, userns, ret_fd);
	(void)umount2(SCRATCH, MNT_DETACH);
	*ret_tmpfs = r < 0;
	if (r < 0)
		r = make_tmpfs(ret_fd);
	if (r < 0)
		return errmsg_set(why, r,
				  "cannot make a private home over '%s': %s; "
				  "--home ro does without",
				  entry->source, strerror(-r));
	return 0;
}
