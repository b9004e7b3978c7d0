/* SPDX-License-Identifier: MIT */
#ifndef PTY_WIDTH_H
#define PTY_WIDTH_H

/*
 * How many columns a character takes: 0, 1 or 2.
 *
 * The table agrees with wcwidth() of glibc 2.36 in UTF-8 (Unicode 14), so that
 * a program and its screen count alike; blocks of emoji and ideographs that
 * were not all assigned then are wide throughout.  It looks at one character
 * at a time.  So of what readers see as one sign: a base with up to six marks,
 * joiners and selectors among them, is one cell (more marks are dropped); a
 * family joined by ZWJ is as many wide cells as it has people; VS16 does not
 * widen its base; a flag is two cells, a regional indicator in each.
 */

#include <stdint.h>

unsigned int width_of(uint32_t ch);

#endif
