/* SPDX-License-Identifier: MIT */

/*
 * Walks over places: from an inode to its parents, to every inode, and from
 * an inode to the path that the inmate would spell.
 *
 * A place is what was last seen and may be out of date: the host moves things
 * without telling.  Two such places could even form a ring, whose inodes would
 * keep each other; so a directory's new place is followed upwards, and what
 * leads back to it is forgotten.  Two threads may each close half of a ring,
 * and each follows after it has placed, so that the later one finds it.  Climbs
 * are bounded all the same.
 */

#include "fusefs/inodes.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "fusefs/places.h"

/* Deeper than any tree that a path of PATH_MAX bytes reaches. */
#define CHAIN_MAX 16384

int
fs_inode_place(struct fs *fs, struct fs_inode *inode,
	       struct fs_inode **ret_parent, char name[NAME_MAX + 1])
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	int r = -ESTALE;

	fs_shard_lock(shard);
	if (inode->parent) {
		*ret_parent = fs_inode_ref(inode->parent);
		memcpy(name, inode->name, strlen(inode->name) + 1);
		r = 0;
	}
	fs_shard_unlock(shard);
	return r;
}

static int
chain_room(struct fs_chain *chain)
{
	size_t room = chain->room ? chain->room * 2 : 16;
	struct fs_link *links;

	if (chain->count < chain->room)
		return 0;
	if (chain->count >= CHAIN_MAX)
		return -ELOOP;
	links = realloc(chain->links, room * sizeof(*links));
	if (!links)
		return -ENOMEM;
	chain->links = links;
	chain->room = room;
	return 0;
}

/* Appends `inode`, a reference that is taken over even on failure. */
static int
chain_push(struct fs_chain *chain, struct fs_inode *inode, fs_chain_stop *stop,
	   unsigned int arg, struct fs_inode **ret_parent)
{
	struct fs_shard *shard = fs_shard_of(chain->fs, inode);
	struct fs_link *link;
	int r;

	r = chain_room(chain);
	if (r < 0) {
		fs_inode_put(chain->fs, inode);
		return r;
	}
	link = &chain->links[chain->count++];
	*link = (struct fs_link){ .inode = inode };
	*ret_parent = NULL;

	fs_shard_lock(shard);
	if (inode->name) {
		link->name = strdup(inode->name);
		r = link->name ? 0 : -ENOMEM;
	}
	chain->stopped = stop && stop(inode, arg);
	if (r == 0 && inode->parent && !chain->stopped)
		*ret_parent = fs_inode_ref(inode->parent);
	fs_shard_unlock(shard);
	return r;
}

int
fs_chain_climb(struct fs *fs, struct fs_inode *inode, fs_chain_stop *stop,
	       unsigned int arg, struct fs_chain *ret_chain)
{
	struct fs_chain chain = { .fs = fs };
	int r = 0;

	inode = fs_inode_ref(inode);
	while (inode && r == 0) {
		struct fs_inode *parent = NULL;

		r = chain_push(&chain, inode, stop, arg, &parent);
		if (r == 0 && !parent && !(inode->flags & FS_INODE_ROOT) &&
		    !chain.stopped)
			r = -ESTALE;
		inode = parent;
	}
	if (r < 0) {
		fs_chain_fini(&chain);
		return r;
	}
	*ret_chain = chain;
	return 0;
}

/* Forgets the place if it is in `parent`; else *ret_parent is where it is. */
static bool
forget_place_in(struct fs *fs, struct fs_inode *inode,
		const struct fs_inode *parent, struct fs_inode **ret_parent)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	struct fs_inode *old = NULL;
	char *name = NULL;
	bool forgotten;

	*ret_parent = NULL;
	fs_shard_lock(shard);
	if (inode->parent && inode->parent == parent) {
		fs_places_remove(fs, inode);
		old = take_ptr(&inode->parent);
		name = fs_inode_take_name(inode);
	} else if (inode->parent) {
		*ret_parent = fs_inode_ref(inode->parent);
	}
	fs_shard_unlock(shard);
	forgotten = old;
	free(name);
	fs_inode_put(fs, old);
	return forgotten;
}

