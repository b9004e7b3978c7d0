/* SPDX-License-Identifier: MIT */

#include "mount-helper/groups.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "mount-helper/steps.h"

#define CGROUP_ROOT   "/sys/fs/cgroup"
#define CPU_PERIOD_US 100000u

static int
write_file(const char *dir, const char *name, const char *text)
{
	char path[GROUPS_PATH + 64];
	_cleanup_(closep) int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fd_write_all(fd, text, strlen(text));
}

static int
write_number(const char *dir, const char *name, uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return write_file(dir, name, text);
}

/* Whether "cpu,cpuacct" names "cpu"; version 2 has no name at all. */
static bool
has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	while (strncmp(list, word, len) != 0 ||
	       (list[len] && list[len] != ',')) {
		list = strchr(list, ',');
		if (!list)
			return false;
		list++;
	}
	return true;
}

/*
 * The path of this process in one hierarchy of /proc/self/cgroup, whose lines
 * are "id:controllers:path"; version 2 is the line "0::path".
 */
static int
own_group(const char *controller, char *ret_path, size_t size)
{
	_cleanup_(freep) char *text = NULL;
	char *line, *rest;
	size_t len;
	int r;

	r = fd_read_path(AT_FDCWD, "/proc/self/cgroup", 1u << 16, &text, &len);
	if (r < 0)
		return r;
	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		if (*controller ? !has_word(names + 1, controller)
				: names[1] != '\0')
			continue;
		if (strcmp(path, "/") == 0)
			path++;
		if ((size_t)snprintf(ret_path, size, "%s", path) >= size)
			return -ENAMETOOLONG;
		return 0;
	}
	return -ENOENT;
}

static uint64_t
pids_limit(const struct plan *plan)
{
	return plan->pids > 0 ? plan->pids + GROUPS_OWN_PIDS : 0;
}

/* Makes `parent`/pale-ID and remembers it. */
static int
add_group(struct groups *groups, const char *parent, const char *world)
{
	char *path = groups->paths[groups->count];

	if ((size_t)snprintf(path, GROUPS_PATH, "%s/pale-%s", parent, world) >=
	    GROUPS_PATH)
		return -ENAMETOOLONG;
	if (mkdir(path, 0755) < 0)
		return -errno;
	groups->count++;
	return 0;
}

static int
make_v1(struct groups *groups, const struct plan *plan)
{
	const struct {
		const char *controller, *file;
		uint64_t value;
	} rows[] = {
		{ "memory", "memory.limit_in_bytes", plan->memory },
		{ "pids", "pids.max", pids_limit(plan) },
		{ "cpu", "cpu.cfs_quota_us",
		  plan->cpu_percent * (CPU_PERIOD_US / 100) },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char own[GROUPS_PATH / 2], parent[GROUPS_PATH - 32];
		const char *dir = groups->paths[groups->count];
		int r;

		if (rows[i].value == 0)
			continue;
		r = own_group(rows[i].controller, own, sizeof(own));
		if (r < 0)
			return r;
		(void)snprintf(parent, sizeof(parent), CGROUP_ROOT "/%s%s",
			       rows[i].controller, own);
		r = add_group(groups, parent, plan->world);
		if (r < 0)
			return r;
		if (i == 2)
			(void)write_number(dir, "cpu.cfs_period_us",
					   CPU_PERIOD_US);
		r = write_number(dir, rows[i].file, rows[i].value);
		if (r < 0)
			return r;
		/* Without this, memory beyond the limit goes to swap. */
		if (i == 0)
			(void)write_number(dir, "memory.memsw.limit_in_bytes",
					   rows[i].value);
	}
	groups->kind = GROUPS_V1;
	return 0;
}

static int
limit_v2(const char *dir, const struct plan *plan)
{
	char quota[48];
	int r = 0;

	if (plan->memory > 0) {
		r = write_number(dir, "memory.max", plan->memory);
		(void)write_number(dir, "memory.swap.max", 0);
	}
	if (r == 0 && plan->pids > 0)
		r = write_number(dir, "pids.max", pids_limit(plan));
	if (r == 0 && plan->cpu_percent > 0) {
		(void)snprintf(quota, sizeof(quota), "%llu %u",
			       (unsigned long long)plan->cpu_percent *
				       (CPU_PERIOD_US / 100),
			       CPU_PERIOD_US);
		r = write_file(dir, "cpu.max", quota);
	}
	return r;
}

/*
 * A group with processes cannot have limited children, so ours is made below
 * the nearest ancestor that lets us and hands the controllers on.
 */
static int
make_v2(struct groups *groups, const struct plan *plan)
{
	char own[GROUPS_PATH / 2], parent[GROUPS_PATH - 32];
	int r;

	if (access(CGROUP_ROOT "/cgroup.controllers", F_OK) < 0)
		return -ENOENT;
	r = own_group("", own, sizeof(own));
	if (r < 0)
		return r;
	for (;;) {
		char *slash = strrchr(own, '/');

		(void)snprintf(parent, sizeof(parent), CGROUP_ROOT "%s", own);
		r = add_group(groups, parent, plan->world);
		if (r == 0) {
			r = limit_v2(groups->paths[0], plan);
			if (r == 0) {
				groups->kind = GROUPS_V2;
				return 0;
			}
			groups_remove(groups);
		}
		if (!slash)
			return r;
		*slash = '\0';
	}
}

int
groups_make(struct groups *groups, const struct plan *plan, bool required,
	    struct errmsg *why)
{
	int r;

	groups->kind = GROUPS_NONE;
	groups->count = 0;
	if (plan->memory == 0 && plan->pids == 0 && plan->cpu_percent == 0)
		return 0;
	r = step_begin(STEP_LIMITS, why);
	if (r < 0)
		return r;

	if (make_v2(groups, plan) == 0)
		return 0;
	groups_remove(groups);
	r = geteuid() == 0 ? make_v1(groups, plan) : -EPERM;
	if (r == 0)
		return 0;
	groups_remove(groups);
	groups->kind = plan->pids > 0 ? GROUPS_RLIMIT : GROUPS_NONE;
	if (!required)
		return 0;
	return errmsg_set(why, -ENOTSUP,
			  "limits need a control group that this user may "
			  "write (%s): start pale below 'systemd-run --user "
			  "--scope -p Delegate=yes', or without "
			  "--require limits",
			  strerror(-r));
}

int
groups_enter(const struct groups *groups, pid_t pid, struct errmsg *why)
{
	for (unsigned int i = 0; i < groups->count; i++) {
		int r = write_number(groups->paths[i], "cgroup.procs",
				     (uint64_t)pid);

		if (r < 0)
			return errmsg_set(why, r,
					  "cannot enter the control group "
					  "'%s': %s",
					  groups->paths[i], strerror(-r));
	}
	return 0;
}

void
groups_remove(struct groups *groups)
{
	/* The last process may still be on its way out. */
	for (unsigned int i = 0; i < groups->count; i++)
		for (int tries = 0; rmdir(groups->paths[i]) < 0 &&
				    errno == EBUSY && tries < 200;
		     tries++)
			(void)usleep(5000);
	groups->count = 0;
}

const char *
groups_name(const struct groups *groups)
{
	static const char *const names[] = { "none", "cgroup2", "cgroup1",
					     "rlimit" };

	return names[groups->kind];
}
