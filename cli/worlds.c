/* SPDX-License-Identifier: MIT */

#include "cli/worlds.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/dirs.h"
#include "base/fd.h"
#include "base/hostmount.h"
#include "base/json.h"
#include "policy/denial.h"

#define INFO_BYTES (64u << 10)

/* A warden needs less than this from making its directories to using them. */
#define BIRTH_S 5

struct places {
	char *runtime, *state, *db;
};

static void
places_fini(struct places *places)
{
	free(places->runtime);
	free(places->state);
	free(places->db);
}

/*
 * In /tmp somebody else may have made it: no worlds of ours.  Root may look at
 * anybody's.
 */
static int
places_init(struct places *places)
{
	int r = dirs_runtime(&places->runtime);

	if (r == 0 && geteuid() != 0)
		r = dirs_check(places->runtime, NULL);
	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		r = dirs_state(&places->state);
	if (r == 0 && asprintf(&places->db, "%s/pale.db", places->state) < 0) {
		places->db = NULL;
		r = -ENOMEM;
	}
	return r;
}

/* ---- the dead ---- */

static bool
is_young(const struct stat *st)
{
	return clock_real_ns() / 1000000000 - st->st_mtime < BIRTH_S;
}

/*
 * Takes the lock of a dead warden's directory.  -EBUSY: it lives, or is being
 * born, or somebody else cleans up.
 */
static int
lock_dead(const char *dir, int *ret_fd)
{
	_cleanup_(closep) int fd =
		open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_nlink == 0)
		return -ENOENT;
	if (faccessat(fd, "info.json", F_OK, 0) < 0 && is_young(&st))
		return -EBUSY;
	*ret_fd = take_fd(&fd);
	return 0;
}

/* Brings over what lies in STATE/worlds/ID and removes it when empty. */
static int
import_state(const char *dir, const char *db, struct errmsg *why)
{
	struct stat st;
	int r = denials_import(dir, db, why);

	if (r < 0 && r != -ENOENT)
		return r;
	/* An empty one may be about to get its spool. */
	if (r == 0 || (stat(dir, &st) == 0 && !is_young(&st)))
		(void)rmdir(dir);
	return 0;
}

static int
reap(const struct places *places, const char *id, struct errmsg *why)
{
	static const char *const names[] = { "sock", "info.json", "info.new",
					     "warden.log" };
	char dir[PATH_MAX], state[PATH_MAX];
	_cleanup_(closep) int fd = -1;
	int r;

	(void)snprintf(dir, sizeof(dir), "%s/worlds/%s", places->runtime, id);
	(void)snprintf(state, sizeof(state), "%s/worlds/%s", places->state, id);
	r = lock_dead(dir, &fd);
	if (r < 0 && r != -ENOENT)
		return errmsg_set(why, r, "world %s: %s", id, strerror(-r));

	r = import_state(state, places->db, why);
	if (r < 0 || fd < 0)
		return r;
	/* Where no state could be written the spool lies here. */
	r = denials_import(dir, places->db, why);
	if (r < 0 && r != -ENOENT)
		return r;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(fd, names[i], 0);
	if (rmdir(dir) < 0 && errno != ENOENT)
		return errmsg_set(why, -errno, "cannot remove '%s': %s", dir,
				  strerror(errno));
	return 0;
}

int
worlds_reap(const char *id, struct errmsg *why)
{
	_cleanup_(places_fini) struct places places = { 0 };
	int r = places_init(&places);

	if (r < 0)
		return errmsg_set(why, r, "%s", strerror(-r));
	return reap(&places, id, why);
}

void
worlds_import_left(void)
{
	_cleanup_(places_fini) struct places places = { 0 };
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	if (places_init(&places) < 0)
		return;
	(void)snprintf(path, sizeof(path), "%s/worlds", places.state);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(path, sizeof(path), "%s/worlds/%s", places.state,
			       entry->d_name);
		(void)import_state(path, places.db, NULL);
	}
	if (dir)
		(void)closedir(dir);
}

/* ---- the living ---- */

static char *
member(const json_t *info, const char *name)
{
	const char *text = json_string_value(json_object_get(info, name));

	return text ? json_unescape(text) : NULL;
}

static void
world_info_fini(struct world_info *world)
{
	char *const texts[] = {
		world->id,	   world->dir,	   world->kind,
		world->workspace,  world->session, world->mode,
		world->mountpoint, world->json,	   world->digest
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i]);
	*world = (struct world_info){ 0 };
}

void
world_list_fini(struct world_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		world_info_fini(&list->items[i]);
	free(list->items);
	*list = (struct world_list){ 0 };
}

