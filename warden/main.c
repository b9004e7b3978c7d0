/* SPDX-License-Identifier: MIT */

/*
 * From the command line to serving, and back.  A command waits for the first
 * half, so nothing is done there that can be done later: the roots are opened
 * while the mounter still builds the world, the loop's socket is made once
 * the mount serves.
 */

#include "warden/warden.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/limits.h"
#include "policy/rules.h"
#include "warden/life.h"
#include "warden/own_mounts.h"
#include "warden/spawn.h"
#include "warden/tree.h"
#include "warden/warden_priv.h"

/*
 * Nobody may look into the process that holds the fence, and whatever memory
 * there is, it goes to the world last: a dead warden is everybody's ENOTCONN.
 */
static void
harden(void)
{
	struct rlimit files, none = { 0, 0 };
	int fd;

	(void)setsid();
	(void)umask(077);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)setrlimit(RLIMIT_CORE, &none);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}

	if (geteuid() == 0) {
		fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			(void)fd_write_all(fd, "-1000", 5);
			(void)close(fd);
		}
	}
	(void)prctl(PR_SET_NAME, "pale-warden");
	/* Last: /proc/self belongs to root from here on. */
	(void)prctl(PR_SET_DUMPABLE, 0);
}

static struct policy *inherited;

void
warden_inherit(struct policy *policy)
{
	inherited = policy;
}

static int
read_policy(struct warden *warden, struct errmsg *why)
{
	_cleanup_(freep) char *json = NULL;
	size_t len;
	int r;

	if (warden->opt.policy_here && inherited) {
		warden->policy = policy_ref(inherited);
		return 0;
	}
	r = fd_read_file(warden->opt.policy_fd, LIMIT_PLAN_BYTES, &json, &len);
	if (r < 0)
		return errmsg_set(why, r, "cannot read the policy: %s",
				  strerror(-r));
	return policy_decode(json, len, &warden->policy, why);
}

static int
load_policy(struct warden *warden, struct errmsg *why)
{
	int r = read_policy(warden, why);

	if (r < 0 || !warden->opt.standing)
		return r;
	r = policy_digest(warden->policy, warden->digest);
	return r < 0 ? errmsg_set(why, r, "out of memory") : 0;
}

static void
on_new_denials(void *data)
{
	struct warden *warden = data;

	warden_record_start(warden);
	atomic_store(&warden->new_denials, true);
	(void)uv_async_send(&warden->wake);
}

static void
on_fs_ended(void *data)
{
	struct warden *warden = data;

	atomic_store(&warden->fs_ended, true);
	(void)uv_async_send(&warden->wake);
}

static bool
attribute(void *data, pid_t pid, char **ret_origin, char **ret_call)
{
	return spawn_attribute(data, pid, ret_origin, ret_call);
}

static int
open_denials(struct warden *warden, struct errmsg *why)
{
	const struct denials_config config = {
		.dir = warden->places.state_world,
		.db_path = warden->places.db,
		.call = warden->opt.call,
		.session = warden->policy->session,
		.world = warden->opt.world,
		.notify = on_new_denials,
		.attribute = warden->opt.standing ? attribute : NULL,
		.data = warden,
	};

	return denials_open(&config, &warden->denials, why);
}

/* The usher is in the world; its socket is the observer's to read. */
static int
ask_echo(void *data, int sock)
{
	const struct wire_msg msg = { .type = WIRE_ECHO };
	struct warden *warden = data;

	return fd_send(warden->opt.world_fd, &msg, sizeof(msg), &sock, 1);
}

