/* SPDX-License-Identifier: MIT */

/*
 * A table of owners by inode.  Entries are counted, since an owner may close
 * the file in one thread and lock in another; closing an entry's descriptor
 * drops all its locks.
 *
 * `busy` of an entry is held from the lock being taken until it is noted, so
 * that the notes have the order of the locks.  The notes themselves, like the
 * table, are guarded by the table's lock.
 */

#include "fusefs/lock_owners.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"

#define BUCKETS 256u

/* Where owners' locks on a border are: far behind any byte that is used. */
#define BORDER_AWAY ((off_t)1 << 62)

struct range {
	off_t first, last; /* both within */
	short type;
};

struct ranges {
	struct range *items; /* in order, none overlaps */
	size_t count;
};

struct border {
	struct border *next;
	uint64_t ino;
	int fd;
	bool fresh;	    /* nobody inside has been let in yet */
	unsigned int users; /* owners */
};

struct owner {
	struct owner *next; /* bucket */
	uint64_t ino, owner;
	uint64_t fh; /* the handle that was used last */
	pid_t pid;   /* for F_GETLK */
	int fd;	     /* an open file description of its own */
	bool border;
	unsigned int users; /* the table is one */
	struct ranges held;
	pthread_mutex_t busy;
};

struct lock_owners {
	pthread_mutex_t lock;
	pthread_mutex_t border_lock; /* over `borders`, and taking one */
	struct owner *table[BUCKETS];
	struct border *borders;
	atomic_size_t n_owners, n_ranges;
};

/* ---- ranges ---- */

static struct range
range_of(const struct flock *lock)
{
	return (struct range){
		.first = lock->l_start,
		.last = lock->l_len == 0 ? INT64_MAX
					 : lock->l_start + (lock->l_len - 1),
		.type = lock->l_type,
	};
}

static bool
overlap(const struct range *a, const struct range *b)
{
	return a->first <= b->last && b->first <= a->last;
}

static void
append(struct ranges *list, off_t first, off_t last, short type)
{
	struct range *end =
		list->count > 0 ? &list->items[list->count - 1] : NULL;

	if (first > last)
		return;
	if (end && end->type == type && end->last == first - 1)
		end->last = last;
	else
		list->items[list->count++] =
			(struct range){ first, last, type };
}

/* `old` with `range` set in it; `ret_new` has room for two more. */
static void
ranges_set(const struct ranges *old, const struct range *range,
	   struct ranges *ret_new)
{
	bool there = range->type == F_UNLCK;

	for (size_t i = 0; i < old->count; i++) {
		const struct range *at = &old->items[i];

		if (at->first < range->first)
			append(ret_new, at->first,
			       at->last < range->first ? at->last
						       : range->first - 1,
			       at->type);
		if (!there && at->last >= range->first) {
			append(ret_new, range->first, range->last, range->type);
			there = true;
		}
		if (at->last > range->last)
			append(ret_new,
			       at->first > range->last ? at->first
						       : range->last + 1,
			       at->last, at->type);
	}
	if (!there)
		append(ret_new, range->first, range->last, range->type);
}

static bool
ranges_conflict(const struct ranges *held, const struct range *wanted)
{
	for (size_t i = 0; i < held->count; i++)
		if (overlap(&held->items[i], wanted) &&
		    (wanted->type == F_WRLCK || held->items[i].type == F_WRLCK))
			return true;
	return false;
}

/* ---- descriptors ---- */

/* A description of the file that is fit for both kinds of lock, if may be. */
static int
open_own(int fd)
{
	static const int modes[] = { O_RDWR, O_RDONLY, O_WRONLY };
	char path[32];
	int own = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; own < 0 && i < sizeof(modes) / sizeof(*modes); i++)
		own = open(path, modes[i] | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (own >= 0)
		return own;
	return errno == EMFILE || errno == ENFILE ? -ENOLCK : -errno;
}

