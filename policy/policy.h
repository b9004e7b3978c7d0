/* SPDX-License-Identifier: MIT */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

/*
 * What may this touch?  A policy is resolved once from a request, is complete
 * and immutable from then on, and is shared by reference: a decision takes no
 * lock, a live change builds a new policy and swaps the reference.
 *
 * This folder decides.  It never enforces and, once a policy is resolved,
 * never asks the file system: a decision is a function of (policy, operation,
 * path as spelled inside the world).
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/errmsg.h"
#include "base/strv.h"

struct rules;

/* The ladder: a larger value is strictly wider. */
enum policy_mode {
	POLICY_READ_ONLY,
	POLICY_WORKSPACE_WRITE,
	POLICY_DANGER_FULL_ACCESS,
};

/* "read-only" …; -EINVAL for an unknown name. */
const char *policy_mode_name(enum policy_mode mode);
int policy_mode_parse(const char *name, enum policy_mode *ret_mode);

/*
 * Every kind of mutation, by the name that records and `pale why` use.  READ
 * stands for looking (only hide rules refuse it).
 */
#define POLICY_OPS(X)                 \
	X(READ, "read")               \
	X(OPEN_WRITE, "open-write")   \
	X(CREATE, "create")           \
	X(TMPFILE, "tmpfile")         \
	X(MKDIR, "mkdir")             \
	X(MKNOD, "mknod")             \
	X(SYMLINK, "symlink")         \
	X(LINK, "link")               \
	X(UNLINK, "unlink")           \
	X(RMDIR, "rmdir")             \
	X(RENAME, "rename")           \
	X(TRUNCATE, "truncate")       \
	X(FALLOCATE, "fallocate")     \
	X(CHMOD, "chmod")             \
	X(CHOWN, "chown")             \
	X(UTIMENS, "utimens")         \
	X(SETXATTR, "setxattr")       \
	X(REMOVEXATTR, "removexattr") \
	X(COPY_RANGE, "copy-range")   \
	X(WRITE, "write")             \
	X(IOCTL, "ioctl")             \
	X(CONNECT, "connect")

enum policy_op {
#define X(id, name) POLICY_OP_##id,
	POLICY_OPS(X)
#undef X
	POLICY_OP_COUNT
};

const char *policy_op_name(enum policy_op op);
int policy_op_parse(const char *name, enum policy_op *ret_op);

#define POLICY_CODES(X)                        \
	X(NONE, "")                            \
	X(SANDBOX_DENIED, "FS_SANDBOX_DENIED") \
	X(PROTECTED, "FS_PROTECTED")           \
	X(HIDDEN, "FS_HIDDEN")                 \
	X(STALE_VERSION, "FS_STALE_VERSION")   \
	X(NOT_OBSERVED, "FS_NOT_OBSERVED")

enum policy_code {
#define X(id, name) POLICY_CODE_##id,
	POLICY_CODES(X)
#undef X
	POLICY_CODE_COUNT
};

const char *policy_code_name(enum policy_code code);

/*
 * The answer.  `rule` and `source` are borrowed from the policy (or static):
 * valid while the caller holds its reference.
 */
struct policy_verdict {
	int error; /* 0, or the negative errno the inmate gets */
	enum policy_code code;
	const char *rule;   /* "mode", or the rule's text */
	const char *source; /* "mode", "built-in", "config", … */
};

enum policy_net {
	POLICY_NET_HOST,
	POLICY_NET_NONE
};
enum policy_home {
	POLICY_HOME_RO,
	POLICY_HOME_PRIVATE
};

enum policy_root_kind {
	POLICY_ROOT_WORKSPACE, /* always roots[0]; served by FUSE */
	POLICY_ROOT_GIT,       /* git directory outside it; served by FUSE */
	POLICY_ROOT_RW,	       /* --rw: a plain writable bind */
};

struct policy_root {
	enum policy_root_kind kind;
	char *path; /* canonical, absolute, no trailing slash but for "/" */
};

/* Zero means "no limit of ours" everywhere. */
struct policy_limits {
	uint64_t timeout_ms;
	uint64_t linger_ms;
	uint64_t memory; /* bytes */
	uint64_t pids;
	uint64_t cpu_percent; /* of one core */
	/* Of a standing world; 0: the default of the warden. */
	uint64_t jobs;		 /* that run at once */
	uint64_t jobs_kept;	 /* ended ones of a session */
	uint64_t jobs_bytes;	 /* output of ended ones, of the user */
	uint64_t terminals;	 /* that live at once, of a world */
	uint64_t terminals_kept; /* ended ones of a session */
};

