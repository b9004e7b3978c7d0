/* SPDX-License-Identifier: MIT */

#include "cli/host_keeper.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/errmsg.h"
#include "base/fd.h"
#include "base/hostmount.h"
#include "base/json.h"
#include "base/strv.h"
#include "base/wire.h"
#include "cli/client.h"
#include "cli/worlds.h"
#include "fusefs/fs.h"

/* How long a standing world may take to serve, and to end. */
#define ATTACH_MS    30000
#define WORLD_END_MS 10000

/* The keeper's last word to the guard: nothing is left to be done. */
#define GUARD_DONE 'x'

struct keeper {
	const struct keeper_plan *plan;
	struct rpc_client *client; /* to a standing world; NULL: a warden */
	int world;		   /* our ends of the two pairs */
	int warden;
	int status_fd; /* −1: nobody listens any more */
	pid_t pid;     /* of the warden */
	int guard;     /* the pipe to it; the warden holds it as well */
	int place;     /* O_PATH: the directory that is mounted over */
	dev_t dev;     /* of the mount */
	bool mounted;
	bool world_ends;       /* the standing world itself */
	bool done;	       /* the warden said that all is on record */
	struct errmsg failure; /* why it ended by itself; "": it did not */
};

static volatile sig_atomic_t term_asked;

static void
on_term(int signum)
{
	(void)signum;
	term_asked = 1;
}

/* What the caller had open stays the caller's. */
static void
close_others(const struct keeper_plan *plan)
{
	int low = plan->policy_fd, high = plan->status_fd;

	if (low > high) {
		low = plan->status_fd;
		high = plan->policy_fd;
	}
	for (int fd = 3; fd < high; fd++)
		if (fd != low)
			(void)close(fd);
	(void)fd_close_from(high + 1);
}

/*
 * A session of its own, so that no ^C of the caller's shell ends the mount;
 * another name than pale's, so that `killall pale` leaves one to tidy up.
 */
static void
set_apart(const struct keeper_plan *plan, const sigset_t *blocked)
{
	const struct sigaction action = { .sa_handler = on_term };
	int null;

	close_others(plan);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "mount-keeper");
	(void)sigprocmask(SIG_SETMASK, blocked, NULL);
	(void)sigaction(SIGTERM, &action, NULL);
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		(void)dup2(null, fd);
	closep(&null);
	if (chdir("/") < 0 || !plan->foreground)
		return;
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() == 1)
		term_asked = 1;
}

static void
tell(struct keeper *keeper, const char *text)
{
	if (keeper->status_fd >= 0)
		(void)fd_write_all(keeper->status_fd, text, strlen(text));
}

static void
hang_up(struct keeper *keeper)
{
	closep(&keeper->status_fd);
	keeper->status_fd = -1;
}

/*
 * Where the mount is: what is mounted over has its name at any time, also when
 * the host renames something above it.
 */
static void
current_place(const struct keeper_plan *plan, int place,
	      char ret_path[PATH_MAX])
{
	if (fd_path(place, ret_path) < 0)
		(void)snprintf(ret_path, PATH_MAX, "%s", plan->mountpoint);
}

/* ---- the guard ---- */

/* Until both writers are gone; what it was told is the mount's device. */
static void
guard_run(const struct keeper_plan *plan, int from, int place)
{
	int keep[] = { from, place };
	char path[PATH_MAX];
	dev_t dev;

	char word = 0;

	(void)prctl(PR_SET_NAME, "mount-guard");
	(void)signal(SIGTERM, SIG_IGN);
	if (fd_close_others(3, keep, 2) < 0 ||
	    fd_read_all(from, &dev, sizeof(dev)) != sizeof(dev))
		return;
	while (fd_read_all(from, &word, 1) > 0)
		if (word == GUARD_DONE)
			return;
	current_place(plan, place, path);
	/* A standing world's warden may live, and go on to serve for a while. */
	if (plan->world_dir)
		(void)hostmount_detach(path, dev, NULL);
	else
		(void)hostmount_bury(path, dev, NULL);
}

