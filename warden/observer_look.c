/* SPDX-License-Identifier: MIT */

/*
 * Looking a name up as the inmate would, without ever entering our own mount:
 * a lookup there is a request to ourselves.
 *
 * Every object is opened by one openat2() that refuses symlinks, so a path
 * leads exactly where it says, and what it says is compared with the areas
 * first.  Below a FUSE root the host's directory of the same path is looked at
 * instead; everything else, the private areas included, is looked at through
 * /proc/PID/root, where hidden, covered and private places are what the inmate
 * sees.  Symlinks are followed here, one by one.
 *
 * Nearly every call names something plainly (no symlink, no ".."): that costs
 * one openat2(), or none for the sinks of /dev.
 */

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>

#include "base/limits.h"
#include "base/path.h"
#include "warden/observer_priv.h"

#define SYMLINKS_MAX 40

/* The directories that are the world's own in every confined mode. */
static const char *const private_areas[] = { "/tmp", "/var/tmp", "/dev/shm" };
#define N_PRIVATE (sizeof(private_areas) / sizeof(private_areas[0]))

/* One lookup. */
struct walk {
	struct look *look;
	pid_t pid;
	int root; /* the inmate's; -1: not opened yet */
};

static int
add_area(struct look *look, enum area_kind kind, const char *path)
{
	struct area *area = &look->areas[look->n_areas];

	area->path = strdup(path);
	if (!area->path)
		return -ENOMEM;
	area->kind = kind;
	area->len = strlen(path);
	area->fd = -1;
	if (kind == AREA_FUSE)
		area->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	(void)snprintf(area->link, sizeof(area->link), "%d", area->fd);
	look->n_areas++;
	return 0;
}

int
look_init(struct look *look, const struct policy *policy)
{
	int r = 0;

	(void)pthread_mutex_init(&look->homes_lock, NULL);
	look->own_fds = open("/proc/self/fd", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (look->own_fds < 0)
		return -errno;
	look->areas = calloc(policy->n_roots + N_PRIVATE, sizeof(*look->areas));
	if (!look->areas)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < policy->n_roots; i++)
		r = add_area(look,
			     policy->roots[i].kind == POLICY_ROOT_RW ||
					     policy->landlock
				     ? AREA_RW
				     : AREA_FUSE,
			     policy->roots[i].path);
	for (size_t i = 0; r == 0 && i < N_PRIVATE && !policy->landlock; i++)
		r = add_area(look, AREA_TMP, private_areas[i]);
	return r;
}

void
look_fini(struct look *look)
{
	for (size_t i = 0; i < look->n_areas; i++) {
		free(look->areas[i].path);
		closep(&look->areas[i].fd);
	}
	closep(&look->own_fds);
	free(look->areas);
	look->areas = NULL;
	look->n_areas = 0;
	free(look->homes);
	look->homes = NULL;
	(void)pthread_mutex_destroy(&look->homes_lock);
}

static int
add_home(struct look *look, const struct observer_home *home)
{
	struct observer_home *homes = look->homes;
	size_t room = look->homes_room;

	if (look->n_homes == LIMIT_COMMANDS)
		return -EINVAL;
	if (look->n_homes == room) {
		room = room ? 2 * room : 16;
		homes = reallocarray(homes, room, sizeof(*homes));
		if (!homes)
			return -ENOMEM;
		look->homes = homes;
		look->homes_room = room;
	}
	homes[look->n_homes++] = *home;
	return 0;
}

int
look_add_home(struct look *look, const struct observer_home *home)
{
	int r;

	pthread_mutex_lock(&look->homes_lock);
	r = add_home(look, home);
	pthread_mutex_unlock(&look->homes_lock);
	return r;
}

void
look_remove_home(struct look *look, const struct observer_home *home)
{
	pthread_mutex_lock(&look->homes_lock);
	for (size_t i = 0; i < look->n_homes; i++) {
		if (look->homes[i].mnt_ino != home->mnt_ino ||
		    look->homes[i].mnt_dev != home->mnt_dev)
			continue;
		look->homes[i] = look->homes[--look->n_homes];
		break;
	}
	pthread_mutex_unlock(&look->homes_lock);
}

static bool
is_home(struct look *look, const struct stat *st)
{
	bool found = false;

	pthread_mutex_lock(&look->homes_lock);
	for (size_t i = 0; i < look->n_homes && !found; i++)
		found = look->homes[i].mnt_ino == st->st_ino &&
			look->homes[i].mnt_dev == st->st_dev;
	pthread_mutex_unlock(&look->homes_lock);
	return found;
}

