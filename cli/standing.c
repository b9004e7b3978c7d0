/* SPDX-License-Identifier: MIT */

/*
 * Whoever makes a world holds the lock of RUNTIME/standing.lock from looking
 * for the last time until the world can be found, so that of two who come at
 * once the second finds what the first has made.
 */

#include "cli/standing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/cleanup.h"
#include "base/dirs.h"
#include "base/units.h"
#include "cli/launch.h"

#define IDLE_MS (UINT64_C(30) * 60 * 1000)

/* What is found may end before it is spoken to. */
#define TRIES	 40
#define GOING_MS 10000

/* Nothing that a world could be told apart by. */
static bool
says_nothing(const struct policy_request *request)
{
	const struct policy_limits *limits = &request->limits;
	const struct strv *const lists[] = {
		&request->rw,	   &request->hide,    &request->protect,
		&request->allow,   &request->sockets, &request->hide_paths,
		&request->devices, &request->env_hide
	};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		n += lists[i]->count;
	return n == 0 && !request->mode && !request->preset &&
	       !request->config_path && !request->net && !request->home &&
	       request->tmp < 0 && request->nest < 0 &&
	       !request->require_full && !request->require_limits &&
	       limits->memory == 0 && limits->pids == 0 &&
	       limits->cpu_percent == 0;
}

struct search {
	const struct standing_request *request;
	struct policy *policy;		    /* referenced */
	char digest[POLICY_DIGEST_LEN + 1]; /* unless any will do */
	bool any;			    /* the oldest, that is */
	bool raw;			    /* only the socket is wanted */
};

static bool
has_fence(const struct world_info *world)
{
	return strcmp(world->mode,
		      policy_mode_name(POLICY_DANGER_FULL_ACCESS)) != 0;
}

static bool
fits(const struct search *search, const struct world_info *world)
{
	return strcmp(world->kind, "standing") == 0 &&
	       strcmp(world->workspace, search->policy->roots[0].path) == 0 &&
	       strcmp(world->session, search->policy->session) == 0 &&
	       (!search->request->for_mount || has_fence(world)) &&
	       (search->any ||
		(world->digest && strcmp(world->digest, search->digest) == 0));
}

static int
connect_to(const struct search *search, const struct world_info *world,
	   struct standing *standing, struct errmsg *why)
{
	int r;

	if (search->raw)
		r = rpc_client_connect(world->dir, &standing->sock, why);
	else
		r = rpc_client_open(world->dir, RPC_OPERATOR, &standing->client,
				    why);
	if (r == 0)
		(void)snprintf(standing->world, sizeof(standing->world), "%s",
			       world->id);
	return r;
}

/* -ENOENT: there is none. */
static int
find(const struct search *search, struct standing *standing, struct errmsg *why)
{
	int r = -ENOENT;

	for (int i = 0; i < TRIES; i++) {
		_cleanup_(world_list_fini) struct world_list list = { 0 };
		const struct world_info *world = NULL;

		r = worlds_list(&list, why);
		for (size_t k = 0; r == 0 && k < list.count && !world; k++)
			if (fits(search, &list.items[k]))
				world = &list.items[k];
		if (r == 0 && !world)
			return -ENOENT;
		if (r == 0)
			r = connect_to(search, world, standing, why);
		if (r != -ENOENT && r != -ECONNREFUSED && r != -ECONNRESET)
			return r;
		/* It is on its way out; there is another, or there will be. */
		if (world)
			(void)worlds_await_end(world->dir, GOING_MS);
		/* Whoever cleans up after it holds its directory for a moment. */
		(void)poll(NULL, 0, i);
	}
	return r;
}

static int
find_named(const struct search *search, const char *name, const char *session,
	   struct standing *standing, struct errmsg *why)
{
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	const struct world_info *world = NULL;
	int r = worlds_list(&list, why);

	if (r == 0)
		r = worlds_find(&list, name, session, &world, why);
	return r != 0 ? r : connect_to(search, world, standing, why);
}

/* ---- making one ---- */

static int
lock_making(int *ret_fd, struct errmsg *why)
{
	_cleanup_(freep) char *runtime = NULL;
	_cleanup_(freep) char *path = NULL;
	_cleanup_(closep) int fd = -1;
	int r = dirs_runtime(&runtime);

	if (r < 0)
		return errmsg_set(why, r, "no runtime directory: %s",
				  strerror(-r));
	r = dirs_make(runtime, why);
	if (r < 0)
		return r;
	if (asprintf(&path, "%s/standing.lock", runtime) < 0) {
		path = NULL;
		return errmsg_set(why, -ENOMEM, "out of memory");
	}
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	while (fd >= 0 && flock(fd, LOCK_EX) < 0)
		if (errno != EINTR)
			return errmsg_set(why, -errno, "cannot lock '%s': %s",
					  path, strerror(errno));
	if (fd < 0)
		return errmsg_set(why, -errno, "cannot open '%s': %s", path,
				  strerror(errno));
	*ret_fd = take_fd(&fd);
	return 0;
}

