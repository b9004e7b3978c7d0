/* SPDX-License-Identifier: MIT */

/*
 * Reaching the backing object of an inode.
 *
 * In order of preference: the descriptor that the inode has, that of an open
 * handle, and the object found again by name in its parent, which may have to
 * be found first by the same rule.  Directories stay open afterwards, on their
 * shard's list of idle descriptors: they are what every lookup starts from.
 * Other objects are closed at once, or a file that the host removes would keep
 * its blocks for as long as the list pleases.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fusefs/inodes.h"
#include "fusefs/ops.h"

void
fs_proc_path(int fd, char path[FS_PROC_PATH_MAX])
{
	(void)snprintf(path, FS_PROC_PATH_MAX, "/proc/self/fd/%d", fd);
}

/* Closes idle descriptors of a shard down to `keep`. */
static void
trim_idle(struct fs_shard *shard, size_t keep)
{
	for (;;) {
		struct fs_inode *inode;
		int fd = -1;

		fs_shard_lock(shard);
		inode = shard->n_idle > keep ? shard->idle_first : NULL;
		if (inode) {
			fs_idle_remove(shard, inode);
			fd = take_fd(&inode->fd);
			shard->n_fds--;
		}
		fs_shard_unlock(shard);
		if (fd < 0)
			return;
		(void)close(fd);
	}
}

void
fs_idle_drop_all(struct fs *fs)
{
	for (size_t i = 0; i < FS_SHARDS; i++)
		trim_idle(&fs->shards[i], 0);
}

static bool
hold_locked(struct fs_shard *shard, struct fs_inode *inode,
	    struct fs_hold *hold)
{
	if (inode->fd >= 0) {
		fs_idle_remove(shard, inode);
		inode->fd_users++;
		hold->fd = inode->fd;
		return true;
	}
	if (inode->handles) {
		hold->handle = fs_handle_ref(inode->handles);
		hold->fd = hold->handle->fd;
		return true;
	}
	return false;
}

/* What the inode already has; false when it must be opened. */
static bool
hold_present(struct fs *fs, struct fs_inode *inode, struct fs_hold *ret_hold)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	struct fs_hold hold = { .fs = fs, .inode = inode, .fd = -1 };
	bool present;

	fs_shard_lock(shard);
	present = hold_locked(shard, inode, &hold);
	fs_shard_unlock(shard);
	if (present)
		*ret_hold = hold;
	return present;
}

void
fs_hold_done(struct fs_hold *hold)
{
	struct fs_inode *inode = hold->inode;
	struct fs_shard *shard;
	bool full = false;
	int fd = -1;

	if (hold->fd < 0)
		return;
	hold->fd = -1;
	if (hold->handle) {
		fs_handle_put(hold->fs, hold->handle);
		return;
	}

	shard = fs_shard_of(hold->fs, inode);
	fs_shard_lock(shard);
	if (--inode->fd_users == 0 && !(inode->flags & FS_INODE_PINNED)) {
		if (fs_inode_is_dir(inode)) {
			fs_dir_of(inode)->idle_prev = shard->idle_last;
			if (shard->idle_last)
				fs_dir_of(shard->idle_last)->idle_next = inode;
			else
				shard->idle_first = inode;
			shard->idle_last = inode;
			inode->flags |= FS_INODE_IDLE;
			full = ++shard->n_idle > shard->max_idle;
		} else {
			fd = take_fd(&inode->fd);
			shard->n_fds--;
		}
	}
	fs_shard_unlock(shard);
	closep(&fd);
	if (full)
		trim_idle(shard, shard->max_idle);
}

/* Gives the inode the descriptor (taken), unless it has one, and holds it. */
static void
install(struct fs *fs, struct fs_inode *inode, int fd, struct fs_hold *ret_hold)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	struct fs_hold hold = { .fs = fs, .inode = inode, .fd = -1 };

	fs_shard_lock(shard);
	if (inode->fd < 0) {
		inode->fd = take_fd(&fd);
		shard->n_fds++;
	}
	fs_idle_remove(shard, inode);
	inode->fd_users++;
	hold.fd = inode->fd;
	fs_shard_unlock(shard);
	closep(&fd);
	*ret_hold = hold;
}

int
fs_statx_fd(int fd, struct statx *ret_stx)
{
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_SYNC_AS_STAT, FS_STATX_MASK,
		  ret_stx) < 0)
		return -errno;
	return 0;
}

int
fs_statx_at(int dirfd, const char *name, struct statx *ret_stx)
{
	if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW, FS_STATX_MASK, ret_stx) < 0)
		return -errno;
	return 0;
}

static int
open_path_at(struct fs *fs, int dirfd, const char *name)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dirfd, name, flags);

	if (fd < 0 && errno == EMFILE) {
		fs_idle_drop_all(fs);
		fd = openat(dirfd, name, flags);
	}
	return fd < 0 ? -errno : fd;
}

/* One step down: the child of a held directory. */
static int
open_child(struct fs *fs, const struct fs_hold *dir, const struct fs_link *link,
	   struct fs_hold *ret_hold)
{
	_cleanup_(closep) int fd = -1;
	struct statx stx;
	int r;

	fd = open_path_at(fs, dir->fd, link->name);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return -ESTALE;
	if (fd < 0)
		return fd;
	r = fs_statx_fd(fd, &stx);
	if (r < 0)
		return r;
	if (!fs_inode_is(fs, link->inode, &stx))
		return -ESTALE;
	install(fs, link->inode, take_fd(&fd), ret_hold);
	return 0;
}

static bool
has_descriptor(const struct fs_inode *inode, unsigned int arg)
{
	(void)arg;
	return inode->fd >= 0 || inode->handles;
}