static int
start_guard(struct keeper *keeper)
{
	int pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		guard_run(keeper->plan, pair[0], keeper->place);
		_exit(0);
	}
	(void)close(pair[0]);
	keeper->guard = pair[1];
	return pid < 0 ? -errno : 0;
}

/* ---- the warden ---- */

static int
warden_argv(const struct keeper *keeper, int world, int warden,
	    struct strv *argv)
{
	const struct keeper_plan *plan = keeper->plan;
	int r;

	r = strv_add(argv, "pale");
	if (r == 0)
		r = strv_add(argv, "warden");
	if (r == 0)
		r = strv_addf(argv, "--policy-fd=%d", plan->policy_fd);
	if (r == 0)
		r = strv_addf(argv, "--world-fd=%d", world);
	if (r == 0)
		r = strv_addf(argv, "--keeper-fd=%d", warden);
	if (r == 0)
		r = strv_addf(argv, "--guard-fd=%d", keeper->guard);
	if (r == 0)
		r = strv_addf(argv, "--world=%s", plan->world);
	if (r == 0)
		r = strv_addf(argv, "--mountpoint=%s", plan->mountpoint);
	if (r == 0 && plan->own_mounts)
		r = strv_add(argv, "--own-mounts");
	return r;
}

static void
exec_warden(char **argv, const int *kept, size_t n)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)signal(SIGTERM, SIG_DFL);
	for (size_t i = 0; i < n; i++)
		(void)fcntl(kept[i], F_SETFD, 0);
	(void)execv("/proc/self/exe", argv);
	_exit(127);
}

static int
start_warden(struct keeper *keeper)
{
	_cleanup_(strv_fini) struct strv argv = { 0 };
	int world[2], warden[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, world) < 0)
		return -errno;
	keeper->world = world[0];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, warden) < 0) {
		(void)close(world[1]);
		return -errno;
	}
	keeper->warden = warden[0];

	const int kept[] = { keeper->plan->policy_fd, world[1], warden[1],
			     keeper->guard };
	int r = warden_argv(keeper, world[1], warden[1], &argv);

	if (r == 0) {
		keeper->pid = fork();
		if (keeper->pid == 0)
			exec_warden(argv.items, kept, 4);
		r = keeper->pid < 0 ? -errno : 0;
	}
	(void)close(world[1]);
	(void)close(warden[1]);
	return r;
}

/*
 * The next record from the socket `from`; whatever the warden says of its own
 * failure goes before.  -ECONNRESET: it died.
 */
static int
await(struct keeper *keeper, int from, enum wire_type wanted,
      struct errmsg *why)
{
	struct pollfd polled[2] = {
		{ .fd = keeper->warden, .events = POLLIN },
		{ .fd = from, .events = POLLIN },
	};
	int fds[FD_PASS_MAX];
	struct wire_msg msg;
	size_t nfds;
	ssize_t n;

	for (;;) {
		if (poll(polled, 2, -1) < 0 && errno == EINTR)
			continue;
		n = fd_recv(polled[0].revents ? keeper->warden : from, &msg,
			    sizeof(msg), fds, &nfds);
		if (n != sizeof(msg))
			return errmsg_set(why, -ECONNRESET,
					  "the warden died while starting");
		while (nfds > 0)
			(void)close(fds[--nfds]);
		if (msg.type == wanted)
			return 0;
		if (msg.type != WIRE_FAILED)
			continue;
		msg.text[sizeof(msg.text) - 1] = '\0';
		return errmsg_set(why, -msg.value, "%s", msg.text);
	}
}

/* ---- the mount ---- */

static int
make_mount(struct keeper *keeper, int *ret_fuse_fd, struct errmsg *why)
{
	char options[256];
	const struct hostmount_spec spec = {
		.source = keeper->plan->workspace,
		.mountpoint = keeper->plan->mountpoint,
		.options = options,
	};
	int r;

	r = fs_mount_options(geteuid(), getegid(), geteuid() == 0, options,
			     sizeof(options));
	if (r < 0)
		return errmsg_set(why, r, "mount options: %s", strerror(-r));
	r = hostmount_make(&spec, &keeper->dev, ret_fuse_fd, why);
	if (r < 0)
		return r;
	keeper->mounted = true;
	(void)fd_write_all(keeper->guard, &keeper->dev, sizeof(keeper->dev));
	return 0;
}

