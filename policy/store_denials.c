/* SPDX-License-Identifier: MIT */

/*
 * Denials in and out of their table.  Names that may be any bytes are stored as
 * BLOBs, enumerations by their names: the numbers are not the same in the next
 * version of pale.
 */

#include "policy/store_priv.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "policy/denial_priv.h"

/* The columns in the order in which rows are bound and read. */
#define COLUMNS                                                         \
	"seq, time, last_time, count, session, world, origin, call, "   \
	"source, code, mode, rule, op, path, path2, errno, pid, ppid, " \
	"inner_pid, comm, exe, uid, gid, remedy_kind, remedy"

enum column {
	COL_SEQ,
	COL_TIME,
	COL_LAST_TIME,
	COL_COUNT,
	COL_SESSION,
	COL_WORLD,
	COL_ORIGIN,
	COL_CALL,
	COL_SOURCE,
	COL_CODE,
	COL_MODE,
	COL_RULE,
	COL_OP,
	COL_PATH,
	COL_PATH2,
	COL_ERRNO,
	COL_PID,
	COL_PPID,
	COL_INNER_PID,
	COL_COMM,
	COL_EXE,
	COL_UID,
	COL_GID,
	COL_REMEDY_KIND,
	COL_REMEDY,
	COL_ID /* after the others, when rows are read */
};

#define INSERT_SQL                                             \
	"INSERT INTO denials (" COLUMNS ") VALUES "            \
	"(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) " \
	"ON CONFLICT (world, seq, time) DO UPDATE SET "        \
	"count = max(count, excluded.count), "                 \
	"last_time = max(last_time, excluded.last_time) RETURNING id"

#define RAISE_SQL                                     \
	"UPDATE denials SET count = max(count, ?1), " \
	"last_time = max(last_time, ?2) WHERE id = ?3"

static void
bind_text(sqlite3_stmt *stmt, enum column column, const char *text)
{
	sqlite3_bind_text(stmt, (int)column + 1, text, -1, SQLITE_STATIC);
}

static void
bind_bytes(sqlite3_stmt *stmt, enum column column, const char *text)
{
	if (text)
		sqlite3_bind_blob(stmt, (int)column + 1, text,
				  (int)strlen(text), SQLITE_STATIC);
}

static void
bind_int(sqlite3_stmt *stmt, enum column column, int64_t value)
{
	sqlite3_bind_int64(stmt, (int)column + 1, value);
}

static void
bind_denial(sqlite3_stmt *stmt, const struct denial *denial)
{
	bind_int(stmt, COL_SEQ, (int64_t)denial->seq);
	bind_int(stmt, COL_TIME, denial->time_ns);
	bind_int(stmt, COL_LAST_TIME, denial->last_ns);
	bind_int(stmt, COL_COUNT, (int64_t)denial->count);
	bind_text(stmt, COL_SESSION, denial->session);
	bind_text(stmt, COL_WORLD, denial->world);
	bind_text(stmt, COL_ORIGIN, denial->origin);
	bind_text(stmt, COL_CALL, denial->call);
	bind_text(stmt, COL_SOURCE, denial_source_name(denial->source));
	bind_text(stmt, COL_CODE, policy_code_name(denial->code));
	bind_text(stmt, COL_MODE, policy_mode_name(denial->mode));
	bind_bytes(stmt, COL_RULE, denial->rule);
	bind_text(stmt, COL_OP, policy_op_name(denial->op));
	bind_bytes(stmt, COL_PATH, denial->path);
	bind_bytes(stmt, COL_PATH2, denial->path2);
	bind_int(stmt, COL_ERRNO, denial->error);
	bind_int(stmt, COL_PID, denial->pid);
	bind_int(stmt, COL_PPID, denial->ppid);
	bind_int(stmt, COL_INNER_PID, denial->inner_pid);
	bind_bytes(stmt, COL_COMM, denial->comm);
	bind_bytes(stmt, COL_EXE, denial->exe);
	bind_int(stmt, COL_UID, denial->uid);
	bind_int(stmt, COL_GID, denial->gid);
	bind_text(stmt, COL_REMEDY_KIND, denial_remedy_name(denial->remedy));
	bind_bytes(stmt, COL_REMEDY, denial->remedy_text);
}

static int
insert_denial(struct store *store, const struct denial *denial,
	      uint64_t *ret_id)
{
	sqlite3_stmt *stmt;
	int r = 0;

	stmt = store_prepared(store, STORE_INSERT, INSERT_SQL, &r);
	if (!stmt)
		return r;
	bind_denial(stmt, denial);
	return store_step(stmt, ret_id);
}