static int
reopen(struct fs *fs, struct fs_inode *inode, struct fs_hold *ret_hold)
{
	_cleanup_(fs_chain_fini) struct fs_chain chain = { 0 };
	_cleanup_(fs_hold_done) struct fs_hold at = FS_HOLD_NONE;
	int r;

	r = fs_chain_climb(fs, inode, has_descriptor, 0, &chain);
	if (r < 0)
		return r;

	/* The idle descriptor that ended the climb may be gone by now. */
	if (!hold_present(fs, chain.links[chain.count - 1].inode, &at))
		return -EAGAIN;
	for (size_t i = chain.count - 1; i-- > 0;) {
		struct fs_hold below = FS_HOLD_NONE;

		r = open_child(fs, &at, &chain.links[i], &below);
		if (r < 0)
			return r;
		fs_hold_done(&at);
		at = below;
	}
	*ret_hold = at;
	at = FS_HOLD_NONE;
	return 0;
}

/*
 * A rename that another request is doing is on the disk a moment before the
 * places know of it; and a place that was read may be the one before.  So what
 * is not found is looked for again, a few times and for a millisecond or two.
 */
#define STALE_TRIES  8
#define STALE_NAP_NS 200000

int
fs_hold(struct fs *fs, struct fs_inode *inode, struct fs_hold *ret_hold)
{
	const struct timespec nap = { .tv_nsec = STALE_NAP_NS };
	int tries = 0, r;

	if (hold_present(fs, inode, ret_hold))
		return 0;
	for (;;) {
		r = reopen(fs, inode, ret_hold);
		if (r == -EAGAIN)
			continue;
		if (r != -ESTALE)
			return r;
		/* Another thread may have opened it meanwhile. */
		if (hold_present(fs, inode, ret_hold))
			return 0;
		if (++tries >= STALE_TRIES)
			return r;
		(void)nanosleep(&nap, NULL);
	}
}

int
fs_stat(struct fs *fs, struct fs_inode *inode, struct statx *ret_stx)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];
	struct statx stx;
	int r;

	if (hold_present(fs, inode, &hold))
		return fs_statx_fd(hold.fd, ret_stx);
	if (fs_inode_is_dir(inode)) {
		r = fs_hold(fs, inode, &hold);
		return r < 0 ? r : fs_statx_fd(hold.fd, ret_stx);
	}

	/* By name: a file that is only looked at needs no descriptor. */
	r = fs_inode_place(fs, inode, &parent, name);
	if (r < 0)
		return r;
	r = fs_hold(fs, parent, &hold);
	if (r == 0) {
		r = fs_statx_at(hold.fd, name, &stx);
		if (r == 0 && !fs_inode_is(fs, inode, &stx))
			r = -ESTALE;
		if (r == -ENOENT || r == -ENOTDIR)
			r = -ESTALE;
		fs_hold_done(&hold);
	}
	fs_inode_put(fs, parent);
	if (r == 0) {
		*ret_stx = stx;
		return 0;
	}
	if (r == -ESTALE && fs_hold(fs, inode, &hold) == 0)
		return fs_statx_fd(hold.fd, ret_stx);
	return r;
}

/*
 * Opens by name and checks afterwards what was opened: two calls where O_PATH,
 * check, and re-open by /proc are four.  O_NONBLOCK, because the host may have
 * put a FIFO there.
 */
static int
open_by_name(struct fs_call *call, struct fs_inode *inode, int flags,
	     struct statx *ret_stx)
{
	_cleanup_(fs_hold_done) struct fs_hold dir = FS_HOLD_NONE;
	_cleanup_(closep) int fd = -1;
	struct fs_inode *parent = NULL;
	char name[NAME_MAX + 1];
	int r;

	r = fs_inode_place(call->fs, inode, &parent, name);
	if (r < 0)
		return r;
	r = fs_hold(call->fs, parent, &dir);
	if (r == 0)
		r = fs_as_caller(call);
	if (r == 0) {
		fd = openat(dir.fd, name,
			    flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				    O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
		fs_as_self(call);
	}
	fs_hold_done(&dir);
	fs_inode_put(call->fs, parent);
	if (r == -ENOENT || r == -ELOOP || r == -ENOTDIR || r == -ENXIO)
		return -ESTALE;
	if (r < 0)
		return r;
	r = fs_statx_fd(fd, ret_stx);
	if (r < 0)
		return r;
	if (!fs_inode_is(call->fs, inode, ret_stx))
		return -ESTALE;
	return take_fd(&fd);
}

static int
open_by_proc(struct fs_call *call, struct fs_inode *inode, int flags,
	     struct statx *ret_stx)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	_cleanup_(closep) int fd = -1;
	char path[FS_PROC_PATH_MAX];
	int r;

	r = fs_hold(call->fs, inode, &hold);
	if (r < 0)
		return r;
	fs_proc_path(hold.fd, path);
	r = fs_as_caller(call);
	if (r < 0)
		return r;
	fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
	r = fd < 0 ? -errno : 0;
	fs_as_self(call);
	if (r == 0)
		r = fs_statx_fd(fd, ret_stx);
	return r < 0 ? r : take_fd(&fd);
}

int
fs_open_inode(struct fs_call *call, struct fs_inode *inode, int flags,
	      struct statx *ret_stx)
{
	int fd = -ESTALE;

	flags &= ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW);
	if (!(inode->flags & FS_INODE_PINNED))
		fd = open_by_name(call, inode, flags, ret_stx);
	/* EAGAIN: a lease is being broken; the blocking open waits for it. */
	if (fd == -ESTALE || fd == -EAGAIN)
		fd = open_by_proc(call, inode, flags, ret_stx);
	if (fd == -EMFILE) {
		fs_idle_drop_all(call->fs);
		fd = open_by_proc(call, inode, flags, ret_stx);
	}
	return fd;
}
