/* SPDX-License-Identifier: MIT */

/*
 * The list of a rebase that is under way: `git rebase --continue` on the host
 * would run the commands in it.  A line is read as git does (sequencer.c): after
 * blanks the word exec, or its letter, and then something that ends it.
 */

#include <string.h>

#include "fusefs/gitguard_priv.h"

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