/* The deepest area that a clean absolute path lies in. */
static struct area *
area_of(struct look *look, const char *path)
{
	struct area *best = NULL;

	for (size_t i = 0; i < look->n_areas; i++) {
		struct area *area = &look->areas[i];

		if (strncmp(path, area->path, area->len) != 0)
			continue;
		/* "/" alone ends in its separator. */
		if (path[area->len] != '/' && path[area->len] != '\0' &&
		    area->len != 1)
			continue;
		if (!best || area->len > best->len)
			best = area;
	}
	return best;
}

bool
look_is_nested(struct look *look, pid_t pid)
{
	uint64_t ino = atomic_load(&look->ns_ino);
	char path[40];
	struct stat st;

	if (ino == 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)pid);
	if (stat(path, &st) < 0)
		return false;
	if ((uint64_t)st.st_ino == ino &&
	    (uint64_t)st.st_dev == atomic_load(&look->ns_dev))
		return false;
	return !is_home(look, &st);
}

/* -ELOOP: a symlink on the way.  One in the last place is what is opened. */
static int
open_plain(int dirfd, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };
	int fd;

	while (*path == '/')
		path++;
	fd = (int)syscall(SYS_openat2, dirfd, *path ? path : ".", &how,
			  sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int
walk_root(struct walk *walk)
{
	char path[32];

	if (walk->root >= 0)
		return walk->root;
	(void)snprintf(path, sizeof(path), "/proc/%d/root", (int)walk->pid);
	walk->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	/* Not EACCES, which means a directory that may not be searched. */
	return walk->root < 0 ? -EXDEV : walk->root;
}

/*
 * The directory under which `path` may be looked at; *ret_rest is the path
 * below it.
 */
static int
base_of(struct walk *walk, struct area *area, const char *path,
	const char **ret_rest)
{
	*ret_rest = path;
	if (!area)
		return walk_root(walk);
	if (area->fd < 0 && area->kind != AREA_FUSE) {
		/* The mount is the same for all of the world: kept. */
		int root = walk_root(walk);

		if (root < 0)
			return root;
		if (look_is_nested(walk->look, walk->pid))
			return -EXDEV;
		area->fd = open_plain(root, area->path);
	}
	if (area->fd < 0)
		return -ENOENT;
	*ret_rest = path + (area->len == 1 ? 0 : area->len);
	return area->fd;
}

/* Opens a clean path that holds no symlink but, at most, the last name. */
static int
open_at(struct walk *walk, const char *path)
{
	struct area *area = area_of(walk->look, path);
	const char *rest;
	int base = base_of(walk, area, path, &rest);

	return base < 0 ? base : open_plain(base, rest);
}

/*
 * Appends `more` to the clean absolute path `path`: ".", empty names and
 * slashes vanish.  Returns 1 when there was a "..", which only a walk can
 * resolve, and -ENAMETOOLONG.
 */
static int
append_clean(char *path, const char *more)
{
	size_t len = strlen(path);

	if (len == 1)
		len = 0;
	while (*more) {
		size_t n;

		more += strspn(more, "/");
		n = strcspn(more, "/");
		if (n == 2 && memcmp(more, "..", 2) == 0)
			return 1;
		if (n == 0 || (n == 1 && *more == '.')) {
			more += n;
			continue;
		}
		if (len + 1 + n >= PATH_MAX)
			return -ENAMETOOLONG;
		path[len++] = '/';
		memcpy(path + len, more, n);
		len += n;
		more += n;
	}
	if (len == 0)
		path[len++] = '/';
	path[len] = '\0';
	return 0;
}

static void
cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash == path)
		slash++;
	*slash = '\0';
}

static int
read_proc_link(pid_t pid, const char *name, int number, char *target)
{
	char link[64];
	ssize_t n;

	if (number >= 0)
		(void)snprintf(link, sizeof(link), "/proc/%d/%s/%d", (int)pid,
			       name, number);
	else
		(void)snprintf(link, sizeof(link), "/proc/%d/%s", (int)pid,
			       name);
	n = readlink(link, target, PATH_MAX - 1);
	/* Not EACCES, which means a directory that may not be searched. */
	if (n < 0)
		return errno == EACCES ? -EXDEV : -errno;
	target[n] = '\0';

	/* A pipe, a socket, something unnamed: nothing of the file system. */
	return target[0] == '/' ? 0 : -EXDEV;
}

/* Sets `path` to where the name starts: "/", the cwd or a descriptor. */
static int
start_of(pid_t pid, const struct call_name *name, char *path)
{
	if (name->path[0] == '/') {
		memcpy(path, "/", 2);
		return 0;
	}
	if (name->path[0] == '\0' && !name->empty_is_fd)
		return -ENOENT;
	if (name->dirfd == AT_FDCWD)
		return read_proc_link(pid, "cwd", -1, path);
	if (name->dirfd < 0)
		return -EBADF;
	return read_proc_link(pid, "fd", name->dirfd, path);
}

