/* SPDX-License-Identifier: MIT */

/*
 * The connection: opening, schema and its migrations, events, retention.
 *
 * `migrations` is the schema's history: entry N brings user_version N to N + 1,
 * each in its own immediate transaction.  An entry that was released never
 * changes.
 */

#include "policy/store_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define BUSY_TIMEOUT_MS 5000
#define KEEP_NS		(30LL * 24 * 3600 * 1000000000LL)
#define KEEP_ROWS	1000000LL

static const char *const migrations[] = {
	"CREATE TABLE denials ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" seq INTEGER NOT NULL,"
	" time INTEGER NOT NULL,"
	" last_time INTEGER NOT NULL,"
	" count INTEGER NOT NULL,"
	" session TEXT NOT NULL,"
	" world TEXT NOT NULL,"
	" origin TEXT, call TEXT,"
	" source TEXT NOT NULL,"
	" code TEXT NOT NULL,"
	" mode TEXT NOT NULL,"
	" rule BLOB,"
	" op TEXT NOT NULL,"
	" path BLOB, path2 BLOB,"
	" errno INTEGER NOT NULL,"
	" pid INTEGER, ppid INTEGER, inner_pid INTEGER,"
	" comm BLOB, exe BLOB,"
	" uid INTEGER, gid INTEGER,"
	" remedy_kind TEXT, remedy BLOB,"
	" UNIQUE (world, seq, time));"
	"CREATE INDEX denials_time ON denials (time);"
	"CREATE TABLE events ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" time INTEGER NOT NULL,"
	" session TEXT NOT NULL,"
	" world TEXT,"
	" kind TEXT NOT NULL,"
	" body TEXT NOT NULL CHECK (json_valid(body)));"
	"CREATE INDEX events_kind ON events (kind, world);"
	"CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN"
	" SELECT RAISE(ABORT, 'events are never changed'); END;"
	"CREATE TRIGGER events_no_delete BEFORE DELETE ON events BEGIN"
	" SELECT RAISE(ABORT, 'events are never removed'); END;"
	/* REPLACE removes without asking the trigger above. */
	"CREATE TRIGGER events_no_replace BEFORE INSERT ON events"
	" WHEN EXISTS (SELECT 1 FROM events WHERE id = NEW.id) BEGIN"
	" SELECT RAISE(ABORT, 'events are never replaced'); END;",
};

#define SCHEMA_VERSION ((int)(sizeof(migrations) / sizeof(migrations[0])))

int
store_errno(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		return -EACCES;
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_RANGE:
		return -EINVAL;
	default:
		return -EIO;
	}
}

int
store_exec(struct store *store, const char *sql)
{
	return store_errno(sqlite3_exec(store->db, sql, NULL, NULL, NULL));
}

sqlite3_stmt *
store_prepared(struct store *store, enum store_statement which, const char *sql,
	       int *ret_error)
{
	int rc;

	if (!store->statements[which]) {
		rc = sqlite3_prepare_v3(store->db, sql, -1,
					SQLITE_PREPARE_PERSISTENT,
					&store->statements[which], NULL);
		if (rc != SQLITE_OK) {
			*ret_error = store_errno(rc);
			return NULL;
		}
	}
	sqlite3_reset(store->statements[which]);
	sqlite3_clear_bindings(store->statements[which]);
	return store->statements[which];
}

/* The value of a PRAGMA, or of any query with one number. */
static int
query_int(struct store *store, const char *sql, int64_t *ret_value)
{
	sqlite3_stmt *stmt = NULL;
	int rc;

	rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*ret_value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW	   ? 0
	       : rc == SQLITE_DONE ? -EIO
				   : store_errno(rc);
}

int
store_version(struct store *store, int64_t *ret_version)
{
	return query_int(store, "PRAGMA data_version", ret_version);
}

static int
migrate(struct store *store)
{
	int64_t version = 0;
	char sql[64];
	int r;

	r = query_int(store, "PRAGMA user_version", &version);
	if (r < 0 || version == SCHEMA_VERSION)
		return r;
	r = store_exec(store, "BEGIN IMMEDIATE");
	if (r < 0)
		return r;
	/* Again, under the lock: another process may have been faster. */
	r = query_int(store, "PRAGMA user_version", &version);
	if (r == 0 && (version < 0 || version > SCHEMA_VERSION))
		r = -EPROTO;
	for (; r == 0 && version < SCHEMA_VERSION; version++)
		r = store_exec(store, migrations[version]);
	if (r == 0) {
		(void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %d",
			       SCHEMA_VERSION);
		r = store_exec(store, sql);
	}
	if (r == 0)
		r = store_exec(store, "COMMIT");
	if (r < 0)
		(void)store_exec(store, "ROLLBACK");
	return r;
}

