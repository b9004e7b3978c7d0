/* SPDX-License-Identifier: MIT */
#ifndef BASE_WORLD_FLAGS_H
#define BASE_WORLD_FLAGS_H

/*
 * What of a world's fence is missing, as the keeper tells: wire_msg.flags of
 * WIRE_STARTED (to the CLI and to the warden) and of WIRE_EXITED.
 */

#include <stdbool.h>
#include <stdint.h>

#define WORLD_NO_USERNS	  (1u << 0) /* root, user namespaces refused */
#define WORLD_NO_OBSERVER (1u << 1) /* no listener: one is there already */
#define WORLD_NO_SCOPE	  (1u << 2) /* Landlock cannot scope */
#define WORLD_HOME_TMPFS  (1u << 3) /* the home could not be layered */
#define WORLD_NO_IOCTL	  (1u << 4) /* Landlock knows no ioctl of devices */

/*
 * The level of enforcement, which speaks of the effects on files; what the
 * other flags cost is said beside it (ipc, observer).  `landlock`: there is no
 * world, only its rules.
 */
static inline const char *
world_level(uint32_t flags, bool landlock)
{
	return landlock || (flags & WORLD_NO_USERNS) ? "partial" : "full";
}

#endif
