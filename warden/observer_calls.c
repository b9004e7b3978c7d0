/* SPDX-License-Identifier: MIT */

/*
 * One row per notified system call.  Numbers that an architecture or an older
 * header lacks are left out or given here.
 */

#include <fcntl.h>
#include <linux/openat2.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "warden/observer_priv.h"

#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463
#endif
#ifndef __NR_removexattrat
#define __NR_removexattrat 466
#endif
#ifndef __NR_file_setattr
#define __NR_file_setattr 469
#endif

#define PAGE   4096
#define NO_ARG (-1)

enum follow {
	FOLLOW,
	NO_FOLLOW,
	FOLLOW_UNLESS, /* AT_SYMLINK_NOFOLLOW */
	FOLLOW_IF,     /* AT_SYMLINK_FOLLOW */
};

/* Numbers are indices of arguments. */
struct row {
	int nr;
	enum call_kind kind;
	enum policy_op op;
	signed char dirfd, path, dirfd2, path2, flags;
	enum follow follow;
};

#define ROW(name, kind, op, d, p, d2, p2, f, follow)                       \
	{                                                                  \
		__NR_##name, CALL_##kind, POLICY_OP_##op, d, p, d2, p2, f, \
			follow                                             \
	}
#define X NO_ARG

static const struct row rows[] = {
	ROW(openat, OPEN, OPEN_WRITE, 0, 1, X, X, 2, FOLLOW),
	ROW(openat2, OPEN, OPEN_WRITE, 0, 1, X, X, X, FOLLOW),
	ROW(mkdirat, NEW, MKDIR, 0, 1, X, X, X, NO_FOLLOW),
	ROW(mknodat, NEW, MKNOD, 0, 1, X, X, X, NO_FOLLOW),
	ROW(symlinkat, NEW, SYMLINK, 1, 2, X, X, X, NO_FOLLOW),
	ROW(unlinkat, GONE, UNLINK, 0, 1, X, X, 2, NO_FOLLOW),
	ROW(renameat2, RENAME, RENAME, 0, 1, 2, 3, 4, NO_FOLLOW),
	ROW(linkat, LINK, LINK, 0, 1, 2, 3, 4, FOLLOW_IF),
	ROW(truncate, CHANGE, TRUNCATE, X, 0, X, X, X, FOLLOW),
	ROW(fchmodat, CHANGE, CHMOD, 0, 1, X, X, X, FOLLOW),
	ROW(fchmodat2, CHANGE, CHMOD, 0, 1, X, X, 3, FOLLOW_UNLESS),
	ROW(fchownat, CHANGE, CHOWN, 0, 1, X, X, 4, FOLLOW_UNLESS),
	ROW(utimensat, CHANGE, UTIMENS, 0, 1, X, X, 3, FOLLOW_UNLESS),
	ROW(setxattr, CHANGE, SETXATTR, X, 0, X, X, X, FOLLOW),
	ROW(lsetxattr, CHANGE, SETXATTR, X, 0, X, X, X, NO_FOLLOW),
	ROW(setxattrat, CHANGE, SETXATTR, 0, 1, X, X, 2, FOLLOW_UNLESS),
	ROW(removexattr, CHANGE, REMOVEXATTR, X, 0, X, X, X, FOLLOW),
	ROW(lremovexattr, CHANGE, REMOVEXATTR, X, 0, X, X, X, NO_FOLLOW),
	ROW(removexattrat, CHANGE, REMOVEXATTR, 0, 1, X, X, 2, FOLLOW_UNLESS),
	ROW(file_setattr, CHANGE, IOCTL, 0, 1, X, X, 4, FOLLOW_UNLESS),
	ROW(connect, CONNECT, CONNECT, X, X, X, X, X, FOLLOW),
#ifdef __NR_renameat
	ROW(renameat, RENAME, RENAME, 0, 1, 2, 3, X, NO_FOLLOW),
#endif
#ifdef __NR_open
	ROW(open, OPEN, OPEN_WRITE, X, 0, X, X, 1, FOLLOW),
	ROW(creat, OPEN, OPEN_WRITE, X, 0, X, X, X, FOLLOW),
	ROW(mkdir, NEW, MKDIR, X, 0, X, X, X, NO_FOLLOW),
	ROW(mknod, NEW, MKNOD, X, 0, X, X, X, NO_FOLLOW),
	ROW(symlink, NEW, SYMLINK, X, 1, X, X, X, NO_FOLLOW),
	ROW(unlink, GONE, UNLINK, X, 0, X, X, X, NO_FOLLOW),
	ROW(rmdir, GONE, RMDIR, X, 0, X, X, X, NO_FOLLOW),
	ROW(rename, RENAME, RENAME, X, 0, X, 1, X, NO_FOLLOW),
	ROW(link, LINK, LINK, X, 0, X, 1, X, NO_FOLLOW),
	ROW(chmod, CHANGE, CHMOD, X, 0, X, X, X, FOLLOW),
	ROW(chown, CHANGE, CHOWN, X, 0, X, X, X, FOLLOW),
	ROW(lchown, CHANGE, CHOWN, X, 0, X, X, X, NO_FOLLOW),
	ROW(utime, CHANGE, UTIMENS, X, 0, X, X, X, FOLLOW),
	ROW(utimes, CHANGE, UTIMENS, X, 0, X, X, X, FOLLOW),
	ROW(futimesat, CHANGE, UTIMENS, 0, 1, X, X, X, FOLLOW),
#endif
};

#undef X

static const struct row *
find_row(int nr)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].nr == nr)
			return &rows[i];
	return NULL;
}

