/* SPDX-License-Identifier: MIT */
#ifndef BASE_TREE_H
#define BASE_TREE_H

/*
 * Removing what others made.  Thread: any.
 */

/*
 * Removes all that is in the directory `dirfd`, but not the directory itself.
 * No symlink is followed, no mount crossed (EBUSY), no depth descended.
 */
int tree_empty(int dirfd);

#endif
