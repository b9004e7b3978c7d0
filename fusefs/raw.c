/* SPDX-License-Identifier: MIT */

/*
 * What the kernel offers and libfuse before 3.17 does not know, done on the
 * bytes of the requests themselves:
 *
 *   - HANDLE_KILLPRIV_V2 is asked for in the answer to INIT.  Without it the
 *     kernel asks for security.capability before each write.  In return the
 *     bits are ours to clear, and the backing file system does it: no serving
 *     thread has CAP_FSETID (call.c).
 *   - TMPFILE is served, where libfuse would answer ENOSYS.
 *   - Passthrough is asked for, and the answers to OPEN and CREATE have the
 *     number of the backing file.
 *
 * Later libfuse has both, and this file is then only fs_session_attach().
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "fusefs/ops.h"
#include "fusefs/passthrough.h"

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)

int
fs_session_attach(struct fs *fs, int fuse_fd)
{
	char path[FS_PROC_PATH_MAX];

	/* This spelling means: it is mounted already, serve this one. */
	(void)snprintf(path, sizeof(path), "/dev/fd/%d", fuse_fd);
	return fuse_session_mount(fs->session, path) == 0 ? 0 : -EINVAL;
}

void
fs_open_passes(struct fuse_file_info *fi, const struct fs_backing *backing)
{
	fi->backing_id = backing->id;
	fi->keep_cache = 0;
}

#else

/* Seconds and nanoseconds of a time-out. */
static void
split_timeout(double timeout, uint64_t *ret_s, uint32_t *ret_ns)
{
	*ret_s = (uint64_t)timeout;
	*ret_ns = (uint32_t)((timeout - (double)*ret_s) * 1e9);
}

static struct fuse_attr
raw_attr(const struct stat *st)
{
	return (struct fuse_attr){
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime = (uint64_t)st->st_atim.tv_sec,
		.mtime = (uint64_t)st->st_mtim.tv_sec,
		.ctime = (uint64_t)st->st_ctim.tv_sec,
		.atimensec = (uint32_t)st->st_atim.tv_nsec,
		.mtimensec = (uint32_t)st->st_mtim.tv_nsec,
		.ctimensec = (uint32_t)st->st_ctim.tv_nsec,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.blksize = (uint32_t)st->st_blksize,
	};
}

