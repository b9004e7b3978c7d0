/* SPDX-License-Identifier: MIT */

/*
 * Three kinds of place must not get into each other's way:
 *
 *   areas   /tmp, /var/tmp, /dev, /run: the world's own, made first, so that a
 *           root below one (/tmp/x) is mounted over it;
 *   roots   what the policy is about, outer before inner; the workspace before
 *           other FUSE roots, which are looked up through it;
 *   covers  what must be out of sight, after the roots, and pale's own
 *           directories last of all: no root may bring them back.
 *
 * An area that is read-only in the end is writable until then, or no mount
 * point could be made in it.
 */

#include "policy/world_plan.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "policy/policy_priv.h"

#define TMP_SIZE (UINT64_C(2) << 30)
#define RUN_SIZE (UINT64_C(16) << 20)

/* One plan being built; the first error stays. */
struct builder {
	const struct policy *policy;
	const struct world_plan_input *in;
	struct plan *plan;
	struct errmsg *why;
	int error;
};

static void
fail_add(struct builder *b, int r)
{
	if (r == 0 || b->error < 0)
		return;
	if (r == -E2BIG)
		b->error = errmsg_set(b->why, r, "more than %d mounts",
				      LIMIT_PLAN_MOUNTS);
	else
		b->error = errmsg_set(b->why, r, "out of memory");
}

static void
put(struct builder *b, struct plan_mount mount)
{
	if (b->error == 0)
		fail_add(b, plan_add(b->plan, &mount));
}

/* plan_add() copies, but its struct owns what a decoded plan holds. */
static char *
borrow(const char *text)
{
	return (char *)(uintptr_t)text;
}

static void
put_tmpfs(struct builder *b, const char *target, uint64_t size, uint32_t mode)
{
	put(b, (struct plan_mount){ .kind = PLAN_TMPFS,
				    .target = borrow(target),
				    .size = size,
				    .mode = mode });
}

static void
put_remount(struct builder *b, const char *target)
{
	put(b, (struct plan_mount){ .kind = PLAN_REMOUNT_RO,
				    .target = borrow(target) });
}

static void
put_from(struct builder *b, enum plan_mount_kind kind, const char *source,
	 uint32_t flags)
{
	put(b, (struct plan_mount){ .kind = kind,
				    .flags = flags,
				    .source = borrow(source),
				    .target = borrow(source) });
}

/* ---- areas ---- */

/*
 * What programs read in /run: files and directories of files.  No directory
 * with a socket in it, for that would be a door.
 */
static const char *const run_files[] = {
	"/run/systemd/resolve/resolv.conf",
	"/run/systemd/resolve/stub-resolv.conf",
	"/run/resolvconf/resolv.conf",
	"/run/NetworkManager/resolv.conf",
	"/run/NetworkManager/no-stub-resolv.conf",
	"/run/connman/resolv.conf",
	"/run/current-system",
	"/run/booted-system",
	"/run/opengl-driver",
};

static void
put_run(struct builder *b)
{
	const char *resolv = b->in->resolv_conf;
	bool listed = false;

	put_tmpfs(b, "/run", RUN_SIZE, 0755);
	for (size_t i = 0; i < sizeof(run_files) / sizeof(*run_files); i++) {
		put_from(b, PLAN_BIND, run_files[i],
			 PLAN_F_RO | PLAN_F_OPTIONAL);
		listed |= resolv && strcmp(resolv, run_files[i]) == 0;
	}
	if (resolv && !listed && path_is_in(resolv, "/run", NULL) &&
	    path_is_clean(resolv))
		put_from(b, PLAN_BIND, resolv, PLAN_F_RO | PLAN_F_OPTIONAL);
}

/* The world's own place that `path` lies in, or NULL. */
static const char *
area_of(const char *path)
{
	const char *temp = policy_temp_area(path);

	if (temp)
		return temp;
	return path_is_in(path, "/run", NULL) ? "/run" : NULL;
}

/* A cwd in an area is there all the same: empty, and of the area's kind. */
static bool
wants_cwd(const struct builder *b)
{
	const char *cwd = b->in->cwd, *area;

	if (!cwd || !path_is_clean(cwd))
		return false;
	area = area_of(cwd);
	return area && strcmp(area, cwd) != 0 &&
	       policy_mounted_root(b->policy, cwd, NULL) < 0;
}

static void
put_areas(struct builder *b)
{
	uint64_t size = b->in->tmp_size ? b->in->tmp_size : TMP_SIZE;

	put_tmpfs(b, "/tmp", size, 01777);
	put_tmpfs(b, "/var/tmp", size, 01777);
	put_run(b);
	put(b, (struct plan_mount){ .kind = PLAN_DEV,
				    .target = borrow("/dev"),
				    .size = size });
	if (wants_cwd(b))
		put_tmpfs(b, b->in->cwd, size, 0700);
}

