/* SPDX-License-Identifier: MIT */

/*
 * Two tables of requests and one of owners.
 *
 * `owners` holds one entry per (inode, lock owner) with its descriptor; closing
 * that drops all its locks.  Entries are counted, since an owner may close the
 * file in one thread and lock in another.
 *
 * `incoming` is what serving threads hand to the waiter thread: requests that
 * are granted and want the coherence step, and requests that must wait.  Those
 * that wait are then known to the waiter thread alone; an interrupt only sets a
 * flag in one.
 */

#include "fusefs/locks.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

#include "base/clock.h"

#define BUCKETS	     256u
#define WAITERS_MAX  4096
#define OWNERS_MAX   8192 /* each holds a descriptor */
#define PAUSE_MIN_NS 1000000
#define PAUSE_MAX_NS 16000000

struct owner {
	struct owner *next; /* bucket */
	uint64_t ino, owner;
	uint64_t fh;	    /* the handle that was used last */
	pid_t pid;	    /* for F_GETLK */
	int fd;		    /* an open file description of its own */
	unsigned int users; /* the table is one */
};

struct waiter {
	struct waiter *next;
	fuse_req_t req;
	struct locks *locks;
	struct locks_target target;
	struct flock lock;
	int flock_op; /* of flock(2), or 0: `lock` counts */
	bool granted;
	atomic_bool interrupted;
};

struct locks {
	struct locks_config config;
	pthread_t thread;
	pthread_mutex_t lock; /* over what follows, but the atomics */
	pthread_cond_t wake;
	struct owner *owners[BUCKETS];
	struct waiter *incoming, **incoming_last;
	bool kicked; /* something was unlocked or interrupted */
	bool ending;
	atomic_uint n_owners, n_waiters;
};

/* ---- owners ---- */

static struct owner **
bucket_of(struct locks *locks, uint64_t ino)
{
	uint64_t hash = ino * 0x9e3779b97f4a7c15u;

	return &locks->owners[(hash >> 32) % BUCKETS];
}

static struct owner *
find_locked(struct locks *locks, uint64_t ino, uint64_t owner)
{
	struct owner *o = *bucket_of(locks, ino);

	while (o && (o->ino != ino || o->owner != owner))
		o = o->next;
	return o;
}

/* The owner's entry, with a reference; NULL if there is none. */
static struct owner *
owner_get(struct locks *locks, const struct locks_target *target)
{
	struct owner *o;

	if (atomic_load(&locks->n_owners) == 0)
		return NULL;
	pthread_mutex_lock(&locks->lock);
	o = find_locked(locks, target->ino, target->owner);
	if (o) {
		o->users++;
		o->fh = target->fh;
	}
	pthread_mutex_unlock(&locks->lock);
	return o;
}

static void
owner_put(struct locks *locks, struct owner *o)
{
	bool last;

	pthread_mutex_lock(&locks->lock);
	last = --o->users == 0;
	pthread_mutex_unlock(&locks->lock);
	if (!last)
		return;
	close(o->fd);
	free(o);
}

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
	return own < 0 ? -errno : own;
}

static int
owner_make(struct locks *locks, const struct locks_target *target, pid_t pid,
	   struct owner **ret_owner)
{
	struct owner *o = calloc(1, sizeof(*o)), *there;
	struct owner **bucket = bucket_of(locks, target->ino);
	int fd;

	if (!o)
		return -ENOMEM;
	fd = atomic_load(&locks->n_owners) < OWNERS_MAX ? open_own(target->fd)
							: -ENOLCK;
	if (fd < 0) {
		free(o);
		return fd == -EMFILE || fd == -ENFILE ? -ENOLCK : fd;
	}
	*o = (struct owner){ .ino = target->ino,
			     .owner = target->owner,
			     .fh = target->fh,
			     .pid = pid,
			     .fd = fd,
			     .users = 2 };

	pthread_mutex_lock(&locks->lock);
	there = find_locked(locks, target->ino, target->owner);
	if (there) {
		there->users++;
	} else {
		o->next = *bucket;
		*bucket = o;
		atomic_fetch_add(&locks->n_owners, 1);
	}
	pthread_mutex_unlock(&locks->lock);
	if (there) {
		close(fd);
		free(o);
	}
	*ret_owner = there ? there : o;
	return 0;
}

static void
kick(struct locks *locks)
{
	if (atomic_load(&locks->n_waiters) == 0)
		return;
	pthread_mutex_lock(&locks->lock);
	locks->kicked = true;
	pthread_cond_signal(&locks->wake);
	pthread_mutex_unlock(&locks->lock);
}

