/* SPDX-License-Identifier: MIT */

#include "mount-helper/listener.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* More than may ever wait at once; the rest is killed while it waits. */
#define RELEASES_MAX 4096

void
listener_release(int listener)
{
	for (int i = 0; i < RELEASES_MAX; i++) {
		struct pollfd one = { .fd = listener, .events = POLLIN };
		struct seccomp_notif request;
		struct seccomp_notif_resp response;

		if (poll(&one, 1, 0) <= 0 || !(one.revents & POLLIN))
			return;
		memset(&request, 0, sizeof(request));
		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
			return;
		memset(&response, 0, sizeof(response));
		response.id = request.id;
		if (request.data.nr == SYS_connect)
			response.error = -EACCES;
		else
			response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
	}
}
