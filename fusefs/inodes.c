/* SPDX-License-Identifier: MIT */

/*
 * The inode table.
 *
 * An inode is freed by whoever drops the last reference.  Between that drop
 * and its removal from the bucket a lookup may still see it: a reference is
 * therefore only taken from a count that is not zero, and an inode at zero
 * counts as absent.  Two inodes of one identity can then be in a bucket for a
 * moment, and removal goes by address.
 *
 * The number of a removed backing object can come back as another object.
 * Birth time and type tell them apart; the older inode is passed over from
 * then on (FS_INODE_STALE) and lives for those who still hold it.
 */

#include "fusefs/inodes.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "fusefs/ops.h"
#include "fusefs/passthrough.h"
#include "fusefs/places.h"
#include "fusefs/watch.h"

#define MIN_BUCKETS 16

_Static_assert(LIMIT_DEVICES <= UINT8_MAX + 1, "an index is a byte");
_Static_assert(sizeof(struct fs_inode) - offsetof(struct fs_inode, tail) ==
		       sizeof(((struct fs_inode *)0)->tail),
	       "a name lies directly behind");

static uint64_t
mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9u;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t
ident_hash(uint32_t dev, uint64_t ino)
{
	return mix(ino + ((uint64_t)dev << 56));
}

int
fs_dev_index(struct fs *fs, unsigned int major, unsigned int minor,
	     uint32_t *ret_index)
{
	dev_t dev = makedev(major, minor);
	unsigned int n = atomic_load(&fs->n_devs);
	int r = 0;

	for (unsigned int i = 0; i < n; i++) {
		if (fs->devs[i] == dev) {
			*ret_index = i;
			return 0;
		}
	}

	pthread_mutex_lock(&fs->dev_lock);
	for (n = 0; n < atomic_load(&fs->n_devs); n++)
		if (fs->devs[n] == dev)
			break;
	if (n == LIMIT_DEVICES) {
		r = -ENOSPC;
	} else {
		fs->devs[n] = dev;
		if (n == atomic_load(&fs->n_devs))
			atomic_store(&fs->n_devs, n + 1);
		*ret_index = n;
	}
	pthread_mutex_unlock(&fs->dev_lock);
	return r;
}

int
fs_ident_of(struct fs *fs, const struct statx *stx, struct fs_ident *ret_ident)
{
	struct fs_ident ident = { .ino = stx->stx_ino,
				  .type = (stx->stx_mode & S_IFMT) >> 12 };
	int r;

	r = fs_dev_index(fs, stx->stx_dev_major, stx->stx_dev_minor,
			 &ident.dev);
	if (r < 0)
		return r;
	if (stx->stx_mask & STATX_BTIME)
		ident.btime = (uint32_t)mix((uint64_t)stx->stx_btime.tv_sec *
						    1000000000u +
					    stx->stx_btime.tv_nsec);
	*ret_ident = ident;
	return 0;
}

bool
fs_ident_is(const struct fs_inode *inode, const struct fs_ident *ident)
{
	return inode->ino == ident->ino && inode->dev == ident->dev &&
	       inode->btime == ident->btime && inode->type == ident->type;
}

bool
fs_inode_is(struct fs *fs, const struct fs_inode *inode,
	    const struct statx *stx)
{
	struct fs_ident ident;

	return fs_ident_of(fs, stx, &ident) == 0 && fs_ident_is(inode, &ident);
}

static struct fs_shard *
shard_for(const struct fs *fs, uint64_t hash)
{
	return &fs->shards[hash >> 58 & (FS_SHARDS - 1)];
}

struct fs_shard *
fs_shard_of(const struct fs *fs, const struct fs_inode *inode)
{
	return shard_for(fs, ident_hash(inode->dev, inode->ino));
}

static struct fs_inode **
bucket_of(const struct fs_shard *shard, uint64_t hash)
{
	return &shard->buckets[hash & (shard->n_buckets - 1)];
}

