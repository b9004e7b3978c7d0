/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_GITGUARD_PRIV_H
#define FUSEFS_GITGUARD_PRIV_H

/* What the files of the git guard share.  Thread: fuse. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "fusefs/gitguard.h"

/* ---- gitguard_names.c ---- */

/* What a name means if its directory is a git directory. */
enum gg_name {
	GG_OTHER,
	GG_HEAD,
	GG_OBJECTS,
	GG_REFS,
	GG_CONFIG, /* config, config.worktree */
	GG_COMMONDIR,
	GG_GITDIR,
	GG_INDEX,
	GG_HOOKS, /* hooks, and the legacy branches and remotes */
	GG_INFO,
	GG_ATTRIBUTES, /* in info */
	GG_DOTGIT,     /* in any directory */
	GG_TODO,       /* git-rebase-todo, in any directory */
	GG_PICKS,      /* rebase-merge, sequencer */
	GG_STRATEGY,   /* strategy, opts, in one of those */
};

/*
 * By what the name may be taken for, on a file system that folds case, drops
 * trailing dots or ignores invisible characters.
 */
enum gg_name gg_classify(const char *name);

bool gg_is_sample(const char *name);

/* ---- gitguard_dirs.c: structure ---- */

/*
 * Whether the directory is a git directory, or would be if it also had a name
 * of this class (GG_OTHER: as it is).
 */
bool gg_is_gitdir(int dirfd, enum gg_name with);

/* Whether git would use it by itself, if it is a git directory. */
bool gg_has_head(int dirfd);

/* Whether the directory or one above it, up to the root served, is one. */
bool gg_is_below_gitdir(const struct policy *policy, int dirfd);

/* Whether a directory is hooks, branches or remotes of one, or below that. */
bool gg_is_reserved(const struct gitguard_at *dir);

/* Whether a directory is the info directory of one; or of picks under way. */
bool gg_is_info(int dirfd);
bool gg_is_picks(int dirfd);

/* Whether the entry is a directory that may become hooks (info, …). */
bool gg_hooks_are_harmless(int dirfd, const char *name);
bool gg_info_is_harmless(int dirfd, const char *name);
bool gg_picks_are_harmless(int dirfd, const char *name);

/*
 * Whether a symlink leads to a name beside it that is not guarded.  All others
 * are kept out of git directories: git would write through them, and delete
 * what is behind them.
 */
bool gg_is_local_target(const char *target);
bool gg_is_local_link(int dirfd, const char *name);

/* Whether the tree has no other symlink; it is searched to a bound. */
bool gg_has_no_symlinks(int dirfd, const char *name);

/* Whether no git directory in the tree names its work tree, bounded too. */
bool gg_has_no_worktree_key(int dirfd, const char *name);

/*
 * Whether a git directory has nothing yet that names an object: no object, and
 * no index, of its own or of a linked work tree.
 */
bool gg_has_no_data(int dirfd);

/* Whether no git directory of a linked work tree lies in the tree. */
bool gg_has_no_commondir(int dirfd, const char *name);

/* Whether a path has a component of this very name. */
bool gg_has_component(const char *path, const char *component);

/* Whether an absolute path lies in a root that is served by FUSE. */
bool gg_is_served(const struct policy *policy, const char *path);

/* Opens (O_PATH) what a path in a file of `dirfd` means, through no symlink. */
int gg_resolve(const struct policy *policy, int dirfd, const char *path);

/* ---- gitguard_content.c: bytes ---- */

enum gg_kind {
	GG_KIND_NONE,
	GG_KIND_CONFIG,
	GG_KIND_CONFIG_WORKTREE,
	GG_KIND_GITFILE,
	GG_KIND_COMMONDIR,
	GG_KIND_GITDIR,
	GG_KIND_INDEX,
	GG_KIND_TODO,
	GG_KIND_STRATEGY,
	GG_KIND_OPTS,
};

/* A private, NUL-terminated copy of a file's bytes. */
struct gg_bytes {
	char *data;
	size_t len;
	unsigned int mode, uid, gid;
};
void gg_bytes_fini(struct gg_bytes *bytes);

/*
 * Reads a regular file, never through a symlink.  Errors: -ENOENT, -EINVAL
 * (something else than a regular file), -EFBIG, ….
 */
int gg_read(int dirfd, const char *name, struct gg_bytes *ret_bytes);

/* The class of content of a name of this class; NONE if it has no rule. */
enum gg_kind gg_kind_of(enum gg_name class, const char *name);

/* Judges bytes that would become a file of this kind in the directory. */
int gg_judge(enum gg_kind kind, int dirfd, const char *data, size_t len,
	     struct gitguard_check *check);

/* Judges that a guarded config file goes away. */
int gg_judge_removal(enum gg_kind kind, int dirfd,
		     struct gitguard_check *check);

/*
 * Judges a whole directory that would become a git directory, or that
 * something new would lead to.
 */
int gg_judge_dir(int dirfd, struct gitguard_check *check);

/*
 * Replaces the guarded files of a directory by copies of themselves, each
 * judged once more.
 */
int gg_seal(int dirfd, struct gitguard_check *check);

/*
 * Puts fresh bytes at the name, atomically and as a new inode, with the mode
 * and owner given.
 */
int gg_replace(int dirfd, const char *name, const struct gg_bytes *bytes);

/*
 * gitguard_index.c: whether git may check out all that an index names; `hash`
 * is the size of an object's name.
 */
bool gg_index_is_good(const char *data, size_t len, size_t hash);

/*
 * gitguard_todo.c: whether a rebase's list runs a command that does not stand
 * in the list before.
 */
bool gg_todo_runs_more(const struct gg_bytes *before, const char *data,
		       size_t len);

/* … and whether the strategy, or the options that name one, run git alone. */
bool gg_strategy_is_git_s(enum gg_kind kind, const char *data, size_t len);

/* Fills in the refusal; returns -EACCES. */
int gg_refuse(struct gitguard_check *check, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
