/* SPDX-License-Identifier: MIT */
#ifndef POLICY_SPOOL_PRIV_H
#define POLICY_SPOOL_PRIV_H

/*
 * The bytes of a spool file.  Native byte order: a spool is read on the machine
 * that wrote it, and another's fails by its magic.
 */

#include <stddef.h>
#include <stdint.h>

#include "policy/spool.h"

#define SPOOL_MAGIC	   0x31304c4f4f505350ull /* "PSPOOL01" */
#define SPOOL_RECORD_MAGIC 0x52504c44u		 /* "DLPR" */
#define SPOOL_FILLER_MAGIC 0x46504c44u		 /* skip to the ring's start */
#define SPOOL_HEADER	   4096u

struct spool_header {
	uint64_t magic;
	uint64_t size; /* of the file */
	uint64_t key;  /* of the hashes; random */
	uint64_t head; /* stream offsets; atomic */
	uint64_t tail;
	uint64_t lost;
	uint64_t lost_told; /* of them in the store */
	char world[SPOOL_NAME_MAX];
	char session[SPOOL_NAME_MAX];
};

/* The texts of a record, in the order in which they are stored. */
#define SPOOL_TEXTS(X) \
	X(origin)      \
	X(call)        \
	X(rule)        \
	X(path)        \
	X(path2)       \
	X(comm)        \
	X(exe)         \
	X(remedy_text)

enum spool_text {
#define X(field) SPOOL_TEXT_##field,
	SPOOL_TEXTS(X)
#undef X
	SPOOL_TEXT_COUNT
};

#define SPOOL_TEXT_ABSENT UINT32_MAX

/*
 * One record, 8-byte aligned.  What stands before `hash` either changes or
 * says how long the rest is; the hash covers `len` and everything after itself.
 */
struct spool_record {
	uint32_t magic;
	uint32_t len;	 /* of the whole record, a multiple of 8 */
	uint64_t count;	 /* atomic */
	int64_t last_ns; /* atomic */
	uint64_t hash;

	uint64_t seq;
	int64_t time_ns;
	int32_t error, pid, ppid, inner_pid;
	uint32_t uid, gid;
	uint32_t source, code, mode, op, remedy;
	uint32_t text_len[SPOOL_TEXT_COUNT]; /* without the NUL */
	char text[];			     /* each ends in NUL */
};

struct spool {
	int fd;
	int dirfd; /* -1 for bytes in memory (tests) */
	struct spool_header *header;
	unsigned char *ring;
	uint64_t capacity;
};

/*
 * Checks a mapping's header and makes *ret_spool look at it; the mapping stays
 * the caller's (fuzzing reaches the reader through this).  -EBADMSG.
 */
int spool_view(void *bytes, size_t len, struct spool *ret_spool);

/* What record->hash should be; record->len must lie inside the ring. */
uint64_t spool_hash(uint64_t key, const struct spool_record *record);

#endif
