/* SPDX-License-Identifier: MIT */

#include "policy/spool_priv.h"

#include <assert.h>
#include <string.h>

/* Records must never straddle what an aligned store can publish. */
static_assert(sizeof(struct spool_header) <= SPOOL_HEADER, "header fits");
static_assert(offsetof(struct spool_record, count) % 8 == 0, "aligned");
static_assert(offsetof(struct spool_record, text) <= SPOOL_RECORD_MIN,
	      "minimum is a minimum");

/*
 * Eight bytes a step: a record is hashed while a fuse thread waits.  It need
 * not withstand more than accidents and who does not know the key.
 */
uint64_t
spool_hash(uint64_t key, const struct spool_record *record)
{
	const unsigned char *at = (const unsigned char *)&record->seq;
	size_t left = record->len - offsetof(struct spool_record, seq);
	uint64_t hash = key ^ record->len;

	for (; left >= 8; at += 8, left -= 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		hash = (hash ^ word) * 0x9e3779b97f4a7c15ull;
		hash ^= hash >> 29;
	}
	return hash;
}

static struct spool_record *
record_at(const struct spool *spool, uint64_t offset)
{
	return (struct spool_record *)(spool->ring + offset % spool->capacity);
}

uint64_t
spool_used(const struct spool *spool)
{
	return spool->header->head - spool->header->tail;
}

uint64_t
spool_capacity(const struct spool *spool)
{
	return spool->capacity;
}

uint64_t
spool_lost(const struct spool *spool)
{
	return __atomic_load_n(&spool->header->lost, __ATOMIC_RELAXED);
}

uint64_t
spool_lost_untold(const struct spool *spool)
{
	uint64_t lost = spool_lost(spool), told = spool->header->lost_told;

	return lost > told ? lost - told : 0;
}

void
spool_tell_lost(struct spool *spool, uint64_t lost)
{
	spool->header->lost_told = lost;
}

uint64_t
spool_end(const struct spool *spool)
{
	return spool->header->head;
}

const char *
spool_session(const struct spool *spool)
{
	return spool->header->session;
}

const char *
spool_world(const struct spool *spool)
{
	return spool->header->world;
}

static void
collect_texts(const struct denial *denial, const char *texts[SPOOL_TEXT_COUNT])
{
#define X(field) texts[SPOOL_TEXT_##field] = denial->field;
	SPOOL_TEXTS(X)
#undef X
}

/* The whole record's length, a multiple of 8; fills `lens`. */
static uint32_t
measure(const char *const texts[SPOOL_TEXT_COUNT],
	uint32_t lens[SPOOL_TEXT_COUNT])
{
	size_t len = offsetof(struct spool_record, text);

	for (int i = 0; i < SPOOL_TEXT_COUNT; i++) {
		lens[i] = SPOOL_TEXT_ABSENT;
		if (!texts[i])
			continue;
		lens[i] = (uint32_t)strnlen(texts[i], SPOOL_TEXT_MAX);
		len += lens[i] + 1;
	}
	len = (len + 7) & ~(size_t)7;
	return len < SPOOL_RECORD_MIN ? SPOOL_RECORD_MIN : (uint32_t)len;
}

static void
fill(struct spool_record *record, const struct denial *denial,
     const char *const texts[SPOOL_TEXT_COUNT])
{
	char *at = record->text;
	char *end = (char *)record + record->len;

	record->magic = SPOOL_RECORD_MAGIC;
	record->count = denial->count;
	record->last_ns = denial->last_ns;
	record->seq = denial->seq;
	record->time_ns = denial->time_ns;
	record->error = denial->error;
	record->pid = denial->pid;
	record->ppid = denial->ppid;
	record->inner_pid = denial->inner_pid;
	record->uid = denial->uid;
	record->gid = denial->gid;
	record->source = denial->source;
	record->code = denial->code;
	record->mode = denial->mode;
	record->op = denial->op;
	record->remedy = denial->remedy;
	for (int i = 0; i < SPOOL_TEXT_COUNT; i++) {
		if (record->text_len[i] == SPOOL_TEXT_ABSENT)
			continue;
		memcpy(at, texts[i], record->text_len[i]);
		at += record->text_len[i];
		*at++ = '\0';
	}
	/* The hash covers the padding. */
	memset(at, 0, (size_t)(end - at));
}

int
spool_append(struct spool *spool, const struct denial *denial,
	     uint64_t *ret_offset)
{
	struct spool_header *header = spool->header;
	const char *texts[SPOOL_TEXT_COUNT];
	uint32_t lens[SPOOL_TEXT_COUNT], len;
	uint64_t offset = header->head, left;
	struct spool_record *record;

	collect_texts(denial, texts);
	len = measure(texts, lens);
	left = spool->capacity - offset % spool->capacity;
	/* A record is never split: what is left at the end is skipped. */
	if (left < len)
		offset += left;
	if (offset + len - header->tail > spool->capacity) {
		__atomic_fetch_add(&header->lost, 1, __ATOMIC_RELAXED);
		return -ENOSPC;
	}
	if (left < len)
		record_at(spool, header->head)->magic = SPOOL_FILLER_MAGIC;
	record = record_at(spool, offset);
	record->len = len;
	memcpy(record->text_len, lens, sizeof(lens));
	fill(record, denial, texts);
	record->hash = spool_hash(header->key, record);
	__atomic_store_n(&header->head, offset + len, __ATOMIC_RELEASE);
	*ret_offset = offset;
	return 0;
}

static void
decode(const struct spool *spool, const struct spool_record *record,
       struct denial *ret_denial)
{
	const char *texts[SPOOL_TEXT_COUNT], *at = record->text;

