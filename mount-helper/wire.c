/* SPDX-License-Identifier: MIT */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "mount-helper/helper.h"
#include "mount-helper/steps.h"

int
wire_send(int sock, enum wire_type type, int32_t pid, int32_t value, int fd)
{
	struct wire_msg msg = { .type = type, .pid = pid, .value = value };

	return fd_send(sock, &msg, sizeof(msg), &fd, fd >= 0 ? 1 : 0);
}

/*
 * Whether the step says that this machine does not let us make a world, rather
 * than that something is wrong with this one.
 */
static bool
is_no_world(enum step step, int r)
{
	/* AppArmor lets the namespace be made, and nothing be done in it. */
	static const enum step refused[] = { STEP_NAMESPACES, STEP_ID_MAP,
					     STEP_CGROUP_NS,  STEP_LOOPBACK,
					     STEP_FUSE_OPEN,  STEP_READ_ONLY,
					     STEP_FUSE_MOUNT, STEP_PROC };
	bool known = false;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		known |= step == refused[i];
	if (r == -EPERM || r == -EACCES)
		return known;
	if (step == STEP_NAMESPACES)
		return r == -ENOSPC || r == -EUSERS || r == -EINVAL ||
		       r == -ENOSYS;
	return step == STEP_FUSE_OPEN &&
	       (r == -ENOENT || r == -ENODEV || r == -ENXIO);
}

void
wire_failed(struct wire_msg *ret_msg, int r, const struct errmsg *why)
{
	*ret_msg = (struct wire_msg){ .type = WIRE_FAILED,
				      .value = -r,
				      .step = step_current() };
	if (is_no_world(step_current(), r))
		ret_msg->flags = FAILED_NO_WORLD;
	memcpy(ret_msg->text, why->text,
	       strnlen(why->text, sizeof(ret_msg->text) - 1));
}

int
wire_send_failed(int sock, int r, const struct errmsg *why)
{
	struct wire_msg msg;

	wire_failed(&msg, r, why);
	return fd_send(sock, &msg, sizeof(msg), NULL, 0);
}

int
wire_recv_all(int sock, struct wire_msg *ret_msg, int *ret_fds,
	      size_t *ret_nfds)
{
	size_t nfds = 0;
	ssize_t n = fd_recv(sock, ret_msg, sizeof(*ret_msg), ret_fds, &nfds);

	if (n <= 0)
		return (int)n;
	if (n != sizeof(*ret_msg)) {
		while (nfds > 0)
			(void)close(ret_fds[--nfds]);
		return -EPROTO;
	}
	ret_msg->text[sizeof(ret_msg->text) - 1] = '\0';
	*ret_nfds = nfds;
	return 1;
}

int
wire_recv(int sock, struct wire_msg *ret_msg, int *ret_fd)
{
	int fds[FD_PASS_MAX];
	size_t nfds = 0;
	int r = wire_recv_all(sock, ret_msg, fds, &nfds);

	for (size_t i = 1; r > 0 && i < nfds; i++)
		(void)close(fds[i]);
	if (r > 0)
		*ret_fd = nfds > 0 ? fds[0] : -1;
	return r;
}

void
release_stdio(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= 2; i++)
		if (fd >= 0)
			(void)dup2(fd, i);
		else
			(void)close(i);
	if (fd > 2)
		(void)close(fd);
}
