/* SPDX-License-Identifier: MIT */

/* pale umount MOUNTPOINT */

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hostmount.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/worlds.h"

/* Longer than a warden takes to bring its last records to the store. */
#define GONE_TIMEOUT_MS 40000

/* What the last of its mounts takes with it is gone at once. */
#define BY_ITSELF_MS 300
#define CALL_MS	     5000

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

/*
 * The face of a standing world has gone, perhaps the world with it.  When it
 * answers, what was refused through the mount is in the store.
 */
static int
end_face(const struct world_info *world, const char *mountpoint)
{
	_cleanup_(rpc_client_closep) struct rpc_client *client = NULL;
	_cleanup_(buf_fini) struct buf params = { 0 };
	json_t *result = NULL;
	bool ends;

	if (worlds_await_end(world->dir, BY_ITSELF_MS) == 0)
		return 0;
	jsonw_begin(&params, '{');
	jsonw_pair(&params, "mountpoint", mountpoint);
	jsonw_end(&params, '}');
	if (rpc_client_open(world->dir, RPC_OPERATOR, &client, NULL) == 0 &&
	    rpc_client_call(client, RPC_WORLD_UNMOUNT, &params, CALL_MS,
			    &result, NULL) == 0) {
		ends = json_is_true(json_object_get(result, "ends"));
		json_decref(result);
		if (!ends)
			return rpc_client_call(client, RPC_DENIAL_LIST, NULL,
					       CALL_MS, NULL, NULL);
	}
	/* Unless it was about to end anyway. */
	return worlds_await_end(world->dir, GONE_TIMEOUT_MS);
}

/*
 * A world that runs has a copy of every mount in its own namespace, so the
 * file system may live on where nobody can take it away: its warden is told.
 * What was written through a mapping would be lost with it: hence the sync.
 */
static int
end_world(const struct world_info *world)
{
	_cleanup_(rpc_client_closep) struct rpc_client *client = NULL;

	if (worlds_await_end(world->dir, BY_ITSELF_MS) == 0)
		return 0;
	if (rpc_client_open(world->dir, RPC_OPERATOR, &client, NULL) == 0)
		(void)rpc_client_call(client, RPC_WORLD_STOP, NULL, CALL_MS,
				      NULL, NULL);
	return worlds_await_end(world->dir, GONE_TIMEOUT_MS);
}

static void
sync_mount(const char *mountpoint)
{
	int fd = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0)
		(void)syncfs(fd);
	closep(&fd);
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

	if (world && !lazy)
		sync_mount(mountpoint);
	r = remove_mount(mountpoint, lazy, why);
	/* Detached while in use: its world ends with its last user. */
	if (r < 0 || !world || lazy)
		return r;
	r = strcmp(world->kind, "standing") == 0 ? end_face(world, mountpoint)
						 : end_world(world);
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
