/* SPDX-License-Identifier: MIT */

#include "base/hostmount.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* ---- finding ---- */

void
hostmount_unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at;) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] &&
		    at[3]) {
			*to++ = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 |
				       (at[3] - '0'));
			at += 4;
		} else {
			*to++ = *at++;
		}
	}
	*to = '\0';
}

/* One line: "36 35 98:0 /root /point opts [tags] - type source super". */
static bool
parse_line(char *line, const char *mountpoint, dev_t *ret_dev, char **ret_type)
{
	char *point = line, *end, *type;
	unsigned int major, minor;

	if (sscanf(line, "%*d %*d %u:%u", &major, &minor) != 2)
		return false;
	for (int i = 0; i < 4; i++) {
		point = strchr(point, ' ');
		if (!point++)
			return false;
	}
	type = strstr(point, " - ");
	end = strchr(point, ' ');
	if (!type || !end)
		return false;
	*end = '\0';
	hostmount_unescape(point);
	if (strcmp(point, mountpoint) != 0)
		return false;
	type += 3;
	type[strcspn(type, " ")] = '\0';
	*ret_dev = makedev(major, minor);
	*ret_type = type;
	return true;
}

int
hostmount_find(const char *mountpoint, dev_t *ret_dev, char *ret_type,
	       size_t size)
{
	FILE *info = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, *type;
	size_t room = 0;
	int r = -ENOENT;
	dev_t dev;

	if (!info)
		return -errno;
	/* Of mounts stacked on one point the last listed is the topmost. */
	while (getline(&line, &room, info) > 0) {
		if (!parse_line(line, mountpoint, &dev, &type))
			continue;
		*ret_dev = dev;
		(void)snprintf(ret_type, size, "%s", type);
		r = 0;
	}
	free(line);
	(void)fclose(info);
	return r;
}

int
hostmount_canonical(const char *path, char **ret_path)
{
	_cleanup_(freep) char *copy = strdup(path);
	_cleanup_(freep) char *parent = NULL;
	char *name;
	int len;

	if (!copy)
		return -ENOMEM;
	*ret_path = realpath(path, NULL);
	if (*ret_path)
		return 0;
	if (errno != ENOTCONN)
		return -errno;

	for (size_t at = strlen(copy); at > 1 && copy[at - 1] == '/'; at--)
		copy[at - 1] = '\0';
	name = strrchr(copy, '/');
	if (name == copy)
		parent = strdup("");
	else if (name)
		*name = '\0', parent = realpath(copy, NULL);
	else
		parent = realpath(".", NULL);
	if (!parent)
		return -errno;
	len = asprintf(ret_path, "%s/%s", parent, name ? name + 1 : copy);
	return len < 0 ? -ENOMEM : 0;
}

/* ---- fusermount3 ---- */

/* It is found by name, as libfuse does; its messages come in `said`. */
static pid_t
spawn_fusermount(char *const argv[], int line, int said)
{
	char number[16];
	pid_t pid;

	(void)snprintf(number, sizeof(number), "%d", line);
	pid = fork();
	if (pid != 0)
		return pid;

	if (line >= 0) {
		(void)setenv("_FUSE_COMMFD", number, 1);
		(void)fcntl(line, F_SETFD, 0);
	}
	(void)dup2(said, STDERR_FILENO);
	(void)execvp(argv[0], argv);
	(void)dprintf(STDERR_FILENO, "%s: %s", argv[0], strerror(errno));
	_exit(127);
}

