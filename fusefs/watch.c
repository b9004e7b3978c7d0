/* SPDX-License-Identifier: MIT */

/*
 * Which directories are watched, and the time-outs that follow from it.
 *
 * The mark comes first, then the entry of the map, then the flag: an event that
 * is read in between finds no directory and is dropped, which is right, since
 * whoever sees the flag looks at the disk later still.
 */

#include "fusefs/watch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <time.h>

#include "base/clock.h"
#include "fusefs/inodes.h"
#include "fusefs/notify.h"
#include "fusefs/ops.h"
#include "fusefs/watch_priv.h"

static struct watch_dev
device_of(struct fs_watch *watch, const struct fs_inode *dir, int fd)
{
	struct watch_dev dev;

	pthread_mutex_lock(&watch->lock);
	dev = watch->devs[dir->dev];
	pthread_mutex_unlock(&watch->lock);
	if (dev.known)
		return dev;
	dev = watch_ask_device(fd);
	pthread_mutex_lock(&watch->lock);
	watch->devs[dir->dev] = dev;
	pthread_mutex_unlock(&watch->lock);
	return dev;
}

static void
set_flag(struct fs *fs, struct fs_inode *dir, uint8_t flag)
{
	struct fs_shard *shard = fs_shard_of(fs, dir);

	fs_shard_lock(shard);
	dir->flags |= flag;
	fs_shard_unlock(shard);
}

/* Two threads may come here for one directory: the first one's entry stays. */
static int
remember(struct fs_watch *watch, struct fs_inode *dir, uint64_t key)
{
	struct fs_inode *same[WATCH_SAME];
	size_t n;
	int r = 0;

	pthread_mutex_lock(&watch->lock);
	n = watch_map_find(&watch->map, key, same, WATCH_SAME);
	for (size_t i = 0; i < n; i++)
		if (same[i] == dir)
			goto unlock;
	r = n == WATCH_SAME ? -ENOSPC : watch_map_add(&watch->map, key, dir);
	if (r == 0) {
		dir->watch_key = (uint32_t)key;
		watch->count++;
		watch->n_inotify += key & 1;
	}
unlock:
	pthread_mutex_unlock(&watch->lock);
	return r;
}

static bool
is_full(struct fs_watch *watch)
{
	bool full;

	pthread_mutex_lock(&watch->lock);
	full = watch->max && watch->count >= watch->max;
	pthread_mutex_unlock(&watch->lock);
	return full;
}

void
fs_watch_add(struct fs *fs, struct fs_inode *dir, int fd)
{
	struct fs_watch *watch = fs->watch;
	struct watch_dev dev;
	int r = -EOPNOTSUPP;
	uint64_t key = 0;

	if (fs_watch_is_settled(dir) || !watch)
		return;
	dev = device_of(watch, dir, fd);
	if (!dev.untold && !is_full(watch)) {
		pthread_mutex_lock(&watch->mark_lock);
		r = watch_mark(watch, &dev, fd, &key);
		if (r == 0)
			r = remember(watch, dir, key);
		pthread_mutex_unlock(&watch->mark_lock);
	}
	if (r < 0)
		atomic_fetch_add(&watch->untold, 1);
	set_flag(fs, dir, r == 0 ? FS_INODE_WATCHED : FS_INODE_UNWATCHED);
}

/* ---- forgetting ---- */

/*
 * The directory has no descriptor any more.  What is found by its name may be
 * another one, whose mark must stay: the caller compares keys.
 */
