/* SPDX-License-Identifier: MIT */

#include "fusefs/watch_map.h"

#define MIN_SLOTS 64

struct watch_slot {
	uint64_t key;
	struct fs_inode *inode; /* NULL: free */
};

static size_t
home_of(const struct watch_map *map, uint64_t key)
{
	uint32_t hash = (uint32_t)key * 0x9e3779b1u;

	return (hash ^ hash >> 15) & (map->n_slots - 1);
}

static void
put(struct watch_map *map, const struct watch_slot *slot)
{
	size_t at = home_of(map, slot->key);

	while (map->slots[at].inode)
		at = (at + 1) & (map->n_slots - 1);
	map->slots[at] = *slot;
}

static int
resize(struct watch_map *map, size_t n_slots)
{
	struct watch_map fresh = { .n_slots = n_slots, .count = map->count };

	fresh.slots = calloc(n_slots, sizeof(*fresh.slots));
	if (!fresh.slots)
		return -ENOMEM;
	for (size_t i = 0; i < map->n_slots; i++)
		if (map->slots[i].inode)
			put(&fresh, &map->slots[i]);
	free(map->slots);
	*map = fresh;
	return 0;
}

int
watch_map_add(struct watch_map *map, uint64_t key, struct fs_inode *inode)
{
	const struct watch_slot slot = { .key = key, .inode = inode };
	int r = 0;

	if ((map->count + 1) * 4 > map->n_slots * 3)
		r = resize(map, map->n_slots ? map->n_slots * 2 : MIN_SLOTS);
	if (r < 0)
		return r;
	put(map, &slot);
	map->count++;
	return 0;
}

/* Moves what was pushed on by the slot that is free now. */
static void
close_gap(struct watch_map *map, size_t gap)
{
	size_t mask = map->n_slots - 1;

	for (size_t at = (gap + 1) & mask; map->slots[at].inode;
	     at = (at + 1) & mask) {
		size_t home = home_of(map, map->slots[at].key);

		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		map->slots[gap] = map->slots[at];
		gap = at;
	}
	map->slots[gap].inode = NULL;
}

bool
watch_map_remove(struct watch_map *map, uint32_t low_key,
		 const struct fs_inode *inode, uint64_t *ret_key)
{
	size_t at;

	if (!map->slots)
		return false;
	at = home_of(map, low_key);
	while (map->slots[at].inode && map->slots[at].inode != inode)
		at = (at + 1) & (map->n_slots - 1);
	if (!map->slots[at].inode)
		return false;
	*ret_key = map->slots[at].key;
	close_gap(map, at);
	map->count--;
	if (map->n_slots > MIN_SLOTS && map->count * 8 < map->n_slots)
		(void)resize(map, map->n_slots / 2);
	return true;
}

size_t
watch_map_find(const struct watch_map *map, uint64_t key,
	       struct fs_inode *ret_found[], size_t max)
{
	size_t n = 0;

	if (!map->slots)
		return 0;
	for (size_t at = home_of(map, key); map->slots[at].inode && n < max;
	     at = (at + 1) & (map->n_slots - 1))
		if (map->slots[at].key == key)
			ret_found[n++] = map->slots[at].inode;
	return n;
}

void
watch_map_fini(struct watch_map *map)
{
	free(map->slots);
	*map = (struct watch_map){ 0 };
}
