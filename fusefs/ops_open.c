/* SPDX-License-Identifier: MIT */

/*
 * Opening and creating files, and closing them.
 *
 * The fence sees an open before the file does: nothing is truncated, created
 * or even opened for writing before it has said yes.
 *
 * O_APPEND stays with the kernel's file: each write says whether it appends
 * (ops_data.c).  On the backing descriptor it would also move the pages that
 * the kernel writes back from mappings, at whatever offset, to the end.
 * O_TRUNC is done on the open descriptor, once that is known to be the right
 * file.  O_DIRECT is dropped: inside, the kernel bypasses its own cache; here,
 * alignment would be judged by another file system's rules.
 */

#include <fcntl.h>

#include "fusefs/fence.h"
#include "fusefs/inodes.h"
#include "fusefs/locks.h"
#include "fusefs/ops.h"
#include "fusefs/passthrough.h"
#include "fusefs/tree_priv.h"

/* The kernel's __FMODE_EXEC and the rest of its own bits stay out. */
#define BACKING_FLAGS (O_ACCMODE | O_SYNC | O_DSYNC | O_NOATIME)

static bool
is_write(int flags)
{
	return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

/* What the page cache of a file depends on, as one number. */
static uint64_t
stamp_of(const struct statx *stx)
{
	uint64_t stamp = (uint64_t)stx->stx_mtime.tv_sec * 1000000007u;

	stamp = (stamp ^ stx->stx_mtime.tv_nsec) * 0x9e3779b97f4a7c15u;
	stamp = (stamp ^ (uint64_t)stx->stx_ctime.tv_sec) * 1000000007u;
	stamp = (stamp ^ stx->stx_ctime.tv_nsec) * 0x9e3779b97f4a7c15u;
	return stamp ^ stx->stx_size;
}

/*
 * Whether pages that the kernel has of this file are still what is on disk;
 * remembers the present state.
 */
static bool
pages_are_good(struct fs *fs, struct fs_inode *inode, const struct statx *stx)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	uint64_t stamp = stamp_of(stx);
	bool same;

	fs_shard_lock(shard);
	same = inode->stamp == stamp;
	inode->stamp = stamp;
	fs_shard_unlock(shard);
	return same;
}

static int
open_backing(struct fs_call *call, struct fs_inode *inode, int flags,
	     struct statx *ret_stx)
{
	int fd = fs_open_inode(call, inode, flags & BACKING_FLAGS, ret_stx);

	/* Only the owner may; the kernel has asked our answer, not the disk's. */
	if (fd == -EPERM && (flags & O_NOATIME))
		fd = fs_open_inode(call, inode,
				   flags & BACKING_FLAGS & ~O_NOATIME, ret_stx);
	return fd;
}

/* O_TRUNC on what has been opened; a read-only open needs another descriptor. */
static int
truncate_opened(struct fs_call *call, struct fs_inode *inode, int fd, int flags,
		struct statx *stx)
{
	_cleanup_(closep) int writable = -1;
	struct statx other;

	if ((flags & O_ACCMODE) == O_RDONLY) {
		writable = fs_open_inode(call, inode, O_WRONLY, &other);
		if (writable < 0)
			return writable;
	}
	if (ftruncate(writable >= 0 ? writable : fd, 0) < 0)
		return -errno;
	return fs_statx_fd(fd, stx);
}

/* A file whose content the git guard judges at each write. */
static int
open_small(struct fs_call *call, struct fs_inode *inode,
	   const struct gitguard_at *at, struct fence_step *step,
	   struct fuse_file_info *fi)
{
	struct gitguard_small *small = NULL;
	struct fs_handle *handle;
	int r;

	r = gitguard_small_open(at, fi->flags & ~(O_CREAT | O_EXCL), 0,
				&step->git, &small);
	if (r < 0)
		return step->git.verdict.error < 0
			       ? fence_refuse(call, POLICY_OP_OPEN_WRITE,
					      &step->git.verdict, inode, NULL)
			       : r;
	r = fs_handle_new_small(call, inode, small, fi->flags, &handle);
	if (r < 0)
		return r;
	fi->fh = (uint64_t)(uintptr_t)handle;
	fi->direct_io = 1;
	return 0;
}

static int
open_small_inode(struct fs_call *call, struct fs_inode *inode,
		 struct fence_step *step, struct fuse_file_info *fi)
{
	_cleanup_(fs_hold_done) struct fs_hold dir = FS_HOLD_NONE;
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];
	struct gitguard_at at = { .name = name };
	int r;

	r = fs_inode_place(call->fs, inode, &parent, name);
	if (r < 0)
		return r;
	r = fs_hold(call->fs, parent, &dir);
	at.dirfd = dir.fd;
	if (r == 0)
		r = open_small(call, inode, &at, step, fi);
	fs_hold_done(&dir);
	fs_inode_put(call->fs, parent);
	return r;
}

