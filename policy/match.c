/* SPDX-License-Identifier: MIT */

/*
 * Gitignore patterns, taken apart.  A pattern is a sequence of components; a
 * component matches one name of a path, and only "**" spans several.  This
 * file knows components and how a pattern splits into them; how far a pattern
 * has come on a path is the business of rules.c.
 *
 * A glob is matched with a single point of return (the last star): when a
 * later star is reached, an earlier one need never be reconsidered, so no
 * pattern can make the match exponential.
 */

#include <ctype.h>
#include <string.h>

#include "base/limits.h"
#include "policy/policy_priv.h"

static unsigned char
fold_byte(unsigned char byte, bool fold)
{
	return fold && byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte;
}

struct byte_class {
	const char *name;
	int (*is_in)(int);
};

static const struct byte_class classes[] = {
	{ "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank },
	{ "cntrl", iscntrl }, { "digit", isdigit }, { "graph", isgraph },
	{ "lower", islower }, { "print", isprint }, { "punct", ispunct },
	{ "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
};

/* `at` is behind "[:"; returns behind ":]", NULL when there is no such class */
static const char *
bracket_class(const char *at, unsigned char byte, bool *ret_in)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(*classes); i++) {
		size_t len = strlen(classes[i].name);

		if (strncmp(at, classes[i].name, len) == 0 && at[len] == ':' &&
		    at[len + 1] == ']') {
			*ret_in = byte < 128 && classes[i].is_in(byte);
			return at + len + 2;
		}
	}
	return NULL;
}

/* One end of a range, an escape resolved; NULL at the end of the text. */
static const char *
bracket_byte(const char *at, unsigned char *ret_byte)
{
	if (*at == '\\')
		at++;
	if (*at == '\0')
		return NULL;
	*ret_byte = (unsigned char)*at;
	return at + 1;
}

/* A single byte or a range; returns behind it, NULL when it is unclosed. */
static const char *
bracket_range(const char *at, unsigned char byte, bool fold, bool *ret_in)
{
	unsigned char first, last, flipped = byte;

	at = bracket_byte(at, &first);
	if (!at)
		return NULL;
	last = first;
	if (at[0] == '-' && at[1] != ']' && at[1] != '\0') {
		at = bracket_byte(at + 1, &last);
		if (!at)
			return NULL;
	}
	if (fold && isalpha(byte) && byte < 128)
		flipped = byte ^ 0x20;
	*ret_in = (byte >= first && byte <= last) ||
		  (flipped >= first && flipped <= last);
	return at;
}

/*
 * `at` is behind "[".  Sets *ret_in and returns behind the closing bracket,
 * NULL when the expression is malformed.
 */
static const char *
bracket(const char *at, unsigned char byte, bool fold, bool *ret_in)
{
	bool negated = *at == '!' || *at == '^', in = false, first = true;

	if (negated)
		at++;
	for (; first || *at != ']'; first = false) {
		bool here = false;

		if (*at == '\0')
			return NULL;
		if (at[0] == '[' && at[1] == ':')
			at = bracket_class(at + 2, byte, &here);
		else
			at = bracket_range(at, byte, fold, &here);
		if (!at)
			return NULL;
		in |= here;
	}
	*ret_in = in != negated;
	return at + 1;
}

/* Matches one byte; returns the rest of the glob, NULL for no match. */
static const char *
match_byte(const char *glob, unsigned char byte, bool fold)
{
	bool in = false;

	switch (*glob) {
	case '\0':
		return NULL;
	case '?':
		return glob + 1;
	case '[':
		glob = bracket(glob + 1, byte, fold, &in);
		return in ? glob : NULL;
	case '\\':
		glob++;
		break;
	default:
		break;
	}
	if (fold_byte((unsigned char)*glob, fold) != fold_byte(byte, fold))
		return NULL;
	return glob + 1;
}

bool
glob_match(const char *glob, const char *name, bool fold)
{
	const char *star = NULL, *retry = NULL;

	while (*name) {
		const char *next;

		if (*glob == '*') {
			while (*glob == '*')
				glob++;
			if (*glob == '\0')
				return true;
			star = glob;
			retry = name;
			continue;
		}
		next = match_byte(glob, (unsigned char)*name, fold);
		if (next) {
			glob = next;
			name++;
		} else if (star) {
			glob = star;
			name = ++retry;
		} else {
			return false;
		}
	}
	while (*glob == '*')
		glob++;
	return *glob == '\0';
}

const char *
glob_next(const char *glob, int *ret_byte)
{
	bool in;

	*ret_byte = -1;
	switch (*glob) {
	case '\0':
		return NULL;
	case '*':
	case '?':
		return glob + 1;
	case '[':
		return bracket(glob + 1, 'x', false, &in);
	case '\\':
		glob++;
		break;
	default:
		break;
	}
	*ret_byte = (unsigned char)*glob;
	return glob + 1;
}

