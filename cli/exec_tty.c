/* SPDX-License-Identifier: MIT */

#include "cli/exec_tty.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/launch_priv.h"

#define FD_TEXT 12

static int
spawn(const char *helper, int world, int control, pid_t *ret_pid)
{
	char texts[2][FD_TEXT];
	char *argv[] = { (char *)(uintptr_t)helper, (char *)"enter", texts[0],
			 texts[1], NULL };
	volatile int error = 0;
	pid_t pid;

	(void)snprintf(texts[0], FD_TEXT, "%d", world);
	(void)snprintf(texts[1], FD_TEXT, "%d", control);
	pid = vfork();
	if (pid == 0) {
		(void)fcntl(world, F_SETFD, 0);
		(void)fcntl(control, F_SETFD, 0);
		(void)execv(helper, argv);
		error = -errno;
		_exit(125);
	}
	if (pid < 0)
		return -errno;
	*ret_pid = pid;
	return error;
}

int
exec_tty_start(struct exec_tty *ret_tty, struct errmsg *why)
{
	struct exec_tty tty = EXEC_TTY_NONE;
	_cleanup_(freep) char *helper = NULL;
	_cleanup_(closep) int world = -1;
	_cleanup_(closep) int control = -1;
	int r;

	r = launch_helper(&helper, why);
	if (r == 0)
		r = launch_pair(&tty.world, &world, why);
	if (r == 0)
		r = launch_pair(&tty.launch.control, &control, why);
	if (r == 0) {
		r = spawn(helper, world, control, &tty.launch.helper);
		if (r < 0)
			(void)errmsg_set(why, r, "cannot start '%s': %s",
					 helper, strerror(-r));
	}
	if (r < 0) {
		exec_tty_fini(&tty);
		return r;
	}
	*ret_tty = tty;
	return 0;
}

void
exec_tty_fini(struct exec_tty *tty)
{
	closep(&tty->world);
	tty->world = -1;
	launch_fini(&tty->launch);
}