/*
 * FLUSH ends the POSIX locks of who closes.  Locks are taken where one can
 * write and read, so the other kinds of handle go without, unless somebody has
 * tried; a lock that is taken through one all the same ends with its handle.
 */
static bool
needs_no_flush(const struct fs_inode *inode, int flags)
{
	return (flags & O_ACCMODE) != O_RDWR &&
	       !(inode->flags & FS_INODE_LOCKED);
}

/*
 * The handle of what is open as `fd` (taken), and what the kernel is told.
 *
 * Who only writes needs no pages of its own: that saves a copy of the data, and
 * a question about capabilities.  Pages that others have are dropped.  And one
 * write(2) at the end of a file is one request only so; else it may come in two,
 * with another side's line between them.
 */
static int
make_handle(struct fs_call *call, struct fs_inode *inode, int fd,
	    const struct statx *stx, struct fuse_file_info *fi)
{
	const struct fs_handle what = {
		.inode = inode,
		.fd = fd,
		.flags = fi->flags,
		.backing = fs_backing_open(call->fs, inode, fd, stx, fi->flags)
	};
	struct fs_handle *handle;
	int r = fs_handle_new_file(call, &what, &handle);

	if (r < 0)
		return r;
	fi->fh = (uint64_t)(uintptr_t)handle;
	fi->noflush = needs_no_flush(inode, fi->flags);
	fi->keep_cache = pages_are_good(call->fs, inode, stx);
	if (handle->backing) {
		fs_open_passes(fi, handle->backing);
		if (is_write(fi->flags))
			fs_writer_note(call->fs, call->pid);
	} else {
		fi->direct_io = (fi->flags & O_ACCMODE) == O_WRONLY;
	}
	return 0;
}

static int
fs_do_open(struct fs_call *call, struct fs_inode *inode,
	   struct fuse_file_info *fi)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	struct statx stx;
	bool loses_bits;
	int fd, r = 0;

	if (is_write(fi->flags))
		r = fence_inode(call, POLICY_OP_OPEN_WRITE, inode, &step);
	if (r < 0)
		return r;
	if (step.git.action == GITGUARD_SMALL)
		return open_small_inode(call, inode, &step, fi);

	fd = open_backing(call, inode, fi->flags, &stx);
	if (fd < 0)
		return fd;
	loses_bits = stx.stx_mode & (S_ISUID | S_ISGID);
	if (fi->flags & O_TRUNC) {
		r = truncate_opened(call, inode, fd, fi->flags, &stx);
		if (r < 0) {
			(void)close(fd);
			return r;
		}
	}
	r = make_handle(call, inode, fd, &stx, fi);
	if (r < 0)
		return r;
	fs_handle_of(fi)->loses_bits = loses_bits;
	return 0;
}

/* A mapping would, of what passes through: attributes are not to be kept. */
static bool
changes_unseen(const struct fuse_file_info *fi)
{
	return fs_handle_of(fi)->backing && (fi->flags & O_ACCMODE) == O_RDWR;
}

void
fs_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_open(&call, fs_inode_peek(call.fs, ino), fi);
	if (r == 0 &&
	    (((fi->flags & O_TRUNC) && fs_handle_of(fi)->loses_bits) ||
	     changes_unseen(fi)))
		/* Attributes only (-1): that waits for no lock. */
		(void)fuse_lowlevel_notify_inval_inode(call.fs->session, ino,
						       -1, 0);
	fs_call_end(&call);

	if (r < 0)
		fuse_reply_err(req, -r);
	else if (fuse_reply_open(req, fi) < 0)
		fs_handle_close(call.fs, fs_handle_of(fi));
}

/* ---- create ---- */

struct creation {
	struct fs_hold dir;
	const char *name; /* NULL: a file without a name */
	mode_t mode;
	struct fuse_file_info *fi;
};

static int
refuse_set_id(struct fs_call *call, const struct creation *creation)
{
	const struct policy_verdict verdict = {
		.error = -EPERM,
		.code = POLICY_CODE_SANDBOX_DENIED,
		.rule = "no devices and no setuid bits",
		.source = "built-in",
	};

	if (!call->fs->config.multi_uid ||
	    !(creation->mode & (S_ISUID | S_ISGID)))
		return 0;
	return fence_refuse(call, POLICY_OP_CREATE, &verdict,
			    creation->dir.inode, creation->name);
}

