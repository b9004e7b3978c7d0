/* SPDX-License-Identifier: MIT */

/*
 * What a serving thread is while it serves.
 *
 * Each thread has its own umask (it leaves the shared fs_struct), so that the
 * backing file system applies the caller's umask, or a default ACL instead of
 * it, exactly as for a local call.  Each drops every capability but those of
 * the list below; above all CAP_FSETID, whose holder's writes would leave
 * setuid and setgid bits on the file.  CAP_SYS_ADMIN is kept, but not in effect,
 * where data passes through: the kernel takes a backing file from nobody else.
 *
 * With multi_uid the thread takes on the caller's ids for the one system call
 * that the caller is judged by, and is itself for everything else: finding an
 * object again must not depend on what the caller may search.
 */

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "fusefs/ops.h"

#define GROUPS_VALID_NS 50000000

struct serving {
	bool ready;
	bool as_caller;
	mode_t umask;
	/* Whose groups the thread has: asked of /proc, so kept for a moment. */
	pid_t groups_pid;
	uid_t groups_uid;
	gid_t groups_gid;
	int64_t groups_at;
	bool has_groups;
	/* The ids that were last found to be taken on. */
	uid_t ids_uid;
	gid_t ids_gid;
	bool has_ids;
	/* For fs_call_as_admin(). */
	uint32_t caps;
	bool may_admin;
};

static __thread struct serving serving;

/*
 * CAP_SETUID and CAP_SETGID are for taking on ids, CAP_SETFCAP for removing a
 * file's capabilities before a write; the rest is file access.
 */
static const unsigned int kept_caps[] = {
	CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
	CAP_SETUID, CAP_SETGID,	      CAP_SETFCAP,
};

/* `admin`: CAP_SYS_ADMIN can be had back by fs_call_as_admin(). */
static void
drop_caps(bool admin)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2];
	uint32_t keep = 0;

	for (size_t i = 0; i < sizeof(kept_caps) / sizeof(kept_caps[0]); i++)
		keep |= 1u << kept_caps[i];
	if (syscall(SYS_capget, &head, data) < 0)
		return;
	if (admin)
		serving.may_admin = data[0].permitted & (1u << CAP_SYS_ADMIN);
	data[0].permitted &= keep | (admin ? 1u << CAP_SYS_ADMIN : 0);
	data[0].effective = data[0].permitted & keep;
	serving.caps = data[0].permitted;
	data[0].inheritable = 0;
	memset(&data[1], 0, sizeof(data[1]));
	(void)syscall(SYS_capset, &head, data);
}

static void
become_serving(const struct fs *fs)
{
	(void)unshare(CLONE_FS);
	serving.umask = umask(0);
	(void)umask(serving.umask);
	drop_caps(fs->config.passthrough);
	serving.ready = true;
}

void
fs_call_start(struct fs_call *call, struct fs *fs, const struct fuse_ctx *ctx)
{
	if (!serving.ready)
		become_serving(fs);
	atomic_fetch_add_explicit(&fs->requests, 1, memory_order_relaxed);
	*call = (struct fs_call){
		.fs = fs,
		.begun = atomic_load(&fs->changes),
		.pid = ctx->pid,
		.uid = ctx->uid,
		.gid = ctx->gid,
	};
	fs_policy_enter(call);
}

int
fs_call_as_admin(bool on)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3,
						 0 };
	struct __user_cap_data_struct data[2] = { { 0 }, { 0 } };

	if (!serving.ready)
		return 0; /* not one of ours: it has what it has */
	if (!serving.may_admin)
		return -EPERM;
	data[0].permitted = serving.caps;
	data[0].effective = serving.caps;
	if (!on)
		data[0].effective &= ~(1u << CAP_SYS_ADMIN);
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

void
fs_call_begin(struct fs_call *call, fuse_req_t req)
{
	fs_call_start(call, fuse_req_userdata(req), fuse_req_ctx(req));
}

void
fs_call_end(struct fs_call *call)
{
	fs_as_self(call);
	fs_policy_leave(call);
}

void
fs_call_set_umask(mode_t mask)
{
	mask &= 0777;
	if (mask == serving.umask)
		return;
	(void)umask(mask);
	serving.umask = mask;
}

void
fs_call_umask(fuse_req_t req)
{
	fs_call_set_umask(fuse_req_ctx(req)->umask);
}

/* The groups of the caller's thread, from /proc; fewer when it has gone. */
static size_t
read_groups(pid_t pid, gid_t groups[], size_t max)
{
	char path[64], line[65536], *at;
	FILE *file;
	size_t n = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file)) {
		if (strncmp(line, "Groups:", 7) != 0)
			continue;
		at = line + 7;
		while (n < max) {
			char *end;
			unsigned long gid = strtoul(at, &end, 10);

			if (end == at)
				break;
			groups[n++] = (gid_t)gid;
			at = end;
		}
		break;
	}
	(void)fclose(file);
	return n;
}

static bool
groups_known(const struct fs_call *call)
{
	return serving.has_groups && serving.groups_pid == call->pid &&
	       serving.groups_uid == call->uid &&
	       serving.groups_gid == call->gid &&
	       clock_mono_ns() - serving.groups_at < GROUPS_VALID_NS;
}

static int
take_groups(const struct fs_call *call)
{
	static const size_t max = 4096;
	_cleanup_(freep) gid_t *groups = NULL;
	size_t n;

	if (groups_known(call))
		return 0;
	groups = calloc(max, sizeof(*groups));
	n = groups ? read_groups(call->pid, groups, max) : 0;
	/* Raw: the library's function would change every thread. */
	if (syscall(SYS_setgroups, n, groups) < 0)
		return -errno;
	serving.groups_pid = call->pid;
	serving.groups_uid = call->uid;
	serving.groups_gid = call->gid;
	serving.groups_at = clock_mono_ns();
	serving.has_groups = true;
	return 0;
}

/* These calls tell of no failure: a root without CAP_SETUID stays root. */
static bool
take_ids(uid_t uid, gid_t gid)
{
	(void)syscall(SYS_setfsgid, gid);
	(void)syscall(SYS_setfsuid, uid);
	serving.as_caller = true;
	if (serving.has_ids && serving.ids_uid == uid && serving.ids_gid == gid)
		return true;
	if ((uid_t)syscall(SYS_setfsuid, -1) != uid ||
	    (gid_t)syscall(SYS_setfsgid, -1) != gid)
		return false;
	serving.ids_uid = uid;
	serving.ids_gid = gid;
	serving.has_ids = true;
	return true;
}

int
fs_as_caller_group(struct fs_call *call, gid_t gid)
{
	if (!call->fs->config.multi_uid || (call->uid == 0 && gid == 0))
		return 0;
	if (call->uid == (uid_t)-1 || call->gid == (gid_t)-1)
		return -EACCES;

	/* Root's capabilities make its groups irrelevant. */
	if (call->uid != 0) {
		int r = take_groups(call);

		if (r < 0)
			return r;
	}
	if (take_ids(call->uid, gid))
		return 0;
	fs_as_self(call);
	return -EPERM;
}

int
fs_as_caller(struct fs_call *call)
{
	return fs_as_caller_group(call, call->gid);
}

void
fs_as_self(struct fs_call *call)
{
	(void)call;
	if (!serving.as_caller)
		return;
	(void)syscall(SYS_setfsuid, 0);
	(void)syscall(SYS_setfsgid, 0);
	serving.as_caller = false;
}
