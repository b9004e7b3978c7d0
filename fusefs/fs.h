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
struct tree;

/* How changes made on the host are learnt of; see watch.h. */
enum fs_watch_how {
	FS_WATCH_BEST,
	FS_WATCH_INOTIFY, /* not by fanotify, whatever the kernel offers */
	FS_WATCH_NONE,
};

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
	enum fs_watch_how watch;
	unsigned int watch_max; /* directories; 0: as many as the system lets */
	/*
	 * The mode never changes, so the kernel may read and write the files
	 * itself where it can (passthrough.h).
	 */
	bool passthrough;
	struct tree *tree; /* served at the root's TREE_NAME; NULL: none */
	/* Directories of pale's own that must never be served, by identity. */
	const char *const *own_dirs; /* NULL-terminated absolute paths */
	/* Has an echo made for this socket (echo.h); NULL: there is none. */
	int (*echo_ask)(void *data, int sock);
	void *echo_data;
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
 * -EBUSY: another mode, where data passes by us.
 */
int fs_set_policy(struct fs *fs, struct policy *policy);

/*
 * When it returns 0, every change that a process of the host had completed
 * before the call is what the kernel serves.  -ETIMEDOUT: somebody inside keeps
 * a directory or a page locked for seconds.  Thread: any but a serving one.
 */
int fs_barrier(struct fs *fs);

/*
 * Somebody inside watches for changes: from now on those of the host are told
 * to inotify and fanotify there, too.  Thread: any, between start and stop.
 */
void fs_echo(struct fs *fs);

/* Whether data passes by us, else why not. */
enum fs_passthrough {
	FS_PASSTHROUGH_OFF,
	FS_PASSTHROUGH_USED,
	FS_PASSTHROUGH_NO_KERNEL,
	FS_PASSTHROUGH_NO_PRIVILEGE
};
enum fs_passthrough fs_passthrough(const struct fs *fs);
const char *fs_passthrough_name(enum fs_passthrough value);

/*
 * Whether changes in this directory would be told of, and how, in a few words:
 * "notified (fanotify)", or "timeouts: " and why.
 */
bool fs_watch_probe(const char *path, char *ret_text, size_t size);

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
	uint64_t watched, by_inotify; /* directories; of these by inotify */
	uint64_t untold;  /* directories with short time-outs instead */
	uint64_t unheard; /* changes too many for inotify inside */
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
	char rule[512];	 /* the git guard's, which it makes up */
	bool by_content; /* allowed, but the mount judges what is written */
};
int fence_why(struct policy *policy, enum policy_op op, const char *path,
	      const char *path2, struct fence_answer *ret_answer);

#endif
