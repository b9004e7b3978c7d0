/* SPDX-License-Identifier: MIT */

/*
 * The mount's operations where it has a control tree: what asks about a node of
 * the tree is copied and queued for the provider's thread, which answers;
 * everything else goes where it went before.
 *
 * What the tree refuses, it refuses with EPERM: EIO and ENOSYS would have
 * programs look for faults where there are none, and the kernel would take the
 * latter for the whole mount.  It is answered here at once.
 */

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "fusefs/ops.h"
#include "fusefs/tree_priv.h"

static struct tree *
tree_of(const struct fs *fs)
{
	return fs->config.tree;
}

static bool
is_tree_name(fuse_ino_t parent, const char *name)
{
	return parent == FUSE_ROOT_ID && strcmp(name, TREE_NAME) == 0;
}

static bool
is_known(const struct tree *tree, struct tree_node node)
{
	return node.row < tree->provider->n_rows;
}

/* It would have something done that its own world may forbid. */
static bool
is_foreign_order(fuse_req_t req)
{
	const struct fs *fs = fuse_req_userdata(req);

	return fs->config.host_visible &&
	       tree_caller_is_fenced(fuse_req_ctx(req)->pid);
}

/* NULL: it has been refused. */
static struct tree_call *
call_new(fuse_req_t req, fuse_ino_t ino,
	 int (*run)(struct tree *tree, struct tree_call *call),
	 const void *bytes, size_t len)
{
	struct fs *fs = fuse_req_userdata(req);
	struct tree_call *call = NULL;

	atomic_fetch_add_explicit(&fs->requests, 1, memory_order_relaxed);
	if (!is_known(tree_of(fs), tree_node_of(ino))) {
		fuse_reply_err(req, ESTALE);
		return NULL;
	}
	call = calloc(1, sizeof(*call) + len + 1);
	if (!call) {
		fuse_reply_err(req, ENOMEM);
		return NULL;
	}
	call->run = run;
	call->req = req;
	call->fs = fs;
	call->node = tree_node_of(ino);
	call->len = len;
	if (len > 0)
		memcpy(call->bytes, bytes, len);
	return call;
}

static void
submit(struct tree_call *call)
{
	if (call)
		tree_submit(tree_of(call->fs), call);
}

static void
submit_file(struct tree_call *call, const struct fuse_file_info *fi)
{
	if (!call)
		return;
	if (fi) {
		call->fi = *fi;
		call->open = (struct tree_open *)(uintptr_t)fi->fh; /* NOLINT */
	}
	submit(call);
}

/* ---- names ---- */

static void
op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (is_tree_name(parent, name))
		submit(call_new(req, tree_ino_of((struct tree_node){ 0 }),
				tree_do_lookup, "", 0));
	else if (tree_has(parent))
		submit(call_new(req, parent, tree_do_lookup, name,
				strlen(name)));
	else
		fs_op_lookup(req, parent, name);
}

static void
op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	if (tree_has(ino))
		fuse_reply_none(req);
	else
		fs_op_forget(req, ino, n);
}

static void
op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (!tree_has(forgets[i].ino))
			forgets[kept++] = forgets[i];
	fs_op_forget_multi(req, kept, forgets);
}

static void
op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	 dev_t rdev)
{
	if (tree_has(parent))
		fuse_reply_err(req, EPERM);
	else
		fs_op_mknod(req, parent, name, mode, rdev);
}

static void
op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	if (tree_has(parent))
		fuse_reply_err(req, EPERM);
	else
		fs_op_mkdir(req, parent, name, mode);
}

static void
op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
	   const char *name)
{
	if (tree_has(parent))
		fuse_reply_err(req, EPERM);
	else
		fs_op_symlink(req, target, parent, name);
}

static void
op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	if (tree_has(ino) || tree_has(parent))
		fuse_reply_err(req, EPERM);
	else
		fs_op_link(req, ino, parent, name);
}

static void
op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (tree_has(parent) || is_tree_name(parent, name))
		fuse_reply_err(req, EPERM);
	else
		fs_op_unlink(req, parent, name);
}

static void
op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (tree_has(parent) && is_foreign_order(req))
		fuse_reply_err(req, EPERM);
	else if (tree_has(parent))
		submit(call_new(req, parent, tree_do_rmdir, name,
				strlen(name)));
	else if (is_tree_name(parent, name))
		fuse_reply_err(req, EPERM);
	else
		fs_op_rmdir(req, parent, name);
}

static void
op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
	  fuse_ino_t new_parent, const char *new_name, unsigned int flags)
{
	if (tree_has(parent) || tree_has(new_parent) ||
	    is_tree_name(parent, name) || is_tree_name(new_parent, new_name))
		fuse_reply_err(req, EPERM);
	else
		fs_op_rename(req, parent, name, new_parent, new_name, flags);
}

