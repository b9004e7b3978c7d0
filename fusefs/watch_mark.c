/* SPDX-License-Identifier: MIT */

/*
 * The two ways in which the kernel can be asked to tell of changes in a
 * directory, and where it cannot.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/vfs.h>

#include "fusefs/watch.h"
#include "fusefs/watch_priv.h"

/* CLOSE_WRITE: the end of a mapping, whose stores nobody tells of. */
#define FAN_WANTED                                                             \
	(FAN_MODIFY | FAN_ATTRIB | FAN_CLOSE_WRITE | FAN_CREATE | FAN_DELETE | \
	 FAN_MOVED_FROM | FAN_MOVED_TO | FAN_DELETE_SELF | FAN_MOVE_SELF |     \
	 FAN_ONDIR | FAN_EVENT_ON_CHILD)
#define IN_WANTED                                                         \
	(IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | \
	 IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF |    \
	 IN_ONLYDIR)

/* Since 6.5: a handle to compare, also where there is none to open. */
#ifndef AT_HANDLE_FID
#define AT_HANDLE_FID 0x200
#endif

/*
 * Where somebody else than this kernel can change a file, or nothing tells
 * that it did.
 */
static const uint32_t untold_systems[] = {
	0x6969 /* nfs */,	  0x65735546 /* fuse, virtiofs */,
	0xff534d42 /* cifs */,	  0xfe534d42 /* smb2 */,
	0x517b /* smb */,	  0x01021997 /* 9p */,
	0x00c36400 /* ceph */,	  0x5346414f /* afs */,
	0x6b414653 /* kafs */,	  0x73757245 /* coda */,
	0x0bd00bd0 /* lustre */,  0x7461636f /* ocfs2 */,
	0x01161970 /* gfs2 */,	  0x47504653 /* gpfs */,
	0x786f4256 /* vboxsf */,  0xbacbacbc /* vmhgfs */,
	0x9fa0 /* proc */,	  0x62656572 /* sysfs */,
	0x64626720 /* debugfs */, 0x74726163 /* tracefs */,
	0x27e0eb /* cgroup */,	  0x63677270 /* cgroup2 */,
	0x1cd1 /* devpts */,	  0x42494e4d /* binfmt_misc */,
};

static bool
is_untold(uint32_t magic)
{
	for (size_t i = 0; i < sizeof(untold_systems) / sizeof(uint32_t); i++)
		if (untold_systems[i] == magic)
			return true;
	return false;
}

uint64_t
watch_fan_key(uint64_t fsid, const void *handle, size_t size)
{
	const unsigned char *bytes = handle;
	uint64_t key = fsid ^ 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		key = (key ^ bytes[i]) * 0x100000001b3u;
	key ^= key >> 32;
	key *= 0xbf58476d1ce4e5b9u;
	/* Odd ones are inotify's. */
	return (key ^ key >> 29) & ~UINT64_C(1);
}

struct watch_dev
watch_ask_device(int fd)
{
	/* One that cannot be asked gives no promises. */
	struct watch_dev dev = { .known = true, .untold = true };
	struct statfs st;

	if (fstatfs(fd, &st) == 0) {
		dev.untold = is_untold((uint32_t)st.f_type);
		memcpy(&dev.fsid, &st.f_fsid, sizeof(dev.fsid));
	}
	return dev;
}

int
watch_handle_key(const struct watch_dev *dev, int fd, uint64_t *ret_key)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} at = { .handle = { .handle_bytes = MAX_HANDLE_SZ } };
	int mount_id;

	if (name_to_handle_at(fd, "", &at.handle, &mount_id,
			      AT_EMPTY_PATH | AT_HANDLE_FID) < 0) {
		at.handle.handle_bytes = MAX_HANDLE_SZ;
		if (name_to_handle_at(fd, "", &at.handle, &mount_id,
				      AT_EMPTY_PATH) < 0)
			return -errno;
	}
	*ret_key = watch_fan_key(dev->fsid, at.handle.f_handle,
				 at.handle.handle_bytes);
	return 0;
}

static int
mark_fan(struct fs_watch *watch, const struct watch_dev *dev, int fd,
	 uint64_t *ret_key)
{
	char path[FS_PROC_PATH_MAX];
	int r;

	if (watch->fan < 0)
		return -EOPNOTSUPP;
	r = watch_handle_key(dev, fd, ret_key);
	if (r < 0)
		return r;
	fs_proc_path(fd, path);
	return fanotify_mark(watch->fan, FAN_MARK_ADD | FAN_MARK_ONLYDIR,
			     FAN_WANTED, AT_FDCWD, path) < 0
		       ? -errno
		       : 0;
}

static int
mark_ino(struct fs_watch *watch, int fd, uint64_t *ret_key)
{
	char path[FS_PROC_PATH_MAX];
	int wd;

	if (watch->ino < 0)
		return -EOPNOTSUPP;
	fs_proc_path(fd, path);
	wd = inotify_add_watch(watch->ino, path, IN_WANTED);
	if (wd < 0)
		return -errno;
	*ret_key = watch_ino_key(wd);
	return 0;
}

int
watch_mark(struct fs_watch *watch, const struct watch_dev *dev, int fd,
	   uint64_t *ret_key)
{
	int r = mark_fan(watch, dev, fd, ret_key);

	return r < 0 ? mark_ino(watch, fd, ret_key) : r;
}

void
watch_unmark(struct fs_watch *watch, int fd)
{
	char path[FS_PROC_PATH_MAX];

	fs_proc_path(fd, path);
	(void)fanotify_mark(watch->fan, FAN_MARK_REMOVE | FAN_MARK_ONLYDIR,
			    FAN_WANTED, AT_FDCWD, path);
}

static int
open_fan(void)
{
	const unsigned int flags = FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK;
	/* Unlimited for those alone who may; the object since Linux 5.17. */
	const unsigned int wishes[] = {
		FAN_REPORT_DFID_NAME_TARGET | FAN_UNLIMITED_MARKS,
		FAN_REPORT_DFID_NAME_TARGET,
		FAN_REPORT_DFID_NAME | FAN_UNLIMITED_MARKS,
		FAN_REPORT_DFID_NAME,
	};
	int fd = -1;

	for (size_t i = 0; fd < 0 && i < sizeof(wishes) / sizeof(wishes[0]);
	     i++)
		fd = fanotify_init(flags | wishes[i], O_RDONLY);
	return fd;
}

void
watch_open_ways(struct fs_watch *watch, enum fs_watch_how how)
{
	watch->fan = how == FS_WATCH_BEST ? open_fan() : -1;
	watch->ino = how == FS_WATCH_NONE
			     ? -1
			     : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

bool
fs_watch_probe(const char *path, char *ret_text, size_t size)
{
	_cleanup_(closep) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct watch_dev dev = watch_ask_device(fd);
	struct fs_watch watch = { .fan = -1 };
	uint64_t key = 0;
	int r;

	if (fd >= 0 && dev.untold) {
		(void)snprintf(ret_text, size,
			       "timeouts: the file system tells of no changes");
		return false;
	}
	watch_open_ways(&watch, FS_WATCH_BEST);
	r = fd < 0 ? fd : watch_mark(&watch, &dev, fd, &key);
	if (r < 0)
		(void)snprintf(ret_text, size, "timeouts: %s",
			       r == -ENOSPC ? "no watches are left"
					    : strerror(-r));
	else
		(void)snprintf(ret_text, size, "notified (%s)",
			       key & 1 ? "inotify" : "fanotify");
	closep(&watch.fan);
	closep(&watch.ino);
	return r == 0;
}
