/* SPDX-License-Identifier: MIT */

/*
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
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"

#define PAUSE_MIN_NS  1000000
#define PAUSE_MAX_NS  16000000
#define BLOCKERS_MAX  64
#define FOLLOWERS_MAX 64

enum trail {
	TRAIL_NONE,
	TRAIL_SEEN,
	TRAIL_FOLLOWED,
};

struct waiter {
	struct waiter *next;
	fuse_req_t req;
	struct locks *locks;
	struct locks_target target;
	struct flock lock;
	int flock_op; /* of flock(2), or 0: `lock` counts */
	bool granted;
	bool stores; /* what is stored by mappings goes to the disk first */
	bool once;   /* does not wait */
	bool tried;  /* by the waiter thread */
	enum trail trail;
	atomic_bool interrupted;
};

struct locks {
	struct locks_config config;
	pthread_t thread;
	pthread_mutex_t lock; /* over what follows, but the atomics */
	pthread_cond_t wake;
	struct lock_owners *owners;
	struct waiter *incoming, **incoming_last;
	bool kicked; /* something was unlocked or interrupted */
	bool ending;
	atomic_uint n_waiters;

	/* The waiter thread's own. */
	unsigned int round;
	bool ended;
};

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

/* ---- one attempt ---- */

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
	return lock_owners_set(w->locks->owners, &w->target,
			       fuse_req_ctx(w->req)->pid, &w->lock);
}

/* ---- deadlocks ---- */

/*
 * Whoever waits as this owner is on the trail; one that has not been tried may
 * not have to wait, and if it has, it closes the circle.
 */
static void
see_waits_of(struct waiter *list, uint64_t owner)
{
	for (; list; list = list->next)
		if (list->tried && !list->flock_op &&
		    list->target.owner == owner && list->trail == TRAIL_NONE)
			list->trail = TRAIL_SEEN;
}

static struct waiter *
follow_next(struct waiter *list)
{
	while (list && list->trail != TRAIL_SEEN)
		list = list->next;
	if (list)
		list->trail = TRAIL_FOLLOWED;
	return list;
}

/*
 * Whether somebody whom this one waits for waits, directly or through others,
 * for this one.
 */
static bool
closes_circle(struct locks *locks, struct waiter *list, struct waiter *w)
{
	uint64_t blockers[BLOCKERS_MAX];
	struct waiter *at = list;

	for (; at; at = at->next)
		at->trail = TRAIL_NONE;
	w->trail = TRAIL_SEEN;
	for (int i = 0; i < FOLLOWERS_MAX && (at = follow_next(list)); i++) {
		size_t n =
			lock_owners_blockers(locks->owners, &at->target,
					     &at->lock, blockers, BLOCKERS_MAX);

		for (size_t k = 0; k < n; k++) {
			if (blockers[k] == w->target.owner)
				return true;
			see_waits_of(list, blockers[k]);
		}
	}
	return false;
}

/* ---- the waiter thread ---- */

static bool
is_unlock(const struct waiter *w)
{
	return w->flock_op ? w->flock_op == LOCK_UN : w->lock.l_type == F_UNLCK;
}

static void
invalidate(const struct waiter *w)
{
	const struct locks_config *config = &w->locks->config;

	if (config->invalidate && !w->target.shared)
		config->invalidate(config->data, w->target.ino,
				   w->target.border);
}

static void
answer(struct waiter *w, int r)
{
	struct locks *locks = w->locks;

	if (r == 0 && is_unlock(w))
		kick(locks);
	else if (r == 0 && (w->flock_op ||
			    lock_owners_take_fresh(locks->owners, &w->target)))
		invalidate(w);
	/* From here on no interrupt uses the waiter. */
	fuse_req_interrupt_func(w->req, NULL, NULL);
	fuse_reply_err(w->req, -r);
	free(w);
	atomic_fetch_sub(&locks->n_waiters, 1);
}

/*
 * One more attempt for one that waits; -EAGAIN: it still does.  `look`: for a
 * circle too.  A new one is always looked at, since it may close one; the
 * others in turn, since what blocks them changes.
 */