static void
op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	  struct fuse_file_info *fi)
{
	if (tree_has(parent))
		fuse_reply_err(req, EPERM);
	else
		fs_op_create(req, parent, name, mode, fi);
}

static void
op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	if (tree_has(ino))
		fuse_reply_err(req, EINVAL);
	else
		fs_op_readlink(req, ino);
}

/* ---- attributes ---- */

static void
op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (tree_has(ino))
		submit(call_new(req, ino, tree_do_getattr, "", 0));
	else
		fs_op_getattr(req, ino, fi);
}

/* A shell truncates what it redirects to; nothing else can be set. */
static void
op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
	   struct fuse_file_info *fi)
{
	struct tree_call *call;

	if (!tree_has(ino)) {
		fs_op_setattr(req, ino, attr, to_set, fi);
		return;
	}
	if (!(to_set & FUSE_SET_ATTR_SIZE) ||
	    (to_set &
	     (FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))) {
		fuse_reply_err(req, EPERM);
		return;
	}
	call = call_new(req, ino, tree_do_getattr, "", 0);
	if (call)
		call->number = W_OK;
	submit(call);
}

static void
op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct tree_call *call;

	if (!tree_has(ino)) {
		fs_op_access(req, ino, mask);
		return;
	}
	call = call_new(req, ino, tree_do_access, "", 0);
	if (call)
		call->number = mask;
	submit(call);
}

static void
op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	fs_op_statfs(req, tree_has(ino) ? FUSE_ROOT_ID : ino);
}

static void
op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
	    size_t size, int flags)
{
	if (tree_has(ino))
		fuse_reply_err(req, EPERM);
	else
		fs_op_setxattr(req, ino, name, value, size, flags);
}

static void
op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	if (tree_has(ino))
		fuse_reply_err(req, ENODATA);
	else
		fs_op_getxattr(req, ino, name, size);
}

static void
op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	if (!tree_has(ino))
		fs_op_listxattr(req, ino, size);
	else if (size == 0)
		fuse_reply_xattr(req, 0);
	else
		fuse_reply_buf(req, NULL, 0);
}

static void
op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	if (tree_has(ino))
		fuse_reply_err(req, EPERM);
	else
		fs_op_removexattr(req, ino, name);
}

/* ---- open files ---- */

static void
op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	bool writes =
		(fi->flags & O_ACCMODE) != O_RDONLY || (fi->flags & O_TRUNC);

	if (!tree_has(ino))
		fs_op_open(req, ino, fi);
	else if (writes && is_foreign_order(req))
		fuse_reply_err(req, EPERM);
	else
		submit_file(call_new(req, ino, tree_do_open, "", 0), fi);
}

static void
op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (tree_has(ino))
		submit_file(call_new(req, ino, tree_do_release, "", 0), fi);
	else
		fs_op_release(req, ino, fi);
}

static void
op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (tree_has(ino))
		fuse_reply_err(req, 0);
	else
		fs_op_flush(req, ino, fi);
}

static void
op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
	 struct fuse_file_info *fi)
{
	if (tree_has(ino))
		fuse_reply_err(req, 0);
	else
		fs_op_fsync(req, ino, datasync, fi);
}

static void
op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	struct fuse_file_info *fi)
{
	struct tree_call *call;

	if (!tree_has(ino)) {
		fs_op_read(req, ino, size, offset, fi);
		return;
	}
	call = call_new(req, ino, tree_do_read, "", 0);
	if (call) {
		call->size = size;
		call->offset = offset;
	}
	submit_file(call, fi);
}

static void
op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
	 off_t offset, struct fuse_file_info *fi)
{
	if (tree_has(ino))
		submit_file(call_new(req, ino, tree_do_write, buf, size), fi);
	else
		fs_op_write(req, ino, buf, size, offset, fi);
}

static void
op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
	     off_t length, struct fuse_file_info *fi)
{
	if (tree_has(ino))
		fuse_reply_err(req, EPERM);
	else
		fs_op_fallocate(req, ino, mode, offset, length, fi);
}

static void
op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
	 struct fuse_file_info *fi)
{
	struct tree_call *call;

	if (!tree_has(ino)) {
		fs_op_lseek(req, ino, offset, whence, fi);
		return;
	}
	call = call_new(req, ino, tree_do_lseek, "", 0);
	if (call) {
		call->number = whence;
		call->offset = offset;
	}
	submit_file(call, fi);
}

