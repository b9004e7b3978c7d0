/* SPDX-License-Identifier: MIT */
#ifndef POLICY_SPOOL_H
#define POLICY_SPOOL_H

/*
 * The spool file of one world: a ring of denial records in a preallocated,
 * shared mapping.
 *
 * Positions are stream offsets (bytes ever appended before), reduced to a place
 * in the ring only when memory is touched; [tail, head) are the records that
 * count.  A record is written whole and then published by one store of `head`,
 * so kill -9 at any instruction leaves either the record or nothing of it.
 * Count and time of the last hit are the only parts that change afterwards,
 * each by one aligned store.
 *
 * A reader trusts nothing: after a power failure pages of different age may lie
 * side by side.  Every record carries a hash of its unchanging part, keyed by a
 * secret of the file, so that a torn record is dropped, and bytes of an inmate's
 * path that look like a record are none.
 *
 * Thread: the caller serialises; only spool_read() of records that the caller
 * knows to stay may run beside spool_append().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/errmsg.h"
#include "policy/denial.h"

/* No record is smaller: bounds how many a spool can hold at once. */
#define SPOOL_RECORD_MIN 160u

/* What is longer is cut: no kernel interface takes such a path. */
#define SPOOL_TEXT_MAX 65535u

/* Longest name of a session. */
#define SPOOL_NAME_MAX 1024u

struct spool;

/*
 * Makes `dir`/denials.spool (LIMIT_SPOOL_BYTES, all of it allocated) and holds
 * its lock until spool_free().  The file appears under its name complete and
 * locked.  Errors, with a sentence: -ENOSPC, -EBUSY (a living one is there),
 * -EEXIST (a dead one is there: import it first), -EINVAL (names too long),
 * and what the system says.
 */
int spool_create(const char *dir, const char *session, const char *world,
		 struct spool **ret_spool, struct errmsg *why);

/*
 * Opens what a dead warden left, without changing it, and takes its lock.
 * -ENOENT: none there; -EBUSY: its warden lives; -EBADMSG: it is not a spool.
 */
int spool_open_orphan(const char *dir, struct spool **ret_spool,
		      struct errmsg *why);

/* Unmaps and unlocks; the file stays.  Returns NULL. */
struct spool *spool_free(struct spool *spool);
DEFINE_CLEANUP(spool)

/* Removes the file's name from `dir`, while the lock is held. */
void spool_unlink(struct spool *spool);

/* Puts a damaged file aside as denials.spool.bad, for a person to look at. */
void spool_put_aside(const char *dir);

const char *spool_session(const struct spool *spool);
const char *spool_world(const struct spool *spool);

/*
 * Appends a record; seq, times and count are taken from `denial`.  On success
 * it is published and *ret_offset is where it is.  -ENOSPC: no room; the
 * file's own counter of lost records grows by one.
 */
int spool_append(struct spool *spool, const struct denial *denial,
		 uint64_t *ret_offset);

/* Bytes between tail and head, and the size of the ring. */
uint64_t spool_used(const struct spool *spool);
uint64_t spool_capacity(const struct spool *spool);

/* The stream offset of what comes next. */
uint64_t spool_end(const struct spool *spool);

/*
 * How many records found no room, and how many of them the store has not been
 * told of yet; spool_tell_lost() notes that it now knows `lost` in all.
 */
uint64_t spool_lost(const struct spool *spool);
uint64_t spool_lost_untold(const struct spool *spool);
void spool_tell_lost(struct spool *spool, uint64_t lost);

/*
 * The record at `offset`, which spool_append() returned and spool_release() has
 * not passed; strings point into the mapping.
 */
void spool_read(const struct spool *spool, uint64_t offset,
		struct denial *ret_denial);

/* True if the record at `offset` is of the same run as `denial`. */
bool spool_same(const struct spool *spool, uint64_t offset,
		const struct denial *denial);

/* Another hit of the record's run.  Returns the new count. */
uint64_t spool_hit(struct spool *spool, uint64_t offset, int64_t last_ns);

/* Gives the room of all records up to and including this one back. */
void spool_release(struct spool *spool, uint64_t offset);

/*
 * Calls `each` for every sound record of an orphan, oldest first, until it
 * returns non-zero, which is then returned.  Strings are valid for the call.
 */
int spool_each(const struct spool *spool,
	       int (*each)(const struct denial *denial, void *data),
	       void *data);

#endif
