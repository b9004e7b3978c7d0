/* SPDX-License-Identifier: MIT */

/*
 * Verdicts.  See fence.h for the order in which things are asked.
 *
 * What the rules know at a directory is a state (policy/rules.h), kept with
 * the directory's inode and valid for one generation of the policy.  A name is
 * judged by one step from its directory's state, so no path is ever built for
 * a request that is allowed.
 */

#include "fusefs/fence.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>

#include "fusefs/fence_record.h"
#include "fusefs/inodes.h"
#include "fusefs/ops.h"

void
fence_step_end(struct fence_step *step)
{
	gitguard_end(&step->git);
	if (step->moving)
		(void)pthread_rwlock_unlock(step->moving);
	step->moving = NULL;
}

static void
hold_places(struct fs_call *call, bool alone, struct fence_step *step)
{
	step->moving = &call->fs->moving;
	(void)(alone ? pthread_rwlock_wrlock(step->moving)
		     : pthread_rwlock_rdlock(step->moving));
}

/* ---- marks ---- */

static bool
has_marks(const struct fs_inode *inode, unsigned int policy_gen)
{
	return inode->policy_gen == policy_gen;
}

static bool
nothing_to_mark(const struct fs_call *call)
{
	return rules_empty(call->policy->rules) && !call->policy->git_guard;
}

int
fence_child_marks(struct fs_call *call, const struct fs_marks *dir,
		  const char *name, bool is_dir, struct fs_marks *ret_marks)
{
	struct fs_marks marks = { .policy_gen = call->policy_gen };
	struct rule_match match = { 0 };
	int r;

	if (is_dir)
		marks.below = gitguard_below(dir->below, name);
	if (!rules_empty(call->policy->rules)) {
		r = rules_step(call->policy->rules, dir->state, name, is_dir,
			       &match, is_dir ? &marks.state : NULL);
		if (r < 0)
			return r;
		if (match.protect.text)
			marks.flags |= FS_INODE_PROTECTED;
		if (match.hide.text)
			marks.flags |= FS_INODE_HIDDEN;
	}
	*ret_marks = marks;
	return 0;
}

static bool
marks_present(struct fs_call *call, struct fs_inode *dir,
	      struct fs_marks *ret_marks)
{
	struct fs_shard *shard = fs_shard_of(call->fs, dir);
	bool present;

	fs_shard_lock(shard);
	present = has_marks(dir, call->policy_gen);
	if (present)
		*ret_marks = (struct fs_marks){ .state = dir->state,
						.policy_gen = dir->policy_gen,
						.flags = dir->flags,
						.below = dir->below };
	fs_shard_unlock(shard);
	return present;
}

int
fence_dir_marks(struct fs_call *call, struct fs_inode *dir,
		struct fs_marks *ret_marks)
{
	_cleanup_(fs_chain_fini) struct fs_chain chain = { 0 };
	struct fs_marks marks = { .policy_gen = call->policy_gen };
	size_t i;
	int r;

	if (nothing_to_mark(call) || marks_present(call, dir, &marks)) {
		*ret_marks = marks;
		return 0;
	}

	r = fs_chain_climb(call->fs, dir, has_marks, call->policy_gen, &chain);
	if (r < 0)
		return r;
	i = chain.count - 1;
	if (!marks_present(call, chain.links[i].inode, &marks)) {
		marks.state = rules_root(call->policy->rules);
		if (!marks.state)
			return -ENOMEM;
		fs_inode_set_marks(call->fs, chain.links[i].inode, &marks);
	}
	while (i-- > 0) {
		struct fs_marks below;

		r = fence_child_marks(call, &marks, chain.links[i].name, true,
				      &below);
		if (r < 0)
			return r;
		fs_inode_set_marks(call->fs, chain.links[i].inode, &below);
		marks = below;
	}
	*ret_marks = marks;
	return 0;
}

/* ---- single verdicts; nothing is recorded here ---- */

static struct policy_verdict
deny_rule(int error, enum policy_code code, const struct rule_hit *hit)
{
	return (struct policy_verdict){ .error = error,
					.code = code,
					.rule = hit->text,
					.source = hit->source };
}

