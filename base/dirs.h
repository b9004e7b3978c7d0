/* SPDX-License-Identifier: MIT */
#ifndef BASE_DIRS_H
#define BASE_DIRS_H

/*
 * Where pale keeps things: state (durable), runtime (sockets), configuration.
 * The rules are chapter 80's: $XDG_STATE_HOME/pale else ~/.local/state/pale;
 * $XDG_RUNTIME_DIR/pale, else /run/pale (root), else /tmp/pale-UID (0700,
 * owner checked); $XDG_CONFIG_HOME/pale else ~/.config/pale.  For state, ~ is
 * the home of the user database, since a command that is given another $HOME
 * still belongs to the same user; a user without one has
 * /var/tmp/pale-UID/state.
 * Paths are fresh strings, owned by the caller; nothing is made on disk
 * except by dirs_make().  Thread: any (reads the environment).
 */

#include "base/errmsg.h"

int dirs_state(char **ret_path);
int dirs_runtime(char **ret_path);
int dirs_config(char **ret_path);

/*
 * Makes `path` and its parents (0700) and checks that the last one is a
 * directory that this user owns and no other may write; returns 0 or a
 * negative errno with a sentence in `why`.
 */
int dirs_make(const char *path, struct errmsg *why);

/* The check alone; -ENOENT: nothing is there. */
int dirs_check(const char *path, struct errmsg *why);

#endif
