/* SPDX-License-Identifier: MIT */

#include "warden/own_mounts.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/fd.h"

static int
write_proc(const char *path, const char *text)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fd_write_all(fd, text, strlen(text));
}

static int
map_self(uid_t uid, gid_t gid)
{
	char line[64];
	int r;

	(void)snprintf(line, sizeof(line), "%u %u 1\n", uid, uid);
	r = write_proc("/proc/self/uid_map", line);
	if (r < 0)
		return r;
	r = write_proc("/proc/self/setgroups", "deny");
	if (r < 0)
		return r;
	(void)snprintf(line, sizeof(line), "%u %u 1\n", gid, gid);
	return write_proc("/proc/self/gid_map", line);
}

/*
 * Capabilities over one's own user namespace override the modes of one's own
 * files; a mount must not read what its user cannot.
 */
static int
drop_capabilities(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct none[2] = { 0 };

	if (syscall(SYS_capset, &header, none) < 0)
		return -errno;
	return 0;
}

int
own_mounts_enter(struct errmsg *why)
{
	static const char sentence[] =
		"cannot serve a mount inside its own workspace: %s; "
		"choose a mount point outside it";
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return errmsg_set(why, -errno, sentence, strerror(errno));
	r = uid == 0 ? 0 : map_self(uid, gid);
	if (r < 0)
		return errmsg_set(why, r, sentence, strerror(-r));
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return errmsg_set(why, -errno, sentence, strerror(errno));
	r = uid == 0 ? 0 : drop_capabilities();
	if (r < 0)
		return errmsg_set(why, r, sentence, strerror(-r));
	return 0;
}
