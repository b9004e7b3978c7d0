/* SPDX-License-Identifier: MIT */

/*
 * Names that go or change: unlink, rmdir, rename.
 *
 * An inode whose name goes may still be open, or be somebody's working
 * directory, or have other names.  It is found by its identity before the
 * call, and given a descriptor that stays (fs_inode_pin).
 */

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "fusefs/fence.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"
#include "fusefs/watch.h"

/* What a name leads to: its attributes, and its inode if that is known. */
struct target {
	struct statx stx;
	struct fs_inode *inode; /* referenced, or NULL */
	bool pinned;		/* by us */
};

/* A hard link whose other name is the one it was last seen by. */
static bool
has_other_place(struct fs *fs, const struct target *target,
		const struct fs_inode *dir, const char *name)
{
	struct fs_inode *parent = NULL;
	char place[NAME_MAX + 1];
	bool other;

	if (target->stx.stx_nlink < 2 || S_ISDIR(target->stx.stx_mode) ||
	    fs_inode_place(fs, target->inode, &parent, place) < 0)
		return false;
	other = parent != dir || strcmp(place, name) != 0;
	fs_inode_put(fs, parent);
	return other;
}

static bool
is_placed(struct fs *fs, struct fs_inode *inode, const struct fs_inode *dir,
	  const char *name)
{
	struct fs_inode *parent = NULL;
	char place[NAME_MAX + 1];
	bool is;

	if (!inode || fs_inode_place(fs, inode, &parent, place) < 0)
		return false;
	is = parent == dir && strcmp(place, name) == 0;
	fs_inode_put(fs, parent);
	return is;
}

/*
 * Finds out what a name leads to.  `pin`: its inode, if known, gets a
 * descriptor that stays, unless it can be opened by another name.
 */
static int
find_target(struct fs *fs, const struct fs_hold *dir, const char *name,
	    bool pin, struct target *ret_target)
{
	int dirfd = dir->fd;
	_cleanup_(closep) int fd = -1;
	struct target target = { 0 };
	struct fs_ident ident;
	int r;

	if (pin) {
		fd = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		r = fd < 0 ? -errno : 0;
		/* What the host moved away, the kernel takes for replaced. */
		if (r == -ENOENT)
			fs_place_disown(fs, dir->inode, name);
		if (r < 0)
			return r;
		r = fs_statx_fd(fd, &target.stx);
	} else {
		r = fs_statx_at(dirfd, name, &target.stx);
	}
	if (r == 0)
		r = fs_ident_of(fs, &target.stx, &ident);
	if (r < 0)
		return r;

	target.inode = fs_inode_find(fs, &ident);
	if (pin && S_ISDIR(target.stx.stx_mode) &&
	    !is_placed(fs, target.inode, dir->inode, name))
		fs_place_disown(fs, dir->inode, name);
	if (target.inode && pin &&
	    !has_other_place(fs, &target, dir->inode, name))
		target.pinned = fs_inode_pin(fs, target.inode, take_fd(&fd));
	*ret_target = target;
	return 0;
}

/* The name stayed after all. */
static void
keep_target(struct fs *fs, struct target *target)
{
	if (target->pinned)
		fs_inode_unpin(fs, target->inode);
}

/*
 * A directory that the kernel takes for removed is dead to it.  If the host was
 * faster and another one was removed, this one gets another inode when it is
 * found again (as in fs_place_disown).
 */
static void
check_removed(struct fs *fs, const struct target *target)
{
	struct statx stx;

	if (target->inode && target->stx.stx_nlink > 1)
		fs_watch_adrift(fs, target->inode);
	if (target->inode && fs_inode_is_dir(target->inode) &&
	    fs_stat(fs, target->inode, &stx) == 0 && stx.stx_nlink > 0)
		fs_inode_set_stale(fs, target->inode);
}