/* Failure to resize only costs time. */
static void
resize(struct fs_shard *shard, size_t n_buckets)
{
	struct fs_inode **old = shard->buckets, **fresh;
	size_t n_old = shard->n_buckets;

	fresh = calloc(n_buckets, sizeof(struct fs_inode *));
	if (!fresh)
		return;
	shard->buckets = fresh;
	shard->n_buckets = n_buckets;
	for (size_t i = 0; i < n_old; i++) {
		while (old[i]) {
			struct fs_inode *inode = old[i], **head;

			old[i] = inode->next;
			head = bucket_of(shard,
					 ident_hash(inode->dev, inode->ino));
			inode->next = *head;
			*head = inode;
		}
	}
	free(old);
}

static void
table_insert(struct fs_shard *shard, struct fs_inode *inode)
{
	struct fs_inode **head;

	if (shard->count >= shard->n_buckets * FS_PER_BUCKET)
		resize(shard, shard->n_buckets * 2);
	head = bucket_of(shard, ident_hash(inode->dev, inode->ino));
	inode->next = *head;
	*head = inode;
	shard->count++;
}

static void
table_remove(struct fs_shard *shard, struct fs_inode *inode)
{
	struct fs_inode **at;

	at = bucket_of(shard, ident_hash(inode->dev, inode->ino));
	while (*at != inode) {
		assert(*at);
		at = &(*at)->next;
	}
	*at = inode->next;
	shard->count--;
	if (shard->n_buckets > MIN_BUCKETS &&
	    shard->count < shard->n_buckets * FS_PER_BUCKET / 4)
		resize(shard, shard->n_buckets / 2);
}

int
fs_inodes_init(struct fs *fs, size_t max_idle)
{
	int r = fs_places_init(fs);

	if (r < 0)
		return r;
	fs->shards = calloc(FS_SHARDS, sizeof(struct fs_shard));
	if (!fs->shards)
		return -ENOMEM;
	for (size_t i = 0; i < FS_SHARDS; i++) {
		struct fs_shard *shard = &fs->shards[i];

		pthread_mutex_init(&shard->lock, NULL);
		shard->max_idle = max_idle / FS_SHARDS + 1;
		shard->n_buckets = MIN_BUCKETS;
		shard->buckets = calloc(MIN_BUCKETS, sizeof(struct fs_inode *));
		if (!shard->buckets)
			return -ENOMEM;
	}
	return 0;
}

char *
fs_inode_take_name(struct fs_inode *inode)
{
	char *name = take_ptr(&inode->name);

	return name == inode->tail ? NULL : name;
}

static void
free_inode(struct fs_inode *inode)
{
	if (inode->fd >= 0)
		(void)close(inode->fd);
	free(fs_inode_take_name(inode));
	if (fs_inode_is_dir(inode))
		free(fs_dir_of(inode));
	else
		free(inode);
}

/* The connection ended before the kernel closed them. */
static void
drop_handles(struct fs_inode *inode)
{
	while (inode->handles) {
		struct fs_handle *handle = inode->handles;

		inode->handles = handle->next;
		fs_handle_destroy(handle);
	}
}

void
fs_inodes_fini(struct fs *fs)
{
	fs_places_fini(fs);
	if (!fs->shards)
		return;
	for (size_t i = 0; i < FS_SHARDS; i++) {
		struct fs_shard *shard = &fs->shards[i];

		for (size_t b = 0; shard->buckets && b < shard->n_buckets;
		     b++) {
			while (shard->buckets[b]) {
				struct fs_inode *inode = shard->buckets[b];

				shard->buckets[b] = inode->next;
				drop_handles(inode);
				free_inode(inode);
			}
		}
		free(shard->buckets);
		pthread_mutex_destroy(&shard->lock);
	}
	free(fs->shards);
	fs->shards = NULL;
}

struct fs_inode *
fs_inode_ref(struct fs_inode *inode)
{
	atomic_fetch_add(&inode->refs, 1);
	return inode;
}

bool
fs_inode_ref_alive(struct fs_inode *inode)
{
	unsigned int refs = atomic_load(&inode->refs);

	while (refs > 0)
		if (atomic_compare_exchange_weak(&inode->refs, &refs, refs + 1))
			return true;
	return false;
}

