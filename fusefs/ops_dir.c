/* SPDX-License-Identifier: MIT */

/*
 * Reading directories.  Hidden names, `.pale` and pale's own directories are
 * left out; everything else is as the backing directory has it, positions
 * included.
 */

#include <dirent.h>
#include <fcntl.h>
#include <string.h>

#include "fusefs/dirbuf.h"
#include "fusefs/fence.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"
#include "fusefs/watch.h"

/* One reply being filled. */
struct listing {
	struct fs_call *call;
	fuse_req_t req;
	struct fs_handle *handle;
	struct fs_inode *dir;
	char *buf;
	size_t at, size;
	bool plus;
	bool hides;
	struct fs_marks marks;
};

/* "." asks for search permission too, which only reading does not need. */
static int
open_dir(int fd)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int dir = openat(fd, ".", flags);
	char path[FS_PROC_PATH_MAX];

	if (dir < 0 && errno == EACCES) {
		fs_proc_path(fd, path);
		dir = open(path, flags);
	}
	return dir < 0 ? -errno : dir;
}

static int
fs_do_opendir(struct fs_call *call, fuse_ino_t ino, struct fuse_file_info *fi)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_handle *handle;
	struct fs_dirbuf *dir;
	int fd, r;

	r = fs_hold(call->fs, fs_inode_peek(call->fs, ino), &hold);
	if (r == 0)
		fs_watch_add(call->fs, hold.inode, hold.fd);
	if (r == 0)
		r = fs_as_caller(call);
	if (r < 0)
		return r;
	fd = open_dir(hold.fd);
	fs_as_self(call);
	if (fd < 0)
		return fd;

	r = fs_dirbuf_new(&dir);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	r = fs_handle_new(call, hold.inode, fd, fi->flags, &handle);
	if (r < 0) {
		fs_dirbuf_free(dir);
		return r;
	}
	handle->dir = dir;
	fi->fh = (uint64_t)(uintptr_t)handle;
	/* The kernel may keep the list where it is told when it changes. */
	fi->cache_readdir = fi->keep_cache =
		(hold.inode->flags & FS_INODE_WATCHED) != 0;
	return 0;
}

void
fs_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_opendir(&call, ino, fi);
	fs_call_end(&call);

	if (r < 0)
		fuse_reply_err(req, -r);
	else if (fuse_reply_open(req, fi) < 0)
		fs_handle_close(call.fs, fs_handle_of(fi));
}

void
fs_op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fuse_req_userdata(req);

	(void)ino;
	fs_handle_close(fs, fs_handle_of(fi));
	fuse_reply_err(req, 0);
}

static bool
is_dots(const char *name)
{
	return name[0] == '.' &&
	       (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static bool
is_left_out(struct listing *list, const struct fs_dirent *entry)
{
	struct fs *fs = list->call->fs;
	bool is_dir = entry->type == DT_DIR;
	struct fs_marks marks;
	struct statx stx;

	if (is_dots(entry->name))
		return false;
	if (fs_name_is_reserved(fs, list->dir, entry->name))
		return true;
	if (!list->hides &&
	    (fs->n_own_dirs == 0 || (!is_dir && entry->type != DT_UNKNOWN)))
		return false;
	if (entry->type == DT_UNKNOWN || (is_dir && fs->n_own_dirs > 0)) {
		if (fs_statx_at(list->handle->fd, entry->name, &stx) < 0)
			return true;
		is_dir = S_ISDIR(stx.stx_mode);
		if (is_dir && fs_is_own_dir(fs, &stx))
			return true;
	}
	return list->hides &&
	       (fence_child_marks(list->call, &list->marks, entry->name, is_dir,
				  &marks) < 0 ||
		(marks.flags & FS_INODE_HIDDEN));
}

/* Adds one entry; false when there is no room left. */
static bool
add_entry(struct listing *list, const struct fs_dirent *entry)
{
	struct fuse_entry_param param = { 0 };
	struct fs_inode *inode;
	size_t room = list->size - list->at, n;
	bool looked_up = false;
	int r;

	if (list->plus && !is_dots(entry->name)) {
		r = fs_lookup_entry(list->call, list->dir, list->handle->fd,
				    entry->name, &param, &inode);
		looked_up = r == 0;
		/* It has gone since; the reader need not see it. */
		if (r == -ENOENT)
			return true;
	}
	if (!looked_up) {
		/* The root's parent is nobody's business. */
		bool up = (list->dir->flags & FS_INODE_ROOT) &&
			  strcmp(entry->name, "..") == 0;

		param = (struct fuse_entry_param){ 0 };
		param.attr.st_ino = fs_served_ino(
			list->dir->dev, up ? list->dir->ino : entry->ino);
		param.attr.st_mode = (mode_t)entry->type << 12;
	}

	n = list->plus
		    ? fuse_add_direntry_plus(list->req, list->buf + list->at,
					     room, entry->name, &param,
					     entry->next)
		    : fuse_add_direntry(list->req, list->buf + list->at, room,
					entry->name, &param.attr, entry->next);
	if (n > room) {
		if (looked_up)
			fs_entry_undo(list->call->fs, &param);
		return false;
	}
	list->at += n;
	return true;
}

static int
fill(struct listing *list, off_t position)
{
	struct fs_dirent entry;
	int r;

	if (list->hides) {
		r = fence_dir_marks(list->call, list->dir, &list->marks);
		if (r < 0)
			return r;
	}
	for (;;) {
		r = fs_dirbuf_peek(list->handle->dir, list->handle->fd,
				   position, &entry);
		if (r <= 0)
			break;
		if (!is_left_out(list, &entry) && !add_entry(list, &entry))
			break;
		position = entry.next;
	}
	/* What is there already is handed on; the error comes again. */
	return list->at > 0 || r >= 0 ? 0 : r;
}

static void
op_readdir(fuse_req_t req, struct fs_inode *dir, size_t size, off_t offset,
	   const struct fuse_file_info *fi, bool plus)
{
	_cleanup_(freep) char *buf = malloc(size);
	struct fs_call call;
	struct listing list = { .call = &call,
				.req = req,
				.handle = fs_handle_of(fi),
				.dir = dir,
				.buf = buf,
				.size = size,
				.plus = plus };
	int r = -ENOMEM;

	fs_call_begin(&call, req);
	if (buf) {
		list.hides = atomic_load(&call.fs->has_hide);
		fs_dirbuf_lock(list.handle->dir);
		r = fill(&list, offset);
		fs_dirbuf_unlock(list.handle->dir);
	}
	fs_call_end(&call);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_buf(req, buf, list.at);
}

void
fs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
	      struct fuse_file_info *fi)
{
	op_readdir(req, fs_inode_peek(fuse_req_userdata(req), ino), size,
		   offset, fi, false);
}

void
fs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		  struct fuse_file_info *fi)
{
	op_readdir(req, fs_inode_peek(fuse_req_userdata(req), ino), size,
		   offset, fi, true);
}
