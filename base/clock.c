/* SPDX-License-Identifier: MIT */

#include "base/clock.h"

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

int64_t
clock_real_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}
