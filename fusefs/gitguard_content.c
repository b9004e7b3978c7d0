/* SPDX-License-Identifier: MIT */

/*
 * Bytes: what a gitfile, commondir, gitdir or config may say.
 *
 * A gitfile or commondir may lead only to a directory that is served by this
 * mount (and so is guarded as long as it exists), by a path without symlinks.
 * It may lead to a directory that is not a git directory yet, since completing
 * that one is judged.  It may lead to a git directory of the host's making
 * only if the host would use that anyway (it is called `.git`, or is a root),
 * or if its content is what we would let pass: a bare repository that came as
 * data inside a checkout, where nothing is called `.git`, must not be brought
 * to life.
 *
 * A relative path changes its meaning when the file's directory is moved, so
 * one with `..` must go through a `.git/modules` or `.git/worktrees`: wherever
 * it ends up, that is a place in a repository which the host made.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "fusefs/gitguard_priv.h"
#include "policy/gitconfig.h"

static bool
starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

int
gg_refuse(struct gitguard_check *check, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(check->rule, sizeof(check->rule), format, args);
	va_end(args);
	check->verdict = (struct policy_verdict){
		.error = -EACCES,
		.code = POLICY_CODE_PROTECTED,
		.rule = check->rule,
		.source = "built-in",
	};
	return -EACCES;
}

/*
 * The path that the bytes hold after `prefix`, cut out in place, without the
 * newlines at the end; NULL when it is none that git would write.
 */
static char *
path_in(char *data, size_t len, const char *prefix)
{
	char *path = data + strlen(prefix);

	if (strlen(data) != len || !starts_with(data, prefix))
		return NULL;
	while (len > strlen(prefix) &&
	       (data[len - 1] == '\n' || data[len - 1] == '\r'))
		data[--len] = '\0';
	for (const char *c = path; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return NULL;
	}
	return *path && strlen(path) < PATH_MAX ? path : NULL;
}

bool
gg_has_component(const char *path, const char *component)
{
	size_t len = strlen(component);

	for (const char *at = path; (at = strstr(at, component)); at++) {
		if ((at == path || at[-1] == '/') &&
		    (at[len] == '/' || at[len] == '\0'))
			return true;
	}
	return false;
}

/* Absolute, and every component is a plain name. */
static bool
is_clean(const char *path)
{
	size_t len = strlen(path);

	return path[0] == '/' && !strstr(path, "//") &&
	       !gg_has_component(path, ".") && !gg_has_component(path, "..") &&
	       (len == 1 || path[len - 1] != '/');
}

static bool
is_served_fd(const struct policy *policy, int dirfd)
{
	char path[PATH_MAX];

	return fd_path(dirfd, path) == 0 && gg_is_served(policy, path);
}

/*
 * Whether the git directory is one that the host uses where it is, or one that
 * could have been made inside.
 */
static bool
is_trusted(int dirfd, const struct gitguard_check *check)
{
	struct gitguard_check inner = { .policy = check->policy };
	char path[PATH_MAX];
	const char *rest;
	int i;

	if (fd_path(dirfd, path) < 0 || !gg_is_served(check->policy, path))
		return false;
	i = policy_root_of(check->policy, path, &rest);
	return *rest == '\0' ||
	       check->policy->roots[i].kind == POLICY_ROOT_GIT ||
	       strcmp(strrchr(path, '/'), "/.git") == 0 ||
	       gg_judge_dir(dirfd, &inner) == 0;
}

/* What is no git directory yet is judged when it becomes one. */
static bool
may_lead_to(int dirfd, const struct gitguard_check *check)
{
	return !gg_is_gitdir(dirfd, GG_OTHER) || is_trusted(dirfd, check);
}

/*
 * The part of a path after "…/.git/", when that part lies in its modules or
 * worktrees; cuts the path there, so that it ends in ".git".
 */
static char *
split_at_repository(char *path)
{
	char *at = strstr(path, ".git/");

	while (at && at != path && at[-1] != '/')
		at = strstr(at + 1, ".git/");
	if (!at)
		return NULL;
	at += sizeof(".git") - 1;
	if (!starts_with(at, "/modules/") && !starts_with(at, "/worktrees/"))
		return NULL;
	*at++ = '\0';
	return at;
}

