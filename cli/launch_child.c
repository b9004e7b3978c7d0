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

static int
make_pair(int *ret_a, int *ret_b, struct errmsg *why)
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

	r = make_pair(&launch->control, &child->control, why);
	if (r < 0 || !child->confined)
		return r;
	r = make_pair(&child->keeper_warden, &child->warden_keeper, why);
	if (r == 0)
		r = make_pair(&child->usher_warden, &child->warden_usher, why);
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
	int keep[] = { child->policy, child->warden_usher, child->warden_keeper,
		       child->client };
	const int fds[] = { keep[0], keep[1], keep[2], keep[3] };
	char text[4][FD_TEXT];
	char *argv[] = { (char *)"warden",
			 (char *)"--policy-fd",
			 text[0],
			 (char *)"--world-fd",
			 text[1],
			 (char *)"--keeper-fd",
			 text[2],
			 (char *)"--client-fd",
			 text[3],
			 (char *)"--world",
			 (char *)(uintptr_t)child->world_id,
			 NULL };
	sigset_t none;

	(void)prctl(PR_SET_NAME, "pale-warden");
	leave_stdio();
	(void)fd_close_others(3, keep, 4);
	for (size_t i = 0; i < 4; i++)
		(void)snprintf(text[i], FD_TEXT, "%d", fds[i]);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	_exit(warden_main((int)(sizeof(argv) / sizeof(argv[0])) - 1, argv));
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
	if (child->confined) {
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
	if (child->confined) {
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
	int *const fds[] = { &child->plan,	    &child->policy,
			     &child->control,	    &child->keeper_warden,
			     &child->warden_keeper, &child->usher_warden,
			     &child->warden_usher,  &child->client };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		closep(fds[i]);
}
