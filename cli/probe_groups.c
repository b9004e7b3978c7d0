/* SPDX-License-Identifier: MIT */

/*
 * Are limits on a whole world to be had?  Tried by making a control group as
 * the helper does: below our own, or the nearest ancestor that lets us and
 * hands its controllers on; for root also in the hierarchies of version 1.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/probes_priv.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define GROUP_PATH  1024

/* Our path in the hierarchy of `controller` ("": version 2), without "/". */
static bool
own_group(const char *controller, char *ret_path, size_t size)
{
	_cleanup_(freep) char *text = NULL;
	char *line, *rest = NULL;
	size_t len;

	if (fd_read_path(AT_FDCWD, "/proc/self/cgroup", 1u << 16, &text, &len) <
	    0)
		return false;
	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *name = strchr(line, ':');
		char *path = name ? strchr(name + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		if (strcmp(name + 1, controller) != 0)
			continue;
		if (strcmp(path, "/") == 0)
			path = strchr(path, '\0');
		return (size_t)snprintf(ret_path, size, "%s", path) < size;
	}
	return false;
}

/* Can a group be made in `parent` in which `file` takes a limit? */
static bool
can_limit(const char *parent, const char *file)
{
	char group[GROUP_PATH], path[GROUP_PATH + 64];
	bool ok;

	if ((size_t)snprintf(group, sizeof(group), "%s/pale-probe-%d", parent,
			     (int)getpid()) >= sizeof(group))
		return false;
	if (mkdir(group, 0755) < 0)
		return false;
	snprintf(path, sizeof(path), "%s/%s", group, file);
	ok = access(path, W_OK) == 0;
	(void)rmdir(group);
	return ok;
}

static bool
has_v2(void)
{
	char own[GROUP_PATH / 2], parent[GROUP_PATH];

	if (access(CGROUP_ROOT "/cgroup.controllers", F_OK) < 0 ||
	    !own_group("", own, sizeof(own)))
		return false;
	for (;;) {
		char *slash = strrchr(own, '/');

		snprintf(parent, sizeof(parent), CGROUP_ROOT "%s", own);
		if (can_limit(parent, "memory.max") &&
		    can_limit(parent, "pids.max"))
			return true;
		if (!slash)
			return false;
		*slash = '\0';
	}
}

static bool
has_v1(const char *controller, const char *file)
{
	char own[GROUP_PATH / 2], parent[GROUP_PATH];

	if (!own_group(controller, own, sizeof(own)))
		return false;
	snprintf(parent, sizeof(parent), CGROUP_ROOT "/%s%s", controller, own);
	return can_limit(parent, file);
}

void
probe_cgroup(struct probe_result *ret_result)
{
	bool memory, pids;

	if (has_v2()) {
		probe_say(ret_result, true, "version 2, delegated");
		return;
	}
	if (geteuid() != 0) {
		probe_say(ret_result, false, "no group that this user may use");
		return;
	}
	memory = has_v1("memory", "memory.limit_in_bytes");
	pids = has_v1("pids", "pids.max");
	if (memory && pids)
		probe_say(ret_result, true, "version 1");
	else
		probe_say(ret_result, false, "no controller for %s",
			  memory ? "processes" : "memory");
}
