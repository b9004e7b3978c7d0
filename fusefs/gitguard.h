/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_GITGUARD_H
#define FUSEFS_GITGUARD_H

/*
 * The git guard: what a later plain git command *outside* the fence would
 * execute or trust is not changed from inside it.
 *
 * A git directory is recognised by structure at each use (objects with refs,
 * or HEAD with commondir), never by name or by memory, so moving one
 * or making one by hand changes nothing.  Only a handful of names can matter;
 * gitguard_cares() tells by the name alone, and for every other name nothing
 * more is done.
 *
 * In a git directory hooks/ (all but *.sample), the legacy branches/ and
 * remotes/, and info/attributes are protected.  config and config.worktree are
 * judged by content (policy/gitconfig.h) and published as a copy that nobody
 * inside ever held a descriptor of; the index by the names in it, likewise.
 * commondir and gitdir, and a gitfile `.git` in any directory, are judged by
 * content at each write.  A directory
 * that would *become* a git directory is judged whole at that step.
 *
 * The judged step and its check are one critical section: a check holds the
 * guard's lock until gitguard_end().  It is an innermost lock, held across the
 * one file system call of the step, never across a reply and never across
 * another check.
 *
 * Thread: fuse, many at once.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "policy/policy.h"

#define GITGUARD_RULE_MAX 192

struct gitguard;
struct gitguard_small;

int gitguard_new(struct gitguard **ret_guard);
struct gitguard *gitguard_free(struct gitguard *guard);
DEFINE_CLEANUP(gitguard)

/*
 * Calls `each` with the path of every git directory that came to be through
 * this guard and is one still: the first LIMIT_GITBORN, oldest first.
 */
void gitguard_born(struct gitguard *guard,
		   void (*each)(void *data, const char *path), void *data);

/*
 * How far a directory is below one whose name is hooks, branches or remotes:
 * 0 is not at all, 1 is that directory itself.  Folded over the names from the
 * root down: below = gitguard_below(parent's, name); kept with the directory,
 * or found by walking up its parents.  A pure function of names; what it means
 * is decided at use.
 */
unsigned char gitguard_below(unsigned char parent_below, const char *name);

/*
 * One end of an operation: a name in a directory (O_PATH will do).  `below` is
 * the directory's; `target` is what a symlink to be made shall say (NULL: not
 * known, which is taken for the worst).
 */
struct gitguard_at {
	int dirfd;
	const char *name;
	unsigned char below;
	const char *target;
};

/*
 * Whether the guard wants to see an operation on this name: pure and cheap.
 * Always for SYMLINK, LINK and RENAME, else by the name.
 */
bool gitguard_cares(enum policy_op op, const struct gitguard_at *at);

enum gitguard_action {
	GITGUARD_PLAIN,	  /* do the operation yourself */
	GITGUARD_PUBLISH, /* instead of rename: gitguard_publish() */
	GITGUARD_SMALL,	  /* instead of open: gitguard_small_open() */
};

/*
 * The outcome of a check.  Start it zeroed, in a variable with
 * _cleanup_(gitguard_end): that releases the lock (again is harmless).
 *
 *	_cleanup_(gitguard_end) struct gitguard_check check = { 0 };
 *
 *	r = gitguard_check(guard, policy, POLICY_OP_UNLINK, &at, &check);
 *	if (r < 0) -> check.verdict is the refusal to record
 *	unlinkat(...)
 *
 * verdict.rule points into this struct, or is static.
 */
struct gitguard_check {
	struct policy_verdict verdict;
	enum gitguard_action action;
	char rule[GITGUARD_RULE_MAX]; /* "git-dir", "git-config#<key>" */
	/*
	 * The directory became a git directory, and the files named by
	 * gitguard_replaced[] in it are new inodes: their entries are to be
	 * invalidated after the reply.
	 */
	bool replaced;
	/* The new file that a write to was refused is gone again: likewise. */
	bool removed;
	struct gitguard *held; /* private, like what follows */
	const struct policy *policy;
	unsigned int kind;
};

extern const char *const gitguard_replaced[]; /* NULL-terminated */

