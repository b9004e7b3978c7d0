/* SPDX-License-Identifier: MIT */

/*
 * The parser follows git's own (config.c) state by state, since a difference
 * between the two is a hole: `\r\n` is a newline, end of file is a newline, a
 * byte-order mark is skipped only when whole, keys may follow `]` on the same
 * line, `[a.b]` is lower-cased while `[a "b"]` is not, a newline after a
 * backslash continues a value, comments begin anywhere outside quotes.  Two
 * things are stricter than git: a NUL byte is refused (git would see a
 * shortened key), and so is a key before the first section.
 */

#include "policy/gitconfig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/strv.h"

struct parser {
	const unsigned char *at, *end;
	bool eof;	  /* the last newline was the end of the file */
	struct buf key;	  /* "section[.subsection]." then the variable */
	size_t base;	  /* length of the part up to the last dot */
	struct buf value; /* of the entry at hand */
	bool has_value;
	int (*entry)(void *data, const char *key, const char *value);
	void *data;
};

static bool
is_space(int c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int
to_lower(int c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool
is_alpha(int c)
{
	c = to_lower(c);
	return c >= 'a' && c <= 'z';
}

static bool
is_key_char(int c)
{
	return is_alpha(c) || (c >= '0' && c <= '9') || c == '-';
}

static int
next_char(struct parser *p)
{
	if (p->at == p->end) {
		p->eof = true;
		return '\n';
	}
	if (*p->at == '\r' && p->at + 1 < p->end && p->at[1] == '\n')
		p->at++;
	return *p->at++;
}

static void
put_char(struct buf *b, int c)
{
	char byte = (char)c;

	buf_put(b, &byte, 1);
}

/* After `[base` and a space: `"subsection"]`. */
static int
parse_subsection(struct parser *p, int c)
{
	while (is_space(c)) {
		if (c == '\n')
			return -EINVAL;
		c = next_char(p);
	}
	if (c != '"')
		return -EINVAL;

	put_char(&p->key, '.');
	for (;;) {
		c = next_char(p);
		if (c == '"')
			break;
		if (c == '\\')
			c = next_char(p);
		if (c == '\n')
			return -EINVAL;
		put_char(&p->key, c);
	}
	return next_char(p) == ']' ? 0 : -EINVAL;
}

static int
parse_section(struct parser *p)
{
	p->key.len = 0;
	for (;;) {
		int c = next_char(p), r;

		if (p->eof)
			return -EINVAL;
		if (c == ']')
			break;
		if (is_space(c)) {
			r = parse_subsection(p, c);
			if (r < 0)
				return r;
			break;
		}
		if (!is_key_char(c) && c != '.')
			return -EINVAL;
		put_char(&p->key, to_lower(c));
	}
	if (p->key.len == 0)
		return -EINVAL;
	put_char(&p->key, '.');
	p->base = p->key.len;
	return 0;
}

/* What follows a backslash in a value; 0 for a continued line, or -EINVAL. */
static int
unescape(int c)
{
	switch (c) {
	case '\n':
		return 0;
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'n':
		return '\n';
	case '\\':
	case '"':
		return c;
	default:
		return -EINVAL;
	}
}

static int
put_value_char(struct parser *p, int c)
{
	if (c == '\\') {
		c = unescape(next_char(p));
		if (c <= 0)
			return c;
	}
	put_char(&p->value, c);
	return 0;
}

static int
parse_value(struct parser *p)
{
	bool quote = false, comment = false;
	size_t spaces = 0;

	p->value.len = 0;
	for (;;) {
		int c = next_char(p);

		if (c == '\n')
			return quote ? -EINVAL : 0;
		if (comment)
			continue;
		if (is_space(c) && !quote) {
			spaces += p->value.len > 0;
			continue;
		}
		if (!quote && (c == ';' || c == '#')) {
			comment = true;
			continue;
		}
		for (; spaces > 0; spaces--)
			put_char(&p->value, ' ');
		if (c == '"') {
			quote = !quote;
			continue;
		}
		if (put_value_char(p, c) < 0)
			return -EINVAL;
	}
}

/* The first character of the variable's name has been read. */
static int
parse_entry(struct parser *p, int c)
{
	int r;

	if (p->base == 0)
		return -EINVAL;
	p->key.len = p->base;
	p->has_value = false;
	while (is_key_char(c)) {
		put_char(&p->key, to_lower(c));
		c = next_char(p);
	}
	while (c == ' ' || c == '\t')
		c = next_char(p);
	if (c != '\n') {
		if (c != '=')
			return -EINVAL;
		p->has_value = true;
		r = parse_value(p);
		if (r < 0)
			return r;
	}

	put_char(&p->key, '\0');
	put_char(&p->value, '\0');
	if (buf_error(&p->key) < 0 || buf_error(&p->value) < 0)
		return -ENOMEM;
	return p->entry(p->data, (const char *)p->key.data,
			p->has_value ? (const char *)p->value.data : NULL);
}

static int
parse(struct parser *p)
{
	static const unsigned char bom[] = { 0xef, 0xbb, 0xbf };
	bool comment = false;
	int r = 0;

	if (p->at < p->end && *p->at == bom[0]) {
		if ((size_t)(p->end - p->at) < sizeof(bom) ||
		    memcmp(p->at, bom, sizeof(bom)) != 0)
			return -EINVAL;
		p->at += sizeof(bom);
	}

	while (r == 0) {
		int c = next_char(p);

		if (c == '\n') {
			if (p->eof)
				return 0;
			comment = false;
		} else if (comment || is_space(c)) {
			continue;
		} else if (c == '#' || c == ';') {
			comment = true;
		} else if (c == '[') {
			r = parse_section(p);
		} else if (is_alpha(c)) {
			r = parse_entry(p, c);
		} else {
			return -EINVAL;
		}
	}
	return r;
}

int
gitconfig_walk(const struct gitconfig_text *text,
	       int (*entry)(void *data, const char *key, const char *value),
	       void *data)
{
	struct parser p = { .at = (const unsigned char *)text->bytes,
			    .entry = entry,
			    .data = data };
	int r;

	if (text->len == 0)
		return 0;
	if (memchr(text->bytes, '\0', text->len))
		return -EINVAL;
	p.end = p.at + text->len;
	r = parse(&p);
	buf_fini(&p.key);
	buf_fini(&p.value);
	return r;
}

/* ---- the closed list ---- */

static bool
any_value(const char *value)
{
	(void)value;
	return true;
}

/* It may end up as an argument, so it must not look like an option. */
static bool
no_option(const char *value)
{
	return value && value[0] != '-';
}

/*
 * An address that git itself speaks to.  `<x>::<y>`, and `<x>://` for an x
 * that git does not know, run the program git-remote-<x>.
 */
static bool
plain_url(const char *value)
{
	static const char *const schemes[] = { "http", "https",	  "ssh",
					       "git",  "git+ssh", "ssh+git",
					       "file", "ftp",	  "ftps" };
	const char *sep;

	if (!no_option(value))
		return false;
	for (const char *c = value; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	}
	if (strstr(value, "::") || strstr(value, "://-"))
		return false;

	sep = strstr(value, "://");
	if (!sep)
		return true;
	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
		if (strncmp(value, schemes[i], (size_t)(sep - value)) == 0 &&
		    schemes[i][sep - value] == '\0')
			return true;
	}
	return false;
}

enum sub {
	SUB_NONE, /* section.variable */
	SUB_ONE,  /* section.<name>.variable */
	SUB_ANY,
};

/* Variables in lower case; "*" is every one. */
static const struct safe_key {
	const char *section, *variable;
	enum sub sub;
	bool (*value_ok)(const char *value);
} safe_keys[] = {
	/* git treats a remote that is no name as an address. */
	{ "branch", "remote", SUB_ONE, plain_url },
	{ "branch", "merge", SUB_ONE, no_option },
	{ "branch", "rebase", SUB_ONE, any_value },
	{ "branch", "pushremote", SUB_ONE, plain_url },
	{ "branch", "description", SUB_ONE, any_value },
	{ "remote", "url", SUB_ONE, plain_url },
	{ "remote", "pushurl", SUB_ONE, plain_url },
	{ "remote", "fetch", SUB_ONE, no_option },
	{ "remote", "push", SUB_ONE, no_option },
	{ "remote", "tagopt", SUB_ONE, any_value },
	{ "remote", "prune", SUB_ONE, any_value },
	{ "remote", "mirror", SUB_ONE, any_value },
	{ "user", "*", SUB_NONE, any_value },
	{ "core", "repositoryformatversion", SUB_NONE, any_value },
	{ "core", "filemode", SUB_NONE, any_value },
	{ "core", "bare", SUB_NONE, any_value },
	{ "core", "logallrefupdates", SUB_NONE, any_value },
	{ "core", "ignorecase", SUB_NONE, any_value },
	{ "core", "precomposeunicode", SUB_NONE, any_value },
	{ "core", "autocrlf", SUB_NONE, any_value },
	{ "core", "eol", SUB_NONE, any_value },
	{ "core", "safecrlf", SUB_NONE, any_value },
	{ "core", "symlinks", SUB_NONE, any_value },
	{ "core", "sparsecheckout", SUB_NONE, any_value },
	{ "core", "sparsecheckoutcone", SUB_NONE, any_value },
	{ "submodule", "url", SUB_ONE, plain_url },
	{ "submodule", "active", SUB_ONE, any_value },
	{ "submodule", "branch", SUB_ONE, no_option },
	{ "pull", "rebase", SUB_NONE, any_value },
	{ "pull", "ff", SUB_NONE, any_value },
	{ "push", "default", SUB_NONE, any_value },
	{ "push", "autosetupremote", SUB_NONE, any_value },
	{ "push", "followtags", SUB_NONE, any_value },
	{ "rebase", "autostash", SUB_NONE, any_value },
	{ "rebase", "autosquash", SUB_NONE, any_value },
	{ "merge", "ff", SUB_NONE, any_value },
	{ "merge", "conflictstyle", SUB_NONE, any_value },
	{ "init", "defaultbranch", SUB_NONE, any_value },
	{ "color", "*", SUB_ANY, any_value },
	{ "extensions", "worktreeconfig", SUB_NONE, any_value },
	{ "extensions", "refstorage", SUB_NONE, any_value },
	{ "gc", "auto", SUB_NONE, any_value },
	{ "index", "*", SUB_NONE, any_value },
	{ "feature", "*", SUB_NONE, any_value },
};

bool
gitconfig_is_safe(const char *key, const char *value,
		  const struct gitconfig_place *place)
{
	const char *first = strchr(key, '.'), *last = strrchr(key, '.');
	size_t section_len = first ? (size_t)(first - key) : 0;
	bool has_sub = first != last;

	if (!first)
		return false;
	if (place && value && strcmp(key, "core.worktree") == 0)
		return place->worktree_ok(place->data, value);
	if (strcmp(key, "extensions.objectformat") == 0)
		return place && place->format_ok;
	for (size_t i = 0; i < sizeof(safe_keys) / sizeof(*safe_keys); i++) {
		const struct safe_key *s = &safe_keys[i];

		if (strncmp(s->section, key, section_len) != 0 ||
		    s->section[section_len] != '\0')
			continue;
		if (s->sub != SUB_ANY && has_sub != (s->sub == SUB_ONE))
			continue;
		if (strcmp(s->variable, "*") != 0 &&
		    strcmp(s->variable, last + 1) != 0)
			continue;
		return s->value_ok(value);
	}
	return false;
}

/* ---- the comparison ---- */

/* Entries that are not safe, in order, each "key\nvalue" ("key": no value). */
struct unsafe {
	struct strv entries;
	const struct gitconfig_place *place;
};

static int
collect(void *data, const char *key, const char *value)
{
	struct unsafe *unsafe = data;

	if (gitconfig_is_safe(key, value, unsafe->place))
		return 0;
	/* A key holds no newline: git refuses one inside a subsection. */
	return strv_addf(&unsafe->entries, "%s%s%s", key, value ? "\n" : "",
			 value ? value : "");
}

static void
unsafe_fini(struct unsafe *unsafe)
{
	strv_fini(&unsafe->entries);
}

static const char *
entry_at(const struct unsafe *unsafe, size_t i)
{
	return i < unsafe->entries.count ? unsafe->entries.items[i] : NULL;
}

static int
refuse(const char *entry, char *ret_key, size_t size)
{
	snprintf(ret_key, size, "%.*s", (int)strcspn(entry, "\n"), entry);
	return -EACCES;
}

int
gitconfig_judge(const struct gitconfig_text *old_text,
		const struct gitconfig_text *new_text,
		const struct gitconfig_place *place, char *ret_key, size_t size)
{
	_cleanup_(unsafe_fini) struct unsafe before = { .place = place };
	_cleanup_(unsafe_fini) struct unsafe after = { .place = place };
	int r = 0;

	if (old_text)
		r = gitconfig_walk(old_text, collect, &before);
	if (r == 0)
		r = gitconfig_walk(new_text, collect, &after);
	if (r == -EINVAL)
		return refuse("syntax", ret_key, size);
	if (r < 0)
		return r;

	/* What is missing is named when there are fewer, else what is new. */
	for (size_t i = 0; i < before.entries.count || i < after.entries.count;
	     i++) {
		const char *was = entry_at(&before, i);
		const char *is = entry_at(&after, i);
		bool fewer = after.entries.count < before.entries.count;

		if (was && is && strcmp(was, is) == 0)
			continue;
		if (is && (!was || !fewer))
			return refuse(is, ret_key, size);
		if (was)
			return refuse(was, ret_key, size);
	}
	return 0;
}
