/* SPDX-License-Identifier: MIT */

/*
 * What the echo's requests are answered, and which changes need no echo.
 *
 * UNLINK, RMDIR and RENAME are answered only after the LOOKUP that led to them:
 * what the kernel had by the name before may be alive, and would be dead to it
 * afterwards.  ESTALE makes it look again.
 *
 * Where the watch cannot tell our own changes from the host's (inotify, or
 * another mount by this process), inmates would be told of their own changes
 * twice.  So what they change is noted: a table of hashes of names and nodes,
 * each with its time; a newer one takes an older one's place.
 */

#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "fusefs/echo_priv.h"
#include "fusefs/fence.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"
#include "fusefs/places.h"
#include "fusefs/tree_priv.h"

#define FOUND_MAX 8
#define NOTE_MS	  50
#define TIME_BITS 24
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)

/* ---- notes ---- */

static uint64_t
note_hash(fuse_ino_t node, const char *name)
{
	uint64_t hash = (uint64_t)node * 0x9e3779b97f4a7c15u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	hash ^= hash >> 29;
	return hash * 0xbf58476d1ce4e5b9u;
}

static uint64_t
now_ms(void)
{
	return (uint64_t)clock_mono_ns() / 1000000;
}

static void
note(struct fs_echo *echo, fuse_ino_t node, const char *name)
{
	uint64_t hash = note_hash(node, name);

	atomic_store_explicit(&echo->notes[hash % ECHO_NOTES],
			      (hash & ~TIME_MASK) | (now_ms() & TIME_MASK),
			      memory_order_relaxed);
}

bool
echo_is_noted(struct fs_echo *echo, fuse_ino_t node, const char *name)
{
	uint64_t hash = note_hash(node, name);
	uint64_t value = atomic_load_explicit(&echo->notes[hash % ECHO_NOTES],
					      memory_order_relaxed);

	return ((value ^ hash) & ~TIME_MASK) == 0 &&
	       ((now_ms() - value) & TIME_MASK) <= NOTE_MS;
}

/* ---- who asks ---- */

static bool
is_alive(const struct fs_echo *echo)
{
	struct pollfd polled = { .fd = echo->pidfd, .events = POLLIN };

	return echo->pidfd >= 0 && poll(&polled, 1, 0) == 0;
}

/* Whether it is the echo's request, and what it was ordered. */
static bool
is_echo(fuse_req_t req, struct echo_ordered *ret_ordered)
{
	const struct fs *fs = fuse_req_userdata(req);
	struct fs_echo *echo = fs->echo;
	bool is;

	if (!fs_echo_is_on(fs) ||
	    fuse_req_ctx(req)->pid != atomic_load(&echo->pid))
		return false;
	pthread_mutex_lock(&echo->lock);
	is = is_alive(echo);
	if (is)
		*ret_ordered = echo->ordered;
	/* To be used without the lock, while the order may be given up. */
	if (is && ret_ordered->step != ECHO_NOTHING) {
		fs_inode_ref(ret_ordered->dir);
		if (ret_ordered->dir2)
			fs_inode_ref(ret_ordered->dir2);
	}
	pthread_mutex_unlock(&echo->lock);
	return is;
}

static void
ordered_done(const struct fs *fs, struct echo_ordered *ordered)
{
	if (ordered->step == ECHO_NOTHING)
		return;
	fs_inode_put((struct fs *)fs, ordered->dir);
	fs_inode_put((struct fs *)fs, ordered->dir2);
}

static void
set_looked(struct fs_echo *echo, const struct echo_ordered *ordered)
{
	pthread_mutex_lock(&echo->lock);
	if (echo->ordered.id == ordered->id)
		echo->ordered.looked = true;
	pthread_mutex_unlock(&echo->lock);
}

static bool
is_place(const struct fs *fs, fuse_ino_t node, const char *name,
	 const struct fs_inode *dir, const char *of)
{
	return dir && node == fs_node_id(fs, dir) && strcmp(name, of) == 0;
}

/* ---- lookup ---- */

/* An entry that the kernel asks for again, of what may not be on the disk. */
static void
fill(struct fs *fs, const struct fs_inode *inode, const struct statx *stx,
     struct fuse_entry_param *ret_entry)
{
	*ret_entry = (struct fuse_entry_param){
		.ino = fs_node_id(fs, inode),
		.generation = inode->btime ^ inode->ino,
	};
	fs_attr(fs, inode->dev, stx, &ret_entry->attr);
}

