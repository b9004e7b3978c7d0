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

static void
put_uint(struct buf *out, const char *key, uint64_t value)
{
	jsonw_key(out, key);
	jsonw_uint(out, value);
}

static void
put_bool(struct buf *out, const char *key, bool value)
{
	jsonw_key(out, key);
	jsonw_bool(out, value);
}

/* "degraded": it worked, but not all that was refused is on record. */
static const char *
observer_name(const struct run_report *report, const json_t *said)
{
	const struct run_result *result = report->result;
	const char *name;

	if (!is_confined(report) || !result->started ||
	    (result->world_flags & LAUNCH_NO_OBSERVER))
		return "off";
	name = json_string_value(json_object_get(said, "observer"));
	return name && strcmp(name, "on") == 0 ? "on" : "degraded";
}

static void
put_enforcement(const struct run_report *report, const json_t *said,
		struct buf *out)
{
	const struct run_result *result = report->result;
	bool confined = is_confined(report) && result->started;
	bool userns = !(result->world_flags & LAUNCH_NO_USERNS);
	bool observed = !(result->world_flags & LAUNCH_NO_OBSERVER);
	bool no_net = confined && report->policy->net == POLICY_NET_NONE;
	bool scoped = !(result->world_flags & LAUNCH_NO_SCOPE) || no_net;

	jsonw_key(out, "enforcement");
	jsonw_begin(out, '{');
	jsonw_pair(out, "level",
		   !confined ? "none"
		   : userns  ? "full"
			     : "partial");
	jsonw_key(out, "missing");
	jsonw_begin(out, '[');
	if (confined && !userns)
		jsonw_text(out, "user-namespace");
	jsonw_end(out, ']');
	jsonw_key(out, "ipc");
	jsonw_begin(out, '{');
	jsonw_pair(out, "sockets", confined && observed ? "full" : "none");
	jsonw_pair(out, "abstract", confined && scoped ? "full" : "none");
	jsonw_pair(out, "fifos", confined && observed ? "partial" : "none");
	jsonw_end(out, '}');
	jsonw_pair(out, "net", no_net ? "none" : "host");
	jsonw_pair(out, "limits", result->limits);
	jsonw_pair(out, "home",
		   !confined || report->policy->home == POLICY_HOME_RO ? "host"
		   : result->world_flags & LAUNCH_HOME_TMPFS	       ? "tmpfs"
							     : "layered");
	jsonw_end(out, '}');
	jsonw_pair(out, "backend", confined ? "fuse" : "none");
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
	bool watched = is_confined(report) && report->policy->git_guard;

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

	jsonw_key(out, "exit_code");
	jsonw_int(out, report->exit_code);
	jsonw_key(out, "signal");
	if (result->ended && WIFSIGNALED(result->status))
		jsonw_int(out, WTERMSIG(result->status));
	else
		jsonw_null(out);
	put_bool(out, "timed_out", result->timed_out);
	put_bool(out, "started", result->started);
	put_uint(out, "duration_ms", (uint64_t)result->duration_ns / 1000000);
	put_uint(out, "user_ms", result->user_us / 1000);
	put_uint(out, "sys_ms", result->sys_us / 1000);
	put_uint(out, "max_rss_kib", result->max_rss_kib);
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