static int
raise_denial(struct store *store, const struct denial *denial)
{
	sqlite3_stmt *stmt;
	int r = 0;

	stmt = store_prepared(store, STORE_RAISE, RAISE_SQL, &r);
	if (!stmt)
		return r;
	sqlite3_bind_int64(stmt, 1, (int64_t)denial->count);
	sqlite3_bind_int64(stmt, 2, denial->last_ns);
	sqlite3_bind_int64(stmt, 3, (int64_t)denial->id);
	return store_step(stmt, NULL);
}

int
store_put_denials(struct store *store, struct denial *denials, size_t n)
{
	_cleanup_(freep) uint64_t *ids = NULL;
	int r;

	if (n == 0)
		return 0;
	ids = calloc(n, sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	r = store_begin(store);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < n; i++) {
		ids[i] = denials[i].id;
		r = ids[i] ? raise_denial(store, &denials[i])
			   : insert_denial(store, &denials[i], &ids[i]);
	}
	r = store_end(store, r);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++)
		denials[i].id = ids[i];
	return 0;
}

/* ---- queries ---- */

static void
dir_of_path(sqlite3_context *context, int n, sqlite3_value **values)
{
	const char *path = (const char *)sqlite3_value_text(values[0]);
	const char *slash = path ? strrchr(path, '/') : NULL;

	(void)n;
	if (!slash)
		sqlite3_result_null(context);
	else
		sqlite3_result_blob(context, path,
				    slash == path ? 1 : (int)(slash - path),
				    SQLITE_TRANSIENT);
}

int
store_add_functions(struct store *store)
{
	return store_errno(sqlite3_create_function_v2(
		store->db, "pale_dir", 1,
		SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
		dir_of_path, NULL, NULL, NULL));
}

/*
 * Absent restrictions are bound as NULL.  A workspace's denials are those of
 * the worlds that were started on it (?4: as the event's JSON spells it) and
 * those of paths in it (?5, and ?6 with a slash behind it); ?8 is an origin,
 * ?9 a call.
 */
#define WHERE                                                               \
	" WHERE id > ?1 AND (?2 IS NULL OR world = ?2)"                     \
	" AND (?3 IS NULL OR session = ?3)"                                 \
	" AND (?8 IS NULL OR origin = ?8)"                                  \
	" AND (?9 IS NULL OR call = ?9)"                                    \
	" AND (?4 IS NULL OR path = ?5 OR substr(path, 1, length(?6)) = ?6" \
	" OR world IN (SELECT world FROM events"                            \
	" WHERE kind = 'world.started'"                                     \
	" AND json_extract(body, '$.workspace') = ?4)) "

#define EACH_SQL                                                   \
	"SELECT " COLUMNS ", id FROM (SELECT * FROM denials" WHERE \
	"ORDER BY id DESC LIMIT ?7) ORDER BY id"

/* Without a sort, so that who has enough can stop. */
#define ALL_SQL "SELECT " COLUMNS ", id FROM denials" WHERE "ORDER BY id"

#define GROUP_SQL                                                       \
	"SELECT rule, op, pale_dir(path), comm, sum(count), count(*), " \
	"max(id) FROM (SELECT * FROM denials" WHERE                     \
	"ORDER BY id DESC LIMIT ?7) GROUP BY 1, 2, 3, 4 "               \
	"ORDER BY 5 DESC, 7 DESC"

static int
bind_workspace(sqlite3_stmt *stmt, const char *workspace)
{
	struct buf spelled = { 0 };
	size_t len = strlen(workspace);
	int r;

	escape_bytes(&spelled, workspace, len);
	r = buf_error(&spelled);
	if (r == 0) {
		sqlite3_bind_text(stmt, 4, (const char *)spelled.data,
				  (int)spelled.len, SQLITE_TRANSIENT);
		sqlite3_bind_blob(stmt, 5, workspace, (int)len,
				  SQLITE_TRANSIENT);
		buf_fini(&spelled);
		buf_put(&spelled, workspace, len);
		if (len == 0 || workspace[len - 1] != '/')
			buf_puts(&spelled, "/");
		r = buf_error(&spelled);
	}
	if (r == 0)
		sqlite3_bind_blob(stmt, 6, spelled.data, (int)spelled.len,
				  SQLITE_TRANSIENT);
	buf_fini(&spelled);
	return r;
}

static int
prepare_query(struct store *store, const char *sql,
	      const struct store_query *query, sqlite3_stmt **ret_stmt)
{
	int rc;

	rc = sqlite3_prepare_v2(store->db, sql, -1, ret_stmt, NULL);
	if (rc != SQLITE_OK)
		return store_errno(rc);
	sqlite3_bind_int64(*ret_stmt, 1,
			   query->since > INT64_MAX ? INT64_MAX
						    : (int64_t)query->since);
	sqlite3_bind_text(*ret_stmt, 2, query->world, -1, SQLITE_STATIC);
	sqlite3_bind_text(*ret_stmt, 3, query->session, -1, SQLITE_STATIC);
	sqlite3_bind_text(*ret_stmt, 8, query->origin, -1, SQLITE_STATIC);
	sqlite3_bind_text(*ret_stmt, 9, query->call, -1, SQLITE_STATIC);
	/* A negative limit is none. */
	sqlite3_bind_int64(*ret_stmt, 7,
			   query->last == 0 || query->last > INT64_MAX
				   ? -1
				   : (int64_t)query->last);
	return query->workspace ? bind_workspace(*ret_stmt, query->workspace)
				: 0;
}

