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
	/* Somebody inside is about to watch for changes. */
	void (*watched)(void *data);
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

/*
 * A command of a standing world: its mount namespace differs from the world's
 * in nothing but its /proc, so that its names are the world's; and it may
 * have a filter of its own.
 */
struct observer_home {
	uint64_t mnt_dev, mnt_ino;
	uint64_t root_mount; /* of "/" there */
};

/*
 * `listener`: of its own filter, taken in any case; -1: it has the world's.
 * Errors: -ENOMEM, -EINVAL (it is none, or too many).
 */
int observer_admit(struct observer *observer, const struct observer_home *home,
		   int listener);
/* Nothing of it is left. */
void observer_dismiss(struct observer *observer,
		      const struct observer_home *home);

/* The page of struct wire_pace, for whoever stands in for us; borrowed. */
int observer_pace_fd(const struct observer *observer);

/*
 * A connect(2), or a call that makes watches and has gone on, as a struct
 * seccomp_notif, that another has received in our place;
 * `listener`: of a command, as admitted; -1: the world's.  Thread: any.
 */
void observer_take(struct observer *observer, int listener, const void *notif);

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
	uint64_t stood_in;   /* calls that another let go on in our place */
};
void observer_stats(const struct observer *observer,
		    struct observer_stats *ret_stats);

#endif
