/* SPDX-License-Identifier: MIT */

/*
 * Rights are handled from the first ABI on that knows them; LANDLOCK_LEAST has
 * all but the ioctl of devices.  Reading and executing are not handled: every
 * mode permits them.
 */

#include "mount-helper/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "mount-helper/steps.h"

/* linux/landlock.h of this distribution may end earlier. */
struct ruleset_attr {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

#define BIT(n) (UINT64_C(1) << (n))

#define WRITE_FILE BIT(1)
#define TRUNCATE   BIT(14)
#define IOCTL_DEV  BIT(15)
/* remove_dir, remove_file, seven make_*, refer */
#define CHANGE_DIR (BIT(4) | BIT(5) | (BIT(13) - BIT(6)) | BIT(13))
#define ALL_WRITES (WRITE_FILE | CHANGE_DIR | TRUNCATE)

#define SCOPE_ABSTRACT_UNIX_SOCKET BIT(0)
#define SCOPE_SIGNAL		   BIT(1)

static int
grant(int ruleset, const struct plan_mount *m, uint64_t handled,
      struct errmsg *why)
{
	struct landlock_path_beneath_attr rule = { .parent_fd = -1 };
	_cleanup_(closep) int fd = open(m->target, O_PATH | O_CLOEXEC);
	struct stat st;

	/* What cannot be found needs no right: nobody here can open it. */
	if (fd < 0 && (errno == ENOENT || errno == EACCES) &&
	    m->kind == PLAN_GRANT_FILE)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return errmsg_set(why, -errno, "cannot open '%s': %s",
				  m->target, strerror(errno));
	rule.allowed_access = handled;
	if (!S_ISDIR(st.st_mode))
		rule.allowed_access &= WRITE_FILE | TRUNCATE | IOCTL_DEV;
	rule.parent_fd = fd;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH,
		    &rule, 0) < 0)
		return errmsg_set(why, -errno, "cannot grant '%s': %s",
				  m->target, strerror(errno));
	return 0;
}

static int
make_ruleset(int abi, uint64_t handled, struct errmsg *why)
{
	struct ruleset_attr attr = { .handled_access_fs = handled };
	size_t size = sizeof(attr.handled_access_fs);
	long fd;

	if (abi >= LANDLOCK_SCOPE) {
		attr.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	fd = syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (fd < 0)
		return errmsg_set(why, -errno, "cannot make Landlock rules: %s",
				  strerror(errno));
	return (int)fd;
}

int
landlock_prepare(const struct plan *plan, int *ret_ruleset, int *ret_abi,
		 struct errmsg *why)
{
	_cleanup_(closep) int ruleset = -1;
	uint64_t handled = ALL_WRITES;
	long abi;
	int r;

	r = step_begin(STEP_LANDLOCK, why);
	if (r < 0)
		return r;
	abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
		      LANDLOCK_CREATE_RULESET_VERSION);
	if (abi < LANDLOCK_LEAST)
		return errmsg_set(why, -ENOTSUP,
				  abi < 0 ? "this kernel has no Landlock"
					  : "the Landlock of this kernel is "
					    "too old: Linux 6.2 is needed");
	if (abi >= LANDLOCK_IOCTL)
		handled |= IOCTL_DEV;
	ruleset = make_ruleset((int)abi, handled, why);
	if (ruleset < 0)
		return ruleset;
	for (size_t i = 0; i < plan->n_mounts && r == 0; i++)
		if (plan->mounts[i].kind == PLAN_GRANT_TREE ||
		    plan->mounts[i].kind == PLAN_GRANT_FILE)
			r = grant(ruleset, &plan->mounts[i], handled, why);
	if (r < 0)
		return r;
	*ret_ruleset = take_fd(&ruleset);
	*ret_abi = (int)abi;
	return 0;
}

int
landlock_enter(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