void gitguard_end(struct gitguard_check *check);

/*
 * Judges an operation on one name that the policy's mode and rules allow.
 * Returns 0 (check->action says how to go on), or check->verdict.error, which
 * is -EACCES, with the verdict filled in, or what the disk said, with no
 * verdict.  Nothing is changed on disk, except that a step which completes a
 * git directory first replaces its config files by copies.  `guard` may be NULL
 * (fence_why): then no lock is taken and nothing at all is changed.
 *
 * Operations: CREATE and OPEN_WRITE (of a name that is absent or not), MKDIR,
 * MKNOD, SYMLINK, UNLINK, RMDIR, TRUNCATE, FALLOCATE, CHMOD, CHOWN, UTIMENS,
 * SETXATTR, REMOVEXATTR, COPY_RANGE, WRITE, IOCTL.  The name may be a file or
 * a directory; it is not followed.
 */
int gitguard_check(struct gitguard *guard, const struct policy *policy,
		   enum policy_op op, const struct gitguard_at *at,
		   struct gitguard_check *ret_check);

/* Both ends of a rename; `flags` are renameat2's. */
int gitguard_rename(struct gitguard *guard, const struct policy *policy,
		    const struct gitguard_at *from,
		    const struct gitguard_at *to, unsigned int flags,
		    struct gitguard_check *ret_check);

/* Both ends of a link; `from` may be NULL for an unnamed file (O_TMPFILE). */
int gitguard_link(struct gitguard *guard, const struct policy *policy,
		  const struct gitguard_at *from, const struct gitguard_at *to,
		  struct gitguard_check *ret_check);

/*
 * The same as gitguard_check() for an object known by a descriptor only
 * (open, truncate, chmod … of an inode): its present name is asked of the
 * kernel.  An unlinked object is allowed.
 */
int gitguard_check_fd(struct gitguard *guard, const struct policy *policy,
		      enum policy_op op, int fd,
		      struct gitguard_check *ret_check);

/*
 * Carries out a rename whose check said PUBLISH: afterwards `to` is a *new
 * inode* with the bytes that were judged, and `from` is gone.  Inside the
 * kernel's view `to` is still the old inode of `from` after the reply: the
 * caller invalidates the entry `to` after it has replied (not before: the
 * kernel holds the directory's lock during the rename).
 * Errors: -EACCES (as from the check, when the bytes changed meanwhile;
 * verdict filled in), or what the disk said.
 */
int gitguard_publish(const struct gitguard_at *from,
		     const struct gitguard_at *to,
		     struct gitguard_check *check);

/*
 * Opens (creating it with `mode` when `flags` have O_CREAT) a small file whose
 * bytes are judged at each write; for handles whose check said SMALL.  The
 * reply to the kernel must carry direct_io, so that nothing is written by
 * mapping.  O_TRUNC takes effect with the first accepted write.
 * *ret_small is owned by the caller; release with gitguard_small_free().
 */
int gitguard_small_open(const struct gitguard_at *at, int flags, mode_t mode,
			struct gitguard_check *check,
			struct gitguard_small **ret_small);
struct gitguard_small *gitguard_small_free(struct gitguard_small *small);
DEFINE_CLEANUP(gitguard_small)

/* The descriptor for fstat, chmod, fsync; borrowed, open for read and write. */
int gitguard_small_fd(const struct gitguard_small *small);

ssize_t gitguard_small_read(struct gitguard_small *small, void *buf,
			    size_t size, off_t offset);

/*
 * Writes if the file's whole content would then be acceptable.  Returns
 * `size`, -EFBIG, or -EACCES with the verdict in *ret_check (nothing is
 * held); a new file that nothing was written to is then removed.  `policy` is the one in force now.
 */
ssize_t gitguard_small_write(struct gitguard_small *small,
			     const struct policy *policy, const void *buf,
			     size_t size, off_t offset,
			     struct gitguard_check *ret_check);

/* ftruncate on such a handle: 0 and the present size are accepted. */
int gitguard_small_truncate(struct gitguard_small *small, off_t size);

#endif
