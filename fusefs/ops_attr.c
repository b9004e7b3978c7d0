/* SPDX-License-Identifier: MIT */

/*
 * Attributes: getattr, setattr, access, statfs, readlink.
 */

#include <fcntl.h>
#include <limits.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "fusefs/fence.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"
#include "fusefs/watch.h"

/* A directory whose attributes are asked for is worth a watch. */
static void
watch_asked(struct fs *fs, struct fs_inode *inode)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;

	if (fs_inode_is_dir(inode) && !fs_watch_is_settled(inode) &&
	    fs_hold(fs, inode, &hold) == 0)
		fs_watch_add(fs, inode, hold.fd);
}

static int
fs_do_getattr(struct fs_call *call, fuse_ino_t ino,
	      const struct fuse_file_info *fi, struct stat *ret_attr,
	      double *ret_timeout)
{
	struct fs_inode *inode = fs_inode_peek(call->fs, ino);
	struct statx stx;
	int r;

	watch_asked(call->fs, inode);
	call->begun = atomic_load(&call->fs->changes);
	r = fi ? fs_statx_fd(fs_handle_of(fi)->fd, &stx)
	       : fs_stat(call->fs, inode, &stx);
	if (r < 0)
		return r;
	fs_attr(call->fs, inode->dev, &stx, ret_attr);
	*ret_timeout =
		fs_watch_attr_timeout(call->fs, inode, &stx, call->begun);
	return 0;
}

void
fs_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct stat attr;
	struct fs_call call;
	double timeout;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_getattr(&call, ino, fi, &attr, &timeout);
	fs_call_end(&call);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_attr(req, &attr, timeout);
}

/* ---- setattr ---- */

/* What is changed, on what. */
struct change {
	const struct stat *attr;
	int to_set;
	const struct fs_hold *hold;
	struct fs_handle *handle; /* the caller's own, or NULL */
};

#define WHO_MAY (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)

static enum policy_op
op_of(int to_set)
{
	if (to_set & FUSE_SET_ATTR_SIZE)
		return POLICY_OP_TRUNCATE;
	if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		return POLICY_OP_CHOWN;
	if (to_set & FUSE_SET_ATTR_MODE)
		return POLICY_OP_CHMOD;
	return POLICY_OP_UTIMENS;
}

/*
 * setuid and setgid bits that a root warden would set on a file for an
 * inmate.  Bits that are there already may stay.
 */
static int
refuse_set_id(struct fs_call *call, const struct change *change)
{
	const struct policy_verdict verdict = {
		.error = -EPERM,
		.code = POLICY_CODE_SANDBOX_DENIED,
		.rule = "no devices and no setuid bits",
		.source = "built-in",
	};
	mode_t special = change->attr->st_mode & (S_ISUID | S_ISGID);
	struct statx stx;
	int r;

	if (!call->fs->config.multi_uid ||
	    !(change->to_set & FUSE_SET_ATTR_MODE) || !special ||
	    fs_inode_is_dir(change->hold->inode))
		return 0;
	r = fs_statx_fd(change->hold->fd, &stx);
	if (r < 0 || (special & ~stx.stx_mode) == 0)
		return r;
	return fence_refuse(call, POLICY_OP_CHMOD, &verdict,
			    change->hold->inode, NULL);
}

static int
set_mode(struct fs_call *call, const struct change *change)
{
	mode_t mode = change->attr->st_mode & 07777;
	char path[FS_PROC_PATH_MAX];
	gid_t gid = call->gid;
	struct statx stx;
	int r;

	/*
	 * The kernel keeps S_ISGID only for a member of the group or a holder
	 * of CAP_FSETID, which no serving thread is; root may all the same.
	 */
	if (call->uid == 0 && (mode & S_ISGID) &&
	    fs_statx_fd(change->hold->fd, &stx) == 0)
		gid = stx.stx_gid;
	r = fs_as_caller_group(call, gid);
	if (r < 0)
		return r;
	if (change->hold->handle) {
		r = fchmod(change->hold->fd, mode);
	} else {
		fs_proc_path(change->hold->fd, path);
		r = chmod(path, mode);
	}
	r = r < 0 ? -errno : 0;
	fs_as_self(call);
	return r;
}

