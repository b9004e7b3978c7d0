/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_TREE_H
#define WARDEN_TREE_H

/*
 * What this warden serves at `.pale` of its mounts (fusefs/tree.h).
 *
 * Thread: loop.
 */

struct warden;
struct warden_tree;

/* Before the first mount is opened.  Errors: -ENOMEM, of the loop. */
int warden_tree_new(struct warden *warden, struct warden_tree **ret_tree);
/* For fs_config; NULL: there is none. */
struct tree *warden_tree_served(const struct warden_tree *tree);
/* The store has new rows. */
void warden_tree_denials(struct warden_tree *tree);
/* The mode has changed, by whomever. */
void warden_tree_mode(struct warden_tree *tree);
/* The loop is about to end: answers what waits, closes the handles. */
void warden_tree_close(struct warden_tree *tree);
/* After the loop and the last mount.  Returns NULL. */
struct warden_tree *warden_tree_free(struct warden_tree *tree);

#endif
