/* SPDX-License-Identifier: MIT */

#include "cli/records.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/dirs.h"
#include "base/json.h"
#include "cli/worlds.h"

int
record_fail(const struct errmsg *why)
{
	cli_error("%s", why->text);
	return RECORD_EXIT_FAILED;
}

int
records_path(char **ret_path)
{
	_cleanup_(freep) char *state = NULL;
	int r = dirs_state(&state);

	if (r < 0)
		return r;
	if (asprintf(ret_path, "%s/pale.db", state) < 0)
		*ret_path = NULL;
	return *ret_path ? 0 : -ENOMEM;
}

int
records_open(const char *path, struct store **ret_store, struct errmsg *why)
{
	return access(path, F_OK) < 0 ? 0 : store_open(path, ret_store, why);
}

int
records_make(struct store **ret_store, struct errmsg *why)
{
	_cleanup_(freep) char *state = NULL;
	_cleanup_(freep) char *path = NULL;
	int r = dirs_state(&state);

	if (r == 0)
		r = records_path(&path);
	if (r < 0)
		return errmsg_set(why, r, "out of memory");
	r = dirs_make(state, why);
	return r < 0 ? r : store_open(path, ret_store, why);
}

int
record_places_open(struct record_places *places, struct errmsg *why)
{
	_cleanup_(freep) char *db = NULL;
	int r = dirs_state(&places->state);

	if (r == 0)
		r = dirs_runtime(&places->runtime);
	if (r == 0)
		r = records_path(&db);
	if (!db)
		return errmsg_set(why, r, "%s", strerror(-r));
	return records_open(db, &places->store, why);
}

void
record_places_fini(struct record_places *places)
{
	free(places->state);
	free(places->runtime);
	store_close(places->store);
	*places = (struct record_places){ 0 };
}

int
record_own_texts(const char **const *texts, char **owned, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!*texts[i])
			continue;
		owned[i] = strdup(*texts[i]);
		*texts[i] = owned[i];
		if (!owned[i])
			return -ENOMEM;
	}
	return 0;
}

void
record_free_texts(char **owned, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(owned[i]);
		owned[i] = NULL;
	}
}

int
record_connect(const struct record_places *places, const char *world,
	       struct rpc_client **ret_client, struct errmsg *why)
{
	_cleanup_(freep) char *dir = NULL;

	if (asprintf(&dir, "%s/worlds/%s", places->runtime, world) < 0) {
		dir = NULL;
		return errmsg_set(why, -ENOMEM, "out of memory");
	}
	return rpc_client_open(dir, RPC_OPERATOR, ret_client, why);
}

bool
record_is_nobody(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ECONNRESET;
}

/* Fresh; NULL: no memory. */
static char *
tree_path(const struct record_path *where, const char *file)
{
	_cleanup_(world_list_fini) struct world_list list = { 0 };
	const char *top = where->workspace;
	char *path;

	(void)worlds_list(&list, NULL);
	for (size_t i = 0; i < list.count; i++)
		if (where->world &&
		    strcmp(list.items[i].id, where->world) == 0 &&
		    list.items[i].mountpoint)
			top = list.items[i].mountpoint;
	if (asprintf(&path, "%s/.pale/%s/%s%s%s", top, where->kind, where->id,
		     file ? "/" : "", file ? file : "") < 0)
		return NULL;
	return path;
}

int
record_print_path(const struct cli_common *common,
		  const struct record_path *where, const char *file)
{
	_cleanup_(freep) char *path = tree_path(where, file);
	_cleanup_(buf_fini) struct buf out = { 0 };

	if (!path)
		return RECORD_EXIT_FAILED;
	if (!common->json) {
		puts(path);
		return 0;
	}
	jsonw_begin(&out, '{');
	jsonw_pair(&out, "id", where->id);
	jsonw_pair(&out, "path", path);
	jsonw_end(&out, '}');
	return cli_print_json(&out) < 0 ? RECORD_EXIT_FAILED : 0;
}

#define AGAIN_MAX 100

bool
record_again(int r, unsigned int *tries)
{
	const struct timespec pause = { .tv_nsec = 20000000 };

	if (r != -EBUSY || (*tries)++ >= AGAIN_MAX)
		return false;
	(void)nanosleep(&pause, NULL);
	return true;
}
