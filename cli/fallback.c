/* SPDX-License-Identifier: MIT */

#include "cli/fallback.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/dirs.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/tree.h"

/*
 * One directory for all that is this run's alone: tmp for the command, and run
 * for the warden where there is no other place (a world in a world).
 */
static int
make_temp(const struct policy *policy, char **ret_temp)
{
	static const char *const places[] = { "/tmp", "/var/tmp" };

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		_cleanup_(freep) char *path = NULL;

		/* Below a root it would be the workspace's. */
		if (policy_root_of(policy, places[i], NULL) >= 0)
			continue;
		if (asprintf(&path, "%s/pale-XXXXXX", places[i]) < 0)
			return -ENOMEM;
		if (!mkdtemp(path))
			continue;
		*ret_temp = take_ptr(&path);
		return 0;
	}
	*ret_temp = strdup("");
	return *ret_temp ? 0 : -ENOMEM;
}

static int
make_below(const char *temp, const char *name, char **ret_path)
{
	if (!*temp)
		return -ENOENT;
	if (asprintf(ret_path, "%s/%s", temp, name) < 0)
		return -ENOMEM;
	return mkdir(*ret_path, 0700) < 0 ? -errno : 0;
}

/* The warden's socket and, without other state, its records. */
static int
find_runtime(const char *temp)
{
	_cleanup_(freep) char *usual = NULL;
	_cleanup_(freep) char *ours = NULL;
	int r;

	r = dirs_runtime(&usual);
	if (r < 0 || dirs_make(usual, NULL) == 0)
		return r;
	r = make_below(temp, "run", &ours);
	if (r < 0)
		return r;
	return setenv("XDG_RUNTIME_DIR", ours, 1) < 0 ? -errno : 0;
}

/* A socket that is given unconnected could be connected, unjudged. */
static bool
is_loose_socket(int fd)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer), size = sizeof(int);
	int domain;

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 &&
	       domain == AF_UNIX &&
	       getpeername(fd, (struct sockaddr *)&peer, &len) < 0;
}

/* What is open for writing may be opened so again: /dev/stdout. */
static int
add_file(int fd, struct strv *given)
{
	int flags = fcntl(fd, F_GETFL);
	char path[PATH_MAX];
	struct stat st;

	if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY ||
	    fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink == 0)
		return 0;
	return fd_path(fd, path) == 0 && path_is_clean(path)
		       ? strv_add(given, path)
		       : 0;
}

static int
find_given(const char *console, struct strv *given, struct errmsg *why)
{
	int r = console && *console ? strv_add(given, console) : 0;

	for (int fd = 0; fd <= 2 && r == 0; fd++) {
		if (is_loose_socket(fd))
			return errmsg_set(why, -ENOTSUP,
					  "Landlock alone cannot keep "
					  "descriptor %d, a socket, from being "
					  "connected",
					  fd);
		r = add_file(fd, given);
	}
	return r < 0 ? errmsg_set(why, r, "out of memory") : 0;
}

int
fallback_prepare(const struct policy *policy, const char *console,
		 struct fallback *ret_fallback, struct errmsg *why)
{
	_cleanup_(fallback_fini) struct fallback fallback = { 0 };
	_cleanup_(strv_fini) struct strv given = { 0 };
	_cleanup_(freep) char *tmp = NULL;
	int r;

	if (policy->require_full)
		return errmsg_set(why, -ENOTSUP,
				  "--require full wants no less");
	r = find_given(console, &given, why);
	/* Before anything is made. */
	if (r == 0)
		r = policy_with_landlock(policy, NULL, &given, &fallback.policy,
					 why);
	if (r < 0)
		return r;
	fallback.policy = policy_unref(fallback.policy);

	r = make_temp(policy, &fallback.temp);
	if (r == 0)
		r = find_runtime(fallback.temp);
	if (r == -ENOENT)
		return errmsg_set(why, -EROFS,
				  "there is no place for its records; to the "
				  "world around this one, --tmp gives one");
	if (r == 0 && policy->tmp_writable)
		r = make_below(fallback.temp, "tmp", &tmp);
	if (r < 0 && r != -ENOENT)
		return errmsg_set(why, r, "no temporary directory: %s",
				  strerror(-r));
	r = policy_with_landlock(policy, tmp, &given, &fallback.policy, why);
	if (r < 0)
		return r;
	ret_fallback->policy = take_ptr(&fallback.policy);
	ret_fallback->temp = take_ptr(&fallback.temp);
	return 0;
}

/* The keeper has removed it, unless it was killed or never came so far. */
static void
remove_temp(const char *temp)
{
	_cleanup_(closep) int fd =
		open(temp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0 && tree_empty(fd) == 0)
		(void)rmdir(temp);
}

void
fallback_fini(struct fallback *fallback)
{
	if (fallback->temp && *fallback->temp)
		remove_temp(fallback->temp);
	policy_unref(fallback->policy);
	free(fallback->temp);
	*fallback = (struct fallback){ 0 };
}
