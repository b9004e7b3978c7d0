/* SPDX-License-Identifier: MIT */
#ifndef BASE_CHILDREN_H
#define BASE_CHILDREN_H

/*
 * Who a process has started and not yet lost: each of its threads has children
 * of its own (/proc/PID/task/TID/children).
 *
 * Thread: any.
 */

#include <stddef.h>
#include <sys/types.h>

/*
 * Calls `found` for each; of a thread whose list has more than `max` bytes for
 * none.  By the time any of them may be gone.
 */
void children_each(pid_t parent, size_t max,
		   void (*found)(pid_t parent, pid_t child, void *data),
		   void *data);

#endif
