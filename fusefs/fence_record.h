/* SPDX-License-Identifier: MIT */
#ifndef FUSEFS_FENCE_RECORD_H
#define FUSEFS_FENCE_RECORD_H

/*
 * From a refusal to its record.  Both return the verdict's errno, whether or
 * not the record could be made: a full spool lifts no rule.  A verdict without
 * a code is a failure (ENOMEM, ESTALE), no refusal, and is not recorded.
 */

#include "fusefs/fence.h"

/* `second` is the other end of a rename or link, or NULL. */
int fence_record_name(struct fs_call *call, enum policy_op op,
		      const struct policy_verdict *verdict,
		      const struct fence_at *at, const struct fence_at *second);

/* `handle`: taken for the caller's ids where the request has none; or NULL. */
int fence_record_inode(struct fs_call *call, enum policy_op op,
		       const struct policy_verdict *verdict,
		       struct fs_inode *inode, const struct fs_handle *handle);

#endif
