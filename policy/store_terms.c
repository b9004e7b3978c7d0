/* SPDX-License-Identifier: MIT */

#include "policy/store_terms.h"

#include "policy/store_priv.h"

/* The columns in the order in which rows are read. */
#define COLUMNS                                                              \
	"id, world, workspace, session, name, label, state, value, reason, " \
	"title, pid, flags, cols, rows, created, started, ended, bytes, "    \
	"stored, user_us, sys_us, max_rss_kib, "

enum column {
	COL_ID,
	COL_WORLD,
	COL_WORKSPACE,
	COL_SESSION,
	COL_NAME,
	COL_LABEL,
	COL_STATE,
	COL_VALUE,
	COL_REASON,
	COL_TITLE,
	COL_PID,
	COL_FLAGS,
	COL_COLS,
	COL_ROWS,
	COL_CREATED,
	COL_STARTED,
	COL_ENDED,
	COL_BYTES,
	COL_STORED,
	COL_USER,
	COL_SYS,
	COL_RSS,
	COL_SPEC
};

#define ADD_SQL                                                            \
	"INSERT INTO terminals (world, workspace, session, name, label, "  \
	"state, cols, rows, created) VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9) " \
	"RETURNING id"

#define SPEC_SQL "INSERT INTO terminal_specs (id, spec) VALUES (?1, ?2)"

#define UPDATE_SQL                                                       \
	"UPDATE terminals SET state = ?2, value = ?3, reason = ?4, "     \
	"pid = ?5, flags = ?6, started = ?7, ended = ?8, user_us = ?9, " \
	"sys_us = ?10, max_rss_kib = ?11, cols = ?12, rows = ?13 "       \
	"WHERE id = ?1 AND ended IS NULL"

/* An open output may still grow; a name is anybody's to change. */
#define SIZES_SQL                                                    \
	"UPDATE terminals SET bytes = ?2, stored = ?3, title = ?4, " \
	"flags = (flags & ~2) | ?5, name = ?6 WHERE id = ?1"

static int
add(struct store *store, const struct store_term *term, uint64_t *ret_id)
{
	sqlite3_stmt *stmt;
	int r = 0;

	stmt = store_prepared(store, STORE_TERM_ADD, ADD_SQL, &r);
	if (!stmt)
		return r;
	sqlite3_bind_text(stmt, 1, term->world, -1, SQLITE_STATIC);
	store_bind_bytes(stmt, 2, term->workspace);
	sqlite3_bind_text(stmt, 3, term->session, -1, SQLITE_STATIC);
	store_bind_bytes(stmt, 4, term->name);
	store_bind_bytes(stmt, 5, term->label);
	sqlite3_bind_text(stmt, 6, term->state, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 7, term->cols);
	sqlite3_bind_int64(stmt, 8, term->rows);
	sqlite3_bind_int64(stmt, 9, term->created_ns);
	return store_step(stmt, ret_id);
}

int
store_term_add(struct store *store, const struct store_term *term,
	       uint64_t *ret_id)
{
	uint64_t id = 0;
	int r = store_begin(store);

	if (r < 0)
		return r;
	r = add(store, term, &id);
	if (r == 0)
		r = store_put_spec(store, STORE_TERM_SPEC, SPEC_SQL, id,
				   term->spec);
	r = store_end(store, r);
	if (r == 0)
		*ret_id = id;
	return r;
}

static int
update_one(struct store *store, const struct store_term *term)
{
	sqlite3_stmt *stmt;
	int r = 0;

	stmt = store_prepared(store, STORE_TERM_UPDATE, UPDATE_SQL, &r);
	if (!stmt)
		return r;
	sqlite3_bind_int64(stmt, 1, (int64_t)term->id);
	sqlite3_bind_text(stmt, 2, term->state, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 3, term->value);
	store_bind_bytes(stmt, 4, term->reason);
	sqlite3_bind_int64(stmt, 5, term->pid);
	sqlite3_bind_int64(stmt, 6, term->flags);
	store_bind_time(stmt, 7, term->started_ns);
	store_bind_time(stmt, 8, term->ended_ns);
	sqlite3_bind_int64(stmt, 9, (int64_t)term->user_us);
	sqlite3_bind_int64(stmt, 10, (int64_t)term->sys_us);
	sqlite3_bind_int64(stmt, 11, (int64_t)term->max_rss_kib);
	sqlite3_bind_int64(stmt, 12, term->cols);
	sqlite3_bind_int64(stmt, 13, term->rows);
	r = store_step(stmt, NULL);
	if (r < 0)
		return r;

	stmt = store_prepared(store, STORE_TERM_SIZES, SIZES_SQL, &r);
	if (!stmt)
		return r;
	sqlite3_bind_int64(stmt, 1, (int64_t)term->id);
	sqlite3_bind_int64(stmt, 2, (int64_t)term->bytes);
	sqlite3_bind_int64(stmt, 3, (int64_t)term->stored_bytes);
	store_bind_bytes(stmt, 4, term->title);
	sqlite3_bind_int64(stmt, 5, term->flags & STORE_TERM_OUTPUT_OPEN);
	store_bind_bytes(stmt, 6, term->name);
	return store_step(stmt, NULL);
}

