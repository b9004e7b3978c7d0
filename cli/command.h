/* SPDX-License-Identifier: MIT */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

/*
 * What `run`, `exec` and `shell` share: from operands and options to the
 * command, and from its end to an exit status.
 *
 * Thread: main.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/errmsg.h"
#include "base/strv.h"
#include "cli/run_loop.h"

/* pale itself failed and nothing ran; the command's time was over. */
#define COMMAND_EXIT_PALE    125
#define COMMAND_EXIT_TIMEOUT 124

/* Our environment (unless `clear`), with the NAME=VALUEs of `set`. */
int command_env(const struct strv *set, bool clear, struct strv *ret_env,
		struct errmsg *why);

/* Without operands: the user's shell. */
int command_argv(char **operands, struct strv *ret_argv, struct errmsg *why);

/* Canonical; NULL: where we are.  *ret_cwd is the caller's. */
int command_cwd(const char *wanted, char **ret_cwd, struct errmsg *why);

/* --call ID; NULL: none. */
int command_check_call(const char *call, struct errmsg *why);

/* --report FILE|fd:N; NULL leaves *ret_fd alone. */
int command_open_report(const char *where, int *ret_fd, struct errmsg *why);

/* --cwd, --env and --clear-env of a command that a warden starts. */
struct command_options {
	const char *cwd;
	struct strv env;
	bool clear_env;
};

/*
 * Begins the parameters of the request: "env", "cwd", "umask" and, unless there
 * are no operands, "argv"; without it, the shell of that environment is meant.
 */
int command_begin_params(const struct command_options *options, int argc,
			 char **argv, struct buf *params, struct errmsg *why);

/* The umask is ours to hand on. */
mode_t command_umask(void);

int command_exit_code(const struct run_result *result);

/* The command has them; held here, a pipe would never see its end. */
void command_let_go_of_stdio(void);

#endif
