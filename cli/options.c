/* SPDX-License-Identifier: MIT */

/*
 * The option tables that several commands share.  A row's offset points into
 * struct cli_common or struct cli_policy_options.
 */

#include "cli/cli.h"

#include <string.h>

#define COMMON(field) offsetof(struct cli_common, field)
#define POLICY(field) offsetof(struct cli_policy_options, request.field)

static int
apply_require(void *into, const char *value, struct errmsg *why)
{
	struct cli_policy_options *options = into;

	if (strcmp(value, "full") == 0)
		options->request.require_full = true;
	else if (strcmp(value, "limits") == 0)
		options->request.require_limits = true;
	else
		return errmsg_set(why, -EINVAL,
				  "--require takes 'full' or 'limits', "
				  "not '%s'",
				  value);
	return 0;
}

const struct cli_option cli_common_options[] = {
	{ "json", 0, CLI_FLAG, COMMON(json), NULL,
	  "print JSON, one object a line", NULL },
	{ "quiet", 'q', CLI_FLAG, COMMON(quiet), NULL, "no notes on stderr",
	  NULL },
	{ "verbose", 'v', CLI_COUNT, COMMON(verbose), NULL,
	  "more notes on stderr", NULL },
	CLI_END,
};

#define PLACE_ROWS                                                           \
	{ "workspace", 'w',                                                  \
	  CLI_STRING,  POLICY(workspace),                                    \
	  "DIR",       "the workspace (default: the current directory)",     \
	  NULL },                                                            \
		{ "mode",                                                    \
		  'm',                                                       \
		  CLI_STRING,                                                \
		  POLICY(mode),                                              \
		  "MODE",                                                    \
		  "read-only, workspace-write or danger-full-access",        \
		  NULL },                                                    \
	{                                                                    \
		"session", 's', CLI_STRING, POLICY(session), "NAME",         \
			"the session that records belong to (default)", NULL \
	}

const struct cli_option cli_place_options[] = {
	PLACE_ROWS,
	CLI_END,
};

const struct cli_option cli_policy_options[] = {
	PLACE_ROWS,
	{ "rw", 0, CLI_LIST, POLICY(rw), "PATH",
	  "a further writable host directory", NULL },
	{ "hide", 0, CLI_LIST, POLICY(hide), "GLOB",
	  "hide matching names of the workspace", NULL },
	{ "protect", 0, CLI_LIST, POLICY(protect), "GLOB",
	  "refuse to change matching names; 'none': no built-in set", NULL },
	{ "allow", 0, CLI_LIST, POLICY(allow), "GLOB",
	  "lift protect and hide rules for matching names", NULL },
	{ "hide-path", 0, CLI_LIST, POLICY(hide_paths), "PATH",
	  "cover a host path outside the workspace", NULL },
	{ "home", 0, CLI_STRING, POLICY(home), "ro|private",
	  "the home directory: read-only, or a private layer", NULL },
	{ "net", 0, CLI_STRING, POLICY(net), "host|none",
	  "the network: the host's, or none", NULL },
	{ "socket", 0, CLI_LIST, POLICY(sockets), "PATH",
	  "let one host socket in", NULL },
	{ "dev", 0, CLI_LIST, POLICY(devices), "PATH", "let one host device in",
	  NULL },
	{ "env-hide", 0, CLI_LIST, POLICY(env_hide), "GLOB",
	  "drop matching environment variables", NULL },
	{ "tmp", 0, CLI_YES, POLICY(tmp), NULL,
	  "a writable private /tmp in read-only mode too", NULL },
	{ "no-nest", 0, CLI_NO, POLICY(nest), NULL,
	  "forbid new user namespaces inside", NULL },
	{ "preset", 0, CLI_STRING, POLICY(preset), "NAME",
	  "a preset: plan, work, ci, full, secrets, or one of the file", NULL },
	{ "config", 0, CLI_STRING, POLICY(config_path), "FILE",
	  "this configuration file instead of the default one", NULL },
	{ "timeout", 0, CLI_DURATION, POLICY(limits.timeout_ms), "DURATION",
	  "end the command after this time (exit 124)", NULL },
	{ "linger", 0, CLI_DURATION, POLICY(limits.linger_ms), "DURATION",
	  "how long what the command leaves behind may live", NULL },
	{ "memory", 0, CLI_SIZE, POLICY(limits.memory), "SIZE",
	  "memory of the world", NULL },
	{ "pids", 0, CLI_NUMBER, POLICY(limits.pids), "N",
	  "processes of the world", NULL },
	{ "cpu", 0, CLI_NUMBER, POLICY(limits.cpu_percent), "PERCENT",
	  "processor time, in percent of one core", NULL },
	{ "require", 0, CLI_APPLY, 0, "full|limits",
	  "refuse to run with a weaker fence, or weaker limits",
	  apply_require },
	CLI_END,
};

void
cli_policy_fini(struct cli_policy_options *options)
{
	struct policy_request *request = &options->request;

	strv_fini(&request->rw);
	strv_fini(&request->hide);
	strv_fini(&request->protect);
	strv_fini(&request->allow);
	strv_fini(&request->hide_paths);
	strv_fini(&request->sockets);
	strv_fini(&request->devices);
	strv_fini(&request->env_hide);
}
