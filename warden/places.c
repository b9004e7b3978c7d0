/* SPDX-License-Identifier: MIT */

/*
 * The directories of one world.  State that cannot be made is no reason to
 * leave a command unfenced or unrun: the spool then lives in the runtime
 * directory and the records are reported as degraded.
 */

#include "warden/warden_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/dirs.h"

static int
path_of(char **ret_path, const char *dir, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	*ret_path = path;
	return 0;
}

static int
base_dir(const char *given, int (*by_rule)(char **), char **ret_path)
{
	if (!given)
		return by_rule(ret_path);
	*ret_path = strdup(given);
	return *ret_path ? 0 : -ENOMEM;
}

static int
name_places(struct warden_places *places, const struct warden_options *opt)
{
	char name[64];
	int r;

	(void)snprintf(name, sizeof(name), "worlds/%s", opt->world);
	r = base_dir(opt->socket_dir, dirs_runtime, &places->runtime);
	if (r == 0)
		r = base_dir(opt->state_dir, dirs_state, &places->state);
	if (r == 0)
		r = dirs_config(&places->config);
	if (r == 0)
		r = path_of(&places->runtime_world, places->runtime, name);
	if (r == 0)
		r = path_of(&places->state_world, places->state, name);
	if (r == 0)
		r = path_of(&places->db, places->state, "pale.db");
	return r;
}

int
warden_places_init(struct warden_places *places,
		   const struct warden_options *opt, struct errmsg *why)
{
	char *runtime_world;
	int r = name_places(places, opt);

	if (r < 0)
		return errmsg_set(why, r, "out of memory");
	if (dirs_make(places->state_world, NULL) == 0)
		return 0;

	runtime_world = strdup(places->runtime_world);
	if (!runtime_world)
		return errmsg_set(why, -ENOMEM, "out of memory");
	free(places->state_world);
	places->state_world = runtime_world;
	places->state_is_runtime = true;
	return 0;
}

void
warden_places_fini(struct warden_places *places)
{
	free(places->runtime);
	free(places->state);
	free(places->config);
	free(places->runtime_world);
	free(places->state_world);
	free(places->db);
	*places = (struct warden_places){ 0 };
}
