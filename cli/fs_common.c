/* SPDX-License-Identifier: MIT */

#include "cli/fs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/json.h"
#include "cli/place.h"
#include "cli/records.h"
#include "cli/standing.h"
#include "fusefs/journal.h"
#include "policy/store.h"

#define SHOW_MS 10000

/* ---- which policy ---- */

static int
ask_policy(struct rpc_client *client, struct policy **ret_policy,
	   struct errmsg *why)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(buf_fini) struct buf params = { 0 };
	json_t *result = NULL;
	int r;

	jsonw_begin(&params, '{');
	jsonw_pair_bool(&params, "policy", true);
	jsonw_end(&params, '}');
	r = rpc_client_call(client, RPC_WORLD_SHOW, &params, SHOW_MS, &result,
			    why);
	if (r < 0)
		return r;
	text = json_dumps(json_object_get(result, "policy"), JSON_COMPACT);
	json_decref(result);
	if (!text)
		return errmsg_set(why, -EPROTO,
				  "the world does not tell its policy; it was "
				  "made by another version of pale");
	return policy_decode(text, strlen(text), ret_policy, why);
}

/* A mount without a world (no user namespaces): its policy counts as well. */
static int
find_mount(const struct policy *policy, struct rpc_client **ret_client,
	   char *ret_world, struct errmsg *why)
{
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	int r = worlds_list(&list, why);

	for (size_t i = 0; r == 0 && i < list.count; i++) {
		const struct world_info *world = &list.items[i];

		if (strcmp(world->kind, "mount") != 0 ||
		    strcmp(world->workspace, policy->roots[0].path) != 0 ||
		    strcmp(world->session, policy->session) != 0)
			continue;
		r = rpc_client_open(world->dir, RPC_OPERATOR, ret_client, why);
		if (record_is_nobody(r))
			r = 0;
		else if (r == 0)
			(void)snprintf(ret_world, WORLD_ID_LEN + 1, "%s",
				       world->id);
		if (*ret_client)
			return 0;
	}
	return r < 0 ? r : -ENOENT;
}

static int
find_policy(struct fs_verb *verb, struct errmsg *why)
{
	const struct policy_request *request = &verb->options->policy.request;
	_cleanup_(policy_unrefp) struct policy *resolved = NULL;
	struct standing_request wanted = { .request = request,
					   .world = verb->options->world };
	struct standing standing = { .sock = -1 };
	int r = 0;

	if (!wanted.world)
		r = policy_resolve(request, &resolved, why);
	if (r < 0)
		return r;
	wanted.policy = resolved;
	r = standing_connect(&wanted, &standing, why);
	if (r == 0)
		(void)snprintf(verb->world, sizeof(verb->world), "%s",
			       standing.world);
	else if (r == -ENOENT && resolved && !request->mode)
		r = find_mount(resolved, &standing.client, verb->world, why);
	if (r == 0)
		r = ask_policy(standing.client, &verb->policy, why);
	else if (r == -ENOENT && resolved) {
		verb->policy = policy_ref(resolved);
		r = 0;
	}
	standing_fini(&standing);
	return r;
}

/* ---- what was left ---- */

static void
say_kept(const char *path)
{
	cli_error("note: '%s' holds what another program wrote while an edit "
		  "was killed",
		  path);
}

/* In a world the state is out of reach, but its own /tmp is not. */
static int
name_journals(bool in_state, char **ret_path)
{
	_cleanup_(freep) char *state = NULL;
	int r = in_state ? dirs_state(&state) : 0;

	if (r < 0)
		return r;
	if (in_state)
		r = asprintf(ret_path, "%s/edits", state);
	else
		r = asprintf(ret_path, "/tmp/pale-%u-edits",
			     (unsigned int)geteuid());
	if (r < 0)
		*ret_path = NULL;
	return r < 0 ? -ENOMEM : 0;
}

static int
sweep_journals(struct errmsg *why)
{
	for (int i = 0; i < 2; i++) {
		_cleanup_(freep) char *path = NULL;
		int r = name_journals(i == 0, &path);

		if (r < 0)
			return errmsg_set(why, r, "no state directory: %s",
					  strerror(-r));
		if (dirs_check(path, NULL) == 0)
			journal_sweep(path, say_kept);
	}
	return 0;
}

