/* SPDX-License-Identifier: MIT */

#include "cli/host_world.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/dirs.h"
#include "base/fd.h"
#include "base/hostmount.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/host_keeper.h"
#include "cli/launch.h"
#include "cli/standing.h"
#include "cli/worlds.h"

#define STOP_MS 5000

/* ---- what cannot work is refused before anything is made ---- */

/*
 * The warden opens its records and socket by path: under the mount they would
 * be asked of the warden itself.
 */
static int
check_own_dirs(const char *mountpoint, struct errmsg *why)
{
	int (*const dirs[])(char **) = { dirs_state, dirs_runtime,
					 dirs_config };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		_cleanup_(freep) char *path = NULL;
		_cleanup_(freep) char *real = NULL;

		if (dirs[i](&path) < 0)
			return errmsg_set(why, -ENOMEM, "out of memory");
		real = realpath(path, NULL);
		if (path_is_in(real ? real : path, mountpoint, NULL))
			return errmsg_set(why, -EINVAL,
					  "a mount on '%s' would cover pale's "
					  "own directory '%s'; choose another "
					  "mount point",
					  mountpoint, real ? real : path);
	}
	return 0;
}

/* A dead mount of ours in the way is what the last crash left: off with it. */
static int
check_occupied(const char *mountpoint, struct errmsg *why)
{
	char type[64];
	dev_t dev;

	if (hostmount_find(mountpoint, &dev, type, sizeof(type)) < 0 ||
	    strcmp(type, HOSTMOUNT_TYPE) != 0)
		return 0;
	if (hostmount_is_dead(mountpoint))
		return hostmount_detach(mountpoint, dev, why);
	return errmsg_set(why, -EBUSY,
			  "'%s' is a mount of pale already; "
			  "take it away with: pale umount %s",
			  mountpoint, mountpoint);
}

static int
check_place(const char *mountpoint, struct errmsg *why)
{
	struct stat st;
	int r;

	r = check_occupied(mountpoint, why);
	if (r < 0)
		return r;
	if (stat(mountpoint, &st) < 0)
		return errmsg_set(why, -errno, "mount point '%s': %s",
				  mountpoint, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return errmsg_set(why, -ENOTDIR,
				  "mount point '%s': not a directory",
				  mountpoint);
	if (strcmp(mountpoint, "/") == 0)
		return errmsg_set(why, -EINVAL, "'/' cannot be mounted over");
	return check_own_dirs(mountpoint, why);
}

static int
check_policy(const struct policy *policy, struct errmsg *why)
{
	if (policy->mode == POLICY_DANGER_FULL_ACCESS)
		return errmsg_set(why, -EINVAL,
				  "danger-full-access has no fence to mount; "
				  "use the directory itself");
	if (policy->require_full)
		return errmsg_set(why, -EOPNOTSUPP,
				  "a mount fences only those who go through "
				  "it: its enforcement is partial, and "
				  "--require full refuses that");
	return 0;
}

/* A mount inside what it shows; on top of it is no problem. */
static bool
needs_own_mounts(const struct policy *policy, const char *mountpoint)
{
	for (size_t i = 0; i < policy->n_roots; i++)
		if (policy->roots[i].kind != POLICY_ROOT_RW &&
		    strcmp(policy->roots[i].path, mountpoint) != 0 &&
		    path_is_in(mountpoint, policy->roots[i].path, NULL))
			return true;
	return false;
}

/* ---- start ---- */

/* What the keeper says: "+" when the mount serves, else the sentence. */
static int
await_status(int fd, struct errmsg *why)
{
	char text[ERRMSG_MAX];
	ssize_t n = read(fd, text, sizeof(text) - 1);

	while (n < 0 && errno == EINTR)
		n = read(fd, text, sizeof(text) - 1);
	if (n > 0 && text[0] == '+')
		return 0;
	text[n > 0 ? n : 0] = '\0';
	return errmsg_set(why, -EIO, "%s",
			  n > 0 ? text : "the mount's keeper died");
}

/* What `stay` waits for; blocked before anything is started. */
static void
stay_signals(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGHUP);
	sigaddset(ret_set, SIGCHLD);
}

/*
 * Until the keeper is gone; ^C and SIGTERM take the mount away.  What the
 * keeper has still to say is why it ended by itself.
 */
static int
stay(pid_t keeper, const sigset_t *set, int status_fd, struct errmsg *why)
{
	char text[ERRMSG_MAX];
	ssize_t n;

	for (;;) {
		int signum = sigwaitinfo(set, NULL);

		if (signum < 0 && errno != EINTR)
			return errmsg_set(why, -errno, "%s", strerror(errno));
		if (signum == SIGCHLD && waitpid(keeper, NULL, WNOHANG) != 0)
			break;
		if (signum > 0 && signum != SIGCHLD)
			(void)kill(keeper, SIGTERM);
	}
	n = read(status_fd, text, sizeof(text) - 1);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return errmsg_set(why, -ESTALE, "%s", text);
}