/* A root at the area itself, or around it, has taken its place. */
static void
put_area_end(struct builder *b, const char *area)
{
	if (policy_mounted_root(b->policy, area, NULL) < 0)
		put_remount(b, area);
}

static void
put_areas_end(struct builder *b)
{
	if (wants_cwd(b) &&
	    (!b->policy->tmp_writable || !policy_temp_area(b->in->cwd)))
		put_remount(b, b->in->cwd);
	put_area_end(b, "/run");
	if (b->policy->tmp_writable)
		return;
	put_area_end(b, "/tmp");
	put_area_end(b, "/var/tmp");
	put_area_end(b, "/dev/shm");
}

/* ---- roots ---- */

static bool
has_private_home(const struct builder *b)
{
	return b->policy->home == POLICY_HOME_PRIVATE && b->policy->home_path;
}

/* An overlay shows no mount that lies below its lower layer. */
static void
put_mounts_of_home(struct builder *b)
{
	const struct strv *mounts = b->in->host_mounts;
	const char *home = b->policy->home_path, *rest;

	for (size_t i = 0; mounts && i < mounts->count; i++) {
		const char *path = mounts->items[i];

		if (path_is_clean(path) && path_is_in(path, home, &rest) &&
		    *rest && policy_mounted_root(b->policy, path, NULL) < 0)
			put_from(b, PLAN_BIND, path,
				 PLAN_F_RO | PLAN_F_OPTIONAL);
	}
}

static void
put_home(struct builder *b)
{
	uint64_t size = b->in->tmp_size ? b->in->tmp_size : TMP_SIZE;

	/* Private it must be; what cannot be layered is empty. */
	if (!b->in->home_upper || !b->in->home_work) {
		put_tmpfs(b, b->policy->home_path, size, 0700);
		return;
	}
	put(b, (struct plan_mount){
		       .kind = PLAN_OVERLAY,
		       .source = b->policy->home_path,
		       .target = b->policy->home_path,
		       .upper = borrow(b->in->home_upper),
		       .work = borrow(b->in->home_work),
	       });
	put_mounts_of_home(b);
}

/* Whether root `i` lies in a root of git; such a one is mounted over it. */
static bool
is_in_git_root(const struct policy *policy, size_t i)
{
	for (size_t g = 0; g < policy->n_roots; g++)
		if (policy->roots[g].kind == POLICY_ROOT_GIT &&
		    path_is_in(policy->roots[i].path, policy->roots[g].path,
			       NULL))
			return true;
	return false;
}

/* The writable roots that are plain binds, in git roots or not, in `set`. */
static size_t
rw_roots(const struct policy *policy, bool in_git, const char **set)
{
	size_t n = 0;

	if (!policy_root_writable(policy))
		return 0;
	for (size_t i = 0; i < policy->n_roots; i++)
		if (policy->roots[i].kind == POLICY_ROOT_RW &&
		    is_in_git_root(policy, i) == in_git)
			set[n++] = policy->roots[i].path;
	return n;
}

static int
by_length(const void *a, const void *b)
{
	size_t x = strlen(*(const char *const *)a);
	size_t y = strlen(*(const char *const *)b);

	return (x > y) - (x < y);
}

/* A path that contains another is shorter: that orders outer before inner. */
static void
put_plain(struct builder *b, bool with_home, bool in_git)
{
	const char *set[LIMIT_ROOTS + 1], *home = b->policy->home_path;
	size_t n = rw_roots(b->policy, in_git, set);

	if (with_home)
		set[n++] = home;
	qsort(set, n, sizeof(*set), by_length);
	for (size_t i = 0; i < n; i++) {
		if (with_home && set[i] == home)
			put_home(b);
		else
			put_from(b, PLAN_BIND, set[i], 0);
	}
}

static void
put_roots(struct builder *b)
{
	const struct policy *policy = b->policy;
	uint32_t index = 0;

	put_plain(b, has_private_home(b), false);
	for (size_t i = 0; i < policy->n_roots; i++) {
		if (policy->roots[i].kind == POLICY_ROOT_RW)
			continue;
		put(b, (struct plan_mount){ .kind = PLAN_FUSE,
					    .index = index,
					    .target = policy->roots[i].path });
		index++;
	}
	put_plain(b, false, true);
}

/* ---- covers ---- */

static void
put_cover(struct builder *b, const char *path)
{
	/* In an area of the world's own there is nothing of the host's. */
	if (area_of(path) && policy_mounted_root(b->policy, path, NULL) < 0)
		return;
	put(b, (struct plan_mount){ .kind = PLAN_COVER,
				    .flags = PLAN_F_OPTIONAL,
				    .target = borrow(path) });
}

