/* SPDX-License-Identifier: MIT */

/*
 * What is written to `mode` and `ask`.  Both go to the pool: a change of mode
 * waits for requests under way and flushes pages, a question is put on record.
 */

#include <jansson.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "rpc/rpc.h"
#include "warden/mode.h"
#include "warden/tree_priv.h"

/* ---- what is done elsewhere ---- */

static void
work_free(struct tree_work *work)
{
	buf_fini(&work->answer);
	free(work);
}

static void
work_close(void *state)
{
	struct tree_work *work = state;

	if (work->running)
		work->orphan = true;
	else
		work_free(work);
}

struct tree_work *
tree_work_get(const struct tree_asker *asker, const void *bytes, size_t len)
{
	struct tree_work *work = *asker->state;

	/* Of a request that was interrupted: not what is asked for now. */
	if (work &&
	    (work->len != len || memcmp(work->bytes, bytes, len) != 0)) {
		*asker->state = NULL;
		work_close(work);
		work = NULL;
	}
	return work;
}

int
tree_work_new(struct warden_tree *tree, const struct tree_asker *asker,
	      const void *bytes, size_t len, struct tree_work **ret_work)
{
	struct tree_work *work = calloc(1, sizeof(*work) + len + 1);

	if (!work)
		return -ENOMEM;
	work->close = work_close;
	work->tree = tree;
	work->node = asker->node;
	work->len = len;
	memcpy(work->bytes, bytes, len);
	*asker->state = *ret_work = work;
	return 0;
}

void
tree_work_finish(struct tree_work *work)
{
	struct warden_tree *tree = work->tree;
	struct tree_node node = work->node;

	work->running = false;
	if (work->orphan)
		work_free(work);
	if (!tree->closed)
		tree_changed(tree->tree, node);
}

static void
on_work(uv_work_t *uv)
{
	struct tree_work *work = uv->data;

	work->result = work->run(work);
}

static void
on_worked(uv_work_t *uv, int status)
{
	struct tree_work *work = uv->data;

	if (status < 0)
		work->result = status;
	else if (work->done)
		work->done(work);
	tree_work_finish(work);
}

int
tree_work_start(struct tree_work *work)
{
	int r;

	work->work.data = work;
	r = uv_queue_work(&work->tree->warden->loop, &work->work, on_work,
			  on_worked);
	work->running = r == 0;
	if (r < 0)
		work->result = r;
	return r < 0 ? r : -EINPROGRESS;
}

int
tree_work_take(const struct tree_asker *asker, struct buf *ret_answer)
{
	struct tree_work *work = *asker->state;
	int r;

	if (work->running)
		return -EINPROGRESS;
	r = work->result;
	*ret_answer = work->answer;
	work->answer = (struct buf){ 0 };
	*asker->state = NULL;
	work_free(work);
	return r;
}

/* ---- mode ---- */

static int
run_mode(struct tree_work *work)
{
	struct rpc_fault fault = { 0 };
	int r = warden_change_mode(work->tree->warden, RPC_AGENT, work->mode,
				   &work->before, &fault);

	if (r != -EBADMSG)
		return r;
	return fault.code && strcmp(fault.code, "MODE_FIXED") == 0 ? -EBUSY
								   : -EPERM;
}

static void
done_mode(struct tree_work *work)
{
	if (work->result == 0)
		warden_mode_changed(work->tree->warden, work->before,
				    work->mode);
}

ssize_t
tree_mode_write(struct warden_tree *tree, const struct tree_asker *asker,
		const void *bytes, size_t len, struct buf *ret_answer)
{
	struct tree_work *work = tree_work_get(asker, bytes, len);
	enum policy_mode mode;
	char name[32] = "";
	size_t n = len;
	int r;

	if (!work) {
		while (n > 0 && strchr(" \t\r\n", ((const char *)bytes)[n - 1]))
			n--;
		if (n >= sizeof(name))
			return -EINVAL;
		memcpy(name, bytes, n);
		if (policy_mode_parse(name, &mode) < 0)
			return -EINVAL;
		if (mode == POLICY_DANGER_FULL_ACCESS)
			return -EPERM;
		r = tree_work_new(tree, asker, bytes, len, &work);
		if (r < 0)
			return r;
		work->mode = mode;
		work->run = run_mode;
		work->done = done_mode;
		r = tree_work_start(work);
		if (r == -EINPROGRESS)
			return r;
	}
	r = tree_work_take(asker, ret_answer);
	return r < 0 ? r : (ssize_t)len;
}

