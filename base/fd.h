/* SPDX-License-Identifier: MIT */
#ifndef BASE_FD_H
#define BASE_FD_H

/*
 * Reading, writing and passing descriptors.  Every descriptor made here is
 * close-on-exec.  Errors are negative errnos.  Thread: any.
 */

#include <fcntl.h>
#include <stddef.h>
#include <sys/types.h>

/* At most this many descriptors travel in one message. */
#define FD_PASS_MAX 16

/* Writes all of it, across EINTR and short writes; not for O_NONBLOCK. */
int fd_write_all(int fd, const void *data, size_t len);

/* Reads until `len` bytes or end of file; returns the number read. */
ssize_t fd_read_all(int fd, void *data, size_t len);

/*
 * Reads a whole file of at most `max` bytes into a fresh NUL-terminated
 * buffer, from offset 0 where the file can seek.  Errors: -EFBIG, -ENOMEM, or
 * what read(2) said.
 */
int fd_read_file(int fd, size_t max, char **ret_data, size_t *ret_len);

/* The same by path, relative to `dirfd` (AT_FDCWD allowed). */
int fd_read_path(int dirfd, const char *path, size_t max, char **ret_data,
		 size_t *ret_len);

/*
 * Sends one message with `nfds` descriptors over a SOCK_SEQPACKET or
 * SOCK_DGRAM socket.  The descriptors stay the caller's.
 */
int fd_send(int sock, const void *data, size_t len, const int *fds,
	    size_t nfds);
/* The same, but -EAGAIN where it would wait for room. */
int fd_send_now(int sock, const void *data, size_t len, const int *fds,
		size_t nfds);

/*
 * Receives one message.  Descriptors arrive close-on-exec in `fds` (room for
 * FD_PASS_MAX) and are the caller's; *ret_nfds is their number.  Returns the
 * length, 0 when the peer is gone.  -EMSGSIZE: the message was cut (its
 * descriptors are closed).
 */
ssize_t fd_recv(int sock, void *data, size_t len, int *fds, size_t *ret_nfds);

/*
 * The path of an open descriptor now, of PATH_MAX bytes.  -ENOENT: it has none
 * (a pipe, a socket); -ENAMETOOLONG.
 */
int fd_path(int fd, char *ret_path);

/* A sealed (unchangeable) memory file with these bytes, at offset 0. */
int fd_memfile(const char *name, const void *data, size_t len, int *ret_fd);

/* Of pidfd_open(2): one thread (Linux 6.9; -EINVAL before). */
#define FD_PIDFD_THREAD O_EXCL

/* The process of a pidfd, as /proc counts; -ESRCH when it has ended. */
int fd_pidfd_pid(int pidfd, pid_t *ret_pid);

/* Closes every descriptor >= first, close_range(2). */
int fd_close_from(int first);

/* The same but for `keep`, whose order it changes; -1 in it means none. */
int fd_close_others(int first, int *keep, size_t count);

/*
 * The directory `rest` ("": itself) below `root`, as a place (O_PATH): no
 * symlink on the way down and nothing above `root`.  `flags`: O_NOFOLLOW where
 * `root` must be none either.  A descriptor or a negative errno.
 */
int fd_open_beneath(const char *root, int flags, const char *rest);

#endif
