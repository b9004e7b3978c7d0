/* SPDX-License-Identifier: MIT */

/*
 * The provider of the control tree: which row is served by whom, and the texts
 * about the world.
 */

#include "warden/tree_priv.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

static const struct tree_row rows[] = {
#define X(id, row_name, row_parent, row_kind, row_mode, row_fixed) \
	[ROW_##id] = { .name = (row_name),                         \
		       .parent = ROW_##row_parent,                 \
		       .kind = TREE_##row_kind,                    \
		       .mode = (row_mode),                         \
		       .fixed = (row_fixed) },
	TREE_ROWS(X)
#undef X
};

static const char readme[] =
	"This is pale's control tree: the world that your commands run in, as "
	"files.\n"
	"It is not listed in the workspace, and nothing here widens what you "
	"may do.\n"
	"\n"
	"  cat world.json            id, workspace, mode, enforcement\n"
	"  cat mode                  read-only or workspace-write; write a "
	"narrower one to tighten\n"
	"  tail -f denials           what was refused, a JSON object a line; "
	"denials.last: the newest\n"
	"  cat policy.json           the policy in force\n"
	"  jobs/                     background jobs, where the world has any: "
	"each has its directory\n"
	"  exec 3<>jobs/new; echo 'make check' >&3; read job <&3\n"
	"                            start one; then jobs/$job/: cat stdout, "
	"cat follow, cat wait, echo kill >ctl\n"
	"  terminals/                likewise, by terminals/new; then cat "
	"screen, echo ls >input, echo C-c >keys\n"
	"  exec 3<>ask; echo '{\"escalate\": \"workspace-write\", \"why\": "
	"\"…\", \"argv\": [\"make\"]}' >&3; cat <&3\n"
	"                            ask for a wider mode, and read the "
	"outcome\n";

static const char ask_usage[] =
	"write {\"escalate\": MODE, \"why\": TEXT, \"argv\": [COMMAND, …]}; "
	"read the outcome from the same open file\n";

/* ---- texts ---- */

typedef int text_fn(struct warden_tree *tree, const struct tree_asker *asker,
		    struct buf *out);

static int
readme_text(struct warden_tree *tree, const struct tree_asker *asker,
	    struct buf *out)
{
	(void)tree;
	(void)asker;
	buf_puts(out, readme);
	return 0;
}

static int
world_text(struct warden_tree *tree, const struct tree_asker *asker,
	   struct buf *out)
{
	struct warden *warden = tree->warden;

	jsonw_begin(out, '{');
	world_dir_members(warden, out);
	/* Who goes around a mount of the host is not fenced by it. */
	jsonw_pair(out, "enforcement",
		   !asker->host && warden_is_full(warden) ? "full" : "partial");
	jsonw_pair(out, "observer", warden_observer_name(warden));
	jsonw_pair(out, "version", VERSION);
	jsonw_end(out, '}');
	buf_puts(out, "\n");
	return 0;
}

static int
mode_text(struct warden_tree *tree, const struct tree_asker *asker,
	  struct buf *out)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(tree->warden);

	(void)asker;
	buf_puts(out, policy_mode_name(policy->mode));
	buf_puts(out, "\n");
	return 0;
}

static int
policy_text(struct warden_tree *tree, const struct tree_asker *asker,
	    struct buf *out)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(tree->warden);
	_cleanup_(freep) char *json = NULL;
	int r = policy_encode(policy, &json);

	(void)asker;
	if (r < 0)
		return r;
	buf_puts(out, json);
	buf_puts(out, "\n");
	return 0;
}

static int
last_text(struct warden_tree *tree, const struct tree_asker *asker,
	  struct buf *out)
{
	(void)asker;
	return tree_denials_last(tree, out);
}

static int
ask_text(struct warden_tree *tree, const struct tree_asker *asker,
	 struct buf *out)
{
	(void)asker;
	if (tree->asked.len > 0)
		buf_put(out, tree->asked.data, tree->asked.len);
	else
		buf_puts(out, ask_usage);
	return 0;
}

static text_fn *const texts[ROW_COUNT] = {
	[ROW_README] = readme_text, [ROW_WORLD] = world_text,
	[ROW_MODE] = mode_text,	    [ROW_POLICY] = policy_text,
	[ROW_ASK] = ask_text,	    [ROW_DENIALS_LAST] = last_text,
};

/* ---- what the tree asks for ---- */

static int
provide_stat(void *data, struct tree_node node, struct tree_stat *ret_stat)
{
	struct warden_tree *tree = data;

	ret_stat->time_ns = tree->warden->started_ns;
	if (node.row == ROW_DENIALS)
		return tree_denials_stat(tree, ret_stat);
	if (node.row >= ROW_TERMS)
		return tree_terms_stat(tree, node, ret_stat);
	if (node.row >= ROW_JOBS)
		return tree_jobs_stat(tree, node, ret_stat);
	return 0;
}

