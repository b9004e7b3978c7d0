/* SPDX-License-Identifier: MIT */

#include "cli/tty.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool
has_foreground(const struct tty *tty)
{
	return tty->fd >= 0 && tcgetpgrp(tty->fd) == getpgrp();
}

void
tty_save(struct tty *tty)
{
	char path[PATH_MAX];

	*tty = (struct tty){ .fd = -1 };
	for (int fd = 0; fd <= 2 && tty->fd < 0; fd++) {
		if (tcgetattr(fd, &tty->modes) < 0)
			continue;
		tty->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (ttyname_r(fd, path, sizeof(path)) == 0)
			tty->path = strdup(path);
	}
	tty_refresh(tty);
}

static bool
same_modes(const struct termios *a, const struct termios *b)
{
	return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag &&
	       a->c_cflag == b->c_cflag && a->c_lflag == b->c_lflag &&
	       memcmp(a->c_cc, b->c_cc, sizeof(a->c_cc)) == 0;
}

/*
 * The caller blocks SIGTTOU: a shell inside may have put another group into
 * the foreground, and then this process is one of the background.
 */
static void
take_foreground(struct tty *tty)
{
	struct termios now;

	(void)tcsetpgrp(tty->fd, getpgrp());
	if (tcgetattr(tty->fd, &now) == 0 && !same_modes(&now, &tty->modes))
		(void)tcsetattr(tty->fd, TCSADRAIN, &tty->modes);
}

void
tty_refresh(struct tty *tty)
{
	if (has_foreground(tty))
		tty->is_fore = true;
}

void
tty_restore(struct tty *tty)
{
	pid_t group;

	if (has_foreground(tty)) {
		take_foreground(tty);
		return;
	}
	/* A group that lives is not the command's, which has ended. */
	group = tty->is_fore ? tcgetpgrp(tty->fd) : 0;
	if (group > 0 && kill(-group, 0) < 0 && errno == ESRCH)
		take_foreground(tty);
}

void
tty_take(struct tty *tty)
{
	pid_t group;

	tty->command_group = 0;
	if (!tty->is_fore)
		return;
	group = tcgetpgrp(tty->fd);
	if (group > 0 && group != getpgrp())
		tty->command_group = group;
	take_foreground(tty);
}

void
tty_give_back(struct tty *tty)
{
	/* `fg` gave it to our group; `bg` did not. */
	tty->is_fore = has_foreground(tty);
	if (tty->is_fore && tty->command_group > 0)
		(void)tcsetpgrp(tty->fd, tty->command_group);
}

void
tty_fini(struct tty *tty)
{
	closep(&tty->fd);
	free(tty->path);
	*tty = (struct tty){ .fd = -1 };
}
