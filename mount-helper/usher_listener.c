/* SPDX-License-Identifier: MIT */

/*
 * The list has 32 bits of a file's inode number and the device of its file
 * system.  Both are compared: in another network namespace there may be a
 * listener that is not listed, and a file of the world's own could be given
 * the same number elsewhere.  All that match must be the world's, so a chance
 * match can only refuse; and where stat(2) tells another device than the file
 * system's (btrfs, some overlays) nothing matches, which refuses as well.
 */

#include "mount-helper/usher_listener.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"

#define LISTENERS_MAX 16
#define ANSWER_BYTES  16384
#define STATE_LISTEN  10 /* TCP_LISTEN, also here */

#define DEVICE_MINOR_BITS 20

struct listeners {
	uint32_t file;	 /* inode that they are bound to */
	uint32_t device; /* as the kernel writes it: 12 and 20 bits */
	uint32_t sockets[LISTENERS_MAX];
	bool held[LISTENERS_MAX];
	size_t count;
	bool overflow;
};

static int
ask(int fd)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req body;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .sdiag_family = AF_UNIX,
			  .udiag_states = 1u << STATE_LISTEN,
			  .udiag_show = UDIAG_SHOW_VFS },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	if (sendto(fd, &request, sizeof(request), 0,
		   (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

static void
take_listener(struct listeners *l, const struct nlmsghdr *header)
{
	const struct unix_diag_msg *msg = NLMSG_DATA(header);
	const struct rtattr *attr = (const void *)(msg + 1);
	int len = (int)header->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*msg));

	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		struct unix_diag_vfs vfs;

		if (attr->rta_type != UNIX_DIAG_VFS ||
		    RTA_PAYLOAD(attr) < sizeof(vfs))
			continue;
		memcpy(&vfs, RTA_DATA(attr), sizeof(vfs));
		if (vfs.udiag_vfs_ino != l->file ||
		    vfs.udiag_vfs_dev != l->device)
			continue;
		if (l->count < LISTENERS_MAX)
			l->sockets[l->count++] = msg->udiag_ino;
		else
			l->overflow = true;
	}
}

/* Returns 1 when more is to come, 0 at the end. */
static int
take_answer(struct listeners *l, int fd)
{
	union {
		struct nlmsghdr header;
		char bytes[ANSWER_BYTES];
	} answer;
	ssize_t n = recv(fd, &answer, sizeof(answer), 0);
	size_t left;

	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	left = (size_t)n;
	for (const struct nlmsghdr *h = &answer.header; NLMSG_OK(h, left);
	     h = NLMSG_NEXT(h, left)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 0;
		if (h->nlmsg_type == NLMSG_ERROR ||
		    (h->nlmsg_flags & NLM_F_DUMP_INTR))
			return -EIO;
		if (h->nlmsg_type == SOCK_DIAG_BY_FAMILY)
			take_listener(l, h);
	}
	return 1;
}

static int
list_listeners(struct listeners *l)
{
	_cleanup_(closep) int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int r;

	if (fd < 0)
		return -errno;
	r = ask(fd);
	if (r < 0)
		return r;
	do
		r = take_answer(l, fd);
	while (r > 0);
	return r;
}

static void
closedirp(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static DIR *
open_dir(int at, const char *path)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir;

	if (fd < 0)
		return NULL;
	dir = fdopendir(fd);
	if (!dir)
		(void)close(fd);
	return dir;
}

/* Marks what the process of this directory of /proc holds. */
static void
mark_held(struct listeners *l, int proc, const char *pid)
{
	_cleanup_(closedirp) DIR *dir = NULL;
	const struct dirent *entry;
	char path[300];

	(void)snprintf(path, sizeof(path), "%s/fd", pid);
	dir = open_dir(proc, path);
	while (dir && (entry = readdir(dir))) {
		char target[40], *end;
		unsigned long inode;
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target,
				       sizeof(target) - 1);

		if (n <= 8 || strncmp(target, "socket:[", 8) != 0)
			continue;
		target[n] = '\0';
		inode = strtoul(target + 8, &end, 10);
		for (size_t i = 0; i < l->count; i++)
			if (l->sockets[i] == inode)
				l->held[i] = true;
	}
}

bool
usher_listener_is_ours(const struct stat *st)
{
	struct listeners l = { .file = (uint32_t)st->st_ino,
			       .device = major(st->st_dev)
						 << DEVICE_MINOR_BITS |
					 minor(st->st_dev) };
	_cleanup_(closedirp) DIR *proc = NULL;
	const struct dirent *entry;

	if (list_listeners(&l) < 0 || l.count == 0 || l.overflow)
		return false;
	proc = open_dir(AT_FDCWD, "/proc");
	while (proc && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			mark_held(&l, dirfd(proc), entry->d_name);
	for (size_t i = 0; i < l.count; i++)
		if (!l.held[i])
			return false;
	return true;
}
