/* SPDX-License-Identifier: MIT */

/*
 * Whose a file is, as an ordinary user's world shows it.
 *
 * Its user namespace knows one user and one group.  The kernel writes to no
 * inode whose owner or group it does not know there, whatever the mode says:
 * a directory of a second group of the user's could not be written to, nor
 * one that is everybody's.  So what the user may write to is shown as his own;
 * everything else as the kernel shows it, and the disk decides in any case.
 */

#include <stdlib.h>
#include <unistd.h>

#include "fusefs/ops.h"

int
fs_owner_init(struct fs *fs)
{
	int n;

	fs->owner.maps = !fs->config.multi_uid && !fs->config.host_visible;
	fs->owner.uid = geteuid();
	fs->owner.gid = getegid();
	n = fs->owner.maps ? getgroups(0, NULL) : 0;
	if (n <= 0)
		return 0;
	fs->owner.groups = calloc((size_t)n, sizeof(gid_t));
	if (!fs->owner.groups)
		return -ENOMEM;
	n = getgroups(n, fs->owner.groups);
	fs->owner.n_groups = n < 0 ? 0 : (size_t)n;
	return 0;
}

static bool
is_ours(const struct fs_owner *owner, gid_t gid)
{
	for (size_t i = 0; i < owner->n_groups; i++)
		if (owner->groups[i] == gid)
			return true;
	return gid == owner->gid;
}

static bool
may_be_written(const struct fs_owner *owner, const struct stat *attr)
{
	if (attr->st_uid == owner->uid)
		return true;
	/* The mode of a symlink says nothing. */
	if (S_ISLNK(attr->st_mode))
		return false;
	return (attr->st_mode & S_IWOTH) ||
	       ((attr->st_mode & S_IWGRP) && is_ours(owner, attr->st_gid));
}

void
fs_owner_shown(const struct fs *fs, struct stat *attr)
{
	const struct fs_owner *owner = &fs->owner;

	if (!owner->maps ||
	    (attr->st_uid == owner->uid && attr->st_gid == owner->gid) ||
	    !may_be_written(owner, attr))
		return;
	attr->st_uid = owner->uid;
	attr->st_gid = owner->gid;
}