/* All fields are read-only after policy_resolve(). */
struct policy {
	int refs; /* atomic; policy_ref()/policy_unref() only */
	enum policy_mode mode;
	char *mode_source; /* "command line", "config", "default", … */
	char *session;
	struct policy_root *roots;
	size_t n_roots;
	struct rules *rules; /* protect and hide, inside the FUSE roots */
	bool git_guard;	     /* git directories are guarded */
	bool tmp_writable;   /* private /tmp takes writes */
	bool nest;	     /* new user namespaces allowed inside */
	bool require_full;   /* refuse partial enforcement */
	bool require_limits;
	enum policy_net net;
	enum policy_home home;
	char *home_path;	/* canonical $HOME of the caller; NULL: none */
	struct strv hide_paths; /* absolute host paths outside the roots */
	struct strv sockets;	/* absolute host socket paths let in */
	/* The same for what answers to names (nsswitch.c); they may be gone. */
	struct strv name_sockets;
	struct strv devices;  /* absolute host device paths let in */
	struct strv env_hide; /* globs of environment names dropped */
	struct policy_limits limits;
	/*
	 * Where no world of its own can be made (landlock.c): Landlock alone
	 * fences, on the host's own files.  Only `tmp_dir` (NULL: none) is
	 * private then.
	 */
	bool landlock;
	char *tmp_dir;
};

/*
 * What the operator asked for, before configuration is merged.  Strings are
 * borrowed.  Absent values are NULL / empty / -1.
 */
struct policy_request {
	const char *workspace; /* any spelling; NULL: the cwd */
	const char *session;   /* NULL: "default" */
	const char *mode;      /* NULL: from config, else read-only */
	const char *preset;
	const char *config_path;	  /* NULL: the default file, if there */
	struct strv rw;			  /* --rw */
	struct strv hide, protect, allow; /* globs; protect may hold "none" */
	struct strv hide_paths, sockets, devices, env_hide;
	const char *net, *home; /* NULL: from config */
	int tmp, nest;		/* -1: from config */
	bool require_full, require_limits;
	struct policy_limits limits;
};

/*
 * Merges request, configuration, preset and `.palerc` (which may only
 * tighten), canonicalises every path, finds linked git directories.
 * On success *ret_policy is a reference owned by the caller.
 * Errors, each with a sentence in `why`: -EINVAL (value, config file:line),
 * -ENOENT/-ENOTDIR (workspace), -E2BIG (LIMIT_*), -ENOMEM.
 */
int policy_resolve(const struct policy_request *request,
		   struct policy **ret_policy, struct errmsg *why);

struct policy *policy_ref(struct policy *policy);
/* Returns NULL; NULL is fine. */
struct policy *policy_unref(struct policy *policy);
static inline void
policy_unrefp(struct policy **policy)
{
	policy_unref(*policy);
}

/* A copy under another mode (live change); everything else is the same. */
int policy_with_mode(const struct policy *policy, enum policy_mode mode,
		     struct policy **ret_policy);

/*
 * A copy for a world that Landlock alone fences.  `tmp_dir` is its private
 * directory (NULL: none), `given` are files that the command may write to
 * besides: its terminal, and what it has open for writing.
 * -ENOTSUP with a sentence: the policy asks for what Landlock cannot keep.
 */
int policy_with_landlock(const struct policy *policy, const char *tmp_dir,
			 const struct strv *given, struct policy **ret_policy,
			 struct errmsg *why);

/* The complete policy as a JSON text, and back (warden start, `show`). */
int policy_encode(const struct policy *policy, char **ret_json);
int policy_decode(const char *json, size_t len, struct policy **ret_policy,
		  struct errmsg *why);

/*
 * The policy as a short text of hexadecimal digits: equal for what fences
 * alike.  -ENOMEM.
 */
#define POLICY_DIGEST_LEN 16
int policy_digest(const struct policy *policy,
		  char ret_digest[POLICY_DIGEST_LEN + 1]);

/*
 * The one function that says where this policy permits mutation: canonical
 * paths, borrowed from the policy, in the order of roots[].  read-only: none.
 * Fills at most LIMIT_ROOTS; returns the number.  (Private temporary areas
 * are not roots: they are new in the world.)
 */
size_t policy_writable_roots(const struct policy *policy,
			     const char **ret_roots);

/*
 * The root that `path` (absolute, lexically clean) lies in, or -1; *ret_rest
 * (NULL allowed) is the part below it without a leading slash, "" for the root.
 * The deepest root wins.
 */
int policy_root_of(const struct policy *policy, const char *path,
		   const char **ret_rest);

/*
 * Judges one operation on an absolute, lexically clean path as spelled inside
 * the world, by mode and rules.  It does not know git structure: the fence
 * (fusefs/) adds that.  Paths in the private temporary areas and the sinks of
 * /dev are allowed as the world makes them.
 */
struct policy_verdict policy_decide_path(const struct policy *policy,
					 enum policy_op op, const char *path,
					 bool is_dir);

/* The mode's part alone, for an object inside a FUSE root.  Hot path. */
static inline bool
policy_root_writable(const struct policy *policy)
{
	return policy->mode != POLICY_READ_ONLY;
}

/* The verdict for a refusal by mode (EROFS). */
struct policy_verdict policy_deny_mode(void);

/* The refusal of a symlink that would lead around a rule. */
struct policy_verdict policy_deny_symlink(void);

#endif
