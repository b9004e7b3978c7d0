/* SPDX-License-Identifier: MIT */

/*
 * A mount of the host can lie where a world writes: in its workspace, or in a
 * directory that was given to it by --rw.  Orders from there would be carried
 * out under another policy than the caller's, so they are refused.
 *
 * Whoever is in a pid namespace of his own may be such a caller; of the others,
 * the warden that passes his requests on, and what Landlock alone fences, which
 * always descends from a process of ours.
 */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "fusefs/tree_priv.h"

#define ANCESTORS_MAX 256

struct status {
	char name[32];
	pid_t tgid, parent;
	bool nested, filtered;
};

/* The text after `key`, which begins a line; NULL: no such line. */
static const char *
value_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : NULL;
}

static pid_t
number_of(const char *text, const char *key)
{
	const char *at = value_of(text, key);

	return at ? (pid_t)strtol(at, NULL, 10) : 0;
}

static int
read_status(pid_t pid, struct status *ret_status)
{
	char path[64], text[16384];
	_cleanup_(closep) int fd = -1;
	const char *ids;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = fd_read_all(fd, text, sizeof(text) - 1);
	if (n < 0)
		return (int)n;
	text[n] = '\0';
	ids = value_of(text, "\nNSpid:\t");
	if (!ids || sscanf(text, "Name:\t%31[^\n]", ret_status->name) != 1)
		return -ENOTSUP;
	ids += strspn(ids, "0123456789");
	ret_status->nested = *ids != '\n';
	ret_status->tgid = number_of(text, "\nTgid:\t");
	ret_status->parent = number_of(text, "\nPPid:\t");
	ret_status->filtered = number_of(text, "\nSeccomp:\t") != 0;
	return 0;
}

static bool
is_ours(const char *name)
{
	return strcmp(name, "pale-warden") == 0 ||
	       strcmp(name, "pale-init") == 0 ||
	       strcmp(name, "pale-command") == 0;
}

bool
tree_caller_is_fenced(pid_t pid)
{
	struct status status = { .nested = true };

	/* 0: of a pid namespace that is none of ours. */
	if (pid <= 0 || read_status(pid, &status) != 0 || status.nested ||
	    (status.tgid != pid && read_status(status.tgid, &status) != 0))
		return true;
	if (!status.filtered)
		return is_ours(status.name);
	for (int i = 0; i < ANCESTORS_MAX; i++) {
		if (is_ours(status.name))
			return true;
		if (status.parent <= 1)
			return false;
		/* Gone meanwhile: its children have another parent now. */
		if (read_status(status.parent, &status) != 0 &&
		    read_status(pid, &status) != 0)
			return true;
	}
	return true;
}