static int
set_owner(struct fs_call *call, const struct change *change)
{
	uid_t uid = change->to_set & FUSE_SET_ATTR_UID ? change->attr->st_uid
						       : (uid_t)-1;
	gid_t gid = change->to_set & FUSE_SET_ATTR_GID ? change->attr->st_gid
						       : (gid_t)-1;
	int r;

	r = fs_as_caller(call);
	if (r < 0)
		return r;
	r = fchownat(change->hold->fd, "", uid, gid, AT_EMPTY_PATH) < 0 ? -errno
									: 0;
	fs_as_self(call);
	return r;
}

static int
set_size(struct fs_call *call, const struct change *change)
{
	_cleanup_(closep) int fd = -1;
	struct statx stx;

	if (change->handle && change->handle->small)
		return gitguard_small_truncate(change->handle->small,
					       change->attr->st_size);
	if (change->handle)
		return ftruncate(change->handle->fd, change->attr->st_size) < 0
			       ? -errno
			       : 0;
	fd = fs_open_inode(call, change->hold->inode, O_WRONLY, &stx);
	if (fd < 0)
		return fd;
	return ftruncate(fd, change->attr->st_size) < 0 ? -errno : 0;
}

static struct timespec
time_to_set(int to_set, int bit, int now_bit, struct timespec value)
{
	struct timespec t = { .tv_nsec = UTIME_OMIT };

	if (to_set & now_bit)
		t.tv_nsec = UTIME_NOW;
	else if (to_set & bit)
		t = value;
	return t;
}

static int
set_times(struct fs_call *call, const struct change *change)
{
	const struct timespec times[2] = {
		time_to_set(change->to_set, FUSE_SET_ATTR_ATIME,
			    FUSE_SET_ATTR_ATIME_NOW, change->attr->st_atim),
		time_to_set(change->to_set, FUSE_SET_ATTR_MTIME,
			    FUSE_SET_ATTR_MTIME_NOW, change->attr->st_mtim),
	};
	int r;

	r = fs_as_caller(call);
	if (r < 0)
		return r;
	r = utimensat(change->hold->fd, "", times, AT_EMPTY_PATH) < 0 ? -errno
								      : 0;
	fs_as_self(call);
	return r;
}

static int
apply(struct fs_call *call, const struct change *change)
{
	const int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW |
			  FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW;
	int to_set = change->to_set, r = 0;

	if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		r = set_owner(call, change);
	if (r == 0 && (to_set & FUSE_SET_ATTR_MODE))
		r = set_mode(call, change);
	if (r == 0 && (to_set & FUSE_SET_ATTR_SIZE))
		r = set_size(call, change);
	if (r == 0 && (to_set & times))
		r = set_times(call, change);
	return r;
}

static int
fs_do_setattr(struct fs_call *call, fuse_ino_t ino, const struct stat *attr,
	      int to_set, struct fuse_file_info *fi, struct stat *ret_attr)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_inode *inode = fs_inode_peek(call->fs, ino);
	struct change change = { .attr = attr, .to_set = to_set };
	struct statx stx;
	int r;

	change.handle = fi ? fs_handle_of(fi) : NULL;
	r = change.handle
		    ? fence_handle(call, op_of(to_set), change.handle, &step)
		    : fence_inode(call, op_of(to_set), inode, &step);
	if (r < 0)
		return r;

	r = fs_hold(call->fs, inode, &hold);
	if (r < 0)
		return r;
	change.hold = &hold;
	r = refuse_set_id(call, &change);
	if (r == 0)
		r = apply(call, &change);
	if (fs_inode_is_dir(inode) && (to_set & WHO_MAY))
		fs_watch_searched(call->fs, inode);
	if (r == 0)
		r = fs_statx_fd(hold.fd, &stx);
	if (r == 0)
		fs_attr(call->fs, inode->dev, &stx, ret_attr);
	return r;
}

