/* SPDX-License-Identifier: MIT */

#include "base/errmsg.h"

#include <stdarg.h>
#include <stdio.h>

int
errmsg_set(struct errmsg *why, int r, const char *format, ...)
{
	va_list args;

	if (!why)
		return r;
	va_start(args, format);
	(void)vsnprintf(why->text, sizeof(why->text), format, args);
	va_end(args);
	return r;
}
