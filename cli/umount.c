/* SPDX-License-Identifier: MIT */

/* pale umount MOUNTPOINT */

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostmount.h"
#include "cli/cli.h"
#include "cli/worlds.h"

/* Longer than a warden takes to bring its last records to the store. */
#define GONE_TIMEOUT_MS 40000

struct opts {
	struct cli_common common;
	bool lazy;
};

static const struct cli_option rows[] = {
	{ "lazy", 'l', CLI_FLAG, offsetof(struct opts, lazy), NULL,
	  "detach it now, also while it is in use", NULL },
	CLI_END,
};

static const struct cli_usage usage = {
	.command = "umount",
	.synopsis = "[options] MOUNTPOINT",
	.about = "Takes away what pale mount has mounted, and waits until "
		 "its records are kept.",
	.usage_status = 2,
};

/* A dead mount goes lazily: it has no users that could be asked to leave. */
static int
remove_mount(const char *mountpoint, bool lazy, struct errmsg *why)
{
	int r = hostmount_remove(mountpoint,
				 lazy || hostmount_is_dead(mountpoint), why);

	if (r != -EBUSY)
		return r;
	return errmsg_set(why, r,
			  "'%s' is busy: somebody has files open there or "
			  "works in it (see: fuser -vm %s); pale umount -l "
			  "detaches it all the same",
			  mountpoint, mountpoint);
}

static int
unmount(const char *mountpoint, bool lazy, struct errmsg *why)
{
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	const struct world_info *world = NULL;
	char type[64];
	dev_t dev;
	int r;

	if (hostmount_find(mountpoint, &dev, type, sizeof(type)) < 0 ||
	    strcmp(type, HOSTMOUNT_TYPE) != 0)
		return errmsg_set(why, -EINVAL, "'%s' is no mount of pale",
				  mountpoint);
	/* Before the mount goes: its world must be found by it. */
	r = worlds_list(&list, why);
	if (r < 0)
		return r;
	for (size_t i = 0; i < list.count && !world; i++)
		if (list.items[i].mountpoint &&
		    strcmp(list.items[i].mountpoint, mountpoint) == 0)
			world = &list.items[i];

	r = remove_mount(mountpoint, lazy, why);
	/* Detached while in use: its world ends with its last user. */
	if (r < 0 || !world || lazy)
		return r;
	r = worlds_await_end(world, GONE_TIMEOUT_MS);
	if (r < 0)
		return errmsg_set(why, r,
				  "'%s' is unmounted, but its warden (process "
				  "%d) has not ended",
				  mountpoint, (int)world->pid);
	return 0;
}

int
cmd_umount(int argc, char **argv)
{
	struct opts opts = { 0 };
	const struct cli_group groups[] = {
		{ rows, &opts },
		{ cli_common_options, &opts.common },
		{ 0 },
	};
	_cleanup_(freep) char *mountpoint = NULL;
	struct errmsg why = { "" };
	int first, status, r;

	if (!cli_parse(&usage, groups, argc, argv, &first, &status))
		return status;
	if (argc - first != 1)
		return cli_usage_error(&usage, "one MOUNTPOINT");
	r = hostmount_canonical(argv[first], &mountpoint);
	if (r < 0)
		(void)errmsg_set(&why, r, "'%s': %s", argv[first],
				 strerror(-r));
	else
		r = unmount(mountpoint, opts.lazy, &why);
	if (r < 0) {
		cli_error("%s", why.text);
		return 1;
	}
	return 0;
}
