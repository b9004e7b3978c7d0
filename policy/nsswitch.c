/* SPDX-License-Identifier: MIT */

/*
 * Without these a user of a directory service has no name inside, and `id`,
 * ssh and git complain.  Each of them answers look-ups for whoever asks and
 * takes no orders, with two exceptions: nscd can be told to end by uid 0, so a
 * root's world has none; and resolved, nscd and sssd ask other machines, which
 * a world without a network must have no way to do.
 */

#include "policy/nsswitch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "policy/policy_priv.h"

#define NSSWITCH_MAX (64u << 10)
#define USERDB	     "/run/systemd/userdb"
#define USERDB_MAX   32

static bool
is_of_users(const char *database)
{
	static const char *const names[] = { "passwd", "group", "initgroups",
					     "shadow", "gshadow" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(database, names[i]) == 0)
			return true;
	return false;
}

static unsigned int
service_of(const char *database, const char *name)
{
	static const char *const local[] = { "files", "compat", "db" };
	unsigned int found = 0;
	bool users = is_of_users(database);

	if (strcmp(name, "sss") == 0)
		found |= NSSWITCH_SSS;
	if (users && strcmp(name, "systemd") == 0)
		found |= NSSWITCH_SYSTEMD;
	if (strcmp(database, "hosts") == 0 && strcmp(name, "resolve") == 0)
		found |= NSSWITCH_RESOLVE;
	if (!users)
		return found;
	for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
		if (strcmp(name, local[i]) == 0)
			return found;
	return found | NSSWITCH_NSCD;
}

/* What is to be done on which answer: "[!UNAVAIL=return]". */
static void
drop_actions(char *line)
{
	char *open, *close;

	while ((open = strchr(line, '[')) != NULL) {
		close = strchr(open, ']');
		memset(open, ' ',
		       close ? (size_t)(close - open) + 1 : strlen(open));
	}
}

unsigned int
nsswitch_services(const char *text)
{
	_cleanup_(freep) char *copy = strdup(text);
	unsigned int found = 0;
	char *line, *lines;

	if (!copy)
		return 0;
	for (line = strtok_r(copy, "\n", &lines); line;
	     line = strtok_r(NULL, "\n", &lines)) {
		char *database, *name, *rest;

		line[strcspn(line, "#")] = '\0';
		drop_actions(line);
		database = strtok_r(line, ": \t", &rest);
		if (!database)
			continue;
		while ((name = strtok_r(NULL, ": \t", &rest)) != NULL)
			found |= service_of(database, name);
	}
	return found;
}

/* In a root the files are the world's; what is hidden is out of reach. */
static bool
is_wanted(const struct policy *policy, const char *path)
{
	if (policy_root_of(policy, path, NULL) >= 0 ||
	    strv_has(&policy->sockets, path))
		return false;
	for (size_t i = 0; i < policy->hide_paths.count; i++)
		if (path_is_in(path, policy->hide_paths.items[i], NULL))
			return false;
	return true;
}

static int
add_socket(struct policy *policy, const char *dir, const char *name)
{
	_cleanup_(freep) char *real = realpath(dir, NULL), *path = NULL;
	struct stat st;

	if (!real)
		return errno == ENOMEM ? -ENOMEM : 0;
	if (asprintf(&path, "%s/%s", real, name) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	if (stat(path, &st) < 0 || !S_ISSOCK(st.st_mode) ||
	    !is_wanted(policy, path))
		return 0;
	return strv_add(&policy->name_sockets, path);
}

static int
add_userdb(struct policy *policy)
{
	DIR *dir = opendir(USERDB);
	const struct dirent *entry;
	int r = 0;

	if (!dir)
		return 0;
	while (r == 0 && policy->name_sockets.count < USERDB_MAX &&
	       (entry = readdir(dir)) != NULL)
		r = add_socket(policy, USERDB, entry->d_name);
	(void)closedir(dir);
	return r;
}

int
nsswitch_resolve(struct policy *policy)
{
	_cleanup_(freep) char *text = NULL;
	unsigned int services;
	size_t len;
	int r = 0;

	if (fd_read_path(AT_FDCWD, "/etc/nsswitch.conf", NSSWITCH_MAX, &text,
			 &len) < 0)
		return 0;
	services = nsswitch_services(text);
	if (services & NSSWITCH_SYSTEMD)
		r = add_userdb(policy);
	if (policy->net == POLICY_NET_NONE)
		return r;
	if (r == 0 && (services & NSSWITCH_SSS))
		r = add_socket(policy, "/var/lib/sss/pipes", "nss");
	if (r == 0 && (services & NSSWITCH_RESOLVE))
		r = add_socket(policy, "/run/systemd/resolve",
			       "io.systemd.Resolve");
	if (r == 0 && geteuid() != 0 && (services & NSSWITCH_NSCD))
		r = add_socket(policy, "/run/nscd", "socket");
	return r;
}
