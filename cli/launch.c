/* SPDX-License-Identifier: MIT */

#include "cli/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/fd.h"
#include "base/plan.h"
#include "cli/launch_priv.h"
#include "fusefs/fs.h"
#include "policy/world_plan.h"

#define HELPER_NAME  "pale-mount-helper"
#define SUMMARY_MAX  (1u << 20)
#define OPTIONS_SIZE 256

/* ---- where the programs are ---- */

static int
find_programs(char **ret_self, char **ret_helper, struct errmsg *why)
{
	_cleanup_(freep) char *self = realpath("/proc/self/exe", NULL);
	_cleanup_(freep) char *beside = NULL;
	char *slash;

	if (!self)
		return errmsg_set(why, -errno,
				  "cannot find pale's own program: %s; is "
				  "/proc mounted?",
				  strerror(errno));
	slash = strrchr(self, '/');
	if (asprintf(&beside, "%.*s/" HELPER_NAME, (int)(slash - self), self) <
	    0)
		return errmsg_set(why, -ENOMEM, "out of memory");
	if (access(beside, X_OK) < 0) {
		free(take_ptr(&beside));
		beside = strdup(LIBEXEC "/" HELPER_NAME);
		if (!beside)
			return errmsg_set(why, -ENOMEM, "out of memory");
		if (access(beside, X_OK) < 0)
			return errmsg_set(why, -errno,
					  "cannot run '%s': %s; it belongs "
					  "there or beside '%s'",
					  beside, strerror(errno), self);
	}
	*ret_self = take_ptr(&self);
	*ret_helper = take_ptr(&beside);
	return 0;
}

/* ---- the plan ---- */

static int
build_plan(const struct launch_request *request, const struct launch *launch,
	   const char *self, struct buf *ret_bytes, struct errmsg *why)
{
	_cleanup_(launch_places_fini) struct launch_places places = { 0 };
	_cleanup_(strv_fini) struct strv warden = { 0 };
	char options[OPTIONS_SIZE] = "";
	struct plan plan;
	int r;

	r = launch_places_find(request->policy, &places, why);
	if (r < 0)
		return r;
	if (strv_add(&warden, self) < 0 || strv_add(&warden, "warden") < 0 ||
	    strv_add(&warden, "--world") < 0 ||
	    strv_add(&warden, launch->world) < 0)
		return errmsg_set(why, -ENOMEM, "out of memory");
	r = fs_mount_options(getuid(), getgid(), geteuid() == 0, options,
			     sizeof(options));
	if (r < 0)
		return errmsg_set(why, r, "cannot name mount options: %s",
				  strerror(-r));

	const struct world_plan_input input = {
		.uid = getuid(),
		.gid = getgid(),
		.world = launch->world,
		.cwd = request->cwd,
		.argv = request->argv,
		.env = request->env,
		.warden = &warden,
		.console = request->console,
		.fuse_options = options,
		.own_dirs = &places.own_dirs,
		.home_upper = places.home_upper,
		.home_work = places.home_work,
		.host_mounts = &places.host_mounts,
		.resolv_conf = places.resolv_conf,
		.observe = true,
	};
	r = world_plan_build(request->policy, &input, &plan, why);
	if (r < 0)
		return r;
	r = plan_encode(&plan, ret_bytes);
	plan_fini(&plan);
	if (r < 0)
		return errmsg_set(why, r,
				  "the command line and environment are too "
				  "large: %s",
				  strerror(-r));
	return 0;
}

/* ---- starting the helper ---- */

/* Descriptors that the helper gets, with the options that name them. */
struct inheritance {
	int plan, control, policy, client;
};

static int
spawn_helper(const char *helper, const struct inheritance *fds,
	     bool require_limits, pid_t *ret_pid, struct errmsg *why)
{
	const struct {
		const char *option;
		int fd;
	} rows[] = {
		{ "--plan-fd", fds->plan },
		{ "--control-fd", fds->control },
		{ "--policy-fd", fds->policy },
		{ "--client-fd", fds->client },
	};
	_cleanup_(strv_fini) struct strv argv = { 0 };
	posix_spawn_file_actions_t actions;
	int r;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return errmsg_set(why, -ENOMEM, "out of memory");
	r = strv_add(&argv, helper);
	if (r == 0 && require_limits)
		r = strv_add(&argv, "--require-limits");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) && r == 0; i++) {
		if (rows[i].fd < 0)
			continue;
		r = strv_add(&argv, rows[i].option);
		if (r == 0)
			r = strv_addf(&argv, "%d", rows[i].fd);
		/* Onto itself: that clears close-on-exec in the child. */
		if (r == 0)
			r = -posix_spawn_file_actions_adddup2(
				&actions, rows[i].fd, rows[i].fd);
	}
	if (r == 0)
		r = -posix_spawn(ret_pid, helper, &actions, NULL, argv.items,
				 environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (r < 0)
		return errmsg_set(why, r, "cannot start '%s': %s", helper,
				  strerror(-r));
	return 0;
}

static int
memory_file(const char *name, const void *data, size_t len, int *ret_fd,
	    struct errmsg *why)
{
	int r = fd_memfile(name, data, len, ret_fd);

	if (r < 0)
		return errmsg_set(why, r, "cannot make a memory file: %s",
				  strerror(-r));
	return 0;
}

