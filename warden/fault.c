/* SPDX-License-Identifier: MIT */

#include "warden/fault.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
fault_read(struct fault *fault, const char *variable)
{
	const char *text = getenv(variable);
	const char *colon = text ? strchr(text, ':') : NULL;

	fault->point = text && *text ? text : NULL;
	fault->nth = colon ? (unsigned int)atoi(colon + 1) : 1;
}

void
fault_here(struct fault *fault, const char *point)
{
	size_t len;

	if (!fault->point)
		return;
	len = strlen(point);
	if (strncmp(fault->point, point, len) != 0 ||
	    (fault->point[len] != '\0' && fault->point[len] != ':') ||
	    --fault->nth > 0)
		return;
	(void)kill(getpid(), SIGKILL);
}
