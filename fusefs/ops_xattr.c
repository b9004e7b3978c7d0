/* SPDX-License-Identifier: MIT */

/*
 * Extended attributes.  There is no call for them on an O_PATH descriptor, so
 * they go by /proc/self/fd/N; the last component of that is followed to the
 * very object, be it a symlink, and not beyond.
 *
 * One is not on the disk: the version of a regular file (version.h), given to
 * who may read it.  It is not listed, so that copies do not try to carry it.
 */

#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>

#include "base/limits.h"
#include "fusefs/fence.h"
#include "fusefs/ops.h"
#include "fusefs/version.h"
#include "fusefs/watch.h"

#define VERSION_XATTR "user.pale.version"

/* One setxattr or removexattr (`value` NULL and `remove`). */
struct xattr {
	const char *name;
	const void *value;
	size_t size;
	int flags;
	bool remove;
};

static bool
is_capability(const struct xattr *xattr)
{
	return strcmp(xattr->name, "security.capability") == 0;
}

static int
refuse_capability(struct fs_call *call, const struct xattr *xattr,
		  struct fs_inode *inode)
{
	const struct policy_verdict verdict = {
		.error = -EPERM,
		.code = POLICY_CODE_SANDBOX_DENIED,
		.rule = "no file capabilities",
		.source = "built-in",
	};

	if (!call->fs->config.multi_uid || xattr->remove ||
	    !is_capability(xattr))
		return 0;
	return fence_refuse(call, POLICY_OP_SETXATTR, &verdict, inode, NULL);
}

static int
fs_do_change_xattr(struct fs_call *call, fuse_ino_t ino,
		   const struct xattr *xattr)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_inode *inode = fs_inode_peek(call->fs, ino);
	char path[FS_PROC_PATH_MAX];
	int r;

	r = fence_inode(call,
			xattr->remove ? POLICY_OP_REMOVEXATTR
				      : POLICY_OP_SETXATTR,
			inode, &step);
	if (r == 0)
		r = refuse_capability(call, xattr, inode);
	if (r == 0)
		r = fs_hold(call->fs, inode, &hold);
	if (r == 0)
		r = fs_as_caller(call);
	if (r < 0)
		return r;
	fs_proc_path(hold.fd, path);
	if (xattr->remove)
		r = removexattr(path, xattr->name);
	else
		r = setxattr(path, xattr->name, xattr->value, xattr->size,
			     xattr->flags);
	r = r < 0 ? -errno : 0;
	fs_as_self(call);
	/* It may be a list of who has access. */
	if (r == 0 && fs_inode_is_dir(inode))
		fs_watch_searched(call->fs, inode);
	/*
	 * The kernel asks for this before a write; who asks for it otherwise
	 * has been found capable.  Without the privilege the write that follows
	 * does it on the disk.
	 */
	if (r == -EPERM && xattr->remove && is_capability(xattr))
		r = 0;
	return r;
}

static void
op_change_xattr(fuse_req_t req, fuse_ino_t ino, const struct xattr *xattr)
{
	struct fs_call call;
	int r;

	if (strcmp(xattr->name, VERSION_XATTR) == 0) {
		fuse_reply_err(req, EPERM);
		return;
	}
	fs_call_begin(&call, req);
	r = fs_do_change_xattr(&call, ino, xattr);
	fs_call_end(&call);
	fuse_reply_err(req, -r);
}

void
fs_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
	       const char *value, size_t size, int flags)
{
	const struct xattr xattr = {
		.name = name, .value = value, .size = size, .flags = flags
	};

	op_change_xattr(req, ino, &xattr);
}

void
fs_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	const struct xattr xattr = { .name = name, .remove = true };

	op_change_xattr(req, ino, &xattr);
}

/* Takes the version out of a list of names, where the host has stored one. */
static ssize_t
without_version(char *list, ssize_t len)
{
	for (char *at = list; at < list + len; at += strlen(at) + 1) {
		char *next = at + strlen(at) + 1;

		if (strcmp(at, VERSION_XATTR) != 0)
			continue;
		memmove(at, next, (size_t)(list + len - next));
		return len - (next - at);
	}
	return len;
}

/* `name` NULL: the list of names. */
static ssize_t
fs_do_get(struct fs_call *call, fuse_ino_t ino, const char *name, char *buf,
	  size_t size)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	char path[FS_PROC_PATH_MAX];
	ssize_t n;
	int r;

	r = fs_hold(call->fs, fs_inode_peek(call->fs, ino), &hold);
	if (r == 0)
		r = fs_as_caller(call);
	if (r < 0)
		return r;
	if (hold.handle) {
		n = name ? fgetxattr(hold.fd, name, buf, size)
			 : flistxattr(hold.fd, buf, size);
	} else {
		fs_proc_path(hold.fd, path);
		n = name ? getxattr(path, name, buf, size)
			 : listxattr(path, buf, size);
	}
	n = n < 0 ? -errno : n;
	fs_as_self(call);
	return n > 0 && !name && size > 0 ? without_version(buf, n) : n;
}

static void
op_get_version(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	_cleanup_(closep) int fd = -ENODATA;
	struct version version;
	struct fs_inode *inode;
	struct fs_call call;
	struct statx stx;
	int r;

	fs_call_begin(&call, req);
	inode = fs_inode_peek(call.fs, ino);
	/* The caller may be one who may not read it. */
	if (fs_inode_is_type(inode, S_IFREG))
		fd = fs_open_inode(&call, inode, O_RDONLY | O_NONBLOCK, &stx);
	fs_call_end(&call);

	r = fd;
	if (r >= 0 && size > 0 && size < VERSION_LEN)
		r = -ERANGE;
	if (r >= 0 && size > 0) {
		fs_serve_long();
		r = version_of_fd_upto(fd, LIMIT_VERSION_BYTES, &version);
	}
	if (r < 0)
		fuse_reply_err(req, -r);
	else if (size == 0)
		fuse_reply_xattr(req, VERSION_LEN);
	else
		fuse_reply_buf(req, version.text, VERSION_LEN);
}

static void
op_get(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	_cleanup_(freep) char *buf = size ? malloc(size) : NULL;
	struct fs_call call;
	ssize_t n = -ENOMEM;

	fs_call_begin(&call, req);
	if (buf || size == 0)
		n = fs_do_get(&call, ino, name, buf, size);
	fs_call_end(&call);

	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else if (size == 0)
		fuse_reply_xattr(req, (size_t)n);
	else
		fuse_reply_buf(req, buf, (size_t)n);
}

void
fs_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	if (strcmp(name, VERSION_XATTR) == 0)
		op_get_version(req, ino, size);
	else
		op_get(req, ino, name, size);
}

void
fs_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	op_get(req, ino, NULL, size);
}