/* A keeper that has said that its mount serves; `status` tells its end. */
struct started {
	pid_t pid;
	int status;
	sigset_t set;
};

static int
start_keeper(const struct host_world *world, struct keeper_plan *plan,
	     struct started *started, struct errmsg *why)
{
	int status[2];

	stay_signals(&started->set);
	if (world->foreground)
		(void)sigprocmask(SIG_BLOCK, &started->set, NULL);
	if (pipe2(status, O_CLOEXEC) < 0)
		return errmsg_set(why, -errno, "%s", strerror(errno));
	plan->status_fd = status[1];
	started->status = status[0];
	fflush(NULL);
	started->pid = fork();
	if (started->pid == 0)
		_exit(host_keeper_run(plan));
	(void)close(status[1]);
	return started->pid < 0 ? errmsg_set(why, -errno, "%s", strerror(errno))
				: await_status(status[0], why);
}

/* ---- a world of its own ---- */

static int
start_alone(const struct host_world *world, const struct keeper_plan *base,
	    struct started *started, struct errmsg *why)
{
	_cleanup_(freep) char *json = NULL;
	_cleanup_(closep) int policy_fd = -1;
	struct keeper_plan plan = *base;
	char id[WORLD_ID_LEN + 1];
	int r = launch_config_dir(world->policy);

	if (r == 0)
		r = policy_encode(world->policy, &json);
	if (r == 0)
		r = fd_memfile("policy", json, strlen(json), &policy_fd);
	if (r == 0)
		r = worlds_new_id(id);
	if (r < 0)
		return errmsg_set(why, r, "%s", strerror(-r));
	plan.world = id;
	plan.policy_fd = policy_fd;
	return start_keeper(world, &plan, started, why);
}

/* ---- the face of a standing one ---- */

static int
start_face(const struct host_world *world, const struct keeper_plan *base,
	   struct standing *standing, struct started *started,
	   struct errmsg *why)
{
	_cleanup_(freep) char *runtime = NULL;
	_cleanup_(freep) char *dir = NULL;
	struct keeper_plan plan = *base;
	int r = dirs_runtime(&runtime);

	if (r == 0 &&
	    asprintf(&dir, "%s/worlds/%s", runtime, standing->world) < 0) {
		dir = NULL;
		r = -ENOMEM;
	}
	if (r < 0)
		return errmsg_set(why, r, "%s", strerror(-r));
	plan.world = standing->world;
	plan.world_dir = dir;
	plan.policy_fd = -1;
	r = start_keeper(world, &plan, started, why);
	if (r < 0 && standing->made) {
		(void)rpc_client_call(standing->client, RPC_WORLD_STOP, NULL,
				      STOP_MS, NULL, NULL);
		(void)worlds_await_end(dir, STOP_MS);
	}
	return r;
}

static int
start(const struct host_world *world, const struct keeper_plan *plan,
      struct started *started, struct errmsg *why)
{
	const struct standing_request request = { .request = world->request,
						  .policy = world->policy,
						  .make = true,
						  .for_mount = true };
	_cleanup_(standing_fini) struct standing standing = { .sock = -1 };
	struct errmsg reason = { "" };

	if (plan->own_mounts)
		return start_alone(world, plan, started, why);
	if (standing_connect(&request, &standing, &reason) == 0)
		return start_face(world, plan, &standing, started, why);
	if (!world->quiet)
		cli_error("no command can run in this mount: %s", reason.text);
	return start_alone(world, plan, started, why);
}

int
host_world_start(const struct host_world *world, struct errmsg *why)
{
	_cleanup_(freep) char *mountpoint = NULL;
	struct keeper_plan plan = { .foreground = world->foreground };
	struct started started = { .status = -1 };
	int r;

	r = check_policy(world->policy, why);
	if (r < 0)
		return r;
	r = hostmount_canonical(world->mountpoint, &mountpoint);
	if (r < 0)
		return errmsg_set(why, r, "mount point '%s': %s",
				  world->mountpoint, strerror(-r));
	r = check_place(mountpoint, why);
	if (r < 0)
		return r;
	plan.mountpoint = mountpoint;
	plan.workspace = world->policy->roots[0].path;
	plan.own_mounts = needs_own_mounts(world->policy, mountpoint);
	r = start(world, &plan, &started, why);
	if (r == 0 && world->foreground)
		r = stay(started.pid, &started.set, started.status, why);
	closep(&started.status);
	return r;
}
