/* SPDX-License-Identifier: MIT */

/*
 * What is written to `terminals/new`, and to `input`, `keys` and `ctl` of a
 * terminal; as for jobs (tree_orders.c).
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "jobs/jobs.h"
#include "jobs/orders.h"
#include "pty/keys.h"
#include "pty/vt.h"
#include "warden/terms_row.h"
#include "warden/terms_rpc.h"
#include "warden/tree_priv.h"

#define ORDERS_MAX 16

static const char new_usage[] =
	"write a command line, for sh -c, or {\"argv\": [COMMAND, …], \"cwd\": "
	"DIR, \"name\": TEXT,\n"
	"\"cols\": N, \"rows\": N, …} as for term.new; read the id from the "
	"same open file\n";

static const char ctl_usage[] =
	"kill [SIGNAL]    hang up, TERM, and KILL after 3 s; KILL at once\n"
	"signal SIGNAL    to the foreground process group\n"
	"resize COLSxROWS\n"
	"rename [NAME]\n";

void
tree_terms_usage(const struct warden_tree *tree, struct tree_node node,
		 struct buf *out)
{
	tree_note_put(tree, node.item | TREE_TERM,
		      node.row == ROW_T_NEW ? new_usage : ctl_usage, out);
}

/* ---- new ---- */

/* As parameters of term.new; NULL: no JSON, or no memory. */
static json_t *
parse_new(const char *bytes, size_t len)
{
	size_t skip = strspn(bytes, " \t\r\n");

	if (bytes[skip] == '{')
		return json_loadb(bytes, len, 0, NULL);
	while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == '\r'))
		len--;
	return len > 0 ? json_pack("{s:[sss%]}", "argv", "sh", "-c", bytes, len)
		       : NULL;
}

static int
errno_of(const struct terms_started *result)
{
	if (result->code && strcmp(result->code, TERM_LIMIT) == 0)
		return -EBUSY;
	return result->error < 0 ? result->error : -EINVAL;
}

static void
on_started(const struct terms_started *result, void *data)
{
	struct tree_work *work = data;

	if (result->id == 0) {
		work->result = errno_of(result);
		if (!work->tree->closed)
			tree_note_set(work->tree, TREE_TERM, result->why.text);
	} else {
		work->result = 0;
		buf_putf(&work->answer, "t%llu\n",
			 (unsigned long long)result->id);
	}
	tree_work_finish(work);
}

static int
start_term(struct warden_tree *tree, struct tree_work *work)
{
	_cleanup_(terms_new_params_fini) struct terms_new_params params = { 0 };
	json_t *root = parse_new(work->bytes, work->len);
	const struct rpc_message message = { .params = root };
	struct rpc_fault fault = { .text = "no JSON object" };
	int r = -EINVAL;

	if (json_is_object(root))
		r = terms_new_params_take(&message, &params, &fault);
	if (r == 0) {
		work->running = true;
		r = terms_new(tree->warden, &params.request, on_started, work);
		if (r < 0) {
			work->running = false;
			(void)snprintf(fault.text, sizeof(fault.text), "%s",
				       strerror(-r));
		}
	}
	json_decref(root);
	if (r < 0)
		tree_note_set(tree, TREE_TERM, fault.text);
	return r == -EBADMSG ? -EINVAL : r;
}

static ssize_t
write_new(struct warden_tree *tree, const struct tree_asker *asker,
	  const void *bytes, size_t len, struct buf *ret_answer)
{
	struct tree_work *work = tree_work_get(asker, bytes, len);
	int r;

	if (!work) {
		if (len > LIMIT_TREE_ORDER)
			return -E2BIG;
		if (len == 0 || memchr(bytes, '\0', len))
			return -EINVAL;
		tree_note_set(tree, TREE_TERM, NULL);
		r = tree_work_new(tree, asker, bytes, len, &work);
		if (r < 0)
			return r;
		r = start_term(tree, work);
		if (r < 0)
			work->result = r;
	}
	r = tree_work_take(asker, ret_answer);
	return r < 0 ? r : (ssize_t)len;
}

/* ---- ctl ---- */

struct order {
	enum {
		ORDER_KILL,
		ORDER_SIGNAL,
		ORDER_RESIZE,
		ORDER_RENAME,
	} kind;
	int signal;
	unsigned int cols, rows;
	const char *name;
};

static bool
parse_size(const char *text, struct order *order)
{
	char *end = NULL;
	unsigned long cols = strtoul(text, &end, 10), rows = 0;

	if (*text < '1' || *text > '9' || *end != 'x' || end[1] < '1' ||
	    end[1] > '9')
		return false;
	rows = strtoul(end + 1, &end, 10);
	order->cols = (unsigned int)cols;
	order->rows = (unsigned int)rows;
	return *end == '\0' && cols <= 65535 && rows <= 65535;
}

