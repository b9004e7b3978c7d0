/* SPDX-License-Identifier: MIT */

/*
 * Files are looked at from outside, where they are the same but for the places
 * that are the world's own: through its eyes, our own mount would be looked
 * at, and would have to be served by us meanwhile.
 */

#include "warden/preflight.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/path.h"

/* Of the command, in lists. */
#define LABEL_BYTES 160

int
preflight_default_env(const struct policy *policy, struct strv *env)
{
	int r = strv_add(env, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:"
			      "/usr/bin:/sbin:/bin");

	if (r == 0)
		r = strv_add(env, "LANG=C.UTF-8");
	if (r == 0 && policy->home_path)
		r = strv_addf(env, "HOME=%s", policy->home_path);
	return r;
}

char *
preflight_label(const struct strv *argv)
{
	char label[LABEL_BYTES + 1];
	size_t n = 0;

	for (size_t i = 0; i < argv->count && n < LABEL_BYTES; i++) {
		if (i > 0)
			label[n++] = ' ';
		for (const char *at = argv->items[i]; *at && n < LABEL_BYTES;
		     at++)
			label[n++] = (char)(*at > 0 && *at < ' ' ? ' ' : *at);
	}
	label[n] = '\0';
	return strdup(label);
}

/* Of what lies there we know nothing from outside. */
static bool
is_private(const struct preflight *flight, const char *path)
{
	static const char *const places[] = { "/tmp", "/var/tmp", "/run",
					      "/dev", "/proc" };

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (path_is_in(path, places[i], NULL))
			return true;
	if (flight->face && path_is_in(path, flight->face, NULL))
		return true;
	return flight->home && path_is_in(path, flight->home, NULL);
}

/* Nothing but a clear no counts as one. */
static bool
is_there(const struct preflight *flight, const char *path)
{
	_cleanup_(closep) int fd = -1;

	if (is_private(flight, path))
		return true;
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd >= 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* `name` in the first `len` bytes of `dir`, which may be relative to `cwd`. */
static bool
is_program(const struct preflight *flight, const char *dir, size_t len,
	   const char *name)
{
	bool absolute = len > 0 && dir[0] == '/';
	char path[4096];
	int n;

	n = snprintf(path, sizeof(path), "%s%s%.*s/%s",
		     absolute ? "" : flight->cwd,
		     absolute || len == 0 ? "" : "/", (int)len, dir, name);
	return n <= 0 || (size_t)n >= sizeof(path) || is_there(flight, path);
}

static bool
has_program(const struct preflight *flight)
{
	const char *name = flight->argv->items[0], *path = NULL;

	if (name[0] == '/')
		return is_there(flight, name);
	if (strchr(name, '/'))
		return is_program(flight, "", 0, name);
	for (size_t i = 0; i < flight->env->count; i++)
		if (strncmp(flight->env->items[i], "PATH=", 5) == 0)
			path = flight->env->items[i] + 5;
	/* Without one, what is searched is not ours to say. */
	if (!path)
		return true;
	for (;;) {
		size_t len = strcspn(path, ":");

		if (is_program(flight, path, len, name))
			return true;
		if (path[len] == '\0')
			return false;
		path += len + 1;
	}
}

int
preflight_check(const struct preflight *flight, struct errmsg *why)
{
	if (!is_there(flight, flight->cwd))
		return errmsg_set(why, -ENOENT, "cwd '%s': no such directory",
				  flight->cwd);
	if (!has_program(flight))
		return errmsg_set(why, -ENOENT,
				  "cannot run '%s': no such program",
				  flight->argv->items[0]);
	return 0;
}
