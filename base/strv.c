/* SPDX-License-Identifier: MIT */

#include "base/strv.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

/* Moves `item` into the vector; on failure it is freed. */
static int
strv_take(struct strv *v, char *item)
{
	if (!item)
		return -ENOMEM;
	if (v->count + 2 > v->room) {
		size_t room = v->room ? 2 * v->room : 8;
		char **items = realloc(v->items, room * sizeof(*items));

		if (!items) {
			free(item);
			return -ENOMEM;
		}
		v->items = items;
		v->room = room;
	}
	v->items[v->count++] = item;
	v->items[v->count] = NULL;
	return 0;
}

int
strv_add(struct strv *v, const char *item)
{
	return strv_take(v, strdup(item));
}

int
strv_addf(struct strv *v, const char *format, ...)
{
	char *item = NULL;
	va_list args;
	int len;

	va_start(args, format);
	len = vasprintf(&item, format, args);
	va_end(args);
	return strv_take(v, len < 0 ? NULL : item);
}

int
strv_extend(struct strv *v, const struct strv *from)
{
	int r;

	for (size_t i = 0; i < from->count; i++) {
		r = strv_add(v, from->items[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

bool
strv_has(const struct strv *v, const char *item)
{
	for (size_t i = 0; i < v->count; i++)
		if (strcmp(v->items[i], item) == 0)
			return true;
	return false;
}

void
strv_fini(struct strv *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->items[i]);
	free(v->items);
	*v = (struct strv){ 0 };
}