/*
 * The rules at one name.  *ret_below (NULL allowed) is what holds below it, as
 * if it were a directory.
 */
static struct policy_verdict
judge_rules(struct fs_call *call, const struct fence_at *at,
	    struct fs_marks *ret_marks, const struct rule_state **ret_below)
{
	static const struct rule_hit reserved = { ".pale", "built-in" };
	struct policy_verdict allow = { 0 };
	struct rule_match match = { 0 };
	int r;

	if (fs_name_is_bad(at->name))
		return (struct policy_verdict){ .error = -EINVAL };
	if (fs_name_is_reserved(call->fs, at->dir, at->name))
		return deny_rule(-EACCES, POLICY_CODE_HIDDEN, &reserved);
	r = fence_dir_marks(call, at->dir, ret_marks);
	if (r < 0)
		return (struct policy_verdict){ .error = r };
	if (rules_empty(call->policy->rules))
		return allow;

	r = rules_step(call->policy->rules, ret_marks->state, at->name,
		       at->is_dir || at->is_symlink || ret_below, &match,
		       ret_below);
	if (r < 0)
		return (struct policy_verdict){ .error = r };
	if (match.hide.text)
		return deny_rule(-EACCES, POLICY_CODE_HIDDEN, &match.hide);
	if (match.protect.text)
		return deny_rule(-EACCES, POLICY_CODE_PROTECTED,
				 &match.protect);
	return allow;
}

/*
 * A symlink that comes to a name through which a rule goes would lead around
 * the rule: what is looked up below that name would be looked up elsewhere.
 */
static struct policy_verdict
judge_symlink(struct fs_call *call, const struct fence_at *at,
	      const struct fs_marks *dir)
{
	bool through = false;
	int r = 0;

	if (!rules_empty(call->policy->rules))
		r = rules_go_through(call->policy->rules, dir->state, at->name,
				     &through);
	if (r < 0)
		return (struct policy_verdict){ .error = r };
	return through ? policy_deny_symlink() : (struct policy_verdict){ 0 };
}

/*
 * The guard's answer `r` as a verdict.  Files that it replaced on the way have
 * new inodes, which the kernel must look up again.
 */
static struct policy_verdict
git_verdict(struct fs_call *call, struct fs_inode *dir,
	    const struct fence_step *step, int r)
{
	if (step->git.replaced && dir)
		for (size_t i = 0; gitguard_replaced[i]; i++)
			fs_notify_entry(call->fs, dir, gitguard_replaced[i]);
	if (r < 0 && step->git.verdict.error == 0)
		return (struct policy_verdict){ .error = r };
	return step->git.verdict;
}

static struct policy_verdict
judge_name(struct fs_call *call, enum policy_op op, const struct fence_at *at,
	   struct fence_step *step)
{
	struct policy_verdict verdict;
	struct fs_marks marks = { 0 };
	struct gitguard_at git;

	if (!policy_root_writable(call->policy))
		return policy_deny_mode();
	verdict = judge_rules(call, at, &marks, NULL);
	if (verdict.error == 0 && op == POLICY_OP_SYMLINK)
		verdict = judge_symlink(call, at, &marks);
	if (verdict.error < 0 || !call->policy->git_guard)
		return verdict;

	git = (struct gitguard_at){ .dirfd = at->dirfd,
				    .name = at->name,
				    .below = marks.below,
				    .target = at->target };
	if (gitguard_cares(op, &git))
		verdict = git_verdict(call, at->dir, step,
				      gitguard_check(call->fs->guard,
						     call->policy, op, &git,
						     &step->git));
	return verdict;
}

/*
 * What the call would say if there were no fence, as far as names decide it;
 * 0 when it would go on.
 */
