/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_OBSERVER_PRIV_H
#define WARDEN_OBSERVER_PRIV_H

/*
 * The parts of the observer:
 *
 *   observer.c          threads, the loop on the listener, records, counters
 *   observer_calls.c    which arguments of which call mean what
 *   observer_look.c     which object a name is, looked up as the inmate would
 *   observer_judge.c    what the kernel will say to the call, and why
 *   observer_connect.c  the second thread: connect(2) through the usher
 */

#include <limits.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "base/wire.h"
#include "warden/observer.h"

/* ---- observer_calls.c ---- */

enum call_kind {
	CALL_OPEN,
	CALL_NEW,    /* makes the name: mkdir, mknod, symlink */
	CALL_GONE,   /* removes the name: unlink, rmdir */
	CALL_CHANGE, /* changes what the name is: chmod, truncate, … */
	CALL_RENAME,
	CALL_LINK,
	CALL_CONNECT,
};

struct call_name {
	int dirfd;
	bool follow;	  /* a symlink in the last place is followed */
	bool empty_is_fd; /* "" is what dirfd is */
	char path[PATH_MAX];
};

/* One notified call, its arguments copied out of the inmate. */
struct call {
	enum call_kind kind;
	enum policy_op op;
	pid_t pid; /* of the thread */
	uint64_t flags;
	struct call_name name, name2; /* name2: RENAME and LINK */
};

/*
 * Decodes a notification.  Returns 1 with a call that may mutate, 0 for one
 * that cannot (an open for reading, a call not known here), or a negative errno
 * when the inmate's memory does not tell.  connect is left undecoded but for
 * its kind.
 */
int call_decode(const struct seccomp_notif *notif, struct call *ret_call);

/* The number is that of inotify_init or the like. */
bool call_watches(int nr);

/* Copies from the inmate's memory; all of it or a negative errno. */
int call_read(pid_t pid, uint64_t address, void *data, size_t len);

/* ---- observer_look.c ---- */

enum area_kind {
	AREA_FUSE, /* served and recorded by fusefs */
	AREA_RW,   /* a directory of the host, writable in some modes */
	AREA_TMP,  /* private to the world */
};

struct area {
	enum area_kind kind;
	char *path;
	size_t len;
	int fd;	       /* O_PATH; -1: not opened (yet) */
	char link[12]; /* name of `fd` in look.own_fds */
};

/* Which places exist in the world.  Thread: the observer's first. */
struct look {
	struct area *areas;
	size_t n_areas;
	int own_fds; /* /proc/self/fd */
	/* The world's mount namespace; zero until the usher has told. */
	_Atomic uint64_t ns_dev, ns_ino;
	pthread_mutex_t homes_lock; /* guards those of commands: */
	struct observer_home *homes;
	size_t n_homes, homes_room;
};

int look_init(struct look *look, const struct policy *policy);
void look_fini(struct look *look);

/* Thread: any. */
int look_add_home(struct look *look, const struct observer_home *home);
void look_remove_home(struct look *look, const struct observer_home *home);

/* What a name turned out to be. */
struct place {
	char path[PATH_MAX]; /* absolute, without symlinks */
	const struct area *area;
	bool slash;   /* the name ended in one */
	bool settled; /* in an area, and no more is known or wanted */
	bool exists;
	struct stat st;	      /* where exists */
	bool parent_exists;   /* where it does not */
	dev_t parent_dev;     /* of the directory it is or would be in */
	bool readonly, nodev; /* the mount */
};

/* Where no look at the object is needed. */
struct look_rule {
	bool (*allows)(const struct look_rule *rule, const char *path);
	const struct policy *policy;
	enum policy_op op;
	bool always_look;
};

/*
 * Finds `name` as thread `pid` would.  In an area that the rule allows, as in
 * the FUSE roots, it is enough that no symlink leads out (`settled`).
 * Returns 0, or a negative errno: the call will fail by itself, or nothing can
 * be known.  `path` is set when it is -EACCES.
 */
int look_up(struct look *look, pid_t pid, const struct call_name *name,
	    const struct look_rule *rule, struct place *ret_place);

/* The inmate has a mount namespace of its own: its names are not ours. */
bool look_is_nested(struct look *look, pid_t pid);

/* ---- observer_judge.c ---- */

struct finding {
	bool denied;	/* to be put on record */
	bool forbidden; /* the kernel would let it: answer with the errno */
	int error;	/* positive */
	enum policy_op op;
	struct policy_verdict verdict;
	struct place place, place2;
	bool has_place2;
};

void judge_call(struct look *look, const struct policy *policy,
		const struct call *call, struct finding *ret_finding);

/* ---- observer.c ---- */

#define OBSERVER_ADMITTED 256 /* listeners that the watcher has yet to take */

/*
 * Ids of notifications are unique for one listener only: what the usher is
 * told is a token.
 */
struct pending {
	uint64_t token; /* 0: free */
	uint64_t id;	/* of the notification */
	int listener;
	pid_t pid;
	bool sent;
	int fd;
	uint32_t len;
	unsigned char address[WIRE_ADDRESS];
};

struct observer {
	struct observer_config config;
	struct look look;
	pthread_t watcher, connector;
	int stop_event;		    /* readable for ever once we stop */
	int connect_event;	    /* counts what the watcher handed over */
	int admit_event;	    /* counts what waits in `admitted` */
	pthread_mutex_t admit_lock; /* guards `admitted` */
	int admitted[OBSERVER_ADMITTED];
	size_t n_admitted;
	/* Of the watcher: after the two events, a listener each. */
	struct pollfd *pfds;
	size_t n_pfds, pfds_room;
	int pace_fd; /* of `pace` */
	struct wire_pace *pace;
	int delay_ms;	   /* for tests: before each call is looked at */
	uint64_t stood_in; /* of `pace`, as the watcher saw it last */
	atomic_bool stopping, watcher_ended, connector_ended;
	pthread_mutex_t pending_lock; /* guards `pending` and `last_token` */
	uint64_t last_token;
	struct pending pending[LIMIT_CONNECTS];
	/* Scratch of the watcher; too large for a stack. */
	struct call call;
	struct finding finding;
	_Atomic uint64_t notified, looked, recorded, lost, refused, connects,
		unreadable, busy_ns, longest_ns, since_ns;
};

/* Whether the call is still waited for: its thread is the one that made it. */
bool observer_waits(int listener, uint64_t id);

/* Answers a notification: an errno, or 0 with `flags`. */
void observer_answer(struct observer *o, int listener, uint64_t id, int error);

/* Fills the common part and puts the denial on record. */
void observer_record(struct observer *o, const struct policy *policy,
		     struct denial *denial);

/* ---- observer_connect.c ---- */

void *connector_main(void *data);
void connector_take(struct observer *o, int listener,
		    const struct seccomp_notif *notif);
/* A listener is about to be closed: its calls have nobody to answer. */
void connector_drop(struct observer *o, int listener);
/* Tells the usher of a command's root, or that it is gone. */
void connector_home(struct observer *o, const struct observer_home *home,
		    bool there);
void connector_setup(struct observer *o, const struct policy *policy);

#endif
