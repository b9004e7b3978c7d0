/* SPDX-License-Identifier: MIT */

#include "mount-helper/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "mount-helper/advice.h"
#include "mount-helper/helper.h"
#include "mount-helper/steps.h"

#define COVER_DIR  "d"
#define COVER_FILE "f"

static int
sys_failed(struct errmsg *why, const char *what, const char *path)
{
	int r = -errno;

	return errmsg_set(why, r, "cannot %s '%s': %s", what, path,
			  strerror(-r));
}

/* ---- prepare ---- */

static int
fuse_open(struct mounts *m, struct errmsg *why)
{
	int r;

	r = step_begin(STEP_FUSE_OPEN, why);
	if (r < 0)
		return r;
	m->fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (m->fuse < 0) {
		r = -errno;
		return errmsg_set(why, r, "cannot open '/dev/fuse': %s%s",
				  strerror(-r), advice_fuse(r));
	}
	return 0;
}

static int
clone_source(const struct plan_mount *entry, int *ret_fd, struct errmsg *why)
{
	unsigned int flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID,
				   .propagation = MS_PRIVATE };
	_cleanup_(closep) int fd = -1;

	if (entry->kind == PLAN_BIND)
		flags |= AT_RECURSIVE;
	fd = open_tree(AT_FDCWD, entry->source, flags);
	if (fd < 0) {
		if ((entry->flags & PLAN_F_OPTIONAL) &&
		    (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
			return 0;
		return sys_failed(why, "bind", entry->source);
	}
	if (entry->kind != PLAN_DEVICE)
		attr.attr_set |= MOUNT_ATTR_NODEV;
	/* Devices and sockets take bytes through any mount. */
	if ((entry->flags & PLAN_F_RO) || entry->kind != PLAN_BIND)
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (mount_setattr(fd, "", AT_EMPTY_PATH | (flags & AT_RECURSIVE), &attr,
			  sizeof(attr)) < 0)
		return sys_failed(why, "restrict the mount of", entry->source);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int
prepare_entry(struct mounts *m, size_t i, struct errmsg *why)
{
	const struct plan_mount *entry = &m->plan->mounts[i];

	switch ((enum plan_mount_kind)entry->kind) {
	case PLAN_BIND:
	case PLAN_SOCKET:
	case PLAN_DEVICE:
		return clone_source(entry, &m->sources[i], why);
	case PLAN_DEV:
		return dev_prepare(m, why);
	case PLAN_FUSE:
		return entry->index == 0 ? fuse_open(m, why) : 0;
	case PLAN_OVERLAY:
	case PLAN_TMPFS:
	case PLAN_COVER:
	case PLAN_PROC:
	case PLAN_REMOUNT_RO:
	case PLAN_GRANT_TREE:
	case PLAN_GRANT_FILE:
	case PLAN_TEMP:
	case PLAN_MOUNT_KINDS:
		break;
	}
	return 0;
}

int
mounts_prepare(struct mounts *m, const struct plan *plan, bool userns,
	       struct errmsg *why)
{
	int r;

	m->plan = plan;
	m->userns = userns;
	m->fuse = m->covers = -1;
	for (size_t i = 0; i < DEV_COUNT; i++)
		m->devices[i] = -1;
	m->sources = malloc((plan->n_mounts + 1) * sizeof(int));
	m->sealed = malloc((plan->n_mounts + 1) * sizeof(int));
	if (!m->sources || !m->sealed)
		return errmsg_set(why, -ENOMEM, "out of memory");
	for (size_t i = 0; i < plan->n_mounts; i++)
		m->sources[i] = m->sealed[i] = -1;

	r = step_begin(STEP_SOURCES, why);
	for (size_t i = 0; i < plan->n_mounts && r == 0; i++)
		r = prepare_entry(m, i, why);
	/* Last: the rest needs the host's /dev. */
	for (size_t i = 0; i < plan->n_mounts && r == 0; i++)
		if (plan->mounts[i].kind == PLAN_OVERLAY)
			r = overlay_prepare(&plan->mounts[i], userns,
					    &m->sources[i], &m->home_tmpfs,
					    why);
	return r;
}

/* ---- seal ---- */

int
mounts_seal(struct errmsg *why)
{
	struct mount_attr attr = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV,
		.propagation = MS_PRIVATE,
	};
	int r;

	r = step_begin(STEP_READ_ONLY, why);
	if (r < 0)
		return r;
	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr)) <
	    0) {
		r = -errno;
		return errmsg_set(why, r,
				  "cannot make the host's mounts read-only: "
				  "%s%s",
				  strerror(-r),
				  r == -ENOSYS ? "; Linux 5.12 or newer is "
						 "needed"
					       : advice_userns(r));
	}
	return 0;
}

