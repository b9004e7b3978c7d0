/* SPDX-License-Identifier: MIT */

/*
 * Probes that try a thing.  What changes the process (namespaces, mounts) is
 * tried in a child, which tells through a pipe where it failed and dies; its
 * mounts go with its mount namespace.
 */

#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/probes_priv.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

/* The first ABI of Landlock that can scope abstract sockets and signals. */
#define LANDLOCK_ABI_SCOPE 6

/* The first by which a file cannot be truncated by its name. */
#define LANDLOCK_ABI_TRUNCATE 3

/* What a child tells: which call failed, and how. */
struct trial {
	int error; /* 0, or the positive errno */
	char what[48];
};

/* Returns the trial's own result, so that a step is one line. */
static int
failed(struct trial *trial, const char *what)
{
	trial->error = errno;
	snprintf(trial->what, sizeof(trial->what), "%s", what);
	return -trial->error;
}

static int
write_text(const char *path, const char *text)
{
	_cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	return write(fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* A user namespace in which we are who we were, and others as asked. */
static int
enter_userns(struct trial *trial, int flags)
{
	unsigned int uid = geteuid(), gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | flags) < 0)
		return failed(trial, "unshare");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	if (write_text("/proc/self/uid_map", map) < 0)
		return failed(trial, "uid_map");
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	if (write_text("/proc/self/setgroups", "deny") < 0 ||
	    write_text("/proc/self/gid_map", map) < 0)
		return failed(trial, "gid_map");
	/* Where AppArmor restricts, the namespace is had but not its use. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return failed(trial, "mount(MS_PRIVATE)");
	return 0;
}

/* The namespaces of a world: root has a way without the user namespace. */
static int
enter(struct trial *trial, int flags)
{
	int r = enter_userns(trial, flags);

	if (r == 0 || geteuid() != 0)
		return r;
	*trial = (struct trial){ 0 };
	if (unshare(CLONE_NEWNS | flags) < 0)
		return failed(trial, "unshare");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return failed(trial, "mount(MS_PRIVATE)");
	return 0;
}

static int
try_userns(struct trial *trial)
{
	return enter_userns(trial, CLONE_NEWIPC | CLONE_NEWUTS);
}

static int
try_net(struct trial *trial)
{
	return enter(trial, CLONE_NEWNET);
}

static int
try_fuse(struct trial *trial)
{
	_cleanup_(closep) int fd = -1;
	char options[96];
	int r = enter(trial, 0);

	if (r < 0)
		return r;
	/* The kernel wants it opened in the namespace that mounts it. */
	fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return failed(trial, "open(/dev/fuse)");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fd, geteuid(),
		 getegid());
	if (mount("probe", "/tmp", "fuse.pale", MS_NOSUID | MS_NODEV, options) <
	    0)
		return failed(trial, "mount(fuse)");
	return 0;
}

