/* SPDX-License-Identifier: MIT */

#include "base/path.h"

#include <string.h>

bool
path_is_in(const char *path, const char *dir, const char **ret_rest)
{
	size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);

	if (strncmp(path, dir, len) != 0 ||
	    (path[len] != '/' && path[len] != '\0'))
		return false;
	if (ret_rest)
		*ret_rest = path[len] ? path + len + 1 : path + len;
	return true;
}

bool
path_is_clean(const char *path)
{
	if (path[0] != '/')
		return false;
	if (path[1] == '\0')
		return true;
	while (*path) {
		size_t len = strcspn(++path, "/");

		if (len == 0 || (len == 1 && path[0] == '.') ||
		    (len == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += len;
	}
	return true;
}
