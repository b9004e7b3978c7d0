/* SPDX-License-Identifier: MIT */

/*
 * Locks are questions and promises, no mutations: the fence lets them pass,
 * and locks.c replies.  No call is begun: a policy swap must not wait for a
 * lock.
 */

#include "fusefs/locks.h"
#include "fusefs/ops.h"

static struct locks_target
target_of(fuse_ino_t ino, const struct fuse_file_info *fi)
{
	return (struct locks_target){ .ino = ino,
				      .owner = fi->lock_owner,
				      .fh = fi->fh,
				      .fd = fs_handle_of(fi)->fd };
}

void
fs_op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
	    struct flock *lock)
{
	const struct fs *fs = fuse_req_userdata(req);
	struct locks_target target = target_of(ino, fi);

	locks_getlk(fs->locks, req, &target, lock);
}

void
fs_op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
	    struct flock *lock, int sleep)
{
	const struct fs *fs = fuse_req_userdata(req);
	struct locks_target target = target_of(ino, fi);

	locks_setlk(fs->locks, req, &target, lock, sleep);
}

void
fs_op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, int op)
{
	const struct fs *fs = fuse_req_userdata(req);
	struct locks_target target = target_of(ino, fi);

	locks_flock(fs->locks, req, &target, op);
}
