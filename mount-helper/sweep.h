/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_SWEEP_H
#define MOUNT_HELPER_SWEEP_H

/*
 * Sends a signal to every process of the world but init: in a pid namespace
 * that is one call; an init without one signals its descendants, whose orphans
 * come to it, so that repeating it reaches all.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

void sweep_signal(bool namespaced, int sig);

/* The caller's descendants, all but the child `spared` and what is below it. */
void sweep_descendants(pid_t spared, int sig);

/*
 * Kills all of the world but the caller; to be repeated until nobody is left,
 * which began at `since_ns`, monotonic.
 */
void sweep_kill(bool namespaced, int64_t since_ns);

/* Kills the caller's children but for the spared. */
void sweep_heirs(const pid_t *spared, size_t n);

#endif