/* Drops the entries of an inode that the owner, or the handle, ends. */
static void
drop(struct locks *locks, uint64_t ino, const uint64_t *owner,
     const uint64_t *fh)
{
	struct owner *gone = NULL, **link, *o;

	if (atomic_load(&locks->n_owners) == 0)
		return;
	pthread_mutex_lock(&locks->lock);
	link = bucket_of(locks, ino);
	while ((o = *link)) {
		if (o->ino != ino || (owner && o->owner != *owner) ||
		    (fh && o->fh != *fh)) {
			link = &o->next;
			continue;
		}
		*link = o->next;
		o->next = gone;
		gone = o;
		atomic_fetch_sub(&locks->n_owners, 1);
	}
	pthread_mutex_unlock(&locks->lock);

	while ((o = gone)) {
		gone = o->next;
		owner_put(locks, o);
	}
}

/* ---- one attempt ---- */

static int
set_lock(int fd, const struct flock *lock)
{
	struct flock own = *lock;

	own.l_pid = 0;
	if (fcntl(fd, F_OFD_SETLK, &own) == 0)
		return 0;
	return errno == EACCES ? -EAGAIN : -errno;
}

/* -EAGAIN: somebody else has it. */
static int
try_posix(struct locks *locks, const struct locks_target *target, pid_t pid,
	  const struct flock *lock)
{
	struct owner *o = owner_get(locks, target);
	int r;

	if (!o) {
		if (lock->l_type == F_UNLCK)
			return 0;
		r = owner_make(locks, target, pid, &o);
		if (r < 0)
			return r;
	}
	r = set_lock(o->fd, lock);
	owner_put(locks, o);
	return r;
}

static int
try_flock(const struct locks_target *target, int op)
{
	if (flock(target->fd, op | LOCK_NB) == 0)
		return 0;
	return errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

static int
try_waiter(struct waiter *w)
{
	if (w->flock_op)
		return try_flock(&w->target, w->flock_op);
	return try_posix(w->locks, &w->target, fuse_req_ctx(w->req)->pid,
			 &w->lock);
}

/* ---- the waiter thread ---- */

static void
answer(struct waiter *w, int r)
{
	struct locks *locks = w->locks;

	if (r == 0 && locks->config.invalidate)
		locks->config.invalidate(locks->config.data, w->target.ino);
	/* From here on no interrupt uses the waiter. */
	fuse_req_interrupt_func(w->req, NULL, NULL);
	fuse_reply_err(w->req, -r);
	free(w);
	atomic_fetch_sub(&locks->n_waiters, 1);
}

/* Tries all of the list in order; those still to wait stay in it. */
static void
try_all(struct waiter **list, bool ending)
{
	struct waiter **link = list, *w;

	while ((w = *link)) {
		int r = w->granted ? 0 : -EAGAIN;

		/* The kernel makes a restart of EINTR, which needs a signal. */
		if (r != 0 && ending)
			r = -ENOTCONN;
		else if (r != 0 && atomic_load(&w->interrupted))
			r = -EINTR;
		else if (r != 0)
			r = try_waiter(w);
		if (r == -EAGAIN) {
			link = &w->next;
			continue;
		}
		*link = w->next;
		answer(w, r);
	}
}

static void
pause_locked(struct locks *locks, int64_t ns)
{
	struct timespec until;
	int64_t at = clock_mono_ns() + ns;

	until.tv_sec = at / 1000000000;
	until.tv_nsec = at % 1000000000;
	(void)pthread_cond_timedwait(&locks->wake, &locks->lock, &until);
}

static void *
waiter_main(void *data)
{
	struct locks *locks = data;
	struct waiter *waiting = NULL, **last;
	int64_t pause = PAUSE_MIN_NS;
	bool ending = false;

	while (!ending) {
		pthread_mutex_lock(&locks->lock);
		if (waiting && !locks->incoming && !locks->kicked &&
		    !locks->ending)
			pause_locked(locks, pause);
		while (!waiting && !locks->incoming && !locks->ending)
			pthread_cond_wait(&locks->wake, &locks->lock);
		pause *= 2;
		if (locks->kicked || locks->incoming)
			pause = PAUSE_MIN_NS;
		if (pause > PAUSE_MAX_NS)
			pause = PAUSE_MAX_NS;
		for (last = &waiting; *last; last = &(*last)->next)
			;
		*last = locks->incoming;
		locks->incoming = NULL;
		locks->incoming_last = &locks->incoming;
		locks->kicked = false;
		ending = locks->ending;
		pthread_mutex_unlock(&locks->lock);

		try_all(&waiting, ending);
	}
	return NULL;
}

static void
on_interrupt(fuse_req_t req, void *data)
{
	struct waiter *w = data;

	(void)req;
	atomic_store(&w->interrupted, true);
	kick(w->locks);
}

/* Hands a request to the waiter thread. */
static void
hand_over(struct locks *locks, const struct waiter *request)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w || atomic_load(&locks->n_waiters) >= WAITERS_MAX) {
		free(w);
		fuse_reply_err(request->req, ENOLCK);
		return;
	}
	w->req = request->req;
	w->locks = locks;
	w->target = request->target;
	w->lock = request->lock;
	w->flock_op = request->flock_op;
	w->granted = request->granted;
	atomic_fetch_add(&locks->n_waiters, 1);
	if (!w->granted)
		fuse_req_interrupt_func(w->req, on_interrupt, w);

	pthread_mutex_lock(&locks->lock);
	*locks->incoming_last = w;
	locks->incoming_last = &w->next;
	pthread_cond_signal(&locks->wake);
	pthread_mutex_unlock(&locks->lock);
}

