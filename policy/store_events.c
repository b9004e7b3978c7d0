/* SPDX-License-Identifier: MIT */

/* The events: appended, never changed; the state of a session is their fold. */

#include "policy/store_priv.h"

#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

#define COLUMNS "(time, session, world, kind, body)"

static int
put_event(sqlite3_stmt *stmt, const char *const texts[4])
{
	sqlite3_bind_int64(stmt, 1, clock_real_ns());
	for (int i = 0; i < 4; i++)
		sqlite3_bind_text(stmt, i + 2, texts[i], -1, SQLITE_STATIC);
	return store_step(stmt, NULL);
}

int
store_event(struct store *store, const char *session, const char *world,
	    const char *kind, const char *body)
{
	const char *const texts[4] = { session, world, kind, body };
	int r = 0;
	sqlite3_stmt *stmt = store_prepared(store, STORE_EVENT,
					    "INSERT INTO events " COLUMNS
					    " VALUES (?1, ?2, ?3, ?4, ?5)",
					    &r);

	return stmt ? put_event(stmt, texts) : r;
}

int
store_event_once(struct store *store, const char *session, const char *world,
		 const char *kind, const char *body)
{
	const char *const texts[4] = { session, world, kind, body };
	int r = 0;
	sqlite3_stmt *stmt = store_prepared(
		store, STORE_EVENT_ONCE,
		"INSERT INTO events " COLUMNS " SELECT ?1, ?2, ?3, ?4, ?5 "
		"WHERE NOT EXISTS (SELECT 1 FROM events WHERE kind = ?4 "
		"AND world = ?3)",
		&r);

	return stmt ? put_event(stmt, texts) : r;
}

int
store_session(struct store *store, const char *session, const char *workspace)
{
	_cleanup_(buf_fini) struct buf body = { 0 };
	const char *texts[4] = { session, NULL, "session.created", NULL };
	int r = 0;
	sqlite3_stmt *stmt = store_prepared(
		store, STORE_SESSION,
		"INSERT INTO events " COLUMNS " SELECT ?1, ?2, ?3, ?4, ?5 "
		"WHERE NOT EXISTS (SELECT 1 FROM events WHERE session = ?2 "
		"AND kind = ?4 AND json_extract(body, '$.workspace') = "
		"json_extract(?5, '$.workspace'))",
		&r);

	if (!stmt)
		return r;
	jsonw_begin(&body, '{');
	jsonw_pair(&body, "workspace", workspace);
	jsonw_end(&body, '}');
	buf_put(&body, "", 1);
	r = buf_error(&body);
	if (r < 0)
		return r;
	texts[3] = (const char *)body.data;
	return put_event(stmt, texts);
}

int
store_begin(struct store *store)
{
	return store_exec(store, "BEGIN IMMEDIATE");
}

int
store_end(struct store *store, int r)
{
	if (r == 0)
		r = store_exec(store, "COMMIT");
	if (r < 0)
		(void)store_exec(store, "ROLLBACK");
	return r;
}

/* ?4: the workspace, as the JSON of an event spells it. */
#define EACH_SQL                                                     \
	"SELECT id, time, session, world, kind, body FROM ("         \
	"SELECT * FROM events WHERE id > ?1"                         \
	" AND (?2 IS NULL OR world = ?2)"                            \
	" AND (?3 IS NULL OR session = ?3)"                          \
	" AND (?4 IS NULL OR json_extract(body, '$.workspace') = ?4" \
	" OR world IN (SELECT world FROM events"                     \
	" WHERE kind = 'world.started'"                              \
	" AND json_extract(body, '$.workspace') = ?4))"              \
	" ORDER BY id DESC LIMIT ?5) ORDER BY id"

static int64_t
clamp(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int
bind_query(sqlite3_stmt *stmt, const struct store_query *query)
{
	_cleanup_(buf_fini) struct buf spelled = { 0 };

	sqlite3_bind_int64(stmt, 1, clamp(query->since));
	sqlite3_bind_text(stmt, 2, query->world, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 3, query->session, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 5, query->last ? clamp(query->last) : -1);
	if (!query->workspace)
		return 0;
	escape_bytes(&spelled, query->workspace, strlen(query->workspace));
	sqlite3_bind_text(stmt, 4, (const char *)spelled.data, (int)spelled.len,
			  SQLITE_TRANSIENT);
	return buf_error(&spelled);
}

static const char *
text_of(sqlite3_stmt *stmt, int column)
{
	return (const char *)sqlite3_column_text(stmt, column);
}

int
store_each_event(struct store *store, const struct store_query *query,
		 int (*each)(const struct store_event_row *row, void *data),
		 void *data)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(store->db, EACH_SQL, -1, &stmt, NULL);
	int r = store_errno(rc);

	if (r == 0)
		r = bind_query(stmt, query);
	while (r == 0) {
		rc = sqlite3_step(stmt);
		r = store_errno(rc);
		if (rc != SQLITE_ROW)
			break;

		const struct store_event_row row = {
			.id = (uint64_t)sqlite3_column_int64(stmt, 0),
			.time_ns = sqlite3_column_int64(stmt, 1),
			.session = text_of(stmt, 2),
			.world = text_of(stmt, 3),
			.kind = text_of(stmt, 4),
			.body = text_of(stmt, 5),
		};

		r = each(&row, data);
	}
	sqlite3_finalize(stmt);
	return r;
}
