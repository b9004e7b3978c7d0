/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_FENCE_H
#define FUSEFS_FENCE_H

/*
 * The only place where a request on the mount is allowed or refused.
 *
 * A step is one mutation under judgement: mode first, then the rules at the
 * name (or names), then the git guard.  The order of an answer:
 *
 *   - what would fail anyway (ENOENT, EEXIST, ENOTDIR, EISDIR) fails with that
 *     errno, and nothing is recorded;
 *   - a refusal is on record before the handler gets its errno.
 *
 * A step on names holds fs->moving until fence_step_end(), and one that was
 * allowed may hold the git guard's lock as well: the system call it judged
 * comes before that, the reply after it.
 */

#include "fusefs/fs_priv.h"
#include "fusefs/gitguard.h"

struct fs_marks;

/* A name in a directory, and that directory's open descriptor. */
struct fence_at {
	struct fs_inode *dir;
	int dirfd;
	const char *name;
	bool is_dir;	    /* what the name is or shall become */
	bool is_symlink;    /* and it stands for a directory, maybe */
	const char *target; /* of a symlink to be made, else NULL */
};

struct fence_step {
	struct policy_verdict verdict;
	struct gitguard_check git;
	pthread_rwlock_t *moving; /* held */
};
void fence_step_end(struct fence_step *step);

/* ---- marks: what the rules say of a name, kept with its inode ---- */

/* Marks of a directory that the mount knows, under the call's policy. */
int fence_dir_marks(struct fs_call *call, struct fs_inode *dir,
		    struct fs_marks *ret_marks);
/* Marks of `name` in a directory with these marks. */
int fence_child_marks(struct fs_call *call, const struct fs_marks *dir,
		      const char *name, bool is_dir,
		      struct fs_marks *ret_marks);

/* What cannot be looked at is not. */
bool fence_dir_is_empty(int dirfd, const char *name);

/* ---- verdicts: 0, or the negative errno, after recording it ---- */

int fence_name(struct fs_call *call, enum policy_op op,
	       const struct fence_at *at, struct fence_step *ret_step);
int fence_rename(struct fs_call *call, const struct fence_at *from,
		 const struct fence_at *to, unsigned int flags,
		 struct fence_step *ret_step);
/* `from` is the inode linked; its `dir` is NULL when it has no name. */
int fence_link(struct fs_call *call, struct fs_inode *inode,
	       const struct fence_at *from, const struct fence_at *to,
	       struct fence_step *ret_step);
int fence_inode(struct fs_call *call, enum policy_op op, struct fs_inode *inode,
		struct fence_step *ret_step);
/*
 * A mutation through an open handle: the policy may have changed since the
 * handle was opened.
 */
int fence_handle(struct fs_call *call, enum policy_op op,
		 struct fs_handle *handle, struct fence_step *ret_step);

/* As fence_inode() with OPEN_WRITE, for access(2): nothing is recorded. */
int fence_question(struct fs_call *call, struct fs_inode *inode);

/* Records a refusal that was decided elsewhere (the git guard's late ones,
 * what pale refuses to root); returns the verdict's errno. */
int fence_refuse(struct fs_call *call, enum policy_op op,
		 const struct policy_verdict *verdict, struct fs_inode *dir,
		 const char *name);

#endif