/*
 * A pair of connected descriptors: [0] stays here, [1] is inherited, and its
 * number is above the standard ones even when those are closed.
 */
static int
make_channels(struct launch *launch, bool confined, int *ret_control,
	      int *ret_client, struct errmsg *why)
{
	int pair[2], ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return errmsg_set(why, -errno, "cannot make a socket: %s",
				  strerror(errno));
	launch->control = pair[0];
	*ret_control = pair[1];
	if (!confined)
		return 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return errmsg_set(why, -errno, "cannot make a pipe: %s",
				  strerror(errno));
	launch->summary = ends[0];
	*ret_client = ends[1];
	return 0;
}

static int
start(const struct launch_request *request, struct launch *launch,
      struct errmsg *why)
{
	const struct policy *policy = request->policy;
	bool confined = policy->mode != POLICY_DANGER_FULL_ACCESS;
	_cleanup_(freep) char *self = NULL;
	_cleanup_(freep) char *helper = NULL;
	_cleanup_(freep) char *json = NULL;
	_cleanup_(buf_fini) struct buf bytes = { 0 };
	_cleanup_(closep) int plan_fd = -1, policy_fd = -1, control = -1,
			      client = -1;
	int r;

	r = find_programs(&self, &helper, why);
	if (r == 0)
		r = build_plan(request, launch, self, &bytes, why);
	if (r == 0)
		r = memory_file("pale-plan", bytes.data, bytes.len, &plan_fd,
				why);
	if (r == 0 && confined) {
		r = policy_encode(policy, &json);
		if (r < 0)
			return errmsg_set(why, r, "cannot write the policy: %s",
					  strerror(-r));
		r = memory_file("pale-policy", json, strlen(json), &policy_fd,
				why);
	}
	if (r == 0)
		r = make_channels(launch, confined, &control, &client, why);
	if (r < 0)
		return r;

	const struct inheritance fds = { plan_fd, control, policy_fd, client };

	return spawn_helper(helper, &fds, policy->require_limits,
			    &launch->helper, why);
}

int
launch_start(const struct launch_request *request, struct launch *ret_launch,
	     struct errmsg *why)
{
	struct launch launch = LAUNCH_NONE;
	int r;

	r = worlds_new_id(launch.world);
	if (r < 0)
		return errmsg_set(why, r, "cannot name the world: %s",
				  strerror(-r));
	r = start(request, &launch, why);
	if (r < 0) {
		launch_fini(&launch);
		return r;
	}
	*ret_launch = launch;
	return 0;
}

/* ---- the conversation ---- */

static int
send_order(struct launch *launch, enum wire_type type, int value,
	   uint32_t flags)
{
	const struct wire_msg msg = { .type = type,
				      .value = value,
				      .flags = flags };

	if (launch->control < 0)
		return -EPIPE;
	return fd_send(launch->control, &msg, sizeof(msg), NULL, 0);
}

int
launch_signal(struct launch *launch, int signal, bool all)
{
	return send_order(launch, WIRE_SIGNAL, signal,
			  all ? LAUNCH_SIGNAL_ALL : 0);
}

int
launch_continue(struct launch *launch)
{
	return send_order(launch, WIRE_CONTINUE, 0, 0);
}

int
launch_receive(struct launch *launch, struct wire_msg *ret_msg)
{
	int fds[FD_PASS_MAX];
	size_t nfds = 0;
	ssize_t n =
		fd_recv(launch->control, ret_msg, sizeof(*ret_msg), fds, &nfds);

	for (size_t i = 0; n > 0 && i < nfds; i++)
		(void)close(fds[i]);
	if (n == sizeof(*ret_msg)) {
		ret_msg->text[sizeof(ret_msg->text) - 1] = '\0';
		return 1;
	}
	(void)close(take_fd(&launch->control));
	return n == 0 || n == -ECONNRESET ? 0 : n < 0 ? (int)n : -EPROTO;
}

int
launch_summary(struct launch *launch, int timeout_ms, char **ret_json)
{
	int64_t end = clock_mono_ns() + timeout_ms * 1000000LL;
	_cleanup_(buf_fini) struct buf text = { 0 };
	char chunk[4096];

	if (launch->summary < 0)
		return -EPIPE;
	for (;;) {
		struct pollfd one = { .fd = launch->summary, .events = POLLIN };
		int64_t left = (end - clock_mono_ns()) / 1000000;
		ssize_t n;

		if (left <= 0 || poll(&one, 1, (int)left) == 0)
			return -ETIMEDOUT;
		n = read(launch->summary, chunk, sizeof(chunk));
		if (n <= 0)
			break;
		buf_put(&text, chunk, (size_t)n);
		if (chunk[n - 1] == '\n' || text.len > SUMMARY_MAX)
			break;
	}
	if (text.len == 0 || text.data[text.len - 1] != '\n') {
		struct errmsg why;

		(void)worlds_reap(launch->world, &why);
		return -EPIPE;
	}
	text.data[text.len - 1] = '\0';
	*ret_json = (char *)take_ptr(&text.data);
	return 0;
}

void
launch_fini(struct launch *launch)
{
	closep(&launch->control);
	closep(&launch->summary);
	launch->control = launch->summary = -1;
}
