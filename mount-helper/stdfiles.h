/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_STDFILES_H
#define MOUNT_HELPER_STDFILES_H

#include <stdbool.h>

#include "base/errmsg.h"

#define STDFILES 3

/* Those of 0, 1 and 2 that were opened anew; -1 for the others. */
struct stdfiles {
	int original[STDFILES]; /* what the caller gave */
	int copy[STDFILES];	/* what the command got */
};

void stdfiles_init(struct stdfiles *files);

/* Whether one of 0, 1 and 2 is a file that was given for reading. */
bool stdfiles_are_files(void);

/*
 * Opens files again on a read-only mount.  By the usher, while its mounts are
 * still the host's.
 */
int stdfiles_fence(struct stdfiles *files, struct errmsg *why);

/* Opens directories again, as the world shows them.  By init. */
void stdfiles_enter_world(void);

/* Keeps what stdfiles_settle() needs; before 0, 1 and 2 are released. */
void stdfiles_keep(struct stdfiles *files);

/* The caller's files are read as far as the command has read. */
void stdfiles_settle(const struct stdfiles *files);

void stdfiles_fini(struct stdfiles *files);

#endif
