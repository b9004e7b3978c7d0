/* SPDX-License-Identifier: MIT */

#include "cli/run_report.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/json.h"

/* Lines about single denials. */
#define MARKER_LINES 5

static bool
is_confined(const struct run_report *report)
{
	return report->policy &&
	       report->policy->mode != POLICY_DANGER_FULL_ACCESS;
}

/* "degraded": it worked, but not all that was refused is on record. */
static const char *
observer_name(const struct run_report *report, const json_t *said)
{
	const struct run_result *result = report->result;
	const char *name;

	if (!is_confined(report) || !result->started ||
	    (result->world_flags & WORLD_NO_OBSERVER))
		return "off";
	name = json_string_value(json_object_get(said, "observer"));
	return name && strcmp(name, "on") == 0 ? "on" : "degraded";
}

/* What of `full` is not there, each by its name (docs/SECURITY.md). */
static void
put_missing(const struct run_report *report, bool confined, bool landlock,
	    struct buf *out)
{
	static const char *const always[] = {
		"namespaces", "chmod",	     "chown",	      "utimes",
		"xattrs",     "inode-flags", "version-guard", "private-tmp",
		"processes",  "terminals",   "devices",
	};
	const uint32_t flags = report->result->world_flags;

	jsonw_key(out, "missing");
	jsonw_begin(out, '[');
	if (confined && !landlock && (flags & WORLD_NO_USERNS))
		jsonw_text(out, "user-namespace");
	for (size_t i = 0; landlock && i < sizeof(always) / sizeof(*always);
	     i++)
		jsonw_text(out, always[i]);
	if (landlock && (flags & WORLD_NO_SCOPE))
		jsonw_text(out, "signals");
	if (landlock && (flags & WORLD_NO_IOCTL))
		jsonw_text(out, "device-ioctl");
	if (landlock && report->policy->home == POLICY_HOME_PRIVATE)
		jsonw_text(out, "private-home");
	jsonw_end(out, ']');
}

static void
put_ipc_words(const char *sockets, const char *abstract, const char *fifos,
	      struct buf *out)
{
	jsonw_key(out, "ipc");
	jsonw_begin(out, '{');
	jsonw_pair(out, "sockets", sockets);
	jsonw_pair(out, "abstract", abstract);
	jsonw_pair(out, "fifos", fifos);
	jsonw_end(out, '}');
}

static void
put_ipc(const struct run_report *report, bool confined, struct buf *out)
{
	const uint32_t flags = report->result->world_flags;
	bool observed = !(flags & WORLD_NO_OBSERVER);
	bool scoped = !(flags & WORLD_NO_SCOPE) ||
		      (confined && report->policy->net == POLICY_NET_NONE);

	if (!confined)
		put_ipc_words("none", "none", "none", out);
	else if (report->policy->landlock)
		/* There are no unix sockets, and FIFOs are files. */
		put_ipc_words("full", "full", "full", out);
	else
		put_ipc_words(observed ? "full" : "none",
			      scoped ? "full" : "none",
			      observed ? "partial" : "none", out);
}

static void
put_enforcement(const struct run_report *report, const json_t *said,
		struct buf *out)
{
	const struct run_result *result = report->result;
	bool confined = is_confined(report) && result->started;
	bool landlock = confined && report->policy->landlock;
	bool no_net = confined && report->policy->net == POLICY_NET_NONE;

	jsonw_key(out, "enforcement");
	jsonw_begin(out, '{');
	jsonw_pair(out, "level",
		   confined ? world_level(result->world_flags, landlock)
			    : "none");
	put_missing(report, confined, landlock, out);
	put_ipc(report, confined, out);
	jsonw_pair(out, "net", no_net ? "none" : "host");
	jsonw_pair(out, "limits", result->limits);
	jsonw_pair(out, "home",
		   !confined || landlock ||
				   report->policy->home == POLICY_HOME_RO
			   ? "host"
		   : result->world_flags & WORLD_HOME_TMPFS ? "tmpfs"
							    : "layered");
	jsonw_end(out, '}');
	jsonw_pair(out, "backend",
		   !confined  ? "none"
		   : landlock ? "landlock"
			      : "fuse");
	jsonw_pair(out, "observer", observer_name(report, said));
}

/* A member of what the warden said, as it is. */
static bool
put_said(const json_t *said, const char *key, struct buf *out)
{
	json_t *value = json_object_get(said, key);
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	if (text)
		jsonw_raw(out, text, strlen(text));
	free(text);
	return text != NULL;
}

static void
put_passthrough(const json_t *said, struct buf *out)
{
	const char *text =
		json_string_value(json_object_get(said, "passthrough"));

	jsonw_pair(out, "passthrough", text ? text : "off");
}