/* ---- apply ---- */

int
mount_attach(int fd, const char *target, struct errmsg *why)
{
	if (move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return sys_failed(why, "mount on", target);
	return 0;
}

static int
make_parents(char *path)
{
	for (char *at = path + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST && errno != EROFS)
			return -errno;
		*at = '/';
	}
	return 0;
}

int
mount_point_make(const char *path, bool is_dir, struct errmsg *why)
{
	_cleanup_(freep) char *copy = NULL;
	struct stat st;
	int r;

	if (lstat(path, &st) == 0) {
		if (S_ISDIR(st.st_mode) == is_dir)
			return 0;
		return errmsg_set(why, -ENOTDIR,
				  "cannot mount on '%s': it is %sa directory",
				  path, is_dir ? "not " : "");
	}
	if (errno != ENOENT)
		return sys_failed(why, "mount on", path);
	copy = strdup(path);
	if (!copy)
		return errmsg_set(why, -ENOMEM, "out of memory");
	r = make_parents(copy);
	if (r == 0 && is_dir && mkdir(path, 0755) < 0)
		r = -errno;
	if (r == 0 && !is_dir && mknod(path, S_IFREG | 0600, 0) < 0)
		r = -errno;
	if (r < 0)
		return errmsg_set(why, r, "cannot make mount point '%s': %s",
				  path, strerror(-r));
	return 0;
}

static int
apply_tmpfs(struct mounts *m, size_t i, struct errmsg *why)
{
	const struct plan_mount *entry = &m->plan->mounts[i];
	char options[64];
	int r, len;

	r = step_begin(STEP_TMPFS, why);
	if (r < 0)
		return r;
	r = mount_point_make(entry->target, true, why);
	if (r < 0)
		return r == -EROFS && (entry->flags & PLAN_F_OPTIONAL) ? 0 : r;
	len = snprintf(options, sizeof(options), "mode=%o", entry->mode);
	if (entry->size > 0)
		(void)snprintf(options + len, sizeof(options) - (size_t)len,
			       ",size=%llu", (unsigned long long)entry->size);
	if (mount("tmpfs", entry->target, "tmpfs", MS_NOSUID | MS_NODEV,
		  options) < 0)
		return sys_failed(why, "mount a tmpfs on", entry->target);
	if (entry->flags & PLAN_F_RO) {
		m->sealed[i] = open(entry->target, O_PATH | O_CLOEXEC);
		if (m->sealed[i] < 0)
			return sys_failed(why, "open", entry->target);
	}
	return 0;
}

static int
mount_fuse(struct mounts *m, const struct plan_mount *entry, int world_sock,
	   struct errmsg *why)
{
	char options[512];
	int r;

	r = step_begin(STEP_FUSE_MOUNT, why);
	if (r < 0)
		return r;
	r = mount_point_make(entry->target, true, why);
	if (r < 0)
		return r;
	if ((size_t)snprintf(options, sizeof(options), "fd=%d,%s", m->fuse,
			     m->plan->fuse_options) >= sizeof(options))
		return errmsg_set(why, -E2BIG,
				  "mount plan: FUSE options are "
				  "too long");
	if (mount("pale", entry->target, "fuse.pale", MS_NOSUID | MS_NODEV,
		  options) < 0) {
		r = -errno;
		return errmsg_set(
			why, r, "cannot mount the workspace '%s': %s%s",
			entry->target, strerror(-r),
			r == -ENODEV ? advice_fuse(r) : advice_userns(r));
	}