static struct statx
made_up(const struct fs_call *call, const struct fs_inode *inode)
{
	return (struct statx){
		.stx_ino = inode->ino,
		.stx_mode = (uint16_t)((unsigned int)inode->type << 12 | 0600),
		.stx_nlink = 1,
		.stx_uid = call->uid,
		.stx_gid = call->gid,
	};
}

/* What was known by the name, is not what is there now, and has gone. */
static struct fs_inode *
find_gone(struct fs_call *call, struct fs_inode *dir, const char *name,
	  bool is_dir)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_inode *seen[FOUND_MAX], *gone = NULL;
	struct fs *fs = call->fs;
	struct statx stx;
	bool there;
	size_t n;

	there = fs_hold(fs, dir, &hold) == 0 &&
		fs_statx_at(hold.fd, name, &stx) == 0;
	n = fs_places_find(fs, dir, name, seen, FOUND_MAX);
	for (size_t i = 0; i < n; i++) {
		if (!gone && fs_inode_is_dir(seen[i]) == is_dir &&
		    !(there && fs_inode_is(fs, seen[i], &stx)))
			gone = seen[i];
		else
			fs_inode_put(fs, seen[i]);
	}
	return gone;
}

/* Whether it is that directory or one above it, as far as places are known. */
static bool
is_above(struct fs *fs, const struct fs_inode *above, struct fs_inode *inode)
{
	struct fs_inode *at = fs_inode_ref(inode), *parent;
	char name[NAME_MAX + 1];

	while (at != above && fs_inode_place(fs, at, &parent, name) == 0) {
		fs_inode_put(fs, at);
		at = parent;
	}
	fs_inode_put(fs, at);
	return at == above;
}

static int
enter_ghost(struct fs_call *call, mode_t type,
	    struct fuse_entry_param *ret_entry)
{
	struct fs_seen seen = { .counted = true };
	struct fs *fs = call->fs;
	struct fs_ident ident = { .type = (uint8_t)(type >> 12) };
	struct fs_inode *ghost;
	struct statx stx;
	int r;

	pthread_mutex_lock(&fs->echo->lock);
	/* No file system numbers its objects from the end. */
	ident.ino = UINT64_MAX - ++fs->echo->ghosts;
	pthread_mutex_unlock(&fs->echo->lock);
	r = fs_inode_upsert(fs, &ident, &seen, &ghost);
	if (r < 0)
		return r;
	stx = made_up(call, ghost);
	fill(fs, ghost, &stx, ret_entry);
	fs_inode_put(fs, ghost);
	return 0;
}

/*
 * A name that is about to go.  A directory that is somewhere else by now must
 * not be dead to the kernel: a ghost stands for it, as for what has moved away.
 */
static int
enter_gone(struct fs_call *call, const struct echo_ordered *ordered,
	   struct fs_inode *dir, const char *name,
	   struct fuse_entry_param *ret_entry)
{
	bool is_dir = S_ISDIR(ordered->type);
	struct fs *fs = call->fs;
	struct fs_inode *gone = NULL;
	struct statx stx;
	int r;

	if (!ordered->moved)
		gone = find_gone(call, dir, name, is_dir);
	r = gone ? fs_stat(fs, gone, &stx) : -ESTALE;
	if (gone && (r == 0 && is_dir && stx.stx_nlink > 0))
		gone = fs_inode_put(fs, gone);
	if (!gone && ordered->if_known)
		return -ENOENT;
	if (!gone)
		return enter_ghost(call, is_dir ? S_IFDIR : S_IFREG, ret_entry);
	if (r < 0)
		stx = made_up(call, gone);
	else
		/* The kernel takes one away. */
		stx.stx_nlink++;
	if (is_dir)
		fs_inode_set_stale(fs, gone);
	fs_inode_count_lookup(fs, gone);
	fill(fs, gone, &stx, ret_entry);
	fs_inode_put(fs, gone);
	return 0;
}

/*
 * A directory above what is removed, which has gone, too: as long as the
 * descriptor lasts that we have of it.
 */
static int
enter_gone_above(struct fs_call *call, const struct echo_ordered *ordered,
		 fuse_ino_t parent, const char *name,
		 struct fuse_entry_param *ret_entry)
{
	struct fs_inode *dir, *gone;
	struct fs *fs = call->fs;
	struct statx stx;
	int r = 1;

	if (tree_has(parent))
		return 1;
	dir = fs_inode_peek(fs, parent);
	gone = find_gone(call, dir, name, true);
	if (gone && is_above(fs, gone, ordered->dir) &&
	    fs_stat(fs, gone, &stx) == 0 && stx.stx_nlink == 0) {
		stx.stx_nlink = 2;
		fs_inode_count_lookup(fs, gone);
		fill(fs, gone, &stx, ret_entry);
		r = 0;
	}
	fs_inode_put(fs, gone);
	return r;
}