/*
 * "/proc/self/…" is another process to us.  Turns `path` (which the walk has
 * reached) plus `rest` (what is left) into where a magic link leads; returns 1
 * when it did, 0 when this is no such path.
 */
static int
follow_self(struct walk *walk, char *path, char *rest)
{
	char target[PATH_MAX], name[32];
	const char *at = rest + strspn(rest, "/");
	size_t n = strcspn(at, "/"), skip;
	int number = -1, r;

	if (strcmp(path, "/proc/self") != 0 &&
	    strcmp(path, "/proc/thread-self") != 0)
		return 0;
	if (n == 0 || n >= sizeof(name))
		return -EXDEV;
	memcpy(name, at, n);
	name[n] = '\0';
	skip = (size_t)(at - rest) + n;
	if (strcmp(name, "fd") == 0) {
		char *end;

		skip += strspn(rest + skip, "/");
		number = (int)strtol(rest + skip, &end, 10);
		if (end == rest + skip || number < 0)
			return -EXDEV;
		skip = (size_t)(end - rest);
	} else if (strcmp(name, "cwd") != 0 && strcmp(name, "root") != 0) {
		/* Its own files: limits, oom_score_adj, uid_map. */
		return -EXDEV;
	}
	r = read_proc_link(walk->pid, name, number, target);
	if (r < 0)
		return r;
	memmove(rest, rest + skip, strlen(rest + skip) + 1);
	(void)snprintf(path, PATH_MAX, "%s", target);
	return 1;
}

/* Puts the target of the symlink `fd` before `rest`. */
static int
follow_link(int fd, char *path, char *rest)
{
	char target[PATH_MAX];
	size_t left = strlen(rest);
	ssize_t n = readlinkat(fd, "", target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	if ((size_t)n + 1 + left >= PATH_MAX)
		return -ENAMETOOLONG;
	memmove(rest + n + 1, rest, left + 1);
	memcpy(rest, target, (size_t)n);
	rest[n] = '/';
	cut_last(path);
	if (target[0] == '/')
		memcpy(path, "/", 2);
	return 0;
}

/*
 * One component of the walk: moves the first name of `rest` to `path`.
 * Returns 1 after a symlink (that counts), 0 otherwise, or a negative errno.
 */
static int
step(struct walk *walk, char *path, char *rest, bool follow)
{
	_cleanup_(closep) int fd = -1;
	char name[NAME_MAX + 1];
	size_t lead = strspn(rest, "/"), n = strcspn(rest + lead, "/");
	struct stat st;
	bool last;
	int r;

	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, rest + lead, n);
	name[n] = '\0';
	memmove(rest, rest + lead + n, strlen(rest + lead + n) + 1);
	if (strcmp(name, "..") == 0) {
		cut_last(path);
		return 0;
	}
	r = append_clean(path, name);
	if (r < 0)
		return r;
	r = follow_self(walk, path, rest);
	if (r != 0)
		return r;

	last = rest[strspn(rest, "/")] == '\0';
	if (last && !follow)
		return 0;
	fd = open_at(walk, path);
	if (fd == -ENOENT && last)
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return 0;
	r = follow_link(fd, path, rest);
	return r < 0 ? r : 1;
}

/* Resolves `start` + `more` into a path without symlinks and "..". */
static int
walk_path(struct walk *walk, char *path, const char *more, bool follow)
{
	char rest[PATH_MAX];
	int links = 0;

	(void)snprintf(rest, sizeof(rest), "%s", more);
	while (rest[strspn(rest, "/")] != '\0') {
		int r = step(walk, path, rest, follow);

		if (r < 0)
			return r;
		links += r;
		if (links > SYMLINKS_MAX)
			return -ELOOP;
	}
	return 0;
}

static int
describe_mount(int fd, struct place *place)
{
	struct statvfs fs;

	if (fstatvfs(fd, &fs) < 0)
		return -errno;
	place->readonly = fs.f_flag & ST_RDONLY;
	place->nodev = fs.f_flag & ST_NODEV;
	return 0;
}

/* Fills in what is at the resolved path, or at least in its directory. */
static int
describe(struct walk *walk, struct place *place)
{
	_cleanup_(closep) int fd = open_at(walk, place->path);
	_cleanup_(closep) int parent = -1;
	char directory[PATH_MAX];
	struct stat st;

	if (fd < 0 && fd != -ENOENT)
		return fd;
	place->exists = fd >= 0;
	if (place->exists && fstat(fd, &place->st) < 0)
		return -errno;
	if (place->exists) {
		place->parent_dev = place->st.st_dev;
		return describe_mount(fd, place);
	}

	memcpy(directory, place->path, sizeof(directory));
	cut_last(directory);
	parent = open_at(walk, directory);
	if (parent < 0 || fstat(parent, &st) < 0)
		return parent < 0 ? parent : -errno;
	place->parent_exists = S_ISDIR(st.st_mode);
	place->parent_dev = st.st_dev;
	return describe_mount(parent, place);
}

