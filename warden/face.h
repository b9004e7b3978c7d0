/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_FACE_H
#define WARDEN_FACE_H

/*
 * A face: a standing world's workspace, mounted for the host.  It is a second
 * FUSE session of this warden, under the same policy and with the same
 * records; the mount is made, and taken away, by the client on whose
 * connection the face hangs (cli/host_keeper.c).
 *
 *	world.mount  the roots are opened, before the mount covers them
 *	world.serve  the mount's descriptor comes, and is served
 *	unmounted, or the client is gone: the face goes
 *
 * Thread: loop, but for faces_set_policy().
 */

#include "policy/policy.h"
#include "warden/server_priv.h"

int face_mount(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault);
int face_serve(struct client *client, const struct rpc_message *message,
	       struct buf *ret_json, struct rpc_fault *ret_fault);
/* Ends it, also while a world has a copy of the mount in its namespace. */
int face_unmount(struct client *client, const struct rpc_message *message,
		 struct buf *ret_json, struct rpc_fault *ret_fault);
/* The one on its connection; NULL: none. */
struct face *face_of_client(const struct client *client);
void face_client_gone(struct client *client);

/*
 * Where the first of them is, the caller's; NULL: there is none (or no memory).
 * Thread: any.
 */
char *faces_mountpoint(struct warden *warden);

/* Swaps the policy of all; as fs_set_policy().  Thread: any, one at a time. */
int faces_set_policy(struct warden *warden, struct policy *policy);

#endif