static bool
is_hidden(struct fs_call *call, struct fs_inode *dir, const char *name,
	  mode_t type)
{
	struct fs_marks above, marks;

	return fence_dir_marks(call, dir, &above) < 0 ||
	       fence_child_marks(call, &above, name, S_ISDIR(type), &marks) <
		       0 ||
	       (marks.flags & FS_INODE_HIDDEN);
}

/* What is at another place by now. */
static int
enter_moved(struct fs_call *call, const struct echo_ordered *ordered,
	    struct fuse_entry_param *ret_entry)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_inode *inode;
	int r = fs_hold(call->fs, ordered->dir2, &hold);

	if (r == 0)
		r = fs_lookup_entry(call, ordered->dir2, hold.fd,
				    ordered->name2, ret_entry, &inode);
	if (r == 0 && !fs_inode_is_type(inode, ordered->type)) {
		fs_entry_undo(call->fs, ret_entry);
		r = -ESTALE;
	}
	ret_entry->entry_timeout = ret_entry->attr_timeout = 0;
	return r;
}

/* What the other took the place of, if it was known; a directory was empty. */
static int
enter_replaced(struct fs_call *call, const struct echo_ordered *ordered,
	       struct fuse_entry_param *ret_entry)
{
	struct fs_inode *gone;

	if (S_ISDIR(ordered->type))
		return -ENOENT;
	gone = find_gone(call, ordered->dir2, ordered->name2, false);
	if (!gone)
		return -ENOENT;
	fs_inode_put(call->fs, gone);
	return enter_gone(call, &(struct echo_ordered){ .type = S_IFREG },
			  ordered->dir2, ordered->name2, ret_entry);
}

/* A new directory that somebody has found already, and may be in. */
static bool
is_known_dir(struct fs_call *call, const struct echo_ordered *ordered)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_inode *inode = NULL;
	struct fs *fs = call->fs;
	struct fs_ident ident;
	struct statx stx;
	bool known;

	if (!S_ISDIR(ordered->type) || fs_hold(fs, ordered->dir, &hold) < 0 ||
	    fs_statx_at(hold.fd, ordered->name, &stx) < 0 ||
	    fs_ident_of(fs, &stx, &ident) < 0)
		return false;
	inode = fs_inode_find(fs, &ident);
	known = inode != NULL;
	fs_inode_put(fs, inode);
	return known;
}

/* 1: as anybody's. */
static int
do_lookup(struct fs_call *call, const struct echo_ordered *ordered,
	  fuse_ino_t parent, const char *name,
	  struct fuse_entry_param *ret_entry)
{
	const struct fs *fs = call->fs;
	bool here = is_place(fs, parent, name, ordered->dir, ordered->name);
	bool there = is_place(fs, parent, name, ordered->dir2, ordered->name2);

	switch (ordered->step) {
	case ECHO_PROBE:
		return here ? -ENOENT : 1;
	case ECHO_MAKE:
		return here && !is_known_dir(call, ordered) ? -ENOENT : 1;
	case ECHO_REMOVE:
		if (!here)
			return enter_gone_above(call, ordered, parent, name,
						ret_entry);
		return is_hidden(call, ordered->dir, name, ordered->type)
			       ? -ENOENT
			       : enter_gone(call, ordered, ordered->dir, name,
					    ret_entry);
	case ECHO_RENAME:
		if (there)
			return enter_replaced(call, ordered, ret_entry);
		if (!here)
			return 1;
		return is_hidden(call, ordered->dir, name, ordered->type)
			       ? -ENOENT
			       : enter_moved(call, ordered, ret_entry);
	case ECHO_NOTHING:
	case ECHO_CONTENT:
	case ECHO_CLOSE:
	case ECHO_META:
		break;
	}
	return 1;
}

static void
op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs *fs = fuse_req_userdata(req);
	struct fuse_entry_param entry = { 0 };
	struct echo_ordered ordered;
	struct fs_call call;
	int r = 1;

	if (is_echo(req, &ordered)) {
		fs_call_begin(&call, req);
		if (ordered.step != ECHO_NOTHING)
			r = do_lookup(&call, &ordered, parent, name, &entry);
		fs_call_end(&call);
		if (r <= 0 &&
		    is_place(fs, parent, name, ordered.dir, ordered.name))
			set_looked(fs->echo, &ordered);
		ordered_done(fs, &ordered);
	}
	if (r > 0)
		fs->echo->below.lookup(req, parent, name);
	else if (r < 0)
		fuse_reply_err(req, -r);
	else if (fuse_reply_entry(req, &entry) < 0)
		fs_entry_undo(fs, &entry);
}

