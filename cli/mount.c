/* SPDX-License-Identifier: MIT */

/* pale mount WORKSPACE MOUNTPOINT */

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/host_world.h"

struct opts {
	struct cli_common common;
	struct cli_policy_options policy;
	bool foreground;
};

static const struct cli_option rows[] = {
	{ "foreground", 'f', CLI_FLAG, offsetof(struct opts, foreground), NULL,
	  "stay until it is unmounted", NULL },
	CLI_END,
};

static const struct cli_usage usage = {
	.command = "mount",
	.synopsis = "[options] WORKSPACE MOUNTPOINT",
	.about = "Mounts a fenced view of WORKSPACE on MOUNTPOINT for the "
		 "whole host.  Who goes\n"
		 "through it is fenced; who goes around it is not: the "
		 "enforcement is partial.\n"
		 "It stays until pale umount MOUNTPOINT.",
	.usage_status = 2,
};

static int
mount_policy(struct policy *policy, const char *mountpoint,
	     const struct opts *opts)
{
	const struct host_world world = {
		.request = &opts->policy.request,
		.policy = policy,
		.mountpoint = mountpoint,
		.foreground = opts->foreground,
		.quiet = opts->common.quiet,
	};
	struct errmsg why = { "" };

	if (host_world_start(&world, &why) < 0) {
		cli_error("%s", why.text);
		return 1;
	}
	return 0;
}

int
cmd_mount(int argc, char **argv)
{
	struct opts opts = { .policy = CLI_POLICY_INIT };
	const struct cli_group groups[] = {
		{ rows, &opts },
		{ cli_policy_options, &opts.policy },
		{ cli_common_options, &opts.common },
		{ 0 },
	};
	_cleanup_(policy_unrefp) struct policy *policy = NULL;
	struct errmsg why = { "" };
	int first, status;

	if (!cli_parse(&usage, groups, argc, argv, &first, &status))
		goto out;
	if (argc - first != 2) {
		status =
			cli_usage_error(&usage, "a WORKSPACE and a MOUNTPOINT");
		goto out;
	}
	opts.policy.request.workspace = argv[first];
	if (policy_resolve(&opts.policy.request, &policy, &why) < 0) {
		cli_error("%s", why.text);
		status = 1;
		goto out;
	}
	status = mount_policy(policy, argv[first + 1], &opts);
out:
	cli_policy_fini(&opts.policy);
	return status;
}
