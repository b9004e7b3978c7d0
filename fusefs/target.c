/* SPDX-License-Identifier: MIT */

#include "fusefs/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

/* How long one that holds a lease has to let go. */
#define BUSY_NS 100000000LL

/* The deepest root that it lies in; the whole tree outside of all. */
static const char *
root_of(const struct policy *policy, const char *path, const char **ret_rest)
{
	int root = policy_root_of(policy, path, ret_rest);

	if (root >= 0 && policy->mode != POLICY_DANGER_FULL_ACCESS)
		return policy->roots[root].path;
	*ret_rest = path + 1;
	return "/";
}

static int
open_parent(struct target *target)
{
	const char *rest, *root;
	char below[PATH_MAX];
	size_t len;

	root = root_of(target->policy, target->path, &rest);
	len = *rest ? (size_t)(target->name - rest) : 0;
	(void)snprintf(below, sizeof(below), "%.*s", (int)len, rest);
	return fd_open_beneath(root, O_NOFOLLOW, below);
}

int
target_open(struct policy *policy, const char *path, struct target *ret_target,
	    bool *ret_missing, struct fsfail *fail)
{
	struct target *target = ret_target;
	const char *rest, *slash = strrchr(path, '/');
	int r;

	*target = (struct target){
		.policy = policy, .path = path, .name = "", .dirfd = -1
	};
	*ret_missing = false;
	if (strlen(path) >= sizeof(target->parent))
		return fsfail_errno(fail, -ENAMETOOLONG, "find", path);
	(void)root_of(policy, path, &rest);
	if (*rest) {
		target->name = slash + 1;
		(void)snprintf(target->parent, sizeof(target->parent), "%.*s",
			       slash == path ? 1 : (int)(slash - path), path);
	} else {
		target->name = ".";
		(void)snprintf(target->parent, sizeof(target->parent), "%s",
			       path);
	}
	r = open_parent(target);
	if (r >= 0)
		target->dirfd = r;
	*ret_missing = r == -ENOENT;
	return r >= 0 || r == -ENOENT ? 0 : fsfail_errno(fail, r, "find", path);
}

void
target_fini(struct target *target)
{
	closep(&target->dirfd);
	target->dirfd = -1;
}

int
target_make_parents(struct target *target, struct fsfail *fail)
{
	const char *rest, *root = root_of(target->policy, target->path, &rest);
	char path[PATH_MAX];
	int r;

	for (const char *at = strchr(rest, '/'); at; at = strchr(at + 1, '/')) {
		struct target dir = TARGET_NONE;
		bool missing;

		(void)snprintf(path, sizeof(path), "%.*s",
			       (int)(at - target->path), target->path);
		r = fd_open_beneath(root, O_NOFOLLOW,
				    path + (rest - target->path));
		if (r >= 0) {
			(void)close(r);
			continue;
		}
		if (r != -ENOENT)
			return fsfail_errno(fail, r, "find", path);
		r = fsfail_judge(fail, target->policy, POLICY_OP_MKDIR, path);
		if (r == 0)
			r = target_open(target->policy, path, &dir, &missing,
					fail);
		if (r == 0 && mkdirat(dir.dirfd, dir.name, 0777) < 0 &&
		    errno != EEXIST)
			r = fsfail_errno(fail, -errno, "make", path);
		target_fini(&dir);
		if (r < 0)
			return r;
	}
	r = open_parent(target);
	if (r < 0)
		return fsfail_errno(fail, r, "find", target->path);
	target->dirfd = r;
	return 0;
}

static int
not_regular(const struct stat *st, const char *path, struct fsfail *fail)
{
	if (S_ISDIR(st->st_mode))
		return fsfail_set(fail, FSFAIL_IS_DIRECTORY,
				  "'%s' is a directory; pale fs list shows it",
				  path);
	return fsfail_set(fail, FSFAIL_NOT_REGULAR_FILE,
			  S_ISLNK(st->st_mode) ? "'%s' is a symlink to nothing"
					       : "'%s' is not a regular file",
			  path);
}

int
target_open_file(const struct target *target, int *ret_fd, struct stat *ret_st,
		 struct fsfail *fail)
{
	int64_t until = clock_mono_ns() + BUSY_NS;
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (fstatat(target->dirfd, target->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? -ENOENT
				       : fsfail_errno(fail, -errno, "find",
						      target->path);
	if (!S_ISREG(st.st_mode))
		return not_regular(&st, target->path, fail);

	/* A lease of somebody else would keep us waiting. */
	while ((fd = openat(target->dirfd, target->name,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY |
				    O_CLOEXEC)) < 0 &&
	       errno == EWOULDBLOCK && clock_mono_ns() < until)
		(void)usleep(1000);
	if (fd < 0)
		return errno == ENOENT ? -ENOENT
				       : fsfail_errno(fail, -errno, "open",
						      target->path);
	if (fstat(fd, &st) < 0)
		return fsfail_errno(fail, -errno, "find", target->path);
	if (!S_ISREG(st.st_mode))
		return not_regular(&st, target->path, fail);
	*ret_st = st;
	*ret_fd = take_fd(&fd);
	return 0;
}
