/* SPDX-License-Identifier: MIT */

/*
 * The bytes of a plan:
 *
 *   u32 magic, version, flags, uid, gid
 *   u64 memory, pids, cpu_percent, timeout_ms, linger_ms
 *   str world, fuse_options, cwd, console
 *   u32 count, then per mount: u32 kind, flags, index, mode; u64 size;
 *       str source, target, upper, work
 *   argv, env, warden: each u32 count, then that many str
 *
 * and nothing after.  The decoder gives up at the first byte that does not
 * fit; what it has built until then is released by its caller's plan_fini().
 */

#include "base/plan.h"

#include <stdbool.h>
#include <string.h>

#include "base/limits.h"
#include "base/path.h"

#define PLAN_MOUNT_FLAGS (PLAN_F_RO | PLAN_F_OPTIONAL)
#define PLAN_FLAGS                                                \
	(PLAN_NET_NONE | PLAN_NO_NEST | PLAN_OBSERVE | PLAN_TTY | \
	 PLAN_UNCONFINED | PLAN_NO_USERNS | PLAN_STANDING | PLAN_LANDLOCK)

static void
mount_fini(struct plan_mount *mount)
{
	free(mount->source);
	free(mount->target);
	free(mount->upper);
	free(mount->work);
}

/* A full array holds a power of two (or nothing), so no room is kept. */
static int
mounts_reserve(struct plan *plan)
{
	size_t n = plan->n_mounts;
	struct plan_mount *mounts;

	if (n >= LIMIT_PLAN_MOUNTS)
		return -E2BIG;
	if (n & (n - 1))
		return 0;
	mounts = realloc(plan->mounts, (n ? 2 * n : 1) * sizeof(*mounts));
	if (!mounts)
		return -ENOMEM;
	plan->mounts = mounts;
	return 0;
}

int
plan_add(struct plan *plan, const struct plan_mount *mount)
{
	struct plan_mount copy = *mount;
	int r = mounts_reserve(plan);

	if (r < 0)
		return r;
	copy.source = strdup(mount->source ? mount->source : "");
	copy.target = strdup(mount->target ? mount->target : "");
	copy.upper = strdup(mount->upper ? mount->upper : "");
	copy.work = strdup(mount->work ? mount->work : "");
	if (!copy.source || !copy.target || !copy.upper || !copy.work) {
		mount_fini(&copy);
		return -ENOMEM;
	}
	plan->mounts[plan->n_mounts++] = copy;
	return 0;
}

static void
put_str(struct buf *b, const char *text)
{
	buf_str(b, text ? text : "");
}

int
plan_encode(const struct plan *plan, struct buf *ret_bytes)
{
	struct buf b = { 0 };

	buf_u32(&b, PLAN_MAGIC);
	buf_u32(&b, PLAN_VERSION);
	buf_u32(&b, plan->flags);
	buf_u32(&b, plan->uid);
	buf_u32(&b, plan->gid);
	buf_u64(&b, plan->memory);
	buf_u64(&b, plan->pids);
	buf_u64(&b, plan->cpu_percent);
	buf_u64(&b, plan->timeout_ms);
	buf_u64(&b, plan->linger_ms);
	put_str(&b, plan->world);
	put_str(&b, plan->fuse_options);
	put_str(&b, plan->cwd);
	put_str(&b, plan->console);
	buf_u32(&b, (uint32_t)plan->n_mounts);
	for (size_t i = 0; i < plan->n_mounts; i++) {
		const struct plan_mount *m = &plan->mounts[i];

		buf_u32(&b, m->kind);
		buf_u32(&b, m->flags);
		buf_u32(&b, m->index);
		buf_u32(&b, m->mode);
		buf_u64(&b, m->size);
		put_str(&b, m->source);
		put_str(&b, m->target);
		put_str(&b, m->upper);
		put_str(&b, m->work);
	}
	buf_strv(&b, &plan->argv);
	buf_strv(&b, &plan->env);
	buf_strv(&b, &plan->warden);

	if (buf_error(&b) < 0 || b.len > LIMIT_PLAN_BYTES) {
		int r = buf_error(&b) < 0 ? buf_error(&b) : -E2BIG;

		buf_fini(&b);
		return r;
	}
	*ret_bytes = b;
	return 0;
}

static int
check_mount(const struct plan_mount *m, struct errmsg *why)
{
	if (m->kind >= PLAN_MOUNT_KINDS || (m->flags & ~PLAN_MOUNT_FLAGS) ||
	    m->index >= LIMIT_ROOTS || m->mode > 07777)
		return errmsg_set(why, -EINVAL,
				  "mount plan: entry for '%s' has values that "
				  "are not known",
				  m->target);
	if (!path_is_clean(m->target))
		return errmsg_set(why, -EINVAL,
				  "mount plan: target '%s' is not a clean "
				  "absolute path",
				  m->target);
	if ((m->kind == PLAN_BIND || m->kind == PLAN_SOCKET ||
	     m->kind == PLAN_DEVICE || m->kind == PLAN_OVERLAY) &&
	    !path_is_clean(m->source))
		return errmsg_set(why, -EINVAL,
				  "mount plan: source '%s' is not a clean "
				  "absolute path",
				  m->source);
	if (m->kind == PLAN_OVERLAY &&
	    (!path_is_clean(m->upper) || !path_is_clean(m->work)))
		return errmsg_set(why, -EINVAL,
				  "mount plan: overlay on '%s' lacks its "
				  "directories",
				  m->target);
	return 0;
}

