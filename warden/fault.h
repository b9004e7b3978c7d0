/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_FAULT_H
#define WARDEN_FAULT_H

/*
 * A test kills the warden at a named point, at the n-th time it comes there:
 * "settled" or "spliced:3" in a variable of the environment.  That can only end
 * a world, never open it.
 *
 * Thread: as the owner's; two that come to the point at once count as they do.
 */

struct fault {
	const char *point; /* NULL: none */
	unsigned int nth;
};

void fault_read(struct fault *fault, const char *variable);

/* Does not return where it is wanted. */
void fault_here(struct fault *fault, const char *point);

#endif
