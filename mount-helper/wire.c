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

int
wire_send_failed(int sock, int r, const struct errmsg *why)
{
	struct wire_msg msg = { .type = WIRE_FAILED,
				.value = -r,
				.step = step_current() };
	size_t len = strlen(why->text);

	if (len >= sizeof(msg.text))
		len = sizeof(msg.text) - 1;
	memcpy(msg.text, why->text, len);
	return fd_send(sock, &msg, sizeof(msg), NULL, 0);
}

int
wire_recv(int sock, struct wire_msg *ret_msg, int *ret_fd)
{
	int fds[FD_PASS_MAX];
	size_t nfds = 0;
	ssize_t n = fd_recv(sock, ret_msg, sizeof(*ret_msg), fds, &nfds);

	if (n <= 0)
		return (int)n;
	for (size_t i = 1; i < nfds; i++)
		(void)close(fds[i]);
	if (n != sizeof(*ret_msg)) {
		if (nfds > 0)
			(void)close(fds[0]);
		return -EPROTO;
	}
	ret_msg->text[sizeof(ret_msg->text) - 1] = '\0';
	*ret_fd = nfds > 0 ? fds[0] : -1;
	return 1;
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