/* ---- requests ---- */

void
locks_setlk(struct locks *locks, fuse_req_t req,
	    const struct locks_target *target, const struct flock *lock,
	    int sleep)
{
	struct waiter w = { .req = req, .target = *target, .lock = *lock };
	int r = try_posix(locks, target, fuse_req_ctx(req)->pid, lock);

	if (r == 0 && lock->l_type == F_UNLCK) {
		kick(locks);
		fuse_reply_err(req, 0);
		return;
	}
	w.granted = r == 0;
	if (r == 0 || (r == -EAGAIN && sleep))
		hand_over(locks, &w);
	else
		fuse_reply_err(req, -r);
}

void
locks_flock(struct locks *locks, fuse_req_t req,
	    const struct locks_target *target, int op)
{
	struct waiter w = { .req = req,
			    .target = *target,
			    .flock_op = op & ~LOCK_NB };
	int r = try_flock(target, w.flock_op);

	if (r == 0 && w.flock_op == LOCK_UN) {
		kick(locks);
		fuse_reply_err(req, 0);
		return;
	}
	w.granted = r == 0;
	if (r == 0 || (r == -EAGAIN && !(op & LOCK_NB)))
		hand_over(locks, &w);
	else
		fuse_reply_err(req, r == -EAGAIN ? EWOULDBLOCK : -r);
}

/*
 * The kernel does not say who holds an OFD lock.  The holder inside is the one
 * whose own descriptor does not see the conflict.
 */
static pid_t
find_holder(struct locks *locks, const struct locks_target *target,
	    const struct flock *conflict)
{
	pid_t pid = 0;

	pthread_mutex_lock(&locks->lock);
	for (struct owner *o = *bucket_of(locks, target->ino); o && pid == 0;
	     o = o->next) {
		struct flock probe = *conflict;

		if (o->ino != target->ino || o->owner == target->owner)
			continue;
		probe.l_pid = 0;
		probe.l_type = F_WRLCK;
		if (fcntl(o->fd, F_OFD_GETLK, &probe) == 0 &&
		    probe.l_type == F_UNLCK)
			pid = o->pid;
	}
	pthread_mutex_unlock(&locks->lock);
	return pid;
}

void
locks_getlk(struct locks *locks, fuse_req_t req,
	    const struct locks_target *target, const struct flock *lock)
{
	struct owner *o = owner_get(locks, target);
	struct flock answer_lock = *lock;
	int r;

	answer_lock.l_pid = 0;
	r = fcntl(o ? o->fd : target->fd, F_OFD_GETLK, &answer_lock) < 0 ? errno
									 : 0;
	if (o)
		owner_put(locks, o);
	if (r != 0) {
		fuse_reply_err(req, r);
		return;
	}
	if (answer_lock.l_type != F_UNLCK && answer_lock.l_pid <= 0)
		answer_lock.l_pid = find_holder(locks, target, &answer_lock);
	fuse_reply_lock(req, &answer_lock);
}

void
locks_flush(struct locks *locks, uint64_t ino, uint64_t owner)
{
	drop(locks, ino, &owner, NULL);
	kick(locks);
}

void
locks_release(struct locks *locks, uint64_t ino, uint64_t fh)
{
	drop(locks, ino, NULL, &fh);
	kick(locks);
}

/* ---- life ---- */

int
locks_new(const struct locks_config *config, struct locks **ret_locks)
{
	struct locks *locks = calloc(1, sizeof(*locks));
	pthread_condattr_t attr;
	int r;

	if (!locks)
		return -ENOMEM;
	locks->config = *config;
	locks->incoming_last = &locks->incoming;
	pthread_mutex_init(&locks->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&locks->wake, &attr);
	pthread_condattr_destroy(&attr);
	r = pthread_create(&locks->thread, NULL, waiter_main, locks);
	if (r != 0) {
		pthread_cond_destroy(&locks->wake);
		pthread_mutex_destroy(&locks->lock);
		free(locks);
		return -r;
	}
	*ret_locks = locks;
	return 0;
}

struct locks *
locks_free(struct locks *locks)
{
	if (!locks)
		return NULL;
	pthread_mutex_lock(&locks->lock);
	locks->ending = true;
	pthread_cond_signal(&locks->wake);
	pthread_mutex_unlock(&locks->lock);
	(void)pthread_join(locks->thread, NULL);

	for (size_t i = 0; i < BUCKETS; i++) {
		struct owner *o;

		while ((o = locks->owners[i])) {
			locks->owners[i] = o->next;
			close(o->fd);
			free(o);
		}
	}
	pthread_cond_destroy(&locks->wake);
	pthread_mutex_destroy(&locks->lock);
	free(locks);
	return NULL;
}
