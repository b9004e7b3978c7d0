/* SPDX-License-Identifier: MIT */
#ifndef BASE_ECHO_H
#define BASE_ECHO_H

/*
 * Orders to the echo (mount-helper/echo.h) and its answers, over a
 * SOCK_SEQPACKET pair that nobody else has: one struct echo_order, cut behind
 * its text, then one struct echo_answer.  The first answer, with number 0,
 * comes unasked; its sender's credentials say which process the echo is.
 */

#include <limits.h>
#include <stdint.h>

enum echo_step {
	ECHO_NOTHING, /* only answer */
	ECHO_PROBE, /* the mount is there: look for the name, and keep to it */
	ECHO_REMOVE,
	ECHO_RENAME,
	ECHO_MAKE,
	ECHO_CONTENT, /* the time of change alone: "modified" */
	ECHO_CLOSE,   /* opened for writing, and closed */
	ECHO_META,    /* both times: "attributes" */
};

/* `text`: directory, name; to rename, also those of the new place. */
#define ECHO_STRINGS 4
#define ECHO_TEXT    (2 * (PATH_MAX + NAME_MAX + 1))

struct echo_order {
	uint32_t id;
	uint32_t step; /* enum echo_step */
	uint32_t type; /* S_IFMT bits: what it was, or is to be */
	uint32_t len;  /* of `text` */
	char text[ECHO_TEXT];
};

struct echo_answer {
	uint32_t id;
	int32_t result; /* 0 or a negative errno */
};

#endif
