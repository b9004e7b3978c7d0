/* SPDX-License-Identifier: MIT */

#include "mount-helper/spawn.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mount-helper/groups.h"
#include "mount-helper/landlock.h"
#include "mount-helper/lockdown.h"
#include "mount-helper/steps.h"

#define KERNEL_SIGNALS 64

/* Written by the child, which borrows our memory until it has exec'd. */
struct outcome {
	int error; /* negative; 0: exec'd */
	int exec_error;
	struct errmsg *why;
};

static int
limit_processes(const struct plan *plan, bool groups)
{
	rlim_t most = plan->pids + GROUPS_OWN_PIDS;
	const struct rlimit limit = { most, most };

	if (groups || plan->pids == 0)
		return 0;
	return setrlimit(RLIMIT_NPROC, &limit) < 0 ? -errno : 0;
}

static int
become(const struct helper *h, struct errmsg *why)
{
	bool confined = !(h->plan.flags & PLAN_UNCONFINED);
	int r;

	r = step_begin(STEP_CHILD_LIMITS, why);
	if (r < 0)
		return r;
	r = limit_processes(&h->plan, h->grouped);
	if (r < 0)
		return errmsg_set(why, r, "cannot limit processes: %s",
				  strerror(-r));

	r = step_begin(STEP_CHILD_CAPS, why);
	if (r < 0)
		return r;
	if (confined) {
		r = lockdown_capabilities(0);
		if (r < 0)
			return errmsg_set(why, r,
					  "cannot drop capabilities: %s",
					  strerror(-r));
	}
	if (!(h->plan.flags & PLAN_LANDLOCK))
		return 0;
	r = landlock_enter(h->ruleset);
	return r < 0 ? errmsg_set(why, r, "cannot enter Landlock's rules: %s",
				  strerror(-r))
		     : 0;
}

/* In the child: memory is shared with init, which waits. */
static void
run_child(const struct helper *h, const struct spawn_what *what,
	  struct outcome *outcome)
{
	sigset_t none;

	outcome->error = become(h, outcome->why);
	if (outcome->error < 0)
		_exit(125);
	if (what->own_session)
		(void)setsid();
	if (what->terminal)
		(void)ioctl(STDIN_FILENO, TIOCSCTTY, 0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execvp(what->argv->items[0], what->argv->items);
	outcome->exec_error = errno;
	_exit(125);
}

int
spawn_command(const struct helper *h, const struct spawn_what *what,
	      pid_t *ret_pid, int *ret_exec_error, struct errmsg *why)
{
	/* The child writes here; the compiler must not keep copies. */
	static volatile struct outcome outcome;
	static char *no_environment[] = { NULL };
	pid_t pid;
	int r;

	r = step_begin(STEP_SPAWN, why);
	if (r < 0)
		return r;
	if (what->argv->count == 0)
		return errmsg_set(why, -EINVAL,
				  "mount plan: it names no command");
	outcome.error = outcome.exec_error = 0;
	outcome.why = why;
	environ = what->env->items ? what->env->items : no_environment;

	/* Not fork: nothing is copied, and failure is told in memory. */
	pid = vfork();
	if (pid == 0)
		run_child(h, what, (struct outcome *)&outcome);
	if (pid < 0)
		return errmsg_set(why, -errno, "cannot fork: %s",
				  strerror(errno));
	*ret_exec_error = outcome.exec_error;
	if (outcome.error == 0 && outcome.exec_error == 0) {
		*ret_pid = pid;
		return 0;
	}
	(void)waitpid(pid, NULL, 0);
	return outcome.error;
}

int
spawn_exec_status(int exec_error)
{
	return (exec_error == ENOENT || exec_error == ENOTDIR ? 127 : 126) << 8;
}

/* By the bare call: the C library keeps 32 and 33 for itself. */
void
spawn_default_signals(void)
{
	const unsigned long action[8] = { 0 }; /* SIG_DFL, no flags, no mask */

	for (int sig = 1; sig <= KERNEL_SIGNALS; sig++)
		(void)syscall(SYS_rt_sigaction, sig, action, NULL,
			      KERNEL_SIGNALS / 8);
}
