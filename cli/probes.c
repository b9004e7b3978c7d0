/* SPDX-License-Identifier: MIT */

/* The table of probes, and how a test replaces their results. */

#include "cli/probes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/probes_priv.h"

#define PROBE_FILE_MAX 65536

const char *
probe_lack_name(enum probe_lack lack)
{
	static const char *const names[] = {
		[PROBE_VITAL] = "vital",       [PROBE_WORLD] = "world",
		[PROBE_LANDLOCK] = "landlock", [PROBE_PARTIAL] = "partial",
		[PROBE_SOCKETS] = "sockets",   [PROBE_ABSTRACT] = "abstract",
		[PROBE_NET] = "net",	       [PROBE_LIMITS] = "limits",
		[PROBE_FEATURE] = "feature",   [PROBE_NOTE] = "note",
	};

	return names[lack];
}

const struct probe probes[] = {
	{ "helper", "everything", PROBE_VITAL,
	  "make install, or keep pale-mount-helper beside pale", probe_helper },
	{ "fuse-device", "the fenced workspace", PROBE_WORLD, "modprobe fuse",
	  probe_fuse_device },
	{ "user-namespaces", "a world for an ordinary user", PROBE_WORLD,
	  "sysctl user.max_user_namespaces=15000", probe_userns },
	{ "fuse-mount", "the fenced workspace", PROBE_WORLD,
	  "use Linux 4.18 or newer, with CONFIG_FUSE_FS", probe_fuse_mount },
	{ "mount-setattr", "a read-only view of the machine", PROBE_VITAL,
	  "use Linux 5.12 or newer", probe_mount_setattr },
	{ "proc-mount", "the world's own /proc", PROBE_WORLD,
	  "in a container: --security-opt systempaths=unconfined (docker), "
	  "--security-opt unmask=ALL (podman)",
	  probe_proc_mount },
	{ "landlock", "fencing with less where no world can be made",
	  PROBE_LANDLOCK,
	  "use Linux 6.2 or newer, with landlock in the lsm= list",
	  probe_landlock },
	{ "seccomp", "refusing io_uring and terminal injection", PROBE_VITAL,
	  "use a kernel with CONFIG_SECCOMP_FILTER", probe_seccomp },
	{ "runtime-directory", "the world's socket", PROBE_VITAL,
	  "set XDG_RUNTIME_DIR to a directory of your own", probe_runtime },
	{ "seccomp-notify",
	  "guarding connect(2) and recording refusals outside the workspace",
	  PROBE_SOCKETS, "run pale outside of a world of its own",
	  probe_seccomp_notify },
	{ "yama", "reading the arguments of guarded calls", PROBE_SOCKETS,
	  "sysctl kernel.yama.ptrace_scope=1 (3 needs a reboot)", probe_yama },
	{ "landlock-scope", "keeping abstract sockets out of reach",
	  PROBE_ABSTRACT,
	  "use Linux 6.12 or newer, with landlock in the lsm= list",
	  probe_landlock_scope },
	{ "net-namespace", "--net none", PROBE_NET,
	  "sysctl user.max_net_namespaces=15000", probe_net },
	{ "cgroup", "--memory, --pids and --cpu on the whole world",
	  PROBE_LIMITS, "systemd-run --user --scope -p Delegate=yes pale run …",
	  probe_cgroup },
	{ "overlay", "--home private as a layer over the home directory",
	  PROBE_FEATURE, "use Linux 5.11 or newer, with CONFIG_OVERLAY_FS",
	  probe_overlay },
	{ "coherence", "keeping what the host does not change", PROBE_FEATURE,
	  "keep the workspace on a local file system; sysctl "
	  "fs.inotify.max_user_watches=1048576",
	  probe_coherence },
	{ "passthrough", "data of a run at the speed of the disk",
	  PROBE_FEATURE,
	  "as root of the host only, on Linux 6.9 or newer; all else works "
	  "without",
	  probe_passthrough },
	{ "fusermount3", "pale mount as an ordinary user", PROBE_FEATURE,
	  "apt-get install fuse3", probe_fusermount },
	{ "state-directory", "keeping records of refusals", PROBE_FEATURE,
	  "set XDG_STATE_HOME to a directory of your own", probe_state },
	{ "apparmor", "explains a failing user-namespaces", PROBE_NOTE,
	  "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
	  probe_apparmor },
	{ "userns-limit", "explains a failing user-namespaces", PROBE_NOTE,
	  "sysctl user.max_user_namespaces=15000", probe_userns_limit },
	{ "userns-clone", "explains a failing user-namespaces", PROBE_NOTE,
	  "sysctl kernel.unprivileged_userns_clone=1", probe_userns_clone },
	{ "not-nested", "explains a failing mount", PROBE_NOTE,
	  "run pale on the host, or give the container --device /dev/fuse",
	  probe_nested },
};

const size_t probes_count = sizeof(probes) / sizeof(probes[0]);

static int
inject_line(struct probe_result *results, char *line, struct errmsg *why)
{
	char *value = strchr(line, '='), *detail;

	if (!value)
		return errmsg_set(why, -EINVAL,
				  "PALE_PROBE_FILE: '%s' has no '='", line);
	*value++ = '\0';
	detail = strchr(value, ':');
	if (detail)
		*detail++ = '\0';

	for (size_t i = 0; i < probes_count; i++) {
		if (strcmp(probes[i].name, line) != 0)
			continue;
		results[i].ok = strcmp(value, "ok") == 0;
		results[i].cure = NULL;
		results[i].fallback = false;
		snprintf(results[i].detail, sizeof(results[i].detail), "%s",
			 detail ? detail : "injected");
		return 0;
	}
	return errmsg_set(why, -EINVAL, "PALE_PROBE_FILE: no probe '%s'", line);
}

static int
inject(const char *path, struct probe_result *results, struct errmsg *why)
{
	_cleanup_(freep) char *text = NULL;
	char *line, *rest = NULL;
	size_t len;
	int r;

	r = fd_read_path(AT_FDCWD, path, PROBE_FILE_MAX, &text, &len);
	if (r < 0)
		return errmsg_set(why, r, "cannot read '%s': %s", path,
				  strerror(-r));
	for (line = strtok_r(text, "\n", &rest); line && r == 0;
	     line = strtok_r(NULL, "\n", &rest))
		r = inject_line(results, line, why);
	return r;
}

int
probes_run(struct probe_result *ret_results, bool *ret_injected,
	   struct errmsg *why)
{
	const char *file = getenv("PALE_PROBE_FILE");

	for (size_t i = 0; i < probes_count; i++) {
		ret_results[i] = (struct probe_result){ .ok = false };
		probes[i].run(&ret_results[i]);
	}
	*ret_injected = file != NULL;
	return file ? inject(file, ret_results, why) : 0;
}
