/* SPDX-License-Identifier: MIT */

/*
 * What goes through an open handle: read, write, fsync, fallocate, lseek,
 * copy_file_range, ioctl.
 *
 * A handle was judged when it was opened.  Each mutation compares the policy's
 * generation with the one that let the handle write; only after a change is
 * the fence asked again (fence_handle), so that a tighter mode binds handles
 * that are already open.
 */

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "fusefs/fence.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"

/* Above this, the bytes go from the file to the kernel by splice. */
#define COPY_MAX 65536

/*
 * A copy between files holds a serving thread, for long on a slow disk, and
 * cannot be broken off: so it is given a piece at a time, which is a legal
 * answer, and only a few threads.
 */
#define COPY_RANGE_ALONE   ((size_t)8 << 20)
#define COPY_RANGE_SHARED  ((size_t)1 << 20)
#define COPY_RANGE_THREADS 2

void
fs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	   struct fuse_file_info *fi)
{
	struct fs_handle *handle = fs_handle_of(fi);
	struct fuse_bufvec bufs = FUSE_BUFVEC_INIT(size);
	char small[COPY_MAX];
	ssize_t n;

	(void)ino;
	if (size > sizeof(small) && !handle->small) {
		bufs.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
		bufs.buf[0].fd = handle->fd;
		bufs.buf[0].pos = offset;
		fuse_reply_data(req, &bufs, FUSE_BUF_SPLICE_MOVE);
		return;
	}
	if (size > sizeof(small))
		size = sizeof(small);
	n = handle->small
		    ? gitguard_small_read(handle->small, small, size, offset)
		    : pread(handle->fd, small, size, offset);
	if (n < 0)
		fuse_reply_err(req, handle->small ? (int)-n : errno);
	else
		fuse_reply_buf(req, small, (size_t)n);
}

/* The guard took the file away again: its name is to be looked up anew. */
static void
forget_name(struct fs *fs, struct fs_inode *inode)
{
	struct fs_inode *dir = NULL;
	char name[NAME_MAX + 1];

	if (fs_inode_place(fs, inode, &dir, name) == 0)
		fs_notify_entry(fs, dir, name);
	fs_inode_put(fs, dir);
}

static ssize_t
write_small(struct fs_call *call, struct fs_handle *handle, const char *buf,
	    size_t size, off_t offset)
{
	_cleanup_(gitguard_end) struct gitguard_check check = { 0 };
	ssize_t n = gitguard_small_write(handle->small, call->policy, buf, size,
					 offset, &check);

	if (check.removed)
		forget_name(call->fs, handle->inode);
	if (n == -EACCES)
		return fence_refuse(call, POLICY_OP_WRITE, &check.verdict,
				    handle->inode, NULL);
	return n;
}

/*
 * Appended bytes are where the file ended, which need not be where the kernel
 * believed; and who has the file open besides may just have read the page that
 * they begin in.
 */
static void
check_appended(struct fs *fs, struct fs_handle *handle, off_t end)
{
	struct fs_shard *shard = fs_shard_of(fs, handle->inode);
	struct stat st;
	bool alone;

	fs_shard_lock(shard);
	alone = handle->inode->handles == handle && !handle->next;
	fs_shard_unlock(shard);
	if (!alone || fstat(handle->fd, &st) < 0 || st.st_size != end)
		fs_notify_pages(fs, handle->inode);
}

static ssize_t
fs_do_write(struct fs_call *call, const char *buf, size_t size, off_t offset,
	    const struct fuse_file_info *fi)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	struct fs_handle *handle = fs_handle_of(fi);
	bool append = (fi->flags & O_APPEND) && !fi->writepage;
	size_t done = 0;
	int r;

	r = fence_handle(call, POLICY_OP_WRITE, handle, &step);
	if (r < 0)
		return r;
	if (handle->small)
		return write_small(call, handle, buf, size, offset);

	while (done < size) {
		const struct iovec iov = { .iov_base = (void *)(buf + done),
					   .iov_len = size - done };
		ssize_t n = pwritev2(handle->fd, &iov, 1, offset + (off_t)done,
				     append ? RWF_APPEND : 0);

		if (n < 0 && errno == EINTR)
			continue;
		/* What was written counts; the error comes with the next. */
		if (n < 0)
			return done > 0 ? (ssize_t)done : -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	if (append)
		check_appended(call->fs, handle, offset + (off_t)done);
	return (ssize_t)done;
}

void
fs_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
	    off_t offset, struct fuse_file_info *fi)
{
	struct fs_call call;
	ssize_t n;

	fs_call_begin(&call, req);
	n = fs_do_write(&call, buf, size, offset, fi);
	if (n > 0 && fs_handle_of(fi)->loses_bits)
		/* Attributes only (-1): that waits for no lock. */
		(void)fuse_lowlevel_notify_inval_inode(call.fs->session, ino,
						       -1, 0);
	/* A refused write-back: what is in memory never was on disk. */
	if (n < 0 && fi->writepage)
		fs_notify_pages(call.fs, fs_handle_of(fi)->inode);
	fs_call_end(&call);

	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}

void
fs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
	    struct fuse_file_info *fi)
{
	int fd = fs_handle_of(fi)->fd;
	int r;

