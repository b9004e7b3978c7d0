/* SPDX-License-Identifier: MIT */

/* Probes that look at files: settings of the kernel, directories, programs. */

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dirs.h"
#include "base/fd.h"
#include "cli/probes_priv.h"
#include "fusefs/fs.h"

#define SMALL_FILE 4096

void
probe_say(struct probe_result *result, bool ok, const char *format, ...)
{
	va_list args;

	result->ok = ok;
	va_start(args, format);
	vsnprintf(result->detail, sizeof(result->detail), format, args);
	va_end(args);
}

/* A number in a file below /proc/sys; `absent` when there is no such file. */
static long
setting(const char *path, long absent)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;

	if (fd_read_path(AT_FDCWD, path, SMALL_FILE, &text, &len) < 0)
		return absent;
	return strtol(text, NULL, 10);
}

void
probe_helper(struct probe_result *ret_result)
{
	static const char name[] = "pale-mount-helper";
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 64);
	char *slash;

	if (len > 0) {
		path[len] = '\0';
		slash = strrchr(path, '/');
		memcpy(slash + 1, name, sizeof(name));
		if (access(path, X_OK) == 0) {
			probe_say(ret_result, true, "%s", path);
			return;
		}
	}
	snprintf(path, sizeof(path), "%s/%s", LIBEXEC, name);
	if (access(path, X_OK) == 0)
		probe_say(ret_result, true, "%s", path);
	else
		probe_say(ret_result, false, "no %s beside pale nor in %s",
			  name, LIBEXEC);
}

/* Can `path` be written to, or made below what there is of it? */
static void
writable(struct probe_result *ret_result, int r, char *path)
{
	char *slash;

	if (r < 0) {
		probe_say(ret_result, false, "no place for it: %s",
			  strerror(-r));
		return;
	}
	for (;;) {
		if (access(path, W_OK | X_OK) == 0) {
			probe_say(ret_result, true, "%s", path);
			return;
		}
		slash = strrchr(path, '/');
		if (errno != ENOENT || !slash || slash == path)
			break;
		*slash = '\0';
	}
	probe_say(ret_result, false, "%s: %s", path, strerror(errno));
}

void
probe_runtime(struct probe_result *ret_result)
{
	_cleanup_(freep) char *path = NULL;
	int r = dirs_runtime(&path);

	writable(ret_result, r, path);
}

void
probe_state(struct probe_result *ret_result)
{
	_cleanup_(freep) char *path = NULL;
	int r = dirs_state(&path);

	writable(ret_result, r, path);
}

void
probe_yama(struct probe_result *ret_result)
{
	long scope = setting("/proc/sys/kernel/yama/ptrace_scope", -1);

	if (scope < 0)
		probe_say(ret_result, true, "not in this kernel");
	else
		probe_say(ret_result, scope < 3, "ptrace_scope is %ld", scope);
}

void
probe_apparmor(struct probe_result *ret_result)
{
	long on = setting(
		"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 0);

	if (on && geteuid() != 0)
		probe_say(ret_result, false,
			  "user namespaces of ordinary users are restricted");
	else
		probe_say(ret_result, true, "no restriction");
}

void
probe_userns_limit(struct probe_result *ret_result)
{
	long max = setting("/proc/sys/user/max_user_namespaces", -1);

	if (max < 0)
		probe_say(ret_result, false,
			  "no user namespaces in this kernel");
	else
		probe_say(ret_result, max > 0,
			  "user.max_user_namespaces is %ld", max);
}

void
probe_userns_clone(struct probe_result *ret_result)
{
	long on = setting("/proc/sys/kernel/unprivileged_userns_clone", 1);

	if (!on && geteuid() != 0)
		probe_say(ret_result, false,
			  "kernel.unprivileged_userns_clone is 0");
	else
		probe_say(ret_result, true, "not switched off");
}

void
probe_nested(struct probe_result *ret_result)
{
	static const char *const signs[] = { "/.dockerenv",
					     "/run/.containerenv",
					     "/run/systemd/container" };

	if (getenv("PALE_WORLD")) {
		probe_say(ret_result, false, "inside a world of pale");
		return;
	}
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (access(signs[i], F_OK) == 0) {
			probe_say(ret_result, false, "a container (%s)",
				  signs[i]);
			return;
		}
	probe_say(ret_result, true, "no container");
}

/* Of where pale doctor is called: that would be the workspace. */
void
probe_coherence(struct probe_result *ret_result)
{
	char text[96];
	bool ok = fs_watch_probe(".", text, sizeof(text));

	probe_say(ret_result, ok, "%s", text);
}

/* Whether the kernel was built with it shows when it answers a mount. */
void
probe_passthrough(struct probe_result *ret_result)
{
	_cleanup_(freep) char *map = NULL;
	unsigned int major = 0, minor = 0, inside, outside, count = 0;
	struct utsname name;
	size_t len;

	if (uname(&name) == 0)
		(void)sscanf(name.release, "%u.%u", &major, &minor);
	if (fd_read_path(AT_FDCWD, "/proc/self/uid_map", 4096, &map, &len) == 0)
		(void)sscanf(map, "%u %u %u", &inside, &outside, &count);
	if (geteuid() != 0)
		probe_say(ret_result, false, "not root");
	else if (count != UINT_MAX)
		probe_say(ret_result, false, "not in the first user namespace");
	else
		probe_say(ret_result, major > 6 || (major == 6 && minor >= 9),
			  "Linux %s", name.release);
}

void
probe_fusermount(struct probe_result *ret_result)
{
	static const char *const places[] = { "/usr/bin/fusermount3",
					      "/bin/fusermount3",
					      "/usr/local/bin/fusermount3" };
	struct stat st;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (stat(places[i], &st) < 0)
			continue;
		if (geteuid() == 0 || (st.st_mode & S_ISUID))
			probe_say(ret_result, true, "%s", places[i]);
		else
			probe_say(ret_result, false, "%s is not setuid",
				  places[i]);
		return;
	}
	probe_say(ret_result, geteuid() == 0, "%s",
		  geteuid() == 0 ? "not needed as root" : "not installed");
}
