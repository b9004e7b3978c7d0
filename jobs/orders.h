/* SPDX-License-Identifier: MIT */
#ifndef JOBS_ORDERS_H
#define JOBS_ORDERS_H

/*
 * What can be written to the `ctl` of a job, a line each:
 *
 *	kill [SIGNAL]	to all of it, SIGKILL after a while
 *	signal SIGNAL	nothing else
 *	close-stdin
 *
 * Thread: any.
 */

#include <stddef.h>

#define JOB_ORDERS_MAX	 16
#define JOB_ORDERS_BYTES 1024

enum job_order_kind {
	JOB_ORDER_KILL,
	JOB_ORDER_SIGNAL,
	JOB_ORDER_CLOSE_STDIN,
};

struct job_order {
	enum job_order_kind kind;
	int signal;
};

/* "15", "TERM", "sigterm"; 0: there is none of that name. */
int job_signal_parse(const char *text);

/*
 * Reads all lines, or none: -EINVAL, and *ret_wrong says in a static text what
 * is wrong.  Empty lines are no orders.
 */
int job_orders_parse(const char *bytes, size_t len,
		     struct job_order ret_orders[JOB_ORDERS_MAX],
		     size_t *ret_count, const char **ret_wrong);

#endif