static void
put_covers(struct builder *b)
{
	const struct policy *policy = b->policy;
	const struct strv *own = b->in->own_dirs;

	for (size_t i = 0; i < policy->hide_paths.count; i++)
		put_cover(b, policy->hide_paths.items[i]);
	for (size_t i = 0; i < policy->sockets.count; i++)
		put_from(b, PLAN_SOCKET, policy->sockets.items[i], 0);
	for (size_t i = 0; i < policy->name_sockets.count; i++)
		put_from(b, PLAN_SOCKET, policy->name_sockets.items[i],
			 PLAN_F_OPTIONAL);
	for (size_t i = 0; i < policy->devices.count; i++)
		put_from(b, PLAN_DEVICE, policy->devices.items[i], 0);
	for (size_t i = 0; own && i < own->count; i++)
		put_cover(b, own->items[i]);
}

/* ---- Landlock alone ---- */

static void
put_grant(struct builder *b, enum plan_mount_kind kind, const char *target)
{
	put(b, (struct plan_mount){ .kind = kind, .target = borrow(target) });
}

/*
 * What may be written, and nothing else: Landlock knows no exception.  The
 * terminal is the caller's; further ones would be other people's too.
 */
static void
put_grants(struct builder *b)
{
	static const char *const sinks[] = {
		"/dev/null",   "/dev/zero",    "/dev/full",
		"/dev/random", "/dev/urandom", "/dev/tty",
	};
	const struct policy *policy = b->policy;
	const char *roots[LIMIT_ROOTS];
	size_t n = policy_writable_roots(policy, roots);

	for (size_t i = 0; i < n; i++)
		put_grant(b, PLAN_GRANT_TREE, roots[i]);
	if (policy->tmp_writable && policy->tmp_dir)
		put_grant(b, PLAN_GRANT_TREE, policy->tmp_dir);
	for (size_t i = 0; i < sizeof(sinks) / sizeof(*sinks); i++)
		put_grant(b, PLAN_GRANT_FILE, sinks[i]);
	for (size_t i = 0; i < policy->devices.count; i++)
		put_grant(b, PLAN_GRANT_FILE, policy->devices.items[i]);
	if (b->in->temp)
		put_grant(b, PLAN_TEMP, b->in->temp);
}

/* What would be covered in a world must not be written to in this one. */
static int
check_grants(const struct builder *b)
{
	const struct strv *own = b->in->own_dirs;
	const char *roots[LIMIT_ROOTS];
	size_t n = policy_writable_roots(b->policy, roots);

	for (size_t i = 0; own && i < own->count; i++)
		for (size_t k = 0; k < n; k++)
			if (path_is_in(own->items[i], roots[k], NULL))
				return errmsg_set(
					b->why, -ENOTSUP,
					"pale's own directory '%s' lies in "
					"'%s', and Landlock alone cannot keep "
					"it from being written",
					own->items[i], roots[k]);
	return 0;
}

static int
check_own_dirs(const struct builder *b)
{
	const struct policy *policy = b->policy;
	const struct strv *own = b->in->own_dirs;

	for (size_t i = 0; own && i < own->count; i++) {
		if (!path_is_clean(own->items[i]))
			return errmsg_set(b->why, -EINVAL,
					  "'%s' is not a clean absolute path",
					  own->items[i]);
		for (size_t k = 0; k < policy->n_roots; k++)
			if (path_is_in(policy->roots[k].path, own->items[i],
				       NULL))
				return errmsg_set(
					b->why, -EINVAL,
					"'%s' lies in pale's own directory "
					"'%s', which no world may reach",
					policy->roots[k].path, own->items[i]);
	}
	return 0;
}

/* ---- the command ---- */

static bool
is_hidden_variable(const struct policy *policy, const char *entry)
{
	static const char *const ours[] = { "PALE_WORLD", "PALE_SESSION",
					    "PALE_MODE", "PALE_TREE" };
	char name[256];
	size_t len = strcspn(entry, "=");

	if (len >= sizeof(name))
		return policy->env_hide.count > 0;
	memcpy(name, entry, len);
	name[len] = '\0';
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		if (strcmp(name, ours[i]) == 0)
			return true;
	for (size_t i = 0; i < policy->env_hide.count; i++)
		if (fnmatch(policy->env_hide.items[i], name, 0) == 0)
			return true;
	return false;
}

/* A temporary directory that the world lets nobody write is no use. */
static bool
is_useless_tmpdir(const struct policy *policy, const char *entry)
{
	struct policy_verdict v;

	if (strncmp(entry, "TMPDIR=", 7) == 0 && policy->landlock)
		return true;
	if (strncmp(entry, "TMPDIR=/", 8) != 0 || !path_is_clean(entry + 7) ||
	    policy_temp_area(entry + 7))
		return false;
	v = policy_decide_path(policy, POLICY_OP_CREATE, entry + 7, false);
	return v.error < 0;
}

