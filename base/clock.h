/* SPDX-License-Identifier: MIT */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* The two clocks: monotonic for time-outs, real for records.  Thread: any. */

#include <stdint.h>

/* CLOCK_MONOTONIC, in nanoseconds. */
int64_t clock_mono_ns(void);

/* CLOCK_REALTIME, in nanoseconds since the epoch, UTC. */
int64_t clock_real_ns(void);

#endif
