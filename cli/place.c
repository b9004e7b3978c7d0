/* SPDX-License-Identifier: MIT */

#include "cli/place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Is `..` among the names of `rest`?  Below what is not there it has no sense. */
static bool
climbs(const char *rest)
{
	for (const char *at = rest; at; at = strchr(at, '/')) {
		at += strspn(at, "/");
		if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2]))
			return true;
	}
	return false;
}

/* Appends the names of `rest` to `base`, without empty ones and ".". */
static int
join(const char *base, char *rest, char **ret_path)
{
	size_t room = strlen(base) + strlen(rest) + 2;
	char *path = malloc(room), *name, *state = NULL;
	size_t len;

	if (!path)
		return -ENOMEM;
	len = (size_t)snprintf(path, room, "%s",
			       strcmp(base, "/") == 0 ? "" : base);
	for (name = strtok_r(rest, "/", &state); name;
	     name = strtok_r(NULL, "/", &state))
		if (strcmp(name, ".") != 0)
			len += (size_t)snprintf(path + len, room - len, "/%s",
						name);
	if (len == 0)
		snprintf(path, room, "/");
	*ret_path = path;
	return 0;
}

/* Cuts off the last name (at least one is there); returns where it begins. */
static char *
last_name(char *path)
{
	size_t len = strlen(path), end = len;

	while (len > 0 && path[len - 1] == '/')
		len--;
	if (len == 0)
		return path + end;
	while (len > 0 && path[len - 1] != '/')
		len--;
	return path + len;
}

int
place_canonical(const char *path, bool follow, char **ret_path)
{
	_cleanup_(freep) char *head = strdup(path), *tail = NULL, *real = NULL;
	char *at;

	if (!*path)
		return -EINVAL;
	if (!head)
		return -ENOMEM;
	/* What has no name of its own has nothing to be followed. */
	at = last_name(head);
	follow = follow || !*at || climbs(at) || strcmp(at, ".") == 0;
	tail = strdup("");
	if (!tail)
		return -ENOMEM;

	/* Drops names from the end until the rest is there. */
	while (!(follow && (real = realpath(*head ? head : ".", NULL)))) {
		char *longer = NULL;

		if (follow && errno != ENOENT && errno != ENOTDIR)
			return -errno;
		if (!*head)
			return -ENOENT;
		at = last_name(head);
		if (asprintf(&longer, "%s/%s", at, tail) < 0)
			return -ENOMEM;
		free(tail);
		tail = longer;
		*at = '\0';
		follow = true;
	}
	if (climbs(tail))
		return -EINVAL;
	return join(real, tail, ret_path);
}
