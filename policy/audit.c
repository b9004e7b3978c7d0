/* SPDX-License-Identifier: MIT */

/*
 * The audit thread: moves what is on record in the spool into the store.
 *
 * It sleeps until a run is dirty, waits a little so that a burst is one
 * transaction, then writes the dirty runs in batches.  A batch that fails goes
 * back to the front of the list, in order: ids follow seqs.  Only this thread
 * gives room in the spool back, so the records of a batch stay while they are
 * read without the lock.
 *
 * While the store does not take, the thread tries again once a second; the
 * spool keeps everything until then.
 */

#include "policy/denial_priv.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define BATCH	    256
#define GATHER_NS   30000000LL
#define RETRY_NS    1000000000LL
#define NS_OF_A_SEC 1000000000LL

void
audit_mark_dirty(struct denials *denials, uint64_t seq)
{
	struct denial_run *run = denial_run_of(denials, seq);

	run->dirty = true;
	run->dirty_next = 0;
	if (denials->dirty_tail)
		denial_run_of(denials, denials->dirty_tail)->dirty_next = seq;
	else
		denials->dirty_head = seq;
	denials->dirty_tail = seq;
	denials->n_dirty++;
	if (!denials->hurry && spool_end(denials->spool) - denials->gathered >
				       spool_capacity(denials->spool) / 8) {
		denials->hurry = true;
		pthread_cond_signal(&denials->wake);
	} else if (denials->idle) {
		pthread_cond_signal(&denials->wake);
	}
	denials->idle = false;
}

/* Takes the oldest dirty runs off the list.  Lock held. */
static size_t
take_batch(struct denials *denials, uint64_t seqs[BATCH], size_t most,
	   struct denial batch[BATCH])
{
	size_t n = 0;

	while (denials->dirty_head && n < most) {
		uint64_t seq = denials->dirty_head;
		struct denial_run *run = denial_run_of(denials, seq);

		denials->dirty_head = run->dirty_next;
		if (!denials->dirty_head)
			denials->dirty_tail = 0;
		denials->n_dirty--;
		run->dirty = false;
		run->taken = true;
		seqs[n] = seq;
		batch[n].id = run->id;
		n++;
	}
	return n;
}

/* Puts a batch that could not be written back, in front.  Lock held. */
static void
put_back(struct denials *denials, const uint64_t seqs[BATCH], size_t n)
{
	for (size_t i = n; i-- > 0;) {
		struct denial_run *run = denial_run_of(denials, seqs[i]);

		run->taken = false;
		if (run->dirty) /* hit again meanwhile: it is in the list */
			continue;
		run->dirty = true;
		run->dirty_next = denials->dirty_head;
		denials->dirty_head = seqs[i];
		if (!denials->dirty_tail)
			denials->dirty_tail = seqs[i];
		denials->n_dirty++;
	}
}

/* Lock held. */
static void
settle(struct denials *denials, const uint64_t seqs[BATCH],
       const struct denial batch[BATCH], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct denial_run *run = denial_run_of(denials, seqs[i]);

		run->taken = false;
		run->id = batch[i].id;
		run->stored = batch[i].count;
		if (seqs[i] <= denials->n_firsts)
			denials->firsts[seqs[i] - 1].id = run->id;
	}
}

/*
 * Gives room back: that of runs that have ended, and of others too when the
 * spool fills (their next hit begins a new row).  Lock held.
 */
static void
release_room(struct denials *denials)
{
	int64_t now = clock_mono_ns();

	while (denials->first < denials->next) {
		struct denial_run *run = denial_run_of(denials, denials->first);
		bool full = spool_used(denials->spool) >
			    spool_capacity(denials->spool) / 2;

		if (run->dirty || run->taken || run->stored != run->count ||
		    (!full && now - run->last_mono_ns <= DENIAL_RUN_NS))
			break;
		denials->first++;
		spool_release(denials->spool, run->offset);
	}
}

/* Says how many refusals found no room, when that number has grown. */
static int
tell_lost(struct denials *denials)
{
	uint64_t lost = spool_lost(denials->spool);
	uint64_t untold = spool_lost_untold(denials->spool);
	char body[64];
	int r;

	if (untold == 0)
		return 0;
	(void)snprintf(body, sizeof(body), "{\"count\":%llu}",
		       (unsigned long long)untold);
	r = store_event(denials->store, denials->config.session,
			denials->config.world, "denials.lost", body);
	if (r == 0)
		spool_tell_lost(denials->spool, lost);
	return r;
}