static int
wait_status(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static int
tell_failure(int said, const char *what, const char *mountpoint,
	     struct errmsg *why)
{
	char text[512] = "";
	ssize_t n = pread(said, text, sizeof(text) - 1, 0);
	int r;

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	r = strstr(text, "busy") ? -EBUSY : -EIO;
	return errmsg_set(why, r, "cannot %s '%s': %s", what, mountpoint,
			  *text ? text : "fusermount3 failed");
}

static int
run_fusermount(const char *mountpoint, bool lazy, struct errmsg *why)
{
	char *const argv[] = { (char *)(uintptr_t) "fusermount3",
			       (char *)(uintptr_t)(lazy ? "-uz" : "-u"),
			       (char *)(uintptr_t) "--",
			       (char *)(uintptr_t)mountpoint, NULL };
	_cleanup_(closep) int said = memfd_create("fusermount3", MFD_CLOEXEC);
	pid_t pid;

	if (said < 0)
		return errmsg_set(why, -errno, "%s", strerror(errno));
	pid = spawn_fusermount(argv, -1, said);
	if (pid < 0)
		return errmsg_set(why, -errno, "%s", strerror(errno));
	if (wait_status(pid) == 0)
		return 0;
	return tell_failure(said, "unmount", mountpoint, why);
}

/* A comma in the source would end the option; fusermount3 takes "\,". */
static int
user_options(const char *source, char **ret_options)
{
	_cleanup_(freep) char *escaped = malloc(2 * strlen(source) + 1);
	char *to = escaped;

	if (!escaped)
		return -ENOMEM;
	for (const char *at = source; *at; at++) {
		if (*at == ',' || *at == '\\')
			*to++ = '\\';
		*to++ = *at;
	}
	*to = '\0';
	if (asprintf(ret_options, "nosuid,nodev,subtype=pale,fsname=%s",
		     escaped) < 0)
		return -ENOMEM;
	return 0;
}

static int
mount_as_user(const struct hostmount_spec *spec, int *ret_fuse_fd,
	      struct errmsg *why)
{
	_cleanup_(closep) int said = memfd_create("fusermount3", MFD_CLOEXEC);
	_cleanup_(freep) char *options = NULL;
	int pair[2], fds[FD_PASS_MAX];
	size_t nfds = 0;
	char byte;
	ssize_t n;
	pid_t pid;

	if (said < 0 || user_options(spec->source, &options) < 0)
		return errmsg_set(why, -ENOMEM, "out of memory");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return errmsg_set(why, -errno, "%s", strerror(errno));

	char *const argv[] = { (char *)(uintptr_t) "fusermount3",
			       (char *)(uintptr_t) "-o",
			       options,
			       (char *)(uintptr_t) "--",
			       (char *)(uintptr_t)spec->mountpoint,
			       NULL };

	pid = spawn_fusermount(argv, pair[1], said);
	(void)close(pair[1]);
	n = pid < 0 ? -errno : fd_recv(pair[0], &byte, 1, fds, &nfds);
	(void)close(pair[0]);
	if (pid > 0)
		(void)wait_status(pid);
	if (n > 0 && nfds == 1) {
		*ret_fuse_fd = fds[0];
		return 0;
	}
	return tell_failure(said, "mount on", spec->mountpoint, why);
}

/* ---- root ---- */

static int
mount_as_root(const struct hostmount_spec *spec, int *ret_fuse_fd,
	      struct errmsg *why)
{
	_cleanup_(closep) int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	_cleanup_(freep) char *data = NULL;

	if (fd < 0)
		return errmsg_set(why, -errno,
				  "cannot open '/dev/fuse': %s; "
				  "try: modprobe fuse",
				  strerror(errno));
	if (asprintf(&data, "fd=%d,%s", fd, spec->options) < 0) {
		data = NULL;
		return errmsg_set(why, -ENOMEM, "out of memory");
	}
	if (mount(spec->source, spec->mountpoint, HOSTMOUNT_TYPE,
		  MS_NOSUID | MS_NODEV, data) < 0)
		return errmsg_set(why, -errno, "cannot mount on '%s': %s",
				  spec->mountpoint, strerror(errno));
	*ret_fuse_fd = take_fd(&fd);
	return 0;
}

int
hostmount_make(const struct hostmount_spec *spec, dev_t *ret_dev,
	       int *ret_fuse_fd, struct errmsg *why)
{
	_cleanup_(closep) int fuse_fd = -1;
	char type[64];
	int r;

	if (geteuid() == 0)
		r = mount_as_root(spec, &fuse_fd, why);
	else
		r = mount_as_user(spec, &fuse_fd, why);
	if (r < 0)
		return r;

	r = hostmount_find(spec->mountpoint, ret_dev, type, sizeof(type));
	if (r < 0) {
		(void)hostmount_remove(spec->mountpoint, true, NULL);
		return errmsg_set(why, r,
				  "the mount on '%s' is not in "
				  "/proc/self/mountinfo",
				  spec->mountpoint);
	}
	*ret_fuse_fd = take_fd(&fuse_fd);
	return 0;
}

int
hostmount_remove(const char *mountpoint, bool lazy, struct errmsg *why)
{
	if (geteuid() != 0)
		return run_fusermount(mountpoint, lazy, why);
	if (umount2(mountpoint, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) < 0)
		return errmsg_set(why, -errno, "cannot unmount '%s': %s",
				  mountpoint, strerror(errno));
	return 0;
}

int
hostmount_detach(const char *mountpoint, dev_t dev, struct errmsg *why)
{
	char type[64];
	dev_t found = 0;
	int r = hostmount_find(mountpoint, &found, type, sizeof(type));

	if (r < 0 || found != dev)
		return 0;
	return hostmount_remove(mountpoint, true, why);
}

bool
hostmount_is_dead(const char *mountpoint)
{
	struct statfs st;

	/*
	 * Attributes may be answered by the cache; this never is.  Who asks
	 * while the server's last descriptor is being closed is told that the
	 * connection was aborted.
	 */
	return statfs(mountpoint, &st) < 0 &&
	       (errno == ENOTCONN || errno == ECONNABORTED);
}

int
hostmount_bury(const char *mountpoint, dev_t dev, struct errmsg *why)
{
	if (!hostmount_is_dead(mountpoint))
		return 0;
	return hostmount_detach(mountpoint, dev, why);
}
