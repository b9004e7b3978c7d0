/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_SURVIVORS_H
#define WARDEN_SURVIVORS_H

/*
 * Who of a tree still lives, for people: a moment later the numbers may be
 * others'.
 */

#include <stddef.h>
#include <sys/types.h>

/* "12 (cat), 34 (sh)": descendants of the host's process `first`, or itself. */
void survivors_text(pid_t first, char *text, size_t size);

#endif