static int
try_again(struct locks *locks, struct waiter *list, struct waiter *w, bool look)
{
	int r;

	/* The kernel makes a restart of EINTR, which needs a signal. */
	if (locks->ended)
		return -ENOTCONN;
	if (atomic_load(&w->interrupted))
		return -EINTR;
	if (w->stores)
		invalidate(w);
	w->stores = false;
	r = try_waiter(w);
	if (r == -EAGAIN && !w->flock_op && !w->once && (look || !w->tried) &&
	    closes_circle(locks, list, w))
		r = -EDEADLK;
	w->tried = true;
	return r;
}

/* Tries all of the list in order; those still to wait stay in it. */
static void
try_all(struct locks *locks, struct waiter **list)
{
	unsigned int n = atomic_load(&locks->n_waiters);
	unsigned int turn = n > 0 ? locks->round++ % n : 0, i = 0;
	struct waiter **link = list, *w;

	for (; (w = *link); i++) {
		int r = w->granted ? 0 : try_again(locks, *list, w, i == turn);

		if (r == -EAGAIN && !w->once) {
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

	while (!locks->ended) {
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
		locks->ended = locks->ending;
		pthread_mutex_unlock(&locks->lock);

		try_all(locks, &waiting);
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

/* Hands a request to the waiter thread; false: it has too many. */
static bool
hand_over(struct locks *locks, const struct waiter *request)
{
	struct waiter *w = malloc(sizeof(*w));

	if (!w || atomic_load(&locks->n_waiters) >= LIMIT_LOCK_WAITERS) {
		free(w);
		return false;
	}
	*w = *request;
	w->locks = locks;
	atomic_fetch_add(&locks->n_waiters, 1);
	if (!w->granted && !w->once)
		fuse_req_interrupt_func(w->req, on_interrupt, w);

	pthread_mutex_lock(&locks->lock);
	*locks->incoming_last = w;
	locks->incoming_last = &w->next;
	pthread_cond_signal(&locks->wake);
	pthread_mutex_unlock(&locks->lock);
	return true;
}

/* ---- requests ---- */

/* The first attempt, here or, where it costs time, on the waiter thread. */
static void
serve(struct locks *locks, struct waiter *w)
{
	int r;

	w->locks = locks;
	if (w->stores && hand_over(locks, w))
		return;
	r = try_waiter(w);
	w->granted = r == 0;
	if (r == 0 && is_unlock(w))
		kick(locks);
	else if ((r == 0 && !w->target.shared) || (r == -EAGAIN && !w->once))
		r = hand_over(locks, w) ? 1 : -ENOLCK;
	if (r <= 0)
		fuse_reply_err(w->req, -r);
}

void
locks_setlk(struct locks *locks, fuse_req_t req,
	    const struct locks_target *target, const struct flock *lock,
	    int sleep)
{
	struct waiter w = {
		.req = req,
		.target = *target,
		.lock = *lock,
		.once = !sleep,
		.stores = !target->border && !target->through &&
			  lock_owners_ends_write(locks->owners, target, lock),
	};

	serve(locks, &w);
}

void
locks_flock(struct locks *locks, fuse_req_t req,
	    const struct locks_target *target, int op)
{
	struct waiter w = {
		.req = req,
		.target = *target,
		.flock_op = op & ~LOCK_NB,
		.once = op & LOCK_NB,
		/* Which kind it had is not known. */
		.stores = !(op & LOCK_EX) && !target->through,
	};

	serve(locks, &w);
}

void
locks_getlk(struct locks *locks, fuse_req_t req,
	    const struct locks_target *target, const struct flock *lock)
{
	struct flock found;
	int r = lock_owners_test(locks->owners, target, lock, &found);

	if (r < 0)
		fuse_reply_err(req, -r);
	else
		fuse_reply_lock(req, &found);
}

void
locks_flush(struct locks *locks, uint64_t ino, uint64_t owner)
{
	lock_owners_drop(locks->owners, ino, &owner, NULL);
	kick(locks);
}

void
locks_release(struct locks *locks, uint64_t ino, uint64_t fh)
{
	lock_owners_drop(locks->owners, ino, NULL, &fh);
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
	r = lock_owners_new(&locks->owners);
	if (r < 0) {
		free(locks);
		return r;
	}
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
		lock_owners_free(locks->owners);
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

	lock_owners_free(locks->owners);
	pthread_cond_destroy(&locks->wake);
	pthread_mutex_destroy(&locks->lock);
	free(locks);
	return NULL;
}