/*
 * In an area that takes writes, or that FUSE guards: all is well unless a
 * symlink leads on.  Returns true when none does.
 */
static bool
is_plain(struct walk *walk, struct area *area, const char *path, bool follow)
{
	_cleanup_(closep) int fd = -1;
	char directory[PATH_MAX];
	const char *rest;
	struct stat st;
	int base;

	if (!follow) {
		(void)snprintf(directory, sizeof(directory), "%s", path);
		if (strlen(path) > area->len)
			cut_last(directory);
		path = directory;
	}
	base = base_of(walk, area, path, &rest);
	if (base < 0)
		return true;
	fd = open_plain(base, rest);
	if (fd < 0)
		return fd != -ELOOP;
	return !follow || fstat(fd, &st) < 0 || !S_ISLNK(st.st_mode);
}

/* Allowed by its name, but a name for something else: an open descriptor. */
static bool
is_magic(const char *path)
{
	return strncmp(path, "/proc/", 6) == 0 ||
	       strncmp(path, "/dev/fd/", 8) == 0 ||
	       strncmp(path, "/dev/std", 8) == 0;
}

/*
 * The host has renamed or removed a FUSE root a moment ago, and `path` may be
 * in it: the name that the inmate has for it now is none that is known here,
 * and a look at it would be a request to ourselves.
 */
static bool
is_moved(const struct look *look, const struct call_name *name,
	 const char *path)
{
	for (size_t i = 0; i < look->n_areas; i++) {
		const struct area *area = &look->areas[i];
		char now[PATH_MAX];
		struct stat st;
		ssize_t n;

		if (area->kind != AREA_FUSE || area->fd < 0)
			continue;
		n = readlinkat(look->own_fds, area->link, now, sizeof(now) - 1);
		now[n > 0 ? n : 0] = '\0';
		/* What is mounted on it goes first, its name a moment later. */
		if ((strcmp(now, area->path) != 0 || fstat(area->fd, &st) < 0 ||
		     st.st_nlink == 0) &&
		    (name->path[0] != '/' || path_is_in(path, now, NULL)))
			return true;
	}
	return false;
}

static int
find(struct walk *walk, const struct call_name *name,
     const struct look_rule *rule, struct place *place)
{
	char start[PATH_MAX];
	struct area *area;
	size_t len = strlen(name->path);
	bool dotdot;
	int r;

	place->slash = len > 0 && name->path[len - 1] == '/';
	r = start_of(walk->pid, name, start);
	if (r < 0)
		return r;
	memcpy(place->path, start, sizeof(start));
	r = append_clean(place->path, name->path);
	if (r < 0)
		return r;
	dotdot = r > 0;

	area = dotdot ? NULL : area_of(walk->look, place->path);
	if (!dotdot && !rule->always_look &&
	    ((area && area->kind == AREA_FUSE) ||
	     rule->allows(rule, place->path))) {
		place->area = area;
		place->settled =
			area ? is_plain(walk, area, place->path, name->follow)
			     : !is_magic(place->path);
		if (place->settled)
			return 0;
	}

	if (is_moved(walk->look, name, place->path))
		return -ENOENT;

	/* Straight to the object; a walk only where that meets a symlink. */
	r = dotdot ? -ELOOP : describe(walk, place);
	if (r == -ELOOP ||
	    (r == 0 && place->exists && S_ISLNK(place->st.st_mode) &&
	     (name->follow || place->slash))) {
		memcpy(place->path, start, sizeof(start));
		r = walk_path(walk, place->path, name->path,
			      name->follow || place->slash);
		if (r == 0)
			r = describe(walk, place);
	}
	if (r == 0)
		place->area = area_of(walk->look, place->path);
	return r;
}

int
look_up(struct look *look, pid_t pid, const struct call_name *name,
	const struct look_rule *rule, struct place *ret_place)
{
	struct walk walk = { .look = look, .pid = pid, .root = -1 };
	struct place *place = ret_place;
	int r;

	place->area = NULL;
	place->settled = false;
	place->exists = false;
	place->parent_exists = false;
	place->parent_dev = 0;
	place->readonly = false;
	place->nodev = false;
	r = find(&walk, name, rule, place);
	closep(&walk.root);
	return r;
}