static int
get_mounts(struct bufread *in, struct plan *plan, struct errmsg *why)
{
	uint32_t count = bufread_u32(in);

	if (in->bad)
		return errmsg_set(why, -EINVAL, "mount plan: cut short");
	if (count > LIMIT_PLAN_MOUNTS)
		return errmsg_set(why, -E2BIG,
				  "mount plan: %u mounts, at most %d", count,
				  LIMIT_PLAN_MOUNTS);
	for (uint32_t i = 0; i < count; i++) {
		struct plan_mount *m;
		int r = mounts_reserve(plan);

		if (r < 0)
			return errmsg_set(why, r, "out of memory");
		m = &plan->mounts[plan->n_mounts++];
		m->kind = bufread_u32(in);
		m->flags = bufread_u32(in);
		m->index = bufread_u32(in);
		m->mode = bufread_u32(in);
		m->size = bufread_u64(in);
		m->source = bufread_str(in);
		m->target = bufread_str(in);
		m->upper = bufread_str(in);
		m->work = bufread_str(in);
		if (in->bad)
			return errmsg_set(why, -EINVAL,
					  "mount plan: cut short");
		r = check_mount(m, why);
		if (r < 0)
			return r;
	}
	return 0;
}

static int
get_strv(struct bufread *in, struct strv *v, struct errmsg *why)
{
	if (bufread_strv(in, v) < 0)
		return errmsg_set(why, -ENOMEM, "out of memory");
	if (in->bad)
		return errmsg_set(why, -EINVAL, "mount plan: cut short");
	return 0;
}

static int
get_head(struct bufread *in, struct plan *plan, struct errmsg *why)
{
	if (bufread_u32(in) != PLAN_MAGIC || bufread_u32(in) != PLAN_VERSION)
		return errmsg_set(why, -EINVAL,
				  "mount plan: not a plan of this version");
	plan->flags = bufread_u32(in);
	plan->uid = bufread_u32(in);
	plan->gid = bufread_u32(in);
	plan->memory = bufread_u64(in);
	plan->pids = bufread_u64(in);
	plan->cpu_percent = bufread_u64(in);
	plan->timeout_ms = bufread_u64(in);
	plan->linger_ms = bufread_u64(in);
	plan->world = bufread_str(in);
	plan->fuse_options = bufread_str(in);
	plan->cwd = bufread_str(in);
	plan->console = bufread_str(in);
	if (in->bad)
		return errmsg_set(why, -EINVAL, "mount plan: cut short");
	if (plan->flags & ~PLAN_FLAGS)
		return errmsg_set(why, -EINVAL,
				  "mount plan: flags %#x are not known",
				  plan->flags);
	return 0;
}

/* Where nothing can be mounted, a mount must not be left out unsaid. */
static int
check_landlock(const struct plan *plan, struct errmsg *why)
{
	bool landlock = plan->flags & PLAN_LANDLOCK;

	for (size_t i = 0; i < plan->n_mounts; i++)
		if ((plan->mounts[i].kind >= PLAN_GRANT_TREE) != landlock)
			return errmsg_set(why, -EINVAL,
					  "mount plan: entry for '%s' is not "
					  "for a world of this kind",
					  plan->mounts[i].target);
	if (landlock && (plan->flags & PLAN_UNCONFINED))
		return errmsg_set(why, -EINVAL,
				  "mount plan: fenced and unconfined");
	return 0;
}

static int
get_plan(struct bufread *in, struct plan *plan, struct errmsg *why)
{
	int r;

	r = get_head(in, plan, why);
	if (r == 0)
		r = get_mounts(in, plan, why);
	if (r == 0)
		r = get_strv(in, &plan->argv, why);
	if (r == 0)
		r = get_strv(in, &plan->env, why);
	if (r == 0)
		r = get_strv(in, &plan->warden, why);
	if (r < 0)
		return r;
	if (in->left > 0)
		return errmsg_set(why, -EINVAL,
				  "mount plan: %zu bytes too many", in->left);
	if ((plan->flags & PLAN_UNCONFINED) && plan->n_mounts > 0)
		return errmsg_set(why, -EINVAL,
				  "mount plan: mounts in an unconfined world");
	return check_landlock(plan, why);
}

int
plan_decode(const void *bytes, size_t len, struct plan *ret_plan,
	    struct errmsg *why)
{
	struct bufread in = { .at = bytes, .left = len };
	struct plan plan = { 0 };
	int r;

	if (len > LIMIT_PLAN_BYTES)
		return errmsg_set(why, -E2BIG,
				  "mount plan: %zu bytes, at most %u", len,
				  LIMIT_PLAN_BYTES);
	r = get_plan(&in, &plan, why);
	if (r < 0) {
		plan_fini(&plan);
		return r;
	}
	*ret_plan = plan;
	return 0;
}

void
plan_fini(struct plan *plan)
{
	for (size_t i = 0; i < plan->n_mounts; i++)
		mount_fini(&plan->mounts[i]);
	free(plan->mounts);
	free(plan->world);
	free(plan->fuse_options);
	free(plan->cwd);
	free(plan->console);
	strv_fini(&plan->argv);
	strv_fini(&plan->env);
	strv_fini(&plan->warden);
	*plan = (struct plan){ 0 };
}