/* The new file's inode and handle; its descriptor is taken. */
static int
adopt(struct fs_call *call, const struct creation *creation, int new_fd,
      struct fuse_entry_param *ret_entry)
{
	_cleanup_(closep) int fd = new_fd;
	struct fs_inode *inode;
	struct statx stx;
	int r;

	/* By the descriptor: the name may be another's already. */
	r = fs_statx_fd(fd, &stx);
	if (r == 0)
		r = fs_enter(call, creation->dir.inode, creation->name, &stx,
			     ret_entry, &inode);
	if (r != 0)
		return r;
	r = make_handle(call, inode, take_fd(&fd), &stx, creation->fi);
	if (r < 0)
		fs_entry_undo(call->fs, ret_entry);
	return r;
}

static int
create_small(struct fs_call *call, const struct creation *creation,
	     struct fence_step *step, struct fuse_entry_param *ret_entry)
{
	const struct gitguard_at at = { .dirfd = creation->dir.fd,
					.name = creation->name };
	struct gitguard_small *small = NULL;
	struct fs_handle *handle;
	struct fs_inode *inode;
	int r;

	r = fs_as_caller(call);
	if (r < 0)
		return r;
	r = gitguard_small_open(&at, creation->fi->flags | O_CREAT | O_EXCL,
				creation->mode, &step->git, &small);
	fs_as_self(call);
	if (r < 0)
		return step->git.verdict.error < 0
			       ? fence_refuse(call, POLICY_OP_CREATE,
					      &step->git.verdict,
					      creation->dir.inode,
					      creation->name)
			       : r;
	r = fs_lookup_entry(call, creation->dir.inode, creation->dir.fd,
			    creation->name, ret_entry, &inode);
	if (r < 0) {
		gitguard_small_free(small);
		return r;
	}
	r = fs_handle_new_small(call, inode, small, creation->fi->flags,
				&handle);
	if (r < 0) {
		fs_entry_undo(call->fs, ret_entry);
		return r;
	}
	creation->fi->fh = (uint64_t)(uintptr_t)handle;
	creation->fi->direct_io = 1;
	return 0;
}

static int
create_new(struct fs_call *call, const struct creation *creation,
	   struct fuse_entry_param *ret_entry)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	const struct fence_at at = { .dir = creation->dir.inode,
				     .dirfd = creation->dir.fd,
				     .name = creation->name };
	int fd, r;

	r = fence_name(call, POLICY_OP_CREATE, &at, &step);
	if (r == 0)
		r = refuse_set_id(call, creation);
	if (r < 0)
		return r;
	if (step.git.action == GITGUARD_SMALL)
		return create_small(call, creation, &step, ret_entry);

	r = fs_as_caller(call);
	if (r < 0)
		return r;
	fd = openat(creation->dir.fd, creation->name,
		    (creation->fi->flags & BACKING_FLAGS) | O_CREAT | O_EXCL |
			    O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
		    creation->mode);
	r = fd < 0 ? -errno : 0;
	fs_as_self(call);
	if (r < 0)
		return r;
	return adopt(call, creation, fd, ret_entry);
}

/* The name is there already: the kernel did not know. */
static int
create_existing(struct fs_call *call, const struct creation *creation,
		struct fuse_entry_param *ret_entry)
{
	struct fs_inode *inode;
	int r;

	r = fs_lookup_entry(call, creation->dir.inode, creation->dir.fd,
			    creation->name, ret_entry, &inode);
	if (r < 0)
		return r;
	/* ESTALE: the kernel looks again, and follows a link by itself. */
	if (fs_inode_is_dir(inode))
		r = -EISDIR;
	else if (!S_ISREG((mode_t)inode->type << 12))
		r = -ESTALE;
	else
		r = fs_do_open(call, inode, creation->fi);
	if (r < 0)
		fs_entry_undo(call->fs, ret_entry);
	return r;
}

static int
fs_do_create(struct fs_call *call, fuse_ino_t parent, struct creation *creation,
	     struct fuse_entry_param *ret_entry)
{
	int r;

	r = fs_hold(call->fs, fs_inode_peek(call->fs, parent), &creation->dir);
	if (r < 0)
		return r;
	r = create_new(call, creation, ret_entry);
	if (r == -EEXIST && !(creation->fi->flags & O_EXCL))
		r = create_existing(call, creation, ret_entry);
	return r;
}

void
fs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	     struct fuse_file_info *fi)
{
	struct creation creation = {
		.dir = FS_HOLD_NONE, .name = name, .mode = mode, .fi = fi
	};
	struct fuse_entry_param entry = { 0 };
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	fs_call_umask(req);
	r = fs_do_create(&call, parent, &creation, &entry);
	fs_hold_done(&creation.dir);
	fs_call_end(&call);

	if (r < 0) {
		fuse_reply_err(req, -r);
	} else if (fuse_reply_create(req, &entry, fi) < 0) {
		fs_handle_close(call.fs, fs_handle_of(fi));
		fs_entry_undo(call.fs, &entry);
	}
}