	for (int i = 0; i < SPOOL_TEXT_COUNT; i++) {
		texts[i] = NULL;
		if (record->text_len[i] == SPOOL_TEXT_ABSENT)
			continue;
		texts[i] = at;
		at += record->text_len[i] + 1;
	}
	*ret_denial = (struct denial){
		.seq = record->seq,
		.time_ns = record->time_ns,
		.last_ns = __atomic_load_n(&record->last_ns, __ATOMIC_RELAXED),
		.count = __atomic_load_n(&record->count, __ATOMIC_RELAXED),
		.session = spool->header->session,
		.world = spool->header->world,
		.source = (enum denial_source)record->source,
		.code = (enum policy_code)record->code,
		.mode = (enum policy_mode)record->mode,
		.op = (enum policy_op)record->op,
		.error = record->error,
		.pid = record->pid,
		.ppid = record->ppid,
		.inner_pid = record->inner_pid,
		.uid = record->uid,
		.gid = record->gid,
		.remedy = (enum denial_remedy)record->remedy,
	};
#define X(field) ret_denial->field = texts[SPOOL_TEXT_##field];
	SPOOL_TEXTS(X)
#undef X
}

void
spool_read(const struct spool *spool, uint64_t offset,
	   struct denial *ret_denial)
{
	decode(spool, record_at(spool, offset), ret_denial);
}

static bool
same_text(const char *a, const char *b)
{
	return a && b ? strncmp(a, b, SPOOL_TEXT_MAX) == 0 : a == b;
}

bool
spool_same(const struct spool *spool, uint64_t offset,
	   const struct denial *denial)
{
	const struct spool_record *record = record_at(spool, offset);
	struct denial old;

	if (record->pid != denial->pid || record->op != denial->op ||
	    record->error != denial->error || record->code != denial->code)
		return false;
	decode(spool, record, &old);
	return same_text(old.path, denial->path) &&
	       same_text(old.path2, denial->path2) &&
	       same_text(old.rule, denial->rule);
}

uint64_t
spool_hit(struct spool *spool, uint64_t offset, int64_t last_ns)
{
	struct spool_record *record = record_at(spool, offset);

	__atomic_store_n(&record->last_ns, last_ns, __ATOMIC_RELAXED);
	return __atomic_add_fetch(&record->count, 1, __ATOMIC_RELEASE);
}

void
spool_release(struct spool *spool, uint64_t offset)
{
	__atomic_store_n(&spool->header->tail,
			 offset + record_at(spool, offset)->len,
			 __ATOMIC_RELEASE);
}

/* ---- reading what may be torn or forged ---- */

static bool
texts_fit(const struct spool_record *record)
{
	size_t left = record->len - offsetof(struct spool_record, text);
	const char *at = record->text;

	for (int i = 0; i < SPOOL_TEXT_COUNT; i++) {
		uint32_t len = record->text_len[i];

		if (len == SPOOL_TEXT_ABSENT)
			continue;
		if (len > SPOOL_TEXT_MAX || len >= left || memchr(at, 0, len) ||
		    at[len] != '\0')
			return false;
		at += len + 1;
		left -= len + 1;
	}
	return true;
}

static bool
is_sound(const struct spool *spool, const struct spool_record *record,
	 uint64_t left)
{
	return left >= SPOOL_RECORD_MIN &&
	       record->magic == SPOOL_RECORD_MAGIC &&
	       record->len >= SPOOL_RECORD_MIN && record->len <= left &&
	       record->len % 8 == 0 &&
	       record->hash == spool_hash(spool->header->key, record) &&
	       texts_fit(record) && record->count > 0 && record->seq > 0 &&
	       record->count <= INT64_MAX && record->seq <= INT64_MAX &&
	       record->source <= DENIAL_OBSERVED &&
	       record->code < POLICY_CODE_COUNT &&
	       record->mode <= POLICY_DANGER_FULL_ACCESS &&
	       record->op < POLICY_OP_COUNT &&
	       record->remedy <= DENIAL_REMEDY_REREAD;
}

int
spool_each(const struct spool *spool,
	   int (*each)(const struct denial *denial, void *data), void *data)
{
	uint64_t at = spool->header->tail, end = spool->header->head;
	bool in_step = true; /* `at` is where a record was put */

	/* A header from before the records: look at every place instead. */
	if (at > end || end - at > spool->capacity || at % 8 || end % 8) {
		at = 0;
		end = spool->capacity;
	}
	while (at < end) {
		const struct spool_record *record = record_at(spool, at);
		uint64_t left = spool->capacity - at % spool->capacity;
		struct denial denial;
		int r;

		if (left > end - at)
			left = end - at;
		if (in_step && record->magic == SPOOL_FILLER_MAGIC) {
			at += left;
			continue;
		}
		in_step = is_sound(spool, record, left);
		if (!in_step) {
			at += 8; /* places are multiples of 8 */
			continue;
		}
		decode(spool, record, &denial);
		r = each(&denial, data);
		if (r)
			return r;
		at += record->len;
	}
	return 0;
}

static bool
is_name(const char *name)
{
	return memchr(name, 0, SPOOL_NAME_MAX) && name[0];
}

int
spool_view(void *bytes, size_t len, struct spool *ret_spool)
{
	struct spool_header *header = bytes;

	if (len < SPOOL_HEADER + 1024 || len % 8 ||
	    header->magic != SPOOL_MAGIC || header->size != len ||
	    !is_name(header->world) || !is_name(header->session))
		return -EBADMSG;
	*ret_spool = (struct spool){
		.fd = -1,
		.dirfd = -1,
		.header = header,
		.ring = (unsigned char *)bytes + SPOOL_HEADER,
		.capacity = len - SPOOL_HEADER,
	};
	return 0;
}
