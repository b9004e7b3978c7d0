/* SPDX-License-Identifier: MIT */

/*
 * Files of the workspace that the host's own git configuration names: hooks at
 * core.hooksPath, files that it includes, attributes.  The configuration is
 * guarded, so nobody inside can let it name another file; but what lies at a
 * named place in the workspace would be written freely and then be run, or
 * obeyed, by the host's next git.  Each such place becomes a protect rule, and
 * so does each symlink on the way to it.
 *
 * An include counts whatever its condition says, since the condition may hold
 * tomorrow.  No git is run; what git could not read either is left out.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "policy/gitconfig.h"
#include "policy/policy_priv.h"

#define SOURCE	  "git-config"
#define FILES_MAX 64
#define PATHS_MAX 256
#define LINKS_MAX 40

struct search {
	const struct policy *policy;
	struct rules *rules;
	struct errmsg *why;
	const char *top; /* where the work tree begins */
	bool everywhere; /* the configuration is that of every repository */
	struct strv files;
	const char *file; /* the one at hand */
	struct strv patterns;
};

static void
search_fini(struct search *s)
{
	strv_fini(&s->files);
	strv_fini(&s->patterns);
}

static int
add_pattern(struct search *s, const char *pattern)
{
	if (strv_has(&s->patterns, pattern))
		return 0;
	if (s->patterns.count == PATHS_MAX)
		return errmsg_set(s->why, -E2BIG,
				  "git's configuration names more than %d "
				  "places in the workspace",
				  PATHS_MAX);
	if (strv_add(&s->patterns, pattern) < 0)
		return -ENOMEM;
	return rules_add(s->rules, RULE_PROTECT, pattern, SOURCE, s->why);
}

/* Hooks that lie among everything else can only be told by their names. */
static int
protect_top(struct search *s)
{
	static const char *const hooks[] = {
		"/applypatch-msg",     "/pre-applypatch",
		"/post-applypatch",    "/pre-commit",
		"/pre-merge-commit",   "/prepare-commit-msg",
		"/commit-msg",	       "/post-commit",
		"/pre-rebase",	       "/post-checkout",
		"/post-merge",	       "/pre-push",
		"/pre-receive",	       "/update",
		"/proc-receive",       "/post-receive",
		"/post-update",	       "/reference-transaction",
		"/push-to-checkout",   "/pre-auto-gc",
		"/post-rewrite",       "/sendemail-validate",
		"/fsmonitor-watchman", "/post-index-change"
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(hooks) / sizeof(*hooks); i++)
		r = add_pattern(s, hooks[i]);
	return r;
}

static int
protect(struct search *s, const char *path)
{
	_cleanup_(freep) char *pattern = NULL;
	const char *rest;
	int root = policy_root_of(s->policy, path, &rest);

	if (root < 0 || s->policy->roots[root].kind == POLICY_ROOT_RW)
		return 0;
	if (*rest == '\0')
		return protect_top(s);
	pattern = pattern_quote(rest);
	return pattern ? add_pattern(s, pattern) : -ENOMEM;
}

/* Goes on at the symlink's target: `done` and `rest` become the new way. */
static int
take_link(char done[PATH_MAX], char **rest, const char *left)
{
	char target[PATH_MAX], *joined;
	ssize_t n = readlink(done, target, sizeof(target) - 1);

	if (n <= 0)
		return -EINVAL;
	target[n] = '\0';
	if (asprintf(&joined, "%s/%s", target, left ? left : "") < 0)
		return -ENOMEM;
	free(*rest);
	*rest = joined;
	*(target[0] == '/' ? done : strrchr(done, '/')) = '\0';
	return 0;
}

/*
 * Protects what an absolute path leads to, with the symlinks on its way; what
 * is not there yet is a name all the same.
 */
