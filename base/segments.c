/* SPDX-License-Identifier: MIT */

/*
 * `items` are the files in order of their start; between two of them is a gap
 * whose last `lost` bytes (of the later one's name) were lost to the disk, the
 * rest to retention.  Bytes lost at the very end are `dropped`, and get their
 * name with the next segment.
 */

#include "base/segments.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"

#define RETRY_NS   1000000000LL
#define NAME_BYTES 64

/* A disk that is full now and then makes short segments: not too many. */
#define ITEMS_MAX 128

struct item {
	uint64_t start, len, lost;
};

struct segments {
	pthread_mutex_t lock; /* items, end, dropped */
	int dir;
	char name[16];
	bool writable;
	struct segments_limits limits;
	struct item *items;
	size_t count, room;
	uint64_t end, dropped;
	int fd;		  /* the newest, for writing; −1: none */
	int64_t retry_ns; /* the disk refused: not before this; 0: it did not */
};

const char *
segments_reason_name(enum segments_reason reason)
{
	static const char *const names[] = {
		[SEGMENTS_KEPT] = NULL,
		[SEGMENTS_CAP] = "cap",
		[SEGMENTS_ENOSPC] = "enospc",
	};

	return names[reason];
}

void
segments_file_fini(struct segments_file *file)
{
	if (file->fd_plus_one > 0)
		(void)close(file->fd_plus_one - 1);
	*file = (struct segments_file){ 0 };
}

static void
item_name(const struct segments *log, const struct item *item,
	  char name[NAME_BYTES])
{
	int n = snprintf(name, NAME_BYTES, "%s.%015llu", log->name,
			 (unsigned long long)item->start);

	if (item->lost > 0)
		(void)snprintf(name + n, NAME_BYTES - (size_t)n, "-%llu",
			       (unsigned long long)item->lost);
}

/* ---- opening ---- */

static bool
parse_name(const struct segments *log, const char *name, struct item *ret_item)
{
	size_t len = strlen(log->name);
	char *end;

	if (strncmp(name, log->name, len) != 0 || name[len] != '.' ||
	    name[len + 1] < '0' || name[len + 1] > '9')
		return false;
	*ret_item = (struct item){ 0 };
	ret_item->start = strtoull(name + len + 1, &end, 10);
	if (*end == '-' && end[1] >= '0' && end[1] <= '9')
		ret_item->lost = strtoull(end + 1, &end, 10);
	return *end == '\0' && ret_item->start < UINT64_MAX / 4;
}

static int
add_item(struct segments *log, const struct item *item)
{
	if (log->count == log->room) {
		size_t room = log->room ? log->room * 2 : 4;
		struct item *items =
			realloc(log->items, room * sizeof(*log->items));

		if (!items)
			return -ENOMEM;
		log->items = items;
		log->room = room;
	}
	log->items[log->count++] = *item;
	return 0;
}

static int
by_start(const void *a, const void *b)
{
	const struct item *one = a, *other = b;

	return (one->start > other->start) - (one->start < other->start);
}

/* What overlaps is not ours: the first to say what is at a place is right. */
static void
put_in_order(struct segments *log)
{
	size_t count = 0;

	qsort(log->items, log->count, sizeof(*log->items), by_start);
	for (size_t i = 0; i < log->count; i++) {
		const struct item *item = &log->items[i];

		if (item->start < log->end)
			continue;
		log->end = item->start + item->len;
		log->items[count++] = *item;
	}
	log->count = count;
}

static int
collect(struct segments *log)
{
	int fd = openat(log->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;
	struct item item;
	struct stat st;
	int r = 0;
	DIR *dir;

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		r = -errno;
		closep(&fd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir))) {
		if (!parse_name(log, entry->d_name, &item) ||
		    fstatat(log->dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) <
			    0 ||
		    !S_ISREG(st.st_mode))
			continue;
		item.len = (uint64_t)st.st_size;
		r = add_item(log, &item);
	}
	(void)closedir(dir);
	if (r == 0 && log->count > 0)
		put_in_order(log);
	return r;
}

int
segments_open(int dir, const char *name, const struct segments_limits *limits,
	      struct segments **ret_log)
{
	_cleanup_(segments_freep) struct segments *log = NULL;
	int r;

