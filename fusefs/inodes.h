/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_INODES_H
#define FUSEFS_INODES_H

/*
 * The inode table: FS_SHARDS hash tables, each with its lock and its list of
 * idle descriptors.  See fs_priv.h for what an inode is and who refers to it.
 */

#include "fusefs/fs_priv.h"

struct fs_shard {
	pthread_mutex_t lock;
	struct fs_inode **buckets; /* n_buckets, a power of two */
	size_t n_buckets, count;
	struct fs_inode *idle_first, *idle_last; /* oldest first */
	size_t n_idle, max_idle;
	size_t n_fds; /* inodes with a descriptor */
};

/* What makes two looked-up names one inode. */
struct fs_ident {
	uint64_t ino;
	uint32_t dev; /* fs_dev_index() */
	uint32_t btime;
	uint8_t type;
};

/* What the rules say of an inode under one name. */
struct fs_marks {
	const struct rule_state *state; /* directories */
	uint32_t policy_gen;
	uint8_t flags; /* FS_INODE_PROTECTED, FS_INODE_HIDDEN */
	uint8_t below; /* directories: gitguard_below() */
};

/* Everything that pale asks of a backing object. */
#define FS_STATX_MASK (STATX_BASIC_STATS | STATX_BTIME)

int fs_inodes_init(struct fs *fs, size_t max_idle);
/* Frees whatever is left, without regard to references. */
void fs_inodes_fini(struct fs *fs);

/* -ENOSPC when LIMIT_DEVICES devices are in use. */
int fs_dev_index(struct fs *fs, unsigned int major, unsigned int minor,
		 uint32_t *ret_index);
int fs_ident_of(struct fs *fs, const struct statx *stx,
		struct fs_ident *ret_ident);
bool fs_ident_is(const struct fs_inode *inode, const struct fs_ident *ident);
/* The identity of what `stx` describes is that of `inode`. */
bool fs_inode_is(struct fs *fs, const struct fs_inode *inode,
		 const struct statx *stx);

/*
 * Takes the name away; returns what is to be freed when nobody reads it any
 * more, NULL for none.  Under the shard lock.
 */
char *fs_inode_take_name(struct fs_inode *inode);

/* Takes it off the list of idle descriptors; under the shard lock. */
void fs_idle_remove(struct fs_shard *shard, struct fs_inode *inode);

struct fs_shard *fs_shard_of(const struct fs *fs, const struct fs_inode *inode);

/*
 * Finds or inserts, as seen under `name` in `parent` (NULL: a root), and
 * counts one lookup of the kernel's (`counted`).  The result is referenced.
 * -ELOOP: a root was found below itself.
 */
struct fs_seen {
	struct fs_inode *parent;
	const char *name;
	const struct fs_marks *marks;
	bool counted;
};
int fs_inode_upsert(struct fs *fs, const struct fs_ident *ident,
		    const struct fs_seen *seen, struct fs_inode **ret_inode);

/* The known inode of this identity, referenced; NULL when there is none. */
struct fs_inode *fs_inode_find(struct fs *fs, const struct fs_ident *ident);

/* Those of this inode number, whatever else they are; referenced. */
size_t fs_inodes_numbered(struct fs *fs, uint32_t dev, uint64_t ino,
			  struct fs_inode *ret_found[], size_t max);

/* The kernel is told of it once more. */
void fs_inode_count_lookup(struct fs *fs, struct fs_inode *inode);
void fs_inode_forget(struct fs *fs, struct fs_inode *inode, uint64_t n);

/* The inode has this name now, and rules hold for it accordingly. */
int fs_inode_set_place(struct fs *fs, struct fs_inode *inode,
		       struct fs_inode *parent, const char *name);
void fs_inode_set_marks(struct fs *fs, struct fs_inode *inode,
			const struct fs_marks *marks);

/*
 * Gives the inode a descriptor (taken) that stays open: it is about to lose
 * the name by which it could be opened again.  False when it was pinned
 * before; else fs_inode_unpin() when it did not lose the name after all.
 */
bool fs_inode_pin(struct fs *fs, struct fs_inode *inode, int fd);
void fs_inode_unpin(struct fs *fs, struct fs_inode *inode);

/* Not to be found again: its identity leads to another inode from now on. */
void fs_inode_set_stale(struct fs *fs, struct fs_inode *inode);

/* From now on closing it must be told: that ends POSIX locks. */
void fs_inode_set_locked(struct fs *fs, struct fs_inode *inode);

/* Lists of open files; the inode's shard lock is taken inside. */
void fs_inode_add_handle(struct fs *fs, struct fs_handle *handle);
void fs_inode_remove_handle(struct fs *fs, struct fs_handle *handle);

/*
 * The directory `inode` is in `parent` now.  If that was last seen somewhere
 * below `inode`, the place that says so is out of date: it is forgotten, and
 * whatever is below it cannot be reached by name until it is looked up again.
 */
void fs_place_unring(struct fs *fs, struct fs_inode *inode,
		     struct fs_inode *parent);

/*
 * The kernel believes that it removes a directory by this name, and removes
 * another one, which the host put there: the one it means is dead to it for as
 * long as it knows it, but still there.  When it is found again it gets another
 * inode.
 */
void fs_place_disown(struct fs *fs, const struct fs_inode *dir,
		     const char *name);

/*
 * Calls `visit` for every inode the kernel knows, referenced, with no lock
 * held.  Inodes that come meanwhile may be missed.
 */
int fs_inodes_each(struct fs *fs,
		   void (*visit)(struct fs *fs, struct fs_inode *inode,
				 void *data),
		   void *data);

/*
 * From an inode up to a root: links[0] is the inode itself, the last one is
 * the first for which `stop` was true, or a root.  All are referenced.
 * Errors: -ESTALE (a place on the way is not known), -ELOOP, -ENOMEM.
 */
struct fs_link {
	struct fs_inode *inode;
	char *name; /* owned; NULL for a root */
};
struct fs_chain {
	struct fs *fs;
	struct fs_link *links;
	size_t count, room;
	bool stopped; /* `stop` was true for the last one */
};
typedef bool fs_chain_stop(const struct fs_inode *inode, unsigned int arg);
int fs_chain_climb(struct fs *fs, struct fs_inode *inode, fs_chain_stop *stop,
		   unsigned int arg, struct fs_chain *ret_chain);
void fs_chain_fini(struct fs_chain *chain);

static inline void
fs_shard_lock(struct fs_shard *shard)
{
	pthread_mutex_lock(&shard->lock);
}

static inline void
fs_shard_unlock(struct fs_shard *shard)
{
	pthread_mutex_unlock(&shard->lock);
}

#endif
