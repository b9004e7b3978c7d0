/* SPDX-License-Identifier: MIT */

/*
 * A policy as JSON: what `pale policy show --json` prints and what a warden is
 * started with.  It is complete: decoding yields an equal policy.
 *
 * Linux paths are bytes, JSON strings are Unicode.  A text that is valid UTF-8
 * is a string; any other is {"bytes": "<hexadecimal>"}, so nothing is dropped
 * and nothing can be mistaken for something else.
 *
 * The decoder believes nothing: every member must be there, of its type and in
 * its range, and no other member may be.
 */

#include <jansson.h>
#include <string.h>

#include "base/limits.h"
#include "policy/policy_priv.h"

static const char *const rule_kinds[] = { "protect", "hide", "allow" };
static const char *const net_names[] = { "host", "none" };
static const char *const home_names[] = { "ro", "private" };

/* ---- encoding ---- */

static json_t *
bytes_json(const char *text)
{
	static const char digits[] = "0123456789abcdef";
	size_t len = strlen(text);
	_cleanup_(freep) char *hex = malloc(2 * len + 1);

	if (!hex)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		hex[2 * i] = digits[(unsigned char)text[i] >> 4];
		hex[2 * i + 1] = digits[(unsigned char)text[i] & 15];
	}
	hex[2 * len] = '\0';
	return json_pack("{s:s}", "bytes", hex);
}

static json_t *
text_json(const char *text)
{
	json_t *json = json_string(text);

	return json ? json : bytes_json(text);
}

static json_t *
strv_json(const struct strv *v)
{
	_cleanup_(json_decrefp) json_t *array = json_array();

	for (size_t i = 0; array && i < v->count; i++)
		if (json_array_append_new(array, text_json(v->items[i])) < 0)
			return NULL;
	return take_ptr(&array);
}

static json_t *
roots_json(const struct policy *policy)
{
	_cleanup_(json_decrefp) json_t *array = json_array();

	for (size_t i = 0; array && i < policy->n_roots; i++) {
		const struct policy_root *root = &policy->roots[i];
		json_t *item = json_pack("{s:s,s:o}", "kind",
					 policy_root_kind_name(root->kind),
					 "path", text_json(root->path));

		if (json_array_append_new(array, item) < 0)
			return NULL;
	}
	return take_ptr(&array);
}

static json_t *
rules_json(const struct rules *rules)
{
	_cleanup_(json_decrefp) json_t *array = json_array();
	const char *pattern, *source;
	enum rule_kind kind;

	for (size_t i = 0;
	     array && rules_get(rules, i, &kind, &pattern, &source); i++) {
		json_t *item = json_pack("{s:s,s:o,s:s}", "kind",
					 rule_kinds[kind], "pattern",
					 text_json(pattern), "source", source);

		if (json_array_append_new(array, item) < 0)
			return NULL;
	}
	return take_ptr(&array);
}

static json_t *
limits_json(const struct policy_limits *l)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}",
			 "timeout_ms", (json_int_t)l->timeout_ms, "linger_ms",
			 (json_int_t)l->linger_ms, "memory",
			 (json_int_t)l->memory, "pids", (json_int_t)l->pids,
			 "cpu_percent", (json_int_t)l->cpu_percent, "jobs",
			 (json_int_t)l->jobs, "jobs_kept",
			 (json_int_t)l->jobs_kept, "jobs_bytes",
			 (json_int_t)l->jobs_bytes, "terminals",
			 (json_int_t)l->terminals, "terminals_kept",
			 (json_int_t)l->terminals_kept);
}

static json_t *
policy_json(const struct policy *p)
{
	return json_pack(
		"{s:s,s:s,s:s,s:o,s:o,s:b,s:b,s:b,s:b,s:b,s:s,s:s,s:o,"
		"s:o,s:o,s:o,s:o,s:o,s:o,s:b,s:o}",
		"mode", policy_mode_name(p->mode), "mode_source",
		p->mode_source, "session", p->session, "roots", roots_json(p),
		"rules", rules_json(p->rules), "git_guard", p->git_guard,
		"tmp_writable", p->tmp_writable, "nest", p->nest,
		"require_full", p->require_full, "require_limits",
		p->require_limits, "net", net_names[p->net], "home",
		home_names[p->home], "home_path",
		p->home_path ? text_json(p->home_path) : json_null(),
		"hide_paths", strv_json(&p->hide_paths), "sockets",
		strv_json(&p->sockets), "name_sockets",
		strv_json(&p->name_sockets), "devices", strv_json(&p->devices),
		"env_hide", strv_json(&p->env_hide), "limits",
		limits_json(&p->limits), "landlock", p->landlock, "tmp_dir",
		p->tmp_dir ? text_json(p->tmp_dir) : json_null());
}

int
policy_encode(const struct policy *policy, char **ret_json)
{
	_cleanup_(json_decrefp) json_t *json = policy_json(policy);
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	if (!text)
		return -ENOMEM;
	*ret_json = text;
	return 0;
}

/* ---- decoding ---- */

/* One object under way; the first fault is kept, later reads are empty. */
struct reader {
	json_t *object;
	size_t taken;
	struct errmsg *why;
	int error;
};

