/* SPDX-License-Identifier: MIT */

#include "jobs/orders.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int
job_signal_parse(const char *text)
{
	char *end;
	long number = strtol(text, &end, 10);

	if (*text >= '0' && *text <= '9')
		return *end == '\0' && number >= 1 && number < SIGRTMIN
			       ? (int)number
			       : 0;
	if (strncasecmp(text, "sig", 3) == 0)
		text += 3;
	for (int i = 1; i < SIGRTMIN; i++) {
		const char *name = sigabbrev_np(i);

		if (name && strcasecmp(name, text) == 0)
			return i;
	}
	return 0;
}

/* NULL: understood; else what is wrong with it. */
static const char *
parse_line(char *line, struct job_order *ret_order)
{
	char *save = NULL, *verb = strtok_r(line, " \t\r", &save);
	char *argument = strtok_r(NULL, " \t\r", &save);
	struct job_order order = { .signal = SIGTERM };

	if (strtok_r(NULL, " \t\r", &save))
		return "more than one argument";
	if (argument) {
		order.signal = job_signal_parse(argument);
		if (order.signal == 0)
			return "no such signal";
	}
	if (strcmp(verb, "kill") == 0)
		order.kind = JOB_ORDER_KILL;
	else if (strcmp(verb, "signal") == 0 && argument)
		order.kind = JOB_ORDER_SIGNAL;
	else if (strcmp(verb, "close-stdin") == 0 && !argument)
		order.kind = JOB_ORDER_CLOSE_STDIN;
	else
		return "not a verb: kill [SIGNAL], signal SIGNAL, close-stdin";
	*ret_order = order;
	return NULL;
}

int
job_orders_parse(const char *bytes, size_t len,
		 struct job_order ret_orders[JOB_ORDERS_MAX], size_t *ret_count,
		 const char **ret_wrong)
{
	char text[JOB_ORDERS_BYTES], *save = NULL;
	const char *wrong = NULL;
	size_t n = 0;

	if (len >= sizeof(text) || (len > 0 && memchr(bytes, '\0', len))) {
		*ret_wrong = "not a line of text";
		return -EINVAL;
	}
	if (len > 0)
		memcpy(text, bytes, len);
	text[len] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line && !wrong;
	     line = strtok_r(NULL, "\n", &save)) {
		if (line[strspn(line, " \t\r")] == '\0')
			continue;
		if (n == JOB_ORDERS_MAX)
			wrong = "too many lines";
		else
			wrong = parse_line(line, &ret_orders[n++]);
	}
	if (wrong) {
		*ret_wrong = wrong;
		return -EINVAL;
	}
	*ret_count = n;
	return 0;
}
