/* SPDX-License-Identifier: MIT */
#ifndef BASE_SPAWN_SPEC_H
#define BASE_SPAWN_SPEC_H

/*
 * One command for a standing world, as the warden sends it to the world's init
 * in a sealed memory file.  Little-endian, length-prefixed; the decoder takes
 * hostile bytes.
 * Thread: the owner's.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/errmsg.h"
#include "base/strv.h"

#define SPAWN_SPEC_MAGIC   0x53434550u /* "PECS" */
#define SPAWN_SPEC_VERSION 1u

#define SPAWN_SPEC_UMASK (1u << 0) /* `umask` is given; else init's own */
/* Descriptor 0 becomes the controlling terminal. */
#define SPAWN_SPEC_TERMINAL (1u << 1)

struct spawn_spec {
	uint32_t flags;	  /* SPAWN_SPEC_* */
	uint32_t umask;	  /* at most 0777 */
	char *cwd;	  /* absolute, clean */
	char *console;	  /* path of the client's terminal, "" for none */
	struct strv argv; /* at least one */
	struct strv env;
};

/* Errors: -E2BIG, -ENOMEM. */
int spawn_spec_encode(const struct spawn_spec *spec, struct buf *ret_bytes);

/* Errors: -EINVAL (with a sentence), -E2BIG, -ENOMEM. */
int spawn_spec_decode(const void *bytes, size_t len,
		      struct spawn_spec *ret_spec, struct errmsg *why);

void spawn_spec_fini(struct spawn_spec *spec);

#endif
