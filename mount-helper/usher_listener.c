/* SPDX-License-Identifier: MIT */

/*
 * The list has 32 bits of a file's inode number and the device of its file
 * system.  Both are compared: in another network namespace there may be a
 * listener that is not listed, and a file of the world's own could be given
 * the same number elsewhere.  All that match must be the world's, so a chance
 * match can only refuse.  On btrfs and overlays stat(2) tells of neither what
 * the list means: the number is taken from fdinfo, the device from the list of
 * mounts.
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
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/limits.h"

#define ANSWER_BYTES 16384
#define STATE_LISTEN 10 /* TCP_LISTEN, also here */

#define DEVICE_MINOR_BITS 20
#define MOUNTINFO_MAX	  (16u << 20)

struct listeners {
	const char *name; /* abstract; NULL: those of a file */
	size_t name_len;
	uint32_t file;	 /* inode that they are bound to */
	uint32_t device; /* as the kernel writes it: 12 and 20 bits */
	uint32_t sockets[LIMIT_SOCKET_SHARERS];
	bool held[LIMIT_SOCKET_SHARERS];
	size_t count;
	bool overflow;
};

static int
ask(int fd, uint32_t show)
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
			  .udiag_show = show },
	};
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	if (sendto(fd, &request, sizeof(request), 0,
		   (const struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return 0;
}

static bool
is_meant(const struct listeners *l, const struct rtattr *attr)
{
	struct unix_diag_vfs vfs;

	if (l->name)
		return attr->rta_type == UNIX_DIAG_NAME &&
		       RTA_PAYLOAD(attr) == l->name_len &&
		       memcmp(RTA_DATA(attr), l->name, l->name_len) == 0;
	if (attr->rta_type != UNIX_DIAG_VFS || RTA_PAYLOAD(attr) < sizeof(vfs))
		return false;
	memcpy(&vfs, RTA_DATA(attr), sizeof(vfs));
	return vfs.udiag_vfs_ino == l->file && vfs.udiag_vfs_dev == l->device;
}

static void
take_listener(struct listeners *l, const struct nlmsghdr *header)
{
	const struct unix_diag_msg *msg = NLMSG_DATA(header);
	const struct rtattr *attr = (const void *)(msg + 1);
	int len = (int)header->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*msg));

	for (; RTA_OK(attr, len); attr = RTA_NEXT(attr, len)) {
		if (!is_meant(l, attr))
			continue;
		if (l->count < LIMIT_SOCKET_SHARERS)
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
	r = ask(fd, l->name ? UDIAG_SHOW_NAME : UDIAG_SHOW_VFS);
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

/* -EACCES, unless the world's processes hold all of them. */
static int
judge(struct listeners *l)
{
	_cleanup_(closedirp) DIR *proc = NULL;
	const struct dirent *entry;

	if (list_listeners(l) < 0 || l->overflow)
		return -EACCES;
	if (l->count == 0)
		return -ECONNREFUSED;
	proc = open_dir(AT_FDCWD, "/proc");
	while (proc && (entry = readdir(proc)))
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			mark_held(l, dirfd(proc), entry->d_name);
	for (size_t i = 0; i < l->count; i++)
		if (!l->held[i])
			return -EACCES;
	return 0;
}

static uint32_t
device_as_listed(unsigned int major_number, unsigned int minor_number)
{
	return major_number << DEVICE_MINOR_BITS | minor_number;
}

/* The device of a mount's file system, as the kernel knows it. */
static bool
device_of_mount(unsigned long long mount, uint32_t *ret_device)
{
	_cleanup_(freep) char *text = NULL;
	size_t len;

	if (fd_read_path(AT_FDCWD, "self/mountinfo", MOUNTINFO_MAX, &text,
			 &len) < 0)
		return false;
	for (const char *line = text; line && *line;
	     line = strchr(line, '\n')) {
		unsigned long long id;
		unsigned int parts[2];

		line += *line == '\n';
		if (sscanf(line, "%llu %*u %u:%u", &id, &parts[0], &parts[1]) !=
			    3 ||
		    id != mount)
			continue;
		*ret_device = device_as_listed(parts[0], parts[1]);
		return true;
	}
	return false;
}

static int
identify_file(struct listeners *l, int fd)
{
	unsigned long long mount, inode;
	_cleanup_(freep) char *text = NULL;
	const char *at;
	char path[32];
	struct stat st;
	size_t len;

	if (fstat(fd, &st) < 0)
		return -errno;
	l->file = (uint32_t)st.st_ino;
	l->device = device_as_listed(major(st.st_dev), minor(st.st_dev));
	(void)snprintf(path, sizeof(path), "self/fdinfo/%d", fd);
	if (fd_read_path(AT_FDCWD, path, ANSWER_BYTES, &text, &len) < 0)
		return 0;
	at = strstr(text, "\nmnt_id:");
	if (at && sscanf(at, "\nmnt_id:%llu", &mount) == 1)
		(void)device_of_mount(mount, &l->device);
	/* Since Linux 5.14. */
	at = strstr(text, "\nino:");
	if (at && sscanf(at, "\nino:%llu", &inode) == 1)
		l->file = (uint32_t)inode;
	return 0;
}

bool
usher_listener_is_ours(int fd)
{
	struct listeners l = { .name = NULL };

	return identify_file(&l, fd) == 0 && judge(&l) == 0;
}

int
usher_listener_of_name(const char *name, size_t len)
{
	struct listeners l = { .name = name, .name_len = len };

	return judge(&l);
}
