/* SPDX-License-Identifier: MIT */

/*
 * Resolution as the inmate would do it.  Mostly its root is the world's, which
 * is ours too, and a plain lookup is exact.  An inmate in a sandbox of its own
 * has another root: there the lookup is confined to that root, and what cannot
 * be confined exactly (a relative path over symlinks) is refused.
 *
 * /proc/self means another process to us than to the inmate; the world's /proc
 * does not even list us.  Such paths start at the inmate's own directory.
 */

#include "mount-helper/usher_socket.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"
#include "mount-helper/usher_listener.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* Landlock confines abstract names since this version of its ABI. */
#define SCOPE_ABI 6

#define PID_NS_DEPTH 33

static int
open_of(int proc, pid_t pid, const char *name, int flags)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "%d/%s", (int)pid, name);
	fd = openat(proc, path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int
identify(int fd, const char *path, uint64_t *ret_mount,
	 struct usher_object *ret_object)
{
	struct statx sx;
	struct stat st;

	if (statx(fd, path, AT_EMPTY_PATH, STATX_MNT_ID, &sx) < 0 ||
	    fstatat(fd, path, &st, AT_EMPTY_PATH) < 0)
		return -errno;
	if (!(sx.stx_mask & STATX_MNT_ID))
		return -ENOSYS;
	*ret_mount = sx.stx_mnt_id;
	ret_object->dev = st.st_dev;
	ret_object->ino = st.st_ino;
	return 0;
}

int
usher_world_init(struct usher_world *world, int proc, bool scoped)
{
	struct stat st;
	long abi;
	int r;

	world->proc = proc;
	if (fstatat(proc, "self/ns/pid", &st, 0) < 0)
		return -errno;
	world->pid_ns = st.st_ino;
	r = identify(AT_FDCWD, "/", &world->root_mount, &world->root);
	if (r < 0)
		return r;
	abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
		      LANDLOCK_CREATE_RULESET_VERSION);
	world->scoped = scoped && abi >= SCOPE_ABI;
	return 0;
}

