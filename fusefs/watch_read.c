/* SPDX-License-Identifier: MIT */

/*
 * The thread that reads what the kernel tells of.
 *
 * It naps between two reads, so that a burst costs one wake-up and the kernel
 * merges what is said twice; longer after a batch of nothing but our own
 * changes, which the kernel knows of anyway.  A barrier ends the nap.
 */

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <time.h>

#include "base/clock.h"
#include "fusefs/inodes.h"
#include "fusefs/notify.h"
#include "fusefs/passthrough.h"
#include "fusefs/watch.h"
#include "fusefs/watch_priv.h"

#define NAP_HOST_MS 1
#define NAP_OWN_MS  4

#define BINDING_BITS (FAN_CREATE | FAN_DELETE | FAN_MOVED_FROM | FAN_MOVED_TO)
#define CONTENT_BITS (FAN_MODIFY | FAN_CLOSE_WRITE)

/* inotify's bits have the same values. */
_Static_assert(FAN_CREATE == IN_CREATE && FAN_DELETE == IN_DELETE &&
		       FAN_MOVED_FROM == IN_MOVED_FROM &&
		       FAN_MOVED_TO == IN_MOVED_TO && FAN_MODIFY == IN_MODIFY &&
		       FAN_CLOSE_WRITE == IN_CLOSE_WRITE &&
		       FAN_ATTRIB == IN_ATTRIB && FAN_ONDIR == IN_ISDIR,
	       "one set of bits");

static unsigned int
changes_of(uint64_t mask)
{
	unsigned int changes = WATCH_META;

	if (mask & BINDING_BITS)
		changes |= WATCH_BINDING;
	if (mask & CONTENT_BITS)
		changes |= WATCH_CONTENT;
	return changes;
}

static void
dispatch(struct fs *fs, struct watch_event *event)
{
	struct fs_inode *dirs[WATCH_SAME];
	size_t n = watch_find(fs->watch, event->key, dirs);

	if (strcmp(event->name, ".") == 0)
		event->name = "";
	for (size_t i = 0; i < n; i++) {
		watch_changed(fs, dirs[i], event);
		fs_inode_put(fs, dirs[i]);
	}
}

static const struct file_handle *
handle_of(const struct fanotify_event_info_fid *info)
{
	return (const void *)info->handle;
}

/* `at`: what follows `from` in the queue.  False: it is of no directory. */
static bool
parse_fan(const struct fanotify_event_metadata *from, const unsigned char *at,
	  struct watch_event *ret_event)
{
	const unsigned char *end = at + from->event_len - sizeof(*from);
	struct watch_event event = { .changes = changes_of(from->mask),
				     .mask = (unsigned int)from->mask,
				     .may_be_ours = from->pid == getpid(),
				     .pid = from->pid };

	while (at + sizeof(struct fanotify_event_info_header) <= end) {
		const struct fanotify_event_info_fid *info = (const void *)at;
		const struct file_handle *handle = handle_of(info);
		uint64_t fsid;

		if (info->hdr.len == 0)
			return false;
		at += info->hdr.len;
		if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_DFID_NAME) {
			memcpy(&fsid, &info->fsid, sizeof(fsid));
			event.key = watch_fan_key(fsid, handle->f_handle,
						  handle->handle_bytes);
			event.name = (const char *)handle->f_handle +
				     handle->handle_bytes;
		} else if (info->hdr.info_type == FAN_EVENT_INFO_TYPE_FID) {
			event.object = handle->f_handle;
			event.object_size = handle->handle_bytes;
		}
	}
	*ret_event = event;
	return event.name;
}

/* What a read brought: nothing, only what we did ourselves, or more. */
enum batch {
	BATCH_NONE,
	BATCH_OWN,
	BATCH_HOST
};

/* By a request, or by an inmate whose data passes by us. */
static bool
is_ours(struct fs *fs, const struct fanotify_event_metadata *event, pid_t self)
{
	return event->pid == self || ((event->mask & ~CONTENT_BITS) == 0 &&
				      fs_writer_is(fs, event->pid));
}

static enum batch
fan_events(struct fs *fs, size_t len)
{
	const unsigned char *at = fs->watch->bytes, *end = at + len;
	/* The kernel lines events up by four bytes, this struct by eight. */
	struct fanotify_event_metadata event;
	enum batch batch = BATCH_OWN;
	/* Another session's changes are ours by process, and news all the same. */
	bool alone = fs_sessions() < 2;
	pid_t self = getpid();

	for (; at + sizeof(event) <= end; at += event.event_len) {
		struct watch_event what;

		memcpy(&event, at, sizeof(event));
		if (event.event_len < sizeof(event) ||
		    event.event_len > (size_t)(end - at))
			break;
		if (event.mask & FAN_Q_OVERFLOW)
			atomic_store(&fs->watch->lost, true);
		if ((alone && is_ours(fs, &event, self)) ||
		    !parse_fan(&event, at + sizeof(event), &what))
			continue;
		if (batch != BATCH_HOST)
			atomic_fetch_add(&fs->changes, 1);
		batch = BATCH_HOST;
		dispatch(fs, &what);
	}
	return batch;
}

