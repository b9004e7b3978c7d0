/* SPDX-License-Identifier: MIT */

/*
 * The connection: opening, schema and its migrations, retention.
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

	"CREATE TABLE jobs ("
	/* AUTOINCREMENT: an id is never given twice. */
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" world TEXT NOT NULL,"
	" workspace BLOB NOT NULL,"
	" session TEXT NOT NULL,"
	" token TEXT,"
	" name BLOB,"
	" label BLOB NOT NULL,"
	" state TEXT NOT NULL,"
	" value INTEGER,"
	" reason BLOB,"
	" pid INTEGER,"
	" attempt INTEGER NOT NULL DEFAULT 0,"
	" flags INTEGER NOT NULL DEFAULT 0,"
	" created INTEGER NOT NULL,"
	" started INTEGER,"
	" ended INTEGER,"
	" stdout INTEGER, stderr INTEGER, stored INTEGER,"
	" user_us INTEGER, sys_us INTEGER, max_rss_kib INTEGER);"
	"CREATE UNIQUE INDEX jobs_token ON jobs (workspace, session, token)"
	" WHERE token IS NOT NULL;"
	/* Apart: a record changes often, and an environment is large. */
	"CREATE TABLE job_specs ("
	" id INTEGER PRIMARY KEY, spec TEXT NOT NULL);"
	"CREATE TRIGGER jobs_delete AFTER DELETE ON jobs BEGIN"
	" DELETE FROM job_specs WHERE id = OLD.id; END;"
	"CREATE INDEX jobs_session ON jobs (workspace, session);"
	"CREATE INDEX jobs_world ON jobs (world);"
	"CREATE INDEX jobs_live ON jobs (id) WHERE ended IS NULL;",

	"CREATE INDEX denials_call ON denials (call) WHERE call IS NOT NULL;"
	"CREATE INDEX events_world ON events (world);"
	"CREATE INDEX events_session ON events (session, kind);",

	("CREATE INDEX jobs_places ON jobs (workspace, session, world)"
	 " WHERE ended IS NULL;"),

	"CREATE TABLE terminals ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" world TEXT NOT NULL,"
	" workspace BLOB NOT NULL,"
	" session TEXT NOT NULL,"
	" name BLOB,"
	" label BLOB NOT NULL,"
	" state TEXT NOT NULL,"
	" value INTEGER,"
	" reason BLOB,"
	" title BLOB,"
	" pid INTEGER,"
	" flags INTEGER NOT NULL DEFAULT 0,"
	" cols INTEGER NOT NULL, rows INTEGER NOT NULL,"
	" created INTEGER NOT NULL,"
	" started INTEGER,"
	" ended INTEGER,"
	" bytes INTEGER, stored INTEGER,"
	" user_us INTEGER, sys_us INTEGER, max_rss_kib INTEGER);"
	"CREATE TABLE terminal_specs ("
	" id INTEGER PRIMARY KEY, spec TEXT NOT NULL);"
	"CREATE TRIGGER terminals_delete AFTER DELETE ON terminals BEGIN"
	" DELETE FROM terminal_specs WHERE id = OLD.id; END;"
	"CREATE INDEX terminals_world ON terminals (world);"
	"CREATE INDEX terminals_session ON terminals (workspace, session);"
	"CREATE INDEX terminals_live ON terminals (id) WHERE ended IS NULL;",
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

int
store_step(sqlite3_stmt *stmt, uint64_t *ret_id)
{
	int rc = sqlite3_step(stmt);

	if (rc == SQLITE_ROW && ret_id) {
		*ret_id = (uint64_t)sqlite3_column_int64(stmt, 0);
		rc = sqlite3_step(stmt);
	}
	sqlite3_reset(stmt);
	sqlite3_clear_bindings(stmt);
	return store_errno(rc);
}

void
store_bind_bytes(sqlite3_stmt *stmt, int index, const char *text)
{
	if (text)
		sqlite3_bind_blob(stmt, index, text, (int)strlen(text),
				  SQLITE_STATIC);
}

void
store_bind_time(sqlite3_stmt *stmt, int index, int64_t ns)
{
	if (ns)
		sqlite3_bind_int64(stmt, index, ns);
}

const char *
store_bytes(sqlite3_stmt *stmt, int column)
{
	return (const char *)sqlite3_column_text(stmt, column);
}

int
store_remove(struct store *store, const char *table, uint64_t id)
{
	char *sql = sqlite3_mprintf("DELETE FROM %s WHERE id = %lld", table,
				    (long long)id);
	int r = sql ? store_exec(store, sql) : -ENOMEM;

	sqlite3_free(sql);
	return r;
}

int
store_put_spec(struct store *store, enum store_statement which, const char *sql,
	       uint64_t id, const char *spec)
{
	sqlite3_stmt *stmt;
	int r = 0;

	stmt = store_prepared(store, which, sql, &r);
	if (!stmt)
		return r;
	sqlite3_bind_int64(stmt, 1, (int64_t)id);
	sqlite3_bind_text(stmt, 2, spec, -1, SQLITE_STATIC);
	return store_step(stmt, NULL);
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

/* One step, whole or not at all: a pale that is killed here begins it again. */
static int
migrate_step(struct store *store, bool *ret_done)
{
	int64_t version = 0;
	char sql[64];
	int r;

	r = store_begin(store);
	if (r < 0)
		return r;
	/* Again, under the lock: another process may have been faster. */
	r = query_int(store, "PRAGMA user_version", &version);
	if (r == 0 && (version < 0 || version > SCHEMA_VERSION))
		r = -EPROTO;
	*ret_done = r == 0 && version == SCHEMA_VERSION;
	if (r == 0 && !*ret_done)
		r = store_exec(store, migrations[version]);
	if (r == 0 && !*ret_done) {
		(void)snprintf(sql, sizeof(sql), "PRAGMA user_version = %d",
			       (int)version + 1);
		r = store_exec(store, sql);
	}
	return store_end(store, r);
}

static int
migrate(struct store *store)
{
	int64_t version = 0;
	bool done;
	int r;

	r = query_int(store, "PRAGMA user_version", &version);
	done = version == SCHEMA_VERSION;
	while (r == 0 && !done)
		r = migrate_step(store, &done);
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

/*
 * SQLite would make it 0644; WAL and index follow the database.  One that is
 * there must not be opened here: to close it would drop all locks that this
 * process has on it, by whichever connection, and the next one that is closed
 * elsewhere would take the WAL for nobody's and remove it.
 */
static int
make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	(void)close(fd);
	return 0;
}

static int
open_file(const char *path, struct store *store)
{
	int rc, r = make_file(path);

	if (r < 0)
		return r;
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
		return errmsg_set(why, r,
				  "'%s' was written by a later pale "
				  "than this one, which leaves it alone; "
				  "use that, or move the file away",
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
