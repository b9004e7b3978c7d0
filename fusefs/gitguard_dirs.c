/* SPDX-License-Identifier: MIT */

/*
 * Structure: what is a git directory, and what lies in a tree.
 *
 * An entry counts whatever its type: git follows symlinks here, and a dangling
 * one may lead somewhere later.  So everything that git would take for a git
 * directory is one for us, and some directories more: objects and refs do
 * without HEAD, since a commondir may lead there and git then reads the config.
 * Errors count as "it is there".
 *
 * Searches of a tree are bounded in depth and number of entries; what is not
 * searched to the end is not harmless.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/fd.h"
#include "base/limits.h"
#include "fusefs/gitguard_priv.h"
#include "policy/gitconfig.h"

#define SEARCH_DEPTH   12
#define SEARCH_ENTRIES 65536 /* a repository before its next gc has 7,000 */
#define UPWARD_MAX     128

static bool
has(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       (errno != ENOENT && errno != ENOTDIR);
}

bool
gg_is_gitdir(int dirfd, enum gg_name with)
{
	if ((with == GG_OBJECTS || has(dirfd, "objects")) &&
	    (with == GG_REFS || has(dirfd, "refs")))
		return true;
	return (with == GG_HEAD || has(dirfd, "HEAD")) &&
	       (with == GG_COMMONDIR || has(dirfd, "commondir"));
}

bool
gg_has_head(int dirfd)
{
	return has(dirfd, "HEAD");
}

bool
gg_is_served(const struct policy *policy, const char *path)
{
	int i = policy_root_of(policy, path, NULL);

	return i >= 0 && policy->roots[i].kind != POLICY_ROOT_RW;
}

/* From `dirfd`, without a symlink; `beneath`: and without leaving it. */
static int
open_path(int dirfd, const char *path, bool beneath)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
				.resolve = RESOLVE_NO_SYMLINKS };
	int fd;

	if (beneath)
		how.resolve |= RESOLVE_BENEATH;
	fd = (int)syscall(SYS_openat2, dirfd, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

static int
open_up(int dirfd, unsigned int levels)
{
	char up[3 * UPWARD_MAX + 2] = ".";

	if (levels > UPWARD_MAX)
		return -ELOOP;
	for (unsigned int i = 0; i < levels; i++)
		memcpy(up + 3 * (size_t)i, "../", sizeof("../"));
	return open_path(dirfd, up, false);
}

static bool
is_same(int dirfd, const char *name, const struct stat *self)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       st.st_ino == self->st_ino && st.st_dev == self->st_dev;
}

/* How many names `rest` has. */
static unsigned int
depth_of(const char *rest)
{
	unsigned int depth = *rest != '\0';

	for (const char *c = rest; *c; c++)
		depth += *c == '/';
	return depth;
}

/*
 * An absolute path in the root that `dirfd` lies in is reached by going up from
 * there: the mount may cover the root's own path, and the server would wait for
 * itself.
 */
int
gg_resolve(const struct policy *policy, int dirfd, const char *path)
{
	_cleanup_(closep) int root = -1;
	char here[PATH_MAX];
	const char *rest, *up;
	int r;

	if (path[0] != '/')
		return open_path(dirfd, path, false);
	r = fd_path(dirfd, here);
	if (r < 0)
		return r;
	r = policy_root_of(policy, path, &rest);
	if (r < 0 || r != policy_root_of(policy, here, &up))
		return open_path(dirfd, path, false);
	root = open_up(dirfd, depth_of(up));
	if (root < 0)
		return root;
	return open_path(root, *rest ? rest : ".", true);
}

bool
gg_is_below_gitdir(const struct policy *policy, int dirfd)
{
	char path[PATH_MAX];
	const char *rest = path;
	unsigned int depth;

	if (fd_path(dirfd, path) < 0)
		return true;
	if (policy_root_of(policy, path, &rest) < 0)
		rest = path;
	depth = depth_of(rest);
	for (unsigned int up = 0; up <= depth; up++) {
		_cleanup_(closep) int fd = open_up(dirfd, up);

		if (fd < 0 || gg_is_gitdir(fd, GG_OTHER))
			return true;
	}
	return false;
}

bool
gg_is_reserved(const struct gitguard_at *dir)
{
	_cleanup_(closep) int fd = -1;

	if (!dir->below)
		return false;
	fd = open_up(dir->dirfd, dir->below);
	return fd < 0 || gg_is_gitdir(fd, GG_OTHER);
}

static bool
is_in_gitdir(int dirfd)
{
	_cleanup_(closep) int parent = open_up(dirfd, 1);

	return parent < 0 || gg_is_gitdir(parent, GG_OTHER);
}

bool
gg_is_info(int dirfd)
{
	struct stat self;

	if (fstat(dirfd, &self) < 0)
		return true;
	return is_same(dirfd, "../info", &self) && is_in_gitdir(dirfd);
}

bool
gg_is_picks(int dirfd)
{
	struct stat self;

	if (fstat(dirfd, &self) < 0)
		return true;
	return (is_same(dirfd, "../rebase-merge", &self) ||
		is_same(dirfd, "../sequencer", &self)) &&
	       is_in_gitdir(dirfd);
}

/* ---- searching a tree ---- */

struct search {
	/* Whether this entry is harmless; `dirfd` is the directory of it. */
	bool (*entry)(int dirfd, const char *name, unsigned char type);
	unsigned int max_depth;
	unsigned int left; /* entries that may still be looked at */
};

