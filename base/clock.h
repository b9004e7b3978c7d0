/* SPDX-License-Identifier: MIT */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

/* The two clocks: monotonic for time-outs, real for records.  Thread: any. */

#include <stdint.h>

/* CLOCK_MONOTONIC, in nanoseconds. */
int64_t clock_mono_ns(void);

/*
 * How long poll(2) may wait for a CLOCK_MONOTONIC time, rounded up; 0 when it
 * is over.  What is too far for an int is cut: wake up and ask again.
 */
int clock_left_ms(int64_t end_ns);

/* CLOCK_REALTIME, in nanoseconds since the epoch, UTC. */
int64_t clock_real_ns(void);

#endif
