/* SPDX-License-Identifier: MIT */
#ifndef CLI_TTY_H
#define CLI_TTY_H

/*
 * The caller's terminal around a command that has it as its own: remembered
 * before, put back after, also when the command stops in between.  Nothing is
 * touched when there is no terminal or pale was started in the background.
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct tty {
	int fd;	      /* -1: none of 0, 1, 2 is a terminal */
	char *path;   /* of it; NULL: none */
	bool is_fore; /* it is pale's, or was given on to the command */
	struct termios modes;
	pid_t command_group; /* who had it when the command stopped; or 0 */
};

/* Cannot fail: what is not there is not restored. */
void tty_save(struct tty *tty);

/* Somebody sent SIGCONT: the shell may have moved us to the fore. */
void tty_refresh(struct tty *tty);

/* After the end: modes and foreground group as they were. */
void tty_restore(struct tty *tty);

/* Around a stop of the command. */
void tty_take(struct tty *tty);
void tty_give_back(struct tty *tty);

void tty_fini(struct tty *tty);

#endif