	(void)ino;
	fs_serve_long();
	r = (datasync ? fdatasync(fd) : fsync(fd)) < 0 ? errno : 0;
	fuse_reply_err(req, r);
}

static int
fs_do_fallocate(struct fs_call *call, struct fs_handle *handle, int mode,
		off_t offset, off_t length)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	int r;

	r = fence_handle(call, POLICY_OP_FALLOCATE, handle, &step);
	if (r < 0)
		return r;
	if (handle->small)
		return -EOPNOTSUPP;
	fs_serve_long();
	return fallocate(handle->fd, mode, offset, length) < 0 ? -errno : 0;
}

void
fs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
		off_t length, struct fuse_file_info *fi)
{
	struct fs_call call;
	int r;

	(void)ino;
	fs_call_begin(&call, req);
	r = fs_do_fallocate(&call, fs_handle_of(fi), mode, offset, length);
	fs_call_end(&call);
	fuse_reply_err(req, -r);
}

void
fs_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
	    struct fuse_file_info *fi)
{
	off_t found = lseek(fs_handle_of(fi)->fd, offset, whence);

	(void)ino;
	if (found < 0)
		fuse_reply_err(req, errno);
	else
		fuse_reply_lseek(req, found);
}

static ssize_t
copy_range(struct fs *fs, int in, off_t off_in, int out, off_t off_out,
	   size_t len)
{
	unsigned int others = atomic_fetch_add(&fs->copies, 1);
	size_t max = others > 0 ? COPY_RANGE_SHARED : COPY_RANGE_ALONE;
	ssize_t n = -EOPNOTSUPP;

	if (len > max)
		len = max;
	if (others < COPY_RANGE_THREADS) {
		fs_serve_long();
		n = copy_file_range(in, &off_in, out, &off_out, len, 0);
		if (n < 0)
			n = -errno;
	}
	atomic_fetch_sub(&fs->copies, 1);
	return n;
}

static ssize_t
fs_do_copy(struct fs_call *call, struct fs_handle *in, off_t off_in,
	   struct fs_handle *out, off_t off_out, size_t len)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	int r;

	r = fence_handle(call, POLICY_OP_COPY_RANGE, out, &step);
	if (r < 0)
		return r;
	/* EOPNOTSUPP: the kernel copies by reading and writing. */
	if (in->small || out->small)
		return -EOPNOTSUPP;
	return copy_range(call->fs, in->fd, off_in, out->fd, off_out, len);
}

void
fs_op_copy_file_range(/* NOLINT(readability-function-size) */
		      fuse_req_t req, fuse_ino_t ino_in, off_t off_in,
		      struct fuse_file_info *fi_in, fuse_ino_t ino_out,
		      off_t off_out, struct fuse_file_info *fi_out, size_t len,
		      int flags)
{
	struct fs_call call;
	ssize_t n;

	(void)ino_in;
	(void)ino_out;
	(void)flags;
	fs_call_begin(&call, req);
	n = fs_do_copy(&call, fs_handle_of(fi_in), off_in, fs_handle_of(fi_out),
		       off_out, len);
	fs_call_end(&call);

	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}

/* ---- ioctl ---- */

/* The two that chattr and lsattr use, and that is all. */
union ioctl_data {
	int flags;
	struct fsxattr attr;
};

static int
ioctl_change(struct fs_call *call, struct fs_handle *handle, unsigned int cmd,
	     union ioctl_data *data)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	int r;

	r = fence_inode(call, POLICY_OP_IOCTL, handle->inode, &step);
	if (r == 0)
		r = fs_as_caller(call);
	if (r < 0)
		return r;
	r = ioctl(handle->fd, cmd, data) < 0 ? -errno : 0;
	fs_as_self(call);
	return r;
}

static int
fs_do_ioctl(struct fs_call *call, struct fs_handle *handle, unsigned int cmd,
	    union ioctl_data *data)
{
	switch (cmd) {
	case FS_IOC_GETFLAGS:
	case FS_IOC_FSGETXATTR:
		return ioctl(handle->fd, cmd, data) < 0 ? -errno : 0;
	case FS_IOC_SETFLAGS:
	case FS_IOC_FSSETXATTR:
		return ioctl_change(call, handle, cmd, data);
	default:
		return -ENOTTY;
	}
}

void
fs_op_ioctl(/* NOLINT(readability-function-size) */
	    fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
	    struct fuse_file_info *fi, unsigned int flags, const void *in_buf,
	    size_t in_size, size_t out_size)
{
	union ioctl_data data = { 0 };
	size_t size = cmd == FS_IOC_GETFLAGS || cmd == FS_IOC_SETFLAGS
			      ? sizeof(data.flags)
			      : sizeof(data.attr);
	struct fs_call call;
	int r;

	(void)ino;
	(void)arg;
	if (in_size > 0)
		memcpy(&data, in_buf, in_size < size ? in_size : size);
	fs_call_begin(&call, req);
	r = flags & FUSE_IOCTL_COMPAT
		    ? -ENOTTY
		    : fs_do_ioctl(&call, fs_handle_of(fi), cmd, &data);
	fs_call_end(&call);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_ioctl(req, 0, &data,
				 out_size < size ? out_size : size);
}
