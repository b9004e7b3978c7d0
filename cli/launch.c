/* SPDX-License-Identifier: MIT */

#include "cli/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

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

int
launch_helper(char **ret_helper, struct errmsg *why)
{
	_cleanup_(freep) char *self = realpath("/proc/self/exe", NULL);
	_cleanup_(freep) char *helper = NULL;
	char *slash;

	if (!self)
		return errmsg_set(why, -errno,
				  "cannot find pale's own program: %s; is "
				  "/proc mounted?",
				  strerror(errno));
	slash = strrchr(self, '/');
	if (asprintf(&helper, "%.*s/" HELPER_NAME, (int)(slash - self), self) <
	    0)
		return errmsg_set(why, -ENOMEM, "out of memory");
	if (access(helper, X_OK) < 0) {
		free(take_ptr(&helper));
		helper = strdup(LIBEXEC "/" HELPER_NAME);
		if (!helper)
			return errmsg_set(why, -ENOMEM, "out of memory");
		if (access(helper, X_OK) < 0)
			return errmsg_set(why, -errno,
					  "cannot run '%s': %s; it belongs "
					  "there or beside '%s'",
					  helper, strerror(errno), self);
	}
	*ret_helper = take_ptr(&helper);
	return 0;
}

/* ---- the plan ---- */

static int
build_plan(const struct launch_request *request, const struct launch *launch,
	   struct buf *ret_bytes, struct errmsg *why)
{
	_cleanup_(launch_places_fini) struct launch_places places = { 0 };
	char options[OPTIONS_SIZE] = "";
	struct plan plan;
	int r;

	r = launch_places_find(request->policy, &places, why);
	if (r < 0)
		return r;
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
		.console = request->console,
		.fuse_options = options,
		.own_dirs = &places.own_dirs,
		.home_upper = places.home_upper,
		.home_work = places.home_work,
		.host_mounts = &places.host_mounts,
		.resolv_conf = places.resolv_conf,
		.observe = true,
		.standing = request->standing,
		.tree = true,
		.temp = request->temp,
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

/* ---- starting ---- */

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

static int
start(const struct launch_request *request, struct launch *launch,
      struct errmsg *why)
{
	const struct policy *policy = request->policy;
	bool confined = policy->mode != POLICY_DANGER_FULL_ACCESS;
	_cleanup_(freep) char *helper = NULL;
	_cleanup_(buf_fini) struct buf bytes = { 0 };
	_cleanup_(launch_child_fini) struct launch_child child =
		LAUNCH_CHILD_NONE;
	int r;

	r = launch_helper(&helper, why);
	if (r == 0)
		r = build_plan(request, launch, &bytes, why);
	if (r == 0)
		r = memory_file("pale-plan", bytes.data, bytes.len, &child.plan,
				why);
	if (r < 0)
		return r;
	child.helper = helper;
	child.policy = policy;
	child.world_id = launch->world;
	child.call = request->call;
	child.has_warden = confined || request->standing;
	child.require_limits = policy->require_limits;
	child.require_full = policy->require_full;
	child.standing = request->standing;
	child.passthrough = request->passthrough;
	child.for_mount = request->for_mount;
	child.idle_ms = request->idle_ms;
	r = launch_child_start(&child, launch, why);
	return r;
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
	return n == 0 ? 0 : n < 0 ? (int)n : -EPROTO;
}

int
launch_await_standing(struct launch *launch, struct errmsg *why)
{
	struct wire_msg msg;
	int r;

	do
		r = launch_receive(launch, &msg);
	while (r > 0 && msg.type != WIRE_STARTED && msg.type != WIRE_FAILED);
	if (r > 0 && msg.type == WIRE_STARTED)
		return 0;
	if (r > 0)
		launch->no_world = msg.flags & LAUNCH_NO_WORLD;
	if (r > 0)
		return errmsg_set(why, msg.value ? -msg.value : -EIO, "%s",
				  msg.text);
	return errmsg_set(why, -EPIPE,
			  "the world's keeper has died, and the world with it");
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
		int left_ms = clock_left_ms(end);
		ssize_t n;

		if (left_ms == 0 || poll(&one, 1, left_ms) == 0)
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