void
usher_world_let_in(struct usher_world *world, const char *path)
{
	size_t n = atomic_load(&world->n_let_in);
	struct stat st;

	/* By identity: its bind mount keeps it, and no other gets its name. */
	if (n == LIMIT_LET_IN || stat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	world->let_in[n].dev = st.st_dev;
	world->let_in[n].ino = st.st_ino;
	atomic_store(&world->n_let_in, n + 1);
}

void
usher_world_born(struct usher_world *world, const char *path)
{
	size_t n = atomic_load(&world->n_born);
	struct statx sx;
	struct stat st;

	/* Where nothing was mounted, this is the host's file system. */
	if (n == LIMIT_LET_IN || statx(AT_FDCWD, path, 0, 0, &sx) < 0 ||
	    !(sx.stx_attributes & STATX_ATTR_MOUNT_ROOT) || stat(path, &st) < 0)
		return;
	world->born[n] = st.st_dev;
	atomic_store(&world->n_born, n + 1);
}

void
usher_world_home(struct usher_world *world, uint64_t mount, bool there)
{
	uint64_t wanted = there ? 0 : mount;
	size_t n = atomic_load(&world->n_homes);

	if (mount == 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (atomic_load(&world->homes[i]) != wanted)
			continue;
		atomic_store(&world->homes[i], there ? mount : 0);
		return;
	}
	if (!there || n == LIMIT_COMMANDS)
		return;
	atomic_store(&world->homes[n], mount);
	atomic_store(&world->n_homes, n + 1);
}

/* The world's root, or a command's copy of it. */
static bool
is_root(const struct usher_world *world, uint64_t mount,
	const struct usher_object *object)
{
	size_t n = atomic_load(&world->n_homes);
	bool known = mount == world->root_mount;

	for (size_t i = 0; i < n && !known; i++)
		known = atomic_load(&world->homes[i]) == mount;
	return known && object->dev == world->root.dev &&
	       object->ino == world->root.ino;
}

static bool
is_let_in(const struct usher_world *world, const struct stat *st)
{
	size_t n = atomic_load(&world->n_let_in);

	for (size_t i = 0; i < n; i++)
		if (world->let_in[i].dev == st->st_dev &&
		    world->let_in[i].ino == st->st_ino)
			return true;
	return false;
}

static bool
is_born(const struct usher_world *world, const struct stat *st)
{
	size_t n = atomic_load(&world->n_born);

	for (size_t i = 0; i < n; i++)
		if (world->born[i] == st->st_dev)
			return true;
	return false;
}

static int
open_confined(int dirfd, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = resolve };
	int fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static bool
has_dotdot(const char *path)
{
	for (const char *at = path; (at = strstr(at, "..")) != NULL; at += 2)
		if ((at == path || at[-1] == '/') &&
		    (at[2] == '/' || at[2] == '\0'))
			return true;
	return false;
}

/* The part of `path` below the caller's own directory in /proc, or NULL. */
static const char *
below_self(const char *path)
{
	static const char *const names[] = { "/proc/self/",
					     "/proc/thread-self/" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		/* One ".." more and it would walk about the host's /proc. */
		if (strncmp(path, names[i], len) == 0 &&
		    !has_dotdot(path + len))
			return path + len;
	}
	return NULL;
}

static int
open_in_world(const struct usher_world *world, const struct usher_call *call,
	      const char *path)
{
	const char *below = below_self(path);
	int fd;

	if (below)
		return open_of(world->proc, call->pid, below, O_PATH);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Opens the named object as the inmate would; a descriptor or -errno. */
static int
open_named(const struct usher_world *world, const struct usher_call *call,
	   const char *path)
{
	_cleanup_(closep) int root = -1;
	_cleanup_(closep) int cwd = -1;
	struct usher_object object = { 0 };
	uint64_t mount = 0;
	bool same;
	int fd, r;

	root = open_of(world->proc, call->pid, "root", O_PATH);
	if (root < 0)
		return -EACCES;
	r = identify(root, "", &mount, &object);
	if (r < 0)
		return -EACCES;
	same = is_root(world, mount, &object);

	if (path[0] == '/')
		return same ? open_in_world(world, call, path)
			    : open_confined(root, path, RESOLVE_IN_ROOT);

	cwd = open_of(world->proc, call->pid, "cwd", O_PATH);
	if (cwd < 0)
		return -EACCES;
	if (!same)
		return open_confined(cwd, path,
				     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
	fd = openat(cwd, path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The world's outermost pid namespace above `pid`, or 0. */
static ino_t
outermost_pid_ns(const struct usher_world *world, pid_t pid)
{
	_cleanup_(closep) int ns = -1;
	struct stat st;

	ns = open_of(world->proc, pid, "ns/pid", O_RDONLY);
	if (ns < 0 || fstat(ns, &st) < 0)
		return 0;
	for (int depth = 0; depth < PID_NS_DEPTH; depth++) {
		ino_t here = st.st_ino;
		int parent = ioctl(ns, NS_GET_PARENT);

		if (parent < 0)
			return 0;
		(void)close(ns);
		ns = parent;
		if (fstat(ns, &st) < 0)
			return 0;
		if (st.st_ino == world->pid_ns)
			return here;
	}
	return 0;
}

bool
usher_has_exited(int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	return poll(&pfd, 1, 0) != 0;
}

/*
 * Whether the listener that `fd` is connected to lives in the world of the
 * caller.  A listener that forked and left its socket to a child is dead and
 * can prove nothing: `if_dead` then decides.
 */
static bool
peer_is_ours(const struct usher_world *world, pid_t caller, int fd,
	     bool if_dead)
{
	_cleanup_(closep) int pidfd = -1;
	struct ucred peer = { .pid = 0 };
	socklen_t len = sizeof(peer);
	ino_t theirs, ours;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return false;
	if (peer.pid <= 0)
		return if_dead;

	/* The number alone may have gone to another process meanwhile. */
	len = sizeof(pidfd);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) < 0) {
		pidfd = -1;
		if (errno != ENOPROTOOPT)
			return if_dead;
	}
	theirs = outermost_pid_ns(world, peer.pid);
	if ((pidfd >= 0 && usher_has_exited(pidfd)) ||
	    (theirs == 0 && kill(peer.pid, 0) < 0 && errno == ESRCH))
		return if_dead;
	ours = outermost_pid_ns(world, caller);
	return ours != 0 && ours == theirs;
}

/* Where the target is a file: what it is, and whose. */
static int
judge_file(const struct usher_world *world, struct usher_target *target)
{
	char link[32];
	struct statvfs fs;
	struct stat st;
	ssize_t len;

	/* Relative to the host's /proc, which is the working directory. */
	(void)snprintf(link, sizeof(link), "self/fd/%d", target->fd);
	len = readlink(link, target->path, sizeof(target->path) - 1);
	target->path[len < 0 ? 0 : len] = '\0';
	target->address.sun_family = AF_UNIX;
	(void)snprintf(target->address.sun_path,
		       sizeof(target->address.sun_path), "%s", link);
	target->address_len = sizeof(target->address);

	if (fstat(target->fd, &st) < 0)
		return -errno;
	if (!S_ISSOCK(st.st_mode))
		return -ECONNREFUSED;
	target->let_in = is_let_in(world, &st);
	if (target->let_in)
		return 0;

	if (fstatvfs(target->fd, &fs) < 0 || (fs.f_flag & ST_RDONLY)) {
		target->refused = true;
		return -EACCES;
	}
	target->born =
		is_born(world, &st) || usher_listener_is_ours(target->fd);
	if (target->born)
		return 0;
	target->refused = true;
	return -EACCES;
}

int
usher_target_find(const struct usher_world *world,
		  const struct usher_call *call, int fd,
		  struct usher_target *ret_target)
{
	const size_t head = offsetof(struct sockaddr_un, sun_path);
	char path[sizeof(call->address.un.sun_path) + 1];
	size_t len = call->address_len;
	socklen_t optlen = sizeof(int);
	int type = 0, r;

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &optlen) < 0)
		return -errno;

	/* A datagram socket has no listener whose home could be asked. */
	if (type != SOCK_STREAM && type != SOCK_SEQPACKET) {
		ret_target->refused = true;
		return -EACCES;
	}
	if (len <= head || len > sizeof(struct sockaddr_un) ||
	    call->address.un.sun_family != AF_UNIX)
		return -EINVAL;

	ret_target->address = call->address.un;
	ret_target->address_len = call->address_len;
	if (call->address.un.sun_path[0] == '\0') {
		if (world->scoped)
			return 0;
		r = usher_listener_of_name(call->address.un.sun_path,
					   len - head);
		ret_target->refused = r == -EACCES;
		return r;
	}

	memcpy(path, call->address.un.sun_path, len - head);
	path[len - head] = '\0';
	ret_target->fd = open_named(world, call, path);
	if (ret_target->fd < 0)
		return take_fd(&ret_target->fd);
	return judge_file(world, ret_target);
}

void
usher_target_fini(struct usher_target *target)
{
	closep(&target->fd);
}

bool
usher_target_is_ours(const struct usher_world *world,
		     const struct usher_call *call, int fd,
		     const struct usher_target *target)
{
	bool abstract = target->fd < 0;

	if (target->let_in)
		return true;
	return peer_is_ours(world, call->pid, fd,
			    abstract ? world->scoped : target->born);
}

/* The number after `name` in a status text; false when there is none. */
static bool
status_value(const char *text, const char *name, int base, uint64_t *ret_value)
{
	const char *at = strstr(text, name);

	if (!at)
		return false;
	*ret_value = strtoull(at + strlen(name), NULL, base);
	return true;
}

static ssize_t
read_status(int proc, pid_t pid, char *text, size_t size)
{
	_cleanup_(closep) int fd = open_of(proc, pid, "status", O_RDONLY);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = fd_read_all(fd, text, size - 1);
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

pid_t
usher_thread_group(int proc, pid_t pid)
{
	char text[4096];
	uint64_t leader;

	if (read_status(proc, pid, text, sizeof(text)) <= 0 ||
	    !status_value(text, "\nTgid:\t", 10, &leader))
		return pid;
	return (pid_t)leader;
}

bool
usher_is_interrupted(int proc, pid_t pid)
{
	uint64_t own = 0, shared = 0, blocked = 0, ignored = 0;
	char text[4096];

	if (read_status(proc, pid, text, sizeof(text)) <= 0)
		return true;
	(void)status_value(text, "\nSigPnd:\t", 16, &own);
	(void)status_value(text, "\nShdPnd:\t", 16, &shared);
	(void)status_value(text, "\nSigBlk:\t", 16, &blocked);
	(void)status_value(text, "\nSigIgn:\t", 16, &ignored);
	return ((own | shared) & ~blocked & ~ignored) != 0;
}
