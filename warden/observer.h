/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_OBSERVER_H
#define WARDEN_OBSERVER_H

/*
 * The observer of what is refused outside the FUSE mount.
 *
 * There the kernel refuses (read-only mounts) and tells nobody.  Every call of
 * an inmate that could mutate something is therefore notified by the world's
 * seccomp filter before it runs.  The observer predicts whether the policy
 * makes the kernel refuse it, puts the denial on record, and lets the call
 * continue: the verdict stays the kernel's, so a race can spoil a record but
 * never open the fence.  Not continued: connect(2), which the usher performs
 * on a copy of its arguments, and opening the host's FIFOs and devices for
 * writing, which a read-only mount does not stop.
 *
 * Not recorded: what FUSE records itself, what would fail without a fence too
 * (ENOENT, ENOTDIR, EEXIST, EISDIR), and calls made in a mount namespace of
 * the inmate's own (a nested sandbox: what is refused there is refused by its
 * own view).
 *
 * Thread: start and stop on the loop; two threads of its own work in between.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/errmsg.h"
#include "policy/denial.h"
#include "policy/policy.h"

struct observer;

/*
 * Strings and objects behind pointers are borrowed until observer_stop().
 * The callback is called on the observer's threads, two at once.
 */
struct observer_config {
	int listener;	/* seccomp listener; stays the caller's */
	int usher_sock; /* the "world" socket, now the observer's to read */
	pid_t init_pid; /* as the host sees it */
	/* The policy in force, as a reference that the observer releases. */
	struct policy *(*policy_get)(void *data);
	void *data;
	struct denials *denials;
};

/*
 * Starts the threads.  On success *ret_observer is the caller's; end with
 * observer_stop().  Errors, with a sentence: -ENOMEM, -EINVAL (a listener that
 * is none), -EAGAIN (threads).
 */
int observer_start(const struct observer_config *config,
		   struct observer **ret_observer, struct errmsg *why);

/*
 * Stops the threads: a call in hand is answered; a connect that the usher has
 * not answered is refused.  NULL is fine; returns NULL.
 */
struct observer *observer_stop(struct observer *observer);

/* Totals; readable at any time from any thread. */
struct observer_stats {
	uint64_t notified;   /* calls seen, connect included */
	uint64_t looked;     /* of these: needed a look at the file system */
	uint64_t recorded;   /* denials put on record */
	uint64_t lost;	     /* denials that the spool did not take */
	uint64_t refused;    /* calls answered with an errno by us */
	uint64_t connects;   /* connect(2) calls */
	uint64_t unreadable; /* calls whose arguments could not be read */
	uint64_t busy_ns;    /* time spent on calls, in all */
	uint64_t longest_ns; /* the longest one */
	uint64_t since_ns;   /* CLOCK_MONOTONIC start of the call in hand; 0 */
};
void observer_stats(const struct observer *observer,
		    struct observer_stats *ret_stats);

#endif
