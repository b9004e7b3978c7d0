/* SPDX-License-Identifier: MIT */

/*
 * The index: git checks the names that it adds to one, not those that it finds
 * in it, and `git checkout .` writes them: one in .git/hooks becomes a hook,
 * one with ".." a file outside.
 *
 * The reader does what git's does (read-cache.c), in the order of the bytes.
 * Two extensions let git begin elsewhere; they must say what the order says.
 * A split index keeps its names in another file and is refused.  Bytes that
 * end too early are judged as far as they go, since a file is written piece by
 * piece.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fusefs/gitguard_priv.h"

#define HEADER_SIZE   12
#define STAT_SIZE     40 /* times, device, mode, owner, size */
#define FLAG_EXTENDED 0x4000u
#define NAME_MASK     0x0fffu
#define EXTENSION     8 /* signature and size */

struct entry {
	uint32_t offset;
	bool continues; /* its path begins as the one before: version 4 */
};

struct reader {
	const unsigned char *data;
	size_t at, end; /* of entries and extensions */
	size_t hash;	/* bytes of an object's name */
	uint32_t version, count;
	bool continues;
	char path[PATH_MAX];
	size_t path_len;
};

static uint32_t
be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	       (uint32_t)p[2] << 8 | p[3];
}

/* What git would refuse to add.  A sparse index has directories: "a/b/". */
static bool
is_good_path(const char *path, size_t len)
{
	char name[NAME_MAX + 1];

	if (len == 0 || strlen(path) != len)
		return false;
	for (const char *at = path; *at;) {
		size_t n = strcspn(at, "/");

		if (n == 0 || n > NAME_MAX)
			return false;
		memcpy(name, at, n);
		name[n] = '\0';
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
		    gg_classify(name) == GG_DOTGIT)
			return false;
		at += n + (at[n] == '/');
	}
	return true;
}

/* Version 4: how much of the path before is dropped; git's varint. */
static int
read_drop(struct reader *r, size_t *ret_drop)
{
	size_t value;
	unsigned char c;

	if (r->at >= r->end)
		return -EINVAL;
	c = r->data[r->at++];
	value = c & 127u;
	while (c & 128u) {
		if (r->at >= r->end || value > PATH_MAX)
			return -EINVAL;
		c = r->data[r->at++];
		value = ((value + 1) << 7) + (c & 127u);
	}
	*ret_drop = value;
	return 0;
}

/* Returns 1 when the bytes end within the entry. */
static int
read_entry(struct reader *r)
{
	size_t start = r->at, fixed = STAT_SIZE + r->hash + 2, len, left;
	size_t drop = 0;
	unsigned int flags;

	if (r->end - start < fixed)
		return 1;
	flags = (unsigned int)r->data[start + fixed - 2] << 8 |
		r->data[start + fixed - 1];
	if (flags & FLAG_EXTENDED)
		fixed += 2;
	if (r->end - start <= fixed)
		return 1;
	r->at = start + fixed;
	if (r->version == 4) {
		if (read_drop(r, &drop) < 0)
			return 1;
		if (drop > r->path_len)
			return -EACCES;
		r->path_len -= drop;
	} else {
		r->path_len = 0;
	}
	r->continues = r->path_len > 0;
	left = r->end - r->at;
	len = strnlen((const char *)r->data + r->at, left);
	if (r->path_len + len >= PATH_MAX)
		return -EACCES;
	memcpy(r->path + r->path_len, r->data + r->at, len);
	r->path_len += len;
	r->path[r->path_len] = '\0';
	if (r->path_len > 0 && !is_good_path(r->path, r->path_len))
		return -EACCES;
	if (len == left)
		return 1;

	/* git takes a short name's length from the flags. */
	if (r->path_len == 0 ||
	    (flags & NAME_MASK) !=
		    (r->path_len < NAME_MASK ? r->path_len : NAME_MASK))
		return -EACCES;
	r->at = r->version == 4 ? r->at + len + 1
				: start + ((fixed + len + 8) & ~(size_t)7);
	return r->at > r->end;
}

/* Blocks of entries, for threads: (offset, count) that follow each other. */
static int
check_blocks(const struct reader *r, const unsigned char *body, size_t size,
	     const struct entry *entries)
{
	uint32_t n = 0;

	if (size < 4 || be32(body) != 1 || (size - 4) % 8 != 0)
		return -EACCES;
	for (size_t i = 4; i < size; i += 8) {
		if (n >= r->count || be32(body + i) != entries[n].offset ||
		    entries[n].continues)
			return -EACCES;
		if (be32(body + i + 4) > r->count - n)
			return -EACCES;
		n += be32(body + i + 4);
	}
	return n == r->count ? 0 : -EACCES;
}

static int
check_extensions(const struct reader *r, const struct entry *entries)
{
	size_t at = r->at, end = r->end - r->hash;
	size_t tail = EXTENSION + 4 + r->hash;
	bool eoie = false;
	int ret = 0;

	/* git looks for it here, whatever else is there. */
	if (end >= HEADER_SIZE + tail &&
	    memcmp(r->data + end - tail, "EOIE", 4) == 0) {
		eoie = true;
		if (be32(r->data + end - tail + EXTENSION) != at)
			return -EACCES;
	}
	while (ret == 0 && at < end && end - at >= EXTENSION) {
		const unsigned char *p = r->data + at;
		size_t size = be32(p + 4);

		if (memcmp(p, "link", 4) == 0)
			return -EACCES;
		if (size > end - at - EXTENSION)
			return eoie ? -EACCES : 0;
		if (memcmp(p, "IEOT", 4) == 0 && eoie)
			ret = check_blocks(r, p + EXTENSION, size, entries);
		at += EXTENSION + size;
	}
	return ret;
}

bool
gg_index_is_good(const char *data, size_t len, size_t hash)
{
	struct reader r = { .data = (const unsigned char *)data,
			    .at = HEADER_SIZE,
			    .end = len,
			    .hash = hash };
	_cleanup_(freep) struct entry *entries = NULL;
	int ret = 0;

	/* So little is nothing to git. */
	if (len < HEADER_SIZE + hash)
		return true;
	if (memcmp(data, "DIRC", 4) != 0)
		return false;
	r.version = be32(r.data + 4);
	r.count = be32(r.data + 8);
	if (r.version < 2 || r.version > 4)
		return false;
	entries = calloc(len / STAT_SIZE + 1, sizeof(*entries));
	if (!entries)
		return false;
	for (uint32_t i = 0; i < r.count && ret == 0; i++) {
		size_t offset = r.at;

		ret = read_entry(&r);
		if (ret != 0)
			break;
		entries[i] = (struct entry){ (uint32_t)offset, r.continues };
	}
	/* Cut short: git gives up, but for what it finds at the end. */
	if (ret > 0)
		r.at = 0;
	return ret >= 0 && check_extensions(&r, entries) == 0;
}