static int
try_proc(struct trial *trial)
{
	struct trial inner = { 0 };
	int r, status;
	pid_t pid;

	r = enter(trial, CLONE_NEWPID);
	if (r < 0)
		return r;
	pid = fork();
	if (pid < 0)
		return failed(trial, "fork");
	if (pid == 0) {
		if (mount("proc", "/proc", "proc",
			  MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
			_exit(-failed(&inner, "mount"));
		_exit(0);
	}
	if (waitpid(pid, &status, 0) < 0)
		return failed(trial, "waitpid");
	errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
	return errno ? failed(trial, "mount(proc)") : 0;
}

static int
try_overlay(struct trial *trial)
{
	static const char *const dirs[] = { "/tmp/l", "/tmp/u", "/tmp/w",
					    "/tmp/m" };
	int r = enter(trial, 0);

	if (r < 0)
		return r;
	if (mount("probe", "/tmp", "tmpfs", 0, NULL) < 0)
		return failed(trial, "mount(tmpfs)");
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (mkdir(dirs[i], 0700) < 0)
			return failed(trial, "mkdir");
	if (mount("probe", "/tmp/m", "overlay", 0,
		  "lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w,userxattr") <
	    0)
		return failed(trial, "mount(overlay)");
	return 0;
}

/* Runs `fn` in a child; false when it could not tell. */
static bool
in_child(int (*fn)(struct trial *trial), struct trial *ret_trial)
{
	int ends[2];
	ssize_t got;
	pid_t pid;

	*ret_trial = (struct trial){ .error = EIO, .what = "probe" };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	pid = fork();
	if (pid == 0) {
		struct trial trial = { 0 };

		fn(&trial);
		_exit(write(ends[1], &trial, sizeof(trial)) < 0);
	}
	close(ends[1]);
	got = pid < 0 ? -1
		      : fd_read_all(ends[0], ret_trial, sizeof(*ret_trial));
	close(ends[0]);
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
	return got == (ssize_t)sizeof(*ret_trial);
}

static void
probe_trial(struct probe_result *ret_result, int (*fn)(struct trial *trial),
	    const char *good)
{
	struct trial trial;

	if (!in_child(fn, &trial))
		probe_say(ret_result, false, "the probe itself failed");
	else if (trial.error)
		probe_say(ret_result, false, "%s: %s", trial.what,
			  strerror(trial.error));
	else
		probe_say(ret_result, true, "%s", good);
}

void
probe_userns(struct probe_result *ret_result)
{
	probe_trial(ret_result, try_userns, "can be made");
	ret_result->fallback = geteuid() == 0;
	if (!ret_result->ok &&
	    access("/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
		   F_OK) == 0)
		ret_result->cure =
			"sysctl kernel.apparmor_restrict_unprivileged_userns=0";
}

void
probe_net(struct probe_result *ret_result)
{
	probe_trial(ret_result, try_net, "can be made");
}

void
probe_fuse_mount(struct probe_result *ret_result)
{
	probe_trial(ret_result, try_fuse, "works in a user namespace");
}

void
probe_proc_mount(struct probe_result *ret_result)
{
	probe_trial(ret_result, try_proc, "can be mounted");
}

void
probe_overlay(struct probe_result *ret_result)
{
	probe_trial(ret_result, try_overlay, "works in a user namespace");
}

void
probe_fuse_device(struct probe_result *ret_result)
{
	_cleanup_(closep) int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		probe_say(ret_result, true, "/dev/fuse can be opened");
		return;
	}
	probe_say(ret_result, false, "/dev/fuse: %s", strerror(errno));
	if (errno == EACCES)
		ret_result->cure = "chmod 0666 /dev/fuse (as root)";
	else if (errno == EPERM)
		ret_result->cure =
			"start the container with --device /dev/fuse";
}

void
probe_mount_setattr(struct probe_result *ret_result)
{
	/* A bad size is told after the call itself is known. */
	(void)syscall(SYS_mount_setattr, -1, "", 0, NULL, 0);
	if (errno == ENOSYS)
		probe_say(ret_result, false, "not in this kernel");
	else
		probe_say(ret_result, true, "there");
}

/* Flags are judged before the filter, whose address is bad. */
static bool
has_filter_flags(unsigned long flags)
{
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, NULL) < 0 &&
	       errno == EFAULT;
}

void
probe_seccomp(struct probe_result *ret_result)
{
	bool ok = has_filter_flags(0);

	probe_say(ret_result, ok, "%s",
		  ok ? "filters can be loaded" : strerror(errno));
}

void
probe_seccomp_notify(struct probe_result *ret_result)
{
	unsigned int action = SECCOMP_RET_USER_NOTIF;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) < 0)
		probe_say(ret_result, false, "no user notification");
	else if (getenv("PALE_WORLD"))
		probe_say(ret_result, false,
			  "the world around this one has the listener");
	else if (!has_filter_flags(SECCOMP_FILTER_FLAG_NEW_LISTENER |
				   SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV))
		probe_say(ret_result, true,
			  "there; a signal makes a guarded call begin again");
	else
		probe_say(ret_result, true, "there, with WAIT_KILLABLE_RECV");
}

/* What this kernel's Landlock must know, and what that is good for. */
static void
look_at_landlock(struct probe_result *ret_result, long least, const char *what)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
			   LANDLOCK_CREATE_RULESET_VERSION);

	if (abi < 0)
		probe_say(ret_result, false, "Landlock: %s", strerror(errno));
	else
		probe_say(ret_result, abi >= least, "Landlock ABI %ld (%ld %s)",
			  abi, least, what);
}

void
probe_landlock(struct probe_result *ret_result)
{
	look_at_landlock(ret_result, LANDLOCK_ABI_TRUNCATE, "fences truncate");
}

void
probe_landlock_scope(struct probe_result *ret_result)
{
	look_at_landlock(ret_result, LANDLOCK_ABI_SCOPE, "has scopes");
}
