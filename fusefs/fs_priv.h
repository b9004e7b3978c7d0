/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_FS_PRIV_H
#define FUSEFS_FS_PRIV_H

/*
 * What the files of this folder share: the mount, its inodes and its handles.
 *
 * An inode stands for one backing object, keyed by (device, inode number,
 * birth time), however many names lead to it; its address is the node id that
 * the kernel knows it by.  It holds no descriptor until one is needed: what
 * finds the object again is its parent (referenced) and the name it was last
 * seen under, and what is found must have the same identity, else -ESTALE.
 * Descriptors of inodes that nobody uses at the moment are kept in a bounded
 * list, oldest closed first; an inode that has lost its name through us, or
 * that is a root, keeps its descriptor ("pinned").
 *
 * References: `refs` counts the children that point here, the open handles,
 * whoever works with it, and one for the kernel while it knows the inode
 * (nlookup > 0).  A request's own node ids need none: the kernel does not
 * forget what it is asking about.
 *
 * Locks: one shard lock at a time guards everything in an inode but its
 * identity; it is never held across a system call that can block.  Flags are
 * set under it and may be read without.
 *
 * Thread: fuse, unless a function says otherwise.
 */

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "fusefs/fs.h"
#include "policy/policy.h"
#include "policy/rules.h"

struct fs_backing;
struct fs_dirbuf;
struct fs_echo;
struct fs_handle;
struct fs_notify;
struct fs_serve;
struct fs_shard;
struct gitguard;
struct gitguard_small;
struct locks;

enum fs_inode_flag {
	FS_INODE_PINNED = 1 << 0,    /* keeps its descriptor */
	FS_INODE_PROTECTED = 1 << 1, /* a name it was seen under is protected */
	FS_INODE_HIDDEN = 1 << 2,    /* … is hidden */
	FS_INODE_IDLE = 1 << 3,	     /* on its shard's list of idle fds */
	FS_INODE_ROOT = 1 << 5,	     /* of the session; set once */
	FS_INODE_STALE = 1 << 4,     /* its number belongs to another object */
	FS_INODE_WATCHED = 1 << 6,   /* directory: changes in it are told */
	FS_INODE_UNWATCHED = 1 << 7, /* directory: … and cannot be */
	FS_INODE_ADRIFT = 1 << 6,    /* other: the host took its name away */
	FS_INODE_LOCKED = 1 << 7,    /* file: locks were asked for, ever */
};

/*
 * There is one for each name that the kernel has looked up, so every byte of it
 * counts: what only directories need lies before the inode of one, and the name
 * that it was first seen under lies behind.
 */
struct fs_inode {
	struct fs_inode *next;	     /* bucket */
	struct fs_inode *place_next; /* bucket of places.c, by its lock */
	struct fs_inode *parent;     /* NULL: a root of the session */
	char *name;		     /* in `parent`: `tail`, or allocated */
	struct fs_handle *handles;   /* open files, newest first */
	union {
		const struct rule_state *state; /* directory: rules below it */
		uint64_t stamp; /* file: what the page cache was read from */
	};
	uint64_t ino; /* backing inode number */
	atomic_uint refs;
	uint32_t nlookup;    /* the kernel's count; FS_LOOKUPS_MAX: at least */
	int fd;		     /* O_PATH, or -1 */
	uint32_t fd_users;   /* who must not see it closed */
	uint32_t btime;	     /* hash of the birth time */
	uint32_t policy_gen; /* of state and flags */
	union {
		uint32_t watch_key; /* of a watched directory, see watch.c */
		atomic_ushort maps; /* file: opened to be written unseen */
	};
	uint8_t type;	       /* S_IFMT bits of the mode, >> 12 */
	_Atomic uint8_t flags; /* enum fs_inode_flag; set under the lock */
	uint8_t root;	       /* of a root: its index in policy->roots */
	uint8_t below;	       /* directory: gitguard_below() of it */
	uint8_t dev;	       /* index of the device, see fs_dev_index() */
	_Atomic uint8_t fresh; /* its attributes are: see fs_watch_settling() */
	char tail[6];	       /* as long as that name needs it */
};