int
store_terms_update(struct store *store, const struct store_term *terms,
		   size_t n)
{
	int r = store_begin(store);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = update_one(store, &terms[i]);
	return store_end(store, r);
}

int
store_term_remove(struct store *store, uint64_t id)
{
	return store_remove(store, "terminals", id);
}

/* ---- queries ---- */

static struct store_term
row(sqlite3_stmt *stmt)
{
	return (struct store_term){
		.id = (uint64_t)sqlite3_column_int64(stmt, COL_ID),
		.world = store_bytes(stmt, COL_WORLD),
		.workspace = store_bytes(stmt, COL_WORKSPACE),
		.session = store_bytes(stmt, COL_SESSION),
		.name = store_bytes(stmt, COL_NAME),
		.label = store_bytes(stmt, COL_LABEL),
		.spec = store_bytes(stmt, COL_SPEC),
		.state = store_bytes(stmt, COL_STATE),
		.value = sqlite3_column_int64(stmt, COL_VALUE),
		.reason = store_bytes(stmt, COL_REASON),
		.title = store_bytes(stmt, COL_TITLE),
		.pid = sqlite3_column_int64(stmt, COL_PID),
		.flags = (unsigned int)sqlite3_column_int64(stmt, COL_FLAGS),
		.cols = (unsigned int)sqlite3_column_int64(stmt, COL_COLS),
		.rows = (unsigned int)sqlite3_column_int64(stmt, COL_ROWS),
		.created_ns = sqlite3_column_int64(stmt, COL_CREATED),
		.started_ns = sqlite3_column_int64(stmt, COL_STARTED),
		.ended_ns = sqlite3_column_int64(stmt, COL_ENDED),
		.bytes = (uint64_t)sqlite3_column_int64(stmt, COL_BYTES),
		.stored_bytes =
			(uint64_t)sqlite3_column_int64(stmt, COL_STORED),
		.user_us = (uint64_t)sqlite3_column_int64(stmt, COL_USER),
		.sys_us = (uint64_t)sqlite3_column_int64(stmt, COL_SYS),
		.max_rss_kib = (uint64_t)sqlite3_column_int64(stmt, COL_RSS),
	};
}

static int
each_row(sqlite3_stmt *stmt,
	 int (*each)(const struct store_term *term, void *data), void *data)
{
	int rc, r = 0;

	while (r == 0 && (rc = sqlite3_step(stmt)) != SQLITE_DONE) {
		struct store_term term;

		if (rc != SQLITE_ROW)
			return store_errno(rc);
		term = row(stmt);
		r = each(&term, data);
	}
	return r;
}

int
store_each_term(struct store *store, const struct store_terms_query *query,
		int (*each)(const struct store_term *term, void *data),
		void *data)
{
	sqlite3_stmt *stmt = NULL;
	char *sql;
	int rc, r;

	sql = sqlite3_mprintf("SELECT " COLUMNS "spec FROM terminals"
			      " JOIN terminal_specs USING (id) WHERE %s"
			      "%s%s%s%s%s ORDER BY id%s LIMIT %lld",
			      query->id ? "id = ?1" : "1",
			      query->world ? " AND world = ?2" : "",
			      query->workspace ? " AND workspace = ?3" : "",
			      query->session ? " AND session = ?4" : "",
			      query->name ? " AND name = ?5" : "",
			      query->open ? " AND (ended IS NULL OR flags & 2)"
					  : "",
			      query->newest_first ? " DESC" : "",
			      query->limit ? (long long)query->limit : -1LL);
	if (!sql)
		return -ENOMEM;
	rc = sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL);
	sqlite3_free(sql);
	if (rc != SQLITE_OK)
		return store_errno(rc);
	sqlite3_bind_int64(stmt, 1, (int64_t)query->id);
	sqlite3_bind_text(stmt, 2, query->world, -1, SQLITE_STATIC);
	store_bind_bytes(stmt, 3, query->workspace);
	sqlite3_bind_text(stmt, 4, query->session, -1, SQLITE_STATIC);
	store_bind_bytes(stmt, 5, query->name);
	r = each_row(stmt, each, data);
	sqlite3_finalize(stmt);
	return r;
}

int
store_terms_excess(struct store *store, int64_t oldest_ns, uint64_t kept,
		   int (*each)(const struct store_term *term, void *data),
		   void *data)
{
	sqlite3_stmt *stmt = NULL;
	int rc, r;

	rc = sqlite3_prepare_v2(
		store->db,
		"SELECT " COLUMNS "NULL FROM (SELECT *, "
		"row_number() OVER (PARTITION BY workspace, session "
		"ORDER BY id DESC) AS nth "
		"FROM terminals WHERE ended IS NOT NULL) "
		"WHERE ended < ?1 OR nth > ?2 ORDER BY id",
		-1, &stmt, NULL);
	if (rc != SQLITE_OK)
		return store_errno(rc);
	sqlite3_bind_int64(stmt, 1, oldest_ns);
	sqlite3_bind_int64(stmt, 2, (int64_t)kept);
	r = each_row(stmt, each, data);
	sqlite3_finalize(stmt);
	return r;
}