bool
call_watches(int nr)
{
#ifdef __NR_inotify_init
	if (nr == __NR_inotify_init)
		return true;
#endif
	return nr == __NR_inotify_init1 || nr == __NR_fanotify_init;
}

/* Another way to the same bytes, where process_vm_readv is not to be had. */
static ssize_t
read_mem(pid_t pid, uint64_t address, void *data, size_t len)
{
	_cleanup_(closep) int fd = -1;
	char path[32];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = pread(fd, data, len, (off_t)address);
	return n < 0 ? -errno : n;
}

/*
 * A descriptor on /proc/PID/mem is not kept between calls: it shows the address
 * space of the time of its opening, and a child of vfork() that execs has
 * another one afterwards while the first lives on.
 */
static ssize_t
read_some(pid_t pid, uint64_t address, void *data, size_t len)
{
	struct iovec local = { .iov_base = data, .iov_len = len };
	struct iovec remote = { .iov_len = len };
	ssize_t n;

	/* A number of another address space, no pointer of ours. */
	memcpy(&remote.iov_base, &address, sizeof(remote.iov_base));
	n = process_vm_readv(pid, &local, 1, &remote, 1, 0);
	if (n < 0 && (errno == ENOSYS || errno == EPERM))
		return read_mem(pid, address, data, len);
	return n < 0 ? -errno : n;
}

int
call_read(pid_t pid, uint64_t address, void *data, size_t len)
{
	ssize_t n = read_some(pid, address, data, len);

	if (n < 0)
		return (int)n;
	return (size_t)n == len ? 0 : -EFAULT;
}

/* Never across a page more than the string needs: the next may be missing. */
static int
read_path(pid_t pid, uint64_t address, char *path)
{
	size_t got = 0;

	while (got < PATH_MAX) {
		size_t want = PAGE - (size_t)((address + got) % PAGE);
		ssize_t n;

		if (want > PATH_MAX - got)
			want = PATH_MAX - got;
		if (got == 0 && want > 256)
			want = 256;
		n = read_some(pid, address + got, path + got, want);
		if (n <= 0)
			return n < 0 ? (int)n : -EFAULT;
		if (memchr(path + got, '\0', (size_t)n))
			return 0;
		got += (size_t)n;
	}
	return -ENAMETOOLONG;
}

static int
read_name(const struct seccomp_notif *notif, int dirfd_arg, int path_arg,
	  struct call_name *name)
{
	uint64_t address = notif->data.args[path_arg];

	name->dirfd = dirfd_arg == NO_ARG ? AT_FDCWD
					  : (int)notif->data.args[dirfd_arg];
	name->path[0] = '\0';
	if (address == 0 && name->empty_is_fd)
		return 0;
	return read_path((pid_t)notif->pid, address, name->path);
}

static int
open_flags(const struct seccomp_notif *notif, const struct row *row,
	   uint64_t *ret_flags)
{
	struct open_how how = { 0 };
	int r;

#ifdef __NR_creat
	if (row->nr == __NR_creat) {
		*ret_flags = O_CREAT | O_WRONLY | O_TRUNC;
		return 0;
	}
#endif
	if (row->nr != __NR_openat2) {
		*ret_flags = (uint32_t)notif->data.args[row->flags];
		return 0;
	}
	r = call_read((pid_t)notif->pid, notif->data.args[2], &how,
		      sizeof(how));
	if (r == 0)
		*ret_flags = how.flags;
	return r;
}

/* Whether the flags ask for more than reading; also settles `follow`. */
static bool
open_mutates(struct call *call)
{
	uint64_t flags = call->flags;

	if (flags & O_PATH)
		return false;
	call->name.follow = !(flags & O_NOFOLLOW) &&
			    (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
}

static void
settle_follow(const struct row *row, struct call *call)
{
	struct call_name *name = &call->name;

	switch (row->follow) {
	case FOLLOW:
		name->follow = true;
		break;
	case NO_FOLLOW:
		name->follow = false;
		break;
	case FOLLOW_UNLESS:
		name->follow = !(call->flags & AT_SYMLINK_NOFOLLOW);
		break;
	case FOLLOW_IF:
		name->follow = call->flags & AT_SYMLINK_FOLLOW;
		break;
	}
	name->empty_is_fd = call->flags & AT_EMPTY_PATH;

	/* utimensat(fd, NULL, …) is futimens(). */
	if (row->nr == __NR_utimensat)
		name->empty_is_fd = true;
	if (row->nr == __NR_unlinkat && (call->flags & AT_REMOVEDIR))
		call->op = POLICY_OP_RMDIR;
}

int
call_decode(const struct seccomp_notif *notif, struct call *ret_call)
{
	const struct row *row = find_row(notif->data.nr);
	struct call *call = ret_call;
	int r;

	if (!row)
		return 0;
	call->kind = row->kind;
	call->op = row->op;
	call->pid = (pid_t)notif->pid;
	call->flags = 0;
	if (row->kind == CALL_CONNECT)
		return 1;

	if (row->kind == CALL_OPEN) {
		r = open_flags(notif, row, &call->flags);
		if (r < 0)
			return r;
		call->name.empty_is_fd = false;
		if (!open_mutates(call))
			return 0;
	} else {
		if (row->flags != NO_ARG)
			call->flags = (uint32_t)notif->data.args[row->flags];
		settle_follow(row, call);
	}

	r = read_name(notif, row->dirfd, row->path, &call->name);
	if (r < 0)
		return r;
	if (row->path2 != NO_ARG) {
		call->name2.follow = false;
		call->name2.empty_is_fd = false;
		r = read_name(notif, row->dirfd2, row->path2, &call->name2);
		if (r < 0)
			return r;
	}
	return 1;
}