static enum batch
ino_events(struct fs *fs, size_t len)
{
	const unsigned char *at = fs->watch->bytes, *end = at + len;

	atomic_fetch_add(&fs->changes, 1);
	while (at + sizeof(struct inotify_event) <= end) {
		const struct inotify_event *event = (const void *)at;

		at += sizeof(*event) + event->len;
		if (event->mask & IN_Q_OVERFLOW)
			atomic_store(&fs->watch->lost, true);
		else if (!(event->mask & IN_IGNORED))
			dispatch(fs,
				 &(struct watch_event){
					 .key = watch_ino_key(event->wd),
					 .name = event->len ? event->name : "",
					 .changes = changes_of(event->mask),
					 .mask = event->mask,
					 .cookie = event->cookie,
					 .may_be_ours = true });
	}
	return BATCH_HOST;
}

/*
 * Reads until there is no more, which a read that leaves room says: whoever
 * changes without pause must not keep a barrier waiting.
 */
static enum batch
drain(struct fs *fs, int fd, enum batch (*events)(struct fs *fs, size_t len))
{
	enum batch all = BATCH_NONE;
	ssize_t n;

	while (fd >= 0 && !atomic_load(&fs->watch->ending)) {
		enum batch batch;

		n = read(fd, fs->watch->bytes, WATCH_BYTES);
		if (n <= 0)
			break;
		batch = events(fs, (size_t)n);
		if (batch > all)
			all = batch;
		watch_pace(fs);
		if ((size_t)n < WATCH_BYTES - 4096)
			break;
	}
	return all;
}

static enum batch
drain_all(struct fs *fs)
{
	enum batch fan = drain(fs, fs->watch->fan, fan_events);
	enum batch ino = drain(fs, fs->watch->ino, ino_events);

	/* The policy's roots stay the same, whatever is swapped. */
	if (watch_mounts_changed(fs->watch, fs->config.policy))
		atomic_store(&fs->watch->lost, true);
	if (atomic_exchange(&fs->watch->lost, false)) {
		atomic_fetch_add(&fs->changes, 1);
		watch_all_changed(fs);
	}
	return fan > ino ? fan : ino;
}

static void
serve_barriers(struct fs *fs)
{
	struct fs_watch *watch = fs->watch;
	uint64_t asked;

	pthread_mutex_lock(&watch->lock);
	asked = watch->asked;
	if (asked == watch->answered) {
		pthread_mutex_unlock(&watch->lock);
		return;
	}
	pthread_mutex_unlock(&watch->lock);

	(void)drain_all(fs);
	if (atomic_load(&watch->untold) > 0)
		watch_untold_changed(fs);

	pthread_mutex_lock(&watch->lock);
	watch->answered = asked;
	pthread_cond_broadcast(&watch->answer);
	pthread_mutex_unlock(&watch->lock);
}

static void
wait_awake(struct fs_watch *watch, int timeout_ms)
{
	struct pollfd fds[4] = {
		{ .fd = watch->wake, .events = POLLIN },
		{ .fd = watch->mounts, .events = POLLPRI },
		{ .fd = watch->fan, .events = POLLIN },
		{ .fd = watch->ino, .events = POLLIN },
	};
	uint64_t n;

	/* A nap is ended by a barrier only. */
	if (poll(fds, timeout_ms < 0 ? 4 : 1, timeout_ms) > 0 && fds[1].revents)
		watch->mounts_told = true;
	if (read(watch->wake, &n, sizeof(n)) < 0)
		return; /* nobody called */
}

void *
watch_main(void *data)
{
	struct fs *fs = data;
	struct fs_watch *watch = fs->watch;

	watch_mounts_open(watch, fs->config.policy);
	while (!atomic_load(&watch->ending)) {
		enum batch batch;

		wait_awake(watch, atomic_load(&watch->lost) ? 0 : -1);
		batch = drain_all(fs);
		serve_barriers(fs);
		if (batch != BATCH_NONE && !atomic_load(&watch->ending)) {
			wait_awake(watch, batch == BATCH_OWN ? NAP_OWN_MS
							     : NAP_HOST_MS);
			serve_barriers(fs);
		}
	}
	return NULL;
}
