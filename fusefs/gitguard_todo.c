/* SPDX-License-Identifier: MIT */

/*
 * What a rebase or cherry-pick under way is to do.  `git rebase --continue` on
 * the host would run the commands in its list, and `git merge-STRATEGY`, which
 * is a program of the work tree where the strategy's name has a slash; with
 * `index` for a strategy, strategy_opts would name one.
 *
 * A line of the list is read as git does (sequencer.c): after blanks the word
 * exec, or its letter, and then something that ends it.
 */

#include <string.h>

#include "fusefs/gitguard_priv.h"
#include "policy/gitconfig.h"

static bool
runs_command(const char *line, size_t len)
{
	size_t at = 0;

	while (at < len && (line[at] == ' ' || line[at] == '\t' ||
			    line[at] == '\r' || line[at] == '\0'))
		at++;
	if (len - at >= 4 && memcmp(line + at, "exec", 4) == 0)
		at += 4;
	else if (len - at >= 1 && line[at] == 'x')
		at++;
	else
		return false;
	return at == len || line[at] == ' ' || line[at] == '\t' ||
	       line[at] == '\r' || line[at] == '\0';
}

/* The length of the line at `data`, without its newline. */
static size_t
line_len(const char *data, size_t len)
{
	const char *end = memchr(data, '\n', len);

	return end ? (size_t)(end - data) : len;
}

static bool
has_line(const char *text, size_t text_len, const char *line, size_t len)
{
	while (text_len > 0) {
		size_t n = line_len(text, text_len);

		if (n == len && memcmp(text, line, n) == 0)
			return true;
		if (n == text_len)
			return false;
		text += n + 1;
		text_len -= n + 1;
	}
	return false;
}

bool
gg_todo_runs_more(const struct gg_bytes *before, const char *data, size_t len)
{
	while (len > 0) {
		size_t n = line_len(data, len);

		if (runs_command(data, n) &&
		    !has_line(before->data, before->len, data, n))
			return true;
		if (n == len)
			break;
		data += n + 1;
		len -= n + 1;
	}
	return false;
}

/* Those that run nothing; or the beginning of one, for it may go on. */
static bool
is_known_strategy(const char *name, size_t len)
{
	static const char *const known[] = { "ort", "recursive", "ours",
					     "subtree" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strncmp(known[i], name, len) == 0)
			return true;
	return len == 0;
}

static int
find_strategy(void *data, const char *key, const char *value)
{
	(void)data;
	return strcmp(key, "options.strategy") == 0 && value &&
	       !is_known_strategy(value, strlen(value));
}

bool
gg_strategy_is_git_s(enum gg_kind kind, const char *data, size_t len)
{
	struct gitconfig_text text = { data, len };

	if (kind == GG_KIND_OPTS)
		return gitconfig_walk(&text, find_strategy, NULL) == 0;
	if (len > 0 && data[len - 1] == '\n')
		len--;
	return is_known_strategy(data, len);
}
