/* SPDX-License-Identifier: MIT */

/*
 * A fresh /dev: the sinks and the terminal of the caller as binds of the
 * host's nodes (an ordinary user cannot make nodes), terminals of its own,
 * links to the process's descriptors.  No other device of the host is there.
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

static const char *const names[DEV_COUNT] = {
	[DEV_NULL] = "null",	   [DEV_ZERO] = "zero",
	[DEV_FULL] = "full",	   [DEV_RANDOM] = "random",
	[DEV_URANDOM] = "urandom", [DEV_TTY] = "tty",
	[DEV_CONSOLE] = "console",
};

int
dev_prepare(struct mounts *m, struct errmsg *why)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY |
					       MOUNT_ATTR_NOSUID };

	for (size_t i = 0; i < DEV_COUNT; i++) {
		char path[32];
		const char *from = path;

		(void)snprintf(path, sizeof(path), "/dev/%s", names[i]);
		if (i == DEV_CONSOLE)
			from = m->plan->console;
		if (!*from)
			continue;
		m->devices[i] = open_tree(AT_FDCWD, from,
					  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		/* A terminal of another /dev/pts has no path here. */
		if (m->devices[i] < 0 && i != DEV_CONSOLE)
			return errmsg_set(why, -errno, "cannot bind '%s': %s",
					  from, strerror(errno));
		if (m->devices[i] < 0)
			continue;
		/* Its owner writes to it all the same, but changes no mode. */
		if (mount_setattr(m->devices[i], "", AT_EMPTY_PATH, &attr,
				  sizeof(attr)) < 0)
			return errmsg_set(why, -errno,
					  "cannot restrict the mount of '%s': "
					  "%s",
					  from, strerror(errno));
	}
	return 0;
}

static int
make_entries(int dev, struct mounts *m)
{
	static const char *const links[][2] = {
		{ "/proc/self/fd", "fd" },
		{ "/proc/self/fd/0", "stdin" },
		{ "/proc/self/fd/1", "stdout" },
		{ "/proc/self/fd/2", "stderr" },
		{ "pts/ptmx", "ptmx" },
	};

	/* Clients of a standing world bring their terminals. */
	if ((m->plan->flags & PLAN_STANDING) && m->devices[DEV_CONSOLE] < 0 &&
	    mknodat(dev, names[DEV_CONSOLE], S_IFREG | 0600, 0) < 0)
		return -errno;
	for (size_t i = 0; i < DEV_COUNT; i++) {
		if (m->devices[i] < 0)
			continue;
		if (mknodat(dev, names[i], S_IFREG | 0600, 0) < 0 ||
		    move_mount(m->devices[i], "", dev, names[i],
			       MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return -errno;
	}
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (symlinkat(links[i][0], dev, links[i][1]) < 0)
			return -errno;
	if (mkdirat(dev, "pts", 0755) < 0 || mkdirat(dev, "shm", 01777) < 0 ||
	    mkdirat(dev, "mqueue", 01777) < 0)
		return -errno;
	return 0;
}

static int
mount_inner(const char *target, uint64_t shm_size, struct errmsg *why)
{
	char path[4096], options[64];
	int r;

	r = step_begin(STEP_DEVPTS, why);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/pts", target);
	if (mount("devpts", path, "devpts", MS_NOSUID | MS_NOEXEC,
		  "newinstance,ptmxmode=0666,mode=620") < 0)
		return errmsg_set(why, -errno,
				  "cannot mount terminals on '%s': %s", path,
				  strerror(errno));

	(void)snprintf(path, sizeof(path), "%s/shm", target);
	(void)snprintf(options, sizeof(options), "mode=1777,size=%llu",
		       (unsigned long long)shm_size);
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return errmsg_set(why, -errno, "cannot mount '%s': %s", path,
				  strerror(errno));

	/* Nice to have: few kernels lack it, fewer programs use it. */
	(void)snprintf(path, sizeof(path), "%s/mqueue", target);
	(void)mount("mqueue", path, "mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		    NULL);
	return 0;
}

int
dev_apply(struct mounts *m, const struct plan_mount *entry, int *ret_seal,
	  struct errmsg *why)
{
	_cleanup_(closep) int dev = -1;
	int r;

	r = step_begin(STEP_DEV, why);
	if (r < 0)
		return r;
	if (mount("tmpfs", entry->target, "tmpfs", MS_NOSUID | MS_NOEXEC,
		  "mode=755,size=64k") < 0)
		return errmsg_set(why, -errno, "cannot mount '%s': %s",
				  entry->target, strerror(errno));
	dev = open(entry->target, O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = dev < 0 ? -errno : make_entries(dev, m);
	if (r < 0)
		return errmsg_set(why, r, "cannot fill '%s': %s", entry->target,
				  strerror(-r));
	r = mount_inner(entry->target, entry->size, why);
	if (r < 0)
		return r;
	*ret_seal = take_fd(&dev);
	return 0;
}