int
warden_open_fs(struct warden *warden, const struct warden_fs *how,
	       struct fs **ret_fs, struct errmsg *why)
{
	_cleanup_(policy_unrefp) struct policy *policy =
		warden_policy_get(warden);
	const char *const own_dirs[] = { warden->places.runtime,
					 warden->places.state,
					 warden->places.config, NULL };
	const struct fs_config config = {
		.policy = policy,
		.denials = warden->denials,
		.ended = how->ended,
		.data = how->data,
		.origin = how->origin,
		.helper_pid = how->helper_pid,
		.multi_uid = geteuid() == 0,
		.host_visible = how->host_visible,
		.passthrough = warden->opt.passthrough,
		.tree = warden_tree_served(warden->tree),
		.own_dirs = own_dirs,
		.echo_ask = how->host_visible ? NULL : ask_echo,
		.echo_data = warden,
	};

	return fs_new(&config, ret_fs, why);
}

/*
 * Opens the roots.  The mounter's pid is known only with its descriptor, and
 * matters only where it looks further roots up.
 */
static int
open_roots(struct warden *warden, pid_t helper_pid, struct errmsg *why)
{
	const struct warden_fs how = {
		.origin = warden->opt.mountpoint ? "mount" : "run",
		.host_visible = warden->opt.mountpoint != NULL,
		.helper_pid = helper_pid,
		.ended = on_fs_ended,
		.data = warden,
	};

	return warden_open_fs(warden, &how, &warden->fs, why);
}

static bool
has_further_roots(const struct policy *policy)
{
	for (size_t i = 1; i < policy->n_roots; i++)
		if (policy->roots[i].kind == POLICY_ROOT_GIT)
			return true;
	return false;
}

