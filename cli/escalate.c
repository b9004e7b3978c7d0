/* SPDX-License-Identifier: MIT */

#include "cli/escalate.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "cli/records.h"

#define ANSWER_MS (5 * 60 * 1000)

static int
check(const struct policy *policy, const struct escalation *wanted,
      enum policy_mode *ret_mode, struct errmsg *why)
{
	if (!wanted->mode || !wanted->why)
		return errmsg_set(why, -EINVAL,
				  "--escalate and --why go together");
	if (policy_mode_parse(wanted->mode, ret_mode) < 0)
		return errmsg_set(why, -EINVAL, "unknown mode '%s'",
				  wanted->mode);
	if (*ret_mode <= policy->mode)
		return errmsg_set(why, -EINVAL,
				  "'%s' is not wider than the mode in force, "
				  "'%s'",
				  wanted->mode, policy_mode_name(policy->mode));
	if (wanted->why[strspn(wanted->why, " \t\n")] == '\0')
		return errmsg_set(why, -EINVAL, "--why needs a reason");
	return 0;
}

/* ---- the record ---- */

static int
put_on_record(struct store *store, const struct policy *policy,
	      const struct escalation *wanted, const char *kind,
	      const char *outcome, struct errmsg *why)
{
	_cleanup_(buf_fini) struct buf body = { 0 };
	int r;

	jsonw_begin(&body, '{');
	jsonw_pair(&body, "workspace", policy->roots[0].path);
	jsonw_pair(&body, "from", policy_mode_name(policy->mode));
	jsonw_pair(&body, "to", wanted->mode);
	jsonw_pair(&body, "why", wanted->why);
	jsonw_pair(&body, "cwd", wanted->cwd);
	jsonw_key(&body, "argv");
	jsonw_begin(&body, '[');
	for (size_t i = 0; i < wanted->argv->count; i++)
		jsonw_text(&body, wanted->argv->items[i]);
	jsonw_end(&body, ']');
	if (outcome)
		jsonw_pair(&body, "outcome", outcome);
	jsonw_end(&body, '}');
	buf_put(&body, "", 1);
	r = buf_error(&body);
	if (r == 0)
		r = store_event(store, policy->session, NULL, kind,
				(const char *)body.data);
	if (r < 0)
		return errmsg_set(why, r,
				  "'%s' cannot be put on record, so nothing "
				  "is run: %s",
				  kind, strerror(-r));
	return 0;
}

/* ---- the question ---- */

/* Every byte that a terminal could take for a command is shown as text. */
static void
show(int tty, const char *title, const char *text)
{
	_cleanup_(buf_fini) struct buf out = { 0 };

	escape_bytes(&out, text, strlen(text));
	for (size_t i = 0; i < out.len; i++)
		if (out.data[i] < 0x20 || out.data[i] == 0x7f)
			out.data[i] = '?';
	(void)dprintf(tty, "pale: %s %.*s\n", title, (int)out.len,
		      out.data ? (char *)out.data : "");
}

static int
ask(int tty, const struct policy *policy, const struct escalation *wanted)
{
	struct pollfd one = { .fd = tty, .events = POLLIN };
	char answer[64];
	ssize_t n;

	(void)dprintf(tty, "pale: run this once under %s, not %s?\n",
		      wanted->mode, policy_mode_name(policy->mode));
	for (size_t i = 0; i < wanted->argv->count; i++)
		show(tty, i == 0 ? "  command:" : "          ",
		     wanted->argv->items[i]);
	show(tty, "  in:     ", wanted->cwd);
	show(tty, "  reason: ", wanted->why);
	(void)dprintf(tty, "pale: [y/N] ");
	if (poll(&one, 1, ANSWER_MS) <= 0)
		return -ETIMEDOUT;
	n = read(tty, answer, sizeof(answer));
	if (n <= 0)
		return -ENOTTY;
	return (n == 2 && (answer[0] == 'y' || answer[0] == 'Y')) ||
			       (n == 4 && strncasecmp(answer, "yes", 3) == 0)
		       ? 0
		       : -EPERM;
}

int
escalate(const struct policy *policy, const struct escalation *wanted,
	 struct policy **ret_policy, struct errmsg *why)
{
	_cleanup_(store_closep) struct store *store = NULL;
	_cleanup_(closep) int tty = -1;
	enum policy_mode mode;
	int answer, r;

	r = check(policy, wanted, &mode, why);
	if (r < 0)
		return r;
	r = records_make(&store, why);
	if (r == 0)
		r = put_on_record(store, policy, wanted, "approval.asked", NULL,
				  why);
	if (r < 0)
		return r;

	/* Both: an agent's harness has a terminal, its commands' stdin not. */
	if (isatty(STDIN_FILENO) && isatty(STDERR_FILENO))
		tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	answer = tty < 0 ? -ENOTTY : ask(tty, policy, wanted);
	r = put_on_record(store, policy, wanted, "approval.decided",
			  answer == 0	     ? "allowed-once"
			  : answer == -EPERM ? "rejected"
					     : "unavailable",
			  why);
	if (r < 0)
		return r;
	if (answer == 0)
		return policy_with_mode(policy, mode, ret_policy);
	if (answer == -EPERM)
		return errmsg_set(why, answer, "the wider mode was refused");
	return errmsg_set(why, answer,
			  "nobody can be asked for a wider mode here; the "
			  "operator can run it with -m %s",
			  wanted->mode);
}
