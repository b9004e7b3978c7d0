/* SPDX-License-Identifier: MIT */

/*
 * The git directory of a linked worktree or a submodule lies outside the
 * workspace, and git must write it.  `.git` in the workspace is a file that
 * names it; but whoever could write the workspace could have written that
 * file, so it proves nothing.  The directory is taken only if it names the
 * workspace as well: a worktree's `gitdir` file, a submodule's core.worktree.
 * What is in the workspace can then open no directory that does not itself,
 * outside, claim this workspace.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "policy/policy_priv.h"

#define POINTER_MAX (PATH_MAX + 64) /* bytes of a gitdir, commondir file */
#define CONFIG_MAX  (1u << 16)

/* The text of a small regular file, or NULL; a FIFO must not hold us up. */
static char *
read_text(const char *dir, const char *name, size_t max)
{
	_cleanup_(freep) char *path = NULL, *text = NULL;
	_cleanup_(closep) int fd = -1;
	struct stat st;
	size_t len;

	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		return NULL;
	}
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    fd_read_file(fd, max, &text, &len) < 0 || strlen(text) != len)
		return NULL;
	return take_ptr(&text);
}

static void
cut_line(char *text)
{
	text[strcspn(text, "\r\n")] = '\0';
}

/* The canonical form of `path` as seen from `dir`, or NULL. */
static char *
canonical(const char *dir, const char *path)
{
	_cleanup_(freep) char *joined = NULL;

	if (path[0] == '/')
		return realpath(path, NULL);
	if (asprintf(&joined, "%s/%s", dir, path) < 0) {
		joined = NULL;
		return NULL;
	}
	return realpath(joined, NULL);
}

/* The canonical path that a one-line file names, after `prefix`. */
static char *
read_pointer(const char *dir, const char *name, const char *prefix)
{
	_cleanup_(freep) char *text = read_text(dir, name, POINTER_MAX);
	size_t len = strlen(prefix);

	if (!text || strncmp(text, prefix, len) != 0)
		return NULL;
	cut_line(text);
	return canonical(dir, text + len + strspn(text + len, " \t"));
}

static bool
has_entry(const char *dir, const char *name, mode_t type)
{
	_cleanup_(freep) char *path = NULL;
	struct stat st;

	if (asprintf(&path, "%s/%s", dir, name) < 0) {
		path = NULL;
		return false;
	}
	return lstat(path, &st) == 0 && (st.st_mode & S_IFMT) == type;
}

static bool
is_git_dir(const char *dir)
{
	return has_entry(dir, "objects", S_IFDIR) &&
	       has_entry(dir, "refs", S_IFDIR) &&
	       has_entry(dir, "HEAD", S_IFREG);
}

/*
 * A linked worktree: <common>/worktrees/<name>, whose `gitdir` names the
 * workspace's .git.  That the name lies just there in `common` matters: a
 * commondir file alone could point anywhere.
 */
static char *
common_dir_of(const char *git_dir, const char *workspace)
{
	_cleanup_(freep) char *common = read_pointer(git_dir, "commondir", "");
	_cleanup_(freep) char *back = read_pointer(git_dir, "gitdir", "");
	const char *rest, *name;

	if (!common || !back || !is_git_dir(common))
		return NULL;
	if (!path_is_in(git_dir, common, &rest) ||
	    strncmp(rest, "worktrees/", 10) != 0 || strchr(rest + 10, '/'))
		return NULL;
	if (!path_is_in(back, workspace, &name) || strcmp(name, ".git") != 0)
		return NULL;
	return take_ptr(&common);
}

/* The value of core.worktree, unquoted in place; NULL when there is none. */
static char *
find_worktree(char *config)
{
	char *found = NULL;
	bool in_core = false;

	for (char *save, *line = strtok_r(config, "\r\n", &save); line;
	     line = strtok_r(NULL, "\r\n", &save)) {
		line += strspn(line, " \t");
		if (*line == '[') {
			in_core = strncasecmp(line, "[core]", 6) == 0;
			continue;
		}
		if (!in_core || strncasecmp(line, "worktree", 8) != 0)
			continue;
		line += 8;
		line += strspn(line, " \t");
		if (*line++ != '=')
			continue;
		found = line + strspn(line, " \t");
	}
	if (found && *found == '"') {
		found++;
		found[strcspn(found, "\"")] = '\0';
	}
	return found;
}

/* A submodule's git directory names its worktree in its configuration. */
static bool
is_module_of(const char *git_dir, const char *workspace)
{
	_cleanup_(freep) char *config =
		read_text(git_dir, "config", CONFIG_MAX);
	_cleanup_(freep) char *back = NULL;
	const char *worktree;

	if (!config || !is_git_dir(git_dir))
		return false;
	worktree = find_worktree(config);
	if (!worktree)
		return false;
	back = canonical(git_dir, worktree);
	return back && strcmp(back, workspace) == 0;
}

int
gitroot_find(const char *workspace, char **ret_path)
{
	_cleanup_(freep) char *git_dir =
		read_pointer(workspace, ".git", "gitdir:");
	_cleanup_(freep) char *found = NULL;

	*ret_path = NULL;
	if (!git_dir || path_is_in(git_dir, workspace, NULL))
		return 0;
	found = common_dir_of(git_dir, workspace);
	if (!found && is_module_of(git_dir, workspace))
		found = take_ptr(&git_dir);
	/* One that contains the workspace could not be mounted beside it. */
	if (!found || path_is_in(found, workspace, NULL) ||
	    path_is_in(workspace, found, NULL))
		return 0;
	*ret_path = take_ptr(&found);
	return 0;
}

void
gitroot_near_fini(struct gitroot_near *near)
{
	free(near->top);
	free(near->git_dir);
	free(near->common);
	*near = (struct gitroot_near){ 0 };
}

/* The git directory of a work tree that begins at `dir`, or NULL. */
static char *
git_dir_at(const char *dir)
{
	_cleanup_(freep) char *git = canonical(dir, ".git");

	if (git && is_git_dir(git))
		return take_ptr(&git);
	if (is_git_dir(dir))
		return strdup(dir);
	return read_pointer(dir, ".git", "gitdir:");
}

int
gitroot_near(const char *dir, struct gitroot_near *ret_near)
{
	_cleanup_(freep) char *top = strdup(dir);

	*ret_near = (struct gitroot_near){ 0 };
	if (!top)
		return -ENOMEM;
	for (char *slash; !ret_near->git_dir; *slash = '\0') {
		ret_near->git_dir = git_dir_at(*top ? top : "/");
		slash = strrchr(top, '/');
		if (ret_near->git_dir || !slash)
			break;
	}
	if (!ret_near->git_dir)
		return 0;
	ret_near->top = take_ptr(&top);
	ret_near->common = read_pointer(ret_near->git_dir, "commondir", "");
	if (!ret_near->common)
		ret_near->common = strdup(ret_near->git_dir);
	if (ret_near->common)
		return 0;
	gitroot_near_fini(ret_near);
	return -ENOMEM;
}