void
fs_place_unring(struct fs *fs, struct fs_inode *inode, struct fs_inode *parent)
{
	struct fs_inode *at = fs_inode_ref(parent);

	for (int i = 0; at && i < CHAIN_MAX; i++) {
		struct fs_inode *up = NULL;

		if (at != inode && forget_place_in(fs, at, inode, &up))
			up = NULL;
		fs_inode_put(fs, at);
		at = up;
	}
	fs_inode_put(fs, at);
}

void
fs_place_disown(struct fs *fs, const struct fs_inode *dir, const char *name)
{
	struct fs_inode *found[16];
	size_t n = fs_places_find(fs, dir, name, found, 16);

	for (size_t i = 0; i < n; i++) {
		if (fs_inode_is_dir(found[i]))
			fs_inode_set_stale(fs, found[i]);
		fs_inode_put(fs, found[i]);
	}
}

void
fs_chain_fini(struct fs_chain *chain)
{
	for (size_t i = 0; i < chain->count; i++) {
		fs_inode_put(chain->fs, chain->links[i].inode);
		free(chain->links[i].name);
	}
	free(chain->links);
	*chain = (struct fs_chain){ 0 };
}

int
fs_inode_path(struct fs *fs, struct fs_inode *inode, const char *name,
	      char **ret_path)
{
	_cleanup_(fs_chain_fini) struct fs_chain chain = { 0 };
	struct buf path = { 0 };
	const char *root;
	int r;

	r = fs_chain_climb(fs, inode, NULL, 0, &chain);
	if (r < 0)
		return r;

	assert(chain.count > 0);
	root = fs->config.policy
		       ->roots[chain.links[chain.count - 1].inode->root]
		       .path;
	buf_puts(&path, strcmp(root, "/") == 0 ? "" : root);
	for (size_t i = chain.count - 1; i-- > 0;) {
		buf_puts(&path, "/");
		buf_puts(&path, chain.links[i].name);
	}
	if (name) {
		buf_puts(&path, "/");
		buf_puts(&path, name);
	} else if (path.len == 0) {
		buf_puts(&path, "/");
	}
	buf_put(&path, "", 1);
	if (buf_error(&path) < 0) {
		buf_fini(&path);
		return -ENOMEM;
	}
	*ret_path = (char *)path.data;
	return 0;
}

/* References the inodes of a shard that the kernel knows. */
static int
take_batch(struct fs_shard *shard, struct fs_inode ***ret_batch, size_t *ret_n)
{
	struct fs_inode **batch;
	size_t n = 0;

	fs_shard_lock(shard);
	batch = calloc(shard->count + 1, sizeof(struct fs_inode *));
	for (size_t b = 0; batch && b < shard->n_buckets; b++) {
		struct fs_inode *inode = shard->buckets[b];

		/* nlookup > 0 implies a reference: it is not being freed. */
		for (; inode; inode = inode->next)
			if (inode->nlookup > 0)
				batch[n++] = fs_inode_ref(inode);
	}
	fs_shard_unlock(shard);
	if (!batch)
		return -ENOMEM;
	*ret_batch = batch;
	*ret_n = n;
	return 0;
}

int
fs_inodes_each(struct fs *fs,
	       void (*visit)(struct fs *fs, struct fs_inode *inode, void *data),
	       void *data)
{
	for (size_t s = 0; s < FS_SHARDS; s++) {
		_cleanup_(freep) struct fs_inode **batch = NULL;
		size_t n = 0;
		int r;

		r = take_batch(&fs->shards[s], &batch, &n);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++) {
			visit(fs, batch[i], data);
			fs_inode_put(fs, batch[i]);
		}
	}
	return 0;
}