static int
hand_mount(struct keeper *keeper, struct errmsg *why)
{
	_cleanup_(closep) int fuse_fd = -1;
	struct wire_msg msg = { .type = WIRE_FUSE };
	int r = make_mount(keeper, &fuse_fd, why);

	if (r < 0)
		return r;
	msg.id = keeper->dev;
	r = fd_send(keeper->world, &msg, sizeof(msg), &fuse_fd, 1);
	return r < 0 ? errmsg_set(why, r, "the warden died while starting") : 0;
}

/* ---- to a warden that is there already ---- */

static int
attach(struct keeper *keeper, struct errmsg *why)
{
	_cleanup_(buf_fini) struct buf params = { 0 };
	_cleanup_(closep) int fuse_fd = -1;
	uint64_t request;
	int r;

	r = rpc_client_open(keeper->plan->world_dir, RPC_OPERATOR,
			    &keeper->client, why);
	if (r < 0)
		return r;
	jsonw_begin(&params, '{');
	jsonw_pair(&params, "mountpoint", keeper->plan->mountpoint);
	jsonw_end(&params, '}');
	r = rpc_client_call(keeper->client, RPC_WORLD_MOUNT, &params, ATTACH_MS,
			    NULL, why);
	if (r == 0)
		r = make_mount(keeper, &fuse_fd, why);
	if (r < 0)
		return r;

	const int fds[] = { fuse_fd, keeper->guard };

	r = rpc_client_send(keeper->client, RPC_WORLD_SERVE, NULL, fds, 2,
			    &request);
	if (r < 0)
		return errmsg_set(why, r, "the world has gone: %s",
				  strerror(-r));
	return rpc_client_await(keeper->client, RPC_WORLD_SERVE, ATTACH_MS,
				NULL, why);
}

/* ---- the life ---- */

static int
start_own(struct keeper *keeper, struct errmsg *why)
{
	int r = start_warden(keeper);

	if (r < 0)
		return errmsg_set(why, r, "cannot start the warden: %s",
				  strerror(-r));
	/* It has opened the workspace: now that may be covered. */
	r = await(keeper, keeper->world, WIRE_READY, why);
	if (r == 0)
		r = hand_mount(keeper, why);
	if (r == 0)
		r = await(keeper, keeper->warden, WIRE_SERVING, why);
	closep(&keeper->world);
	keeper->world = -1;
	return r;
}

