/* SPDX-License-Identifier: MIT */

/*
 * Locks are questions and promises, no mutations: the fence lets them pass,
 * and locks.c replies.  No call is begun: a policy swap must not wait for a
 * lock.
 */

#include "fusefs/inodes.h"
#include <string.h>

#include "fusefs/inodes.h"
#include "fusefs/locks.h"
#include "fusefs/ops.h"

#define SHM "-shm"

/* Whether the lock is one of a wal-index of SQLite. */
static bool
is_index(struct fs *fs, fuse_ino_t ino, const struct flock *lock)
{
	char name[NAME_MAX + 1];
	struct fs_inode *dir = NULL;
	size_t len;

	if (lock->l_len <= 0 || lock->l_start < BORDER_FIRST ||
	    lock->l_start + lock->l_len > BORDER_BYTE + 1)
		return false;
	if (fs_inode_place(fs, fs_inode_peek(fs, ino), &dir, name) < 0)
		return false;
	fs_inode_put(fs, dir);
	len = strlen(name);
	return len > strlen(SHM) && strcmp(name + len - strlen(SHM), SHM) == 0;
}

/*
 * The index is of one side only; the database and its log are of both, and the
 * other side may have written to them until now.
 */
static void
invalidate_of_border(struct fs *fs, fuse_ino_t ino)
{
	static const char *const suffixes[] = { "", "-wal" };
	_cleanup_(fs_hold_done) struct fs_hold dir = FS_HOLD_NONE;
	struct fs_inode *parent = NULL, *inode;
	char name[NAME_MAX + 1];
	struct fs_ident ident;
	struct statx stx;
	size_t len;
	int r;

	if (fs_inode_place(fs, fs_inode_peek(fs, ino), &parent, name) < 0)
		return;
	len = strlen(name) - strlen(SHM);
	r = fs_hold(fs, parent, &dir);
	for (size_t i = 0; r == 0 && i < 2; i++) {
		strcpy(name + len, suffixes[i]); /* NOLINT: no longer */
		inode = NULL;
		if (fs_statx_at(dir.fd, name, &stx) == 0 &&
		    fs_ident_of(fs, &stx, &ident) == 0)
			inode = fs_inode_find(fs, &ident);
		if (inode)
			(void)fuse_lowlevel_notify_inval_inode(
				fs->session, fs_node_id(fs, inode), 0, 0);
		fs_inode_put(fs, inode);
	}
	fs_hold_done(&dir);
	fs_inode_put(fs, parent);
}

void
fs_lock_granted(void *data, uint64_t ino, bool border)
{
	struct fs *fs = data;

	/* Names too: a journal is there, or is not. */
	(void)fs_barrier(fs);
	(void)fuse_lowlevel_notify_inval_inode(fs->session, ino, 0, 0);
	if (border)
		invalidate_of_border(fs, ino);
}

/*
 * A wal-index is memory that its users share: with the host's processes only
 * where data passes through.
 */
static struct locks_target
target_of(struct fs *fs, fuse_ino_t ino, const struct fuse_file_info *fi,
	  const struct flock *lock)
{
	const struct fs_handle *handle = fs_handle_of(fi);
	bool index = lock && is_index(fs, ino, lock);

	return (struct locks_target){ .ino = ino,
				      .owner = fi->lock_owner,
				      .fh = fi->fh,
				      .fd = handle->fd,
				      .border = index && !handle->backing,
				      .shared = index && handle->backing,
				      .through = handle->backing };
}

void
fs_op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
	    struct flock *lock)
{
	struct fs *fs = fuse_req_userdata(req);
	struct locks_target target = target_of(fs, ino, fi, lock);

	locks_getlk(fs->locks, req, &target, lock);
}

void
fs_op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
	    struct flock *lock, int sleep)
{
	struct fs *fs = fuse_req_userdata(req);
	struct locks_target target = target_of(fs, ino, fi, lock);

	fs_inode_set_locked(fs, fs_inode_peek(fs, ino));
	locks_setlk(fs->locks, req, &target, lock, sleep);
}

void
fs_op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	struct fs *fs = fuse_req_userdata(req);
	struct locks_target target = target_of(fs, ino, fi, NULL);

	locks_flock(fs->locks, req, &target, op);
}