static int
bad(struct reader *in, const char *name, const char *what)
{
	if (in->error == 0)
		in->error = errmsg_set(in->why, -EINVAL, "policy: '%s' %s",
				       name, what);
	return in->error;
}

static int
bad_memory(struct reader *in)
{
	if (in->error == 0)
		in->error = errmsg_set(in->why, -ENOMEM, "out of memory");
	return in->error;
}

static json_t *
member(struct reader *in, const char *name)
{
	json_t *value = json_object_get(in->object, name);

	if (!value) {
		(void)bad(in, name, "is missing");
		return NULL;
	}
	in->taken++;
	return value;
}

static void
check_all_taken(struct reader *in, const char *name)
{
	if (in->error == 0 && json_object_size(in->object) != in->taken)
		(void)bad(in, name, "has members that are not known");
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* {"bytes": "…"} back to the bytes; NULL with an error in `in`. */
static char *
bytes_text(struct reader *in, const char *name, const json_t *value)
{
	const char *hex = json_string_value(json_object_get(value, "bytes"));
	_cleanup_(freep) char *text = NULL;
	size_t len = hex ? strlen(hex) : 1;

	if (len % 2 != 0 || json_object_size(value) != 1) {
		(void)bad(in, name, "is no text");
		return NULL;
	}
	text = malloc(len / 2 + 1);
	if (!text) {
		(void)bad_memory(in);
		return NULL;
	}
	for (size_t i = 0; i < len / 2; i++) {
		int high = hex_digit(hex[2 * i]);
		int low = hex_digit(hex[2 * i + 1]);

		if (high < 0 || low < 0 || high + low == 0) {
			(void)bad(in, name, "has bytes that are none");
			return NULL;
		}
		text[i] = (char)(high << 4 | low);
	}
	text[len / 2] = '\0';
	return take_ptr(&text);
}

/* A fresh text, or NULL with an error in `in`. */
static char *
text_value(struct reader *in, const char *name, const json_t *value)
{
	const char *text = json_string_value(value);
	char *copy;

	if (in->error < 0)
		return NULL;
	if (!text)
		return bytes_text(in, name, value);
	/* jansson refuses NUL bytes in strings unless asked for them. */
	copy = strdup(text);
	if (!copy)
		(void)bad_memory(in);
	return copy;
}

static char *
text_member(struct reader *in, const char *name)
{
	json_t *value = member(in, name);

	return value ? text_value(in, name, value) : NULL;
}

static bool
bool_member(struct reader *in, const char *name)
{
	json_t *value = member(in, name);

	if (value && !json_is_boolean(value))
		(void)bad(in, name, "is not true or false");
	return json_is_true(value);
}

static uint64_t
number_member(struct reader *in, const char *name)
{
	json_t *value = member(in, name);

	if (value && (!json_is_integer(value) || json_integer_value(value) < 0))
		(void)bad(in, name, "is no number of this kind");
	return in->error == 0 ? (uint64_t)json_integer_value(value) : 0;
}

/* The index of a word in `words`. */
static unsigned int
word_value(struct reader *in, const char *name, const json_t *value,
	   const char *const *words, size_t count)
{
	const char *text = json_string_value(value);

	for (size_t i = 0; text && i < count; i++)
		if (strcmp(text, words[i]) == 0)
			return (unsigned int)i;
	(void)bad(in, name, "has a value that is not known");
	return 0;
}

static json_t *
array_member(struct reader *in, const char *name, size_t max)
{
	json_t *array = member(in, name);

	if (array && (!json_is_array(array) || json_array_size(array) > max)) {
		(void)bad(in, name, "is no list, or too long");
		return NULL;
	}
	return array;
}

/* `is_path`: every item must be a clean absolute path. */
static void
strv_member(struct reader *in, const char *name, bool is_path, struct strv *v)
{
	json_t *array = array_member(in, name, LIMIT_RULES), *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		_cleanup_(freep) char *text = text_value(in, name, item);

		if (!text)
			return;
		if (is_path && !path_is_clean(text)) {
			(void)bad(in, name, "holds a path that is not clean");
			return;
		}
		if (strv_add(v, text) < 0) {
			(void)bad_memory(in);
			return;
		}
	}
}

static void
root_item(struct reader *in, json_t *item, struct policy *p)
{
	static const char *const kinds[] = { "workspace", "git", "rw" };
	struct reader root = { .object = item, .why = in->why };
	_cleanup_(freep) char *path = NULL;
	enum policy_root_kind kind;
	int r;

	kind = (enum policy_root_kind)word_value(
		&root, "kind", member(&root, "kind"), kinds, 3);
	path = text_member(&root, "path");
	check_all_taken(&root, "roots");
	if (path && !path_is_clean(path))
		(void)bad(&root, "path", "is not clean");
	if ((kind == POLICY_ROOT_WORKSPACE) != (p->n_roots == 0))
		(void)bad(&root, "roots", "must begin with one workspace");
	in->error = root.error;
	if (in->error < 0)
		return;
	r = policy_add_root(p, kind, path);
	if (r < 0)
		(void)bad_memory(in);
}