/* ---- names that come ---- */

static int
do_make(struct fs_call *call, const struct echo_ordered *ordered,
	struct fuse_entry_param *ret_entry)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct fs_inode *inode;
	int r = fs_hold(call->fs, ordered->dir, &hold);

	if (r == 0)
		r = fs_lookup_entry(call, ordered->dir, hold.fd, ordered->name,
				    ret_entry, &inode);
	if (r == 0 && !fs_inode_is_type(inode, ordered->type)) {
		fs_entry_undo(call->fs, ret_entry);
		r = -ENOENT;
	}
	return r;
}

/* False: it is an inmate's, and noted. */
static bool
made(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fs *fs = fuse_req_userdata(req);
	struct fuse_entry_param entry = { 0 };
	struct echo_ordered ordered;
	struct fs_call call;
	int r = -EPERM;

	if (!is_echo(req, &ordered)) {
		if (fs_echo_is_on(fs))
			note(fs->echo, parent, name);
		return false;
	}
	fs_call_begin(&call, req);
	if (ordered.step == ECHO_MAKE &&
	    is_place(fs, parent, name, ordered.dir, ordered.name))
		r = do_make(&call, &ordered, &entry);
	fs_call_end(&call);
	ordered_done(fs, &ordered);
	if (r < 0)
		fuse_reply_err(req, -r);
	else if (fuse_reply_entry(req, &entry) < 0)
		fs_entry_undo(fs, &entry);
	return true;
}

static const struct fuse_lowlevel_ops *
below(fuse_req_t req)
{
	const struct fs *fs = fuse_req_userdata(req);

	return &fs->echo->below;
}

static void
op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	 dev_t rdev)
{
	if (!made(req, parent, name))
		below(req)->mknod(req, parent, name, mode, rdev);
}

static void
op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	if (!made(req, parent, name))
		below(req)->mkdir(req, parent, name, mode);
}

static void
op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
	   const char *name)
{
	if (!made(req, parent, name))
		below(req)->symlink(req, target, parent, name);
}

/* ---- names that go ---- */

/* False: it is an inmate's, and noted.  `to`: of a rename; else 0. */
static bool
gone(fuse_req_t req, enum echo_step step, fuse_ino_t parent, const char *name,
     const struct fuse_entry_param *to, const char *to_name)
{
	struct fs *fs = fuse_req_userdata(req);
	struct echo_ordered ordered;
	int error = EPERM;

	if (!is_echo(req, &ordered)) {
		if (fs_echo_is_on(fs))
			note(fs->echo, parent, name);
		if (fs_echo_is_on(fs) && to)
			note(fs->echo, to->ino, to_name);
		return false;
	}
	if (ordered.step == step &&
	    is_place(fs, parent, name, ordered.dir, ordered.name) &&
	    (!to ||
	     is_place(fs, to->ino, to_name, ordered.dir2, ordered.name2)))
		error = ordered.looked ? 0 : ESTALE;
	ordered_done(fs, &ordered);
	fuse_reply_err(req, error);
	return true;
}

static void
op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (!gone(req, ECHO_REMOVE, parent, name, NULL, NULL))
		below(req)->unlink(req, parent, name);
}

static void
op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	if (!gone(req, ECHO_REMOVE, parent, name, NULL, NULL))
		below(req)->rmdir(req, parent, name);
}

static void
op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
	  fuse_ino_t new_parent, const char *new_name, unsigned int flags)
{
	const struct fuse_entry_param to = { .ino = new_parent };

	if (!gone(req, ECHO_RENAME, parent, name, &to, new_name))
		below(req)->rename(req, parent, name, new_parent, new_name,
				   flags);
}

/* ---- content and attributes ---- */

#define BOTH_TIMES                                                             \
	(FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME | \
	 FUSE_SET_ATTR_MTIME_NOW)
#define NOT_TIMES                                                     \
	(FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID | \
	 FUSE_SET_ATTR_SIZE)

static void
op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
	   struct fuse_file_info *fi)
{
	struct fs *fs = fuse_req_userdata(req);
	struct echo_ordered ordered;
	struct fs_inode *inode;
	struct stat result;
	struct statx stx;
	int r = -EPERM;

