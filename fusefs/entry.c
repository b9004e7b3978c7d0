/* SPDX-License-Identifier: MIT */

/*
 * Names to inodes, and what the kernel is told of them.
 *
 * Inode numbers are the backing ones; those of another device, where a mount
 * of the host inside the workspace is crossed, are moved apart by the device's
 * index in the upper bits, which disk file systems do not use.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fusefs/echo.h"
#include "fusefs/fence.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"
#include "fusefs/watch.h"

uint64_t
fs_served_ino(uint32_t dev, uint64_t ino)
{
	return ino ^ ((uint64_t)dev << 56);
}

void
fs_attr(struct fs *fs, uint32_t dev, const struct statx *stx,
	struct stat *ret_attr)
{
	struct stat attr = {
		.st_ino = fs_served_ino(dev, stx->stx_ino),
		.st_mode = stx->stx_mode,
		.st_nlink = stx->stx_nlink,
		.st_uid = stx->stx_uid,
		.st_gid = stx->stx_gid,
		.st_rdev = makedev(stx->stx_rdev_major, stx->stx_rdev_minor),
		.st_size = (off_t)stx->stx_size,
		.st_blksize = (blksize_t)stx->stx_blksize,
		.st_blocks = (blkcnt_t)stx->stx_blocks,
		.st_atim = { stx->stx_atime.tv_sec, stx->stx_atime.tv_nsec },
		.st_mtim = { stx->stx_mtime.tv_sec, stx->stx_mtime.tv_nsec },
		.st_ctim = { stx->stx_ctime.tv_sec, stx->stx_ctime.tv_nsec },
	};

	fs_owner_shown(fs, &attr);
	*ret_attr = attr;
}

bool
fs_name_is_bad(const char *name)
{
	if (name[0] == '.' &&
	    (name[1] == '\0' || (name[1] == '.' && name[2] == '\0')))
		return true;
	return name[0] == '\0' || strchr(name, '/');
}

bool
fs_name_is_reserved(const struct fs *fs, const struct fs_inode *dir,
		    const char *name)
{
	return dir == fs->roots[0] && strncmp(name, ".pale", 5) == 0 &&
	       (name[5] == '\0' || strncmp(name + 5, "-root-", 6) == 0);
}

static const struct fs_own_dir *
find_own_dir(const struct fs *fs, const struct statx *stx)
{
	for (size_t i = 0; i < fs->n_own_dirs; i++)
		if (fs->own_dirs[i].ino == stx->stx_ino &&
		    fs->own_dirs[i].dev ==
			    makedev(stx->stx_dev_major, stx->stx_dev_minor))
			return &fs->own_dirs[i];
	return NULL;
}

bool
fs_is_own_dir(const struct fs *fs, const struct statx *stx)
{
	const struct fs_own_dir *own = find_own_dir(fs, stx);

	return own && !own->above;
}

bool
fs_leads_to_own_dir(const struct fs *fs, const struct statx *stx)
{
	return S_ISDIR(stx->stx_mode) && find_own_dir(fs, stx);
}

/*
 * Asked without waiting for the file system: if it is this one, waiting would
 * be for another thread of ours.
 */
static bool
is_own_mount(const struct fs *fs, int dirfd, const char *name)
{
	struct statx stx;

	return fs->own_device != 0 &&
	       statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC,
		     STATX_TYPE, &stx) == 0 &&
	       makedev(stx.stx_dev_major, stx.stx_dev_minor) == fs->own_device;
}

/* Without time-outs: those come last. */
static void
fill_entry(struct fs *fs, struct fs_inode *inode, const struct statx *stx,
	   struct fuse_entry_param *ret_entry)
{
	struct fuse_entry_param entry = {
		.ino = fs_node_id(fs, inode),
		/* For file handles: an address may be used again. */
		.generation = inode->btime ^ inode->ino,
	};

	fs_attr(fs, inode->dev, stx, &entry.attr);
	*ret_entry = entry;
}

/* A further root, for the mount helper only. */
static int
lookup_root(struct fs_call *call, const char *name,
	    struct fuse_entry_param *ret_entry, struct fs_inode **ret_inode)
{
	struct fs *fs = call->fs;

	if (fs->config.helper_pid == 0 || call->pid != fs->config.helper_pid)
		return -ENOENT;
	for (size_t i = 1; i < fs->n_roots; i++) {
		struct fs_inode *root = fs->roots[i];
		struct fs_seen seen = { .counted = true };
		struct fs_ident ident;
		char expected[32];
		struct statx stx;
		int r;

		(void)snprintf(expected, sizeof(expected), FS_ROOT_NAME_FORMAT,
			       i);
		if (!root || strcmp(name, expected) != 0)
			continue;
		r = fs_stat(fs, root, &stx);
		if (r == 0)
			r = fs_ident_of(fs, &stx, &ident);
		if (r == 0)
			r = fs_inode_upsert(fs, &ident, &seen, ret_inode);
		if (r != 0)
			return r;
		fs_inode_put(fs, *ret_inode);
		fill_entry(fs, root, &stx, ret_entry);
		return 0;
	}
	return -ENOENT;
}

int
fs_enter(struct fs_call *call, struct fs_inode *dir, const char *name,
	 const struct statx *stx, struct fuse_entry_param *ret_entry,
	 struct fs_inode **ret_inode)
{
	struct fs *fs = call->fs;
	struct fs_marks dir_marks, marks;
	struct fs_seen seen = {
		.parent = dir, .name = name, .marks = &marks, .counted = true
	};
	struct fs_ident ident;
	int r;

