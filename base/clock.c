/* SPDX-License-Identifier: MIT */

#include "base/clock.h"

#include <limits.h>
#include <time.h>

static int64_t
clock_ns(clockid_t id)
{
	struct timespec ts;

	(void)clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t
clock_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int
clock_left_ms(int64_t end_ns)
{
	int64_t left = end_ns - clock_mono_ns();

	if (left <= 0)
		return 0;
	left = (left - 1) / 1000000 + 1;
	return left > INT_MAX ? INT_MAX : (int)left;
}

int64_t
clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}
