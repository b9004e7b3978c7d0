/* SPDX-License-Identifier: MIT */

#include "mount-helper/children.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "mount-helper/advice.h"
#include "mount-helper/steps.h"

static int
socket_pair(int ret_fds[2], struct errmsg *why)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds) < 0)
		return errmsg_set(why, -errno,
				  "cannot connect the processes of a world: %s",
				  strerror(errno));
	return 0;
}

int
children_adopt_warden(struct children *kids, struct helper *h,
		      struct errmsg *why)
{
	kids->warden = h->warden;
	kids->warden_sock = take_fd(&h->warden_sock);
	if (kids->warden <= 0 || kids->warden_sock < 0 || h->world_sock < 0)
		return errmsg_set(why, -EINVAL, "no warden was started");
	return step_begin(STEP_WARDEN, why);
}

static int
write_proc(pid_t pid, const char *file, const char *text)
{
	char path[64];
	int fd, r;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, strlen(text));
	(void)close(fd);
	return r;
}

/*
 * Everybody is who he was: an ordinary user maps itself alone, root maps all
 * ids one to one.  Written by the keeper, since root's map needs a capability
 * in the parent's namespace.
 */
static int
write_id_maps(pid_t pid, const struct plan *plan, struct errmsg *why)
{
	char uid_map[64], gid_map[64];
	int r;

	r = step_begin(STEP_ID_MAP, why);
	if (r < 0)
		return r;
	if (geteuid() == 0) {
		(void)strcpy(uid_map, "0 0 4294967295");
		(void)strcpy(gid_map, "0 0 4294967295");
	} else {
		(void)snprintf(uid_map, sizeof(uid_map), "%u %u 1", plan->uid,
			       plan->uid);
		(void)snprintf(gid_map, sizeof(gid_map), "%u %u 1", plan->gid,
			       plan->gid);
	}
	r = write_proc(pid, "setgroups", "deny");
	if (r == 0)
		r = write_proc(pid, "uid_map", uid_map);
	if (r == 0)
		r = write_proc(pid, "gid_map", gid_map);
	if (r == -EPERM && geteuid() == 0) {
		/* A root that is itself in a user namespace has fewer ids. */
		(void)snprintf(uid_map, sizeof(uid_map), "0 0 1");
		r = write_proc(pid, "uid_map", uid_map);
		if (r == 0)
			r = write_proc(pid, "gid_map", uid_map);
	}
	if (r < 0)
		return errmsg_set(why, r,
				  "cannot map users into the new user "
				  "namespace: %s%s",
				  strerror(-r), advice_userns(r));
	return 0;
}

/* fork(2) into new namespaces. */
static pid_t
clone_into(unsigned long flags)
{
	long pid = syscall(SYS_clone, flags | SIGCHLD, 0UL, 0UL, 0UL, 0UL);

	return pid < 0 ? -errno : (pid_t)pid;
}

static pid_t
clone_usher(struct helper *h)
{
	unsigned long flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS;
	pid_t pid;

	if (h->plan.flags & PLAN_NET_NONE)
		flags |= CLONE_NEWNET;
	if (h->plan.flags & PLAN_NO_USERNS) {
		h->userns = false;
		return clone_into(flags);
	}
	h->userns = true;
	pid = clone_into(flags | CLONE_NEWUSER);
	if (pid >= 0 || geteuid() != 0 ||
	    (pid != -EPERM && pid != -ENOSPC && pid != -EINVAL &&
	     pid != -EUSERS))
		return pid;

	/* Root needs no user namespace for the others. */
	h->userns = false;
	return clone_into(flags);
}

static int
connect_child(struct helper *h, enum step step, int *ret_ours,
	      struct errmsg *why)
{
	int pair[2] = { -1, -1 };
	int r;

	r = step_begin(step, why);
	if (r == 0)
		r = socket_pair(pair, why);
	if (r < 0)
		return r;
	*ret_ours = pair[0];
	h->init_sock = pair[1];
	return 0;
}

/* In the child: what is the keeper's alone. */
static void
leave_keeper(struct children *kids, struct helper *h, int ours)
{
	(void)close(ours);
	closep(&kids->warden_sock);
	(void)close(h->control);
}

/* In the keeper: what is the child's alone. */
static void
leave_child(struct children *kids, struct helper *h, int ours)
{
	(void)close(take_fd(&h->init_sock));
	closep(&h->world_sock);
	h->world_sock = -1;
	kids->init_sock = ours;
}

int
children_start_usher(struct children *kids, struct helper *h,
		     const struct groups *groups, struct errmsg *why)
{
	int ours, r;
	pid_t pid;

	r = connect_child(h, STEP_NAMESPACES, &ours, why);
	if (r < 0)
		return r;
	pid = clone_usher(h);
	if (pid == 0) {
		leave_keeper(kids, h, ours);
		usher_main(h);
	}
	leave_child(kids, h, ours);
	if (pid < 0)
		return errmsg_set(why, (int)pid,
				  "cannot make namespaces for the world: %s%s",
				  strerror(-(int)pid), advice_userns((int)pid));
	kids->usher = pid;

	if (h->userns) {
		r = write_id_maps(pid, &h->plan, why);
		if (r < 0)
			return r;
	}
	r = groups_enter(groups, pid, why);
	if (r < 0)
		return r;
	/* Now it may go on; a dead one says why by itself. */
	(void)wire_send(kids->init_sock, WIRE_GO, 0, 0, -1);
	return 0;
}

int
children_start_init(struct children *kids, struct helper *h,
		    const struct groups *groups, struct errmsg *why)
{
	int ours, r;
	pid_t pid;

	r = connect_child(h, STEP_INIT, &ours, why);
	if (r < 0)
		return r;
	pid = fork();
	r = -errno;
	if (pid == 0) {
		leave_keeper(kids, h, ours);
		init_main(h, -1);
	}
	leave_child(kids, h, ours);
	if (pid < 0)
		return errmsg_set(why, r, "cannot fork: %s", strerror(-r));
	kids->init = pid;
	return groups_enter(groups, pid, why);
}

void
children_forget(struct children *kids, pid_t pid)
{
	pid_t *const all[] = { &kids->warden, &kids->usher, &kids->init };

	for (size_t i = 0; i < 3; i++)
		if (*all[i] == pid)
			*all[i] = 0;
}

bool
children_left(const struct children *kids)
{
	return kids->warden > 0 || kids->usher > 0 || kids->init > 0;
}

void
children_kill(const struct children *kids)
{
	const pid_t all[] = { kids->warden, kids->usher, kids->init };

	for (size_t i = 0; i < 3; i++)
		if (all[i] > 0)
			(void)kill(all[i], SIGKILL);
}

bool
children_has_message(int sock)
{
	struct pollfd one = { .fd = sock, .events = POLLIN };

	return poll(&one, 1, 0) > 0;
}