#define FS_LOOKUPS_MAX UINT32_MAX

/* So many inodes, at most, lie in one bucket of their tables on average. */
#define FS_PER_BUCKET 4

struct fs_dir {
	struct fs_inode *idle_prev, *idle_next;
	struct fs_inode inode;
};

static inline struct fs_dir *
fs_dir_of(struct fs_inode *inode)
{
	return (struct fs_dir *)((char *)inode -
				 offsetof(struct fs_dir, inode));
}

/* An open file or directory; fi->fh is its address. */
struct fs_handle {
	struct fs_inode *inode;		/* referenced */
	struct fs_handle *next, **link; /* in inode->handles; shard lock */
	atomic_uint refs;
	int fd;			/* of the backing object, as opened */
	int flags;		/* of open(2) */
	atomic_uint policy_gen; /* the last one that let it write */
	bool loses_bits;	/* setuid or setgid: a write clears them */
	pid_t pid;		/* who opened it: write-back has no caller */
	uid_t uid;
	gid_t gid;
	struct fs_dirbuf *dir; /* a directory's read position; else NULL */
	struct gitguard_small *small; /* content judged at each write */
	struct fs_backing *backing;   /* passed through to, or NULL */
};

/* How long the kernel may answer by itself, in seconds; see watch.h. */
struct fs_timeouts {
	double entry, attr, negative;
};

/* Who the server is to the disk; see owner.c. */
struct fs_owner {
	bool maps; /* other ids are unknown where the mount is */
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* owned */
	size_t n_groups;
};

/* A directory that is never served, whatever leads to it. */
struct fs_own_dir {
	dev_t dev;
	ino_t ino;
	bool above; /* it only holds one */
};

#define FS_SHARDS  64
#define FS_WRITERS 64

struct fs {
	struct fs_config config;
	struct fs_timeouts timeouts;	   /* where changes are told … */
	struct fs_timeouts short_timeouts; /* … and where they are not */
	struct fuse_session *session;
	pthread_t thread; /* runs the session's loop */
	bool running;
	atomic_bool stopping;

	/* See policy_swap.c: readers are counted by the parity of the epoch. */
	_Atomic(struct policy *) policy;
	atomic_uint policy_gen;
	atomic_uint epoch;
	atomic_uint in_epoch[2];
	pthread_mutex_t swap_lock; /* one swap at a time */
	/*
	 * Held by who makes a name, from its judgement to the end, and alone
	 * by who moves a directory: what holds below it depends on its place.
	 */
	pthread_rwlock_t moving;

	struct fs_inode *roots[LIMIT_ROOTS]; /* NULL: not served by FUSE */
	size_t n_roots;
	struct fs_shard *shards; /* FS_SHARDS of them */
	struct fs_places *places;
	pthread_mutex_t dev_lock;  /* appending to devs */
	dev_t devs[LIMIT_DEVICES]; /* the first is the workspace's own */
	atomic_uint n_devs;

	struct fs_notify *notify;
	struct fs_watch *watch;
	atomic_uint changes;	/* batches of the host's, seen; see watch.h */
	atomic_bool can_expire; /* the kernel knows FUSE_EXPIRE_ONLY */
	struct fs_echo *echo;	/* NULL: there can be none */
	atomic_bool echoing;	/* somebody inside watches; see echo.h */
	struct fs_serve *serve;
	struct gitguard *guard;
	struct locks *locks;

	struct fs_owner owner;
	struct fs_own_dir *own_dirs;
	size_t n_own_dirs;
	dev_t own_device; /* of this mount, if it is visible to us; 0: not known */
	atomic_uint_fast64_t init_unique; /* of INIT, while it is answered */
	uint32_t init_flags, init_flags2; /* to be added to that answer */
	atomic_int passing;		  /* enum fs_passing */
	_Atomic(struct fs_backing *) unbacked; /* to be given back */
	/* Process and milliseconds: see passthrough.h. */
	atomic_uint_fast64_t writers[FS_WRITERS];
	atomic_uint_fast64_t requests;
	atomic_uint copies;   /* copy_file_range, under way */
	atomic_bool has_hide; /* a hide rule may be in force */
};

