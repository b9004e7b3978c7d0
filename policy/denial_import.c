/* SPDX-License-Identifier: MIT */

/*
 * What a dead warden left.  The rows are keyed, so an import that is cut short
 * is simply done again; the file goes only when all is in the store.
 */

#include "policy/denial_priv.h"

#include <stdio.h>
#include <string.h>

#define BATCH 256

struct import {
	const char *db_path;
	struct store *store;
	struct errmsg *why;
	size_t n;
	struct denial batch[BATCH];
};

static int
open_store(struct import *import)
{
	if (import->store)
		return 0;
	return store_open(import->db_path, &import->store, import->why);
}

static int
write_batch(struct import *import)
{
	int r;

	if (import->n == 0)
		return 0;
	r = open_store(import);
	if (r < 0)
		return r;
	r = store_put_denials(import->store, import->batch, import->n);
	if (r < 0)
		return errmsg_set(import->why, r, "cannot write '%s': %s",
				  import->db_path, strerror(-r));
	import->n = 0;
	return 0;
}

static int
take_record(const struct denial *denial, void *data)
{
	struct import *import = data;

	/* Strings are in the mapping, which outlives the batch. */
	import->batch[import->n++] = *denial;
	return import->n == BATCH ? write_batch(import) : 0;
}

static int
tell_lost(struct import *import, const struct spool *spool)
{
	uint64_t lost = spool_lost_untold(spool);
	char body[64];
	int r;

	if (lost == 0)
		return 0;
	r = open_store(import);
	if (r < 0)
		return r;
	(void)snprintf(body, sizeof(body), "{\"count\":%llu}",
		       (unsigned long long)lost);
	r = store_event(import->store, spool_session(spool), spool_world(spool),
			"denials.lost", body);
	return r < 0 ? errmsg_set(import->why, r, "cannot write '%s': %s",
				  import->db_path, strerror(-r))
		     : 0;
}

/* Nobody else is left to say so. */
static int
tell_end(struct import *import, const struct spool *spool)
{
	int r = open_store(import);

	if (r < 0)
		return r;
	r = store_event_once(import->store, spool_session(spool),
			     spool_world(spool), "world.ended",
			     "{\"reason\":\"its warden has died\","
			     "\"exit_status\":null,\"signal\":null}");
	return r < 0 ? errmsg_set(import->why, r, "cannot write '%s': %s",
				  import->db_path, strerror(-r))
		     : 0;
}

int
denials_import(const char *dir, const char *db_path, struct errmsg *why)
{
	_cleanup_(spool_freep) struct spool *spool = NULL;
	_cleanup_(freep) struct import *import = NULL;
	int r;

	r = spool_open_orphan(dir, &spool, why);
	if (r == -EBADMSG)
		spool_put_aside(dir);
	if (r < 0)
		return r;
	import = calloc(1, sizeof(*import));
	if (!import)
		return errmsg_set(why, -ENOMEM, "out of memory");
	import->db_path = db_path;
	import->why = why;
	r = spool_each(spool, take_record, import);
	if (r == 0)
		r = write_batch(import);
	if (r == 0)
		r = tell_lost(import, spool);
	if (r == 0)
		r = tell_end(import, spool);
	store_close(import->store);
	if (r < 0)
		return r;
	spool_unlink(spool);
	return 0;
}
