/* SPDX-License-Identifier: MIT */

/*
 * What is written to `jobs/new`, and to `ctl` and `stdin` of a job.
 *
 * One write is one order: who writes sees at once whether it was understood,
 * and in words, by reading, why not.  The jobs of a world run under the mode of
 * the world, whatever it was when they were started, so that nobody can type
 * into something that may do more than himself.
 */

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "jobs/jobs.h"
#include "jobs/orders.h"
#include "warden/jobs_rpc.h"
#include "warden/tree_priv.h"

static const char new_usage[] =
	"write a command line, for sh -c, or {\"argv\": [COMMAND, …], \"cwd\": "
	"DIR, \"env\": [\"NAME=VALUE\", …],\n"
	"\"stdin\": \"pipe\", …} as for job.start; read the id from the same "
	"open file\n";

static const char ctl_usage[] = "kill [SIGNAL]    to all of it, SIGKILL after "
				"3 s\n"
				"signal SIGNAL    nothing else\n"
				"close-stdin\n";

/* ---- notes ---- */

static const char *
note_of(const struct warden_tree *tree, uint64_t item)
{
	for (unsigned int i = 0; i < TREE_NOTES; i++)
		if (tree->notes[i].text[0] && tree->notes[i].item == item)
			return tree->notes[i].text;
	return NULL;
}

void
tree_note_set(struct warden_tree *tree, uint64_t item, const char *text)
{
	struct tree_note *note = NULL;

	for (unsigned int i = 0; i < TREE_NOTES && !note; i++)
		if (tree->notes[i].text[0] && tree->notes[i].item == item)
			note = &tree->notes[i];
	if (!note && !text)
		return;
	if (!note)
		note = &tree->notes[tree->next_note++ % TREE_NOTES];
	note->item = item;
	(void)snprintf(note->text, sizeof(note->text), "%s", text ? text : "");
}

void
tree_note_put(const struct warden_tree *tree, uint64_t item, const char *usage,
	      struct buf *out)
{
	const char *note = note_of(tree, item);

	buf_puts(out, usage);
	if (note)
		buf_putf(out, "error: %s\n", note);
}

void
tree_new_text(const struct warden_tree *tree, struct buf *out)
{
	tree_note_put(tree, 0, new_usage, out);
}

void
tree_ctl_text(const struct warden_tree *tree, uint64_t job, struct buf *out)
{
	tree_note_put(tree, job, ctl_usage, out);
}

/* ---- new ---- */

/* As parameters of job.start; NULL: no JSON, or no memory. */
static json_t *
parse_order(const char *bytes, size_t len)
{
	size_t skip = strspn(bytes, " \t\r\n");
	json_t *params;

	if (bytes[skip] == '{')
		return json_loadb(bytes, len, 0, NULL);
	while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r'))
		len--;
	params = json_object();
	if (params && json_object_set_new(params, "command",
					  json_stringn(bytes, len)) < 0) {
		json_decref(params);
		params = NULL;
	}
	return params;
}

static int
errno_of(const struct jobs_started *result)
{
	if (result->code && strcmp(result->code, JOB_LIMIT) == 0)
		return -EBUSY;
	return result->error < 0 ? result->error : -EINVAL;
}

static void
on_started(const struct jobs_started *result, void *data)
{
	struct tree_work *work = data;

	if (result->id == 0) {
		work->result = errno_of(result);
		if (!work->tree->closed)
			tree_note_set(work->tree, 0, result->why.text);
	} else {
		work->result = 0;
		buf_putf(&work->answer, "j%llu\n",
			 (unsigned long long)result->id);
	}
	tree_work_finish(work);
}

static int
start_job(struct warden_tree *tree, struct tree_work *work)
{
	_cleanup_(jobs_start_params_fini) struct jobs_start_params params = {
		.request = { .stdin_fd = -1 }
	};
	json_t *root = parse_order(work->bytes, work->len);
	const struct rpc_message message = { .params = root };
	struct rpc_fault fault = { .text = "no JSON object" };
	int r = -EINVAL;

	if (json_is_object(root) && work->bytes[0])
		r = jobs_start_params_take(&message, &params, &fault);
	if (r == 0 && params.request.stdin_kind == JOBS_STDIN_FD) {
		(void)snprintf(fault.text, sizeof(fault.text),
			       "stdin: 'null' or 'pipe'");
		r = -EINVAL;
	}
	if (r == 0) {
		work->running = true;
		r = jobs_start(tree->warden, &params.request, on_started, work);
		if (r < 0) {
			work->running = false;
			(void)snprintf(fault.text, sizeof(fault.text), "%s",
				       strerror(-r));
		}
	}
	json_decref(root);
	if (r < 0)
		tree_note_set(tree, 0, fault.text);
	return r == -EBADMSG ? -EINVAL : r;
}

ssize_t
tree_new_write(struct warden_tree *tree, const struct tree_asker *asker,
	       const void *bytes, size_t len, struct buf *ret_answer)
{
	struct tree_work *work = tree_work_get(asker, bytes, len);
	int r;

	if (!work) {
		if (len > LIMIT_TREE_ORDER)
			return -E2BIG;
		if (len == 0 || memchr(bytes, '\0', len))
			return -EINVAL;
		tree_note_set(tree, 0, NULL);
		r = tree_work_new(tree, asker, bytes, len, &work);
		if (r < 0)
			return r;
		r = start_job(tree, work);
		if (r < 0)
			work->result = r;
	}
	r = tree_work_take(asker, ret_answer);
	return r < 0 ? r : (ssize_t)len;
}

/* ---- ctl ---- */

static int
follow_order(struct warden *warden, uint64_t job, const struct job_order *order)
{
	size_t taken;

	switch (order->kind) {
	case JOB_ORDER_KILL:
		return jobs_kill(warden, job, order->signal, JOBS_GRACE_MS);
	case JOB_ORDER_SIGNAL:
		return jobs_signal(warden, job, order->signal);
	case JOB_ORDER_CLOSE_STDIN:
		return jobs_write(warden, job, NULL, 0, true, &taken);
	}
	return -EINVAL;
}

ssize_t
tree_ctl_write(struct warden_tree *tree, uint64_t job, const char *bytes,
	       size_t len)
{
	struct job_order orders[JOB_ORDERS_MAX];
	const char *wrong = NULL;
	size_t n = 0;
	int r = job_orders_parse(bytes, len, orders, &n, &wrong);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = follow_order(tree->warden, job, &orders[i]);
	if (r == -EALREADY)
		r = -ESRCH;
	if (r < 0 && !wrong)
		wrong = r == -ESRCH ? "it has ended" : strerror(-r);
	tree_note_set(tree, job, wrong);
	return r < 0 ? r : (ssize_t)len;
}

/* ---- stdin ---- */

ssize_t
tree_stdin_write(struct warden_tree *tree, uint64_t job, const void *bytes,
		 size_t len)
{
	size_t taken = 0;
	int r = jobs_write(tree->warden, job, bytes, len, false, &taken);

	if (r < 0)
		return r == -EALREADY ? -EPIPE : r;
	return taken > 0 || len == 0 ? (ssize_t)taken : -EAGAIN;
}