/* The inode of a file without a name: it lives by its descriptor. */
static int
adopt_unnamed(struct fs_call *call, const struct creation *creation, int new_fd,
	      struct fuse_entry_param *ret_entry)
{
	_cleanup_(closep) int fd = new_fd;
	struct fs_marks marks = { .policy_gen = call->policy_gen };
	struct fs_seen seen = { .parent = creation->dir.inode,
				.name = "(unnamed)",
				.marks = &marks,
				.counted = true };
	char path[FS_PROC_PATH_MAX];
	struct fs_handle *handle;
	struct fs_inode *inode;
	struct fs_ident ident;
	struct statx stx;
	int pin, r;

	r = fs_statx_fd(fd, &stx);
	if (r == 0)
		r = fs_ident_of(call->fs, &stx, &ident);
	if (r < 0)
		return r;
	fs_proc_path(fd, path);
	pin = open(path, O_PATH | O_CLOEXEC);
	if (pin < 0)
		return -errno;
	r = fs_inode_upsert(call->fs, &ident, &seen, &inode);
	if (r < 0) {
		(void)close(pin);
		return r;
	}
	fs_inode_pin(call->fs, inode, pin);
	*ret_entry = (struct fuse_entry_param){
		.ino = fs_node_id(call->fs, inode),
		.generation = inode->btime ^ inode->ino,
		.attr_timeout = call->fs->short_timeouts.attr,
	};
	fs_attr(call->fs, inode->dev, &stx, &ret_entry->attr);
	r = fs_handle_new(call, inode, take_fd(&fd), creation->fi->flags,
			  &handle);
	fs_inode_put(call->fs, inode);
	if (r < 0) {
		fs_entry_undo(call->fs, ret_entry);
		return r;
	}
	creation->fi->fh = (uint64_t)(uintptr_t)handle;
	return 0;
}

static int
fs_do_tmpfile(struct fs_call *call, fuse_ino_t parent,
	      struct creation *creation, struct fuse_entry_param *ret_entry)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	int fd, r;

	r = fs_hold(call->fs, fs_inode_peek(call->fs, parent), &creation->dir);
	if (r == 0)
		r = fence_inode(call, POLICY_OP_TMPFILE, creation->dir.inode,
				&step);
	if (r == 0)
		r = refuse_set_id(call, creation);
	if (r == 0)
		r = fs_as_caller(call);
	if (r < 0)
		return r;
	fd = openat(creation->dir.fd, ".",
		    (creation->fi->flags & (BACKING_FLAGS | O_EXCL)) |
			    O_TMPFILE | O_CLOEXEC,
		    creation->mode);
	r = fd < 0 ? -errno : 0;
	fs_as_self(call);
	return r < 0 ? r : adopt_unnamed(call, creation, fd, ret_entry);
}

int
fs_make_tmpfile(struct fs_call *call, fuse_ino_t parent, mode_t mode,
		struct fuse_file_info *fi, struct fuse_entry_param *ret_entry)
{
	struct creation creation = { .dir = FS_HOLD_NONE,
				     .mode = mode,
				     .fi = fi };
	int r = -EPERM;

	if (!tree_has(parent))
		r = fs_do_tmpfile(call, parent, &creation, ret_entry);
	fs_hold_done(&creation.dir);
	return r;
}

void
fs_op_tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode,
	      struct fuse_file_info *fi)
{
	struct fuse_entry_param entry = { 0 };
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	fs_call_umask(req);
	r = fs_make_tmpfile(&call, parent, mode, fi, &entry);
	fs_call_end(&call);

	if (r < 0) {
		fuse_reply_err(req, -r);
	} else if (fuse_reply_create(req, &entry, fi) < 0) {
		fs_handle_close(call.fs, fs_handle_of(fi));
		fs_entry_undo(call.fs, &entry);
	}
}

/* ---- close ---- */

void
fs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fuse_req_userdata(req);

	locks_flush(fs->locks, ino, fi->lock_owner);
	fuse_reply_err(req, 0);
}

void
fs_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fuse_req_userdata(req);
	bool changed = changes_unseen(fi);
	uint64_t fh = fi->fh;

	fs_handle_close(fs, fs_handle_of(fi));
	locks_release(fs->locks, ino, fh);
	if (changed)
		(void)fuse_lowlevel_notify_inval_inode(fs->session, ino, -1, 0);
	fuse_reply_err(req, 0);
}