static int
protect_way(struct search *s, const char *path)
{
	_cleanup_(freep) char *rest = strdup(path);
	char done[PATH_MAX] = "", *at = rest, *name;
	unsigned int links = 0;
	int r;

	if (!rest)
		return -ENOMEM;
	while ((name = strsep(&at, "/"))) {
		size_t len = strlen(done);
		struct stat st;

		if (*name == '\0' || strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			if (len > 0)
				*strrchr(done, '/') = '\0';
			continue;
		}
		if (len + 1 + strlen(name) >= sizeof(done))
			return 0;
		(void)snprintf(done + len, sizeof(done) - len, "/%s", name);
		if (lstat(done, &st) < 0 || !S_ISLNK(st.st_mode))
			continue;
		r = links++ < LINKS_MAX ? protect(s, done) : -ELOOP;
		if (r == 0)
			r = take_link(done, &rest, at);
		if (r == -ELOOP || r == -EINVAL)
			return 0;
		if (r < 0)
			return r;
		at = rest;
	}
	return protect(s, done);
}

/* ---- values ---- */

/* The absolute path that a value means in `dir`; NULL: none that we know. */
static int
expand(const struct search *s, const char *dir, const char *value,
       char **ret_path)
{
	const char *home = s->policy->home_path;
	int r = 0;

	*ret_path = NULL;
	if (value[0] == '\0' || value[0] == '%')
		return 0;
	if (value[0] == '/')
		r = asprintf(ret_path, "%s", value);
	else if (value[0] != '~')
		r = asprintf(ret_path, "%s/%s", dir, value);
	else if (value[1] == '/' && home)
		r = asprintf(ret_path, "%s%s", home, value + 1);
	if (r >= 0)
		return 0;
	*ret_path = NULL;
	return -ENOMEM;
}

static bool
ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

/* A relative path in the configuration of every repository. */
static int
protect_everywhere(struct search *s, const char *value)
{
	_cleanup_(freep) char *clean = NULL, *quoted = NULL, *pattern = NULL;

	while (strncmp(value, "./", 2) == 0)
		value += 2;
	if (asprintf(&clean, "/%s", value) < 0) {
		clean = NULL;
		return -ENOMEM;
	}
	if (!path_is_clean(clean) || !clean[1])
		return 0;
	quoted = pattern_quote(clean + 1);
	if (!quoted || asprintf(&pattern, "**%s", quoted) < 0) {
		pattern = NULL;
		return -ENOMEM;
	}
	return add_pattern(s, pattern);
}

static int
take_path(struct search *s, const char *value)
{
	_cleanup_(freep) char *path = NULL;
	int r = expand(s, s->top, value, &path);

	if (r == 0 && path)
		r = protect_way(s, path);
	if (r == 0 && s->everywhere && value[0] != '/' && value[0] != '~')
		r = protect_everywhere(s, value);
	return r;
}

static int
take_hooks(struct search *s, const char *value)
{
	_cleanup_(freep) char *copy = strdup(value);
	size_t len = strlen(value);

	if (!copy)
		return -ENOMEM;
	while (len > 1 && copy[len - 1] == '/')
		copy[--len] = '\0';
	/* That is what the git guard is for, and git makes samples there. */
	if (strcmp(copy, ".git/hooks") == 0 || ends_with(copy, "/.git/hooks"))
		return 0;
	/* husky's stubs in `_` run what is beside that directory. */
	if (ends_with(copy, "/_"))
		copy[len - 2] = '\0';
	return take_path(s, copy);
}

static int
add_file(struct search *s, const char *path)
{
	if (strv_has(&s->files, path))
		return 0;
	if (s->files.count == FILES_MAX)
		return errmsg_set(s->why, -E2BIG,
				  "git's configuration is more than %d files",
				  FILES_MAX);
	return strv_add(&s->files, path);
}

static int
take_include(struct search *s, const char *value)
{
	_cleanup_(freep) char *dir = strdup(s->file), *path = NULL;
	int r;

	if (!dir)
		return -ENOMEM;
	*strrchr(dir, '/') = '\0';
	r = expand(s, dir, value, &path);
	if (r < 0 || !path)
		return r;
	r = protect_way(s, path);
	return r < 0 ? r : add_file(s, path);
}