	log = calloc(1, sizeof(*log));
	if (!log)
		return -ENOMEM;
	(void)pthread_mutex_init(&log->lock, NULL);
	log->fd = -1;
	(void)snprintf(log->name, sizeof(log->name), "%s", name);
	if (limits) {
		log->writable = true;
		log->limits = *limits;
	}
	log->dir = fcntl(dir, F_DUPFD_CLOEXEC, 3);
	if (log->dir < 0)
		return -errno;
	r = collect(log);
	if (r < 0)
		return r;
	*ret_log = take_ptr(&log);
	return 0;
}

struct segments *
segments_free(struct segments *log)
{
	if (!log)
		return NULL;
	closep(&log->fd);
	closep(&log->dir);
	(void)pthread_mutex_destroy(&log->lock);
	free(log->items);
	free(log);
	return NULL;
}

uint64_t
segments_end(const struct segments *log)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&log->lock;
	uint64_t end;

	(void)pthread_mutex_lock(lock);
	end = log->end;
	(void)pthread_mutex_unlock(lock);
	return end;
}

uint64_t
segments_stored(const struct segments *log)
{
	pthread_mutex_t *lock = (pthread_mutex_t *)&log->lock;
	uint64_t stored = 0;

	(void)pthread_mutex_lock(lock);
	for (size_t i = 0; i < log->count; i++)
		stored += log->items[i].len;
	(void)pthread_mutex_unlock(lock);
	return stored;
}

/* ---- writing ---- */

/* The oldest segment that the limits let go; `count` when there is none. */
static size_t
disposable(const struct segments *log)
{
	for (size_t i = 0; i + 1 < log->count; i++) {
		const struct item *item = &log->items[i];

		if (item->start + item->len <= log->limits.head &&
		    log->count <= ITEMS_MAX)
			continue;
		if (log->end - (item->start + item->len) >= log->limits.tail ||
		    (log->count > ITEMS_MAX && i > 0))
			return i;
		return log->count;
	}
	return log->count;
}

static void
retain(struct segments *log)
{
	char name[NAME_BYTES];
	size_t i;

	if (log->limits.tail == 0)
		return;
	while ((i = disposable(log)) < log->count) {
		item_name(log, &log->items[i], name);
		(void)unlinkat(log->dir, name, 0);
		log->count--;
		memmove(&log->items[i], &log->items[i + 1],
			(log->count - i) * sizeof(*log->items));
	}
}

