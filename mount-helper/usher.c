/* SPDX-License-Identifier: MIT */

/*
 * The usher: makes the world's mounts, clones its init, and then stays as the
 * broker of connect(2).
 *
 * It is in all of the world's namespaces but the pid namespace: FUSE requests
 * carry pids as the mounting process counts them, and records want the
 * host's.  For the same reason no inmate can see or signal it.
 */

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "mount-helper/echo.h"
#include "mount-helper/helper.h"
#include "mount-helper/lockdown.h"
#include "mount-helper/mounts.h"
#include "mount-helper/steps.h"
#include "mount-helper/usher_connect.h"

static _Noreturn void
die(struct helper *h, int r, const struct errmsg *why)
{
	(void)wire_send_failed(h->init_sock, r, why);
	_exit(125);
}

/* Until the keeper has written the id maps, this process is nobody. */
static int
await_maps(struct helper *h, struct errmsg *why)
{
	struct wire_msg msg;
	int fd = -1, r;

	r = step_begin(STEP_USHER, why);
	if (r < 0)
		return r;
	r = wire_recv(h->init_sock, &msg, &fd);
	closep(&fd);
	/* The keeper's end says why in its own words. */
	if (r <= 0 || msg.type != WIRE_GO)
		_exit(125);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return errmsg_set(why, -errno, "cannot tie the usher: %s",
				  strerror(errno));
	return 0;
}

static int
enter_cgroup_namespace(struct errmsg *why)
{
	int r;

	r = step_begin(STEP_CGROUP_NS, why);
	if (r < 0)
		return r;
	/*
	 * EINVAL: a kernel without control groups has nothing to hide.
	 * ENOSPC: a world in a world; the outer one's namespace does.
	 */
	if (unshare(CLONE_NEWCGROUP) < 0 && errno != EINVAL && errno != ENOSPC)
		return errmsg_set(why, -errno,
				  "cannot make a control group namespace: %s",
				  strerror(errno));
	return 0;
}

static int
loopback_up(struct errmsg *why)
{
	struct ifreq request = { .ifr_name = "lo" };
	_cleanup_(closep) int fd = -1;
	int r;

	r = step_begin(STEP_LOOPBACK, why);
	if (r < 0)
		return r;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	request.ifr_flags = IFF_UP;
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return errmsg_set(why, -errno,
				  "cannot bring the loopback up: %s",
				  strerror(errno));
	return 0;
}

/* Kept for commands that are given files; the world is built in a copy. */
static int
keep_pristine_mounts(struct helper *h, struct errmsg *why)
{
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);

	h->namespaces.fd[NAMESPACE_PRISTINE] = fd;
	if (fd < 0 || unshare(CLONE_NEWNS) < 0)
		return errmsg_set(why, -errno,
				  "cannot copy the mount namespace: %s",
				  strerror(errno));
	return 0;
}

