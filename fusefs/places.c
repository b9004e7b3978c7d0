/* SPDX-License-Identifier: MIT */

#include "fusefs/places.h"

#include <assert.h>
#include <string.h>

#include "fusefs/inodes.h"

#define PLACES_SHARDS 64
#define MIN_BUCKETS   16

struct shard {
	pthread_mutex_t lock;
	struct fs_inode **buckets; /* n_buckets, a power of two */
	size_t n_buckets, count;
};

struct fs_places {
	struct shard shards[PLACES_SHARDS];
};

static uint64_t
place_hash(const struct fs_inode *parent, const char *name)
{
	uint64_t hash = (uint64_t)(uintptr_t)parent * 0x9e3779b97f4a7c15u;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3u;
	hash ^= hash >> 29;
	return hash * 0xbf58476d1ce4e5b9u;
}

static struct shard *
shard_for(const struct fs *fs, uint64_t hash)
{
	return &fs->places->shards[hash >> 58 & (PLACES_SHARDS - 1)];
}

static struct fs_inode **
bucket_of(const struct shard *shard, uint64_t hash)
{
	return &shard->buckets[hash >> 20 & (shard->n_buckets - 1)];
}

int
fs_places_init(struct fs *fs)
{
	struct fs_places *places = calloc(1, sizeof(*places));

	if (!places)
		return -ENOMEM;
	fs->places = places;
	for (size_t i = 0; i < PLACES_SHARDS; i++) {
		struct shard *shard = &places->shards[i];

		pthread_mutex_init(&shard->lock, NULL);
		shard->buckets = calloc(MIN_BUCKETS, sizeof(struct fs_inode *));
		if (!shard->buckets)
			return -ENOMEM;
		shard->n_buckets = MIN_BUCKETS;
	}
	return 0;
}

void
fs_places_fini(struct fs *fs)
{
	if (!fs->places)
		return;
	for (size_t i = 0; i < PLACES_SHARDS; i++) {
		free(fs->places->shards[i].buckets);
		pthread_mutex_destroy(&fs->places->shards[i].lock);
	}
	free(fs->places);
	fs->places = NULL;
}

size_t
fs_places_bytes(struct fs *fs)
{
	size_t n = 0;

	for (size_t i = 0; i < PLACES_SHARDS; i++) {
		struct shard *shard = &fs->places->shards[i];

		pthread_mutex_lock(&shard->lock);
		n += shard->n_buckets;
		pthread_mutex_unlock(&shard->lock);
	}
	return n * sizeof(struct fs_inode *);
}

/* Failure to resize only costs time. */
static void
resize(struct shard *shard, size_t n_buckets)
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

			old[i] = inode->place_next;
			head = bucket_of(
				shard, place_hash(inode->parent, inode->name));
			inode->place_next = *head;
			*head = inode;
		}
	}
	free(old);
}

void
fs_places_add(struct fs *fs, struct fs_inode *inode)
{
	struct fs_inode **head;
	struct shard *shard;
	uint64_t hash;

	if (!inode->parent)
		return;
	hash = place_hash(inode->parent, inode->name);
	shard = shard_for(fs, hash);
	pthread_mutex_lock(&shard->lock);
	if (shard->count >= shard->n_buckets * FS_PER_BUCKET)
		resize(shard, shard->n_buckets * 2);
	head = bucket_of(shard, hash);
	inode->place_next = *head;
	*head = inode;
	shard->count++;
	pthread_mutex_unlock(&shard->lock);
}

void
fs_places_remove(struct fs *fs, struct fs_inode *inode)
{
	struct fs_inode **at;
	struct shard *shard;
	uint64_t hash;

	if (!inode->parent)
		return;
	hash = place_hash(inode->parent, inode->name);
	shard = shard_for(fs, hash);
	pthread_mutex_lock(&shard->lock);
	at = bucket_of(shard, hash);
	while (*at != inode) {
		assert(*at);
		at = &(*at)->place_next;
	}
	*at = inode->place_next;
	inode->place_next = NULL;
	shard->count--;
	if (shard->n_buckets > MIN_BUCKETS &&
	    shard->count < shard->n_buckets * FS_PER_BUCKET / 4)
		resize(shard, shard->n_buckets / 2);
	pthread_mutex_unlock(&shard->lock);
}

size_t
fs_places_find(struct fs *fs, const struct fs_inode *parent, const char *name,
	       struct fs_inode *ret_found[], size_t max)
{
	uint64_t hash = place_hash(parent, name);
	struct shard *shard = shard_for(fs, hash);
	struct fs_inode *inode;
	size_t n = 0;

	pthread_mutex_lock(&shard->lock);
	inode = *bucket_of(shard, hash);
	for (; inode && n < max; inode = inode->place_next)
		if (inode->parent == parent && strcmp(inode->name, name) == 0 &&
		    fs_inode_ref_alive(inode))
			ret_found[n++] = inode;
	pthread_mutex_unlock(&shard->lock);
	return n;
}