/* A gitfile into `.git/modules` or `.git/worktrees`, there or not yet. */
static bool
leads_into_repository(int dirfd, char *path, const struct gitguard_check *check)
{
	_cleanup_(closep) int repository = -1, target = -1;
	char *rest = split_at_repository(path);
	struct stat st;

	if (!rest || gg_has_component(rest, ".."))
		return false;
	repository = gg_resolve(check->policy, dirfd, path);
	if (repository < 0 || !gg_is_gitdir(repository, GG_OTHER) ||
	    !is_served_fd(check->policy, repository))
		return false;
	target = gg_resolve(check->policy, repository, rest);
	if (target < 0)
		return target == -ENOENT;
	return fstat(target, &st) == 0 && S_ISDIR(st.st_mode) &&
	       may_lead_to(target, check);
}

static int
judge_gitfile(int dirfd, char *data, size_t len, struct gitguard_check *check)
{
	_cleanup_(closep) int target = -1;
	char *path = path_in(data, len, "gitdir: ");
	struct stat st;

	if (!path)
		return gg_refuse(check, "git-dir");
	target = gg_resolve(check->policy, dirfd, path);

	if (path[0] == '/' ? !is_clean(path) : gg_has_component(path, "..")) {
		if (leads_into_repository(dirfd, path, check))
			return 0;
	} else if (target == -ENOENT) {
		if (path[0] == '/' ? gg_is_served(check->policy, path)
				   : is_served_fd(check->policy, dirfd))
			return 0;
	} else if (target >= 0 && fstat(target, &st) == 0 &&
		   S_ISDIR(st.st_mode) && is_served_fd(check->policy, target)) {
		if (may_lead_to(target, check))
			return 0;
	}
	return gg_refuse(check, "git-dir");
}

static int
judge_commondir(int dirfd, char *data, size_t len, struct gitguard_check *check)
{
	_cleanup_(closep) int target = -1;
	char *path = path_in(data, len, "");

	/* What git writes, so that all that share a config lie in one tree. */
	if (path && strcmp(path, "../..") == 0) {
		target = gg_resolve(check->policy, dirfd, path);
		if (target >= 0 && gg_is_gitdir(target, GG_OTHER) &&
		    is_trusted(target, check))
			return 0;
	}
	return gg_refuse(check, "git-dir");
}

/*
 * The back-pointer of a linked work tree: the `.git` of a directory that is
 * served, or in the private temporary area.
 */
static int
judge_gitdir(char *data, size_t len, struct gitguard_check *check)
{
	char *path = path_in(data, len, "");
	size_t n = path ? strlen(path) : 0;

	if (n > 5 && is_clean(path) && strcmp(path + n - 5, "/.git") == 0 &&
	    (gg_is_served(check->policy, path) || starts_with(path, "/tmp/") ||
	     starts_with(path, "/var/tmp/")))
		return 0;
	return gg_refuse(check, "git-dir");
}

/* ---- config ---- */

struct place {
	int dirfd; /* the git directory */
	const struct policy *policy;
};