static void
closedirp(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

static DIR *
open_dir(int dirfd, const char *name)
{
	int fd = openat(dirfd, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static unsigned char
type_of(int dirfd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(dirfd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return IFTODT(st.st_mode);
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by max_depth */
static bool
search_dir(struct search *search, int parent, const char *name,
	   unsigned int depth)
{
	_cleanup_(closedirp) DIR *dir = open_dir(parent, name);
	struct dirent *entry;
	int fd;

	if (!dir)
		return false;
	fd = dirfd(dir);
	while ((entry = readdir(dir))) {
		unsigned char type;

		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		if (search->left-- == 0)
			return false;
		type = type_of(fd, entry);
		if (type == DT_UNKNOWN ||
		    !search->entry(fd, entry->d_name, type))
			return false;
		if (type != DT_DIR || search->max_depth == 0)
			continue;
		if (depth == search->max_depth ||
		    !search_dir(search, fd, entry->d_name, depth + 1))
			return false;
	}
	return true;
}

static bool
search_tree(int dirfd, const char *name, unsigned int max_depth,
	    bool (*entry)(int dirfd, const char *name, unsigned char type))
{
	struct search search = { .entry = entry,
				 .max_depth = max_depth,
				 .left = SEARCH_ENTRIES };

	return search_dir(&search, dirfd, name, 0);
}

static bool
is_sample_file(int dirfd, const char *name, unsigned char type)
{
	(void)dirfd;
	return type == DT_REG && gg_is_sample(name);
}

bool
gg_hooks_are_harmless(int dirfd, const char *name)
{
	return search_tree(dirfd, name, 0, is_sample_file);
}

static bool
is_not_attributes(int dirfd, const char *name, unsigned char type)
{
	(void)dirfd;
	(void)type;
	return gg_classify(name) != GG_ATTRIBUTES;
}

bool
gg_info_is_harmless(int dirfd, const char *name)
{
	return search_tree(dirfd, name, 0, is_not_attributes);
}

static bool
is_no_strategy(int dirfd, const char *name, unsigned char type)
{
	(void)dirfd;
	(void)type;
	return gg_classify(name) != GG_STRATEGY;
}

bool
gg_picks_are_harmless(int dirfd, const char *name)
{
	return search_tree(dirfd, name, 0, is_no_strategy);
}

bool
gg_is_local_target(const char *target)
{
	if (!target || !*target || strchr(target, '/') ||
	    strcmp(target, ".") == 0 || strcmp(target, "..") == 0)
		return false;

	/* git opens its message and state files for writing through a link. */
	switch (gg_classify(target)) {
	case GG_OTHER:
	case GG_HEAD:
	case GG_OBJECTS:
	case GG_REFS:
		return true;
	case GG_CONFIG:
	case GG_COMMONDIR:
	case GG_GITDIR:
	case GG_INDEX:
	case GG_HOOKS:
	case GG_INFO:
	case GG_ATTRIBUTES:
	case GG_DOTGIT:
	case GG_TODO:
	case GG_PICKS:
	case GG_STRATEGY:
		break;
	}
	return false;
}

bool
gg_is_local_link(int dirfd, const char *name)
{
	char target[NAME_MAX + 2];
	ssize_t len = readlinkat(dirfd, name, target, sizeof(target) - 1);

	if (len < 0 || len > NAME_MAX)
		return false;
	target[len] = '\0';
	return gg_is_local_target(target);
}

static bool
is_no_symlink(int dirfd, const char *name, unsigned char type)
{
	return type != DT_LNK || gg_is_local_link(dirfd, name);
}

bool
gg_has_no_symlinks(int dirfd, const char *name)
{
	return search_tree(dirfd, name, SEARCH_DEPTH, is_no_symlink);
}

static int
find_worktree(void *data, const char *key, const char *value)
{
	(void)data;
	(void)value;
	return strcmp(key, "core.worktree") == 0;
}

static bool
names_no_worktree(int dirfd, const char *name, unsigned char type)
{
	_cleanup_(gg_bytes_fini) struct gg_bytes bytes = { 0 };
	struct gitconfig_text text;

	if (type == DT_DIR || gg_classify(name) != GG_CONFIG ||
	    !has(dirfd, "HEAD"))
		return true;
	if (gg_read(dirfd, name, &bytes) < 0)
		return false;
	text = (struct gitconfig_text){ bytes.data, bytes.len };
	return gitconfig_walk(&text, find_worktree, NULL) == 0;
}

bool
gg_has_no_worktree_key(int dirfd, const char *name)
{
	return search_tree(dirfd, name, SEARCH_DEPTH, names_no_worktree);
}

static bool
is_dir(int dirfd, const char *name, unsigned char type)
{
	(void)dirfd;
	(void)name;
	return type == DT_DIR;
}

static bool
is_no_index(int dirfd, const char *name, unsigned char type)
{
	(void)dirfd;
	return type == DT_DIR || gg_classify(name) != GG_INDEX;
}

static bool
is_no_commondir(int dirfd, const char *name, unsigned char type)
{
	(void)dirfd;
	(void)type;
	return gg_classify(name) != GG_COMMONDIR;
}

bool
gg_has_no_commondir(int dirfd, const char *name)
{
	return search_tree(dirfd, name, SEARCH_DEPTH, is_no_commondir);
}

bool
gg_has_no_data(int dirfd)
{
	return search_tree(dirfd, "objects", 2, is_dir) &&
	       search_tree(dirfd, ".", SEARCH_DEPTH, is_no_index);
}