static int
set_lock(int fd, const struct flock *lock)
{
	struct flock own = *lock;

	own.l_pid = 0;
	if (fcntl(fd, F_OFD_SETLK, &own) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

/* ---- borders ---- */

/* With border_lock. */
static struct border *
find_border(const struct lock_owners *owners, uint64_t ino)
{
	struct border *border = owners->borders;

	while (border && border->ino != ino)
		border = border->next;
	return border;
}

static int
border_make(struct lock_owners *owners, const struct locks_target *target)
{
	struct flock lock = { .l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = BORDER_BYTE,
			      .l_len = 1 };
	struct border *border = malloc(sizeof(*border));
	int r;

	if (!border)
		return -ENOLCK;
	r = open_own(target->fd);
	if (r < 0) {
		free(border);
		return r;
	}
	*border = (struct border){ .next = owners->borders,
				   .ino = target->ino,
				   .fd = r,
				   .fresh = true,
				   .users = 1 };
	r = set_lock(border->fd, &lock);
	if (r == -EBADF) {
		/* Not ours to write: at least nobody begins it anew. */
		lock.l_type = F_RDLCK;
		r = set_lock(border->fd, &lock);
	}
	if (r < 0) {
		(void)close(border->fd);
		free(border);
		return r;
	}
	owners->borders = border;
	return 0;
}

static int
border_get(struct lock_owners *owners, const struct locks_target *target)
{
	struct border *border;
	int r = 0;

	pthread_mutex_lock(&owners->border_lock);
	border = find_border(owners, target->ino);
	if (border)
		border->users++;
	else
		r = border_make(owners, target);
	pthread_mutex_unlock(&owners->border_lock);
	return r;
}

static void
border_put(struct lock_owners *owners, uint64_t ino)
{
	struct border **link, *border;

	pthread_mutex_lock(&owners->border_lock);
	link = &owners->borders;
	while (*link && (*link)->ino != ino)
		link = &(*link)->next;
	border = *link;
	if (border && --border->users == 0)
		*link = border->next;
	else
		border = NULL;
	pthread_mutex_unlock(&owners->border_lock);
	if (!border)
		return;
	(void)close(border->fd);
	free(border);
}

/* What holds the border outside, if somebody does. */
static int
border_test(struct lock_owners *owners, const struct locks_target *target,
	    struct flock *lock)
{
	struct border *border;
	int r;

	pthread_mutex_lock(&owners->border_lock);
	border = find_border(owners, target->ino);
	r = fcntl(border ? border->fd : target->fd, F_OFD_GETLK, lock) < 0
		    ? -errno
		    : 0;
	pthread_mutex_unlock(&owners->border_lock);
	return r;
}

/* ---- the table ---- */

static struct owner **
bucket_of(struct lock_owners *owners, uint64_t ino)
{
	uint64_t hash = ino * 0x9e3779b97f4a7c15u;

	return &owners->table[(hash >> 32) % BUCKETS];
}

static struct owner *
find_locked(struct lock_owners *owners, uint64_t ino, uint64_t owner)
{
	struct owner *o = *bucket_of(owners, ino);

	while (o && (o->ino != ino || o->owner != owner))
		o = o->next;
	return o;
}

/* The owner's entry, with a reference; NULL if there is none. */
static struct owner *
owner_get(struct lock_owners *owners, const struct locks_target *target)
{
	struct owner *o;

	if (atomic_load(&owners->n_owners) == 0)
		return NULL;
	pthread_mutex_lock(&owners->lock);
	o = find_locked(owners, target->ino, target->owner);
	if (o) {
		o->users++;
		o->fh = target->fh;
	}
	pthread_mutex_unlock(&owners->lock);
	return o;
}

static void
owner_free(struct lock_owners *owners, struct owner *o)
{
	(void)close(o->fd);
	if (o->border)
		border_put(owners, o->ino);
	atomic_fetch_sub(&owners->n_ranges, o->held.count);
	free(o->held.items);
	pthread_mutex_destroy(&o->busy);
	free(o);
}

static void
owner_put(struct lock_owners *owners, struct owner *o)
{
	bool last;

	pthread_mutex_lock(&owners->lock);
	last = --o->users == 0;
	pthread_mutex_unlock(&owners->lock);
	if (last)
		owner_free(owners, o);
}

static int
owner_new(struct lock_owners *owners, const struct locks_target *target,
	  pid_t pid, struct owner **ret_owner)
{
	struct owner *o;
	int fd;

	if (atomic_load(&owners->n_owners) >= LIMIT_LOCK_OWNERS)
		return -ENOLCK;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOLCK;
	fd = open_own(target->fd);
	if (fd < 0) {
		free(o);
		return fd;
	}
	*o = (struct owner){ .ino = target->ino,
			     .owner = target->owner,
			     .fh = target->fh,
			     .pid = pid,
			     .fd = fd,
			     .users = 2 };
	pthread_mutex_init(&o->busy, NULL);
	*ret_owner = o;
	return 0;
}

/* The owner's entry, with a reference, which may have to be made. */
static int
owner_make(struct lock_owners *owners, const struct locks_target *target,
	   pid_t pid, struct owner **ret_owner)
{
	struct owner **bucket = bucket_of(owners, target->ino);
	struct owner *o, *there;
	int r = owner_new(owners, target, pid, &o);

	if (r < 0)
		return r;
	pthread_mutex_lock(&owners->lock);
	there = find_locked(owners, target->ino, target->owner);
	if (there) {
		there->users++;
	} else {
		o->next = *bucket;
		*bucket = o;
		atomic_fetch_add(&owners->n_owners, 1);
	}
	pthread_mutex_unlock(&owners->lock);
	if (there)
		owner_free(owners, o);
	*ret_owner = there ? there : o;
	return 0;
}

void
lock_owners_drop(struct lock_owners *owners, uint64_t ino,
		 const uint64_t *owner, const uint64_t *fh)
{
	struct owner *gone = NULL, **link, *o;

	if (atomic_load(&owners->n_owners) == 0)
		return;
	pthread_mutex_lock(&owners->lock);
	link = bucket_of(owners, ino);
	while ((o = *link)) {
		if (o->ino != ino || (owner && o->owner != *owner) ||
		    (fh && o->fh != *fh)) {
			link = &o->next;
			continue;
		}
		*link = o->next;
		o->next = gone;
		gone = o;
		atomic_fetch_sub(&owners->n_owners, 1);
	}
	pthread_mutex_unlock(&owners->lock);

	while ((o = gone)) {
		gone = o->next;
		owner_put(owners, o);
	}
}

/* ---- locks ---- */

/* As it is taken on the backing file. */
static struct flock
placed(const struct locks_target *target, const struct flock *lock)
{
	struct flock there = *lock;

	there.l_pid = 0;
	if (target->border)
		there.l_start += BORDER_AWAY;
	return there;
}

/* With `busy`. */
static int
set_and_note(struct lock_owners *owners, struct owner *o,
	     const struct flock *lock)
{
	const struct range range = range_of(lock);
	struct ranges held = { 0 }, old = o->held;
	int r;

	if (atomic_load(&owners->n_ranges) >= LIMIT_LOCK_RANGES)
		return -ENOLCK;
	held.items = calloc(old.count + 2, sizeof(*held.items));
	if (!held.items)
		return -ENOLCK;
	r = set_lock(o->fd, lock);
	if (r < 0) {
		free(held.items);
		return r;
	}
	/* Only the holder of `busy` changes what is read here. */
	ranges_set(&old, &range, &held);
	pthread_mutex_lock(&owners->lock);
	o->held = held;
	pthread_mutex_unlock(&owners->lock);
	free(old.items);
	atomic_fetch_add(&owners->n_ranges, held.count - old.count);
	return 0;
}

int
lock_owners_set(struct lock_owners *owners, const struct locks_target *target,
		pid_t pid, const struct flock *lock)
{
	const struct flock there = placed(target, lock);
	struct owner *o = owner_get(owners, target);
	int r = 0;

	if (!o) {
		if (lock->l_type == F_UNLCK)
			return 0;
		r = owner_make(owners, target, pid, &o);
		if (r < 0)
			return r;
	}
	pthread_mutex_lock(&o->busy);
	if (target->border && !o->border && lock->l_type != F_UNLCK) {
		r = border_get(owners, target);
		o->border = r == 0;
	}
	if (r == 0)
		r = set_and_note(owners, o, &there);
	pthread_mutex_unlock(&o->busy);
	owner_put(owners, o);
	return r;
}

bool
lock_owners_ends_write(struct lock_owners *owners,
		       const struct locks_target *target,
		       const struct flock *lock)
{
	struct range range = range_of(lock);
	struct owner *o;
	bool ends;

	if (lock->l_type == F_WRLCK || atomic_load(&owners->n_owners) == 0)
		return false;
	/* What a reader would conflict with. */
	range.type = F_RDLCK;
	pthread_mutex_lock(&owners->lock);
	o = find_locked(owners, target->ino, target->owner);
	ends = o && ranges_conflict(&o->held, &range);
	pthread_mutex_unlock(&owners->lock);
	return ends;
}

bool
lock_owners_take_fresh(struct lock_owners *owners,
		       const struct locks_target *target)
{
	struct border *border;
	bool fresh = true;

	if (!target->border)
		return true;
	pthread_mutex_lock(&owners->border_lock);
	border = find_border(owners, target->ino);
	if (border) {
		fresh = border->fresh;
		border->fresh = false;
	}
	pthread_mutex_unlock(&owners->border_lock);
	return fresh;
}

static bool
ranges_have(const struct ranges *held, const struct range *range)
{
	for (size_t i = 0; i < held->count; i++)
		if (held->items[i].first == range->first &&
		    held->items[i].last == range->last &&
		    held->items[i].type == range->type)
			return true;
	return false;
}

static pid_t
holder_of(struct lock_owners *owners, const struct locks_target *target,
	  const struct flock *conflict)
{
	const struct range range = range_of(conflict);
	pid_t pid = 0;

	pthread_mutex_lock(&owners->lock);
	for (struct owner *o = *bucket_of(owners, target->ino); o && pid == 0;
	     o = o->next)
		if (o->ino == target->ino && o->owner != target->owner &&
		    ranges_have(&o->held, &range))
			pid = o->pid;
	pthread_mutex_unlock(&owners->lock);
	return pid;
}

int
lock_owners_test(struct lock_owners *owners, const struct locks_target *target,
		 const struct flock *lock, struct flock *ret_lock)
{
	struct flock there = placed(target, lock);
	struct owner *o = owner_get(owners, target);
	int r;

	r = fcntl(o ? o->fd : target->fd, F_OFD_GETLK, &there) < 0 ? -errno : 0;
	if (o)
		owner_put(owners, o);
	if (r == 0 && there.l_type != F_UNLCK) {
		there.l_pid = holder_of(owners, target, &there);
		if (target->border)
			there.l_start -= BORDER_AWAY;
	} else if (r == 0 && target->border) {
		there = *lock;
		there.l_pid = 0;
		r = border_test(owners, target, &there);
	}
	if (r == 0)
		*ret_lock = there;
	return r;
}

size_t
lock_owners_blockers(struct lock_owners *owners,
		     const struct locks_target *target,
		     const struct flock *lock, uint64_t *ret_blockers,
		     size_t max)
{
	const struct flock there = placed(target, lock);
	const struct range range = range_of(&there);
	size_t count = 0;

	pthread_mutex_lock(&owners->lock);
	for (struct owner *o = *bucket_of(owners, target->ino);
	     o && count < max; o = o->next)
		if (o->ino == target->ino && o->owner != target->owner &&
		    ranges_conflict(&o->held, &range))
			ret_blockers[count++] = o->owner;
	pthread_mutex_unlock(&owners->lock);
	return count;
}

/* ---- life ---- */

int
lock_owners_new(struct lock_owners **ret_owners)
{
	struct lock_owners *owners = calloc(1, sizeof(*owners));

	if (!owners)
		return -ENOMEM;
	pthread_mutex_init(&owners->lock, NULL);
	pthread_mutex_init(&owners->border_lock, NULL);
	*ret_owners = owners;
	return 0;
}

struct lock_owners *
lock_owners_free(struct lock_owners *owners)
{
	if (!owners)
		return NULL;
	for (size_t i = 0; i < BUCKETS; i++) {
		struct owner *o;

		while ((o = owners->table[i])) {
			owners->table[i] = o->next;
			owner_free(owners, o);
		}
	}
	pthread_mutex_destroy(&owners->lock);
	pthread_mutex_destroy(&owners->border_lock);
	free(owners);
	return NULL;
}
