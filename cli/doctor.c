/* SPDX-License-Identifier: MIT */

/*
 * pale doctor: what this machine can enforce, how strongly, what is missing
 * and the command that mends it.
 *
 * `level` speaks of file effects alone; what a world can reach by other ways
 * (sockets, network, resources) is said beside it, each for itself.
 */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/probes.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum level {
	LEVEL_FULL,
	LEVEL_PARTIAL,
	LEVEL_UNAVAILABLE,
};

static const char *const level_names[] = { "full", "partial", "unavailable" };

struct diagnosis {
	struct probe_result *results; /* probes_count */
	bool injected;
	enum level level;
	enum level sockets, abstract, limits;
	bool net_none;
	bool alone; /* no world can be made: Landlock alone fences */
};

/* What holds on every machine, in this version. */
static const char *const known_limits[] = {
	"reads are not fenced: every mode reads all but what is hidden",
	"the network is the host's or none: there is no allow-list",
	"unix datagram sockets cannot be made inside (EPROTONOSUPPORT)",
	"what /etc/nsswitch.conf names (sssd, userdb, resolved) can be asked",
	"io_uring is refused (ENOSYS)",
	"a program that races can write to a FIFO of the host",
	"a program inside that wants its own seccomp listener gets EBUSY",
	"autofs paths that are not mounted yet stay empty inside",
	"inotify behind a pale mount hears of no change that the host makes",
	"pale mount fences only who goes through it: its level is partial",
};

static const char *const known_limits_root[] = {
	"a nested sandbox cannot mount a /proc of its own",
	"--rw places of other users cannot be written to",
	"access(2) in the workspace answers by mode bits",
};

/* What holds besides where no world can be made. */
static const char *const known_limits_alone[] = {
	"chmod, chown, times, extended attributes and inode flags outside are "
	"refused to whoever does not race, and to no one else",
	"workspace-write needs --protect none; hide rules and --socket are "
	"refused",
	"/tmp is read-only: TMPDIR names a directory of the run's own",
	"no unix sockets, System V IPC or new pseudo-terminals can be had",
	"the host's processes are seen, and may be limited and reniced",
	"a run that forks without end may survive its end",
	"pale exec, shell, job and mount cannot be had",
	"where kernel.yama.ptrace_scope is not 0, an ordinary user's refusals "
	"are not recorded, and attributes not refused",
};

static const struct cli_usage usage = {
	.command = "doctor",
	.synopsis = "[--json]",
	.about =
		"Tells what this machine can enforce, what is missing, and how "
		"to mend it.\n"
		"Exit status: 0 full, 1 partial, 2 unavailable.",
	.usage_status = 2,
};

static void
judge_alone(struct diagnosis *d, bool landlock)
{
	if (!landlock)
		d->level = LEVEL_UNAVAILABLE;
	else if (d->level == LEVEL_FULL)
		d->level = LEVEL_PARTIAL;
	/* There are no unix sockets, and no network where none is wanted. */
	d->sockets = d->abstract = LEVEL_FULL;
	d->net_none = true;
}

static void
judge(struct diagnosis *d)
{
	bool landlock = true;

	for (size_t i = 0; i < probes_count; i++) {
		if (d->results[i].ok)
			continue;
		switch (d->results[i].fallback ? PROBE_PARTIAL
					       : probes[i].lack) {
		case PROBE_VITAL:
			d->level = LEVEL_UNAVAILABLE;
			break;
		case PROBE_WORLD:
			d->alone = true;
			break;
		case PROBE_LANDLOCK:
			landlock = false;
			break;
		case PROBE_PARTIAL:
			if (d->level == LEVEL_FULL)
				d->level = LEVEL_PARTIAL;
			break;
		case PROBE_SOCKETS:
			d->sockets = LEVEL_PARTIAL;
			break;
		case PROBE_ABSTRACT:
			d->abstract = LEVEL_PARTIAL;
			break;
		case PROBE_NET:
			d->net_none = false;
			break;
		case PROBE_LIMITS:
			d->limits = LEVEL_PARTIAL;
			break;
		case PROBE_FEATURE:
		case PROBE_NOTE:
			break;
		}
	}
	if (d->alone)
		judge_alone(d, landlock);
}

static const char *
cure_of(const struct diagnosis *d, size_t i)
{
	return d->results[i].cure ? d->results[i].cure : probes[i].cure;
}

static void
put_probe(struct buf *out, const struct diagnosis *d, size_t i)
{
	const struct probe_result *result = &d->results[i];

	jsonw_begin(out, '{');
	jsonw_pair(out, "name", probes[i].name);
	jsonw_pair_bool(out, "ok", result->ok);
	jsonw_pair(out, "detail", result->detail);
	jsonw_pair(out, "use", probes[i].use);
	jsonw_pair(out, "lack", probe_lack_name(probes[i].lack));
	jsonw_pair(out, "cure", result->ok ? NULL : cure_of(d, i));
	jsonw_end(out, '}');
}

