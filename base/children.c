/* SPDX-License-Identifier: MIT */

#include "base/children.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/fd.h"

struct family {
	pid_t parent;
	size_t max;
	void (*found)(pid_t parent, pid_t child, void *data);
	void *data;
};

static void
each_of_thread(const struct family *family, const char *thread)
{
	_cleanup_(freep) char *text = NULL;
	char path[64], *at, *end;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children",
		       (int)family->parent, thread);
	if (fd_read_path(AT_FDCWD, path, family->max, &text, &len) < 0)
		return;
	for (at = text;; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at || pid <= 1)
			return;
		family->found(family->parent, (pid_t)pid, family->data);
	}
}

void
children_each(pid_t parent, size_t max,
	      void (*found)(pid_t parent, pid_t child, void *data), void *data)
{
	const struct family family = { parent, max, found, data };
	struct dirent *entry;
	char path[32];
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)parent);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			each_of_thread(&family, entry->d_name);
	if (dir)
		(void)closedir(dir);
}