/* Whether the directory's gitfile, if it has one, leads to this directory. */
static bool
leads_back(const struct policy *policy, int worktree, int gitdir)
{
	_cleanup_(gg_bytes_fini) struct gg_bytes bytes = { 0 };
	_cleanup_(closep) int target = -1;
	struct stat a, b;
	char *path;
	int r = gg_read(worktree, ".git", &bytes);

	/* An empty one has been made and is about to be written. */
	if (r == -ENOENT || (r == 0 && bytes.len == 0))
		return true;
	path = r == 0 ? path_in(bytes.data, bytes.len, "gitdir: ") : NULL;
	if (!path)
		return false;
	target = gg_resolve(policy, worktree, path);
	return target >= 0 && fstat(target, &a) == 0 &&
	       fstat(gitdir, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

/*
 * The length of the path of the directory that holds the repository whose
 * modules/ the git directory lies in; 0 when it lies in none.
 */
static size_t
holder_len(const struct place *place, const char *gitdir)
{
	char path[PATH_MAX];
	const char *at = gitdir;

	while ((at = strstr(at, "/modules/"))) {
		_cleanup_(closep) int fd = -1;
		size_t len = (size_t)(at - gitdir);

		memcpy(path, gitdir, len);
		path[len] = '\0';
		at++;
		fd = gg_resolve(place->policy, place->dirfd, path);
		if (fd >= 0 && gg_is_gitdir(fd, GG_OTHER))
			return (size_t)(strrchr(path, '/') - path);
	}
	return 0;
}

/* "../" for each name of `below`, and then a plain path: that, else NULL. */
static const char *
after_ups(const char *value, const char *below)
{
	for (const char *c = below; *c; c++) {
		if (*c != '/')
			continue;
		if (!starts_with(value, "../"))
			return NULL;
		value += 3;
	}
	return starts_with(value, "../") ? value + 3 : NULL;
}

static bool
is_plain_path(const char *path)
{
	char copy[PATH_MAX], *save = NULL;

	if (snprintf(copy, sizeof(copy), "/%s", path) >= PATH_MAX ||
	    !is_clean(copy) || !copy[1])
		return false;
	for (char *c = strtok_r(copy, "/", &save); c;
	     c = strtok_r(NULL, "/", &save)) {
		if (gg_classify(c) == GG_DOTGIT)
			return false;
	}
	return true;
}

/* Whether what there is of the path lies in no git directory. */
static bool
is_outside_gitdirs(const struct place *place, const char *value)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", value);
	for (;;) {
		_cleanup_(closep) int fd = -1;
		char *slash = strrchr(path, '/');

		fd = gg_resolve(place->policy, place->dirfd, path);
		if (fd >= 0)
			return is_served_fd(place->policy, fd) &&
			       !gg_is_below_gitdir(place->policy, fd);
		if (fd != -ENOENT || !slash)
			return false;
		*slash = '\0';
	}
}

/*
 * core.worktree as `git submodule` writes it: relative, from a git directory in
 * modules/ to a work tree beside the repository, which is where git would look
 * anyway.  A work tree that is there and has a gitfile must lead back.  Moving
 * the repository takes the path along; a work tree in a git directory would
 * make a checkout write hooks.
 */
static bool
worktree_ok(void *data, const char *value)
{
	const struct place *place = data;
	_cleanup_(closep) int fd = -1;
	char gitdir[PATH_MAX];
	const char *rest;
	size_t len;

	if (fd_path(place->dirfd, gitdir) < 0)
		return false;
	len = holder_len(place, gitdir);
	rest = len > 0 ? after_ups(value, gitdir + len + 1) : NULL;
	if (!rest || !is_plain_path(rest) || !is_outside_gitdirs(place, value))
		return false;
	fd = gg_resolve(place->policy, place->dirfd, value);
	return fd == -ENOENT ||
	       (fd >= 0 && leads_back(place->policy, fd, place->dirfd));
}

static int
judge_texts(const struct gg_bytes *before, const struct gitconfig_text *after,
	    int dirfd, bool format_ok, struct gitguard_check *check)
{
	struct place here = { dirfd, check->policy };
	struct gitconfig_place place = { worktree_ok, &here, format_ok };
	struct gitconfig_text was = { before ? before->data : "",
				      before ? before->len : 0 };
	char key[GITGUARD_RULE_MAX - sizeof("git-config#")];
	int r = gitconfig_judge(&was, after, &place, key, sizeof(key));

	if (r == -EACCES)
		return gg_refuse(check, "git-config#%s", key);
	return r < 0 ? gg_refuse(check, "git-dir") : 0;
}

static int
judge_config(const char *name, int dirfd, const char *data, size_t len,
	     struct gitguard_check *check)
{
	_cleanup_(gg_bytes_fini) struct gg_bytes was = { 0 };
	struct gitconfig_text after = { data, len };
	int r = -ENOENT;

	if (gg_is_gitdir(dirfd, GG_OTHER))
		r = gg_read(dirfd, name, &was);
	if (r < 0 && r != -ENOENT)
		return gg_refuse(check, "git-dir");
	return judge_texts(r < 0 ? NULL : &was, &after, dirfd,
			   gg_has_no_data(dirfd), check);
}

/* The last one counts. */
static int
find_format(void *data, const char *key, const char *value)
{
	size_t *size = data;

	if (strcmp(key, "extensions.objectformat") == 0)
		*size = value && strcasecmp(value, "sha256") == 0 ? 32 : 20;
	return 0;
}

/* The directory whose config a git directory has: its own or the main one. */
static int
open_common(int dirfd, const struct policy *policy)
{
	_cleanup_(gg_bytes_fini) struct gg_bytes bytes = { 0 };
	int r = gg_read(dirfd, "commondir", &bytes);
	char *path;

	if (r == -ENOENT)
		return gg_resolve(policy, dirfd, ".");
	path = r == 0 ? path_in(bytes.data, bytes.len, "") : NULL;
	return path ? gg_resolve(policy, dirfd, path) : -EINVAL;
}

/* How long the repository's object names are; 0 when it cannot be told. */
static size_t
hash_size(int dirfd, const struct policy *policy)
{
	_cleanup_(gg_bytes_fini) struct gg_bytes bytes = { 0 };
	_cleanup_(closep) int common = open_common(dirfd, policy);
	struct gitconfig_text text;
	size_t size = 20;
	int r;

	if (common < 0)
		return 0;
	r = gg_read(common, "config", &bytes);
	if (r == -ENOENT)
		return size;
	if (r < 0)
		return 0;
	text = (struct gitconfig_text){ bytes.data, bytes.len };
	return gitconfig_walk(&text, find_format, &size) < 0 ? 0 : size;
}

static int
judge_index(int dirfd, const char *data, size_t len,
	    struct gitguard_check *check)
{
	size_t hash;

	/* `git stash` and others leave an empty one for a moment. */
	if (len == 0)
		return 0;
	hash = hash_size(dirfd, check->policy);
	if (hash > 0 && gg_index_is_good(data, len, hash))
		return 0;
	return gg_refuse(check, "git-index");
}

/* The host's own commands may stay: git writes what is left after each. */
static int
judge_todo(int dirfd, const char *data, size_t len,
	   struct gitguard_check *check)
{
	_cleanup_(gg_bytes_fini) struct gg_bytes was = { 0 };

	if (gg_read(dirfd, "git-rebase-todo", &was) < 0)
		was = (struct gg_bytes){ 0 };
	if (!gg_todo_runs_more(&was, data, len))
		return 0;
	return gg_refuse(check, "git-rebase-todo");
}

static const char *
config_name(enum gg_kind kind)
{
	return kind == GG_KIND_CONFIG ? "config" : "config.worktree";
}

/* ---- by kind ---- */

enum gg_kind
gg_kind_of(enum gg_name class, const char *name)
{
	if (class == GG_CONFIG)
		return strlen(name) > strlen("config") ? GG_KIND_CONFIG_WORKTREE
						       : GG_KIND_CONFIG;
	if (class == GG_DOTGIT)
		return GG_KIND_GITFILE;
	if (class == GG_COMMONDIR)
		return GG_KIND_COMMONDIR;
	if (class == GG_INDEX)
		return GG_KIND_INDEX;
	if (class == GG_TODO)
		return GG_KIND_TODO;
	if (class == GG_STRATEGY)
		return strlen(name) > strlen("opts") ? GG_KIND_STRATEGY
						     : GG_KIND_OPTS;
	return class == GG_GITDIR ? GG_KIND_GITDIR : GG_KIND_NONE;
}

int
gg_judge(enum gg_kind kind, int dirfd, const char *data, size_t len,
	 struct gitguard_check *check)
{
	_cleanup_(freep) char *copy = NULL;

	if (kind == GG_KIND_CONFIG || kind == GG_KIND_CONFIG_WORKTREE)
		return judge_config(config_name(kind), dirfd, data, len, check);

	if (kind == GG_KIND_INDEX)
		return judge_index(dirfd, data, len, check);
	if (kind == GG_KIND_TODO)
		return judge_todo(dirfd, data, len, check);
	if (kind == GG_KIND_STRATEGY || kind == GG_KIND_OPTS)
		return gg_strategy_is_git_s(kind, data, len)
			       ? 0
			       : gg_refuse(check, "git-strategy");

	copy = strndup(data, len);
	if (!copy || strlen(copy) != len)
		return gg_refuse(check, "git-dir");
	switch (kind) {
	case GG_KIND_GITFILE:
		return judge_gitfile(dirfd, copy, len, check);
	case GG_KIND_COMMONDIR:
		return judge_commondir(dirfd, copy, len, check);
	case GG_KIND_GITDIR:
		return judge_gitdir(copy, len, check);
	case GG_KIND_CONFIG:
	case GG_KIND_CONFIG_WORKTREE:
	case GG_KIND_INDEX:
	case GG_KIND_TODO:
	case GG_KIND_STRATEGY:
	case GG_KIND_OPTS:
	case GG_KIND_NONE:
		break;
	}
	return gg_refuse(check, "git-dir");
}

int
gg_judge_removal(enum gg_kind kind, int dirfd, struct gitguard_check *check)
{
	return judge_config(config_name(kind), dirfd, "", 0, check);
}

/* ---- a whole directory ---- */

static const struct {
	const char *name;
	enum gg_kind kind;
} contents[] = {
	{ "config", GG_KIND_CONFIG },
	{ "config.worktree", GG_KIND_CONFIG_WORKTREE },
	{ "commondir", GG_KIND_COMMONDIR },
	{ "gitdir", GG_KIND_GITDIR },
	{ "index", GG_KIND_INDEX },
};

const char *const gitguard_replaced[] = { "config",    "config.worktree",
					  "commondir", "gitdir",
					  "index",     NULL };

/* As if nothing had been there: the host's exemptions do not count. */
static int
judge_fresh(enum gg_kind kind, int dirfd, const struct gg_bytes *bytes,
	    struct gitguard_check *check)
{
	struct gitconfig_text text = { bytes->data, bytes->len };

	if (kind == GG_KIND_CONFIG || kind == GG_KIND_CONFIG_WORKTREE)
		/* The index is judged beside it. */
		return judge_texts(NULL, &text, dirfd, true, check);
	return gg_judge(kind, dirfd, bytes->data, bytes->len, check);
}

static bool
is_absent(int dirfd, const char *name)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
	       errno == ENOENT;
}

