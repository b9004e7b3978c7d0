/* SPDX-License-Identifier: MIT */
#ifndef MOUNT_HELPER_ADVICE_H
#define MOUNT_HELPER_ADVICE_H

/*
 * What to do when the machine refuses: the second half of a sentence, "" when
 * there is nothing to advise.  Looked up only after a failure.
 */

/* `r`: the negative errno of a clone(2) or mount(2) in a user namespace. */
const char *advice_userns(int r);

/* `r`: the negative errno of open("/dev/fuse"). */
const char *advice_fuse(int r);

/* `r`: the negative errno of mounting a fresh /proc. */
const char *advice_proc(int r);

#endif