void
fs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
	      struct fuse_file_info *fi)
{
	struct stat result;
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_setattr(&call, ino, attr, to_set, fi, &result);
	fs_call_end(&call);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		/* This reply has no version: see watch.h. */
		fuse_reply_attr(req, &result, 0);
}

/* ---- questions ---- */

static int
ask_disk(struct fs_call *call, int fd, const char *name, int mask)
{
	int r = fs_as_caller(call);

	if (r < 0)
		return r;
	r = syscall(SYS_faccessat2, fd, name, mask & (R_OK | W_OK | X_OK),
		    AT_EMPTY_PATH | AT_EACCESS | AT_SYMLINK_NOFOLLOW) < 0
		    ? -errno
		    : 0;
	fs_as_self(call);
	return r;
}

/* By name, where that still leads to it.  -ESTALE: it does not. */
static int
ask_disk_by_name(struct fs_call *call, struct fs_inode *inode, int mask)
{
	_cleanup_(fs_hold_done) struct fs_hold dir = FS_HOLD_NONE;
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];
	struct statx stx;
	int r;

	r = fs_inode_place(call->fs, inode, &parent, name);
	if (r < 0)
		return r;
	r = fs_hold(call->fs, parent, &dir);
	if (r == 0 && (fs_statx_at(dir.fd, name, &stx) < 0 ||
		       !fs_inode_is(call->fs, inode, &stx)))
		r = -ESTALE;
	if (r == 0)
		r = ask_disk(call, dir.fd, name, mask);
	fs_hold_done(&dir);
	fs_inode_put(call->fs, parent);
	return r;
}

static int
fs_do_access(struct fs_call *call, fuse_ino_t ino, int mask)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_inode *inode = fs_inode_peek(call->fs, ino);
	int r = 0;

	if (mask & W_OK)
		r = fence_question(call, inode);
	if (r == 0) {
		r = fs_inode_is_dir(inode) || (inode->flags & FS_INODE_PINNED)
			    ? -ESTALE
			    : ask_disk_by_name(call, inode, mask);
		if (r != -ESTALE)
			return r;
		r = fs_hold(call->fs, inode, &hold);
	}
	return r < 0 ? r : ask_disk(call, hold.fd, "", mask);
}

void
fs_op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_access(&call, ino, mask);
	fs_call_end(&call);
	fuse_reply_err(req, -r);
}

static int
fs_do_statfs(struct fs_call *call, fuse_ino_t ino, struct statvfs *ret_stat)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	int r;

	r = fs_hold(call->fs, fs_inode_peek(call->fs, ino ? ino : FUSE_ROOT_ID),
		    &hold);
	if (r < 0)
		return r;
	return fstatvfs(hold.fd, ret_stat) < 0 ? -errno : 0;
}

void
fs_op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct statvfs stat;
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_statfs(&call, ino, &stat);
	fs_call_end(&call);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_statfs(req, &stat);
}

static int
fs_do_readlink(struct fs_call *call, fuse_ino_t ino, char target[PATH_MAX])
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	ssize_t n;
	int r;

	r = fs_hold(call->fs, fs_inode_peek(call->fs, ino), &hold);
	if (r < 0)
		return r;
	n = readlinkat(hold.fd, "", target, PATH_MAX);
	if (n < 0)
		return -errno;
	if (n == PATH_MAX)
		return -ENAMETOOLONG;
	target[n] = '\0';
	return 0;
}

void
fs_op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	char target[PATH_MAX];
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_readlink(&call, ino, target);
	fs_call_end(&call);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_readlink(req, target);
}
