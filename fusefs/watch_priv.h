/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_WATCH_PRIV_H
#define FUSEFS_WATCH_PRIV_H

/*
 * What the parts of the watch share: watch_mark.c (the kernel's
 * marks), watch.c (who is watched, and time-outs), watch_read.c (the thread that reads events) and watch_event.c (what one
 * event means).
 */

#include "fusefs/fs_priv.h"
#include "fusefs/watch_map.h"

/* One device of the tree; by fs_dev_index(). */
struct watch_dev {
	bool known;
	bool untold; /* the kernel tells of no changes there */
	uint64_t fsid;
};

struct fs_watch {
	int fan, ino;	  /* -1: not to be had */
	int wake;	  /* eventfd */
	int mounts;	  /* /proc/self/mountinfo, for its poll(2) */
	bool mounts_told; /* poll(2) says it once */
	uint64_t mounts_hash;
	pthread_t thread;
	bool running;
	atomic_bool lost;
	atomic_bool ending;
	/* Bytes of inotify's smallest event: a read takes all that is there. */
	unsigned char *bytes;

	/*
	 * A mark and its entry in the map come and go together, or a directory
	 * that is found again would lose the mark that it has just got.
	 * Before `lock`.
	 */
	pthread_mutex_t mark_lock;
	pthread_mutex_t lock; /* of all below */
	struct watch_map map;
	struct watch_dev devs[LIMIT_DEVICES];
	size_t count, max; /* watches; max 0: the system's limit */
	size_t n_inotify;
	atomic_uint untold; /* directories that cannot be watched */
	pthread_cond_t answer;
	uint64_t asked, answered; /* barriers */
};

#define WATCH_BYTES ((size_t)64 << 10)
#define WATCH_SAME  4 /* directories of one key */

/* ---- watch_mark.c ---- */

void watch_open_ways(struct fs_watch *watch, enum fs_watch_how how);
struct watch_dev watch_ask_device(int fd);
/* Errors of the second way, if neither works: -ENOSPC, -EACCES …. */
int watch_mark(struct fs_watch *watch, const struct watch_dev *dev, int fd,
	       uint64_t *ret_key);
/* Takes fanotify's mark off the directory of this descriptor. */
void watch_unmark(struct fs_watch *watch, int fd);
int watch_handle_key(const struct watch_dev *dev, int fd, uint64_t *ret_key);
/* The key of what an event names. */
uint64_t watch_fan_key(uint64_t fsid, const void *handle, size_t size);
static inline uint64_t
watch_ino_key(int wd)
{
	return (uint64_t)(unsigned int)wd << 1 | 1;
}

/* ---- watch.c ---- */

/* References the directories of a key; at most WATCH_SAME. */
size_t watch_find(struct fs_watch *watch, uint64_t key,
		  struct fs_inode *ret_dirs[WATCH_SAME]);

/* ---- watch_mounts.c: the thread's own ---- */

void watch_mounts_open(struct fs_watch *watch, const struct policy *policy);
/* Whether something was mounted below a root, or taken away, since then. */
bool watch_mounts_changed(struct fs_watch *watch, const struct policy *policy);

/* ---- watch_event.c ---- */

enum watch_change {
	WATCH_BINDING = 1 << 0, /* a name came, went or leads elsewhere */
	WATCH_CONTENT = 1 << 1, /* bytes */
	WATCH_META = 1 << 2,	/* attributes */
};

/* What one event says. */
struct watch_event {
	uint64_t key;	      /* of the directory */
	const char *name;     /* in it; "": the directory itself */
	unsigned int changes; /* enum watch_change */
	const void *object;   /* what changed, as a file handle's bytes … */
	size_t object_size;   /* … 0: not told */
	/* For echo.h: bits that both ways have alike. */
	unsigned int mask;
	uint32_t cookie;  /* of a rename, where it is by inotify */
	bool may_be_ours; /* done by an inmate, perhaps */
	pid_t pid;	  /* who did it, where that is told */
};

/* The counter of changes has moved. */
void watch_changed(struct fs *fs, struct fs_inode *dir,
		   const struct watch_event *event);
/* Not faster than the kernel takes it in. */
void watch_pace(struct fs *fs);
/* All of it. */
void watch_all_changed(struct fs *fs);
/* What is in directories that are not watched. */
void watch_untold_changed(struct fs *fs);

/* ---- watch_read.c ---- */

void *watch_main(void *data);

#endif