static int
set_up(struct store *store)
{
	int r;

	r = store_exec(store, "PRAGMA journal_mode = WAL;"
			      "PRAGMA synchronous = NORMAL");
	return r < 0 ? r : migrate(store);
}

/*
 * The switch to WAL and the recovery after a crash want the file alone, and
 * SQLite does not always ask its busy handler then.
 */
static int
set_up_patiently(struct store *store)
{
	int64_t deadline = clock_mono_ns() + BUSY_TIMEOUT_MS * 1000000LL;
	const struct timespec pause = { .tv_nsec = 5000000 };
	int r;

	for (;;) {
		r = set_up(store);
		if (r != -EBUSY || clock_mono_ns() > deadline)
			return r;
		(void)nanosleep(&pause, NULL);
	}
}

struct store *
store_close(struct store *store)
{
	if (!store)
		return NULL;
	for (int i = 0; i < STORE_STATEMENTS; i++)
		sqlite3_finalize(store->statements[i]);
	sqlite3_close(store->db);
	free(store);
	return NULL;
}

static int
open_file(const char *path, struct store *store)
{
	_cleanup_(closep) int fd = -1;
	int rc;

	/* SQLite would make it 0644; WAL and index follow the database. */
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = sqlite3_open_v2(path, &store->db,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc != SQLITE_OK)
		return store_errno(rc);
	sqlite3_busy_timeout(store->db, BUSY_TIMEOUT_MS);
	/* A run that ends must not wait for the disk. */
	(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
				NULL);
	(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	return 0;
}

int
store_open(const char *path, struct store **ret_store, struct errmsg *why)
{
	_cleanup_(store_closep) struct store *store = NULL;
	int r;

	store = calloc(1, sizeof(*store));
	if (!store)
		return errmsg_set(why, -ENOMEM, "out of memory");
	r = open_file(path, store);
	if (r == 0)
		r = set_up_patiently(store);
	if (r == 0)
		r = store_add_functions(store);
	if (r == -EPROTO)
		return errmsg_set(why, r, "'%s' was written by a later pale",
				  path);
	if (r == -EBADMSG)
		return errmsg_set(why, r,
				  "'%s' is damaged or not a database of pale",
				  path);
	if (r < 0)
		return errmsg_set(why, r, "cannot open '%s': %s", path,
				  strerror(-r));
	*ret_store = take_ptr(&store);
	return 0;
}

int
store_event(struct store *store, const char *session, const char *world,
	    const char *kind, const char *body)
{
	sqlite3_stmt *stmt;
	int rc, r = 0;

	stmt = store_prepared(store, STORE_EVENT,
			      "INSERT INTO events "
			      "(time, session, world, kind, body) "
			      "VALUES (?1, ?2, ?3, ?4, ?5)",
			      &r);
	if (!stmt)
		return r;
	sqlite3_bind_int64(stmt, 1, clock_real_ns());
	sqlite3_bind_text(stmt, 2, session, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 3, world, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 4, kind, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 5, body, -1, SQLITE_STATIC);
	rc = sqlite3_step(stmt);
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return store_errno(rc);
}

int
store_prune(struct store *store, uint64_t *ret_removed)
{
	sqlite3_int64 before = sqlite3_total_changes64(store->db);
	char *sql;
	int r;

	/*
	 * By id, not by counting: ids have few gaps, and the newest million
	 * ids are never more than a million rows.
	 */
	sql = sqlite3_mprintf("DELETE FROM denials WHERE time < %lld;"
			      "DELETE FROM denials WHERE id <= "
			      "(SELECT max(id) FROM denials) - %lld;",
			      clock_real_ns() - KEEP_NS, KEEP_ROWS);
	if (!sql)
		return -ENOMEM;
	r = store_exec(store, sql);
	sqlite3_free(sql);
	if (r == 0 && ret_removed)
		*ret_removed =
			(uint64_t)(sqlite3_total_changes64(store->db) - before);
	return r;
}
