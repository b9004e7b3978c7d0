/* SPDX-License-Identifier: MIT */

#include "base/fd.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

int
fd_write_all(int fd, const void *data, size_t len)
{
	const unsigned char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t
fd_read_all(int fd, void *data, size_t len)
{
	unsigned char *at = data;
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, at + got, len - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

int
fd_read_file(int fd, size_t max, char **ret_data, size_t *ret_len)
{
	_cleanup_(freep) char *data = NULL;
	size_t len = 0, room = 4096;

	(void)lseek(fd, 0, SEEK_SET);
	for (;;) {
		char *bigger = realloc(data, room + 1);
		ssize_t n;

		if (!bigger)
			return -ENOMEM;
		data = bigger;
		n = fd_read_all(fd, data + len, room - len);
		if (n < 0)
			return (int)n;
		len += (size_t)n;
		if (len > max)
			return -EFBIG;
		if (len < room)
			break;
		room *= 2;
	}
	data[len] = '\0';
	*ret_len = len;
	*ret_data = take_ptr(&data);
	return 0;
}

int
fd_read_path(int dirfd, const char *path, size_t max, char **ret_data,
	     size_t *ret_len)
{
	_cleanup_(closep) int fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fd_read_file(fd, max, ret_data, ret_len);
}

static int
send_with(int sock, const struct iovec *data, const int *fds, size_t nfds,
	  int flags)
{
	union {
		char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = *data;
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds > FD_PASS_MAX)
		return -E2BIG;
	if (nfds > 0) {
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, nfds * sizeof(int));
	}
	while (sendmsg(sock, &msg, MSG_NOSIGNAL | flags) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

int
fd_send(int sock, const void *data, size_t len, const int *fds, size_t nfds)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)data,
				   .iov_len = len };

	return send_with(sock, &iov, fds, nfds, 0);
}

int
fd_send_now(int sock, const void *data, size_t len, const int *fds, size_t nfds)
{
	const struct iovec iov = { .iov_base = (void *)(uintptr_t)data,
				   .iov_len = len };

	return send_with(sock, &iov, fds, nfds, MSG_DONTWAIT);
}

static size_t
collect_fds(struct msghdr *msg, int *fds)
{
	size_t count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		if (n > FD_PASS_MAX - count)
			n = FD_PASS_MAX - count;
		memcpy(fds + count, CMSG_DATA(c), n * sizeof(int));
		count += n;
	}
	return count;
}

ssize_t
fd_recv(int sock, void *data, size_t len, int *fds, size_t *ret_nfds)
{
	union {
		char bytes[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = data, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	size_t nfds;
	ssize_t n;

	/*
	 * ECONNRESET: the peer died with a message of ours unread.  The kernel
	 * says so once, before it hands out the peer's own last messages.
	 */
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return -errno;
	nfds = collect_fds(&msg, fds);
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		for (size_t i = 0; i < nfds; i++)
			(void)close(fds[i]);
		return -EMSGSIZE;
	}
	*ret_nfds = nfds;
	return n;
}

int
fd_path(int fd, char *ret_path)
{
	char link[32];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, ret_path, PATH_MAX);
	if (len < 0)
		return -errno;
	if (len == PATH_MAX)
		return -ENAMETOOLONG;
	ret_path[len] = '\0';
	return ret_path[0] == '/' ? 0 : -ENOENT;
}

int
fd_memfile(const char *name, const void *data, size_t len, int *ret_fd)
{
	_cleanup_(closep) int fd =
		memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, data, len);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0 ||
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	*ret_fd = take_fd(&fd);
	return 0;
}

int
fd_pidfd_pid(int pidfd, pid_t *ret_pid)
{
	_cleanup_(closep) int fd = -1;
	char path[64], text[1024], *at;
	ssize_t len;
	long pid;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	len = fd_read_all(fd, text, sizeof(text) - 1);
	if (len < 0)
		return (int)len;
	text[len] = '\0';
	at = strstr(text, "\nPid:\t");
	pid = at ? strtol(at + strlen("\nPid:\t"), NULL, 10) : 0;
	if (pid <= 0)
		return -ESRCH;
	*ret_pid = (pid_t)pid;
	return 0;
}

int
fd_close_from(int first)
{
	if (syscall(SYS_close_range, (unsigned int)first, ~0U, 0) < 0)
		return -errno;
	return 0;
}

static int
by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int
fd_close_others(int first, int *keep, size_t count)
{
	qsort(keep, count, sizeof(*keep), by_number);
	for (size_t i = 0; i < count; i++) {
		if (keep[i] < first)
			continue;
		if (keep[i] > first &&
		    syscall(SYS_close_range, (unsigned int)first,
			    (unsigned int)keep[i] - 1, 0) < 0)
			return -errno;
		first = keep[i] + 1;
	}
	return fd_close_from(first);
}

int
fd_open_beneath(const char *root, int flags, const char *rest)
{
	const struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_BENEATH |
						 RESOLVE_NO_SYMLINKS };
	_cleanup_(closep) int fd =
		open(root, O_PATH | O_DIRECTORY | O_CLOEXEC | flags);
	int r;

	if (fd < 0)
		return -errno;
	r = (int)syscall(SYS_openat2, fd, *rest ? rest : ".", &how,
			 sizeof(how));
	return r < 0 ? -errno : r;
}