static int
fails_anyway(enum policy_op op, const struct fence_at *at)
{
	struct statx stx;
	int r = fs_statx_at(at->dirfd, at->name, &stx);

	switch ((int)op) {
	case POLICY_OP_CREATE:
	case POLICY_OP_MKDIR:
	case POLICY_OP_MKNOD:
	case POLICY_OP_SYMLINK:
	case POLICY_OP_LINK:
		return r == 0 ? -EEXIST : r == -ENOENT ? 0 : r;
	case POLICY_OP_UNLINK:
		return r < 0 ? r : S_ISDIR(stx.stx_mode) ? -EISDIR : 0;
	case POLICY_OP_RMDIR:
		return r < 0 ? r : !S_ISDIR(stx.stx_mode) ? -ENOTDIR : 0;
	case POLICY_OP_RENAME:
		return r;
	default:
		return 0;
	}
}

int
fence_name(struct fs_call *call, enum policy_op op, const struct fence_at *at,
	   struct fence_step *ret_step)
{
	int r;

	hold_places(call, false, ret_step);
	ret_step->verdict = judge_name(call, op, at, ret_step);
	if (ret_step->verdict.error == 0)
		return 0;
	/* What is hidden does not answer whether it exists. */
	if (ret_step->verdict.code != POLICY_CODE_HIDDEN) {
		r = fails_anyway(op, at);
		if (r < 0)
			return r;
	}
	return fence_record_name(call, op, &ret_step->verdict, at, NULL);
}

/* ---- two names ---- */