int
world_plan_env(const struct policy *policy, const char *world, bool tree,
	       const struct strv *env, struct strv *to)
{
	int r = 0;

	for (size_t i = 0; env && i < env->count && r == 0; i++) {
		if (is_hidden_variable(policy, env->items[i]))
			continue;
		if (!is_useless_tmpdir(policy, env->items[i]))
			r = strv_add(to, env->items[i]);
		else if (!policy->landlock)
			r = strv_add(to, "TMPDIR=/tmp");
	}
	if (r == 0 && policy->tmp_dir)
		r = strv_addf(to, "TMPDIR=%s", policy->tmp_dir);
	if (r == 0 && world)
		r = strv_addf(to, "PALE_WORLD=%s", world);
	if (r == 0)
		r = strv_addf(to, "PALE_SESSION=%s", policy->session);
	if (r == 0)
		r = strv_addf(to, "PALE_MODE=%s",
			      policy_mode_name(policy->mode));
	if (r == 0 && tree && policy->mode != POLICY_DANGER_FULL_ACCESS &&
	    !policy->landlock)
		r = strv_addf(to, "PALE_TREE=%s/.pale", policy->roots[0].path);
	return r;
}

static int
copy_text(const char *text, char **ret_copy)
{
	*ret_copy = strdup(text ? text : "");
	return *ret_copy ? 0 : -ENOMEM;
}

static uint32_t
plan_flags(const struct builder *b)
{
	const struct policy *policy = b->policy;
	bool tty = b->in->console && b->in->console[0];

	if (policy->mode == POLICY_DANGER_FULL_ACCESS)
		return PLAN_UNCONFINED | (tty ? PLAN_TTY : 0) |
		       (b->in->standing ? PLAN_STANDING : 0);
	return (b->in->standing ? PLAN_STANDING : 0) |
	       (policy->landlock ? PLAN_LANDLOCK : 0) |
	       (policy->net == POLICY_NET_NONE ? PLAN_NET_NONE : 0) |
	       (policy->nest ? 0 : PLAN_NO_NEST) |
	       (b->in->observe ? PLAN_OBSERVE : 0) | (tty ? PLAN_TTY : 0) |
	       (b->in->no_userns ? PLAN_NO_USERNS : 0);
}

static int
put_command(struct builder *b)
{
	const struct world_plan_input *in = b->in;
	const struct policy_limits *limits = &b->policy->limits;
	struct plan *plan = b->plan;
	int r;

	plan->flags = plan_flags(b);
	plan->uid = in->uid;
	plan->gid = in->gid;
	plan->memory = limits->memory;
	plan->pids = limits->pids;
	plan->cpu_percent = limits->cpu_percent;
	plan->timeout_ms = limits->timeout_ms;
	plan->linger_ms = limits->linger_ms;
	r = copy_text(in->world, &plan->world);
	if (r == 0)
		r = copy_text(in->fuse_options, &plan->fuse_options);
	if (r == 0)
		r = copy_text(in->cwd ? in->cwd : b->policy->roots[0].path,
			      &plan->cwd);
	if (r == 0)
		r = copy_text(in->console, &plan->console);
	if (r == 0 && in->argv)
		r = strv_extend(&plan->argv, in->argv);
	if (r == 0 && in->warden)
		r = strv_extend(&plan->warden, in->warden);
	return r == 0 ? world_plan_env(b->policy, in->world, in->tree, in->env,
				       &plan->env)
		      : r;
}

int
world_plan_build(const struct policy *policy, const struct world_plan_input *in,
		 struct plan *ret_plan, struct errmsg *why)
{
	struct plan plan = { 0 };
	struct builder b = {
		.policy = policy,
		.in = in,
		.plan = &plan,
		.why = why,
	};

	fail_add(&b, put_command(&b));
	if (b.error == 0 && policy->landlock) {
		b.error = check_own_dirs(&b);
		if (b.error == 0)
			b.error = check_grants(&b);
		put_grants(&b);
	} else if (b.error == 0 && policy->mode != POLICY_DANGER_FULL_ACCESS) {
		b.error = check_own_dirs(&b);
		put_areas(&b);
		put_roots(&b);
		put_covers(&b);
		put_areas_end(&b);
		put(&b, (struct plan_mount){ .kind = PLAN_PROC,
					     .target = borrow("/proc") });
	}
	if (b.error < 0) {
		plan_fini(&plan);
		return b.error;
	}
	*ret_plan = plan;
	return 0;
}