/*
 * One request under way: who asks, and the policy that judges it.  Between
 * begin and end the policy stays alive and the thread acts with the caller's
 * credentials (multi_uid) and umask.  Must not be held across a wait of
 * unbounded length: a policy swap waits for it.
 */
struct fs_call {
	struct fs *fs;
	struct policy *policy; /* borrowed */
	unsigned int policy_gen;
	unsigned int epoch;
	unsigned int begun; /* fs->changes before the disk was looked at */
	pid_t pid;
	uid_t uid;
	gid_t gid;
};

void fs_call_begin(struct fs_call *call, fuse_req_t req);
void fs_call_end(struct fs_call *call);
/* Sets the thread's umask to the caller's, for a call that creates. */
void fs_call_umask(fuse_req_t req);

static inline struct fs_handle *
fs_handle_of(const struct fuse_file_info *fi)
{
	return (struct fs_handle *)(uintptr_t)fi->fh; /* NOLINT */
}

/* session.c: how many sessions this process serves at the moment. */
unsigned int fs_sessions(void);

/* ---- inodes.c: the table ---- */

/* The inode of a node id; valid until the reply, not referenced. */
static inline struct fs_inode *
fs_inode_peek(const struct fs *fs, fuse_ino_t ino)
{
	if (ino == FUSE_ROOT_ID)
		return fs->roots[0];
	return (struct fs_inode *)(uintptr_t)ino; /* NOLINT */
}

static inline bool
fs_inode_is_type(const struct fs_inode *inode, mode_t type)
{
	return (mode_t)inode->type << 12 == type;
}

static inline bool
fs_inode_is_dir(const struct fs_inode *inode)
{
	return S_ISDIR((mode_t)inode->type << 12);
}

static inline bool
fs_inode_is_symlink(const struct fs_inode *inode)
{
	return S_ISLNK((mode_t)inode->type << 12);
}

struct fs_inode *fs_inode_ref(struct fs_inode *inode);
/* Takes a reference unless the inode is already being freed. */
bool fs_inode_ref_alive(struct fs_inode *inode);
/* Drops one reference; frees what nobody knows any more.  Returns NULL. */
struct fs_inode *fs_inode_put(struct fs *fs, struct fs_inode *inode);

/* ---- descriptors.c: reaching the backing object ---- */

/*
 * A descriptor of the backing object, borrowed: O_PATH, or that of an open
 * handle.  Good for *at() calls, AT_EMPTY_PATH and /proc/self/fd/N.
 * Release with fs_hold_done(), also in the _cleanup_ form.
 */
struct fs_hold {
	struct fs *fs;
	struct fs_inode *inode;
	struct fs_handle *handle;
	int fd;
};

#define FS_HOLD_NONE ((struct fs_hold){ .fd = -1 })

/* Errors: -ESTALE (not found again), -EMFILE …. */
int fs_hold(struct fs *fs, struct fs_inode *inode, struct fs_hold *ret_hold);
void fs_hold_done(struct fs_hold *hold);

/*
 * The parent and the name an inode was last seen under, copied; the parent is
 * referenced for the caller.  -ESTALE for a root.
 */
int fs_inode_place(struct fs *fs, struct fs_inode *inode,
		   struct fs_inode **ret_parent, char name[NAME_MAX + 1]);

/* "/proc/self/fd/N", for calls that know no descriptor form. */
#define FS_PROC_PATH_MAX 32
void fs_proc_path(int fd, char path[FS_PROC_PATH_MAX]);

/* Absolute path as the inmate spells it; `name` NULL: of the inode itself. */
int fs_inode_path(struct fs *fs, struct fs_inode *inode, const char *name,
		  char **ret_path);

#endif
