/* SPDX-License-Identifier: MIT */

/*
 * The verdicts.  Each is made of the class of the name (gitguard_names.c), the
 * structure around it as it is at this moment (gitguard_dirs.c) and, where the
 * content decides, the bytes (gitguard_content.c).
 *
 * A step that completes a git directory is judged with the directory as it is
 * before, and the directory's guarded files are replaced by copies, so that
 * what was opened for writing while it was a plain directory leads nowhere.
 */

#include "fusefs/gitguard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/limits.h"
#include "fusefs/gitguard_priv.h"

struct gitguard {
	pthread_mutex_t lock; /* makes judging and doing one step */
	/* Git directories made here, by descriptor: they may be moved. */
	int born[LIMIT_GITBORN];
	size_t n_born;
};

int
gitguard_new(struct gitguard **ret_guard)
{
	struct gitguard *guard = calloc(1, sizeof(*guard));

	if (!guard)
		return -ENOMEM;
	pthread_mutex_init(&guard->lock, NULL);
	*ret_guard = guard;
	return 0;
}

struct gitguard *
gitguard_free(struct gitguard *guard)
{
	if (!guard)
		return NULL;
	pthread_mutex_destroy(&guard->lock);
	for (size_t i = 0; i < guard->n_born; i++)
		closep(&guard->born[i]);
	free(guard);
	return NULL;
}

static void
begin(struct gitguard *guard, const struct policy *policy,
      struct gitguard_check *check)
{
	*check = (struct gitguard_check){ .policy = policy };
	if (!guard)
		return;
	pthread_mutex_lock(&guard->lock);
	check->held = guard;
}

void
gitguard_end(struct gitguard_check *check)
{
	struct gitguard *guard = check->held;

	check->held = NULL;
	if (guard)
		pthread_mutex_unlock(&guard->lock);
}

/* A refusal is the end of the step. */
static int
finish(int r, struct gitguard_check *check)
{
	if (r < 0)
		gitguard_end(check);
	return r;
}

static int
refuse(struct gitguard_check *check)
{
	return gg_refuse(check, "git-dir");
}

