/* SPDX-License-Identifier: MIT */
#ifndef BASE_UNITS_H
#define BASE_UNITS_H

/*
 * Durations and sizes as people write them, on the command line and in the
 * configuration file alike.  Thread: any.
 */

#include <stdint.h>

/* "500ms", "1.5s", "5m", "2h"; a bare number is seconds.  -EINVAL. */
int units_duration_ms(const char *text, uint64_t *ret_ms);

/* "64K", "4M", "2G", "1T" (powers of 1024); a bare number is bytes.  -EINVAL. */
int units_size(const char *text, uint64_t *ret_bytes);

/* A plain decimal number.  -EINVAL. */
int units_number(const char *text, uint64_t *ret_number);

/* "j17" of the letter j, or "17"; at most 18 digits, not 0.  -EINVAL. */
int units_id(char letter, const char *text, uint64_t *ret_id);

#endif