/* NULL: understood; else what is wrong with it. */
static const char *
parse_line(char *line, struct order *ret_order)
{
	char *save = NULL, *verb = strtok_r(line, " \t\r", &save);
	char *argument = strtok_r(NULL, "\r", &save);
	struct order order = { .signal = SIGTERM, .name = argument };

	if (strcmp(verb, "rename") == 0) {
		order.kind = ORDER_RENAME;
		if (argument && !terms_name_is_valid(argument))
			return "not a name";
	} else if (strcmp(verb, "resize") == 0) {
		order.kind = ORDER_RESIZE;
		if (!argument || !parse_size(argument, &order))
			return "no size, such as 80x24";
	} else if (strcmp(verb, "kill") == 0 ||
		   (strcmp(verb, "signal") == 0 && argument)) {
		order.kind = *verb == 'k' ? ORDER_KILL : ORDER_SIGNAL;
		if (argument)
			order.signal = job_signal_parse(argument);
		if (order.signal == 0)
			return "no such signal";
	} else {
		return "not a verb: kill [SIGNAL], signal SIGNAL, resize "
		       "COLSxROWS, rename [NAME]";
	}
	*ret_order = order;
	return NULL;
}

static int
follow(struct warden *warden, uint64_t term, const struct order *order)
{
	pid_t group;

	switch (order->kind) {
	case ORDER_KILL:
		return terms_kill(warden, term,
				  order->signal == SIGKILL ? 0 : JOBS_GRACE_MS);
	case ORDER_SIGNAL:
		return terms_signal(warden, term, order->signal, &group);
	case ORDER_RESIZE:
		return terms_resize(warden, term, order->cols, order->rows,
				    TERMS_SIZE_SET);
	case ORDER_RENAME:
		return terms_rename(warden, term, order->name);
	}
	return -EINVAL;
}

static int
parse_all(char *text, struct order *orders, size_t *ret_n,
	  const char **ret_wrong)
{
	char *save = NULL;
	size_t n = 0;

	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (line[strspn(line, " \t\r")] == '\0')
			continue;
		*ret_wrong = n < ORDERS_MAX ? parse_line(line, &orders[n])
					    : "too many orders at once";
		if (*ret_wrong)
			return -EINVAL;
		n++;
	}
	*ret_n = n;
	return 0;
}

static const char *
words_of(int r)
{
	if (r == -ESRCH)
		return "it has ended";
	return r == -EEXIST ? "another terminal has that name" : strerror(-r);
}

static ssize_t
write_ctl(struct warden_tree *tree, uint64_t term, const char *bytes,
	  size_t len)
{
	_cleanup_(freep) char *text = NULL;
	struct order orders[ORDERS_MAX];
	const char *wrong = NULL;
	size_t n = 0;
	int r;

	if (len > JOB_ORDERS_BYTES || memchr(bytes, '\0', len))
		return -EINVAL;
	text = strndup(bytes, len);
	if (!text)
		return -ENOMEM;
	r = parse_all(text, orders, &n, &wrong);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = follow(tree->warden, term, &orders[i]);
	if (r == -EALREADY || r == -EPIPE)
		r = -ESRCH;
	if (r < 0 && !wrong)
		wrong = words_of(r);
	tree_note_set(tree, term | TREE_TERM, wrong);
	return r < 0 ? r : (ssize_t)len;
}

/* ---- input, keys ---- */

static ssize_t
write_input(struct warden_tree *tree, uint64_t term, const void *bytes,
	    size_t len)
{
	struct terms_written written = { 0 };
	int r = terms_write(tree->warden, term, bytes, len, 0, &written);

	if (r < 0)
		return r;
	if (written.too_long)
		return -EMSGSIZE;
	return written.taken > 0 || len == 0 ? (ssize_t)written.taken : -EAGAIN;
}

static ssize_t
write_keys(struct warden_tree *tree, uint64_t term, const char *bytes,
	   size_t len)
{
	_cleanup_(freep) char *names = NULL;
	_cleanup_(buf_fini) struct buf out = { 0 };
	struct terms_written written = { 0 };
	struct keys_modes modes = { 0 };
	struct errmsg why = { "" };
	struct vt_state state;
	const struct vt *vt;
	int r;

	if (len > JOB_ORDERS_BYTES || memchr(bytes, '\0', len))
		return -EINVAL;
	names = strndup(bytes, len);
	if (!names)
		return -ENOMEM;
	vt = terms_vt(tree->warden, term);
	if (vt) {
		vt_state(vt, &state);
		modes.app_cursor = state.app_cursor;
		modes.app_keypad = state.app_keypad;
	}
	names[strcspn(names, "\n")] = '\0';
	r = keys_encode(names, &modes, &out, &why);
	tree_note_set(tree, term | TREE_TERM, r < 0 ? why.text : NULL);
	if (r == 0)
		r = buf_error(&out);
	if (r == 0)
		r = terms_write(tree->warden, term, out.data, out.len,
				TERMS_WRITE_WHOLE | TERMS_WRITE_TYPED,
				&written);
	if (r < 0)
		return r;
	return written.taken == out.len ? (ssize_t)len : -EAGAIN;
}

ssize_t
tree_terms_write(struct warden_tree *tree, const struct tree_asker *asker,
		 const void *bytes, size_t len, struct buf *ret_answer)
{
	uint64_t term = asker->node.item;

	switch (asker->node.row) {
	case ROW_T_NEW:
		return write_new(tree, asker, bytes, len, ret_answer);
	case ROW_T_INPUT:
		return write_input(tree, term, bytes, len);
	case ROW_T_KEYS:
		return write_keys(tree, term, bytes, len);
	case ROW_T_CTL:
		return write_ctl(tree, term, bytes, len);
	default:
		return -EINVAL;
	}
}
