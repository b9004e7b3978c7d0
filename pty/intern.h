/* SPDX-License-Identifier: MIT */
#ifndef PTY_INTERN_H
#define PTY_INTERN_H

/*
 * Small byte strings kept once, named by numbers: styles, clusters of
 * characters, links.  0 is no string and never given out.  A cell holds the
 * number; nobody counts references.  When the table is full its owner marks
 * what is still in use and sweeps; numbers in use stay.
 *
 * A zeroed struct with `max` set is an empty table and holds no memory.
 * Thread: the owner's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern_entry {
	uint32_t at; /* in the arena */
	uint32_t len;
	uint32_t hash;
	bool used;
	bool marked;
};

struct intern {
	uint32_t max;	  /* numbers 1..max are given out */
	size_t bytes_max; /* of all strings; 0: no such limit */
	uint64_t seed;	  /* so that nobody can aim at one slot */
	uint32_t count;	  /* entries ever used, entry 0 included */
	uint32_t live;
	uint32_t room;
	uint32_t free; /* a number to use again, chained by `at` */
	struct intern_entry *entries;
	uint32_t *slots; /* open addressing; a power of two */
	uint32_t slot_count;
	unsigned char *arena;
	size_t arena_len, arena_room;
};

/* The number of a string of 1 byte or more; 0 when it is full, or -ENOMEM. */
uint32_t intern_put(struct intern *t, const void *bytes, uint32_t len);

/* Borrowed until the next put or sweep. */
const void *intern_peek(const struct intern *t, uint32_t id, uint32_t *ret_len);

void intern_mark(struct intern *t, uint32_t id);
/* Is the number in use? */
bool intern_has(const struct intern *t, uint32_t id);
/* Forgets what is not marked, and all marks. */
void intern_sweep(struct intern *t);

void intern_fini(struct intern *t);

#endif
