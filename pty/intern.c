/* SPDX-License-Identifier: MIT */

/*
 * Entries never move, so numbers stay; strings lie one after the other in an
 * arena that a sweep packs.  Slots hold numbers and are built anew after a
 * sweep, which is why nothing is ever taken out of them one by one.
 */

#include "pty/intern.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static uint64_t
mix(uint64_t a, uint64_t b)
{
	__extension__ unsigned __int128 product =
		(unsigned __int128)a * (b ^ 0x9e3779b97f4a7c15U);

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint32_t
hash_bytes(uint64_t seed, const unsigned char *bytes, uint32_t len)
{
	uint64_t h = seed ^ 0x2545f4914f6cdd1dU ^ len, word;

	for (; len >= sizeof(word);
	     bytes += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, bytes, sizeof(word));
		h = mix(h ^ word, 0xd6e8feb86659fd93U);
	}
	if (len > 0) {
		word = 0;
		memcpy(&word, bytes, len);
		h = mix(h ^ word, 0xa0761d6478bd642fU);
	}
	return (uint32_t)(h ^ (h >> 32));
}

static bool
is_entry(const struct intern *t, uint32_t id, uint32_t hash, const void *bytes,
	 uint32_t len)
{
	const struct intern_entry *e = &t->entries[id];

	return e->hash == hash && e->len == len &&
	       memcmp(t->arena + e->at, bytes, len) == 0;
}

static void
put_slot(struct intern *t, uint32_t id)
{
	uint32_t at = t->entries[id].hash & (t->slot_count - 1);

	while (t->slots[at] != 0)
		at = (at + 1) & (t->slot_count - 1);
	t->slots[at] = id;
}

static bool
grow_slots(struct intern *t)
{
	uint32_t count = t->slot_count ? 2 * t->slot_count : 32;
	uint32_t *slots = calloc(count, sizeof(*slots));

	if (!slots)
		return false;
	free(t->slots);
	t->slots = slots;
	t->slot_count = count;
	for (uint32_t id = 1; id < t->count; id++)
		if (t->entries[id].used)
			put_slot(t, id);
	return true;
}

static bool
grow_entries(struct intern *t)
{
	uint32_t room = t->room ? 2 * t->room : 16;
	struct intern_entry *entries =
		realloc(t->entries, room * sizeof(*entries));

	if (!entries)
		return false;
	t->entries = entries;
	t->room = room;
	if (t->count == 0) {
		t->entries[0] = (struct intern_entry){ 0 };
		t->count = 1;
	}
	return true;
}

static bool
make_room(struct intern *t, uint32_t len)
{
	if (t->live >= t->max ||
	    (t->bytes_max && t->arena_len + len > t->bytes_max) ||
	    t->arena_len + len > UINT32_MAX)
		return false;
	if (!t->free && t->count >= t->room && !grow_entries(t))
		return false;
	if (2 * (t->live + 1) > t->slot_count && !grow_slots(t))
		return false;
	if (t->arena_len + len > t->arena_room) {
		size_t room = t->arena_room ? 2 * t->arena_room : 256;
		unsigned char *arena;

		while (room < t->arena_len + len)
			room *= 2;
		arena = realloc(t->arena, room);
		if (!arena)
			return false;
		t->arena = arena;
		t->arena_room = room;
	}
	return true;
}

uint32_t
intern_put(struct intern *t, const void *bytes, uint32_t len)
{
	uint32_t hash = hash_bytes(t->seed, bytes, len), at, id;
	struct intern_entry *e;

	assert(len > 0);

	if (t->slot_count > 0) {
		at = hash & (t->slot_count - 1);
		for (; (id = t->slots[at]) != 0;
		     at = (at + 1) & (t->slot_count - 1))
			if (is_entry(t, id, hash, bytes, len))
				return id;
	}
	if (!make_room(t, len))
		return 0;

	id = t->free;
	if (id)
		t->free = t->entries[id].at;
	else
		id = t->count++;
	e = &t->entries[id];
	*e = (struct intern_entry){ .at = (uint32_t)t->arena_len,
				    .len = len,
				    .hash = hash,
				    .used = true };
	memcpy(t->arena + t->arena_len, bytes, len);
	t->arena_len += len;
	t->live++;
	put_slot(t, id);
	return id;
}

bool
intern_has(const struct intern *t, uint32_t id)
{
	return id > 0 && id < t->count && t->entries[id].used;
}

const void *
intern_peek(const struct intern *t, uint32_t id, uint32_t *ret_len)
{
	assert(intern_has(t, id));
	if (ret_len)
		*ret_len = t->entries[id].len;
	return t->arena + t->entries[id].at;
}

void
intern_mark(struct intern *t, uint32_t id)
{
	if (intern_has(t, id))
		t->entries[id].marked = true;
}

/* Into a fresh arena: entries are not in the order of their strings. */
static bool
pack_arena(struct intern *t)
{
	size_t len = 0;
	unsigned char *arena;

	for (uint32_t id = 1; id < t->count; id++)
		if (t->entries[id].used)
			len += t->entries[id].len;
	arena = malloc(len ? len : 1);
	if (!arena)
		return false;
	t->arena_room = len;
	len = 0;
	for (uint32_t id = 1; id < t->count; id++) {
		struct intern_entry *e = &t->entries[id];

		if (!e->used)
			continue;
		memcpy(arena + len, t->arena + e->at, e->len);
		e->at = (uint32_t)len;
		len += e->len;
	}
	free(t->arena);
	t->arena = arena;
	t->arena_len = len;
	return true;
}

void
intern_sweep(struct intern *t)
{
	if (t->slot_count == 0)
		return;
	for (uint32_t id = 1; id < t->count; id++) {
		struct intern_entry *e = &t->entries[id];

		if (e->used && !e->marked) {
			e->used = false;
			e->at = t->free;
			t->free = id;
			t->live--;
		}
		e->marked = false;
	}
	memset(t->slots, 0, t->slot_count * sizeof(*t->slots));
	for (uint32_t id = 1; id < t->count; id++)
		if (t->entries[id].used)
			put_slot(t, id);
	(void)pack_arena(t);
}

void
intern_fini(struct intern *t)
{
	free(t->entries);
	free(t->slots);
	free(t->arena);
	*t = (struct intern){ .max = t->max, .bytes_max = t->bytes_max };
}
