/* SPDX-License-Identifier: MIT */

/*
 * The configuration file, and `.palerc`, which is the same without sections.
 *
 * A section is a policy_request, as if its lines were options of a command
 * line; resolve.c lays them over each other.  Nothing is ignored: a key or a
 * value that is not known is an error with its place and the name that was
 * probably meant, because a line with a typing error would otherwise leave a
 * door open that its author believes shut.
 *
 * inih cuts section names at 49 bytes and does not tell of lines, so the
 * reader that feeds it keeps count of the lines and takes the section names
 * itself, untouched.
 */

#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/units.h"
#include "policy/policy_priv.h"

#define LINE_MAX_BYTES 8192

struct parser {
	const char *at, *end;
	const char *name;
	enum config_syntax syntax;
	unsigned int line;
	struct config *config;
	struct config_section *section; /* the last of config->sections */
	struct errmsg *why;
	int error;
};

__attribute__((format(printf, 2, 3))) static int
fail(struct parser *p, const char *format, ...)
{
	char text[ERRMSG_MAX];
	va_list args;

	if (p->error < 0)
		return p->error;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return p->error = errmsg_set(p->why, -EINVAL, "%s:%u: %s", p->name,
				     p->line, text);
}

static int
fail_memory(struct parser *p)
{
	if (p->error == 0)
		p->error = errmsg_set(p->why, -ENOMEM, "out of memory");
	return p->error;
}

/* Levenshtein distance of short words; long ones are never near. */
static size_t
distance(const char *a, const char *b)
{
	size_t row[65], n = strlen(b);

	if (strlen(a) > 64 || n > 64)
		return SIZE_MAX;
	for (size_t j = 0; j <= n; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			size_t best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			row[j] = best;
		}
	}
	return row[n];
}

const char *
config_nearest(const char *text, const char *const *names)
{
	const char *nearest = NULL;
	size_t best = strlen(text) / 2 + 2;

	for (; *names; names++) {
		size_t d = distance(text, *names);

		if (d < best) {
			best = d;
			nearest = *names;
		}
	}
	return nearest;
}

/* "unknown X 'y'; did you mean 'z'?" */
static int
fail_unknown(struct parser *p, const char *what, const char *text,
	     const char *const *names)
{
	const char *nearest = config_nearest(text, names);

	if (nearest)
		return fail(p, "unknown %s '%s'; did you mean '%s'?", what,
			    text, nearest);
	return fail(p, "unknown %s '%s'", what, text);
}

/* ---- keys: one row each ---- */

enum value_kind {
	VALUE_WORD,   /* one of `words`, kept as text */
	VALUE_NAME,   /* any text, kept */
	VALUE_SWITCH, /* yes or no, an int of -1, 0, 1 */
	VALUE_PATTERN,
	VALUE_PATH,
	VALUE_LIST, /* any text, appended */
	VALUE_DURATION,
	VALUE_SIZE,
	VALUE_NUMBER,
	VALUE_REQUIRE,
};

static const char *const mode_words[] = { "read-only", "workspace-write",
					  "danger-full-access", NULL };
static const char *const net_words[] = { "host", "none", NULL };
static const char *const home_words[] = { "ro", "private", NULL };
static const char *const switch_words[] = { "yes", "no", NULL };
static const char *const require_words[] = { "full", "limits", NULL };

struct key {
	const char *name;
	enum value_kind kind;
	size_t offset; /* of the field in struct policy_request */
	const char *const *words;
};

#define FIELD(name) offsetof(struct policy_request, name)