	r = fence_dir_marks(call, dir, &dir_marks);
	if (r == 0)
		r = fence_child_marks(call, &dir_marks, name,
				      S_ISDIR(stx->stx_mode), &marks);
	if (r == 0 && (marks.flags & FS_INODE_HIDDEN))
		r = -ENOENT;
	if (r == 0)
		r = fs_ident_of(fs, stx, &ident);
	if (r == 0)
		r = fs_inode_upsert(fs, &ident, &seen, ret_inode);
	if (r != 0)
		return r;

	/* The kernel's count keeps it from here on. */
	fs_inode_put(fs, *ret_inode);
	fill_entry(fs, *ret_inode, stx, ret_entry);
	ret_entry->attr_timeout =
		fs_watch_attr_timeout(fs, *ret_inode, stx, call->begun);
	ret_entry->entry_timeout =
		fs_watch_entry_timeout(fs, dir, stx, call->begun);
	/* inotify_add_watch() on it is to be seen: by a LOOKUP (below). */
	if (fs_echo_is_on(fs) && fs_inode_is_dir(*ret_inode) &&
	    !fs_watch_is_settled(*ret_inode))
		ret_entry->entry_timeout = 0;
	return 0;
}

int
fs_lookup_entry(struct fs_call *call, struct fs_inode *dir, int dirfd,
		const char *name, struct fuse_entry_param *ret_entry,
		struct fs_inode **ret_inode)
{
	struct fs *fs = call->fs;
	struct statx stx;
	int r;

	if (fs_name_is_bad(name))
		return -EINVAL;
	if (fs_name_is_reserved(fs, dir, name))
		return lookup_root(call, name, ret_entry, ret_inode);
	if (is_own_mount(fs, dirfd, name))
		return -ELOOP;
	fs_watch_add(fs, dir, dirfd);
	call->begun = atomic_load(&fs->changes);
	r = fs_statx_at(dirfd, name, &stx);
	if (r < 0)
		return r;
	if (S_ISDIR(stx.stx_mode) && fs_is_own_dir(fs, &stx))
		return -ENOENT;
	return fs_enter(call, dir, name, &stx, ret_entry, ret_inode);
}

/*
 * A directory is watched from its first LOOKUP on: else its attributes could
 * not be kept, and would be asked for at the next step into it.  One that is
 * listed only is not worth it yet.
 */
static void
watch_found(struct fs_call *call, struct fs_inode *inode,
	    struct fuse_entry_param *entry)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs *fs = call->fs;
	struct statx stx;

	if (!fs_inode_is_dir(inode) || fs_watch_is_settled(inode) ||
	    fs_hold(fs, inode, &hold) < 0)
		return;
	fs_watch_add(fs, inode, hold.fd);
	call->begun = atomic_load(&fs->changes);
	if (fs_statx_fd(hold.fd, &stx) < 0)
		return;
	fs_attr(fs, inode->dev, &stx, &entry->attr);
	entry->attr_timeout =
		fs_watch_attr_timeout(fs, inode, &stx, call->begun);
}

void
fs_entry_undo(struct fs *fs, const struct fuse_entry_param *entry)
{
	if (entry->ino)
		fs_inode_forget(fs, fs_inode_peek(fs, entry->ino), 1);
}

static int
fs_do_lookup(struct fs_call *call, fuse_ino_t parent, const char *name,
	     struct fuse_entry_param *ret_entry)
{
	_cleanup_(fs_hold_done) struct fs_hold dir = FS_HOLD_NONE;
	struct fs_inode *inode;
	int r;

	r = fs_hold(call->fs, fs_inode_peek(call->fs, parent), &dir);
	if (r < 0)
		return r;
	r = fs_lookup_entry(call, dir.inode, dir.fd, name, ret_entry, &inode);
	if (r == 0)
		watch_found(call, inode, ret_entry);
	return r;
}

/*
 * Whether the kernel may remember that the name is not there: not where rules
 * could make the same name there for another caller or moment.
 */
static bool
may_cache_absence(const struct fs_call *call, fuse_ino_t parent,
		  const char *name)
{
	return !atomic_load(&call->fs->has_hide) &&
	       !fs_name_is_reserved(call->fs, fs_inode_peek(call->fs, parent),
				    name);
}

void
fs_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = { 0 };
	struct fs_call call;
	bool absent;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_lookup(&call, parent, name, &entry);
	absent = r == -ENOENT && may_cache_absence(&call, parent, name);
	fs_call_end(&call);

	if (absent) {
		entry = (struct fuse_entry_param){
			.entry_timeout = fs_watch_entry_timeout(
				call.fs, fs_inode_peek(call.fs, parent), NULL,
				call.begun)
		};
		r = 0;
	}
	if (r < 0)
		fuse_reply_err(req, -r);
	else if (fuse_reply_entry(req, &entry) < 0)
		fs_entry_undo(call.fs, &entry);
}

void
fs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	struct fs *fs = fuse_req_userdata(req);

	if (ino != FUSE_ROOT_ID)
		fs_inode_forget(fs, fs_inode_peek(fs, ino), n);
	fuse_reply_none(req);
}

void
fs_op_forget_multi(fuse_req_t req, size_t count,
		   struct fuse_forget_data *forgets)
{
	struct fs *fs = fuse_req_userdata(req);

	for (size_t i = 0; i < count; i++)
		if (forgets[i].ino != FUSE_ROOT_ID)
			fs_inode_forget(fs, fs_inode_peek(fs, forgets[i].ino),
					forgets[i].nlookup);
	fuse_reply_none(req);
}
