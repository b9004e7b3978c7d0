/* SPDX-License-Identifier: MIT */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "cli/launch_priv.h"
#include "warden/warden.h"

#define ARGS_MAX 16
#define FD_TEXT	 12

/* Shared with the child, which borrows our memory until it has exec'd. */
struct job {
	const struct launch_child *child;
	char *argv[ARGS_MAX];
	char warden_pid[FD_TEXT];
	volatile int error; /* negative; 0: exec'd */
};

int
launch_pair(int *ret_a, int *ret_b, struct errmsg *why)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return errmsg_set(why, -errno, "cannot make a socket: %s",
				  strerror(errno));
	*ret_a = pair[0];
	*ret_b = pair[1];
	return 0;
}

static int
make_connections(struct launch_child *child, struct launch *launch,
		 struct errmsg *why)
{
	int ends[2], r;

	r = launch_pair(&launch->control, &child->control, why);
	if (r < 0 || !child->has_warden)
		return r;
	r = launch_pair(&child->keeper_warden, &child->warden_keeper, why);
	if (r == 0)
		r = launch_pair(&child->usher_warden, &child->warden_usher,
				why);
	if (r < 0)
		return r;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return errmsg_set(why, -errno, "cannot make a pipe: %s",
				  strerror(errno));
	launch->summary = ends[0];
	child->client = ends[1];
	return 0;
}

/* ---- the warden ---- */

static void
leave_stdio(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int i = 0; i <= 2 && fd >= 0; i++)
		(void)dup2(fd, i);
	closep(&fd);
}

static _Noreturn void
be_warden(const struct launch_child *child)
{
	int keep[] = { child->warden_usher, child->warden_keeper,
		       child->client };
	const int fds[] = { keep[0], keep[1], keep[2] };
	char text[3][FD_TEXT], idle_ms[24];
	char *argv[ARGS_MAX + 4] = {
		(char *)"warden",      (char *)"--policy-here",
		(char *)"--world-fd",  text[0],
		(char *)"--keeper-fd", text[1],
		(char *)"--client-fd", text[2],
		(char *)"--world",     (char *)(uintptr_t)child->world_id
	};
	int argc = 10;
	sigset_t none;

	(void)prctl(PR_SET_NAME, "pale-warden");
	leave_stdio();
	(void)fd_close_others(3, keep, 3);
	for (size_t i = 0; i < 3; i++)
		(void)snprintf(text[i], FD_TEXT, "%d", fds[i]);
	(void)snprintf(idle_ms, sizeof(idle_ms), "%llu",
		       (unsigned long long)child->idle_ms);
	if (child->standing) {
		argv[argc++] = (char *)"--standing";
		argv[argc++] = (char *)"--idle-ms";
		argv[argc++] = idle_ms;
	}
	if (child->for_mount)
		argv[argc++] = (char *)"--for-mount";
	if (child->passthrough)
		argv[argc++] = (char *)"--passthrough";
	if (child->call) {
		argv[argc++] = (char *)"--call";
		argv[argc++] = (char *)(uintptr_t)child->call;
	}
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	warden_inherit((struct policy *)(uintptr_t)child->policy);
	_exit(warden_main(argc, argv));
}

/* ---- the keeper ---- */

static void
keep_over_exec(int fd)
{
	if (fd >= 0)
		(void)fcntl(fd, F_SETFD, 0);
}

/*
 * In the vfork'd child.  _Fork, not fork: no handlers run and no lock of the
 * C library is taken in memory that is the CLI's.
 */
static _Noreturn void
run_child(struct job *job)
{
	const struct launch_child *child = job->child;

	/* Who ignores it never hears of a child's end. */
	(void)signal(SIGCHLD, SIG_DFL);
	/* It outlives us, our terminal and our pipes. */
	if (child->standing) {
		(void)setsid();
		leave_stdio();
	}
	if (child->has_warden) {
		pid_t warden = _Fork();

		if (warden == 0)
			be_warden(child);
		if (warden < 0) {
			job->error = -errno;
			_exit(125);
		}
		(void)snprintf(job->warden_pid, sizeof(job->warden_pid), "%d",
			       (int)warden);
	}
	keep_over_exec(child->plan);
	keep_over_exec(child->control);
	keep_over_exec(child->keeper_warden);
	keep_over_exec(child->usher_warden);
	(void)execv(child->helper, job->argv);
	job->error = -errno;
	_exit(125);
}

static pid_t
spawn_child(struct job *job)
{
	pid_t pid = vfork();

	if (pid == 0)
		run_child(job);
	if (pid < 0)
		job->error = -errno;
	return pid;
}

int
launch_child_start(struct launch_child *child, struct launch *launch,
		   struct errmsg *why)
{
	struct job job = { .child = child };
	char text[4][FD_TEXT];
	size_t n = 0;
	int r;

	r = make_connections(child, launch, why);
	if (r < 0)
		return r;

	const struct {
		const char *option;
		int fd;
	} rows[] = {
		{ "--plan-fd", child->plan },
		{ "--control-fd", child->control },
		{ "--warden-fd", child->keeper_warden },
		{ "--world-fd", child->usher_warden },
	};

	job.argv[n++] = (char *)(uintptr_t)child->helper;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].fd < 0)
			continue;
		(void)snprintf(text[i], FD_TEXT, "%d", rows[i].fd);
		job.argv[n++] = (char *)(uintptr_t)rows[i].option;
		job.argv[n++] = text[i];
	}
	if (child->require_limits)
		job.argv[n++] = (char *)"--require-limits";
	if (child->require_full)
		job.argv[n++] = (char *)"--require-full";
	if (child->has_warden) {
		job.argv[n++] = (char *)"--warden-pid";
		job.argv[n++] = job.warden_pid;
	}
	job.argv[n] = NULL;

	launch->helper = spawn_child(&job);
	if (job.error < 0)
		return errmsg_set(why, job.error, "cannot start '%s': %s",
				  child->helper, strerror(-job.error));
	return 0;
}

void
launch_child_fini(struct launch_child *child)
{
	int *const fds[] = { &child->plan,	    &child->control,
			     &child->keeper_warden, &child->warden_keeper,
			     &child->usher_warden,  &child->warden_usher,
			     &child->client };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		closep(fds[i]);
}
