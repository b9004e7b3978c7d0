/* SPDX-License-Identifier: MIT */
#ifndef WARDEN_MODE_H
#define WARDEN_MODE_H

/* The live change of a world's mode, for whoever may ask for it. */

#include "rpc/rpc.h"
#include "warden/warden_priv.h"

/*
 * When it returns 0, the mode is in force everywhere and on record.  -EBADMSG:
 * refused, see *ret_fault.  May take long.  Thread: any but the loop.
 */
int warden_change_mode(struct warden *warden, enum rpc_role role,
		       enum policy_mode mode, enum policy_mode *ret_before,
		       struct rpc_fault *ret_fault);

/* Then everybody is told.  Thread: loop. */
void warden_mode_changed(struct warden *warden, enum policy_mode before,
			 enum policy_mode after);

#endif
