/* SPDX-License-Identifier: MIT */

/*
 * Names that come: mknod, mkdir, symlink, link.
 */

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/fence.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"

/* One new name: what it shall be. */
struct make {
	enum policy_op op;
	const char *name;
	mode_t type; /* S_IFMT bits that are due */
	mode_t mode;
	dev_t rdev;
	const char *target;	 /* symlink */
	struct fs_inode *source; /* link */
};

/*
 * What a root warden must not make for an inmate, although it could: a device,
 * or a program that takes on somebody else's ids outside.
 */
static int
refuse_privileged(struct fs_call *call, const struct make *make,
		  struct fs_inode *dir)
{
	const struct policy_verdict verdict = {
		.error = -EPERM,
		.code = POLICY_CODE_SANDBOX_DENIED,
		.rule = "no devices and no setuid bits",
		.source = "built-in",
	};

	if (!call->fs->config.multi_uid || make->op != POLICY_OP_MKNOD)
		return 0;
	if (!S_ISCHR(make->mode) && !S_ISBLK(make->mode) &&
	    !(make->mode & (S_ISUID | S_ISGID)))
		return 0;
	return fence_refuse(call, make->op, &verdict, dir, make->name);
}

static int
make_link(struct fs_call *call, const struct make *make, int dirfd)
{
	_cleanup_(fs_hold_done) struct fs_hold source = FS_HOLD_NONE;
	char path[FS_PROC_PATH_MAX];
	int r;

	r = fs_hold(call->fs, make->source, &source);
	if (r < 0)
		return r;
	fs_proc_path(source.fd, path);
	r = fs_as_caller(call);
	if (r < 0)
		return r;
	r = linkat(AT_FDCWD, path, dirfd, make->name, AT_SYMLINK_FOLLOW) < 0
		    ? -errno
		    : 0;
	fs_as_self(call);
	return r;
}

static int
make_on_disk(struct fs_call *call, const struct make *make, int dirfd)
{
	int r;

	if (make->op == POLICY_OP_LINK)
		return make_link(call, make, dirfd);

	r = fs_as_caller(call);
	if (r < 0)
		return r;
	switch ((int)make->op) {
	case POLICY_OP_MKDIR:
		r = mkdirat(dirfd, make->name, make->mode);
		break;
	case POLICY_OP_SYMLINK:
		r = symlinkat(make->target, dirfd, make->name);
		break;
	default:
		r = mknodat(dirfd, make->name, make->mode, make->rdev);
		break;
	}
	r = r < 0 ? -errno : 0;
	fs_as_self(call);
	return r;
}

/* The name of the inode that is linked, as far as it has one. */
static int
fence_make_link(struct fs_call *call, const struct make *make,
		const struct fence_at *to, struct fence_step *step)
{
	_cleanup_(fs_hold_done) struct fs_hold parent_hold = FS_HOLD_NONE;
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];
	struct fence_at from = { .dirfd = -1,
				 .name = name,
				 .is_symlink = to->is_symlink };
	int r;

	assert(make->source);
	if (!(make->source->flags & FS_INODE_PINNED) &&
	    fs_inode_place(call->fs, make->source, &parent, name) == 0) {
		r = fs_hold(call->fs, parent, &parent_hold);
		if (r < 0)
			goto undo_place;
		from.dir = parent;
		from.dirfd = parent_hold.fd;
	}
	r = fence_link(call, make->source, &from, to, step);
undo_place:
	fs_hold_done(&parent_hold);
	fs_inode_put(call->fs, parent);
	return r;
}

static int
fs_do_make(struct fs_call *call, fuse_ino_t parent, const struct make *make,
	   struct fuse_entry_param *ret_entry)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	_cleanup_(fs_hold_done) struct fs_hold dir = FS_HOLD_NONE;
	struct fs_inode *inode;
	struct fence_at at;
	int r;

	r = fs_hold(call->fs, fs_inode_peek(call->fs, parent), &dir);
	if (r < 0)
		return r;
	at = (struct fence_at){ .dir = dir.inode,
				.dirfd = dir.fd,
				.name = make->name,
				.is_dir = make->op == POLICY_OP_MKDIR,
				.is_symlink =
					make->op == POLICY_OP_SYMLINK ||
					(make->source &&
					 fs_inode_is_symlink(make->source)),
				.target = make->target };
	r = make->op == POLICY_OP_LINK ? fence_make_link(call, make, &at, &step)
				       : fence_name(call, make->op, &at, &step);
	if (r == 0)
		r = refuse_privileged(call, make, dir.inode);
	if (r < 0)
		return r;

	r = make_on_disk(call, make, dir.fd);
	if (r < 0)
		return r;
	r = fs_lookup_entry(call, dir.inode, dir.fd, make->name, ret_entry,
			    &inode);
	/* The host was faster, and something else has the name. */
	if (r == 0 && !fs_inode_is_type(inode, make->type)) {
		fs_entry_undo(call->fs, ret_entry);
		return -ESTALE;
	}
	return r;
}

static void
op_make(fuse_req_t req, fuse_ino_t parent, const struct make *make)
{
	struct fuse_entry_param entry = { 0 };
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	fs_call_umask(req);
	r = fs_do_make(&call, parent, make, &entry);
	fs_call_end(&call);

	if (r < 0)
		fuse_reply_err(req, -r);
	else if (fuse_reply_entry(req, &entry) < 0)
		fs_entry_undo(call.fs, &entry);
}

void
fs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	    dev_t rdev)
{
	const struct make make = { .op = POLICY_OP_MKNOD,
				   .name = name,
				   .type = mode & S_IFMT ? mode & S_IFMT
							 : S_IFREG,
				   .mode = mode,
				   .rdev = rdev };

	op_make(req, parent, &make);
}

void
fs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	const struct make make = { .op = POLICY_OP_MKDIR,
				   .name = name,
				   .type = S_IFDIR,
				   .mode = mode };

	op_make(req, parent, &make);
}

void
fs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
	      const char *name)
{
	const struct make make = { .op = POLICY_OP_SYMLINK,
				   .name = name,
				   .type = S_IFLNK,
				   .target = target };

	op_make(req, parent, &make);
}

void
fs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	struct fs_inode *source = fs_inode_peek(fuse_req_userdata(req), ino);
	const struct make make = {
		.op = POLICY_OP_LINK,
		.name = name,
		.type = (mode_t)source->type << 12,
		.source = source,
	};

	op_make(req, parent, &make);
}
