/* SPDX-License-Identifier: MIT */
#ifndef BASE_STRV_H
#define BASE_STRV_H

/*
 * A growing vector of owned strings; also NULL-terminated, so that `items`
 * serves as an argv or envp.  A zeroed struct is an empty vector.
 * Thread: the owner's.
 */

#include <stdbool.h>
#include <stddef.h>

struct strv {
	char **items; /* count strings, then NULL; NULL when never filled */
	size_t count;
	size_t room;
};

/* Appends a copy.  Errors: -ENOMEM. */
int strv_add(struct strv *v, const char *item);

/* Appends a formatted string.  Errors: -ENOMEM. */
int strv_addf(struct strv *v, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Appends copies of all of `from`.  Errors: -ENOMEM (v keeps a prefix). */
int strv_extend(struct strv *v, const struct strv *from);

bool strv_has(const struct strv *v, const char *item);

/* Frees the strings and empties the vector. */
void strv_fini(struct strv *v);

#endif