static void
put_denials(const struct run_report *report, const json_t *said,
	    struct buf *out)
{
	bool known = !is_confined(report) || !report->result->ended;

	jsonw_key(out, "denials");
	if (!put_said(said, "denials", out))
		buf_puts(out, known ? "{\"count\":0,\"first\":[]}"
				    : "{\"count\":null,\"first\":[]}");
}

/* null: nobody looked. */
static void
put_born(const struct run_report *report, const json_t *said, struct buf *out)
{
	bool watched = is_confined(report) && report->policy->git_guard &&
		       !report->policy->landlock;

	jsonw_key(out, "born_repositories");
	if (!watched && report->result->started)
		jsonw_null(out);
	else if (!put_said(said, "born_repositories", out))
		buf_puts(out, "[]");
}

static void
put_outcome(const struct run_report *report, struct buf *out)
{
	const struct run_result *result = report->result;

	jsonw_pair_int(out, "exit_code", report->exit_code);
	jsonw_pair_known(out, "signal",
			 result->ended && WIFSIGNALED(result->status),
			 WTERMSIG(result->status));
	jsonw_pair_bool(out, "timed_out", result->timed_out);
	jsonw_pair_bool(out, "started", result->started);
	jsonw_pair_uint(out, "duration_ms",
			(uint64_t)result->duration_ns / 1000000);
	jsonw_pair_uint(out, "user_ms", result->user_us / 1000);
	jsonw_pair_uint(out, "sys_ms", result->sys_us / 1000);
	jsonw_pair_uint(out, "max_rss_kib", result->max_rss_kib);
}

int
run_report_write(const struct run_report *report, int fd)
{
	const struct policy *policy = report->policy;
	_cleanup_(buf_fini) struct buf out = { 0 };
	json_t *said =
		report->summary ? json_loads(report->summary, 0, NULL) : NULL;

	jsonw_begin(&out, '{');
	put_outcome(report, &out);
	jsonw_pair(&out, "session", policy ? policy->session : NULL);
	jsonw_pair(&out, "world", report->world);
	jsonw_pair(&out, "workspace", policy ? policy->roots[0].path : NULL);
	jsonw_pair(&out, "mode",
		   policy ? policy_mode_name(policy->mode) : NULL);
	put_enforcement(report, said, &out);
	put_passthrough(said, &out);
	put_denials(report, said, &out);
	put_born(report, said, &out);
	jsonw_pair(&out, "runner_error",
		   report->result->failed ? report->result->error.text : NULL);
	jsonw_end(&out, '}');
	buf_puts(&out, "\n");
	json_decref(said);
	if (buf_error(&out) < 0)
		return buf_error(&out);
	return fd_write_all(fd, out.data, out.len);
}

static const char *
member(json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "?";
}

/* An inmate chose these bytes: nothing of them may steer the terminal. */
static void
put_safe(struct buf *out, json_t *denial, const char *name)
{
	const char *text = member(denial, name);

	escape_controls(out, text, strlen(text));
}

static void
print_denial(json_t *denial)
{
	json_int_t pid = json_integer_value(json_object_get(denial, "pid"));
	_cleanup_(buf_fini) struct buf line = { 0 };

	buf_putf(&line, "pale: denied %s ", member(denial, "op"));
	put_safe(&line, denial, "path");
	buf_puts(&line, " by ");
	put_safe(&line, denial, "comm");
	buf_putf(&line, "[%lld] (", (long long)pid);
	put_safe(&line, denial, "rule");
	buf_puts(&line, ")\n");
	if (buf_error(&line) == 0)
		(void)fwrite(line.data, 1, line.len, stderr);
}

void
run_report_markers(const struct run_report *report)
{
	json_t *root =
		report->summary ? json_loads(report->summary, 0, NULL) : NULL;
	json_t *denials = json_object_get(root, "denials");
	json_t *first = json_object_get(denials, "first");
	json_int_t count, shown = 0;

	count = json_integer_value(json_object_get(denials, "count"));
	if (count > 0) {
		enum policy_mode mode = report->policy->mode;

		fprintf(stderr, "[sandbox: file access denied under %s mode]\n",
			policy_mode_name(mode));
		if (mode < POLICY_DANGER_FULL_ACCESS)
			fprintf(stderr,
				"[sandbox: escalation available — retry this "
				"exact command once with --escalate %s "
				"--why \"<reason>\"]\n",
				policy_mode_name(mode + 1));
	}
	for (size_t i = 0; i < json_array_size(first) && i < MARKER_LINES;
	     i++) {
		json_t *denial = json_array_get(first, i);

		print_denial(denial);
		shown += json_integer_value(json_object_get(denial, "count"));
	}
	if (count > shown)
		fprintf(stderr, "pale: and %lld more denials\n",
			(long long)(count - shown));
	json_decref(root);
}
