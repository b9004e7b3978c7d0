/* SPDX-License-Identifier: MIT */

/* pale version: the versions that a report of a fault must name. */

#define FUSE_USE_VERSION 312

#include <fuse_lowlevel.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <uv.h>

#include "base/json.h"
#include "cli/cli.h"

static const struct cli_usage usage = {
	.command = "version",
	.synopsis = "[--json]",
	.about = "Prints the versions of pale, the kernel and the libraries.",
	.usage_status = 2,
};

int
cmd_version(int argc, char **argv)
{
	struct cli_common common = { 0 };
	const struct cli_group groups[] = {
		{ cli_common_options, &common },
		{ 0 },
	};
	struct {
		const char *name, *version;
	} rows[] = {
		{ "pale", VERSION }, { "kernel", "" },
		{ "libfuse", "" },   { "libuv", "" },
		{ "sqlite", "" },    { "jansson", JANSSON_VERSION },
	};
	struct buf json = { 0 };
	struct utsname kernel;
	int first, status;

	if (!cli_parse(&usage, groups, argc, argv, &first, &status))
		return status;
	if (first < argc)
		return cli_usage_error(&usage, "no operand is expected");
	if (uname(&kernel) < 0)
		kernel.release[0] = '\0';
	rows[1].version = kernel.release;
	rows[2].version = fuse_pkgversion();
	rows[3].version = uv_version_string();
	rows[4].version = sqlite3_libversion();
	if (common.json)
		jsonw_begin(&json, '{');
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!common.json) {
			printf("%-9s%s\n", rows[i].name, rows[i].version);
			continue;
		}
		jsonw_pair(&json, rows[i].name, rows[i].version);
	}
	if (!common.json)
		return 0;
	jsonw_end(&json, '}');
	return cli_print_json(&json) < 0 ? 1 : 0;
}