static int
fs_do_remove(struct fs_call *call, fuse_ino_t parent, const char *name,
	     bool is_dir)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	_cleanup_(fs_hold_done) struct fs_hold dir = FS_HOLD_NONE;
	struct target target = { 0 };
	struct fence_at at;
	int r;

	r = fs_hold(call->fs, fs_inode_peek(call->fs, parent), &dir);
	if (r < 0)
		return r;
	at = (struct fence_at){ .dir = dir.inode,
				.dirfd = dir.fd,
				.name = name,
				.is_dir = is_dir };
	r = fence_name(call, is_dir ? POLICY_OP_RMDIR : POLICY_OP_UNLINK, &at,
		       &step);
	if (r < 0)
		return r;

	r = find_target(call->fs, &dir, name, true, &target);
	if (r == 0)
		r = fs_as_caller(call);
	if (r == 0) {
		r = unlinkat(dir.fd, name, is_dir ? AT_REMOVEDIR : 0) < 0
			    ? -errno
			    : 0;
		fs_as_self(call);
		if (r < 0)
			keep_target(call->fs, &target);
		else
			check_removed(call->fs, &target);
	}
	fs_inode_put(call->fs, target.inode);
	return r;
}

static void
op_remove(fuse_req_t req, fuse_ino_t parent, const char *name, bool is_dir)
{
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_remove(&call, parent, name, is_dir);
	fs_call_end(&call);
	fuse_reply_err(req, -r);
}

void
fs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	op_remove(req, parent, name, false);
}

void
fs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	op_remove(req, parent, name, true);
}

/* ---- rename ---- */

struct renaming {
	struct fs_hold dirs[2]; /* from, to */
	const char *names[2];
	unsigned int flags;
	struct target targets[2];
	bool has_to; /* there was something at the new name */
};

static void
renaming_fini(struct fs *fs, struct renaming *renaming)
{
	fs_inode_put(fs, renaming->targets[0].inode);
	fs_inode_put(fs, renaming->targets[1].inode);
	fs_hold_done(&renaming->dirs[0]);
	fs_hold_done(&renaming->dirs[1]);
}

/*
 * The inode is at the other end's place now.  Where the guard counts another
 * distance below it, what is remembered of everything below is worked out
 * anew; rule states need that never, since they are equal at both places or
 * the directory is empty.
 */
static void
moved(struct fs_call *call, struct fs_inode *inode, const struct fs_hold *dir,
      const char *name)
{
	struct fs_marks above, marks;
	bool is_dir = fs_inode_is_dir(inode);
	uint8_t below = inode->below;

	if (fs_inode_set_place(call->fs, inode, dir->inode, name) < 0)
		return;
	if (fence_dir_marks(call, dir->inode, &above) < 0 ||
	    fence_child_marks(call, &above, name, is_dir, &marks) < 0) {
		fs_marks_outdated(call->fs);
		return;
	}
	fs_inode_set_marks(call->fs, inode, &marks);
	if (is_dir && marks.below != below)
		fs_marks_outdated(call->fs);
}

static int
rename_on_disk(struct fs_call *call, struct renaming *renaming,
	       struct fence_step *step)
{
	const struct gitguard_at from = { .dirfd = renaming->dirs[0].fd,
					  .name = renaming->names[0] };
	const struct gitguard_at to = { .dirfd = renaming->dirs[1].fd,
					.name = renaming->names[1] };
	int r;

	r = fs_as_caller(call);
	if (r < 0)
		return r;
	if (step->git.action == GITGUARD_PUBLISH)
		r = gitguard_publish(&from, &to, &step->git);
	else
		r = syscall(SYS_renameat2, from.dirfd, from.name, to.dirfd,
			    to.name, renaming->flags) < 0
			    ? -errno
			    : 0;
	fs_as_self(call);
	if (r < 0 && step->git.verdict.error < 0)
		return fence_refuse(call, POLICY_OP_RENAME, &step->git.verdict,
				    renaming->dirs[1].inode, to.name);
	return r;
}