void
fs_idle_remove(struct fs_shard *shard, struct fs_inode *inode)
{
	struct fs_dir *dir;

	if (!(inode->flags & FS_INODE_IDLE))
		return;
	dir = fs_dir_of(inode);
	if (dir->idle_prev)
		fs_dir_of(dir->idle_prev)->idle_next = dir->idle_next;
	else
		shard->idle_first = dir->idle_next;
	if (dir->idle_next)
		fs_dir_of(dir->idle_next)->idle_prev = dir->idle_prev;
	else
		shard->idle_last = dir->idle_prev;
	dir->idle_prev = dir->idle_next = NULL;
	inode->flags &= (uint8_t)~FS_INODE_IDLE;
	shard->n_idle--;
}

struct fs_inode *
fs_inode_put(struct fs *fs, struct fs_inode *inode)
{
	while (inode && atomic_fetch_sub(&inode->refs, 1) == 1) {
		struct fs_shard *shard = fs_shard_of(fs, inode);
		struct fs_inode *parent = inode->parent;

		fs_shard_lock(shard);
		fs_idle_remove(shard, inode);
		if (inode->fd >= 0)
			shard->n_fds--;
		table_remove(shard, inode);
		fs_places_remove(fs, inode);
		fs_shard_unlock(shard);

		fs_watch_forget(fs, inode);
		free_inode(inode);
		inode = parent;
	}
	return NULL;
}

static struct fs_inode *
find_locked(struct fs_shard *shard, const struct fs_ident *ident)
{
	struct fs_inode *inode;

	inode = *bucket_of(shard, ident_hash(ident->dev, ident->ino));
	for (; inode; inode = inode->next) {
		if (inode->ino != ident->ino || inode->dev != ident->dev ||
		    (inode->flags & FS_INODE_STALE))
			continue;
		if (!fs_ident_is(inode, ident))
			inode->flags |= FS_INODE_STALE;
		else if (fs_inode_ref_alive(inode))
			return inode;
	}
	return NULL;
}

/* NULL: no memory. */
static struct fs_inode *
new_inode(const struct fs_ident *ident, const char *name)
{
	bool is_dir = ident->type == S_IFDIR >> 12;
	size_t size = is_dir ? offsetof(struct fs_dir, inode) : 0;
	size_t len = name ? strlen(name) + 1 : 0;
	struct fs_inode *inode;
	void *memory;

	size += sizeof(*inode);
	if (len > sizeof(inode->tail))
		size += len - sizeof(inode->tail);
	memory = calloc(1, size);
	if (!memory)
		return NULL;
	inode = is_dir ? &((struct fs_dir *)memory)->inode : memory;
	if (name)
		inode->name = memcpy(inode->tail, name, len);
	inode->ino = ident->ino;
	inode->dev = (uint8_t)ident->dev;
	inode->btime = ident->btime;
	inode->type = ident->type;
	inode->fd = -1;
	atomic_init(&inode->refs, 1);
	return inode;
}

/* Marks of several names add up, as long as they are of one policy. */
static void
apply_marks(struct fs_inode *inode, const struct fs_marks *marks)
{
	const uint8_t mask = FS_INODE_PROTECTED | FS_INODE_HIDDEN;

	if (inode->policy_gen != marks->policy_gen)
		inode->flags &= (uint8_t)~mask;
	inode->flags |= marks->flags & mask;
	inode->policy_gen = marks->policy_gen;
	if (fs_inode_is_dir(inode)) {
		inode->state = marks->state;
		inode->below = marks->below;
	}
}

/*
 * Under the shard lock.  *ret_old: what the caller must put and free.
 * Returns 1 when the place is another one now.
 */
static int
move_locked(struct fs *fs, struct fs_inode *inode, const struct fs_seen *seen,
	    struct fs_inode **ret_old, char **ret_old_name)
{
	struct fs_inode *parent = seen->parent;
	const char *name = seen->name;
	char *copy, *old;

	inode->flags &= (uint8_t)~FS_INODE_PINNED;
	if (!fs_inode_is_dir(inode))
		inode->flags &= (uint8_t)~FS_INODE_ADRIFT;
	if (inode->parent == parent && strcmp(inode->name, name) == 0)
		return 0;
	copy = strdup(name);
	old = inode->name == inode->tail ? strdup(inode->name) : inode->name;
	if (!copy || (inode->name && !old)) {
		if (old != inode->name)
			free(old);
		free(copy);
		return -ENOMEM;
	}
	fs_places_remove(fs, inode);
	*ret_old = inode->parent;
	*ret_old_name = old;
	inode->parent = fs_inode_ref(parent);
	inode->name = copy;
	fs_places_add(fs, inode);
	return 1;
}