/* The warden makes the terminals of commands in it. */
static int
hand_on_terminals(struct helper *h, struct errmsg *why)
{
	const struct wire_msg msg = { .type = WIRE_TERMINALS };
	_cleanup_(closep) int fd = -1;
	int r;

	if (!(h->plan.flags & PLAN_STANDING))
		return 0;
	fd = open("/dev/pts", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = fd < 0 ? -errno : fd_send(h->world_sock, &msg, sizeof(msg), &fd, 1);
	return r < 0 ? errmsg_set(why, r, "cannot hand on terminals: %s",
				  strerror(-r))
		     : 0;
}

static int
build(struct helper *h, struct mounts *mounts, struct errmsg *why)
{
	int r;

	r = enter_cgroup_namespace(why);
	if (r == 0 && (h->plan.flags & PLAN_STANDING))
		r = keep_pristine_mounts(h, why);
	if (r == 0 && (h->plan.flags & PLAN_NET_NONE))
		r = loopback_up(why);
	if (r == 0)
		r = stdfiles_fence(&h->stdfiles, why);
	if (r == 0)
		r = mounts_prepare(mounts, &h->plan, h->userns, why);
	if (r == 0)
		r = mounts_seal(why);
	if (r == 0)
		r = mounts_apply(mounts, h->world_sock, why);
	if (r == 0)
		r = hand_on_terminals(h, why);
	h->home_tmpfs = mounts->home_tmpfs;
	mounts_fini(mounts);
	if (r < 0)
		return r;
	/*
	 * A scope keeps who is in it from those in another, and whoever brings
	 * his terminal into a standing world is in one of his own: there the
	 * broker, who connects all of them, is in none.
	 */
	if (h->plan.flags & PLAN_STANDING) {
		h->scoped = lockdown_can_scope();
		return 0;
	}
	return lockdown_scope(&h->scoped, why);
}

/* fork(2) of a child of the keeper that shares our descriptors. */
static int
clone_init(struct helper *h, int listener_pipe, pid_t *ret_pid,
	   struct errmsg *why)
{
	long pid;
	int r;

	r = step_begin(STEP_INIT, why);
	if (r < 0)
		return r;
	pid = syscall(SYS_clone,
		      (unsigned long)(CLONE_NEWPID | CLONE_PARENT |
				      CLONE_FILES | SIGCHLD),
		      0UL, 0UL, 0UL, 0UL);
	if (pid == 0)
		init_main(h, listener_pipe);
	if (pid < 0)
		return errmsg_set(why, -errno,
				  "cannot make a pid namespace: %s",
				  strerror(errno));
	*ret_pid = (pid_t)pid;
	return 0;
}

/*
 * The number on the pipe is good in this process too.  What cannot be sent is
 * a failure: a filter whose listener nobody reads would stop the world.
 */
static int
hand_on_listener(struct helper *h, int pipe_fd, pid_t init, int *ret_listener,
		 struct errmsg *why)
{
	_cleanup_(closep) int listener = -1;
	struct wire_msg msg = { .type = WIRE_LISTENER,
				.pid = init,
				.value = h->scoped,
				.flags = h->home_tmpfs ? WORLD_HOME_TMPFS : 0 };
	ssize_t n;
	int r;

	n = fd_read_all(pipe_fd, &listener, sizeof(listener));
	r = step_begin(STEP_LISTENER, why);
	if (r < 0)
		return r;
	if (n != sizeof(listener))
		return errmsg_set(why, -EPROTO, "init did not come up");
	r = fd_send(h->init_sock, &msg, sizeof(msg), &listener,
		    listener >= 0 ? 1 : 0);
	if (r == 0 && listener >= 0)
		r = fd_send(h->world_sock, &msg, sizeof(msg), &listener, 1);
	if (r < 0)
		return errmsg_set(why, r, "cannot hand on the listener: %s",
				  strerror(-r));
	*ret_listener = take_fd(&listener);
	return 0;
}

_Noreturn void
usher_main(struct helper *h)
{
	struct mounts mounts = { 0 };
	struct errmsg why = { "" };
	int pipe_fds[2] = { -1, -1 }, host_proc, listener = -1, r;
	pid_t init = 0;

	h->umask = umask(0);
	r = await_maps(h, &why);
	host_proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (r == 0)
		r = build(h, &mounts, &why);
	if (r == 0 && pipe2(pipe_fds, O_CLOEXEC) < 0)
		r = errmsg_set(&why, -errno, "cannot make a pipe: %s",
			       strerror(errno));
	if (r == 0)
		r = clone_init(h, pipe_fds[1], &init, &why);

	/* The terminal's keys are for init's group, not for this process. */
	if (r == 0)
		(void)setsid();
	if (r == 0)
		r = hand_on_listener(h, pipe_fds[0], init, &listener, &why);
	if (r < 0)
		die(h, r, &why);

	(void)prctl(PR_SET_NAME, "pale-usher");
	release_stdio();
	stdfiles_fini(&h->stdfiles);
	namespaces_fini(&h->namespaces);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	(void)close(h->init_sock);
	(void)lockdown_capabilities(1ULL << CAP_SYS_PTRACE |
				    echo_capabilities());
	(void)prctl(PR_SET_DUMPABLE, 0);

	const struct usher_place place = { .world_sock = h->world_sock,
					   .host_proc_fd = host_proc,
					   .init_pid = init,
					   .listener = listener,
					   .scoped = !(h->plan.flags &
						       PLAN_STANDING) };

	(void)usher_serve(&place);
	_exit(0);
}