/* The kernel copies by reading and writing then. */
static void
op_copy_file_range(/* NOLINT(readability-function-size) */
		   fuse_req_t req, fuse_ino_t ino_in, off_t off_in,
		   struct fuse_file_info *fi_in, fuse_ino_t ino_out,
		   off_t off_out, struct fuse_file_info *fi_out, size_t len,
		   int flags)
{
	if (tree_has(ino_in) || tree_has(ino_out))
		fuse_reply_err(req, EXDEV);
	else
		fs_op_copy_file_range(req, ino_in, off_in, fi_in, ino_out,
				      off_out, fi_out, len, flags);
}

static void
op_ioctl(/* NOLINT(readability-function-size) */
	 fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
	 struct fuse_file_info *fi, unsigned int flags, const void *in_buf,
	 size_t in_size, size_t out_size)
{
	if (tree_has(ino))
		fuse_reply_err(req, ENOTTY);
	else
		fs_op_ioctl(req, ino, cmd, arg, fi, flags, in_buf, in_size,
			    out_size);
}

/* ENOSYS for a file would keep the kernel from ever asking about the tree. */
static void
op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
	struct fuse_pollhandle *poll)
{
	struct tree_call *call;

	if (!tree_has(ino)) {
		if (poll)
			fuse_pollhandle_destroy(poll);
		fuse_reply_poll(req,
				POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
		return;
	}
	call = call_new(req, ino, tree_do_poll, "", 0);
	if (call)
		call->poll = poll;
	else if (poll)
		fuse_pollhandle_destroy(poll);
	submit_file(call, fi);
}

static void
op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (tree_has(ino))
		submit_file(call_new(req, ino, tree_do_opendir, "", 0), fi);
	else
		fs_op_opendir(req, ino, fi);
}

static void
list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
     const struct fuse_file_info *fi, bool plus)
{
	struct tree_call *call = call_new(req, ino, tree_do_readdir, "", 0);

	if (call) {
		call->size = size;
		call->offset = offset;
		call->plus = plus;
	}
	submit_file(call, fi);
}

static void
op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	   struct fuse_file_info *fi)
{
	if (tree_has(ino))
		list(req, ino, size, offset, fi, false);
	else
		fs_op_readdir(req, ino, size, offset, fi);
}

static void
op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	       struct fuse_file_info *fi)
{
	if (tree_has(ino))
		list(req, ino, size, offset, fi, true);
	else
		fs_op_readdirplus(req, ino, size, offset, fi);
}

static void
op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (tree_has(ino))
		submit_file(call_new(req, ino, tree_do_release, "", 0), fi);
	else
		fs_op_releasedir(req, ino, fi);
}

/* ---- locks ---- */

static void
op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
	 struct flock *lock)
{
	if (tree_has(ino))
		fuse_reply_err(req, EPERM);
	else
		fs_op_getlk(req, ino, fi, lock);
}

static void
op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
	 struct flock *lock, int sleep)
{
	if (tree_has(ino))
		fuse_reply_err(req, EPERM);
	else
		fs_op_setlk(req, ino, fi, lock, sleep);
}

static void
op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	if (tree_has(ino))
		fuse_reply_err(req, EPERM);
	else
		fs_op_flock(req, ino, fi, op);
}

void
tree_take_over(struct fuse_lowlevel_ops *ops)
{
	ops->lookup = op_lookup;
	ops->forget = op_forget;
	ops->forget_multi = op_forget_multi;
	ops->mknod = op_mknod;
	ops->mkdir = op_mkdir;
	ops->symlink = op_symlink;
	ops->link = op_link;
	ops->unlink = op_unlink;
	ops->rmdir = op_rmdir;
	ops->rename = op_rename;
	ops->create = op_create;
	ops->readlink = op_readlink;
	ops->getattr = op_getattr;
	ops->setattr = op_setattr;
	ops->access = op_access;
	ops->statfs = op_statfs;
	ops->setxattr = op_setxattr;
	ops->getxattr = op_getxattr;
	ops->listxattr = op_listxattr;
	ops->removexattr = op_removexattr;
	ops->open = op_open;
	ops->release = op_release;
	ops->flush = op_flush;
	ops->fsync = op_fsync;
	ops->fsyncdir = op_fsync;
	ops->read = op_read;
	ops->write = op_write;
	ops->fallocate = op_fallocate;
	ops->lseek = op_lseek;
	ops->copy_file_range = op_copy_file_range;
	ops->ioctl = op_ioctl;
	ops->poll = op_poll;
	ops->opendir = op_opendir;
	ops->readdir = op_readdir;
	ops->readdirplus = op_readdirplus;
	ops->releasedir = op_releasedir;
	ops->getlk = op_getlk;
	ops->setlk = op_setlk;
	ops->flock = op_flock;
}
