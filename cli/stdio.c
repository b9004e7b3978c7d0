/* SPDX-License-Identifier: MIT */

/*
 * pale stdio: the standing world's socket on stdin and stdout, so that
 * `ssh HOST pale stdio` speaks to a world there.
 *
 * Bytes are carried as they are.  Each direction ends for itself: what is still
 * on its way when stdin ends is answered, then the world closes.
 */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/cli.h"
#include "cli/standing.h"

struct stdio_options {
	struct cli_common common;
	struct cli_policy_options policy;
	const char *world;
};

static const struct cli_option stdio_rows[] = {
	{ "world", 0, CLI_STRING, offsetof(struct stdio_options, world),
	  "WORLD", "this standing world: an id, or a workspace", NULL },
	CLI_END,
};

static const struct cli_usage stdio_usage = {
	.command = "stdio",
	.synopsis = "[options]",
	.about = "Speaks the protocol of the standing world of this workspace "
		 "and session, which is\nmade when there is none, on stdin and "
		 "stdout.",
	.usage_status = 2,
};

/* Copies what is there; 0 at the end, negative when the other side is gone. */
static ssize_t
carry(int from, int to)
{
	char bytes[64 * 1024];
	ssize_t n = read(from, bytes, sizeof(bytes));
	int r;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : -errno;
	r = fd_write_all(to, bytes, (size_t)n);
	return r < 0 ? r : n;
}

static int
carry_both(int sock)
{
	struct pollfd polls[2] = { { .fd = sock, .events = POLLIN },
				   { .fd = STDIN_FILENO, .events = POLLIN } };
	ssize_t n = 1;

	while (n > 0) {
		if (poll(polls, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (polls[0].revents)
			n = carry(sock, STDOUT_FILENO);
		if (n <= 0 || !polls[1].revents)
			continue;
		if (carry(STDIN_FILENO, sock) <= 0) {
			polls[1].fd = -1;
			(void)shutdown(sock, SHUT_WR);
		}
	}
	return (int)n;
}

int
cmd_stdio(int argc, char **argv)
{
	struct stdio_options options = { .policy = CLI_POLICY_INIT };
	const struct cli_group groups[] = {
		{ stdio_rows, &options },
		{ cli_policy_options, &options.policy },
		{ cli_common_options, &options.common },
		{ NULL, NULL },
	};
	struct standing standing = { .sock = -1 };
	struct standing_request request = { .make = true };
	struct errmsg why = { "" };
	int first, status;

	if (cli_parse(&stdio_usage, groups, argc, argv, &first, &status)) {
		request.request = &options.policy.request;
		request.world = options.world;
		(void)signal(SIGPIPE, SIG_IGN);
		status = standing_open(&request, &standing, &why) < 0 ||
			 carry_both(standing.sock) < 0;
		if (why.text[0])
			cli_error("%s", why.text);
	}
	standing_fini(&standing);
	cli_policy_fini(&options.policy);
	return status;
}