/* The type bits of an entry, 0 if there is none. */
static mode_t
type_at(const struct gitguard_at *at)
{
	struct stat st;

	if (fstatat(at->dirfd, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : S_IFMT;
	return st.st_mode & S_IFMT;
}

/* A git directory that has all it needs, and no use for a commondir. */
static bool
is_whole(const struct gitguard_at *commondir)
{
	return type_at(commondir) == 0 &&
	       gg_is_gitdir(commondir->dirfd, GG_OTHER);
}

static bool
is_same_dir(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

/* A directory becomes a git directory by this step, which holds the lock. */
static void
note_birth(struct gitguard *guard, int dirfd)
{
	int fd;

	if (!guard || guard->n_born == LIMIT_GITBORN)
		return;
	for (size_t i = 0; i < guard->n_born; i++)
		if (is_same_dir(guard->born[i], dirfd))
			return;
	fd = openat(dirfd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		guard->born[guard->n_born++] = fd;
}

void
gitguard_born(struct gitguard *guard,
	      void (*each)(void *data, const char *path), void *data)
{
	char path[PATH_MAX];

	pthread_mutex_lock(&guard->lock);
	for (size_t i = 0; i < guard->n_born; i++)
		if (gg_is_gitdir(guard->born[i], GG_OTHER) &&
		    fd_path(guard->born[i], path) == 0)
			each(data, path);
	pthread_mutex_unlock(&guard->lock);
}

static bool
has_with(int dirfd, const char *name, enum gg_name class, enum gg_name with)
{
	struct stat st;

	return class == with ||
	       fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	       errno != ENOENT;
}

/* The name is about to appear; judge what the directory becomes by that. */
static int
judge_completion(int dirfd, enum gg_name class, struct gitguard_check *check)
{
	bool comes_alive = class == GG_HEAD && !gg_has_head(dirfd);
	bool linked = has_with(dirfd, "commondir", GG_COMMONDIR, class);
	int r;

	if (!gg_is_gitdir(dirfd, class))
		return 0;
	/* One or the other, or its config would change with the commondir. */
	if (linked && has_with(dirfd, "objects", GG_OBJECTS, class))
		return refuse(check);
	if (!comes_alive && gg_is_gitdir(dirfd, GG_OTHER))
		return 0;
	/* The index of a linked one was judged by a config that was free. */
	if (!linked && !gg_has_no_commondir(dirfd, "."))
		return refuse(check);
	r = gg_judge_dir(dirfd, check);
	if (r < 0 || !check->held)
		return r;
	check->replaced = true;
	note_birth(check->held, dirfd);
	return gg_seal(dirfd, check);
}

static bool
is_making(enum policy_op op)
{
	return op == POLICY_OP_CREATE || op == POLICY_OP_MKDIR ||
	       op == POLICY_OP_MKNOD || op == POLICY_OP_SYMLINK;
}

/* Changes what a file holds, in place. */
static bool
is_content(enum policy_op op)
{
	return op == POLICY_OP_OPEN_WRITE || op == POLICY_OP_TRUNCATE ||
	       op == POLICY_OP_FALLOCATE || op == POLICY_OP_COPY_RANGE ||
	       op == POLICY_OP_WRITE;
}

static int
use_small(const struct gitguard_at *at, enum gg_name class,
	  struct gitguard_check *check)
{
	check->action = GITGUARD_SMALL;
	check->kind = gg_kind_of(class, at->name);
	return 0;
}

/* A gitfile, commondir or gitdir: written as a small file only. */
static int
check_small(enum policy_op op, enum gg_name class, const struct gitguard_at *at,
	    struct gitguard_check *check)
{
	mode_t type = type_at(at);

	if (type == S_IFDIR || type == S_IFLNK)
		return 0;
	if (op == POLICY_OP_CREATE || op == POLICY_OP_OPEN_WRITE)
		return use_small(at, class, check);
	if (is_content(op) || op == POLICY_OP_MKNOD ||
	    (op == POLICY_OP_MKDIR && class != GG_DOTGIT))
		return refuse(check);
	return 0;
}

static int
check_config(enum policy_op op, const struct gitguard_at *at,
	     struct gitguard_check *check)
{
	bool writes = op == POLICY_OP_CREATE || op == POLICY_OP_OPEN_WRITE;
	struct stat st;

	if (fstatat(at->dirfd, at->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		st = (struct stat){ .st_mode = type_at(at) };
	if (writes && (st.st_mode == 0 || S_ISREG(st.st_mode)) &&
	    st.st_size == 0)
		return use_small(at, GG_CONFIG, check);
	if (op == POLICY_OP_UNLINK && S_ISREG(st.st_mode))
		return gg_judge_removal(gg_kind_of(GG_CONFIG, at->name),
					at->dirfd, check);
	if (is_content(op) || is_making(op))
		return refuse(check);
	return 0;
}

/* hooks, branches, remotes and info themselves: plain directories. */
static int
check_reserved_dir(enum policy_op op, const struct gitguard_at *at,
		   struct gitguard_check *check)
{
	if (op == POLICY_OP_MKDIR || op == POLICY_OP_RMDIR ||
	    (type_at(at) == S_IFDIR && !is_making(op)))
		return 0;
	return refuse(check);
}

static int
check_class(enum policy_op op, enum gg_name class, const struct gitguard_at *at,
	    struct gitguard_check *check)
{
	int r;

	switch (class) {
	case GG_HEAD:
	case GG_OBJECTS:
	case GG_REFS:
		return is_making(op) ? judge_completion(at->dirfd, class, check)
				     : 0;
	case GG_COMMONDIR:
		if (!gg_is_gitdir(at->dirfd, class))
			return 0;
		if (is_whole(at))
			return refuse(check);
		r = is_making(op) ? judge_completion(at->dirfd, class, check)
				  : 0;
		return r < 0 ? r : check_small(op, class, at, check);
	case GG_CONFIG:
		return gg_is_gitdir(at->dirfd, GG_OTHER)
			       ? check_config(op, at, check)
			       : 0;
	case GG_GITDIR:
	case GG_INDEX:
		return gg_is_gitdir(at->dirfd, GG_OTHER)
			       ? check_small(op, class, at, check)
			       : 0;
	case GG_HOOKS:
	case GG_INFO:
	case GG_PICKS:
		return gg_is_gitdir(at->dirfd, GG_OTHER)
			       ? check_reserved_dir(op, at, check)
			       : 0;
	case GG_STRATEGY:
		if (!gg_is_picks(at->dirfd))
			return 0;
		return op == POLICY_OP_SYMLINK
			       ? refuse(check)
			       : check_small(op, class, at, check);
	case GG_ATTRIBUTES:
		return gg_is_info(at->dirfd) ? refuse(check) : 0;
	case GG_DOTGIT:
	case GG_TODO:
		return op == POLICY_OP_SYMLINK
			       ? refuse(check)
			       : check_small(op, class, at, check);
	case GG_OTHER:
		break;
	}
	return 0;
}

/* In hooks: only samples, and only as plain files. */
static int
check_reserved_entry(enum policy_op op, const struct gitguard_at *at,
		     struct gitguard_check *check)
{
	if (at->below == 1 && gg_is_sample(at->name) &&
	    op != POLICY_OP_SYMLINK && op != POLICY_OP_MKNOD &&
	    op != POLICY_OP_MKDIR)
		return 0;
	return refuse(check);
}

int
gitguard_check(struct gitguard *guard, const struct policy *policy,
	       enum policy_op op, const struct gitguard_at *at,
	       struct gitguard_check *ret_check)
{
	struct gitguard_check *check = ret_check;

	*check = (struct gitguard_check){ .policy = policy };
	if (!policy->git_guard || op == POLICY_OP_READ ||
	    !gitguard_cares(op, at))
		return 0;

	begin(guard, policy, check);
	if (gg_is_reserved(at))
		return finish(check_reserved_entry(op, at, check), check);
	if (op == POLICY_OP_SYMLINK && !gg_is_local_target(at->target) &&
	    gg_is_below_gitdir(policy, at->dirfd))
		return finish(refuse(check), check);
	return finish(check_class(op, gg_classify(at->name), at, check), check);
}

/* ---- rename ---- */

struct move {
	const struct gitguard_at *from, *to;
	enum gg_name from_class, to_class;
	mode_t type; /* of what is moved */
};

/* What the old place loses. */
static int
check_leaving(const struct move *move, struct gitguard_check *check)
{
	const struct gitguard_at *from = move->from;

	if (gg_is_reserved(from) &&
	    (from->below > 1 || !gg_is_sample(from->name)))
		return refuse(check);
	switch (move->from_class) {
	case GG_CONFIG:
		if (!gg_is_gitdir(from->dirfd, GG_OTHER))
			return 0;
		if (move->type != S_IFREG)
			return refuse(check);
		return gg_judge_removal(gg_kind_of(GG_CONFIG, from->name),
					from->dirfd, check);
	case GG_HOOKS:
	case GG_INFO:
		return gg_is_gitdir(from->dirfd, GG_OTHER) ? refuse(check) : 0;
	case GG_ATTRIBUTES:
		return gg_is_info(from->dirfd) ? refuse(check) : 0;
	case GG_OTHER:
	case GG_HEAD:
	case GG_OBJECTS:
	case GG_REFS:
	case GG_COMMONDIR:
	case GG_GITDIR:
	case GG_INDEX:
	case GG_DOTGIT:
	case GG_TODO:
	case GG_PICKS:
	case GG_STRATEGY:
		break;
	}
	return 0;
}

/* The file's bytes decide, and it is published as a copy. */
static int
check_published(const struct move *move, struct gitguard_check *check)
{
	_cleanup_(gg_bytes_fini) struct gg_bytes bytes = { 0 };
	int r;

	if (move->type != S_IFREG)
		return refuse(check);
	r = gg_read(move->from->dirfd, move->from->name, &bytes);
	if (r < 0)
		return refuse(check);
	check->action = GITGUARD_PUBLISH;
	check->kind = gg_kind_of(move->to_class, move->to->name);
	return gg_judge(check->kind, move->to->dirfd, bytes.data, bytes.len,
			check);
}

/* A directory becomes some `.git`. */
static int
check_becoming_dotgit(const struct move *move, struct gitguard_check *check)
{
	_cleanup_(closep) int fd = -1;

	if (move->type != S_IFDIR)
		return check_published(move, check);
	/* The host's own repository may move with what the host put in it. */
	if (strcmp(move->from->name, ".git") == 0)
		return 0;
	fd = gg_resolve(check->policy, move->from->dirfd, move->from->name);
	if (fd < 0)
		return refuse(check);
	if (!gg_is_gitdir(fd, GG_OTHER))
		return 0;
	note_birth(check->held, fd);
	return gg_judge_dir(fd, check);
}

static int
check_becoming_reserved(const struct move *move, struct gitguard_check *check)
{
	const struct gitguard_at *from = move->from;
	bool ok = move->type == S_IFDIR;

	if (ok && move->to_class == GG_HOOKS)
		ok = gg_hooks_are_harmless(from->dirfd, from->name);
	else if (ok && move->to_class == GG_PICKS)
		ok = gg_picks_are_harmless(from->dirfd, from->name);
	else if (ok)
		ok = gg_info_is_harmless(from->dirfd, from->name);
	return ok ? 0 : refuse(check);
}

/* What the new place gets. */
static int
check_arriving(const struct move *move, struct gitguard_check *check)
{
	const struct gitguard_at *to = move->to;
	int r;

	if (gg_is_reserved(to) &&
	    (to->below > 1 || !gg_is_sample(to->name) || move->type != S_IFREG))
		return refuse(check);
	switch (move->to_class) {
	case GG_HEAD:
	case GG_OBJECTS:
	case GG_REFS:
		return judge_completion(to->dirfd, move->to_class, check);
	case GG_COMMONDIR:
		if (!gg_is_gitdir(to->dirfd, GG_COMMONDIR))
			return 0;
		if (is_whole(to))
			return refuse(check);
		r = judge_completion(to->dirfd, GG_COMMONDIR, check);
		return r < 0 ? r : check_published(move, check);
	case GG_GITDIR:
	case GG_CONFIG:
	case GG_INDEX:
		return gg_is_gitdir(to->dirfd, GG_OTHER)
			       ? check_published(move, check)
			       : 0;
	case GG_STRATEGY:
		return gg_is_picks(to->dirfd) ? check_published(move, check)
					      : 0;
	case GG_HOOKS:
	case GG_INFO:
	case GG_PICKS:
		return gg_is_gitdir(to->dirfd, GG_OTHER)
			       ? check_becoming_reserved(move, check)
			       : 0;
	case GG_ATTRIBUTES:
		return gg_is_info(to->dirfd) ? refuse(check) : 0;
	case GG_DOTGIT:
		return check_becoming_dotgit(move, check);
	case GG_TODO:
		return check_published(move, check);
	case GG_OTHER:
		break;
	}
	return 0;
}

/* Whether the directory, or one that leads to it, is called modules. */
static bool
is_in_modules(const struct gitguard_at *at)
{
	char path[PATH_MAX];

	if (strcmp(at->name, "modules") == 0)
		return true;
	return fd_path(at->dirfd, path) < 0 ||
	       gg_has_component(path, "modules");
}

/* What a symlink, or a directory with all that is in it, takes along. */
static int
check_moving(const struct move *move, const struct policy *policy,
	     struct gitguard_check *check)
{
	const struct gitguard_at *from = move->from, *to = move->to;

	if (move->type == S_IFLNK &&
	    !gg_is_local_link(from->dirfd, from->name) &&
	    gg_is_below_gitdir(policy, to->dirfd))
		return refuse(check);
	if (move->type != S_IFDIR)
		return 0;
	/* Another config would say how its index is to be read. */
	if ((gg_is_below_gitdir(policy, from->dirfd) ||
	     gg_is_below_gitdir(policy, to->dirfd)) &&
	    !gg_has_no_commondir(from->dirfd, from->name))
		return refuse(check);
	if (is_same_dir(from->dirfd, to->dirfd))
		return 0;
	if (gg_is_below_gitdir(policy, to->dirfd) &&
	    !gg_has_no_symlinks(from->dirfd, from->name))
		return refuse(check);
	/* A relative core.worktree would lead elsewhere. */
	if (is_in_modules(from) &&
	    !gg_has_no_worktree_key(from->dirfd, from->name))
		return refuse(check);
	return 0;
}

static int
check_move(const struct move *move, const struct policy *policy,
	   struct gitguard_check *check)
{
	int r = check_leaving(move, check);

	if (r == 0)
		r = check_arriving(move, check);
	if (r == 0)
		r = check_moving(move, policy, check);
	return r;
}

/* Both move; names that matter do not change places. */
static int
check_exchange(const struct move *move, const struct policy *policy,
	       struct gitguard_check *check)
{
	struct move back = { move->to, move->from, move->to_class,
			     move->from_class, type_at(move->to) };
	int r;

	if (move->from_class != GG_OTHER || move->to_class != GG_OTHER)
		return refuse(check);
	r = check_move(move, policy, check);
	return r < 0 ? r : check_move(&back, policy, check);
}

int
gitguard_rename(struct gitguard *guard, const struct policy *policy,
		const struct gitguard_at *from, const struct gitguard_at *to,
		unsigned int flags, struct gitguard_check *ret_check)
{
	struct gitguard_check *check = ret_check;
	struct move move = { from, to, GG_OTHER, GG_OTHER, 0 };
	int r;

	*check = (struct gitguard_check){ .policy = policy };
	if (!policy->git_guard)
		return 0;
	move.from_class = gg_classify(from->name);
	move.to_class = gg_classify(to->name);
	move.type = type_at(from);
	if (move.type != S_IFDIR && move.type != S_IFLNK &&
	    move.from_class == GG_OTHER && move.to_class == GG_OTHER &&
	    !from->below && !to->below && !(flags & RENAME_EXCHANGE))
		return 0;

	begin(guard, policy, check);
	if (flags & RENAME_EXCHANGE)
		r = check_exchange(&move, policy, check);
	else
		r = check_move(&move, policy, check);
	return finish(r, check);
}

/* ---- link ---- */

/* Whether a second name would be a way to the content of a guarded file. */
static bool
is_guarded_file(const struct gitguard_at *at)
{
	switch (gg_classify(at->name)) {
	case GG_CONFIG:
	case GG_COMMONDIR:
	case GG_GITDIR:
	case GG_INDEX:
		return gg_is_gitdir(at->dirfd, GG_OTHER);
	case GG_ATTRIBUTES:
		return gg_is_info(at->dirfd);
	case GG_STRATEGY:
		return gg_is_picks(at->dirfd);
	case GG_DOTGIT:
	case GG_TODO:
		return true;
	case GG_PICKS:
	case GG_OTHER:
	case GG_HEAD:
	case GG_OBJECTS:
	case GG_REFS:
	case GG_HOOKS:
	case GG_INFO:
		break;
	}
	return gg_is_reserved(at);
}

static int
check_link(const struct gitguard_at *from, const struct gitguard_at *to,
	   const struct policy *policy, struct gitguard_check *check)
{
	enum gg_name class = gg_classify(to->name);

	if (from && is_guarded_file(from))
		return refuse(check);
	if (from && type_at(from) == S_IFLNK &&
	    !gg_is_local_link(from->dirfd, from->name) &&
	    gg_is_below_gitdir(policy, to->dirfd))
		return refuse(check);
	if (is_guarded_file(to))
		return refuse(check);
	if ((class == GG_HOOKS || class == GG_INFO || class == GG_PICKS) &&
	    gg_is_gitdir(to->dirfd, GG_OTHER))
		return refuse(check);
	if (class == GG_COMMONDIR && gg_is_gitdir(to->dirfd, class))
		return refuse(check);
	if (class == GG_HEAD || class == GG_OBJECTS || class == GG_REFS)
		return judge_completion(to->dirfd, class, check);
	return 0;
}

int
gitguard_link(struct gitguard *guard, const struct policy *policy,
	      const struct gitguard_at *from, const struct gitguard_at *to,
	      struct gitguard_check *ret_check)
{
	struct gitguard_check *check = ret_check;

	*check = (struct gitguard_check){ .policy = policy };
	if (!policy->git_guard)
		return 0;
	/* git links each object it makes into place. */
	if (gg_classify(to->name) == GG_OTHER && !to->below &&
	    (!from || (gg_classify(from->name) == GG_OTHER && !from->below &&
		       type_at(from) == S_IFREG)))
		return 0;
	begin(guard, policy, check);
	return finish(check_link(from, to, policy, check), check);
}

/* ---- by descriptor ---- */

/* What the kernel adds to a name that was unlinked. */
static bool
is_removed(const char *name)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(name), mark_len = sizeof(mark) - 1;

	return len > mark_len && strcmp(name + len - mark_len, mark) == 0;
}

int
gitguard_check_fd(struct gitguard *guard, const struct policy *policy,
		  enum policy_op op, int fd, struct gitguard_check *ret_check)
{
	struct gitguard_at at = { .dirfd = -1 };
	_cleanup_(closep) int dirfd = -1;
	char path[PATH_MAX];
	const char *rest;
	struct stat st, now;
	char *slash, *dir, *save = NULL;

	*ret_check = (struct gitguard_check){ .policy = policy };
	if (!policy->git_guard || fstat(fd, &st) < 0 || st.st_nlink == 0 ||
	    fd_path(fd, path) < 0 || policy_root_of(policy, path, &rest) < 0 ||
	    *rest == '\0')
		return 0;
	slash = strrchr(path, '/');
	*slash = '\0';
	at.name = slash + 1;
	dirfd = open(*path ? path : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	at.dirfd = dirfd;
	if (rest < slash) {
		for (dir = strtok_r(path + (rest - path), "/", &save); dir;
		     dir = strtok_r(NULL, "/", &save))
			at.below = gitguard_below(at.below, dir);
	}
	/* Gone meanwhile, or covered by the mount itself: not to be judged. */
	if (dirfd < 0 ||
	    fstatat(dirfd, at.name, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
	    now.st_ino != st.st_ino || now.st_dev != st.st_dev)
		/* Of other names it was asked when they came. */
		return !is_removed(at.name) && gitguard_cares(op, &at)
			       ? refuse(ret_check)
			       : 0;
	return gitguard_check(guard, policy, op, &at, ret_check);
}