static int
write_batch(struct denials *denials, struct denial *batch, size_t n)
{
	int r = 0;

	if (!denials->store) {
		r = store_open(denials->config.db_path, &denials->store, NULL);
		if (r < 0)
			return r;
		(void)store_prune(denials->store, NULL);
	}
	r = store_put_denials(denials->store, batch, n);
	if (r == 0)
		r = tell_lost(denials);
	/* A damaged or replaced file is opened afresh next time. */
	if (r < 0)
		denials->store = store_close(denials->store);
	return r;
}

/*
 * Writes at most `most` dirty runs.  Returns how many, or an error.  Lock held
 * at call and return, not in between.
 */
static ssize_t
move_batch(struct denials *denials, struct denial *batch, size_t most)
{
	uint64_t seqs[BATCH], ids[BATCH];
	size_t n;
	int r;

	n = take_batch(denials, seqs, most < BATCH ? most : BATCH, batch);
	pthread_mutex_unlock(&denials->lock);
	for (size_t i = 0; i < n; i++) {
		/* The offset of a taken run does not change. */
		ids[i] = batch[i].id;
		spool_read(denials->spool,
			   denial_run_of(denials, seqs[i])->offset, &batch[i]);
		batch[i].id = ids[i];
	}
	r = write_batch(denials, batch, n);
	pthread_mutex_lock(&denials->lock);
	if (r < 0) {
		put_back(denials, seqs, n);
		return r;
	}
	settle(denials, seqs, batch, n);
	release_room(denials);
	return (ssize_t)n;
}

/* What is dirty now goes into the store.  Lock held at call and return. */
static void
move_all(struct denials *denials, struct denial *batch)
{
	uint64_t left = denials->n_dirty;
	ssize_t n;

	denials->gathered = spool_end(denials->spool);
	denials->hurry = false;
	if (left == 0 && spool_lost_untold(denials->spool) == 0)
		return;
	/* Runs that become dirty meanwhile wait for the next pass. */
	do {
		n = move_batch(denials, batch, left);
		if (n < 0)
			break;
		left -= (uint64_t)n;
	} while (left > 0 && denials->dirty_head);
	denials->degraded = n < 0;
	if (n >= 0 && denials->config.notify) {
		pthread_mutex_unlock(&denials->lock);
		denials->config.notify(denials->config.data);
		pthread_mutex_lock(&denials->lock);
	}
}

/* Sleeps until woken for a reason or `ns` have passed.  Lock held. */
static void
pause_for(struct denials *denials, int64_t ns, bool until_hurry)
{
	int64_t end = clock_mono_ns() + ns;
	const struct timespec until = { .tv_sec = end / NS_OF_A_SEC,
					.tv_nsec = end % NS_OF_A_SEC };

	while (!denials->stopping &&
	       denials->flush_done == denials->flush_wanted &&
	       !(until_hurry && denials->hurry))
		if (pthread_cond_timedwait(&denials->wake, &denials->lock,
					   &until))
			return;
}

static void
wait_for_work(struct denials *denials)
{
	while (!denials->stopping && !denials->dirty_head &&
	       denials->flush_done == denials->flush_wanted) {
		denials->idle = true;
		pthread_cond_wait(&denials->wake, &denials->lock);
	}
	denials->idle = false;
	if (denials->degraded)
		pause_for(denials, RETRY_NS, false);
	else
		pause_for(denials, GATHER_NS, true);
}

static void *
audit_main(void *data)
{
	struct denials *denials = data;
	struct denial *batch = calloc(BATCH, sizeof(*batch));
	bool last = false;

	pthread_mutex_lock(&denials->lock);
	while (!last) {
		uint64_t wanted;

		wait_for_work(denials);
		last = denials->stopping;
		wanted = denials->flush_wanted;
		if (batch)
			move_all(denials, batch);
		else
			denials->degraded = true;
		denials->flush_done = wanted;
		pthread_cond_broadcast(&denials->flushed);
	}
	pthread_mutex_unlock(&denials->lock);
	denials->store = store_close(denials->store);
	free(batch);
	return NULL;
}

int
audit_start(struct denials *denials)
{
	sigset_t all, old;
	int r;

	/* Signals are for the loop. */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&denials->thread, NULL, audit_main, denials);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	denials->has_thread = r == 0;
	return -r;
}

void
audit_stop(struct denials *denials)
{
	if (!denials->has_thread)
		return;
	pthread_mutex_lock(&denials->lock);
	denials->stopping = true;
	pthread_cond_signal(&denials->wake);
	pthread_mutex_unlock(&denials->lock);
	(void)pthread_join(denials->thread, NULL);
	denials->has_thread = false;
}