static int
open_by_name(struct fs *fs, const struct fs_inode *dir)
{
	_cleanup_(fs_hold_done) struct fs_hold parent = FS_HOLD_NONE;

	if (!dir->parent || fs_hold(fs, dir->parent, &parent) < 0)
		return -1;
	return openat(parent.fd, dir->name,
		      O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
}

/* True when that was the last entry of its key. */
static bool
drop_entry(struct fs_watch *watch, const struct fs_inode *dir,
	   uint64_t *ret_key)
{
	struct fs_inode *same[1];
	bool last;

	pthread_mutex_lock(&watch->lock);
	last = watch_map_remove(&watch->map, dir->watch_key, dir, ret_key);
	if (last) {
		watch->count--;
		watch->n_inotify -= *ret_key & 1;
		last = watch_map_find(&watch->map, *ret_key, same, 1) == 0;
	}
	pthread_mutex_unlock(&watch->lock);
	return last;
}

/*
 * A mark that cannot be reached any more costs memory until the mount ends; its
 * events lead nowhere.
 */
void
fs_watch_forget(struct fs *fs, struct fs_inode *inode)
{
	_cleanup_(closep) int opened = -1;
	struct fs_watch *watch = fs->watch;
	uint64_t key = 0, found = 0;
	int fd = inode->fd;

	if (!watch || !fs_inode_is_dir(inode))
		return;
	if (inode->flags & FS_INODE_UNWATCHED)
		atomic_fetch_sub(&watch->untold, 1);
	if (!(inode->flags & FS_INODE_WATCHED))
		return;
	if (fd < 0 && !(inode->watch_key & 1)) {
		opened = open_by_name(fs, inode);
		fd = opened;
	}

	pthread_mutex_lock(&watch->mark_lock);
	if (drop_entry(watch, inode, &key)) {
		struct watch_dev dev = device_of(watch, inode, fd);

		if (key & 1)
			(void)inotify_rm_watch(watch->ino, (int)(key >> 1));
		else if (fd >= 0 && watch_handle_key(&dev, fd, &found) == 0 &&
			 found == key)
			watch_unmark(watch, fd);
	}
	pthread_mutex_unlock(&watch->mark_lock);
}

size_t
watch_find(struct fs_watch *watch, uint64_t key,
	   struct fs_inode *ret_dirs[WATCH_SAME])
{
	struct fs_inode *found[WATCH_SAME];
	size_t n, alive = 0;

	pthread_mutex_lock(&watch->lock);
	n = watch_map_find(&watch->map, key, found, WATCH_SAME);
	for (size_t i = 0; i < n; i++)
		if (fs_inode_ref_alive(found[i]))
			ret_dirs[alive++] = found[i];
	pthread_mutex_unlock(&watch->lock);
	return alive;
}

/* ---- time-outs ---- */

/*
 * The kernel takes attributes in under no lock that their readers have, the
 * time-out first: for some nanoseconds the old ones count as good.  So what is
 * new comes without one for a while, until those who asked have surely taken it
 * in; then it is given one, which changes nothing else.
 *
 * inode->fresh: 0, or FRESH_UNSEEN, or when the first reply had them, in ticks
 * of 4 ms, modulo FRESH_UNSEEN - 1, plus one.
 */
#define FRESH_UNSEEN  UINT8_MAX
#define FRESH_TICK_NS 4000000
#define FRESH_TICKS   5

void
fs_watch_settling(struct fs_inode *inode)
{
	atomic_store(&inode->fresh, FRESH_UNSEEN);
}

static bool
has_settled(struct fs_inode *inode)
{
	uint8_t fresh = atomic_load(&inode->fresh);
	int64_t now;

	if (fresh == 0)
		return true;
	now = clock_mono_ns() / FRESH_TICK_NS % (FRESH_UNSEEN - 1) + 1;
	if (fresh == FRESH_UNSEEN)
		/* A change since then comes to the same. */
		(void)atomic_compare_exchange_strong(&inode->fresh, &fresh,
						     (uint8_t)now);
	else if ((now - fresh + FRESH_UNSEEN - 1) % (FRESH_UNSEEN - 1) >=
		 FRESH_TICKS)
		return atomic_compare_exchange_strong(&inode->fresh, &fresh, 0);
	return false;
}

static bool
is_watched(const struct fs_inode *dir)
{
	return dir && (dir->flags & FS_INODE_WATCHED);
}

static double
dir_timeout(const struct fs *fs, const struct fs_inode *dir)
{
	if (is_watched(dir))
		return fs->timeouts.attr;
	/* Its first use will watch it. */
	return dir->flags & FS_INODE_UNWATCHED ? fs->short_timeouts.attr : 0;
}

double
fs_watch_attr_timeout(struct fs *fs, struct fs_inode *inode,
		      const struct statx *stx, unsigned int begun)
{
	struct fs_shard *shard = fs_shard_of(fs, inode);
	bool told;

	if (atomic_load(&fs->changes) != begun)
		return 0;
	if (!has_settled(inode))
		return 0;
	if (fs_inode_is_dir(inode))
		return dir_timeout(fs, inode);
	/* A mapping of what passes through is told by nobody. */
	if (atomic_load(&inode->maps) > 0)
		return 0;
	/* Nobody finds it but who has it open. */
	if (stx->stx_nlink == 0)
		return fs->short_timeouts.attr;
	/* A change through another link is told of in another directory. */
	if (stx->stx_nlink > 1 || (inode->flags & FS_INODE_ADRIFT))
		return 0;
	fs_shard_lock(shard);
	told = is_watched(inode->parent);
	fs_shard_unlock(shard);
	return told ? fs->timeouts.attr : fs->short_timeouts.attr;
}

double
fs_watch_entry_timeout(const struct fs *fs, const struct fs_inode *dir,
		       const struct statx *stx, unsigned int begun)
{
	const struct fs_timeouts *timeouts = &fs->timeouts;

	if (atomic_load(&fs->changes) != begun)
		return 0;
	if (!is_watched(dir))
		timeouts = &fs->short_timeouts;
	return stx ? timeouts->entry : timeouts->negative;
}

/* ---- the barrier ---- */

static void
wake(struct fs_watch *watch)
{
	const uint64_t one = 1;

	if (write(watch->wake, &one, sizeof(one)) < 0)
		return; /* it is awake already */
}

void
fs_watch_lost(struct fs *fs)
{
	if (!fs->watch)
		return;
	atomic_store(&fs->watch->lost, true);
	wake(fs->watch);
}

#define BARRIER_NS INT64_C(5000000000)

int
fs_barrier(struct fs *fs)
{
	struct fs_watch *watch = fs->watch;
	int64_t end = clock_mono_ns() + BARRIER_NS;
	const struct timespec deadline = { .tv_sec = end / 1000000000,
					   .tv_nsec = end % 1000000000 };
	uint64_t ticket;
	int r = 0;

	if (!watch || !watch->running)
		return 0;
	pthread_mutex_lock(&watch->lock);
	ticket = ++watch->asked;
	wake(watch);
	while (watch->answered < ticket && r == 0)
		r = pthread_cond_timedwait(&watch->answer, &watch->lock,
					   &deadline);
	pthread_mutex_unlock(&watch->lock);
	/* What was found is queued; now it is to be told. */
	return r != 0 ? -r : fs_notify_wait(fs, &deadline);
}

void
fs_watch_stats(struct fs *fs, struct fs_stats *stats)
{
	struct fs_watch *watch = fs->watch;

	if (!watch)
		return;
	pthread_mutex_lock(&watch->lock);
	stats->watched = watch->count;
	stats->by_inotify = watch->n_inotify;
	pthread_mutex_unlock(&watch->lock);
	stats->untold = atomic_load(&watch->untold);
}

/* ---- its life ---- */

static void
watch_free(struct fs *fs)
{
	struct fs_watch *watch = fs->watch;

	fs->watch = NULL;
	closep(&watch->fan);
	closep(&watch->ino);
	closep(&watch->wake);
	closep(&watch->mounts);
	watch_map_fini(&watch->map);
	pthread_mutex_destroy(&watch->lock);
	pthread_mutex_destroy(&watch->mark_lock);
	pthread_cond_destroy(&watch->answer);
	free(watch->bytes);
	free(watch);
}

int
fs_watch_start(struct fs *fs)
{
	struct fs_watch *watch = calloc(1, sizeof(*watch));
	pthread_condattr_t attr;
	int r;

	if (!watch)
		return -ENOMEM;
	pthread_mutex_init(&watch->lock, NULL);
	pthread_mutex_init(&watch->mark_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&watch->answer, &attr);
	pthread_condattr_destroy(&attr);
	watch->max = fs->config.watch_max;
	watch->mounts = -1;
	watch_open_ways(watch, fs->config.watch);
	watch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	watch->bytes = malloc(WATCH_BYTES);
	fs->watch = watch;
	r = watch->wake < 0 ? -errno : 0;
	if (r == 0 && !watch->bytes)
		r = -ENOMEM;
	if (r == 0)
		r = -pthread_create(&watch->thread, NULL, watch_main, fs);
	if (r < 0) {
		watch_free(fs);
		return r;
	}
	watch->running = true;
	return 0;
}

void
fs_watch_stop(struct fs *fs)
{
	struct fs_watch *watch = fs->watch;

	if (!watch)
		return;
	atomic_store(&watch->ending, true);
	wake(watch);
	(void)pthread_join(watch->thread, NULL);
	watch_free(fs);
}