static int
idle_time(uint64_t *ret_ms, struct errmsg *why)
{
	const char *text = getenv("PALE_IDLE");

	*ret_ms = IDLE_MS;
	if (!text || !*text || units_duration_ms(text, ret_ms) == 0)
		return 0;
	return errmsg_set(why, -EINVAL, "PALE_IDLE is no duration: '%s'", text);
}

static int
launch_world(const struct policy *policy, bool for_mount, struct launch *launch,
	     struct errmsg *why)
{
	const struct strv none = { 0 };
	struct launch_request request = {
		.policy = policy,
		.cwd = policy->roots[0].path,
		.argv = &none,
		.env = &none,
		.standing = true,
		.for_mount = for_mount,
	};
	int r = idle_time(&request.idle_ms, why);

	if (r == 0)
		r = launch_start(&request, launch, why);
	return r < 0 ? r : launch_await_standing(launch, why);
}

/* Rules of Landlock are for ever, so a world for later is not made of them. */
static void
say_what_is_left(struct errmsg *why)
{
	const struct errmsg reason = *why;

	(void)errmsg_set(why, 0,
			 "SANDBOX_UNAVAILABLE: %s; pale doctor tells more, and "
			 "pale run fences a single command with Landlock alone",
			 reason.text);
}

static int
make(const struct search *search, struct standing *standing, struct errmsg *why)
{
	struct launch launch = LAUNCH_NONE;
	_cleanup_(closep) int lock = -1;
	int r = lock_making(&lock, why);

	if (r < 0)
		return r;
	r = find(search, standing, why);
	if (r != -ENOENT)
		return r;
	r = launch_world(search->policy, search->request->for_mount, &launch,
			 why);
	launch_fini(&launch);
	if (r < 0 && launch.no_world && !search->request->for_mount)
		say_what_is_left(why);
	if (r < 0)
		return r;
	standing->made = true;
	return find_named(search, launch.world, NULL, standing, why);
}

/* ---- either ---- */

static int
search_init(struct search *search, struct errmsg *why)
{
	const struct policy_request *request = search->request->request;
	int r;

	search->any = says_nothing(request);
	if (search->request->policy) {
		search->policy = policy_ref(search->request->policy);
	} else {
		r = policy_resolve(request, &search->policy, why);
		if (r < 0)
			return r;
	}
	if (search->policy->require_full &&
	    search->policy->mode == POLICY_DANGER_FULL_ACCESS)
		return errmsg_set(why, -EINVAL,
				  "--require full cannot be had: under "
				  "danger-full-access there is no fence");
	if (search->any)
		return 0;
	r = policy_digest(search->policy, search->digest);
	return r < 0 ? errmsg_set(why, r, "out of memory") : 0;
}

static int
find_or_make(struct search *search, struct standing *ret_standing,
	     struct errmsg *why)
{
	const struct standing_request *request = search->request;
	struct standing standing = { .sock = -1 };
	int r;

	if (request->world) {
		r = find_named(search, request->world,
			       request->request->session, &standing, why);
	} else {
		r = search_init(search, why);
		if (r == 0)
			r = find(search, &standing, why);
		if (r == -ENOENT && search->policy && request->make)
			r = make(search, &standing, why);
		else if (r == -ENOENT && search->policy)
			(void)errmsg_set(why, r,
					 "no standing world of '%s'; see: "
					 "pale world list",
					 search->policy->roots[0].path);
		policy_unref(search->policy);
	}
	*ret_standing = standing;
	return r;
}

int
standing_connect(const struct standing_request *request,
		 struct standing *ret_standing, struct errmsg *why)
{
	struct search search = { .request = request };

	return find_or_make(&search, ret_standing, why);
}

int
standing_open(const struct standing_request *request,
	      struct standing *ret_standing, struct errmsg *why)
{
	struct search search = { .request = request, .raw = true };

	return find_or_make(&search, ret_standing, why);
}

void
standing_fini(struct standing *standing)
{
	standing->client = rpc_client_close(standing->client);
	closep(&standing->sock);
	standing->sock = -1;
}