	if (!is_echo(req, &ordered)) {
		if (fs_echo_is_on(fs))
			note(fs->echo, ino, "");
		below(req)->setattr(req, ino, attr, to_set, fi);
		return;
	}
	if ((ordered.step == ECHO_CONTENT || ordered.step == ECHO_META) &&
	    (to_set & BOTH_TIMES) && !(to_set & NOT_TIMES) && !tree_has(ino)) {
		inode = fs_inode_peek(fs, ino);
		r = fs_stat(fs, inode, &stx);
		if (r == 0)
			fs_attr(fs, inode->dev, &stx, &result);
	}
	ordered_done(fs, &ordered);
	if (r < 0)
		fuse_reply_err(req, -r);
	else
		/* As to every SETATTR: see watch.h. */
		fuse_reply_attr(req, &result, 0);
}

/*
 * No file is opened, and the kernel keeps no pages by this opening and drops
 * none; it does not count where others pass through.
 */
static void
op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fuse_req_userdata(req);
	struct echo_ordered ordered;

	if ((fi->flags & O_ACCMODE) == O_RDONLY && !(fi->flags & O_TRUNC)) {
		below(req)->open(req, ino, fi);
		return;
	}
	if (!is_echo(req, &ordered)) {
		if (fs_echo_is_on(fs))
			note(fs->echo, ino, "");
		below(req)->open(req, ino, fi);
		return;
	}
	if (ordered.step == ECHO_CLOSE) {
		fi->fh = 0;
		fi->direct_io = fi->keep_cache = fi->noflush = 1;
		fuse_reply_open(req, fi);
	} else {
		fuse_reply_err(req, EPERM);
	}
	ordered_done(fs, &ordered);
}

static void
note_node(fuse_req_t req, fuse_ino_t ino)
{
	const struct fs *fs = fuse_req_userdata(req);

	if (fs_echo_is_on(fs))
		note(fs->echo, ino, "");
}

static void
op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (fi->fh == 0 && !tree_has(ino)) {
		fuse_reply_err(req, 0);
		return;
	}
	if ((fi->flags & O_ACCMODE) != O_RDONLY)
		note_node(req, ino);
	below(req)->release(req, ino, fi);
}

/* ---- what is only noted ---- */

static void
op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	const struct fs *fs = fuse_req_userdata(req);

	if (fs_echo_is_on(fs))
		note(fs->echo, parent, name);
	note_node(req, ino);
	below(req)->link(req, ino, parent, name);
}

static void
op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
	  struct fuse_file_info *fi)
{
	const struct fs *fs = fuse_req_userdata(req);

	if (fs_echo_is_on(fs))
		note(fs->echo, parent, name);
	below(req)->create(req, parent, name, mode, fi);
}

static void
op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
	 off_t offset, struct fuse_file_info *fi)
{
	note_node(req, ino);
	below(req)->write(req, ino, buf, size, offset, fi);
}

static void
op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
	     off_t length, struct fuse_file_info *fi)
{
	note_node(req, ino);
	below(req)->fallocate(req, ino, mode, offset, length, fi);
}

static void
op_copy_file_range(/* NOLINT(readability-function-size) */
		   fuse_req_t req, fuse_ino_t ino_in, off_t off_in,
		   struct fuse_file_info *fi_in, fuse_ino_t ino_out,
		   off_t off_out, struct fuse_file_info *fi_out, size_t len,
		   int flags)
{
	note_node(req, ino_out);
	below(req)->copy_file_range(req, ino_in, off_in, fi_in, ino_out,
				    off_out, fi_out, len, flags);
}

static void
op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value,
	    size_t size, int flags)
{
	note_node(req, ino);
	below(req)->setxattr(req, ino, name, value, size, flags);
}

static void
op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	note_node(req, ino);
	below(req)->removexattr(req, ino, name);
}

void
fs_echo_take_over(struct fs *fs, struct fuse_lowlevel_ops *ops)
{
	if (!fs->echo)
		return;
	fs->echo->below = *ops;
	ops->lookup = op_lookup;
	ops->setattr = op_setattr;
	ops->mknod = op_mknod;
	ops->mkdir = op_mkdir;
	ops->symlink = op_symlink;
	ops->link = op_link;
	ops->unlink = op_unlink;
	ops->rmdir = op_rmdir;
	ops->rename = op_rename;
	ops->create = op_create;
	ops->open = op_open;
	ops->release = op_release;
	ops->write = op_write;
	ops->fallocate = op_fallocate;
	ops->copy_file_range = op_copy_file_range;
	ops->setxattr = op_setxattr;
	ops->removexattr = op_removexattr;
}