static uint64_t
provide_next(void *data, unsigned int row, uint64_t after)
{
	if (row == ROW_TERM)
		return tree_terms_next(data, after);
	return row == ROW_JOB ? tree_jobs_next(data, after) : 0;
}

static int
provide_text(void *data, const struct tree_asker *asker, struct buf *ret_text)
{
	text_fn *text = texts[asker->node.row];

	if (asker->node.row >= ROW_TERMS)
		return tree_terms_text(data, asker->node, ret_text);
	if (asker->node.row >= ROW_JOBS)
		return tree_jobs_text(data, asker->node, ret_text);
	return text ? text(data, asker, ret_text) : -EINVAL;
}

static int
provide_read(void *data, const struct tree_asker *asker, uint64_t offset,
	     void *buf, size_t size, struct tree_view *ret_view)
{
	if (asker->node.row == ROW_DENIALS)
		return tree_denials_read(data, offset, buf, size, ret_view);
	if (asker->node.row >= ROW_TERMS)
		return tree_terms_read(data, asker, offset, buf, size,
				       ret_view);
	return tree_jobs_read(data, asker, offset, buf, size, ret_view);
}

static ssize_t
provide_write(void *data, const struct tree_asker *asker, const void *bytes,
	      size_t len, struct buf *ret_answer)
{
	uint64_t job = asker->node.item;

	switch (asker->node.row) {
	case ROW_MODE:
		return tree_mode_write(data, asker, bytes, len, ret_answer);
	case ROW_ASK:
		return tree_ask_write(data, asker, bytes, len, ret_answer);
	case ROW_NEW:
		return tree_new_write(data, asker, bytes, len, ret_answer);
	case ROW_CTL:
		return tree_ctl_write(data, job, bytes, len);
	case ROW_STDIN:
		return tree_stdin_write(data, job, bytes, len);
	default:
		return asker->node.row >= ROW_TERMS
			       ? tree_terms_write(data, asker, bytes, len,
						  ret_answer)
			       : -EINVAL;
	}
}

static int
provide_remove(void *data, struct tree_node node)
{
	if (node.row == ROW_TERM)
		return tree_terms_remove(data, node.item);
	return node.row == ROW_JOB ? tree_jobs_remove(data, node.item) : -EPERM;
}

static void
provide_close(void *data, void *state)
{
	void (*close_it)(void *state);

	(void)data;
	memcpy(&close_it, state, sizeof(close_it));
	close_it(state);
}

static void
provide_wake(void *data)
{
	struct warden_tree *tree = data;

	(void)uv_async_send(&tree->wake);
}

static const struct tree_provider provider = {
	.rows = rows,
	.n_rows = ROW_COUNT,
	.wake = provide_wake,
	.stat = provide_stat,
	.next = provide_next,
	.text = provide_text,
	.read = provide_read,
	.write = provide_write,
	.remove = provide_remove,
	.close = provide_close,
};

/* ---- its life ---- */

static void
on_wake(uv_async_t *async)
{
	struct warden_tree *tree = async->data;

	tree_run(tree->tree);
}

int
warden_tree_new(struct warden *warden, struct warden_tree **ret_tree)
{
	struct warden_tree *tree = calloc(1, sizeof(*tree));
	int r;

	if (!tree)
		return -ENOMEM;
	tree->warden = warden;
	tree_denials_init(tree);
	r = tree_new(&provider, tree, &tree->tree);
	if (r == 0)
		r = uv_async_init(&warden->loop, &tree->wake, on_wake);
	if (r < 0) {
		tree->tree = tree_free(tree->tree);
		free(tree);
		return r;
	}
	tree->wake.data = tree;
	/* It keeps no world alive. */
	uv_unref((uv_handle_t *)&tree->wake);
	*ret_tree = tree;
	return 0;
}

struct tree *
warden_tree_served(const struct warden_tree *tree)
{
	return tree ? tree->tree : NULL;
}

void
warden_tree_mode(struct warden_tree *tree)
{
	if (tree && !tree->closed)
		tree_changed(tree->tree, (struct tree_node){ .row = ROW_MODE });
}

void
warden_tree_close(struct warden_tree *tree)
{
	if (!tree || tree->closed)
		return;
	tree->closed = true;
	tree_close(tree->tree);
	tree_jobs_close(tree);
	tree_terms_close(tree);
	uv_close((uv_handle_t *)&tree->wake, NULL);
}

struct warden_tree *
warden_tree_free(struct warden_tree *tree)
{
	if (!tree)
		return NULL;
	tree->tree = tree_free(tree->tree);
	tree_denials_fini(tree);
	tree_jobs_free(tree);
	buf_fini(&tree->asked);
	free(tree);
	return NULL;
}