static int
start(struct keeper *keeper, struct errmsg *why)
{
	int r;

	keeper->place = open(keeper->plan->mountpoint,
			     O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = keeper->place < 0 ? -errno : start_guard(keeper);
	if (r < 0)
		return errmsg_set(why, r, "cannot watch over the mount: %s",
				  strerror(-r));
	r = keeper->plan->world_dir ? attach(keeper, why)
				    : start_own(keeper, why);
	if (r < 0)
		return r;
	tell(keeper, "+");
	/* In the foreground somebody waits for the end, and its reason. */
	if (!keeper->plan->foreground)
		hang_up(keeper);
	return 0;
}

/*
 * Asked to take the mount away.  What is in use is detached all the same, and
 * the warden told not to wait for the last of its users, nor for the last
 * world that has a copy of the mount.
 */
static void
take_away(struct keeper *keeper)
{
	const struct wire_msg msg = { .type = WIRE_ENDED };
	char mountpoint[PATH_MAX], type[64];
	dev_t found = 0;

	current_place(keeper->plan, keeper->place, mountpoint);
	if (hostmount_find(mountpoint, &found, type, sizeof(type)) < 0 ||
	    found != keeper->dev ||
	    hostmount_remove(mountpoint, false, NULL) < 0)
		(void)hostmount_detach(mountpoint, keeper->dev, NULL);
	if (keeper->warden >= 0)
		(void)fd_send(keeper->warden, &msg, sizeof(msg), NULL, 0);
}

/* Until the warden is gone. */
static void
keep(struct keeper *keeper, const sigset_t *unblocked)
{
	struct pollfd polled = { .fd = keeper->warden, .events = POLLIN };
	int fds[FD_PASS_MAX];
	struct wire_msg msg;
	size_t nfds;
	ssize_t n;

	for (;;) {
		if (term_asked) {
			term_asked = 0;
			take_away(keeper);
		}
		if (ppoll(&polled, 1, NULL, unblocked) < 0)
			continue;
		n = fd_recv(keeper->warden, &msg, sizeof(msg), fds, &nfds);
		if (n <= 0)
			return;
		while (nfds > 0)
			(void)close(fds[--nfds]);
		if (msg.type == WIRE_FAILED && n == sizeof(msg)) {
			msg.text[sizeof(msg.text) - 1] = '\0';
			(void)errmsg_set(&keeper->failure, 0, "%s", msg.text);
		}
		if (msg.type == WIRE_ENDED || msg.type == WIRE_FAILED)
			take_away(keeper);
		keeper->done |= msg.type == WIRE_DONE;
	}
}

static void
take_reason(struct keeper *keeper, const json_t *params)
{
	const char *reason =
		json_string_value(json_object_get(params, "reason"));

	keeper->world_ends = true;

	if (reason && json_is_true(json_object_get(params, "failed")))
		(void)errmsg_set(&keeper->failure, 0, "%s", reason);
}

/* False: the mount has ended, or the world. */
static bool
listen_to_world(struct keeper *keeper)
{
	struct rpc_message message = { 0 };
	bool ended = false;
	int r;

	while (!ended &&
	       (r = rpc_client_next(keeper->client, 0, &message)) > 0) {
		ended = message.name &&
			strcmp(message.name, "mount.ended") == 0;
		if (message.name && strcmp(message.name, "world.ended") == 0)
			take_reason(keeper, message.params);
		rpc_message_fini(&message);
	}
	return !ended && r == 0;
}

/* The same for a face of a standing world: until the mount is gone. */
static void
keep_attached(struct keeper *keeper, const sigset_t *unblocked)
{
	struct pollfd polled = { .fd = rpc_client_socket(keeper->client),
				 .events = POLLIN };

	while (listen_to_world(keeper)) {
		if (term_asked) {
			term_asked = 0;
			take_away(keeper);
		}
		(void)ppoll(&polled, 1, NULL, unblocked);
	}
	take_away(keeper);
	(void)fd_write_all(keeper->guard, &(char){ GUARD_DONE }, 1);
	keeper->mounted = false;
	if (keeper->world_ends)
		(void)worlds_await_end(keeper->plan->world_dir, WORLD_END_MS);
}

static void
tidy(struct keeper *keeper)
{
	char mountpoint[PATH_MAX];

	current_place(keeper->plan, keeper->place, mountpoint);
	closep(&keeper->warden);
	closep(&keeper->world);
	keeper->client = rpc_client_close(keeper->client);
	if (keeper->pid > 0)
		(void)waitpid(keeper->pid, NULL, 0);
	if (keeper->mounted)
		(void)hostmount_bury(mountpoint, keeper->dev, NULL);
	closep(&keeper->place);
	if (!keeper->done && !keeper->plan->world_dir)
		(void)worlds_reap(keeper->plan->world, NULL);
}

int
host_keeper_run(const struct keeper_plan *plan)
{
	struct keeper keeper = { .plan = plan,
				 .world = -1,
				 .warden = -1,
				 .status_fd = plan->status_fd,
				 .guard = -1,
				 .place = -1 };
	struct errmsg why = { "" };
	sigset_t blocked, unblocked;
	int r;

	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigemptyset(&unblocked);
	set_apart(plan, &blocked);
	r = start(&keeper, &why);
	if (r == 0 && plan->world_dir)
		keep_attached(&keeper, &unblocked);
	else if (r == 0)
		keep(&keeper, &unblocked);
	tidy(&keeper);
	/* After tidying: who sees the failure finds nothing left of it. */
	tell(&keeper, r < 0 ? why.text : keeper.failure.text);
	hang_up(&keeper);
	return r < 0;
}