/* The descriptor of the mount, or -ECONNRESET when the keeper gave up. */
static int
await_fuse(struct warden *warden, int *ret_fd, pid_t *ret_pid)
{
	struct pollfd polled[2] = {
		{ .fd = warden->opt.world_fd, .events = POLLIN },
		{ .fd = warden->opt.keeper_fd, .events = POLLIN },
	};

	for (;;) {
		struct wire_msg msg;
		int fds[FD_PASS_MAX];
		size_t nfds;
		ssize_t n;

		if (poll(polled, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (polled[1].revents)
			return -ECONNRESET;
		n = fd_recv(warden->opt.world_fd, &msg, sizeof(msg), fds,
			    &nfds);
		if (n <= 0)
			return n < 0 ? (int)n : -ECONNRESET;
		if (n == sizeof(msg) && msg.type == WIRE_FUSE && nfds == 1) {
			*ret_fd = fds[0];
			*ret_pid = msg.pid;
			warden->mount_dev = (dev_t)msg.id;
			return 0;
		}
		while (nfds > 0)
			(void)close(fds[--nfds]);
	}
}

static int
take_mount(struct warden *warden, struct errmsg *why)
{
	bool early = !has_further_roots(warden->policy);
	pid_t helper = 0;
	int fuse_fd = -1, r;

	if (early) {
		r = open_roots(warden, 0, why);
		if (r < 0)
			return r;
	}
	if (warden->opt.mountpoint) {
		r = life_send(warden->opt.world_fd, WIRE_READY);
		if (r < 0)
			return r;
	}
	/* The helper makes the mount meanwhile. */
	(void)rules_root(warden->policy->rules);
	r = await_fuse(warden, &fuse_fd, &helper);
	if (r < 0)
		return errmsg_set(why, r, "no mount came to be served: %s",
				  strerror(-r));
	if (!early) {
		r = open_roots(warden, helper, why);
		if (r < 0) {
			(void)close(fuse_fd);
			return r;
		}
	}
	/* What inmates create has their modes, not ours. */
	(void)umask(0);
	return fs_start(warden->fs, fuse_fd, why);
}

static int
open_log(struct warden *warden)
{
	char path[4096];

	if (snprintf(path, sizeof(path), "%s/warden.log",
		     warden->places.state_world) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return log_new(path, &warden->log);
}

/* The socket and the directory by which others find this world. */
static int
go_public(struct warden *warden, struct errmsg *why)
{
	int fd = -1, r = 0;

	if (warden->world_dir_fd < 0)
		r = world_dir_make(warden, why);
	if (r == 0)
		r = world_dir_listen(warden, &fd, why);
	if (r < 0)
		return r;
	r = world_dir_describe(warden);
	if (r < 0) {
		(void)close(fd);
		return errmsg_set(why, r, "cannot write in '%s': %s",
				  warden->places.runtime_world, strerror(-r));
	}
	r = server_start(warden, fd, &warden->server);
	return r < 0 ? errmsg_set(why, r, "socket: %s", strerror(-r)) : 0;
}

static int
start(struct warden *warden, struct errmsg *why)
{
	int r;

	r = load_policy(warden, why);
	if (r < 0)
		return r;
	r = warden_places_init(&warden->places, &warden->opt, why);
	if (r < 0)
		return r;
	r = open_log(warden);
	if (r < 0)
		return errmsg_set(why, r, "log: %s", strerror(-r));
	if (warden->places.state_is_runtime) {
		r = world_dir_make(warden, why);
		if (r < 0)
			return r;
	}
	r = open_denials(warden, why);
	if (r < 0)
		return r;
	r = warden_tree_new(warden, &warden->tree);
	if (r < 0)
		return errmsg_set(why, r, "control tree: %s", strerror(-r));
	r = watch_open(&warden->watch, warden->policy->roots[0].path, why);
	if (r < 0)
		return r;
	/* Landlock alone, or no fence: nobody sends a mount. */
	return warden->policy->landlock ||
			       warden->policy->mode == POLICY_DANGER_FULL_ACCESS
		       ? 0
		       : take_mount(warden, why);
}

/*
 * A run needs no socket to be fenced: a world that cannot be found is told in
 * the log.  A mount that cannot be found could not be taken away, and a
 * standing world would be of no use.
 */
static int
serve(struct warden *warden, struct errmsg *why)
{
	bool found_first = warden->opt.mountpoint || warden->opt.standing;
	int r = 0;

	if (found_first) {
		r = go_public(warden, why);
		if (r < 0)
			return r;
	}
	r = life_watch(warden);
	if (r == 0 && warden->opt.standing)
		r = idle_start(warden);
	if (r < 0)
		return errmsg_set(why, r, "event loop: %s", strerror(-r));
	/* What happened while the world was made, before anything runs in it. */
	r = watch_check(&warden->watch, why);
	if (r < 0)
		return r;
	r = life_send(warden->opt.keeper_fd, WIRE_SERVING);
	if (r < 0)
		return errmsg_set(why, r, "the keeper is gone");
	if (!found_first && go_public(warden, why) < 0)
		log_line(warden->log, LOG_ERROR, "%s", why->text);
	(void)uv_run(&warden->loop, UV_RUN_DEFAULT);
	return 0;
}

int
warden_main(int argc, char **argv)
{
	struct warden warden = { .world_dir_fd = -1,
				 .watch = WATCH_NONE,
				 .world_flags = UINT32_MAX, /* until told */
				 .started_ns = clock_real_ns() };
	struct errmsg why = { "" };
	int r;

	r = warden_options_parse(argc, argv, &warden.opt, &why);
	if (r < 0) {
		(void)dprintf(STDERR_FILENO, "pale: %s\n", why.text);
		return 125;
	}
	r = warden.opt.own_mounts ? own_mounts_enter(&why) : 0;
	harden();
	/* Not to keep the caller's directory busy. */
	if (r == 0 && chdir("/") < 0)
		r = errmsg_set(&why, -errno, "chdir /: %s", strerror(errno));
	if (r == 0)
		r = life_init(&warden, &why);
	if (r < 0) {
		life_send_failure(warden.opt.keeper_fd, r, &why);
		return 125;
	}
	r = start(&warden, &why);
	if (r == 0)
		r = serve(&warden, &why);
	if (r < 0) {
		life_send_failure(warden.opt.keeper_fd, r, &why);
		/* The watches stand; let them close. */
		warden_end(&warden, why.text);
	}
	life_finish(&warden, r == 0);
	return r < 0 ? 125 : 0;
}