bool
fence_dir_is_empty(int dirfd, const char *name)
{
	int fd = openat(dirfd, name,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	bool empty = true;

	if (!dir) {
		closep(&fd);
		return false;
	}
	while (empty && (entry = readdir(dir)))
		empty = strcmp(entry->d_name, ".") == 0 ||
			strcmp(entry->d_name, "..") == 0;
	(void)closedir(dir);
	return empty;
}

/*
 * A directory takes everything below it along.  Where the rules know the same
 * at both places, the same holds for each name below; where not, nobody has
 * looked at what is below, so it must be empty.
 */
static struct policy_verdict
judge_moved_dir(const struct fence_at *at, const struct rule_state *here,
		const struct rule_state *there)
{
	if (!at->is_dir || here == there ||
	    fence_dir_is_empty(at->dirfd, at->name))
		return (struct policy_verdict){ 0 };
	return (struct policy_verdict){
		.error = -EACCES,
		.code = POLICY_CODE_PROTECTED,
		.rule = "rules differ below the moved directory",
		.source = "fence"
	};
}

static struct policy_verdict
judge_rename_rules(struct fs_call *call, const struct fence_at *from,
		   const struct fence_at *to, struct fs_marks ret_marks[2])
{
	const struct rule_state *here = NULL, *there = NULL;
	struct policy_verdict verdict;

	verdict = judge_rules(call, from, &ret_marks[0],
			      from->is_dir || to->is_dir ? &here : NULL);
	if (verdict.error == 0)
		verdict =
			judge_rules(call, to, &ret_marks[1],
				    from->is_dir || to->is_dir ? &there : NULL);
	if (verdict.error == 0)
		verdict = judge_moved_dir(from, here, there);
	if (verdict.error == 0 && from->is_symlink)
		verdict = judge_symlink(call, to, &ret_marks[1]);
	return verdict;
}

static struct policy_verdict
judge_rename(struct fs_call *call, const struct fence_at *from,
	     const struct fence_at *to, unsigned int flags,
	     struct fence_step *step)
{
	struct gitguard_at git_from, git_to;
	struct policy_verdict verdict;
	struct fs_marks marks[2] = { { 0 }, { 0 } };

	if (!policy_root_writable(call->policy))
		return policy_deny_mode();
	verdict = judge_rename_rules(call, from, to, marks);
	if (verdict.error == 0 && (flags & RENAME_EXCHANGE))
		verdict = judge_rename_rules(call, to, from, marks);
	if (verdict.error < 0 || !call->policy->git_guard)
		return verdict;
	if (flags & RENAME_EXCHANGE) {
		struct fs_marks first = marks[0];

		marks[0] = marks[1];
		marks[1] = first;
	}

	git_from = (struct gitguard_at){ .dirfd = from->dirfd,
					 .name = from->name,
					 .below = marks[0].below };
	git_to = (struct gitguard_at){ .dirfd = to->dirfd,
				       .name = to->name,
				       .below = marks[1].below };
	return git_verdict(call, to->dir, step,
			   gitguard_rename(call->fs->guard, call->policy,
					   &git_from, &git_to, flags,
					   &step->git));
}

int
fence_rename(struct fs_call *call, const struct fence_at *from,
	     const struct fence_at *to, unsigned int flags,
	     struct fence_step *ret_step)
{
	struct statx stx;
	int r;

	hold_places(call, from->is_dir || to->is_dir, ret_step);
	ret_step->verdict = judge_rename(call, from, to, flags, ret_step);
	if (ret_step->verdict.error == 0)
		return 0;
	r = fails_anyway(POLICY_OP_RENAME, from);
	if (r == 0 && (flags & RENAME_NOREPLACE) &&
	    ret_step->verdict.code != POLICY_CODE_HIDDEN &&
	    fs_statx_at(to->dirfd, to->name, &stx) == 0)
		r = -EEXIST;
	if (r < 0)
		return r;
	return fence_record_name(call, POLICY_OP_RENAME, &ret_step->verdict,
				 from, to);
}

static struct policy_verdict judge_inode(struct fs_call *call,
					 enum policy_op op,
					 struct fs_inode *inode,
					 struct fence_step *step);

/* Some name that the inode was seen under is protected. */
static bool
is_protected(struct fs_call *call, struct fs_inode *inode)
{
	struct fs_shard *shard = fs_shard_of(call->fs, inode);
	bool is;

	fs_shard_lock(shard);
	is = has_marks(inode, call->policy_gen) &&
	     (inode->flags & FS_INODE_PROTECTED);
	fs_shard_unlock(shard);
	return is;
}

static struct policy_verdict
judge_link(struct fs_call *call, struct fs_inode *inode,
	   const struct fence_at *from, const struct fence_at *to,
	   struct fence_step *step)
{
	struct gitguard_at git_from = { 0 }, git_to;
	struct policy_verdict verdict;
	struct fs_marks marks = { 0 }, from_marks = { 0 };

	if (!policy_root_writable(call->policy))
		return policy_deny_mode();
	/* A second name would make a protected file writable through it. */
	if (is_protected(call, inode))
		return judge_inode(call, POLICY_OP_LINK, inode, step);
	if (from->dir) {
		verdict = judge_rules(call, from, &from_marks, NULL);
		if (verdict.error < 0)
			return verdict;
	}
	verdict = judge_rules(call, to, &marks, NULL);
	if (verdict.error == 0 && to->is_symlink)
		verdict = judge_symlink(call, to, &marks);
	if (verdict.error < 0 || !call->policy->git_guard)
		return verdict;

	git_to = (struct gitguard_at){ .dirfd = to->dirfd,
				       .name = to->name,
				       .below = marks.below };
	if (from->dir)
		git_from = (struct gitguard_at){ .dirfd = from->dirfd,
						 .name = from->name,
						 .below = from_marks.below };
	return git_verdict(call, to->dir, step,
			   gitguard_link(call->fs->guard, call->policy,
					 from->dir ? &git_from : NULL, &git_to,
					 &step->git));
}

int
fence_link(struct fs_call *call, struct fs_inode *inode,
	   const struct fence_at *from, const struct fence_at *to,
	   struct fence_step *ret_step)
{
	int r;

	hold_places(call, false, ret_step);
	ret_step->verdict = judge_link(call, inode, from, to, ret_step);
	if (ret_step->verdict.error == 0)
		return 0;
	if (ret_step->verdict.code != POLICY_CODE_HIDDEN) {
		r = fails_anyway(POLICY_OP_LINK, to);
		if (r < 0)
			return r;
	}
	return fence_record_name(call, POLICY_OP_LINK, &ret_step->verdict,
				 from->dir ? from : to, from->dir ? to : NULL);
}

/* ---- an object known by its inode ---- */

/*
 * The git guard on an inode: by the name that it has in the parent, or, once
 * it has none that we know, by what the kernel says of its descriptor.
 */
static struct policy_verdict
judge_inode_git(struct fs_call *call, enum policy_op op, struct fs_inode *inode,
		const struct fence_at *at, struct fence_step *step)
{
	_cleanup_(fs_hold_done) struct fs_hold hold = FS_HOLD_NONE;
	struct policy_verdict verdict = { 0 };
	struct fs_marks marks = { 0 };
	struct gitguard_at git = { .name = at->name };
	int r;

	r = fence_dir_marks(call, at->dir, &marks);
	if (r < 0)
		return (struct policy_verdict){ .error = r };
	git.below = marks.below;
	if (!gitguard_cares(op, &git) && !(inode->flags & FS_INODE_PINNED))
		return verdict;

	r = fs_hold(call->fs, inode->flags & FS_INODE_PINNED ? inode : at->dir,
		    &hold);
	if (r < 0)
		return (struct policy_verdict){ .error = r };
	git.dirfd = hold.fd;
	r = inode->flags & FS_INODE_PINNED
		    ? gitguard_check_fd(call->fs->guard, call->policy, op,
					hold.fd, &step->git)
		    : gitguard_check(call->fs->guard, call->policy, op, &git,
				     &step->git);
	return git_verdict(call, at->dir, step, r);
}

static struct policy_verdict
judge_inode(struct fs_call *call, enum policy_op op, struct fs_inode *inode,
	    struct fence_step *step)
{
	struct policy_verdict verdict = { 0 };
	struct fs_inode *parent = NULL;
	struct fs_marks marks = { 0 };
	char name[NAME_MAX + 1];
	struct fence_at at;

	if (!policy_root_writable(call->policy))
		return policy_deny_mode();
	if (nothing_to_mark(call) || (inode->flags & FS_INODE_ROOT))
		return verdict;
	/* ESTALE: the host moved it; the kernel looks it up again. */
	if (fs_inode_place(call->fs, inode, &parent, name) < 0)
		return (struct policy_verdict){ .error = -ESTALE };

	at = (struct fence_at){ .dir = parent,
				.dirfd = -1,
				.name = name,
				.is_dir = fs_inode_is_dir(inode) };
	verdict = judge_rules(call, &at, &marks, NULL);
	if (verdict.error == 0 && is_protected(call, inode))
		verdict = (struct policy_verdict){
			.error = -EACCES,
			.code = POLICY_CODE_PROTECTED,
			.rule = "another name of this file is protected",
			.source = "fence"
		};
	/* A file without a name is judged when it gets one. */
	if (verdict.error == 0 && call->policy->git_guard &&
	    op != POLICY_OP_TMPFILE)
		verdict = judge_inode_git(call, op, inode, &at, step);
	fs_inode_put(call->fs, parent);
	return verdict;
}

int
fence_inode(struct fs_call *call, enum policy_op op, struct fs_inode *inode,
	    struct fence_step *ret_step)
{
	ret_step->verdict = judge_inode(call, op, inode, ret_step);
	if (ret_step->verdict.error == 0)
		return 0;
	return fence_record_inode(call, op, &ret_step->verdict, inode, NULL);
}

int
fence_handle(struct fs_call *call, enum policy_op op, struct fs_handle *handle,
	     struct fence_step *ret_step)
{
	if (atomic_load(&handle->policy_gen) == call->policy_gen)
		return 0;
	ret_step->verdict = judge_inode(call, op, handle->inode, ret_step);
	if (ret_step->verdict.error < 0)
		return fence_record_inode(call, op, &ret_step->verdict,
					  handle->inode, handle);
	atomic_store(&handle->policy_gen, call->policy_gen);
	return 0;
}

int
fence_question(struct fs_call *call, struct fs_inode *inode)
{
	_cleanup_(fence_step_end) struct fence_step step = { 0 };

	return judge_inode(call, POLICY_OP_OPEN_WRITE, inode, &step).error;
}

int
fence_refuse(struct fs_call *call, enum policy_op op,
	     const struct policy_verdict *verdict, struct fs_inode *dir,
	     const char *name)
{
	struct fence_at at = { .dir = dir, .dirfd = -1, .name = name };

	if (!name)
		return fence_record_inode(call, op, verdict, dir, NULL);
	return fence_record_name(call, op, verdict, &at, NULL);
}
