/* SPDX-License-Identifier: MIT */
#ifndef BASE_PATH_H
#define BASE_PATH_H

/* Paths as texts; nothing is looked up.  Thread: any. */

#include <stdbool.h>

/*
 * Whether `path` is `dir` or below it, both clean; *ret_rest (NULL allowed) is
 * what follows, "" for `dir` itself.
 */
bool path_is_in(const char *path, const char *dir, const char **ret_rest);

/*
 * Whether `path` is absolute without empty, "." and ".." components, so that
 * it is one place.
 */
bool path_is_clean(const char *path);

#endif