static void
count_lookup(struct fs_inode *inode)
{
	if (inode->nlookup == 0)
		atomic_fetch_add(&inode->refs, 1);
	if (inode->nlookup < FS_LOOKUPS_MAX)
		inode->nlookup++;
}

static struct fs_inode *
insert_new(struct fs *fs, struct fs_shard *shard, const struct fs_ident *ident,
	   const struct fs_seen *seen)
{
	struct fs_inode *inode = new_inode(ident, seen->name);

	if (!inode)
		return NULL;
	if (seen->parent)
		inode->parent = fs_inode_ref(seen->parent);
	table_insert(shard, inode);
	fs_places_add(fs, inode);
	return inode;
}

int
fs_inode_upsert(struct fs *fs, const struct fs_ident *ident,
		const struct fs_seen *seen, struct fs_inode **ret_inode)
{
	struct fs_shard *shard =
		shard_for(fs, ident_hash(ident->dev, ident->ino));
	struct fs_inode *inode, *old_parent = NULL;
	char *old_name = NULL;
	int r = 0;

	fs_shard_lock(shard);
	inode = find_locked(shard, ident);
	if (!inode) {
		inode = insert_new(fs, shard, ident, seen);
		r = inode ? 0 : -ENOMEM;
	} else if (seen->parent) {
		if (inode->flags & FS_INODE_ROOT)
			r = -ELOOP;
		else
			r = move_locked(fs, inode, seen, &old_parent,
					&old_name);
	}
	if (r >= 0) {
		if (seen->marks)
			apply_marks(inode, seen->marks);
		if (seen->counted)
			count_lookup(inode);
	}
	fs_shard_unlock(shard);

	if (r > 0 && fs_inode_is_dir(inode))
		fs_place_unring(fs, inode, seen->parent);
	/* What the kernel has by another name than the place is not vouched. */
	if (old_parent && seen->counted)
		fs_notify_doubt(fs, old_parent, old_name, inode);
	fs_inode_put(fs, old_parent);
	free(old_name);
	if (r < 0) {
		fs_inode_put(fs, inode);
		return r;
	}
	*ret_inode = inode;
	return 0;
}

struct fs_inode *
fs_inode_find(struct fs *fs, const struct fs_ident *ident)
{
	struct fs_shard *shard =
		shard_for(fs, ident_hash(ident->dev, ident->ino));
	struct fs_inode *inode;

	fs_shard_lock(shard);
	inode = find_locked(shard, ident);
	fs_shard_unlock(shard);
	return inode;
}

size_t
fs_inodes_numbered(struct fs *fs, uint32_t dev, uint64_t ino,
		   struct fs_inode *ret_found[], size_t max)
{
	uint64_t hash = ident_hash(dev, ino);
	struct fs_shard *shard = shard_for(fs, hash);
	struct fs_inode *inode;
	size_t n = 0;

	fs_shard_lock(shard);
	for (inode = *bucket_of(shard, hash); inode && n < max;
	     inode = inode->next)
		if (inode->ino == ino && inode->dev == dev &&
		    fs_inode_ref_alive(inode))
			ret_found[n++] = inode;
	fs_shard_unlock(shard);
	return n;
}

void
fs_inode_count_lookup(struct fs *fs, struct fs_inode *inode)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);

	fs_shard_lock(shard);
	count_lookup(inode);
	fs_shard_unlock(shard);
}

void
fs_inode_forget(struct fs *fs, struct fs_inode *inode, uint64_t n)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	bool last;

	fs_shard_lock(shard);
	/* What was counted no further stays, as long as the mount. */
	if (inode->nlookup == FS_LOOKUPS_MAX)
		n = 0;
	/* A count that the kernel gets wrong must not wrap. */
	last = inode->nlookup > 0 && inode->nlookup <= n;
	inode->nlookup = inode->nlookup > n ? inode->nlookup - (uint32_t)n : 0;
	fs_shard_unlock(shard);
	if (last)
		fs_inode_put(fs, inode);
}

