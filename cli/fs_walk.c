/* SPDX-License-Identifier: MIT */

#include "cli/fs_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/path.h"
#include "policy/ignore.h"

/* Each holds a descriptor. */
#define DEPTH_MAX 512

/* One directory that the walk is in. */
struct level {
	int fd;
	char *path; /* below the start; "" for it */
	struct strv names;
	size_t next;
	struct ignore *ignore; /* owned; does not move */
};

struct levels {
	struct level *items;
	size_t count;
	const char *top; /* canonical */
	char *prefix;	 /* of the start below the top of the workspace */
};

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int
fs_names(int dirfd, struct strv *ret_names)
{
	DIR *dir = fdopendir(dirfd);
	const struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = -errno;
		(void)close(dirfd);
		return r;
	}
	while (r == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0)
			r = strv_add(ret_names, entry->d_name);
	(void)closedir(dir);
	if (ret_names->count > 1)
		qsort(ret_names->items, ret_names->count,
		      sizeof(*ret_names->items), by_name);
	return r;
}

static void
level_fini(struct level *level)
{
	closep(&level->fd);
	free(level->path);
	strv_fini(&level->names);
	if (level->ignore)
		ignore_leave(level->ignore);
	free(level->ignore);
}

static char *
join(const char *dir, const char *name)
{
	char *path;

	if (asprintf(&path, "%s%s%s", dir, *dir && *name ? "/" : "", name) < 0)
		return NULL;
	return path;
}

/* Takes `fd`. */
static int
push(struct levels *levels, int fd, const char *path,
     const struct ignore *above)
{
	struct level *level = &levels->items[levels->count];
	_cleanup_(freep) char *from_top = join(levels->prefix, path);
	int again;
	int r;

	*level = (struct level){ .fd = fd, .path = strdup(path) };
	level->ignore = calloc(1, sizeof(*level->ignore));
	levels->count++;
	if (!level->path || !level->ignore || !from_top)
		return -ENOMEM;
	r = ignore_enter(above, fd, from_top, level->ignore);
	again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (again < 0)
		return -errno;
	return r < 0 ? (close(again), r) : fs_names(again, &level->names);
}

static void
pop(struct levels *levels)
{
	level_fini(&levels->items[--levels->count]);
}

static bool
is_left_out(const struct fs_walk *walk, const struct levels *levels,
	    const struct level *level, const char *path, const struct stat *st)
{
	const char *name = strrchr(path, '/');
	struct fsfail look = { .code = FSFAIL_NONE };
	_cleanup_(freep) char *full = join(levels->top, path);
	bool is_dir = S_ISDIR(st->st_mode);

	name = name ? name + 1 : path;
	if (!full || strcmp(name, ".git") == 0 ||
	    fsfail_judge_look(&look, walk->verb->policy, full, is_dir) < 0)
		return true;
	return !walk->no_ignore && ignore_has(level->ignore, name, is_dir);
}

/* The next name of the deepest directory. */
static int
step(struct fs_walk *walk, struct levels *levels)
{
	struct level *level = &levels->items[levels->count - 1];
	const char *name = level->names.items[level->next++];
	_cleanup_(freep) char *path = join(level->path, name);
	struct stat st;
	int fd;

	if (!path)
		return -ENOMEM;
	if (fstatat(level->fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) ||
	    is_left_out(walk, levels, level, path, &st))
		return 0;
	if (S_ISREG(st.st_mode)) {
		const struct fs_file file = { .dirfd = level->fd,
					      .name = name,
					      .path = path,
					      .st = &st };

		return walk->file(walk->data, &file);
	}
	fd = levels->count < DEPTH_MAX
		     ? openat(level->fd, name,
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
		     : -1;
	if (fd < 0 || push(levels, fd, path, level->ignore) < 0) {
		walk->unread++;
		if (fd >= 0)
			pop(levels);
	}
	return 0;
}

/*
 * The ignore files from the workspace down to the start hold as well: each is
 * entered, though nothing else there is looked at.
 */
static int
enter_above(const struct fs_walk *walk, const char *rest, struct ignore *chain,
	    size_t *ret_n)
{
	const char *root = walk->verb->policy->roots[0].path;
	_cleanup_(closep) int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0, done = 0;
	int r = 0;

	while (r == 0 && fd >= 0 && n < DEPTH_MAX && rest[done]) {
		_cleanup_(freep) char *path = strndup(rest, done);
		size_t skip = done + (rest[done] == '/'), len;
		char name[NAME_MAX + 1];
		int next;

		if (!path)
			return -ENOMEM;
		r = ignore_enter(n ? &chain[n - 1] : NULL, fd, path, &chain[n]);
		if (r < 0)
			return r;
		*ret_n = ++n;
		len = strcspn(rest + skip, "/");
		(void)snprintf(name, sizeof(name), "%.*s", (int)len,
			       rest + skip);
		done = skip + len;
		next = openat(fd, name,
			      O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		(void)close(fd);
		fd = next;
	}
	return r;
}

int
fs_walk(struct fs_walk *walk, const char *path, int dirfd)
{
	_cleanup_(freep) struct ignore *chain =
		calloc(DEPTH_MAX, sizeof(*chain));
	_cleanup_(freep) struct level *items =
		calloc(DEPTH_MAX + 1, sizeof(*items));
	struct levels levels = { .items = items, .top = path };
	const char *rest = "";
	size_t n = 0;
	int fd, r = 0;

	if (!chain || !items)
		return -ENOMEM;
	if (path_is_in(path, walk->verb->policy->roots[0].path, &rest))
		r = enter_above(walk, rest, chain, &n);
	levels.prefix = strdup(rest);
	fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r == 0 && !levels.prefix)
		r = -ENOMEM;
	if (r == 0 && fd < 0)
		r = -errno;
	if (r == 0)
		r = push(&levels, fd, "", n ? &chain[n - 1] : NULL);
	while (r == 0 && levels.count > 0) {
		struct level *level = &levels.items[levels.count - 1];

		if (level->next < level->names.count)
			r = step(walk, &levels);
		else
			pop(&levels);
	}
	while (levels.count > 0)
		pop(&levels);
	while (n > 0)
		ignore_leave(&chain[--n]);
	free(levels.prefix);
	return r;
}