static void
put_strings(struct buf *out, const char *const *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		jsonw_text(out, items[i]);
}

static int
print_json(const struct diagnosis *d)
{
	struct buf out = { 0 };

	jsonw_begin(&out, '{');
	jsonw_pair(&out, "level", level_names[d->level]);
	jsonw_pair(&out, "backend",
		   d->level == LEVEL_UNAVAILABLE ? "none"
		   : d->alone			 ? "landlock"
						 : "fuse");
	jsonw_key(&out, "missing");
	jsonw_begin(&out, '[');
	for (size_t i = 0; i < probes_count; i++)
		if (!d->results[i].ok && probes[i].lack != PROBE_NOTE)
			jsonw_text(&out, probes[i].name);
	jsonw_end(&out, ']');
	jsonw_key(&out, "ipc");
	jsonw_begin(&out, '{');
	jsonw_pair(&out, "sockets", level_names[d->sockets]);
	jsonw_pair(&out, "abstract", level_names[d->abstract]);
	jsonw_pair(&out, "fifos",
		   level_names[d->alone ? LEVEL_FULL : LEVEL_PARTIAL]);
	jsonw_end(&out, '}');
	jsonw_pair(&out, "net", d->net_none ? "full" : "none");
	jsonw_pair(&out, "limits", level_names[d->limits]);
	jsonw_pair_bool(&out, "injected", d->injected);
	jsonw_key(&out, "probes");
	jsonw_begin(&out, '[');
	for (size_t i = 0; i < probes_count; i++)
		put_probe(&out, d, i);
	jsonw_end(&out, ']');
	jsonw_key(&out, "known");
	jsonw_begin(&out, '[');
	put_strings(&out, known_limits, COUNT(known_limits));
	if (geteuid() == 0)
		put_strings(&out, known_limits_root, COUNT(known_limits_root));
	if (d->alone)
		put_strings(&out, known_limits_alone,
			    COUNT(known_limits_alone));
	jsonw_end(&out, ']');
	jsonw_end(&out, '}');
	return cli_print_json(&out);
}

static void
print_probe(const struct diagnosis *d, size_t i, bool verbose)
{
	bool ok = d->results[i].ok, note = probes[i].lack == PROBE_NOTE;
	const char *word = ok ? "ok" : note ? "note" : "missing";

	printf("  %-8s%-19s%s\n", word, probes[i].name, d->results[i].detail);
	/* What explains a failure is of use only where there is one. */
	if (note && d->level == LEVEL_FULL)
		return;
	if (!ok || verbose)
		printf("  %27s%s\n", note ? "" : "for: ", probes[i].use);
	if (!ok)
		printf("  %27s%s\n", "mend: ", cure_of(d, i));
}

static void
print_table(const struct diagnosis *d, bool verbose)
{
	printf("enforcement: %s%s%s\n\n", level_names[d->level],
	       d->alone && d->level == LEVEL_PARTIAL ? ", Landlock alone" : "",
	       d->injected ? " (probe results injected)" : "");
	for (size_t i = 0; i < probes_count; i++)
		print_probe(d, i, verbose);
	printf("\nsockets: %s, abstract sockets: %s, FIFOs: %s, "
	       "--net none: %s, limits: %s\n\nKnown limits:\n",
	       level_names[d->sockets], level_names[d->abstract],
	       level_names[d->alone ? LEVEL_FULL : LEVEL_PARTIAL],
	       d->net_none ? "full" : "none", level_names[d->limits]);
	for (size_t i = 0; i < COUNT(known_limits); i++)
		printf("  - %s\n", known_limits[i]);
	for (size_t i = 0; geteuid() == 0 && i < COUNT(known_limits_root); i++)
		printf("  - %s\n", known_limits_root[i]);
	for (size_t i = 0; d->alone && i < COUNT(known_limits_alone); i++)
		printf("  - %s\n", known_limits_alone[i]);
}

int
cmd_doctor(int argc, char **argv)
{
	_cleanup_(freep) struct probe_result *results = NULL;
	struct diagnosis d = { .net_none = true };
	struct cli_common common = { 0 };
	const struct cli_group groups[] = {
		{ cli_common_options, &common },
		{ 0 },
	};
	struct errmsg why = { "" };
	int first, status;

	if (!cli_parse(&usage, groups, argc, argv, &first, &status))
		return status;
	if (first < argc)
		return cli_usage_error(&usage, "no operand is expected");

	results = calloc(probes_count, sizeof(*results));
	if (!results) {
		cli_error("out of memory");
		return 2;
	}
	d.results = results;
	if (probes_run(results, &d.injected, &why) < 0) {
		cli_error("%s", why.text);
		return 2;
	}
	judge(&d);

	if (!common.json)
		print_table(&d, common.verbose > 0);
	else if (print_json(&d) < 0)
		return 2;
	return (int)d.level;
}
