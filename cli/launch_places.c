/* SPDX-License-Identifier: MIT */

/*
 * pale's own directories must exist before a world is made: what is covered is
 * what is there, and what is not there yet could be made later, by others.
 */

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/dirs.h"
#include "base/fd.h"
#include "base/hostmount.h"
#include "cli/launch_priv.h"
#include "cli/place.h"

#define MOUNTINFO_MAX (8u << 20)

static int
no_memory(struct errmsg *why)
{
	return errmsg_set(why, -ENOMEM, "out of memory");
}

/* `required`: the run cannot do without. */
static int
add_own_dir(struct launch_places *places, int (*find)(char **), bool make,
	    bool required, struct errmsg *why)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(freep) char *real = NULL;
	int r;

	if (find(&path) < 0)
		return no_memory(why);
	if (make) {
		r = dirs_make(path, why);
		if (r < 0 && required)
			return r;
	}
	real = realpath(path, NULL);
	if (!real)
		return 0;
	return strv_add(&places->own_dirs, real) < 0 ? no_memory(why) : 0;
}

/* In a read-only world too, which may become wider while it runs. */
static bool
config_in_a_root(const struct policy *policy)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(freep) char *real = NULL;

	/* The roots are canonical; $HOME may be a symlink. */
	return dirs_config(&path) == 0 &&
	       place_canonical(path, true, &real) == 0 &&
	       policy_root_of(policy, real, NULL) >= 0;
}

int
launch_config_dir(const struct policy *policy)
{
	_cleanup_(freep) char *path = NULL;

	if (!config_in_a_root(policy))
		return 0;
	if (dirs_config(&path) < 0)
		return -ENOMEM;
	/* Where this user cannot make it, no inmate can. */
	return dirs_make(path, NULL) == -ENOMEM ? -ENOMEM : 0;
}

/* FNV-1a: names one directory per workspace; no adversary picks it. */
static uint64_t
path_hash(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3u;
	return hash;
}

int
launch_home_dir(const char *workspace, char **ret_dir)
{
	_cleanup_(freep) char *state = NULL;

	if (dirs_state(&state) < 0 ||
	    asprintf(ret_dir, "%s/homes/%016llx", state,
		     (unsigned long long)path_hash(workspace)) < 0)
		return -ENOMEM;
	return 0;
}

static int
find_home(const struct policy *policy, struct launch_places *places,
	  struct errmsg *why)
{
	_cleanup_(freep) char *dir = NULL;
	int r;

	if (launch_home_dir(policy->roots[0].path, &dir) < 0)
		return no_memory(why);
	if (asprintf(&places->home_upper, "%s/upper", dir) < 0 ||
	    asprintf(&places->home_work, "%s/work", dir) < 0)
		return no_memory(why);
	r = dirs_make(places->home_upper, why);
	return r < 0 ? r : dirs_make(places->home_work, why);
}

static int
find_host_mounts(struct launch_places *places, struct errmsg *why)
{
	_cleanup_(freep) char *text = NULL;
	char *line, *rest;
	size_t len;
	int r;

	r = fd_read_path(AT_FDCWD, "/proc/self/mountinfo", MOUNTINFO_MAX, &text,
			 &len);
	if (r < 0)
		return errmsg_set(why, r,
				  "cannot read '/proc/self/mountinfo': %s",
				  strerror(-r));
	for (line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		char place[PATH_MAX];

		if (sscanf(line, "%*s %*s %*s %*s %4095s", place) != 1)
			continue;
		hostmount_unescape(place);
		if (strv_add(&places->host_mounts, place) < 0)
			return no_memory(why);
	}
	return 0;
}

int
launch_places_find(const struct policy *policy, struct launch_places *places,
		   struct errmsg *why)
{
	int r;

	if (policy->mode == POLICY_DANGER_FULL_ACCESS)
		return 0;
	r = add_own_dir(places, dirs_runtime, true, true, why);
	/* Without durable state the warden keeps its records beside. */
	if (r == 0)
		r = add_own_dir(places, dirs_state, true, false, why);
	if (r == 0 && launch_config_dir(policy) < 0)
		r = no_memory(why);
	if (r == 0)
		r = add_own_dir(places, dirs_config, false, false, why);
	places->resolv_conf = realpath("/etc/resolv.conf", NULL);
	if (r == 0 && policy->home == POLICY_HOME_PRIVATE &&
	    !policy->landlock) {
		r = find_home(policy, places, why);
		if (r == 0)
			r = find_host_mounts(places, why);
	}
	return r;
}

void
launch_places_fini(struct launch_places *places)
{
	strv_fini(&places->own_dirs);
	strv_fini(&places->host_mounts);
	free(places->resolv_conf);
	free(places->home_upper);
	free(places->home_work);
}