static const struct key keys[] = {
	{ "mode", VALUE_WORD, FIELD(mode), mode_words },
	{ "preset", VALUE_NAME, FIELD(preset), NULL },
	{ "net", VALUE_WORD, FIELD(net), net_words },
	{ "home", VALUE_WORD, FIELD(home), home_words },
	{ "tmp", VALUE_SWITCH, FIELD(tmp), switch_words },
	{ "nest", VALUE_SWITCH, FIELD(nest), switch_words },
	{ "protect", VALUE_PATTERN, FIELD(protect), NULL },
	{ "hide", VALUE_PATTERN, FIELD(hide), NULL },
	{ "allow", VALUE_PATTERN, FIELD(allow), NULL },
	{ "rw", VALUE_PATH, FIELD(rw), NULL },
	{ "hide-path", VALUE_PATH, FIELD(hide_paths), NULL },
	{ "socket", VALUE_LIST, FIELD(sockets), NULL },
	{ "dev", VALUE_PATH, FIELD(devices), NULL },
	{ "env-hide", VALUE_LIST, FIELD(env_hide), NULL },
	{ "timeout", VALUE_DURATION, FIELD(limits.timeout_ms), NULL },
	{ "linger", VALUE_DURATION, FIELD(limits.linger_ms), NULL },
	{ "memory", VALUE_SIZE, FIELD(limits.memory), NULL },
	{ "pids", VALUE_NUMBER, FIELD(limits.pids), NULL },
	{ "cpu", VALUE_NUMBER, FIELD(limits.cpu_percent), NULL },
	{ "jobs", VALUE_NUMBER, FIELD(limits.jobs), NULL },
	{ "jobs-kept", VALUE_NUMBER, FIELD(limits.jobs_kept), NULL },
	{ "jobs-bytes", VALUE_SIZE, FIELD(limits.jobs_bytes), NULL },
	{ "terminals", VALUE_NUMBER, FIELD(limits.terminals), NULL },
	{ "terminals-kept", VALUE_NUMBER, FIELD(limits.terminals_kept), NULL },
	{ "require", VALUE_REQUIRE, 0, require_words },
};

#define N_KEYS (sizeof(keys) / sizeof(*keys))

/* Whether a .palerc may have it: only what tightens. */
static bool
is_rc_key(const struct key *key)
{
	return key->offset == FIELD(protect) || key->offset == FIELD(hide);
}

static const struct key *
key_find(struct parser *p, const char *name)
{
	const char *names[N_KEYS + 1] = { NULL };
	size_t n = 0;

	for (size_t i = 0; i < N_KEYS; i++) {
		if (p->syntax == CONFIG_SYNTAX_RC && !is_rc_key(&keys[i]))
			continue;
		if (strcmp(keys[i].name, name) == 0)
			return &keys[i];
		names[n++] = keys[i].name;
	}
	if (p->syntax == CONFIG_SYNTAX_RC)
		(void)fail(p,
			   "'%s': this file may only tighten: 'protect' "
			   "and 'hide'",
			   name);
	else
		(void)fail_unknown(p, "key", name, names);
	return NULL;
}

static bool
is_word(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(text, *words) == 0)
			return true;
	return false;
}

static int
set_text(struct parser *p, const char **field, const char *value)
{
	if (*field)
		return fail(p, "this key was given before in this section");
	*field = strdup(value);
	return *field ? 0 : fail_memory(p);
}

static int
set_switch(struct parser *p, int *field, const char *value)
{
	if (*field >= 0)
		return fail(p, "this key was given before in this section");
	*field = strcmp(value, "yes") == 0;
	return 0;
}

static int
set_require(struct policy_request *request, const char *value)
{
	if (strcmp(value, "full") == 0)
		request->require_full = true;
	else
		request->require_limits = true;
	return 0;
}

static int
set_amount(struct parser *p, const struct key *key, uint64_t *field,
	   const char *value)
{
	static const char *const examples[] = {
		[VALUE_DURATION] = "a duration such as 90s or 5m",
		[VALUE_SIZE] = "a size such as 512M",
		[VALUE_NUMBER] = "a number",
	};
	int r = -EINVAL;

	if (key->kind == VALUE_DURATION)
		r = units_duration_ms(value, field);
	else if (key->kind == VALUE_SIZE)
		r = units_size(value, field);
	else
		r = units_number(value, field);
	if (r < 0)
		return fail(p, "'%s' is not %s", value, examples[key->kind]);
	return 0;
}