static ssize_t
reply(int fd, uint64_t unique, int error, const struct fuse_entry_param *entry,
      const struct fuse_file_info *fi)
{
	struct {
		struct fuse_out_header head;
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = { .head = { .unique = unique, .error = error } };
	size_t len = sizeof(out.head);

	if (error == 0) {
		len = sizeof(out);
		out.entry.nodeid = entry->ino;
		out.entry.generation = entry->generation;
		split_timeout(entry->entry_timeout, &out.entry.entry_valid,
			      &out.entry.entry_valid_nsec);
		split_timeout(entry->attr_timeout, &out.entry.attr_valid,
			      &out.entry.attr_valid_nsec);
		out.entry.attr = raw_attr(&entry->attr);
		out.open.fh = fi->fh;
	}
	out.head.len = (uint32_t)len;
	return write(fd, &out, len) == (ssize_t)len ? 0 : -1;
}

static void
serve_tmpfile(struct fs *fs, int fd, const struct fuse_in_header *head)
{
	const struct fuse_create_in *in = (const void *)(head + 1);
	struct fuse_file_info fi = { .flags = (int)in->flags };
	struct fuse_entry_param entry = { 0 };
	const struct fuse_ctx ctx = { .uid = head->uid,
				      .gid = head->gid,
				      .pid = (pid_t)head->pid,
				      .umask = in->umask };
	struct fs_call call;
	int r;

	fs_call_start(&call, fs, &ctx);
	fs_call_set_umask(in->umask);
	r = fs_make_tmpfile(&call, head->nodeid, in->mode, &fi, &entry);
	fs_call_end(&call);

	if (reply(fd, head->unique, r, &entry, &fi) < 0 && r == 0) {
		fs_handle_close(fs, fs_handle_of(&fi));
		fs_entry_undo(fs, &entry);
	}
}

/* What its answer will have beyond libfuse's. */
static void
note_init(struct fs *fs, const struct fuse_init_in *init)
{
	bool passes = (init->flags & FS_INIT_EXT) &&
		      (init->flags2 & FS_INIT_PASSTHROUGH);

	fs->init_flags = init->flags & FUSE_HANDLE_KILLPRIV_V2;
	fs->init_flags2 = 0;
	if (fs_passthrough_offered(fs, passes)) {
		fs->init_flags |= FS_INIT_EXT;
		fs->init_flags2 = FS_INIT_PASSTHROUGH;
	}
}

/* Whether the request has been answered here. */
static bool
served_here(struct fs *fs, int fd, const void *buf, size_t len)
{
	const struct fuse_in_header *head = buf;
	const struct fuse_init_in *init = (const void *)(head + 1);

	if (len < sizeof(*head))
		return false;
	if (head->opcode == FUSE_TMPFILE &&
	    len >= sizeof(*head) + sizeof(struct fuse_create_in)) {
		serve_tmpfile(fs, fd, head);
		return true;
	}
	if (head->opcode == FUSE_INIT && len >= sizeof(*head) + sizeof(*init)) {
		note_init(fs, init);
		atomic_store(&fs->init_unique, head->unique);
	}
	return false;
}

/*
 * The kernel sends RELEASE when all requests of the handle have been answered.
 * The thread sanitizer knows of no order that splice(2) makes.
 */
#ifdef __SANITIZE_THREAD__
void __tsan_acquire(void *at);
void __tsan_release(void *at);
#define ASKED(fs)    __tsan_acquire(fs)
#define ANSWERED(fs) __tsan_release(fs)
#else
#define ASKED(fs)
#define ANSWERED(fs)
#endif

static ssize_t
raw_read(int fd, void *buf, size_t len, void *data)
{
	ssize_t n;

	do {
		n = read(fd, buf, len);
		ASKED(data);
	} while (n > 0 && served_here(data, fd, buf, (size_t)n));
	return n;
}

static void
amend_init(struct fs *fs, const struct iovec *body)
{
	struct fuse_init_out *init = body->iov_base;

	if (body->iov_len < offsetof(struct fuse_init_out, max_background))
		return;
	if (body->iov_len >= sizeof(*init)) {
		init->flags2 |= fs->init_flags2;
		/* max_stack_depth, in newer headers. */
		if (fs->init_flags2)
			init->unused[0] = FS_STACK_DEPTH;
	} else {
		fs->init_flags &= ~FS_INIT_EXT;
	}
	init->flags |= fs->init_flags;
}

/* The number that the answer to the request under way is to have, or 0. */
static __thread int open_passes_to;

void
fs_open_passes(struct fuse_file_info *fi, const struct fs_backing *backing)
{
	fi->keep_cache = 0;
	open_passes_to = backing->id;
}

/* OPEN's answer, or the last part of CREATE's. */
static void
amend_open(const struct iovec *body)
{
	struct fuse_open_out open;
	char *at = body->iov_base;

	if (body->iov_len < sizeof(open))
		return;
	at += body->iov_len - sizeof(open);
	memcpy(&open, at, sizeof(open));
	open.open_flags |= FS_OPEN_PASSTHROUGH;
	open.padding = (uint32_t)open_passes_to; /* backing_id, meanwhile */
	memcpy(at, &open, sizeof(open));
}

static ssize_t
raw_writev(int fd, struct iovec *iov, int count, void *data)
{
	const struct fuse_out_header *head = iov[0].iov_base;
	struct fs *fs = data;
	uint64_t unique =
		atomic_load_explicit(&fs->init_unique, memory_order_relaxed);

	if (unique != 0 && head->unique == unique && head->error == 0 &&
	    count > 1) {
		amend_init(fs, &iov[1]);
		atomic_store(&fs->init_unique, 0);
	}
	/* Notifications, which have no number, may come before the answer. */
	if (open_passes_to != 0 && head->unique != 0) {
		if (head->error == 0 && count > 1)
			amend_open(&iov[1]);
		open_passes_to = 0;
	}
	return writev(fd, iov, count);
}

static ssize_t
raw_splice(/* NOLINT(readability-function-size) */
	   int fd_in, off_t *off_in, int fd_out, off_t *off_out, size_t len,
	   unsigned int flags, void *data)
{
	(void)data;
	ANSWERED(data);
	return splice(fd_in, off_in, fd_out, off_out, len, flags);
}

int
fs_session_attach(struct fs *fs, int fuse_fd)
{
	static const struct fuse_custom_io io = {
		.read = raw_read,
		.writev = raw_writev,
		.splice_send = raw_splice,
	};
	int r = fuse_session_custom_io(fs->session, &io, fuse_fd);

	return r < 0 ? -EINVAL : 0;
}

#endif