static int
take_entry(void *data, const char *key, const char *value)
{
	struct search *s = data;

	if (!value)
		return 0;
	if (strcmp(key, "core.hookspath") == 0)
		return take_hooks(s, value);
	if (strcmp(key, "core.attributesfile") == 0 ||
	    strcmp(key, "init.templatedir") == 0)
		return take_path(s, value);
	if (strcmp(key, "include.path") == 0 ||
	    (strncmp(key, "includeif.", 10) == 0 && ends_with(key, ".path")))
		return take_include(s, value);
	return 0;
}

/* ---- files ---- */

static int
read_config(struct search *s, const char *path)
{
	_cleanup_(closep) int fd =
		open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	_cleanup_(freep) char *bytes = NULL;
	struct gitconfig_text text = { 0 };
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	r = fd_read_file(fd, LIMIT_GITCONFIG, &bytes, &text.len);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	text.bytes = bytes;
	s->file = path;
	r = gitconfig_walk(&text, take_entry, s);
	/* git ends with an error there; what came before counts. */
	return r == -EINVAL ? 0 : r;
}

static int
add_below(struct search *s, const char *dir, const char *rest)
{
	_cleanup_(freep) char *path = NULL;

	if (!dir || dir[0] != '/')
		return 0;
	if (asprintf(&path, "%s%s", dir, rest) < 0) {
		path = NULL;
		return -ENOMEM;
	}
	return add_file(s, path);
}

static int
add_repository_files(struct search *s, const struct gitroot_near *near)
{
	int r = add_below(s, near->common, "/config");

	return r < 0 ? r : add_below(s, near->git_dir, "/config.worktree");
}

static int
add_general_files(struct search *s)
{
	const char *home = s->policy->home_path;
	int r = 0;

	if (!getenv("GIT_CONFIG_NOSYSTEM"))
		r = add_below(s, "/etc", "/gitconfig");
	if (r == 0)
		r = add_below(s, getenv("GIT_CONFIG_SYSTEM"), "");
	if (r == 0)
		r = add_below(s, getenv("GIT_CONFIG_GLOBAL"), "");
	if (r == 0)
		r = add_below(s, getenv("XDG_CONFIG_HOME"), "/git/config");
	if (r == 0)
		r = add_below(s, home, "/.config/git/config");
	return r < 0 ? r : add_below(s, home, "/.gitconfig");
}

/* Reads the files from the `first` on, and those that they include. */
static int
read_files(struct search *s, size_t first)
{
	int r = 0;

	for (size_t i = first; r == 0 && i < s->files.count; i++)
		r = read_config(s, s->files.items[i]);
	return r;
}

/* All that is obeyed by a git which begins its work tree at s->top. */
static int
protect_from(struct search *s, const struct gitroot_near *near)
{
	size_t first;
	int r;

	strv_fini(&s->files);
	s->everywhere = false;
	r = add_repository_files(s, near);
	if (r == 0)
		r = read_files(s, 0);
	first = s->files.count;
	s->everywhere = true;
	if (r == 0)
		r = add_general_files(s);
	return r < 0 ? r : read_files(s, first);
}

int
githost_protect(const struct policy *policy, struct rules *rules,
		struct errmsg *why)
{
	_cleanup_(search_fini) struct search s = { .policy = policy,
						   .rules = rules,
						   .why = why };
	_cleanup_(freep) char *dir = strdup(policy->roots[0].path);
	bool more = dir;
	int r = dir ? 0 : -ENOMEM;

	/* The nearest could have been made inside: those above count too. */
	while (more && r == 0) {
		_cleanup_(gitroot_near_fini) struct gitroot_near near = { 0 };

		r = gitroot_near(dir, &near);
		s.top = near.top ? near.top : policy->roots[0].path;
		if (r == 0)
			r = protect_from(&s, &near);
		more = near.top && *near.top;
		if (more) {
			/* It is `dir` or above, thus not longer. */
			memmove(dir, near.top, strlen(near.top) + 1);
			*strrchr(dir, '/') = '\0';
		}
	}
	return r == -ENOMEM ? errmsg_set(why, r, "out of memory") : r;
}
