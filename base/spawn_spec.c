/* SPDX-License-Identifier: MIT */

/*
 * The bytes of a spec:
 *
 *   u32 magic, version, flags, umask
 *   str cwd, console
 *   argv, env: each u32 count, then that many str
 *
 * and nothing after.
 */

#include "base/spawn_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/path.h"

int
spawn_spec_encode(const struct spawn_spec *spec, struct buf *ret_bytes)
{
	struct buf b = { 0 };
	int r;

	buf_u32(&b, SPAWN_SPEC_MAGIC);
	buf_u32(&b, SPAWN_SPEC_VERSION);
	buf_u32(&b, spec->flags);
	buf_u32(&b, spec->umask);
	buf_str(&b, spec->cwd ? spec->cwd : "");
	buf_str(&b, spec->console ? spec->console : "");
	buf_strv(&b, &spec->argv);
	buf_strv(&b, &spec->env);
	r = buf_error(&b);
	if (r == 0 && b.len > LIMIT_SPAWN_BYTES)
		r = -E2BIG;
	if (r < 0)
		buf_fini(&b);
	else
		*ret_bytes = b;
	return r;
}

static int
get_spec(struct bufread *in, struct spawn_spec *spec, struct errmsg *why)
{
	int r;

	if (bufread_u32(in) != SPAWN_SPEC_MAGIC ||
	    bufread_u32(in) != SPAWN_SPEC_VERSION)
		return errmsg_set(why, -EINVAL,
				  "command: not one of this version");
	spec->flags = bufread_u32(in);
	spec->umask = bufread_u32(in);
	spec->cwd = bufread_str(in);
	spec->console = bufread_str(in);
	r = bufread_strv(in, &spec->argv);
	if (r == 0)
		r = bufread_strv(in, &spec->env);
	if (r < 0)
		return errmsg_set(why, r, "out of memory");
	if (in->bad || in->left > 0)
		return errmsg_set(why, -EINVAL, "command: cut or too long");
	if ((spec->flags & ~(SPAWN_SPEC_UMASK | SPAWN_SPEC_TERMINAL)) ||
	    spec->umask > 0777)
		return errmsg_set(why, -EINVAL,
				  "command: values that are not known");
	if (!path_is_clean(spec->cwd))
		return errmsg_set(why, -EINVAL,
				  "command: directory '%s' is not a clean "
				  "absolute path",
				  spec->cwd);
	if (spec->argv.count == 0)
		return errmsg_set(why, -EINVAL, "command: it names none");
	return 0;
}

int
spawn_spec_decode(const void *bytes, size_t len, struct spawn_spec *ret_spec,
		  struct errmsg *why)
{
	struct bufread in = { .at = bytes, .left = len };
	struct spawn_spec spec = { 0 };
	int r;

	if (len > LIMIT_SPAWN_BYTES)
		return errmsg_set(why, -E2BIG, "command: %zu bytes, at most %u",
				  len, LIMIT_SPAWN_BYTES);
	r = get_spec(&in, &spec, why);
	if (r < 0) {
		spawn_spec_fini(&spec);
		return r;
	}
	*ret_spec = spec;
	return 0;
}

void
spawn_spec_fini(struct spawn_spec *spec)
{
	free(spec->cwd);
	free(spec->console);
	strv_fini(&spec->argv);
	strv_fini(&spec->env);
	*spec = (struct spawn_spec){ 0 };
}
