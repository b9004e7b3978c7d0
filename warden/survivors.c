/* SPDX-License-Identifier: MIT */

#include "warden/survivors.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/children.h"
#include "base/cleanup.h"
#include "base/fd.h"

#define DEPTH_MAX 64
#define LIST_MAX  (1u << 16) /* bytes of the children of one thread */

struct list {
	char *text;
	size_t len, size;
	int depth;
};

static void
add(struct list *list, pid_t pid)
{
	_cleanup_(freep) char *name = NULL;
	char path[32];
	size_t len;
	int n;

	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (fd_read_path(AT_FDCWD, path, 64, &name, &len) < 0)
		return;
	n = snprintf(list->text + list->len, list->size - list->len,
		     "%s%d (%.*s)", list->len ? ", " : "", (int)pid,
		     (int)strcspn(name, "\n"), name);
	/* Whole ones only. */
	if (n > 0 && (size_t)n < list->size - list->len)
		list->len += (size_t)n;
	list->text[list->len] = '\0';
}

static void
add_child(pid_t parent, pid_t pid, void *data)
{
	struct list *list = data;

	(void)parent;
	add(list, pid);
	if (list->depth == DEPTH_MAX)
		return;
	list->depth++;
	children_each(pid, LIST_MAX, add_child, list);
	list->depth--;
}

void
survivors_text(pid_t first, char *text, size_t size)
{
	struct list list = { .text = text, .size = size };

	text[0] = '\0';
	if (first <= 0)
		return;
	children_each(first, LIST_MAX, add_child, &list);
	if (list.len == 0)
		add(&list, first);
}
