/* SPDX-License-Identifier: MIT */

/*
 * The world's own /proc.
 *
 * Most of it belongs to the host's kernel.  Its files ask for a capability or
 * for uid 0, and uid 0 inside is uid 0 outside even without a capability: for
 * root the writable parts are covered by read-only views of themselves.  An
 * ordinary user can write none of them, and an uncovered /proc is what nested
 * sandboxes need to mount one.
 *
 * Control groups are files of the host as well, and whoever owns a control
 * group namespace may mount them writable: uid 0 and a user with a delegated
 * tree would reach the groups of processes outside.  A nested user namespace
 * could make itself one, so the world's user namespace allows no more.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "mount-helper/advice.h"
#include "mount-helper/mounts.h"
#include "mount-helper/steps.h"

static int
cover(const char *path)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_(closep) int fd = -1;

	fd = open_tree(AT_FDCWD, path,
		       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	/* What this kernel does not have needs no cover. */
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
			  sizeof(attr)) < 0 ||
	    move_mount(fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

static int
forbid_cgroup_namespaces(void)
{
	_cleanup_(closep) int fd = -1;

	fd = open("/proc/sys/user/max_cgroup_namespaces", O_WRONLY | O_CLOEXEC);
	/* A kernel without control groups. */
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	return fd_write_all(fd, "0", 1);
}

int
proc_mount(bool root, bool userns, struct errmsg *why)
{
	static const char *const writable[] = {
		"/proc/sys",
		"/proc/sysrq-trigger",
		"/proc/irq",
		"/proc/bus",
		"/proc/fs",
		"/proc/acpi",
		"/proc/scsi",
		"/proc/driver",
		"/proc/mtrr",
		"/proc/asound",
		"/proc/latency_stats",
		"/proc/timer_stats",
		"/proc/pressure",
	};
	int r;

	r = step_begin(STEP_PROC, why);
	if (r < 0)
		return r;
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) < 0) {
		r = -errno;
		return errmsg_set(why, r, "cannot mount a fresh /proc: %s%s",
				  strerror(-r), advice_proc(r));
	}
	r = userns ? forbid_cgroup_namespaces() : 0;
	if (r < 0)
		return errmsg_set(why, r,
				  "cannot forbid control group namespaces: %s",
				  strerror(-r));
	if (!root)
		return 0;

	r = step_begin(STEP_PROC_COVER, why);
	for (size_t i = 0; i < sizeof(writable) / sizeof(writable[0]) && r == 0;
	     i++) {
		r = cover(writable[i]);
		if (r < 0)
			return errmsg_set(why, r,
					  "cannot make '%s' read-only: %s",
					  writable[i], strerror(-r));
	}
	return r;
}
