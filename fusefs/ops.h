/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_OPS_H
#define FUSEFS_OPS_H

/*
 * The operation table's handlers, and the helpers that several of them use.
 *
 * Every handler has two halves.  The outer one, fs_op_x(), replies to the
 * kernel exactly once, as its last act and with no lock or call held: after
 * the reply the inode and the handle may be gone.  The inner one, fs_do_x(),
 * works and returns 0 or a negative errno.
 */

#include "fusefs/fs_priv.h"
#include "fusefs/notify.h"

struct fs_shard;

/* ---- call.c ---- */

/* fs_call_begin() without a libfuse request. */
void fs_call_start(struct fs_call *call, struct fs *fs,
		   const struct fuse_ctx *ctx);
void fs_call_set_umask(mode_t mask);
/* The thread's one capability for passthrough, which is off otherwise. */
int fs_call_as_admin(bool on);

/*
 * From here to fs_as_self() the thread has the caller's uid, gid and groups
 * (multi_uid), so that the disk judges the caller and new files are the
 * caller's.  Errors: -EACCES (an id that the session does not map).
 */
int fs_as_caller(struct fs_call *call);
void fs_as_self(struct fs_call *call);
/* As fs_as_caller(), with another group where the caller may set it. */
int fs_as_caller_group(struct fs_call *call, gid_t gid);

/* ---- policy_swap.c ---- */

void fs_policy_enter(struct fs_call *call);
void fs_policy_leave(struct fs_call *call);
/* What inodes remember of the rules is to be worked out anew. */
void fs_marks_outdated(struct fs *fs);
bool fs_policy_hides(const struct policy *policy);

/* ---- descriptors.c ---- */

int fs_statx_fd(int fd, struct statx *ret_stx);
int fs_statx_at(int dirfd, const char *name, struct statx *ret_stx);
/* Attributes of an inode, wherever it can be reached.  -ESTALE: nowhere. */
int fs_stat(struct fs *fs, struct fs_inode *inode, struct statx *ret_stx);
/*
 * Opens the backing object anew with these open(2) flags (O_CREAT, O_EXCL and
 * O_TRUNC are ignored) as the caller, and makes sure that it is the one.
 * Returns the fd.
 */
int fs_open_inode(struct fs_call *call, struct fs_inode *inode, int flags,
		  struct statx *ret_stx);
void fs_idle_drop_all(struct fs *fs);

/* ---- handles.c ---- */

/*
 * Makes the handle of an open descriptor (taken, also on failure) and puts it
 * on the inode's list.
 */
int fs_handle_new(struct fs_call *call, struct fs_inode *inode, int fd,
		  int flags, struct fs_handle **ret_handle);
/* The same for what `what` has: inode, fd, flags and backing. */
int fs_handle_new_file(struct fs_call *call, const struct fs_handle *what,
		       struct fs_handle **ret_handle);
/* The same for a file whose content the git guard judges at each write. */
int fs_handle_new_small(struct fs_call *call, struct fs_inode *inode,
			struct gitguard_small *small, int flags,
			struct fs_handle **ret_handle);
struct fs_handle *fs_handle_ref(struct fs_handle *handle);
/* Closes with the last reference. */
void fs_handle_put(struct fs *fs, struct fs_handle *handle);
/* The kernel has closed it: off the inode's list, and put. */
void fs_handle_close(struct fs *fs, struct fs_handle *handle);
/* Regardless of references, when the mount is freed. */
void fs_handle_destroy(struct fs_handle *handle);

/* ---- entry.c ---- */

/* owner.c: owner and group as they are shown. */
int fs_owner_init(struct fs *fs);
void fs_owner_shown(const struct fs *fs, struct stat *attr);

/* What the kernel is told of an object. */
void fs_attr(struct fs *fs, uint32_t dev, const struct statx *stx,
	     struct stat *ret_attr);
uint64_t fs_served_ino(uint32_t dev, uint64_t ino);

/*
 * Looks up `name` in `dir` (descriptor `dirfd`), counts one lookup and fills
 * the entry.  -ENOENT also for hidden names, `.pale`, and pale's own
 * directories.  The inode is borrowed: the kernel's count keeps it until the
 * reply.
 */
int fs_lookup_entry(struct fs_call *call, struct fs_inode *dir, int dirfd,
		    const char *name, struct fuse_entry_param *ret_entry,
		    struct fs_inode **ret_inode);