int
fs_verb_make_journals(struct fs_verb *verb)
{
	struct errmsg why = { "" };
	int r = -ENOMEM;

	for (int i = 0; r < 0 && i < 2; i++) {
		free(verb->journals);
		verb->journals = NULL;
		r = name_journals(i == 0, &verb->journals);
		if (r == 0)
			r = dirs_make(verb->journals, &why);
	}
	/* Where neither can be, the fence answers first, then the disk. */
	return verb->journals ? 0
			      : fsfail_set(&verb->fail, FSFAIL_IO_ERROR, "%s",
					   why.text);
}

int
fs_verb_init(struct fs_verb *verb, const struct fs_options *options)
{
	struct errmsg why = { "" };
	int r;

	*verb = (struct fs_verb){ .options = options, .world = "-" };
	r = sweep_journals(&why);
	if (r == 0)
		r = find_policy(verb, &why);
	if (r < 0)
		cli_error("%s", why.text);
	return r;
}

void
fs_verb_fini(struct fs_verb *verb)
{
	policy_unref(verb->policy);
	free(verb->journals);
}

int
fs_verb_locate(struct fs_verb *verb, const char *operand, char **ret_path)
{
	int r = place_canonical(operand, true, ret_path);

	if (r == -EINVAL && !*operand)
		return fsfail_set(&verb->fail, FSFAIL_NOT_FOUND,
				  "the path is empty");
	if (r == -ELOOP)
		return fsfail_set(&verb->fail, FSFAIL_IO_ERROR,
				  "the symlinks of '%s' lead in a circle",
				  operand);
	return r < 0 ? fsfail_errno(&verb->fail, r, "find", operand) : 0;
}

/* ---- what was not done ---- */

static void
record(const struct fs_verb *verb)
{
	const struct policy_verdict *verdict = &verb->fail.answer.verdict;
	struct denial denial = {
		.seq = (uint64_t)getpid(),
		.time_ns = clock_real_ns(),
		.count = 1,
		.session = verb->policy->session,
		.world = verb->world,
		.origin = "fs",
		.source = DENIAL_API,
		.code = verdict->code,
		.mode = verb->policy->mode,
		.rule = verdict->rule,
		.op = verb->fail.op,
		.path = verb->fail.path,
		.error = -verdict->error,
		.pid = getpid(),
		.ppid = getppid(),
		.uid = getuid(),
		.gid = getgid(),
		.comm = "pale",
	};
	struct store *store = NULL;
	struct errmsg why = { "" };
	int r;

	denial.last_ns = denial.time_ns;
	if (verdict->code == POLICY_CODE_SANDBOX_DENIED &&
	    denial.mode < POLICY_WORKSPACE_WRITE) {
		denial.remedy = DENIAL_REMEDY_ESCALATE;
		denial.remedy_text = policy_mode_name(POLICY_WORKSPACE_WRITE);
	}
	r = records_make(&store, &why);
	if (r == 0)
		r = store_put_denials(store, &denial, 1);
	if (r < 0)
		cli_error("note: this refusal is not on record: %s",
			  why.text[0] ? why.text : strerror(-r));
	store_close(store);
}

static void
print_error(const struct fsfail *fail, const char *operand)
{
	struct buf out = { 0 };

	jsonw_begin(&out, '{');
	jsonw_key(&out, "error");
	jsonw_begin(&out, '{');
	jsonw_pair(&out, "code", fsfail_name(fail->code));
	jsonw_pair(&out, "message", fail->text);
	jsonw_pair(&out, "path", operand);
	jsonw_key(&out, "data");
	jsonw_begin(&out, '{');
	if (fail->reason)
		jsonw_pair(&out, "reason", fail->reason);
	if (fail->version.text[0])
		jsonw_pair(&out, "version", fail->version.text);
	if (fail->answer.verdict.rule)
		jsonw_pair(&out, "rule", fail->answer.verdict.rule);
	if (fail->code == FSFAIL_AMBIGUOUS_EDIT ||
	    fail->code == FSFAIL_EDIT_NOT_FOUND) {
		jsonw_pair_uint(&out, "edit", fail->edit);
		jsonw_pair_uint(&out, "count", fail->count);
	}
	jsonw_end(&out, '}');
	jsonw_end(&out, '}');
	jsonw_end(&out, '}');
	(void)cli_print_json(&out);
}

int
fs_verb_failed(struct fs_verb *verb, const char *operand)
{
	struct fsfail *fail = &verb->fail;

	if (fail->denied)
		record(verb);
	if (verb->options->common.json)
		print_error(fail, operand);
	cli_error("%s: %s", fsfail_name(fail->code), fail->text);
	return fsfail_status(fail->code);
}
