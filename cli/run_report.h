/* SPDX-License-Identifier: MIT */
#ifndef CLI_RUN_REPORT_H
#define CLI_RUN_REPORT_H

/*
 * What is said after a run: the report, one JSON object for programs, and the
 * marker lines on stderr for whoever reads those.
 *
 * Thread: main.
 */

#include "cli/launch.h"
#include "cli/run_loop.h"
#include "policy/policy.h"

struct run_report {
	const struct policy *policy; /* NULL: none was resolved */
	const char *world;	     /* NULL: none was made */
	struct run_result *result;
	char *summary;	    /* the warden's line; NULL: none */
	struct errmsg lack; /* why there is no world; "": there is one */
	int exit_code;
};

/* Writes the object and a newline; a negative errno if that fails. */
int run_report_write(const struct run_report *report, int fd);

/* The marker lines, when something was refused. */
void run_report_markers(const struct run_report *report);

#endif