int
fs_inode_set_place(struct fs *fs, struct fs_inode *inode,
		   struct fs_inode *parent, const char *name)
{
	const struct fs_seen seen = { .parent = parent, .name = name };
	struct fs_shard *shard = fs_shard_of(fs, inode);
	struct fs_inode *old_parent = NULL;
	char *old_name = NULL;
	int r;

	if (inode->flags & FS_INODE_ROOT)
		return -ELOOP;
	fs_shard_lock(shard);
	r = move_locked(fs, inode, &seen, &old_parent, &old_name);
	fs_shard_unlock(shard);
	if (r > 0 && fs_inode_is_dir(inode))
		fs_place_unring(fs, inode, parent);
	fs_inode_put(fs, old_parent);
	free(old_name);
	return r < 0 ? r : 0;
}

void
fs_inode_set_marks(struct fs *fs, struct fs_inode *inode,
		   const struct fs_marks *marks)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);

	fs_shard_lock(shard);
	apply_marks(inode, marks);
	fs_shard_unlock(shard);
}

bool
fs_inode_pin(struct fs *fs, struct fs_inode *inode, int fd)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	bool is_new;

	fs_shard_lock(shard);
	if (inode->fd < 0) {
		inode->fd = take_fd(&fd);
		shard->n_fds++;
	}
	fs_idle_remove(shard, inode);
	is_new = !(inode->flags & FS_INODE_PINNED);
	inode->flags |= FS_INODE_PINNED;
	fs_shard_unlock(shard);
	closep(&fd);
	return is_new;
}

void
fs_inode_unpin(struct fs *fs, struct fs_inode *inode)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	int fd = -1;

	fs_shard_lock(shard);
	inode->flags &= (uint8_t)~FS_INODE_PINNED;
	if (inode->fd_users == 0 && inode->fd >= 0) {
		fs_idle_remove(shard, inode);
		fd = take_fd(&inode->fd);
		shard->n_fds--;
	}
	fs_shard_unlock(shard);
	closep(&fd);
}

static void
set_flag(struct fs *fs, struct fs_inode *inode, uint8_t flag)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);

	if (inode->flags & flag)
		return;
	fs_shard_lock(shard);
	inode->flags |= flag;
	fs_shard_unlock(shard);
}

void
fs_inode_set_locked(struct fs *fs, struct fs_inode *inode)
{
	set_flag(fs, inode, FS_INODE_LOCKED);
}

void
fs_inode_set_stale(struct fs *fs, struct fs_inode *inode)
{
	set_flag(fs, inode, FS_INODE_STALE);
}

/* By a mapping, say, without a request that would tell. */
static bool
writes_unseen(const struct fs_handle *handle)
{
	return handle->backing && (handle->flags & O_ACCMODE) == O_RDWR;
}

void
fs_inode_add_handle(struct fs *fs, struct fs_handle *handle)
{
	struct fs_inode *inode = handle->inode;
	struct fs_shard *shard = fs_shard_of(fs, inode);
	struct fs_backing *surplus = NULL;

	fs_shard_lock(shard);
	/* What is open already decides, and the guard's own is never passed. */
	if (inode->handles && !handle->small &&
	    handle->backing != inode->handles->backing) {
		surplus = handle->backing;
		handle->backing = fs_backing_ref(inode->handles->backing);
	}
	handle->next = inode->handles;
	handle->link = &inode->handles;
	if (handle->next)
		handle->next->link = &handle->next;
	inode->handles = handle;
	if (writes_unseen(handle))
		atomic_fetch_add(&inode->maps, 1);
	fs_shard_unlock(shard);
	fs_backing_put(fs, surplus);
}

void
fs_inode_remove_handle(struct fs *fs, struct fs_handle *handle)
{
	struct fs_shard *shard = fs_shard_of(fs, handle->inode);

	fs_shard_lock(shard);
	if (handle->link) {
		*handle->link = handle->next;
		if (handle->next)
			handle->next->link = handle->link;
		handle->link = NULL;
		if (writes_unseen(handle))
			atomic_fetch_sub(&handle->inode->maps, 1);
	}
	fs_shard_unlock(shard);
}
