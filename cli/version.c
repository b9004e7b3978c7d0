/* SPDX-License-Identifier: MIT */

/* pale version: the versions that a report of a fault must name. */

#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <uv.h>

#include "cli/cli.h"

static const struct cli_usage usage = {
	.command = "version",
	.synopsis = "[--json]",
	.about = "Prints the versions of pale, the kernel and the libraries.",
	.usage_status = 2,
};

static int
print_json(const char *kernel)
{
	json_t *all =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "pale", VERSION,
			  "kernel", kernel, "libfuse", fuse_pkgversion(),
			  "libuv", uv_version_string(), "sqlite",
			  sqlite3_libversion(), "jansson", JANSSON_VERSION);
	int r = all ? json_dumpf(all, stdout, JSON_COMPACT) : -1;

	json_decref(all);
	putchar('\n');
	return r < 0 ? 1 : 0;
}

int
cmd_version(int argc, char **argv)
{
	struct cli_common common = { 0 };
	const struct cli_group groups[] = {
		{ cli_common_options, &common },
		{ 0 },
	};
	struct utsname kernel;
	int first, status;

	if (!cli_parse(&usage, groups, argc, argv, &first, &status))
		return status;
	if (first < argc)
		return cli_usage_error(&usage, "no operand is expected");
	if (uname(&kernel) < 0)
		kernel.release[0] = '\0';
	if (common.json)
		return print_json(kernel.release);

	printf("pale     %s\n"
	       "kernel   %s\n"
	       "libfuse  %s\n"
	       "libuv    %s\n"
	       "sqlite   %s\n"
	       "jansson  %s\n",
	       VERSION, kernel.release, fuse_pkgversion(), uv_version_string(),
	       sqlite3_libversion(), JANSSON_VERSION);
	return 0;
}