static const char *
column_text(sqlite3_stmt *stmt, enum column column)
{
	return (const char *)sqlite3_column_text(stmt, (int)column);
}

/* The number whose name this is; unknown names (a later pale) give 0. */
static unsigned int
number_of(const char *name, const char *(*name_of)(unsigned int),
	  unsigned int count)
{
	for (unsigned int i = 0; name && i < count; i++) {
		const char *known = name_of(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	return 0;
}

static const char *
name_of_source(unsigned int number)
{
	return denial_source_name((enum denial_source)number);
}

static const char *
name_of_code(unsigned int number)
{
	return policy_code_name((enum policy_code)number);
}

static const char *
name_of_mode(unsigned int number)
{
	return policy_mode_name((enum policy_mode)number);
}

static const char *
name_of_op(unsigned int number)
{
	return policy_op_name((enum policy_op)number);
}

static const char *
name_of_remedy(unsigned int number)
{
	return denial_remedy_name((enum denial_remedy)number);
}

static void
read_denial(sqlite3_stmt *stmt, struct denial *ret_denial)
{
#define INT(column) sqlite3_column_int64(stmt, column)
#define ENUM(column, of, max) \
	number_of(column_text(stmt, column), of, (max) + 1)
	*ret_denial = (struct denial){
		.id = (uint64_t)INT(COL_ID),
		.seq = (uint64_t)INT(COL_SEQ),
		.time_ns = INT(COL_TIME),
		.last_ns = INT(COL_LAST_TIME),
		.count = (uint64_t)INT(COL_COUNT),
		.session = column_text(stmt, COL_SESSION),
		.world = column_text(stmt, COL_WORLD),
		.origin = column_text(stmt, COL_ORIGIN),
		.call = column_text(stmt, COL_CALL),
		.source = ENUM(COL_SOURCE, name_of_source, DENIAL_OBSERVED),
		.code = ENUM(COL_CODE, name_of_code, POLICY_CODE_COUNT - 1),
		.mode = ENUM(COL_MODE, name_of_mode, POLICY_DANGER_FULL_ACCESS),
		.rule = column_text(stmt, COL_RULE),
		.op = ENUM(COL_OP, name_of_op, POLICY_OP_COUNT - 1),
		.path = column_text(stmt, COL_PATH),
		.path2 = column_text(stmt, COL_PATH2),
		.error = (int)INT(COL_ERRNO),
		.pid = (pid_t)INT(COL_PID),
		.ppid = (pid_t)INT(COL_PPID),
		.inner_pid = (pid_t)INT(COL_INNER_PID),
		.comm = column_text(stmt, COL_COMM),
		.exe = column_text(stmt, COL_EXE),
		.uid = (uid_t)INT(COL_UID),
		.gid = (gid_t)INT(COL_GID),
		.remedy = ENUM(COL_REMEDY_KIND, name_of_remedy,
			       DENIAL_REMEDY_REREAD),
		.remedy_text = column_text(stmt, COL_REMEDY),
	};
#undef INT
#undef ENUM
}

int
store_each_denial(struct store *store, const struct store_query *query,
		  int (*each)(const struct denial *denial, void *data),
		  void *data)
{
	sqlite3_stmt *stmt = NULL;
	struct denial denial;
	int rc = SQLITE_OK, r;

	r = prepare_query(store, query->last ? EACH_SQL : ALL_SQL, query,
			  &stmt);
	while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		read_denial(stmt, &denial);
		r = each(&denial, data);
	}
	sqlite3_finalize(stmt);
	return r ? r : store_errno(rc);
}

int
store_each_group(struct store *store, const struct store_query *query,
		 int (*each)(const struct store_group *group, void *data),
		 void *data)
{
	sqlite3_stmt *stmt = NULL;
	int rc = SQLITE_OK, r;

	r = prepare_query(store, GROUP_SQL, query, &stmt);
	while (r == 0 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		const struct store_group group = {
			.rule = column_text(stmt, 0),
			.op = column_text(stmt, 1),
			.directory = column_text(stmt, 2),
			.program = column_text(stmt, 3),
			.count = (uint64_t)sqlite3_column_int64(stmt, 4),
			.rows = (uint64_t)sqlite3_column_int64(stmt, 5),
			.last_id = (uint64_t)sqlite3_column_int64(stmt, 6),
		};

		r = each(&group, data);
	}
	sqlite3_finalize(stmt);
	return r ? r : store_errno(rc);
}