/* Starts a file at the end, whose name tells what was dropped before it. */
static int
new_segment(struct segments *log)
{
	struct item item = { .start = log->end, .lost = log->dropped };
	char name[NAME_BYTES];
	int fd, r;

	item_name(log, &item, name);
	fd = openat(log->dir, name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = add_item(log, &item);
	if (r < 0) {
		(void)unlinkat(log->dir, name, 0);
		(void)close(fd);
		return r;
	}
	closep(&log->fd);
	log->fd = fd;
	log->dropped = 0;
	return 0;
}

/* A segment that got no byte would only be in the way. */
static void
undo_empty(struct segments *log)
{
	struct item *last = log->count > 0 ? &log->items[log->count - 1] : NULL;
	char name[NAME_BYTES];

	if (!last || last->len > 0)
		return;
	item_name(log, last, name);
	(void)unlinkat(log->dir, name, 0);
	log->dropped += last->lost;
	log->count--;
	closep(&log->fd);
	log->fd = -1;
}

/* How many bytes may follow in the newest file; 0 with *ret_error. */
static size_t
prepare(struct segments *log, loff_t *ret_at, int *ret_error)
{
	struct item *last = log->count > 0 ? &log->items[log->count - 1] : NULL;

	if (log->retry_ns && clock_mono_ns() < log->retry_ns) {
		*ret_error = -ENOSPC;
		return 0;
	}
	if (log->fd < 0 || !last || last->len >= SEGMENT_BYTES ||
	    log->dropped > 0) {
		/* One that tells of a loss at what was the end. */
		undo_empty(log);
		*ret_error = new_segment(log);
		if (*ret_error < 0)
			return 0;
		last = &log->items[log->count - 1];
	}
	*ret_at = (loff_t)last->len;
	return SEGMENT_BYTES - last->len;
}

static void
stored(struct segments *log, size_t len)
{
	log->items[log->count - 1].len += len;
	log->end += len;
	log->retry_ns = 0;
	retain(log);
}

/*
 * Tells of the loss at the end by an empty file, whose name others can read;
 * one that tells of less is renamed.
 */
static void
mark(struct segments *log)
{
	struct item *last = log->count > 0 ? &log->items[log->count - 1] : NULL;
	char from[NAME_BYTES], to[NAME_BYTES];
	struct item item;

	if (!last || last->len > 0) {
		(void)new_segment(log);
		closep(&log->fd);
		log->fd = -1;
		return;
	}
	item = (struct item){ .start = log->end,
			      .lost = last->lost + log->dropped };
	item_name(log, last, from);
	item_name(log, &item, to);
	if (renameat(log->dir, from, log->dir, to) < 0)
		return;
	*last = item;
	log->dropped = 0;
}

static void
lost(struct segments *log, uint64_t len)
{
	if (log->fd >= 0)
		undo_empty(log);
	log->end += len;
	log->dropped += len;
	if (log->retry_ns != 0 && clock_mono_ns() < log->retry_ns)
		return;
	log->retry_ns = clock_mono_ns() + RETRY_NS;
	mark(log);
}

/* The writer must not wait because our disk is full. */
static ssize_t
discard(struct segments *log, int pipe, size_t max)
{
	char sink[16 * 1024];
	ssize_t n;

	do {
		n = read(pipe, sink, max < sizeof(sink) ? max : sizeof(sink));
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n > 0)
		lost(log, (uint64_t)n);
	return n;
}

static ssize_t
do_splice(struct segments *log, int pipe, size_t max)
{
	loff_t at = 0;
	int error = 0;
	size_t room;
	ssize_t n;

	room = prepare(log, &at, &error);
	if (room == 0)
		return discard(log, pipe, max);
	do {
		n = splice(pipe, NULL, log->fd, &at, max < room ? max : room,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return discard(log, pipe, max);
	if (n <= 0) {
		error = n < 0 ? -errno : 0;
		undo_empty(log);
		return error;
	}
	stored(log, (size_t)n);
	return n;
}

ssize_t
segments_splice(struct segments *log, int pipe, size_t max)
{
	ssize_t n;

	(void)pthread_mutex_lock(&log->lock);
	n = do_splice(log, pipe, max);
	(void)pthread_mutex_unlock(&log->lock);
	return n;
}

void
segments_append(struct segments *log, const void *data, size_t len)
{
	const char *at = data;

	(void)pthread_mutex_lock(&log->lock);
	while (len > 0) {
		loff_t where = 0;
		int error = 0;
		size_t room = prepare(log, &where, &error);
		ssize_t n = 0;

		if (room > 0)
			n = pwrite(log->fd, at, len < room ? len : room, where);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			lost(log, len);
			break;
		}
		stored(log, (size_t)n);
		at += n;
		len -= (size_t)n;
	}
	(void)pthread_mutex_unlock(&log->lock);
}

int
segments_amend(struct segments *log, uint64_t offset, const void *data,
	       size_t len)
{
	const struct item *last;
	int r = 0;

	(void)pthread_mutex_lock(&log->lock);
	last = log->count > 0 ? &log->items[log->count - 1] : NULL;
	if (!last || log->fd < 0 || offset < last->start ||
	    offset + len > last->start + last->len)
		r = -ERANGE;
	else if (pwrite(log->fd, data, len, (off_t)(offset - last->start)) !=
		 (ssize_t)len)
		r = -EIO;
	(void)pthread_mutex_unlock(&log->lock);
	return r;
}

void
segments_lose(struct segments *log, uint64_t len)
{
	(void)pthread_mutex_lock(&log->lock);
	if (len > 0)
		lost(log, len);
	(void)pthread_mutex_unlock(&log->lock);
}

static int
do_adopt(struct segments *log, const char *from)
{
	struct item item = { .start = log->end };
	char name[NAME_BYTES];
	struct stat st;
	int r;

	if (fstatat(log->dir, from, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_size == 0)
		return unlinkat(log->dir, from, 0) < 0 ? -errno : 0;
	undo_empty(log);
	item.len = (uint64_t)st.st_size;
	item.lost = log->dropped;
	item_name(log, &item, name);
	r = add_item(log, &item);
	if (r < 0)
		return r;
	if (renameat2(log->dir, from, log->dir, name, RENAME_NOREPLACE) < 0) {
		log->count--;
		return -errno;
	}
	/* Whatever comes next starts a file of its own. */
	closep(&log->fd);
	log->fd = -1;
	log->dropped = 0;
	log->end += item.len;
	return 0;
}

int
segments_adopt(struct segments *log, const char *from)
{
	int r;

	(void)pthread_mutex_lock(&log->lock);
	r = do_adopt(log, from);
	(void)pthread_mutex_unlock(&log->lock);
	return r;
}

void
segments_finish(struct segments *log)
{
	(void)pthread_mutex_lock(&log->lock);
	if (log->writable && log->dropped > 0)
		mark(log);
	closep(&log->fd);
	log->fd = -1;
	(void)pthread_mutex_unlock(&log->lock);
}

/* ---- reading ---- */

/* The first item that ends behind `offset`; `count` when there is none. */
static size_t
find(const struct segments *log, uint64_t offset)
{
	size_t low = 0, high = log->count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (log->items[mid].start + log->items[mid].len <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Dropped now, or told by the name of an empty file: segments_finish(). */
static uint64_t
lost_at_end(const struct segments *log)
{
	const struct item *last =
		log->count > 0 ? &log->items[log->count - 1] : NULL;

	return log->dropped + (last && last->len == 0 ? last->lost : 0);
}

/*
 * Where the bytes from `offset` on are; says what is missing first.  False:
 * there are none.
 */
static bool
locate(const struct segments *log, uint64_t offset, struct segments_view *view,
       struct item *ret_item)
{
	size_t i = find(log, offset);
	uint64_t start, lost;

	view->base = log->count > 0 ? log->items[0].start : log->end;
	view->end = log->end;
	view->next = offset;
	if (i < log->count && log->items[i].start <= offset) {
		*ret_item = log->items[i];
		return true;
	}
	if (offset == log->end)
		return false;

	start = i < log->count ? log->items[i].start : log->end;
	lost = i < log->count ? log->items[i].lost : lost_at_end(log);
	/* Of one gap, retention took the first part and the disk the last. */
	view->reason = lost < start - offset ? SEGMENTS_CAP : SEGMENTS_ENOSPC;
	view->lost_from = offset;
	view->lost_to = view->reason == SEGMENTS_CAP ? start - lost : start;
	view->next = view->lost_to;
	if (view->next < start || i == log->count)
		return false;
	*ret_item = log->items[i];
	return true;
}

static int
open_item(const struct segments *log, const struct item *item,
	  struct segments_file *file)
{
	char name[NAME_BYTES];
	int fd;

	if (file->fd_plus_one > 0 && file->start == item->start)
		return 0;
	segments_file_fini(file);
	item_name(log, item, name);
	fd = openat(log->dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	file->fd_plus_one = fd + 1;
	file->start = item->start;
	return 0;
}

static void
forget_item(struct segments *log, uint64_t start)
{
	(void)pthread_mutex_lock(&log->lock);
	for (size_t i = 0; i < log->count; i++) {
		if (log->items[i].start != start)
			continue;
		log->count--;
		memmove(&log->items[i], &log->items[i + 1],
			(log->count - i) * sizeof(*log->items));
		break;
	}
	(void)pthread_mutex_unlock(&log->lock);
}

static ssize_t
read_item(const struct item *item, const struct segments_file *file,
	  uint64_t offset, void *buf, size_t size)
{
	uint64_t left = item->start + item->len - offset;
	ssize_t n;

	n = pread(file->fd_plus_one - 1, buf, size < left ? size : (size_t)left,
		  (off_t)(offset - item->start));
	return n < 0 ? -errno : n;
}

int
segments_read(struct segments *log, struct segments_file *file, uint64_t offset,
	      void *buf, size_t size, struct segments_view *ret_view)
{
	_cleanup_(segments_file_fini) struct segments_file own = { 0 };
	struct segments_view view;
	struct item item;
	ssize_t n;
	bool found;
	int r;

	if (!file)
		file = &own;
	for (;;) {
		view = (struct segments_view){ 0 };
		(void)pthread_mutex_lock(&log->lock);
		r = offset > log->end ? -ERANGE : 0;
		found = r == 0 && locate(log, offset, &view, &item);
		(void)pthread_mutex_unlock(&log->lock);
		if (r < 0)
			return r;
		if (!found || size == 0)
			break;
		r = open_item(log, &item, file);
		/* Another process's retention: it is lost to us now. */
		if (r == -ENOENT) {
			forget_item(log, item.start);
			continue;
		}
		if (r < 0)
			return r;
		n = read_item(&item, file, view.next, buf, size);
		if (n < 0)
			return (int)n;
		view.len = (size_t)n;
		view.next += view.len;
		break;
	}
	*ret_view = view;
	return 0;
}
