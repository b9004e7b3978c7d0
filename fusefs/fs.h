/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_FS_H
#define FUSEFS_FS_H

/*
 * The fenced mount: serves the FUSE roots of a policy (the workspace and, as
 * further roots, git directories outside it) over one /dev/fuse descriptor.
 *
 * Root 0 is the mount's root.  Root i > 0 is looked up by the mount helper as
 * the name FS_ROOT_NAME_FORMAT in the mount's root, and bind-mounted by it at
 * the root's own path; for anybody but `helper_pid` that name does not exist.
 *
 * Thread: fs_new/fs_start/fs_stop/fs_free from the loop; serving threads are
 * this module's own.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/errmsg.h"
#include "policy/denial.h"
#include "policy/policy.h"

#define FS_ROOT_NAME_FORMAT ".pale-root-%zu"

struct fs;

struct fs_config {
	struct policy *policy; /* referenced */
	struct denials *denials;
	/* Called once from a serving thread when the connection has ended. */
	void (*ended)(void *data);
	void *data;
	const char *origin;   /* of every denial; NULL: "run" */
	pid_t helper_pid;     /* may look up further roots; 0: nobody */
	bool multi_uid;	      /* root serving many uids: per-request ids */
	bool host_visible;    /* `pale mount`: not in a world's namespace */
	unsigned int threads; /* 0: one per core, at least 2 */
	/* Directories of pale's own that must never be served, by identity. */
	const char *const *own_dirs; /* NULL-terminated absolute paths */
};

/* Opens the roots and checks them; nothing is served yet. */
int fs_new(const struct fs_config *config, struct fs **ret_fs,
	   struct errmsg *why);

/*
 * Serves on `fuse_fd` (taken) until the connection ends or fs_stop().  Returns
 * when the threads run; FUSE_INIT may still be under way (the kernel queues).
 */
int fs_start(struct fs *fs, int fuse_fd, struct errmsg *why);

/*
 * Swaps the policy.  When it returns, every later mutation, also through old
 * handles, is judged by the new one, and the kernel's caches that could answer
 * under the old one are invalidated.  -ENOMEM: the old one is in force.
 */
int fs_set_policy(struct fs *fs, struct policy *policy);

/* Ends serving: aborts what waits, joins the threads. */
void fs_stop(struct fs *fs);
struct fs *fs_free(struct fs *fs);
DEFINE_CLEANUP(fs)

/*
 * The mount options that the mounter must give the kernel for this process
 * ("rootmode=40000,user_id=…,group_id=…,allow_other…" without fd=), so that
 * helper and server agree.  `multi_uid` as in fs_config.
 */
int fs_mount_options(uid_t uid, gid_t gid, bool multi_uid, char *ret_options,
		     size_t size);

/* Counters for `world show`, doctor and benchmarks. */
struct fs_stats {
	uint64_t requests, inodes, open_fds, inode_bytes;
};
void fs_stats(struct fs *fs, struct fs_stats *ret_stats);

/*
 * Calls `each` with the path of every git directory that was made through the
 * mount, as far as the git guard watches and its bound allows.
 */
void fs_born_repositories(struct fs *fs,
			  void (*each)(void *data, const char *path),
			  void *data);

/*
 * `pale why`: the very decision the mount would make for this path, with git
 * structure looked up on disk, without doing anything.  The verdict's strings
 * live as long as `policy` and *ret_answer, which is not to be copied.
 */
struct fence_answer {
	struct policy_verdict verdict;
	char rule[512]; /* the git guard's, which it makes up */
};
int fence_why(struct policy *policy, enum policy_op op, const char *path,
	      const char *path2, struct fence_answer *ret_answer);

#endif