static void
rename_done(struct fs_call *call, const struct renaming *renaming,
	    bool published)
{
	/* What is published is a copy: the lock file's inode has no name. */
	if (published)
		return;
	if (renaming->targets[0].inode) {
		fs_inode_unpin(call->fs, renaming->targets[0].inode);
		moved(call, renaming->targets[0].inode, &renaming->dirs[1],
		      renaming->names[1]);
	}
	if (!(renaming->flags & RENAME_EXCHANGE))
		check_removed(call->fs, &renaming->targets[1]);
	else if (renaming->targets[1].inode)
		moved(call, renaming->targets[1].inode, &renaming->dirs[0],
		      renaming->names[0]);
}

static int
rename_targets(struct fs_call *call, struct renaming *renaming,
	       struct fence_at at[2])
{
	bool exchange = renaming->flags & RENAME_EXCHANGE;
	int r;

	r = find_target(call->fs, &renaming->dirs[0], renaming->names[0], false,
			&renaming->targets[0]);
	if (r < 0)
		return r;
	r = find_target(call->fs, &renaming->dirs[1], renaming->names[1],
			!exchange, &renaming->targets[1]);
	renaming->has_to = r == 0;
	if (r < 0 && (r != -ENOENT || exchange))
		return r;

	/* As the kernel says to a directory that something is mounted on. */
	for (int i = 0; i < 1 + renaming->has_to; i++)
		if (fs_leads_to_own_dir(call->fs, &renaming->targets[i].stx))
			return -EBUSY;

	for (int i = 0; i < 2; i++)
		at[i] = (struct fence_at){
			.dir = renaming->dirs[i].inode,
			.dirfd = renaming->dirs[i].fd,
			.name = renaming->names[i],
			.is_dir = S_ISDIR(renaming->targets[i].stx.stx_mode),
			.is_symlink = S_ISLNK(renaming->targets[i].stx.stx_mode)
		};
	/* What is not there yet becomes what is moved there. */
	if (!exchange) {
		at[1].is_dir = at[0].is_dir;
		at[1].is_symlink = at[0].is_symlink;
	}
	return 0;
}

static int
fs_do_rename(struct fs_call *call, struct renaming *renaming,
	     fuse_ino_t parents[2], bool *ret_published)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };
	struct fs *fs = call->fs;
	struct fence_at at[2];
	int r;

	for (int i = 0; i < 2; i++) {
		r = fs_hold(fs, fs_inode_peek(fs, parents[i]),
			    &renaming->dirs[i]);
		if (r < 0)
			return r;
	}
	r = rename_targets(call, renaming, at);
	if (r == 0)
		r = fence_rename(call, &at[0], &at[1], renaming->flags, &step);
	if (r == 0 && step.git.action == GITGUARD_PUBLISH) {
		/* The lock file's inode is about to have no name. */
		fs_inode_put(fs, take_ptr(&renaming->targets[0].inode));
		r = find_target(fs, &renaming->dirs[0], at[0].name, true,
				&renaming->targets[0]);
	}
	if (r == 0)
		r = rename_on_disk(call, renaming, &step);
	if (r < 0) {
		for (int i = 0; i < 2; i++)
			keep_target(fs, &renaming->targets[i]);
		return r;
	}
	*ret_published = step.git.action == GITGUARD_PUBLISH;
	rename_done(call, renaming, *ret_published);
	return 0;
}

void
fs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
	     fuse_ino_t new_parent, const char *new_name, unsigned int flags)
{
	struct renaming renaming = { .dirs = { FS_HOLD_NONE, FS_HOLD_NONE },
				     .names = { name, new_name },
				     .flags = flags };
	fuse_ino_t parents[2] = { parent, new_parent };
	bool published = false;
	struct fs_call call;
	int r;

	fs_call_begin(&call, req);
	r = fs_do_rename(&call, &renaming, parents, &published);
	if (published)
		fs_notify_entry(call.fs, renaming.dirs[1].inode, new_name);
	renaming_fini(call.fs, &renaming);
	fs_call_end(&call);
	fuse_reply_err(req, -r);
}