static void
roots_member(struct reader *in, struct policy *p)
{
	json_t *array = array_member(in, "roots", LIMIT_ROOTS), *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		root_item(in, item, p);
		if (in->error < 0)
			return;
	}
	if (p->n_roots == 0)
		(void)bad(in, "roots", "must begin with one workspace");
}

static void
rule_item(struct reader *in, json_t *item, struct policy *p)
{
	struct reader rule = { .object = item, .why = in->why };
	_cleanup_(freep) char *pattern = NULL, *source = NULL;
	enum rule_kind kind;

	kind = (enum rule_kind)word_value(&rule, "kind", member(&rule, "kind"),
					  rule_kinds, 3);
	pattern = text_member(&rule, "pattern");
	source = text_member(&rule, "source");
	check_all_taken(&rule, "rules");
	in->error = rule.error;
	if (in->error == 0)
		in->error = rules_add(p->rules, kind, pattern, source, in->why);
}

static void
rules_member(struct reader *in, struct policy *p)
{
	json_t *array = array_member(in, "rules", LIMIT_RULES), *item;
	size_t i;

	json_array_foreach(array, i, item)
	{
		rule_item(in, item, p);
		if (in->error < 0)
			return;
	}
}

static void
limits_member(struct reader *in, struct policy_limits *l)
{
	struct reader limits = { .object = member(in, "limits"),
				 .why = in->why };

	if (in->error < 0)
		return;
	l->timeout_ms = number_member(&limits, "timeout_ms");
	l->linger_ms = number_member(&limits, "linger_ms");
	l->memory = number_member(&limits, "memory");
	l->pids = number_member(&limits, "pids");
	l->cpu_percent = number_member(&limits, "cpu_percent");
	l->jobs = number_member(&limits, "jobs");
	l->jobs_kept = number_member(&limits, "jobs_kept");
	l->jobs_bytes = number_member(&limits, "jobs_bytes");
	l->terminals = number_member(&limits, "terminals");
	l->terminals_kept = number_member(&limits, "terminals_kept");
	check_all_taken(&limits, "limits");
	in->error = limits.error;
}

/* A clean path, or null. */
static void
path_member(struct reader *in, const char *name, char **ret_path)
{
	json_t *value = member(in, name);

	if (!value || json_is_null(value))
		return;
	*ret_path = text_value(in, name, value);
	if (*ret_path && !path_is_clean(*ret_path))
		(void)bad(in, name, "is not clean");
}

static void
policy_members(struct reader *in, struct policy *p)
{
	_cleanup_(freep) char *mode = text_member(in, "mode");

	if (mode && policy_mode_parse(mode, &p->mode) < 0)
		(void)bad(in, "mode", "has a value that is not known");
	p->mode_source = text_member(in, "mode_source");
	p->session = text_member(in, "session");
	if (p->session && !policy_session_is_valid(p->session))
		(void)bad(in, "session", "is no session name");
	p->git_guard = bool_member(in, "git_guard");
	p->tmp_writable = bool_member(in, "tmp_writable");
	p->nest = bool_member(in, "nest");
	p->require_full = bool_member(in, "require_full");
	p->require_limits = bool_member(in, "require_limits");
	p->net = (enum policy_net)word_value(in, "net", member(in, "net"),
					     net_names, 2);
	p->home = (enum policy_home)word_value(in, "home", member(in, "home"),
					       home_names, 2);
	path_member(in, "home_path", &p->home_path);
	strv_member(in, "hide_paths", true, &p->hide_paths);
	strv_member(in, "sockets", true, &p->sockets);
	strv_member(in, "name_sockets", true, &p->name_sockets);
	strv_member(in, "devices", true, &p->devices);
	strv_member(in, "env_hide", false, &p->env_hide);
	limits_member(in, &p->limits);
	p->landlock = bool_member(in, "landlock");
	path_member(in, "tmp_dir", &p->tmp_dir);
	roots_member(in, p);
	rules_member(in, p);
	check_all_taken(in, "policy");
}

int
policy_decode(const char *json, size_t len, struct policy **ret_policy,
	      struct errmsg *why)
{
	_cleanup_(policy_unrefp) struct policy *policy = NULL;
	_cleanup_(json_decrefp) json_t *object = NULL;
	struct reader in = { .why = why };
	json_error_t error;

	if (len > LIMIT_POLICY_JSON)
		return errmsg_set(why, -E2BIG, "policy: %zu bytes", len);
	object = json_loadb(json, len, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(object))
		return errmsg_set(why, -EINVAL, "policy: no JSON object: %s",
				  object ? "another value" : error.text);
	policy = calloc(1, sizeof(*policy));
	if (!policy)
		return errmsg_set(why, -ENOMEM, "out of memory");
	policy->refs = 1;
	if (rules_new(&policy->rules) < 0)
		return errmsg_set(why, -ENOMEM, "out of memory");
	in.object = object;
	policy_members(&in, policy);
	if (in.error < 0)
		return in.error;
	*ret_policy = take_ptr(&policy);
	return 0;
}
