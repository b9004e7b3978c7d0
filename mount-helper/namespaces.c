/* SPDX-License-Identifier: MIT */

#include "mount-helper/namespaces.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

static const struct {
	const char *name;
	int type;
} rows[NAMESPACE_COUNT] = {
	[NAMESPACE_USER] = { "user", CLONE_NEWUSER },
	[NAMESPACE_IPC] = { "ipc", CLONE_NEWIPC },
	[NAMESPACE_UTS] = { "uts", CLONE_NEWUTS },
	[NAMESPACE_CGROUP] = { "cgroup", CLONE_NEWCGROUP },
	[NAMESPACE_NET] = { "net", CLONE_NEWNET },
	[NAMESPACE_PID] = { "pid", CLONE_NEWPID },
	[NAMESPACE_PRISTINE] = { NULL, CLONE_NEWNS },
	[NAMESPACE_MNT] = { "mnt", CLONE_NEWNS },
};

void
namespaces_init(struct namespaces *ns)
{
	for (int i = 0; i < NAMESPACE_COUNT; i++)
		ns->fd[i] = -1;
}

int
namespaces_open(struct namespaces *ns, struct errmsg *why)
{
	for (int i = 0; i < NAMESPACE_COUNT; i++) {
		char path[32];

		if (!rows[i].name)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s",
			       rows[i].name);
		ns->fd[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (ns->fd[i] < 0 && errno != ENOENT)
			return errmsg_set(why, -errno, "cannot open '%s': %s",
					  path, strerror(errno));
	}
	return 0;
}

uint32_t
namespaces_pack(const struct namespaces *ns, int *fds, size_t *ret_count)
{
	uint32_t mask = 0;
	size_t count = 0;

	for (int i = 0; i < NAMESPACE_COUNT; i++) {
		if (ns->fd[i] < 0)
			continue;
		mask |= 1u << i;
		fds[count++] = ns->fd[i];
	}
	*ret_count = count;
	return mask;
}

int
namespaces_unpack(struct namespaces *ns, uint32_t mask, int *fds, size_t count)
{
	size_t at = 0;

	for (int i = 0; i < NAMESPACE_COUNT; i++)
		if ((mask & 1u << i) && at < count)
			ns->fd[i] = take_fd(&fds[at++]);
	return mask >> NAMESPACE_COUNT == 0 && at == count &&
			       (size_t)__builtin_popcount(mask) == count
		       ? 0
		       : -EPROTO;
}

void
namespaces_drop_own(struct namespaces *ns)
{
	for (int i = 0; i < NAMESPACE_COUNT; i++) {
		struct stat own, st;
		char path[32];

		if (ns->fd[i] < 0 || !rows[i].name)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/self/ns/%s",
			       rows[i].name);
		if (stat(path, &own) == 0 && fstat(ns->fd[i], &st) == 0 &&
		    own.st_ino == st.st_ino && own.st_dev == st.st_dev)
			(void)close(take_fd(&ns->fd[i]));
	}
}

int
namespaces_join(const struct namespaces *ns, int which, struct errmsg *why)
{
	if (ns->fd[which] < 0 || setns(ns->fd[which], rows[which].type) == 0)
		return 0;
	return errmsg_set(why, -errno, "cannot enter the world (%s): %s",
			  rows[which].name ? rows[which].name : "mnt",
			  strerror(errno));
}

void
namespaces_fini(struct namespaces *ns)
{
	for (int i = 0; i < NAMESPACE_COUNT; i++)
		closep(&ns->fd[i]);
	namespaces_init(ns);
}