static int
set_item(struct parser *p, const struct key *key, struct strv *list,
	 const char *value)
{
	struct errmsg why;

	if (list->count >= LIMIT_RULES)
		return fail(p, "more than %d values", LIMIT_RULES);
	if (key->kind == VALUE_PATH && value[0] != '/' &&
	    strncmp(value, "~/", 2) != 0)
		return fail(p, "'%s' must begin with '/' or '~/'", value);
	if (key->kind == VALUE_PATTERN &&
	    !(key->offset == FIELD(protect) && strcmp(value, "none") == 0)) {
		if (pattern_check(value, &why) < 0)
			return fail(p, "%s", why.text);
	} else if (key->kind == VALUE_PATTERN &&
		   p->syntax == CONFIG_SYNTAX_RC) {
		return fail(p, "'protect = none' would widen; this file may "
			       "only tighten");
	}
	return strv_add(list, value) < 0 ? fail_memory(p) : 0;
}

static int
set_value(struct parser *p, const struct key *key, const char *value)
{
	struct policy_request *request = &p->section->request;
	void *field = (char *)request + key->offset;

	if (value[0] == '\0')
		return fail(p, "'%s' has no value", key->name);
	if (key->words && !is_word(value, key->words))
		return fail_unknown(p, key->name, value, key->words);
	switch (key->kind) {
	case VALUE_WORD:
	case VALUE_NAME:
		return set_text(p, field, value);
	case VALUE_SWITCH:
		return set_switch(p, field, value);
	case VALUE_PATTERN:
	case VALUE_PATH:
	case VALUE_LIST:
		return set_item(p, key, field, value);
	case VALUE_DURATION:
	case VALUE_SIZE:
	case VALUE_NUMBER:
		return set_amount(p, key, field, value);
	case VALUE_REQUIRE:
		return set_require(request, value);
	}
	return 0;
}

/* ---- sections ---- */

static int
section_add(struct parser *p, enum config_kind kind, const char *name)
{
	struct config *config = p->config;
	struct config_section *sections;

	if (config_find(config, kind, name))
		return fail(p, "this section was given before");
	if (config->count >= LIMIT_CONFIG_PARTS)
		return fail(p, "more than %d sections", LIMIT_CONFIG_PARTS);
	sections = realloc(config->sections,
			   (config->count + 1) * sizeof(*sections));
	if (!sections)
		return fail_memory(p);
	config->sections = sections;
	p->section = &sections[config->count];
	*p->section = (struct config_section){
		.kind = kind,
		.name = strdup(name),
		.request = policy_request_none(),
	};
	if (!p->section->name)
		return fail_memory(p);
	config->count++;
	return 0;
}

static int
section_preset(struct parser *p, const char *name)
{
	if (strcmp(name, "custom") == 0)
		return fail(p, "a preset cannot be named 'custom': that is "
			       "the word for no preset");
	if (p->syntax != CONFIG_SYNTAX_BUILTIN && preset_is_builtin(name))
		return fail(p, "preset '%s' is built in; choose another name",
			    name);
	if (!policy_session_is_valid(name))
		return fail(p, "'%s' is no name for a preset", name);
	return section_add(p, CONFIG_PRESET, name);
}

static int
section_workspace(struct parser *p, const char *path)
{
	if (!path_is_clean(path))
		return fail(p,
			    "workspace '%s' must be an absolute path "
			    "without '.', '..' and a slash at the end",
			    path);
	return section_add(p, CONFIG_WORKSPACE, path);
}

/* `text` is what stands between the brackets. */
static int
section_begin(struct parser *p, char *text)
{
	static const char *const names[] = { "default", "preset", "workspace",
					     NULL };
	char *name = text + strcspn(text, " \t");

	if (p->syntax == CONFIG_SYNTAX_RC)
		return fail(p, "this file has no sections");
	if (*name)
		*name++ = '\0';
	name += strspn(name, " \t");
	if (strcmp(text, "default") == 0 && *name == '\0')
		return section_add(p, CONFIG_DEFAULT, "");
	if (strcmp(text, "preset") == 0)
		return section_preset(p, name);
	if (strcmp(text, "workspace") == 0)
		return section_workspace(p, name);
	return fail_unknown(p, "section", text, names);
}

