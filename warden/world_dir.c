/* SPDX-License-Identifier: MIT */

/*
 * RUNTIME/worlds/ID is how a world is found: `sock` is spoken to, `info.json`
 * is read by `pale world list`.  The warden holds flock(2) on the directory
 * for as long as it lives, and the kernel lets go of it however the warden
 * dies: whoever gets the lock may clean up (cli/worlds.c), and nobody ever
 * has to trust a process id.
 */

#include "warden/warden_priv.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/fd.h"
#include "base/json.h"
#include "warden/face.h"

#define LOCK_WAIT_NS 1000000000LL

static int
make_parents(const struct warden *warden, struct errmsg *why)
{
	_cleanup_(freep) char *worlds = NULL;
	int r;

	/* Both: the upper one may lie in a directory that all may write. */
	r = dirs_make(warden->places.runtime, why);
	if (r < 0)
		return r;
	if (asprintf(&worlds, "%s/worlds", warden->places.runtime) < 0)
		return errmsg_set(why, -ENOMEM, "out of memory");
	return dirs_make(worlds, why);
}

/*
 * Who looks for worlds tries the lock of each for a moment, to tell the dead;
 * that must not cost a world that is being born its name.
 */
static int
lock_patiently(int fd)
{
	int64_t until = clock_mono_ns() + LOCK_WAIT_NS;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK || clock_mono_ns() > until)
			return -errno;
		(void)poll(NULL, 0, 1);
	}
	return 0;
}

int
world_dir_make(struct warden *warden, struct errmsg *why)
{
	const char *path = warden->places.runtime_world;
	_cleanup_(closep) int fd = -1;
	int r;

	r = make_parents(warden, why);
	if (r < 0)
		return r;
	if (mkdir(path, 0700) < 0)
		return errmsg_set(why, -errno, "cannot make '%s': %s", path,
				  strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : lock_patiently(fd);
	if (r < 0) {
		(void)rmdir(path);
		return errmsg_set(why, r, "cannot lock '%s': %s", path,
				  strerror(-r));
	}
	warden->world_dir_fd = take_fd(&fd);
	return 0;
}

void
world_dir_members(struct warden *warden, struct buf *out)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);
	_cleanup_(freep) char *face = faces_mountpoint(warden);

	jsonw_pair(out, "id", warden->opt.world);
	jsonw_pair_int(out, "pid", getpid());
	jsonw_pair(out, "kind", warden_kind(warden));
	jsonw_pair(out, "workspace", policy->roots[0].path);
	jsonw_pair(out, "mountpoint",
		   warden->opt.mountpoint ? warden->opt.mountpoint : face);
	jsonw_pair(out, "session", policy->session);
	jsonw_pair(out, "mode", policy_mode_name(policy->mode));
	jsonw_pair(out, "digest", warden->digest[0] ? warden->digest : NULL);
	jsonw_pair_int(out, "started", warden->started_ns);
}

int
world_dir_describe(struct warden *warden)
{
	_cleanup_(buf_fini) struct buf info = { 0 };
	_cleanup_(closep) int fd = -1;
	int dir = warden->world_dir_fd, r;

	if (dir < 0)
		return 0;
	jsonw_begin(&info, '{');
	world_dir_members(warden, &info);
	jsonw_end(&info, '}');
	buf_puts(&info, "\n");
	r = buf_error(&info);
	if (r < 0)
		return r;

	fd = openat(dir, "info.new",
		    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, info.data, info.len);
	if (r < 0)
		return r;
	if (renameat(dir, "info.new", dir, "info.json") < 0)
		return -errno;
	return 0;
}

int
world_dir_listen(struct warden *warden, int *ret_fd, struct errmsg *why)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	_cleanup_(closep) int fd = -1;

	/* By descriptor: sun_path is shorter than many runtime directories. */
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path),
		       "/proc/self/fd/%d/sock", warden->world_dir_fd);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 ||
	    fchmodat(warden->world_dir_fd, "sock", 0600, 0) < 0 ||
	    listen(fd, 64) < 0)
		return errmsg_set(why, -errno, "cannot listen in '%s': %s",
				  warden->places.runtime_world,
				  strerror(errno));
	*ret_fd = take_fd(&fd);
	return 0;
}

void
world_dir_remove(struct warden *warden)
{
	static const char *const names[] = { "sock", "info.json", "info.new",
					     "warden.log" };
	int dir = warden->world_dir_fd;

	if (dir < 0)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(dir, names[i], 0);
	(void)rmdir(warden->places.runtime_world);
	closep(&warden->world_dir_fd);
	warden->world_dir_fd = -1;
}
