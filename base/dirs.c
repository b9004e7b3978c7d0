/* SPDX-License-Identifier: MIT */

#include "base/dirs.h"

#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"

/* $HOME, as the directory specification has it. */
static const char *
home_dir(void)
{
	const char *home = getenv("HOME");
	const struct passwd *pw;

	if (home && home[0] == '/')
		return home;
	pw = getpwuid(getuid());
	return pw && pw->pw_dir && pw->pw_dir[0] == '/' ? pw->pw_dir : "/";
}

/*
 * The user's own home, by the user database; NULL when there is none (nobody,
 * a number without a name).
 */
static const char *
user_home(void)
{
	const struct passwd *pw = getpwuid(getuid());
	struct stat st;

	if (pw && pw->pw_dir && pw->pw_dir[0] == '/' &&
	    stat(pw->pw_dir, &st) == 0 && S_ISDIR(st.st_mode) &&
	    st.st_uid == pw->pw_uid)
		return pw->pw_dir;
	return NULL;
}

static int
xdg_dir(const char *variable, const char *home, const char *below_home,
	char **ret_path)
{
	const char *base = getenv(variable);
	int len;

	if (base && base[0] == '/')
		len = asprintf(ret_path, "%s/pale", base);
	else
		len = asprintf(ret_path, "%s/%s/pale", home, below_home);
	return len < 0 ? -ENOMEM : 0;
}

/*
 * Not below $HOME: harnesses give their commands a HOME of their own, and the
 * records are one per user all the same and must not turn up in there.
 */
int
dirs_state(char **ret_path)
{
	const char *base = getenv("XDG_STATE_HOME");
	const char *home = user_home();

	if (!home && !(base && base[0] == '/'))
		return asprintf(ret_path, "/var/tmp/pale-%u/state",
				(unsigned)getuid()) < 0
			       ? -ENOMEM
			       : 0;
	return xdg_dir("XDG_STATE_HOME", home, ".local/state", ret_path);
}

int
dirs_config(char **ret_path)
{
	return xdg_dir("XDG_CONFIG_HOME", home_dir(), ".config", ret_path);
}

int
dirs_runtime(char **ret_path)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	int len;

	/* A directory that is not there (su, cron) is as good as none. */
	if (base && base[0] == '/' && access(base, W_OK | X_OK) == 0)
		len = asprintf(ret_path, "%s/pale", base);
	else if (geteuid() == 0)
		len = asprintf(ret_path, "/run/pale");
	else
		len = asprintf(ret_path, "/tmp/pale-%u", (unsigned)geteuid());
	return len < 0 ? -ENOMEM : 0;
}

int
dirs_check(const char *path, struct errmsg *why)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errmsg_set(why, -errno, "cannot look at '%s': %s", path,
				  strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)))
		return errmsg_set(why, -EPERM,
				  "'%s' must be a directory that only its "
				  "owner, this user, may write",
				  path);
	return 0;
}

int
dirs_make(const char *path, struct errmsg *why)
{
	_cleanup_(freep) char *copy = strdup(path);

	if (!copy)
		return errmsg_set(why, -ENOMEM, "out of memory");
	for (char *at = copy + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(copy, 0700) < 0 && errno != EEXIST)
			return errmsg_set(why, -errno, "cannot make '%s': %s",
					  copy, strerror(errno));
		*at = '/';
	}
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return errmsg_set(why, -errno, "cannot make '%s': %s", path,
				  strerror(errno));
	return dirs_check(path, why);
}