bool
glob_is_plain(const char *glob)
{
	return glob[strcspn(glob, "*?[\\")] == '\0';
}

int
glob_check(const char *glob)
{
	/* Nothing else can be malformed. */
	if (glob[strcspn(glob, "[\\")] == '\0')
		return 0;
	while (*glob) {
		int byte;

		glob = glob_next(glob, &byte);
		if (!glob || byte == 0)
			return -EINVAL;
	}
	return 0;
}

/*
 * Components that say nothing are dropped, so that equal meanings are equal: a
 * "**" at the front lets the pattern float, of several only one stays, and at
 * the end it becomes "**" and "*", all that is inside.
 */
static void
normalise(struct pattern *p)
{
	const char **parts = p->parts.items;
	bool is_deep = false, was_deep = true;
	size_t n = 0;

	for (size_t i = 0; i < p->parts.count; i++) {
		is_deep = strcmp(parts[i], "**") == 0;
		p->floating |= is_deep && n == 0;
		if (is_deep && was_deep)
			continue;
		was_deep = is_deep;
		parts[n++] = parts[i];
	}
	if (is_deep)
		parts[n++] = "*";
	p->parts.count = n;
}

/* Ends each component of `at` with a NUL and checks it; adds them to `parts`. */
static int
take_parts(char *at, const char *text, struct pattern_parts *parts,
	   struct errmsg *why)
{
	for (char *end; at; at = end) {
		end = strchr(at, '/');
		if (end)
			*end++ = '\0';
		if (parts)
			parts->items[parts->count++] = at;
		if (*at == '\0' || strcmp(at, ".") == 0 ||
		    strcmp(at, "..") == 0)
			return errmsg_set(why, -EINVAL,
					  "pattern '%s': a component is empty, "
					  "'.' or '..'",
					  text);
		if (glob_check(at) < 0)
			return errmsg_set(why, -EINVAL,
					  "pattern '%s': '%s' has an unclosed "
					  "'[' or ends in a backslash",
					  text, at);
	}
	return 0;
}

/* Takes `len` bytes apart, in one block of memory. */
static int
split(const char *text, size_t len, struct pattern *p, struct errmsg *why)
{
	size_t most = 2; /* "*" may follow the last */
	char *at;

	for (size_t i = 0; i < len; i++)
		most += text[i] == '/';
	p->parts.items = malloc(most * sizeof(*p->parts.items) + len + 1);
	if (!p->parts.items)
		return errmsg_set(why, -ENOMEM, "out of memory");
	at = (char *)(p->parts.items + most);
	memcpy(at, text, len);
	at[len] = '\0';
	return take_parts(at, text, &p->parts, why);
}

/* What is around the components: *ret_at and *ret_len are those. */
static int
parse_frame(const char *text, struct pattern *p, const char **ret_at,
	    size_t *ret_len, struct errmsg *why)
{
	const char *at = text;
	size_t len = strlen(text);

	if (len > LIMIT_PATTERN)
		return errmsg_set(why, -E2BIG,
				  "pattern of %zu bytes, at most %d", len,
				  LIMIT_PATTERN);
	if (*at == '#')
		return errmsg_set(why, -EINVAL,
				  "pattern '%s' is a comment; write '\\#'",
				  text);
	if (*at == '!') {
		p->negated = true;
		at++;
	}
	if (*at == '/') {
		p->anchored = true;
		at++;
	}
	len = strlen(at);
	if (len > 0 && at[len - 1] == '/') {
		p->dir_only = true;
		len--;
	}
	if (len == 0)
		return errmsg_set(why, -EINVAL, "pattern '%s' names nothing",
				  text);
	*ret_at = at;
	*ret_len = len;
	return 0;
}

static int
parse(const char *text, struct pattern *p, struct errmsg *why)
{
	const char *at;
	size_t len;
	int r = parse_frame(text, p, &at, &len, why);

	if (r == 0)
		r = split(at, len, p, why);
	if (r < 0)
		return r;
	p->floating = !p->anchored && p->parts.count == 1;
	normalise(p);
	return 0;
}

int
pattern_check(const char *text, struct errmsg *why)
{
	char copy[LIMIT_PATTERN + 1];
	struct pattern p = { 0 };
	const char *at;
	size_t len;
	int r = parse_frame(text, &p, &at, &len, why);

	if (r < 0)
		return r;
	memcpy(copy, at, len);
	copy[len] = '\0';
	return take_parts(copy, at, NULL, why);
}

int
pattern_parse(const char *text, struct pattern *ret_pattern, struct errmsg *why)
{
	struct pattern p = { 0 };
	int r = parse(text, &p, why);

	if (r < 0) {
		pattern_fini(&p);
		return r;
	}
	*ret_pattern = p;
	return 0;
}

void
pattern_fini(struct pattern *pattern)
{
	free((void *)pattern->parts.items);
	*pattern = (struct pattern){ 0 };
}