static int
read_world(const char *dir, const char *id, struct world_info *ret_world)
{
	struct world_info world = { 0 };
	_cleanup_(freep) char *text = NULL;
	char path[PATH_MAX + sizeof("/info.json")];
	json_error_t error;
	json_t *info;
	size_t len;
	int r;

	(void)snprintf(path, sizeof(path), "%s/info.json", dir);
	r = fd_read_path(AT_FDCWD, path, INFO_BYTES, &text, &len);
	if (r < 0)
		return r;
	info = json_loadb(text, len, 0, &error);
	if (!info)
		return -EBADMSG;
	text[strcspn(text, "\n")] = '\0';
	world.id = strdup(id);
	world.dir = strdup(dir);
	world.kind = member(info, "kind");
	world.workspace = member(info, "workspace");
	world.session = member(info, "session");
	world.mode = member(info, "mode");
	world.digest = member(info, "digest");
	world.mountpoint = member(info, "mountpoint");
	world.json = take_ptr(&text);
	world.pid = (pid_t)json_integer_value(json_object_get(info, "pid"));
	world.started_ns = json_integer_value(json_object_get(info, "started"));
	json_decref(info);
	if (!world.id || !world.dir || !world.kind || !world.workspace ||
	    !world.session || !world.mode) {
		world_info_fini(&world);
		return -EBADMSG;
	}
	*ret_world = world;
	return 0;
}

static int
add_world(struct world_list *list, const struct world_info *world)
{
	struct world_info *items =
		realloc(list->items, (list->count + 1) * sizeof(*list->items));

	if (!items)
		return -ENOMEM;
	list->items = items;
	items[list->count++] = *world;
	return 0;
}

static int
by_age(const void *a, const void *b)
{
	const struct world_info *one = a, *other = b;

	return (one->started_ns > other->started_ns) -
	       (one->started_ns < other->started_ns);
}

static int
collect(const struct places *places, struct world_list *list)
{
	char path[PATH_MAX];
	struct world_info world;
	struct dirent *entry;
	int r = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "%s/worlds", places->runtime);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : -errno;
	while (r == 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (reap(places, entry->d_name, NULL) != -EBUSY)
			continue;
		(void)snprintf(path, sizeof(path), "%s/worlds/%s",
			       places->runtime, entry->d_name);
		if (read_world(path, entry->d_name, &world) < 0)
			continue;
		r = add_world(list, &world);
		if (r < 0)
			world_info_fini(&world);
	}
	(void)closedir(dir);
	return r;
}

int
worlds_list(struct world_list *ret_list, struct errmsg *why)
{
	_cleanup_(places_fini) struct places places = { 0 };
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	int r = places_init(&places);

	if (r == 0)
		r = collect(&places, &list);
	if (r < 0)
		return errmsg_set(why, r, "cannot list worlds: %s",
				  strerror(-r));
	if (list.count > 0)
		qsort(list.items, list.count, sizeof(*list.items), by_age);
	*ret_list = list;
	list = (struct world_list){ 0 };
	return 0;
}

int
worlds_find(const struct world_list *list, const char *name,
	    const char *session, const struct world_info **ret_world,
	    struct errmsg *why)
{
	_cleanup_(freep) char *path = NULL;

	for (size_t i = 0; name && i < list->count; i++) {
		if (strcmp(list->items[i].id, name) != 0)
			continue;
		*ret_world = &list->items[i];
		return 0;
	}
	(void)hostmount_canonical(name ? name : ".", &path);
	for (size_t i = 0; path && i < list->count; i++) {
		const struct world_info *world = &list->items[i];
		bool here = strcmp(world->workspace, path) == 0 &&
			    (!session || strcmp(world->session, session) == 0);

		if (!here && (!world->mountpoint ||
			      strcmp(world->mountpoint, path) != 0))
			continue;
		*ret_world = world;
		return 0;
	}
	if (name)
		return errmsg_set(why, -ENOENT,
				  "no world '%s'; see: pale world list", name);
	return errmsg_set(why, -ENOENT,
			  "no world of this directory; see: pale world list");
}

int
worlds_new_id(char *ret_id)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char bytes[WORLD_ID_LEN];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		ret_id[i] = digits[bytes[i] % 32];
	ret_id[WORLD_ID_LEN] = '\0';
	return 0;
}

int
worlds_await_end(const char *dir, int timeout_ms)
{
	int64_t until = clock_mono_ns() + (int64_t)timeout_ms * 1000000;

	while (access(dir, F_OK) == 0) {
		_cleanup_(closep) int fd = -1;

		if (lock_dead(dir, &fd) == 0)
			return 0;
		if (clock_mono_ns() > until)
			return -ETIMEDOUT;
		(void)poll(NULL, 0, 2);
	}
	return 0;
}
