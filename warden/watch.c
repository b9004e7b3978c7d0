/* SPDX-License-Identifier: MIT */

/*
 * The kernel knows the name of an open directory at any time (/proc/self/fd),
 * through renames of everything above it and through what is mounted over it;
 * so the question is one readlink(2), and all else here is only about when to
 * ask it:
 *
 *	the workspace, its parents   IN_MOVE_SELF
 *	its parent                   a name removed, or replaced by a rename
 *	/proc/self/mountinfo         a lazy unmount
 *
 * IN_DELETE_SELF of the workspace does not help: it comes when the last
 * descriptor is closed, and the service holds one.  What has moved and is back
 * when we look has not changed.
 */

#include "warden/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* Where a parent may not be read, or there are no watches to be had. */
#define GAPS_MS 500

#define EVENT_BYTES 16384

#define DELETED " (deleted)"

static bool
add_watch(int names, int fd, uint32_t events)
{
	char link[64];

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return inotify_add_watch(names, link, events | IN_MASK_ADD) >= 0;
}

/* From the workspace to the root, by "..", so that it is one chain. */
static void
watch_names(struct watch *watch)
{
	_cleanup_(closep) int fd = -1;
	struct stat st, above;
	bool first = true;

	watch->names = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (watch->names < 0 ||
	    !add_watch(watch->names, watch->root,
		       IN_MOVE_SELF | IN_DELETE_SELF | IN_UNMOUNT)) {
		watch->gaps = true;
		return;
	}
	fd = openat(watch->root, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(watch->root, &st) < 0)
		watch->gaps = true;
	while (fd >= 0 && fstat(fd, &above) == 0 &&
	       (above.st_dev != st.st_dev || above.st_ino != st.st_ino)) {
		int next = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);

		if (next < 0 ||
		    !add_watch(watch->names, fd,
			       IN_MOVE_SELF |
				       (first ? IN_DELETE | IN_MOVED_TO : 0u)))
			watch->gaps = true;
		st = above;
		first = false;
		(void)close(fd);
		fd = next;
	}
}

int
watch_open(struct watch *watch, const char *path, struct errmsg *why)
{
	*watch = WATCH_NONE;
	watch->path = strdup(path);
	if (!watch->path)
		return errmsg_set(why, -ENOMEM, "out of memory");
	watch->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (watch->root < 0)
		return errmsg_set(why, -errno, "cannot open '%s': %s", path,
				  strerror(errno));
	watch_names(watch);
	watch->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	if (watch->mounts < 0)
		watch->gaps = true;
	return watch_check(watch, why);
}

/* Is its mount in no table any more? */
static bool
is_unmounted(const struct watch *watch)
{
	char id[32];
	_cleanup_(freep) char *line = NULL;
	struct statx st;
	size_t size = 0;
	FILE *mounts;
	bool found = false;

	if (statx(watch->root, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 ||
	    !(st.stx_mask & STATX_MNT_ID))
		return false;
	mounts = fopen("/proc/self/mountinfo", "re");
	if (!mounts)
		return false;
	(void)snprintf(id, sizeof(id), "%llu ",
		       (unsigned long long)st.stx_mnt_id);
	while (!found && getline(&line, &size, mounts) > 0)
		found = strncmp(line, id, strlen(id)) == 0;
	(void)fclose(mounts);
	return !found;
}

int
watch_check(const struct watch *watch, struct errmsg *why)
{
	char name[PATH_MAX];
	size_t len = strlen(watch->path);
	int r = fd_path(watch->root, name);
	const char *what = "renamed";

	if (r == 0 && strcmp(name, watch->path) == 0)
		return 0;
	if (r == 0 && strncmp(name, watch->path, len) == 0 &&
	    strcmp(name + len, DELETED) == 0)
		what = "removed";
	else if (is_unmounted(watch))
		what = "unmounted";
	return errmsg_set(why, -ESTALE,
			  "the workspace '%s' was %s; the world has ended",
			  watch->path, what);
}

static void
look(struct watch *watch)
{
	struct errmsg why = { "" };

	if (watch->gone && watch_check(watch, &why) < 0) {
		void (*gone)(void *, const struct errmsg *) = watch->gone;

		watch->gone = NULL;
		gone(watch->data, &why);
	}
}

static void
on_names(uv_poll_t *poll, int status, int events)
{
	struct watch *watch = poll->data;
	char bytes[EVENT_BYTES];

	(void)status;
	(void)events;
	/* Which name it was does not matter: the question is cheaper. */
	while (read(watch->names, bytes, sizeof(bytes)) > 0)
		;
	look(watch);
}

static void
on_mounts(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	look(poll->data);
}

static void
on_timer(uv_timer_t *timer)
{
	look(timer->data);
}

static int
start_poll(uv_loop_t *loop, uv_poll_t *poll, int fd, int events, uv_poll_cb run)
{
	int r;

	if (fd < 0)
		return 0;
	r = uv_poll_init(loop, poll, fd);
	return r < 0 ? r : uv_poll_start(poll, events, run);
}

int
watch_start(struct watch *watch, uv_loop_t *loop,
	    void (*gone)(void *data, const struct errmsg *why), void *data)
{
	int r;

	watch->gone = gone;
	watch->data = data;
	watch->names_poll.data = watch;
	watch->mounts_poll.data = watch;
	r = start_poll(loop, &watch->names_poll, watch->names, UV_READABLE,
		       on_names);
	/* Every change of the table is one POLLPRI, and POLLERR. */
	if (r == 0)
		r = start_poll(loop, &watch->mounts_poll, watch->mounts,
			       UV_PRIORITIZED, on_mounts);
	if (r == 0 && watch->gaps) {
		r = uv_timer_init(loop, &watch->timer);
		watch->timer.data = watch;
		if (r == 0)
			r = uv_timer_start(&watch->timer, on_timer, GAPS_MS,
					   GAPS_MS);
	}
	return r;
}

void
watch_close(struct watch *watch)
{
	uv_handle_t *const handles[] = {
		(uv_handle_t *)&watch->names_poll,
		(uv_handle_t *)&watch->mounts_poll,
		(uv_handle_t *)&watch->timer,
	};

	watch->gone = NULL;
	for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
		if (handles[i]->type != UV_UNKNOWN_HANDLE &&
		    !uv_is_closing(handles[i]))
			uv_close(handles[i], NULL);
}

void
watch_fini(struct watch *watch)
{
	closep(&watch->root);
	closep(&watch->names);
	closep(&watch->mounts);
	free(watch->path);
	*watch = WATCH_NONE;
}
