/* SPDX-License-Identifier: MIT */

#include "policy/ignore.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"

/* ---- one line ---- */

/* Blanks at the end do not count, unless a backslash is before the last. */
static size_t
trimmed(const char *line, size_t len)
{
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\r') &&
	       !(len > 1 && line[len - 2] == '\\'))
		len--;
	return len;
}

static void
put_escaped(struct buf *out, const char *path)
{
	for (; *path; path++) {
		if (strchr("*?[\\!# ", *path))
			buf_puts(out, "\\");
		buf_put(out, path, 1);
	}
}

/* The pattern as it is to be read at the top. */
static int
add_line(struct strv *patterns, const char *path, const char *line, size_t len)
{
	_cleanup_(buf_fini) struct buf out = { 0 };
	const char *slash;

	len = trimmed(line, len);
	/* What is beyond the limits of rules is no pattern. */
	if (len > LIMIT_PATTERN || patterns->count >= LIMIT_RULES)
		return 0;
	if (len == 0 || *line == '#' || memchr(line, '\0', len))
		return 0;
	if (*line == '!') {
		buf_puts(&out, "!");
		line++;
		len--;
	}
	buf_puts(&out, "/");
	put_escaped(&out, path);
	if (*path)
		buf_puts(&out, "/");
	slash = memchr(line, '/', len);
	if (!slash || slash == line + len - 1)
		buf_puts(&out, "**/");
	else if (slash == line)
		line++, len--;
	buf_put(&out, line, len);
	buf_put(&out, "", 1);
	if (buf_error(&out) < 0)
		return -ENOMEM;
	return strv_add(patterns, (const char *)out.data);
}

int
ignore_parse(const char *path, const char *text, size_t len,
	     struct strv *ret_patterns)
{
	const char *end = text + len;
	int r = 0;

	while (r == 0 && text < end) {
		const char *line = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((line ? line : end) - text);

		r = add_line(ret_patterns, path, text, n);
		text += n + 1;
	}
	return r;
}

/* ---- a directory ---- */

static int
build(struct ignore *ignore, const char *path)
{
	char names[PATH_MAX];
	char *at = names, *name;
	struct rule_match match;
	int r = rules_new(&ignore->own);

	if (r < 0)
		return r;
	/* What cannot be a rule is none; what is too much likewise. */
	for (size_t i = 0; i < ignore->patterns.count; i++)
		(void)rules_add(ignore->own, RULE_HIDE,
				ignore->patterns.items[i], "gitignore", NULL);
	ignore->rules = ignore->own;
	ignore->state = rules_root(ignore->own);
	if (!ignore->state)
		return -ENOMEM;
	if (strlen(path) >= sizeof(names))
		return -ENAMETOOLONG;
	memcpy(names, path, strlen(path) + 1);
	while ((name = strsep(&at, "/"))) {
		if (!*name)
			continue;
		r = rules_step(ignore->own, ignore->state, name, true, &match,
			       &ignore->state);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
inherit(const struct ignore *parent, const char *path,
	struct ignore *ret_ignore)
{
	const char *slash = strrchr(path, '/');
	struct rule_match match;

	if (!parent)
		return 0;
	ret_ignore->above = parent->own ? parent : parent->above;
	ret_ignore->rules = parent->rules;
	if (!parent->rules)
		return 0;
	return rules_step(parent->rules, parent->state,
			  slash ? slash + 1 : path, true, &match,
			  &ret_ignore->state);
}

int
ignore_enter(const struct ignore *parent, int dirfd, const char *path,
	     struct ignore *ret_ignore)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(closep) int fd = -1;
	struct stat st;
	size_t len = 0;
	int r;

	*ret_ignore = (struct ignore){ .own = NULL };
	r = inherit(parent, path, ret_ignore);
	if (r < 0 ||
	    fstatat(dirfd, ".gitignore", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return r;
	fd = openat(dirfd, ".gitignore",
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fd_read_file(fd, LIMIT_CONFIG_BYTES, &text, &len) < 0)
		return 0;
	if (ret_ignore->above)
		r = strv_extend(&ret_ignore->patterns,
				&ret_ignore->above->patterns);
	if (r == 0)
		r = ignore_parse(path, text, len, &ret_ignore->patterns);
	if (r == 0)
		r = build(ret_ignore, path);
	if (r < 0)
		ignore_leave(ret_ignore);
	return r;
}

void
ignore_leave(struct ignore *ignore)
{
	rules_free(ignore->own);
	strv_fini(&ignore->patterns);
	*ignore = (struct ignore){ .own = NULL };
}

bool
ignore_has(const struct ignore *ignore, const char *name, bool is_dir)
{
	const struct rule_state *below;
	struct rule_match match = { 0 };

	return ignore->rules &&
	       rules_step(ignore->rules, ignore->state, name, is_dir, &match,
			  is_dir ? &below : NULL) == 0 &&
	       match.hide.text;
}