	r = step_begin(STEP_FUSE_SEND, why);
	if (r < 0)
		return r;
	r = wire_send(world_sock, WIRE_FUSE, getpid(), 0, m->fuse);
	(void)close(take_fd(&m->fuse));
	if (r < 0)
		return errmsg_set(why, r,
				  "the warden did not take the mount: %s",
				  strerror(-r));
	return 0;
}

/*
 * A further root is shown to this process alone, by a name in the workspace's
 * root; looking it up waits until the warden serves.
 */
static int
mount_fuse_root(struct mounts *m, const struct plan_mount *entry,
		struct errmsg *why)
{
	const char *workspace = NULL;
	char name[4096 + 32];
	_cleanup_(closep) int fd = -1;
	int r;

	r = step_begin(STEP_FUSE_ROOT, why);
	if (r < 0)
		return r;
	for (size_t i = 0; i < m->plan->n_mounts && !workspace; i++)
		if (m->plan->mounts[i].kind == PLAN_FUSE &&
		    m->plan->mounts[i].index == 0)
			workspace = m->plan->mounts[i].target;
	if (!workspace ||
	    (size_t)snprintf(name, sizeof(name), "%s/.pale-root-%u",
			     strcmp(workspace, "/") == 0 ? "" : workspace,
			     entry->index) >= sizeof(name))
		return errmsg_set(why, -EINVAL,
				  "mount plan: root '%s' without a workspace",
				  entry->target);
	fd = open_tree(AT_FDCWD, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return sys_failed(why, "serve", entry->target);
	r = mount_point_make(entry->target, true, why);
	if (r < 0)
		return r;
	return mount_attach(fd, entry->target, why);
}

/* One tmpfs holds what all covers show: nothing, readable by nobody. */
static int
make_covers(struct mounts *m, struct errmsg *why)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	_cleanup_(closep) int fs = -1, fd = -1;

	fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", "64k", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return sys_failed(why, "make", "a tmpfs for covers");
	fd = fsmount(fs, FSMOUNT_CLOEXEC,
		     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (fd < 0 || mkdirat(fd, COVER_DIR, 0) < 0 ||
	    mknodat(fd, COVER_FILE, S_IFREG, 0) < 0 ||
	    mount_setattr(fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return sys_failed(why, "make", "covers");
	m->covers = take_fd(&fd);
	return 0;
}

/* Whether the path is where a mount begins; errors count as "no". */
static bool
is_mount_root(const char *path)
{
	struct statx sx;

	return statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0, &sx) == 0 &&
	       (sx.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int
pin(const char *path, struct errmsg *why)
{
	_cleanup_(closep) int fd =
		open_tree(AT_FDCWD, path,
			  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd < 0)
		return sys_failed(why, "hold", path);
	return mount_attach(fd, path, why);
}

/*
 * A directory above the covered one could be renamed, cover and all, and
 * another be made in its place: what a mount lies on cannot.  Where nothing
 * takes writes, nothing is to be done.
 */
static int
pin_ancestors(const char *target, struct errmsg *why)
{
	_cleanup_(freep) char *path = strdup(target);
	size_t root = 0;
	struct statvfs fs;

	if (!path)
		return errmsg_set(why, -ENOMEM, "out of memory");
	if (statvfs(target, &fs) == 0 && (fs.f_flag & ST_RDONLY))
		return 0;
	for (size_t i = 1; path[i]; i++) {
		if (path[i] != '/')
			continue;
		path[i] = '\0';
		if (is_mount_root(path))
			root = i;
		path[i] = '/';
	}
	for (size_t i = root + 1; path[i]; i++) {
		int r;

		if (path[i] != '/')
			continue;
		path[i] = '\0';
		r = pin(path, why);
		if (r < 0)
			return r;
		path[i] = '/';
	}
	return 0;
}

static int
apply_cover(struct mounts *m, const struct plan_mount *entry,
	    struct errmsg *why)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;
	int r;

	r = step_begin(STEP_COVER, why);
	if (r < 0)
		return r;
	/* Nothing is there, and on a sealed mount nothing can come. */
	if (lstat(entry->target, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES
			       ? 0
			       : sys_failed(why, "cover", entry->target);
	if (m->covers < 0) {
		r = make_covers(m, why);
		if (r < 0)
			return r;
	}
	r = pin_ancestors(entry->target, why);
	if (r < 0)
		return r;
	fd = open_tree(m->covers, S_ISDIR(st.st_mode) ? COVER_DIR : COVER_FILE,
		       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return sys_failed(why, "cover", entry->target);
	return mount_attach(fd, entry->target, why);
}

static int
apply_source(struct mounts *m, size_t i, enum step step, struct errmsg *why)
{
	const struct plan_mount *entry = &m->plan->mounts[i];
	struct stat st;
	int r;

	r = step_begin(step, why);
	if (r < 0 || m->sources[i] < 0)
		return r;
	if (fstat(m->sources[i], &st) < 0)
		return sys_failed(why, "look at", entry->source);
	r = mount_point_make(entry->target, S_ISDIR(st.st_mode), why);
	if (r < 0)
		return r;
	return mount_attach(m->sources[i], entry->target, why);
}

static int
remount_ro(int dirfd, const char *path, const char *name, struct errmsg *why)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	int r;

	r = step_begin(STEP_REMOUNT, why);
	if (r < 0)
		return r;
	if (mount_setattr(dirfd, path, *path ? 0 : AT_EMPTY_PATH, &attr,
			  sizeof(attr)) < 0)
		return sys_failed(why, "make read-only", name);
	return 0;
}

static int
apply_entry(struct mounts *m, size_t i, int world_sock, struct errmsg *why)
{
	const struct plan_mount *entry = &m->plan->mounts[i];

	switch ((enum plan_mount_kind)entry->kind) {
	case PLAN_TMPFS:
		return apply_tmpfs(m, i, why);
	case PLAN_FUSE:
		return entry->index == 0 ? mount_fuse(m, entry, world_sock, why)
					 : mount_fuse_root(m, entry, why);
	case PLAN_BIND:
		return apply_source(m, i, STEP_BIND, why);
	case PLAN_SOCKET:
		return apply_source(m, i, STEP_SOCKET, why);
	case PLAN_DEVICE:
		return apply_source(m, i, STEP_DEVICE, why);
	case PLAN_OVERLAY:
		return apply_source(m, i, STEP_OVERLAY, why);
	case PLAN_COVER:
		return apply_cover(m, entry, why);
	case PLAN_DEV:
		return dev_apply(m, entry, &m->sealed[i], why);
	case PLAN_REMOUNT_RO:
		return remount_ro(AT_FDCWD, entry->target, entry->target, why);
	case PLAN_PROC:
	case PLAN_GRANT_TREE:
	case PLAN_GRANT_FILE:
	case PLAN_TEMP:
	case PLAN_MOUNT_KINDS:
		break;
	}
	return 0;
}

int
mounts_apply(struct mounts *m, int world_sock, struct errmsg *why)
{
	int r = 0;

	for (size_t i = 0; i < m->plan->n_mounts && r == 0; i++)
		r = apply_entry(m, i, world_sock, why);
	for (size_t i = 0; i < m->plan->n_mounts && r == 0; i++)
		if (m->sealed[i] >= 0)
			r = remount_ro(m->sealed[i], "",
				       m->plan->mounts[i].target, why);
	return r;
}

void
mounts_fini(struct mounts *m)
{
	if (!m->plan)
		return;
	for (size_t i = 0; m->sources && m->sealed && i < m->plan->n_mounts;
	     i++) {
		closep(&m->sources[i]);
		closep(&m->sealed[i]);
	}
	for (size_t i = 0; i < DEV_COUNT; i++)
		closep(&m->devices[i]);
	closep(&m->fuse);
	closep(&m->covers);
	free(m->sources);
	free(m->sealed);
	memset(m, 0, sizeof(*m));
}
