/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_SWEEP_H
#define MOUNT_HELPER_SWEEP_H

/*
 * Sends a signal to every process of the world but init: in a pid namespace
 * that is one call; an unconfined init signals its descendants, whose orphans
 * come to it, so that repeating it reaches all.
 */

#include <stdbool.h>

void sweep_signal(bool confined, int sig);

#endif
