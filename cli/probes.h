/* SPDX-License-Identifier: MIT */
#ifndef CLI_PROBES_H
#define CLI_PROBES_H

/*
 * What this machine can do, asked by trying it: each probe is a row with its
 * name, what it is good for, what its lack means, and the command that mends
 * it.  Probes inform `pale doctor` and nothing else: what a world enforces is
 * decided by the helper's own steps, each of which fails closed.
 *
 * A probe that makes namespaces or mounts does so in a child that is gone when
 * the probe returns.
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/errmsg.h"

/* What follows when a probe says "missing". */
enum probe_lack {
	PROBE_VITAL,	/* no confined command can run */
	PROBE_WORLD,	/* no world can be made: Landlock alone, or nothing */
	PROBE_LANDLOCK, /* not even that */
	PROBE_PARTIAL,	/* file effects are fenced less strongly */
	PROBE_SOCKETS,	/* ipc.sockets is partial */
	PROBE_ABSTRACT, /* ipc.abstract is partial */
	PROBE_NET,	/* --net none cannot be had */
	PROBE_LIMITS,	/* limits are weaker */
	PROBE_FEATURE,	/* one feature is missing, the fence is not weaker */
	PROBE_NOTE,	/* worth knowing */
};

const char *probe_lack_name(enum probe_lack lack);

struct probe_result {
	bool ok;
	bool fallback;	  /* a vital lack for which pale has a weaker way */
	char detail[160]; /* what was found */
	/* What mends it here, where that depends; NULL: the row's. */
	const char *cure;
};

struct probe {
	const char *name;
	const char *use; /* "needed for …" */
	enum probe_lack lack;
	const char *cure;
	void (*run)(struct probe_result *ret_result);
};

/* The table, in the order in which it is shown. */
extern const struct probe probes[];
extern const size_t probes_count;

/*
 * Runs all probes into `ret_results` (room for probes_count).
 *
 * For tests, the environment variable PALE_PROBE_FILE names a file of lines
 * "name=ok" or "name=missing:detail" that replace results; *ret_injected says
 * so.  Errors with a sentence: the file cannot be read, or has an unknown name.
 */
int probes_run(struct probe_result *ret_results, bool *ret_injected,
	       struct errmsg *why);

#endif
