/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_WATCH_MAP_H
#define FUSEFS_WATCH_MAP_H

/*
 * From a watch's key to the directories that it is for: usually one, more when
 * an inode that is passed over (FS_INODE_STALE) lives beside its successor.
 *
 * Open addressing, 16 bytes a slot, by the key's lower half, which the inode
 * remembers (watch_key) so that it can be found without its upper one.
 *
 * Thread: the caller's lock.
 */

#include "fusefs/fs_priv.h"

struct watch_map {
	struct watch_slot *slots; /* n_slots, a power of two; or NULL */
	size_t n_slots, count;
};

int watch_map_add(struct watch_map *map, uint64_t key, struct fs_inode *inode);
/* False when it is not there; else the key that it was under. */
bool watch_map_remove(struct watch_map *map, uint32_t low_key,
		      const struct fs_inode *inode, uint64_t *ret_key);
/* At most `max`; not referenced. */
size_t watch_map_find(const struct watch_map *map, uint64_t key,
		      struct fs_inode *ret_found[], size_t max);
void watch_map_fini(struct watch_map *map);

#endif