/* The same for what is known by its attributes, under no name of pale's. */
int fs_enter(struct fs_call *call, struct fs_inode *dir, const char *name,
	     const struct statx *stx, struct fuse_entry_param *ret_entry,
	     struct fs_inode **ret_inode);
/* "." or "..", or more than one component: nothing that the kernel sends. */
bool fs_name_is_bad(const char *name);
/* `.pale` and the further roots' names, in the mount's root. */
bool fs_name_is_reserved(const struct fs *fs, const struct fs_inode *dir,
			 const char *name);
/* A directory of pale's own, which is never served. */
bool fs_is_own_dir(const struct fs *fs, const struct statx *stx);
/* One of those, or a directory above one: another could take its place. */
bool fs_leads_to_own_dir(const struct fs *fs, const struct statx *stx);
/* The kernel did not take an entry's reply: its lookup does not count. */
void fs_entry_undo(struct fs *fs, const struct fuse_entry_param *entry);

/* ---- raw.c ---- */

/* Serves on this descriptor, which is the session's from then on. */
int fs_session_attach(struct fs *fs, int fuse_fd);
/* The answer to OPEN or CREATE, which comes next, has this backing's number. */
void fs_open_passes(struct fuse_file_info *fi,
		    const struct fs_backing *backing);

/* ---- serve.c ---- */

int fs_serve_new(struct fs *fs);
void fs_serve_free(struct fs *fs);
/* Serves until the connection or the session has ended. */
void fs_serve(struct fs *fs, int wake_signal);
/* The session has ended: let it be seen. */
void fs_serve_wake(struct fs *fs);
/* The request under way may take long: others are served meanwhile. */
void fs_serve_long(void);

/* ---- operations ---- */

void fs_op_init(void *data, struct fuse_conn_info *conn);
void fs_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n);
void fs_op_forget_multi(fuse_req_t req, size_t count,
			struct fuse_forget_data *forgets);
void fs_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr,
		   int to_set, struct fuse_file_info *fi);
void fs_op_access(fuse_req_t req, fuse_ino_t ino, int mask);
void fs_op_statfs(fuse_req_t req, fuse_ino_t ino);
void fs_op_readlink(fuse_req_t req, fuse_ino_t ino);

void fs_op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		 mode_t mode, dev_t rdev);
void fs_op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		 mode_t mode);
void fs_op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
		   const char *name);
void fs_op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent,
		const char *name);
void fs_op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void fs_op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		  fuse_ino_t new_parent, const char *new_name,
		  unsigned int flags);

void fs_op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_op_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		  mode_t mode, struct fuse_file_info *fi);
void fs_op_tmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode,
		   struct fuse_file_info *fi);
/* Its work, for raw.c too: a file without a name, open. */
int fs_make_tmpfile(struct fs_call *call, fuse_ino_t parent, mode_t mode,
		    struct fuse_file_info *fi,
		    struct fuse_entry_param *ret_entry);
void fs_op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

void fs_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		struct fuse_file_info *fi);
void fs_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size,
		 off_t offset, struct fuse_file_info *fi);
void fs_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync,
		 struct fuse_file_info *fi);
void fs_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
		     off_t length, struct fuse_file_info *fi);
void fs_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
		 struct fuse_file_info *fi);
void fs_op_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t off_in,
			   struct fuse_file_info *fi_in, fuse_ino_t ino_out,
			   off_t off_out, struct fuse_file_info *fi_out,
			   size_t len, int flags);
void fs_op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned int cmd, void *arg,
		 struct fuse_file_info *fi, unsigned int flags,
		 const void *in_buf, size_t in_size, size_t out_size);

void fs_op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void fs_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
		   struct fuse_file_info *fi);
void fs_op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size,
		       off_t offset, struct fuse_file_info *fi);
void fs_op_releasedir(fuse_req_t req, fuse_ino_t ino,
		      struct fuse_file_info *fi);

void fs_op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		    const char *value, size_t size, int flags);
void fs_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
		    size_t size);
void fs_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void fs_op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

/* For struct locks_config. */
void fs_lock_granted(void *data, uint64_t ino, bool border);
void fs_op_getlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
		 struct flock *lock);
void fs_op_setlk(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
		 struct flock *lock, int sleep);
void fs_op_flock(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi,
		 int op);

#endif
