/* SPDX-License-Identifier: MIT */

/*
 * What the host mounts below a served root, or takes away there: another tree
 * is at that name, and no directory tells of it.
 */

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/hostmount.h"
#include "fusefs/watch_priv.h"

#define MOUNTINFO "/proc/self/mountinfo"

static bool
lies_below(const char *path, const char *root)
{
	size_t len = strlen(root);

	if (len == 1)
		return true;
	return strncmp(path, root, len) == 0 && path[len] == '/';
}

static bool
lies_in_roots(const struct policy *policy, const char *path)
{
	for (size_t i = 0; i < policy->n_roots; i++)
		if (policy->roots[i].kind != POLICY_ROOT_RW &&
		    lies_below(path, policy->roots[i].path))
			return true;
	return false;
}

static uint64_t
add_text(uint64_t hash, const char *text)
{
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash * 0x100000001b3u;
}

/* Of the mounts below our roots: their numbers, devices and places. */
static uint64_t
mounts_hash(const struct policy *policy)
{
	_cleanup_(freep) char *line = NULL;
	FILE *file = fopen(MOUNTINFO, "re");
	uint64_t hash = 0xcbf29ce484222325u;
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0) {
		/* id, parent, device, root, place */
		char *words[5] = { NULL }, *rest = line;

		for (size_t i = 0; i < 5 && rest; i++)
			words[i] = strsep(&rest, " ");
		if (!words[4])
			continue;
		hostmount_unescape(words[4]);
		if (!lies_in_roots(policy, words[4]))
			continue;
		hash = add_text(hash, words[0]);
		hash = add_text(hash, words[2]);
		hash = add_text(hash, words[4]);
	}
	if (file)
		(void)fclose(file);
	return hash;
}

void
watch_mounts_open(struct fs_watch *watch, const struct policy *policy)
{
	watch->mounts = open(MOUNTINFO, O_RDONLY | O_CLOEXEC);
	watch->mounts_hash = mounts_hash(policy);
}

bool
watch_mounts_changed(struct fs_watch *watch, const struct policy *policy)
{
	struct pollfd fd = { .fd = watch->mounts, .events = POLLPRI };
	uint64_t hash;

	if (watch->mounts < 0 || (poll(&fd, 1, 0) <= 0 && !watch->mounts_told))
		return false;
	watch->mounts_told = false;
	hash = mounts_hash(policy);
	if (hash == watch->mounts_hash)
		return false;
	watch->mounts_hash = hash;
	return true;
}