/* ---- ask ---- */

struct question {
	enum policy_mode mode;
	const char *why;
	const json_t *argv;
};

static int
parse_question(const json_t *root, struct question *ret_question)
{
	const char *mode = json_string_value(json_object_get(root, "escalate"));
	const char *why = json_string_value(json_object_get(root, "why"));
	const json_t *argv = json_object_get(root, "argv"), *item;
	size_t i;

	if (!mode || policy_mode_parse(mode, &ret_question->mode) < 0 || !why ||
	    why[strspn(why, " \t\r\n")] == '\0' || json_array_size(argv) == 0)
		return -EINVAL;
	json_array_foreach(argv, i, item)
	{
		if (!json_is_string(item))
			return -EINVAL;
	}
	ret_question->why = why;
	ret_question->argv = argv;
	return 0;
}

static void
question_json(const struct policy *policy, const struct question *question,
	      const char *outcome, struct buf *out)
{
	const json_t *item;
	size_t i;

	jsonw_begin(out, '{');
	jsonw_pair(out, "workspace", policy->roots[0].path);
	jsonw_pair(out, "from", policy_mode_name(policy->mode));
	jsonw_pair(out, "to", policy_mode_name(question->mode));
	jsonw_pair(out, "why", question->why);
	jsonw_key(out, "argv");
	jsonw_begin(out, '[');
	json_array_foreach(question->argv, i, item)
	{
		jsonw_text(out, json_string_value(item));
	}
	jsonw_end(out, ']');
	if (outcome)
		jsonw_pair(out, "outcome", outcome);
	jsonw_end(out, '}');
}

/* There is no one to be asked: said so, and on record like any answer. */
static int
run_ask(struct tree_work *work)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(work->tree->warden);
	_cleanup_(buf_fini) struct buf asked = { 0 };
	_cleanup_(buf_fini) struct buf decided = { 0 };
	struct question question = { 0 };
	json_t *root = json_loadb(work->bytes, work->len, 0, NULL);
	int r = parse_question(root, &question);

	if (r == 0 && question.mode <= policy->mode)
		r = -EINVAL;
	if (r == 0) {
		question_json(policy, &question, NULL, &asked);
		question_json(policy, &question, "unavailable", &decided);
		warden_record_event(work->tree->warden, "approval.asked",
				    &asked);
		warden_record_event(work->tree->warden, "approval.decided",
				    &decided);
		jsonw_begin(&work->answer, '{');
		jsonw_pair(&work->answer, "outcome", "unavailable");
		jsonw_pair(&work->answer, "escalate",
			   policy_mode_name(question.mode));
		jsonw_pair(&work->answer, "reason",
			   "nobody can be asked from here; the operator can "
			   "run it with `pale run --escalate MODE --why TEXT`");
		jsonw_end(&work->answer, '}');
		buf_puts(&work->answer, "\n");
		r = buf_error(&work->answer);
	}
	json_decref(root);
	return r;
}

/* Who reads without having asked sees the last outcome. */
static void
done_ask(struct tree_work *work)
{
	struct warden_tree *tree = work->tree;

	if (work->result < 0)
		return;
	buf_fini(&tree->asked);
	tree->asked = (struct buf){ 0 };
	buf_put(&tree->asked, work->answer.data, work->answer.len);
}

ssize_t
tree_ask_write(struct warden_tree *tree, const struct tree_asker *asker,
	       const void *bytes, size_t len, struct buf *ret_answer)
{
	struct tree_work *work = tree_work_get(asker, bytes, len);
	int r;

	if (!work) {
		if (len > LIMIT_TREE_ASK)
			return -E2BIG;
		r = tree_work_new(tree, asker, bytes, len, &work);
		if (r < 0)
			return r;
		work->run = run_ask;
		work->done = done_ask;
		r = tree_work_start(work);
		if (r == -EINPROGRESS)
			return r;
	}
	r = tree_work_take(asker, ret_answer);
	return r < 0 ? r : (ssize_t)len;
}