/* Takes the section name from a raw line, if it is one. */
static int
look_for_section(struct parser *p, const char *line, size_t len)
{
	_cleanup_(freep) char *copy = NULL;
	char *text, *end;

	while (len > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	if (len == 0 || *line != '[')
		return 0;
	text = copy = strndup(line, len);
	if (!copy)
		return fail_memory(p);
	end = strrchr(text, ']');
	if (!end || end[1 + strspn(end + 1, " \t\r\n")] != '\0')
		return fail(p, "a section is '[name]' and nothing more");
	*end = '\0';
	return section_begin(p, text + 1);
}

/* ini_reader: one line, with its newline. */
static char *
read_line(char *buf, int size, void *stream)
{
	struct parser *p = stream;
	size_t left = (size_t)(p->end - p->at), len;
	const char *newline = memchr(p->at, '\n', left);

	if (left == 0 || p->error < 0)
		return NULL;
	len = newline ? (size_t)(newline - p->at) + 1 : left;
	p->line++;
	if (len + 1 > (size_t)size || memchr(p->at, '\0', len)) {
		(void)fail(p, "the line is too long or has a NUL byte");
		return NULL;
	}
	if (p->line == 1 && len >= 3 && memcmp(p->at, "\xEF\xBB\xBF", 3) == 0) {
		p->at += 3;
		len -= 3;
	}
	if (look_for_section(p, p->at, len) < 0)
		return NULL;
	memcpy(buf, p->at, len);
	buf[len] = '\0';
	p->at += len;
	return buf;
}

/* ini_handler: 1 is success. */
static int
take_value(void *user, const char *section, const char *name, const char *value)
{
	struct parser *p = user;
	const struct key *key;

	(void)section;
	if (p->error < 0)
		return 0;
	if (!p->section) {
		(void)fail(p, "'%s' stands before any section", name);
		return 0;
	}
	key = key_find(p, name);
	return key && set_value(p, key, value) == 0;
}

static int
parse(struct parser *p)
{
	int r;

	if (p->syntax == CONFIG_SYNTAX_RC && section_add(p, CONFIG_RC, "") < 0)
		return p->error;
	/* Always the same values, so that threads cannot disagree. */
	ini_use_stack = true;
	ini_max_line = LINE_MAX_BYTES;
	r = ini_parse_stream(read_line, p, take_value, p);
	if (p->error < 0)
		return p->error;
	if (r == -2)
		return fail_memory(p);
	if (r > 0) {
		p->line = (unsigned int)r;
		return fail(p, "expected 'key = value'");
	}
	return 0;
}

int
config_parse(const char *bytes, size_t len, const char *name,
	     enum config_syntax syntax, struct config *ret_config,
	     struct errmsg *why)
{
	struct config config = { 0 };
	struct parser p = {
		.at = bytes,
		.end = bytes + len,
		.name = name,
		.syntax = syntax,
		.config = &config,
		.why = why,
	};
	int r;

	if (len > LIMIT_CONFIG_BYTES)
		return errmsg_set(why, -E2BIG, "%s: larger than %u bytes", name,
				  LIMIT_CONFIG_BYTES);
	r = parse(&p);
	if (r < 0) {
		config_fini(&config);
		return r;
	}
	*ret_config = config;
	return 0;
}

static void
free_text(const char *text)
{
	free((void *)(uintptr_t)text);
}

void
config_fini(struct config *config)
{
	for (size_t i = 0; i < config->count; i++) {
		struct config_section *s = &config->sections[i];

		free(s->name);
		free_text(s->request.mode);
		free_text(s->request.preset);
		free_text(s->request.net);
		free_text(s->request.home);
		strv_fini(&s->request.rw);
		strv_fini(&s->request.hide);
		strv_fini(&s->request.protect);
		strv_fini(&s->request.allow);
		strv_fini(&s->request.hide_paths);
		strv_fini(&s->request.sockets);
		strv_fini(&s->request.devices);
		strv_fini(&s->request.env_hide);
	}
	free(config->sections);
	*config = (struct config){ 0 };
}

const struct config_section *
config_find(const struct config *config, enum config_kind kind,
	    const char *name)
{
	for (size_t i = 0; i < config->count; i++)
		if (config->sections[i].kind == kind &&
		    strcmp(config->sections[i].name, name) == 0)
			return &config->sections[i];
	return NULL;
}
