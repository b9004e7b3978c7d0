/* SPDX-License-Identifier: MIT */

#include "fusefs/dirbuf.h"

#include <dirent.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>

#define DIRBUF_BYTES 16384

/* The kernel's record; glibc's dirent64 has a fixed name. */
struct record {
	uint64_t ino;
	int64_t next;
	unsigned short len;
	unsigned char type;
	char name[];
};

struct fs_dirbuf {
	pthread_mutex_t lock;
	off_t position;	   /* of the entry at `at` */
	size_t at, end;	   /* the entries in `bytes` */
	off_t fd_position; /* where the descriptor stands */
	_Alignas(struct record) unsigned char bytes[DIRBUF_BYTES];
};

int
fs_dirbuf_new(struct fs_dirbuf **ret_dirbuf)
{
	struct fs_dirbuf *dirbuf = malloc(sizeof(*dirbuf));

	if (!dirbuf)
		return -ENOMEM;
	pthread_mutex_init(&dirbuf->lock, NULL);
	dirbuf->position = dirbuf->fd_position = 0;
	dirbuf->at = dirbuf->end = 0;
	*ret_dirbuf = dirbuf;
	return 0;
}

struct fs_dirbuf *
fs_dirbuf_free(struct fs_dirbuf *dirbuf)
{
	if (dirbuf)
		pthread_mutex_destroy(&dirbuf->lock);
	free(dirbuf);
	return NULL;
}

void
fs_dirbuf_lock(struct fs_dirbuf *dirbuf)
{
	pthread_mutex_lock(&dirbuf->lock);
}

void
fs_dirbuf_unlock(struct fs_dirbuf *dirbuf)
{
	pthread_mutex_unlock(&dirbuf->lock);
}

static const struct record *
record_at(const struct fs_dirbuf *dirbuf)
{
	return (const struct record *)(dirbuf->bytes + dirbuf->at);
}

/* Returns the number of bytes read, 0 at the end. */
static int
refill(struct fs_dirbuf *dirbuf, int fd, off_t position)
{
	long n;

	dirbuf->at = dirbuf->end = 0;
	/* From the start always by seeking: that is what rewinddir() means. */
	if ((position == 0 || position != dirbuf->fd_position) &&
	    lseek(fd, position, SEEK_SET) < 0)
		return -errno;
	n = syscall(SYS_getdents64, fd, dirbuf->bytes, sizeof(dirbuf->bytes));
	if (n < 0) {
		n = -errno;
		dirbuf->fd_position = -1;
		return (int)n;
	}
	dirbuf->end = (size_t)n;
	dirbuf->position = position;
	dirbuf->fd_position = position;
	for (size_t at = 0; at < dirbuf->end;) {
		const struct record *last =
			(const struct record *)(dirbuf->bytes + at);

		dirbuf->fd_position = last->next;
		at += last->len;
	}
	return (int)n;
}

int
fs_dirbuf_peek(struct fs_dirbuf *dirbuf, int fd, off_t position,
	       struct fs_dirent *ret_entry)
{
	const struct record *record;
	int r;

	/* The entry that was peeked at last has been taken. */
	if (dirbuf->at < dirbuf->end && position != dirbuf->position &&
	    position == record_at(dirbuf)->next) {
		dirbuf->at += record_at(dirbuf)->len;
		dirbuf->position = position;
	}
	if (position == 0 || position != dirbuf->position ||
	    dirbuf->at >= dirbuf->end) {
		r = refill(dirbuf, fd, position);
		if (r <= 0)
			return r;
	}

	record = record_at(dirbuf);
	*ret_entry = (struct fs_dirent){ .ino = record->ino,
					 .next = record->next,
					 .type = record->type,
					 .name = record->name };
	return 1;
}
