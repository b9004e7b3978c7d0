/* SPDX-License-Identifier: MIT */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

/*
 * A path as the fence is asked about it: absolute and canonical, as the kernel
 * would find it inside a world.  Directories are resolved with their symlinks;
 * what does not exist yet is kept as spelled; the last name is resolved only
 * for operations that follow it.
 *
 * Thread: any (reads the current directory).
 */

#include <stdbool.h>

/*
 * On success *ret_path is a fresh string, owned by the caller.
 * Errors: -ENOMEM, -ENAMETOOLONG, -EINVAL (empty, or ".." below what does not
 * exist), or what realpath(3) said.
 */
int place_canonical(const char *path, bool follow, char **ret_path);

#endif
