/* SPDX-License-Identifier: MIT */
#ifndef BASE_ERRMSG_H
#define BASE_ERRMSG_H

/*
 * One sentence for the person who must act: "cannot mount '%s': not a
 * directory".  Fixed size, so that telling of an error cannot fail.
 * Thread: any (the caller owns the struct).
 */

#define ERRMSG_MAX 1024

struct errmsg {
	char text[ERRMSG_MAX];
};

/*
 * Sets the sentence and returns `r`, so that a failing path is one line:
 * `return errmsg_set(why, -EINVAL, "…", …);`.  `why` may be NULL.  What does
 * not fit is cut.
 */
int errmsg_set(struct errmsg *why, int r, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
