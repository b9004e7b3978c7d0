/* SPDX-License-Identifier: MIT */

#include "mount-helper/advice.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#define SYSCTL "/proc/sys/"

/* The first character of a sysctl's value, or 0. */
static char
sysctl_value(const char *path)
{
	char value = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, &value, 1) != 1)
		value = 0;
	(void)close(fd);
	return value;
}

const char *
advice_userns(int r)
{
	static const struct {
		const char *path;
		char off;
		const char *cure;
	} rows[] = {
		{ SYSCTL "kernel/unprivileged_userns_clone", '0',
		  "; user namespaces are switched off: "
		  "sysctl -w kernel.unprivileged_userns_clone=1" },
		{ SYSCTL "user/max_user_namespaces", '0',
		  "; user namespaces are switched off: "
		  "sysctl -w user.max_user_namespaces=10000" },
		{ SYSCTL "user/max_mnt_namespaces", '0',
		  "; mount namespaces are switched off: "
		  "sysctl -w user.max_mnt_namespaces=10000" },
		{ SYSCTL "kernel/apparmor_restrict_unprivileged_userns", '1',
		  "; AppArmor restricts user namespaces: "
		  "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, "
		  "or an AppArmor profile for pale that allows userns" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (sysctl_value(rows[i].path) == rows[i].off)
			return rows[i].cure;
	if (r == -EPERM || r == -EACCES)
		return "; user namespaces are refused here: inside a container "
		       "its seccomp or AppArmor profile must allow them";
	if (r == -ENOSPC || r == -EUSERS)
		return "; a limit on namespaces is reached: see the sysctls "
		       "user.max_*_namespaces";
	if (r == -EINVAL || r == -ENOSYS)
		return "; this kernel is built without user namespaces";
	return "";
}

const char *
advice_fuse(int r)
{
	if (r == -ENOENT)
		return "; load the module (modprobe fuse), or hand the device "
		       "to the container (--device /dev/fuse); inside a world "
		       "of pale it is never there";
	if (r == -ENODEV || r == -ENXIO)
		return "; load the module: modprobe fuse";
	if (r == -EACCES || r == -EPERM)
		return "; its mode must be 0666 (chmod 666 /dev/fuse), and a "
		       "container's device rules must allow it";
	return "";
}

const char *
advice_proc(int r)
{
	if (r == -EPERM)
		return "; the /proc here is partly covered, as in a "
		       "container: start that with its masks off "
		       "(--security-opt systempaths=unconfined)";
	return "";
}