int
gg_judge_dir(int dirfd, struct gitguard_check *check)
{
	static const char *const reserved[] = { "hooks", "branches",
						"remotes" };
	static const char *const picks[] = { "rebase-merge", "sequencer" };
	int r;

	for (size_t i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		_cleanup_(gg_bytes_fini) struct gg_bytes bytes = { 0 };

		r = gg_read(dirfd, contents[i].name, &bytes);
		if (r == -ENOENT)
			continue;
		if (r < 0)
			return gg_refuse(check, "git-dir");
		r = judge_fresh(contents[i].kind, dirfd, &bytes, check);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); i++) {
		if (!is_absent(dirfd, reserved[i]) &&
		    !gg_hooks_are_harmless(dirfd, reserved[i]))
			return gg_refuse(check, "git-dir");
	}
	if (!is_absent(dirfd, "info") && !gg_info_is_harmless(dirfd, "info"))
		return gg_refuse(check, "git-dir");
	for (size_t i = 0; i < sizeof(picks) / sizeof(*picks); i++) {
		if (!is_absent(dirfd, picks[i]) &&
		    !gg_picks_are_harmless(dirfd, picks[i]))
			return gg_refuse(check, "git-dir");
	}
	if (!gg_has_no_symlinks(dirfd, "."))
		return gg_refuse(check, "git-dir");
	return 0;
}

int
gg_seal(int dirfd, struct gitguard_check *check)
{
	int r;

	for (size_t i = 0; i < sizeof(contents) / sizeof(*contents); i++) {
		_cleanup_(gg_bytes_fini) struct gg_bytes bytes = { 0 };

		r = gg_read(dirfd, contents[i].name, &bytes);
		/* Who had it open may have written since it was judged. */
		if (r == 0)
			r = judge_fresh(contents[i].kind, dirfd, &bytes, check);
		if (r == 0)
			r = gg_replace(dirfd, contents[i].name, &bytes);
		if (r < 0 && r != -ENOENT)
			return r;
	}
	return 0;
}
