/* SPDX-License-Identifier: MIT */

#include "policy/store_jobs.h"

#include "base/buf.h"
#include "policy/store_priv.h"

/* The columns in the order in which rows are read. */
#define COLUMNS                                                             \
	"id, world, workspace, session, token, name, label, state, value, " \
	"reason, pid, attempt, flags, created, started, ended, stdout, "    \
	"stderr, stored, user_us, sys_us, max_rss_kib, "

enum column {
	COL_ID,
	COL_WORLD,
	COL_WORKSPACE,
	COL_SESSION,
	COL_TOKEN,
	COL_NAME,
	COL_LABEL,
	COL_STATE,
	COL_VALUE,
	COL_REASON,
	COL_PID,
	COL_ATTEMPT,
	COL_FLAGS,
	COL_CREATED,
	COL_STARTED,
	COL_ENDED,
	COL_STDOUT,
	COL_STDERR,
	COL_STORED,
	COL_USER,
	COL_SYS,
	COL_RSS,
	COL_SPEC
};

#define ADD_SQL                                                            \
	"INSERT INTO jobs (world, workspace, session, token, name, "       \
	"state, created, label) VALUES (?1,?2,?3,?4,?5,?6,?7,?8) "         \
	"ON CONFLICT (workspace, session, token) WHERE token IS NOT NULL " \
	"DO NOTHING RETURNING id"

#define SPEC_SQL "INSERT INTO job_specs (id, spec) VALUES (?1, ?2)"

/* By two ranges: those of its own world may be many. */
#define OTHERS_SQL                                                       \
	"SELECT count(*), total(state <> 'queued') FROM ("               \
	"SELECT state FROM jobs WHERE ended IS NULL"                     \
	" AND workspace = ?1 AND session = ?2 AND world < ?3 UNION ALL " \
	"SELECT state FROM jobs WHERE ended IS NULL"                     \
	" AND workspace = ?1 AND session = ?2 AND world > ?3)"

#define UPDATE_SQL                                                        \
	"UPDATE jobs SET state = ?2, value = ?3, reason = ?4, pid = ?5, " \
	"attempt = ?6, flags = ?7, started = ?8, ended = ?9, "            \
	"user_us = ?10, sys_us = ?11, max_rss_kib = ?12 "                 \
	"WHERE id = ?1 AND ended IS NULL"

/* An open output may still grow. */
#define SIZES_SQL                                                 \
	"UPDATE jobs SET stdout = ?2, stderr = ?3, stored = ?4, " \
	"flags = (flags & ~2) | ?5 WHERE id = ?1"

static int
add(struct store *store, const struct store_job *job, uint64_t *ret_id)
{
	sqlite3_stmt *stmt;
	int r = 0;

	stmt = store_prepared(store, STORE_JOB_ADD, ADD_SQL, &r);
	if (!stmt)
		return r;
	sqlite3_bind_text(stmt, 1, job->world, -1, SQLITE_STATIC);
	store_bind_bytes(stmt, 2, job->workspace);
	sqlite3_bind_text(stmt, 3, job->session, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 4, job->token, -1, SQLITE_STATIC);
	store_bind_bytes(stmt, 5, job->name);
	sqlite3_bind_text(stmt, 6, job->state, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 7, job->created_ns);
	store_bind_bytes(stmt, 8, job->label);
	*ret_id = 0;
	return store_step(stmt, ret_id);
}

int
store_jobs_others(struct store *store, const struct store_job *job,
		  struct store_job_others *ret_others)
{
	sqlite3_stmt *stmt;
	int rc, r = 0;

	stmt = store_prepared(store, STORE_JOB_OTHERS, OTHERS_SQL, &r);
	if (!stmt)
		return r;
	store_bind_bytes(stmt, 1, job->workspace);
	sqlite3_bind_text(stmt, 2, job->session, -1, SQLITE_STATIC);
	sqlite3_bind_text(stmt, 3, job->world, -1, SQLITE_STATIC);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*ret_others = (struct store_job_others){
			.live = (uint64_t)sqlite3_column_int64(stmt, 0),
			.started = (uint64_t)sqlite3_column_int64(stmt, 1),
		};
	sqlite3_reset(stmt);
	return store_errno(rc);
}

static int
add_both(struct store *store, const struct store_job *job, uint64_t others,
	 struct store_job_added *added)
{
	int r = store_begin(store);

	if (r < 0)
		return r;
	r = add(store, job, &added->id);
	if (r == 0 && added->id != 0) {
		r = store_jobs_others(store, job, &added->others);
		if (r == 0 && added->others.live > others)
			r = -EAGAIN;
	}
	if (r == 0 && added->id != 0)
		r = store_put_spec(store, STORE_JOB_SPEC, SPEC_SQL, added->id,
				   job->spec);
	return store_end(store, r);
}

static int
take_id(const struct store_job *job, void *data)
{
	*(uint64_t *)data = job->id;
	return 0;
}

int
store_job_add(struct store *store, const struct store_job *job, uint64_t others,
	      struct store_job_added *ret_added)
{
	const struct store_jobs_query same = { .workspace = job->workspace,
					       .session = job->session,
					       .token = job->token,
					       .light = true };
	struct store_job_added added = { 0 };
	int r = add_both(store, job, others, &added);

	added.known = r == 0 && added.id == 0;
	if (added.known)
		r = store_each_job(store, &same, take_id, &added.id);
	/* Removed in this very moment. */
	if (r == 0 && added.id == 0)
		r = -EBUSY;
	if (r == 0)
		*ret_added = added;
	return r;
}

static int
update_one(struct store *store, const struct store_job *job)
{
	sqlite3_stmt *stmt;
	int r = 0;

	stmt = store_prepared(store, STORE_JOB_UPDATE, UPDATE_SQL, &r);
	if (!stmt)
		return r;
	sqlite3_bind_int64(stmt, 1, (int64_t)job->id);
	sqlite3_bind_text(stmt, 2, job->state, -1, SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 3, job->value);
	store_bind_bytes(stmt, 4, job->reason);
	sqlite3_bind_int64(stmt, 5, job->pid);
	sqlite3_bind_int64(stmt, 6, job->attempt);
	sqlite3_bind_int64(stmt, 7, job->flags);
	store_bind_time(stmt, 8, job->started_ns);
	store_bind_time(stmt, 9, job->ended_ns);
	sqlite3_bind_int64(stmt, 10, (int64_t)job->user_us);
	sqlite3_bind_int64(stmt, 11, (int64_t)job->sys_us);
	sqlite3_bind_int64(stmt, 12, (int64_t)job->max_rss_kib);
	r = store_step(stmt, NULL);
	if (r < 0)
		return r;

	stmt = store_prepared(store, STORE_JOB_SIZES, SIZES_SQL, &r);
	if (!stmt)
		return r;
	sqlite3_bind_int64(stmt, 1, (int64_t)job->id);
	sqlite3_bind_int64(stmt, 2, (int64_t)job->out_bytes);
	sqlite3_bind_int64(stmt, 3, (int64_t)job->err_bytes);
	sqlite3_bind_int64(stmt, 4, (int64_t)job->stored_bytes);
	sqlite3_bind_int64(stmt, 5, job->flags & STORE_JOB_OUTPUT_OPEN);
	return store_step(stmt, NULL);
}

int
store_jobs_update(struct store *store, const struct store_job *jobs, size_t n)
{
	int r = store_begin(store);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = update_one(store, &jobs[i]);
	return store_end(store, r);
}

int
store_job_remove(struct store *store, uint64_t id)
{
	return store_remove(store, "jobs", id);
}

/* ---- queries ---- */

static struct store_job
row(sqlite3_stmt *stmt)
{
	return (struct store_job){
		.id = (uint64_t)sqlite3_column_int64(stmt, COL_ID),
		.world = store_bytes(stmt, COL_WORLD),
		.workspace = store_bytes(stmt, COL_WORKSPACE),
		.session = store_bytes(stmt, COL_SESSION),
		.token = store_bytes(stmt, COL_TOKEN),
		.name = store_bytes(stmt, COL_NAME),
		.label = store_bytes(stmt, COL_LABEL),
		.spec = store_bytes(stmt, COL_SPEC),
		.state = store_bytes(stmt, COL_STATE),
		.value = sqlite3_column_int64(stmt, COL_VALUE),
		.reason = store_bytes(stmt, COL_REASON),
		.pid = sqlite3_column_int64(stmt, COL_PID),
		.attempt = sqlite3_column_int64(stmt, COL_ATTEMPT),
		.flags = (unsigned int)sqlite3_column_int64(stmt, COL_FLAGS),
		.created_ns = sqlite3_column_int64(stmt, COL_CREATED),
		.started_ns = sqlite3_column_int64(stmt, COL_STARTED),
		.ended_ns = sqlite3_column_int64(stmt, COL_ENDED),
		.out_bytes = (uint64_t)sqlite3_column_int64(stmt, COL_STDOUT),
		.err_bytes = (uint64_t)sqlite3_column_int64(stmt, COL_STDERR),
		.stored_bytes =
			(uint64_t)sqlite3_column_int64(stmt, COL_STORED),
		.user_us = (uint64_t)sqlite3_column_int64(stmt, COL_USER),
		.sys_us = (uint64_t)sqlite3_column_int64(stmt, COL_SYS),
		.max_rss_kib = (uint64_t)sqlite3_column_int64(stmt, COL_RSS),
	};
}

static int
each_row(sqlite3_stmt *stmt,
	 int (*each)(const struct store_job *job, void *data), void *data)
{
	int rc, r = 0;

	while (r == 0 && (rc = sqlite3_step(stmt)) != SQLITE_DONE) {
		struct store_job job;

		if (rc != SQLITE_ROW)
			return store_errno(rc);
		job = row(stmt);
		r = each(&job, data);
	}
	return r;
}

int
store_each_job(struct store *store, const struct store_jobs_query *query,
	       int (*each)(const struct store_job *job, void *data), void *data)
{
	sqlite3_stmt *stmt = NULL;
	char *sql;
	int rc, r;

	sql = sqlite3_mprintf("SELECT " COLUMNS "%s FROM jobs%s WHERE %s"
			      "%s%s%s%s%s%s%s ORDER BY id%s LIMIT %lld",
			      query->light ? "NULL" : "spec",
			      query->light ? "" : " JOIN job_specs USING (id)",
			      query->id ? "id = ?1" : "1",
			      query->world ? " AND world = ?2" : "",
			      query->workspace ? " AND workspace = ?3" : "",
			      query->session ? " AND session = ?4" : "",
			      query->token ? " AND token = ?5" : "",
			      query->live ? " AND ended IS NULL" : "",
			      query->open ? " AND (ended IS NULL OR flags & 2)"
					  : "",
			      query->ended ? " AND ended IS NOT NULL" : "",
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
	sqlite3_bind_text(stmt, 5, query->token, -1, SQLITE_STATIC);
	r = each_row(stmt, each, data);
	sqlite3_finalize(stmt);
	return r;
}

int
store_jobs_excess(struct store *store, int64_t oldest_ns, uint64_t kept,
		  uint64_t bytes,
		  int (*each)(const struct store_job *job, void *data),
		  void *data)
{
	sqlite3_stmt *stmt = NULL;
	int rc, r;

	rc = sqlite3_prepare_v2(
		store->db,
		"SELECT " COLUMNS "NULL FROM (SELECT *, "
		"row_number() OVER (PARTITION BY workspace, session "
		"ORDER BY id DESC) AS nth, "
		"sum(stored) OVER (ORDER BY ended DESC, id DESC) AS total "
		"FROM jobs WHERE ended IS NOT NULL) "
		"WHERE ended < ?1 OR nth > ?2 OR total > ?3 ORDER BY id",
		-1, &stmt, NULL);
	if (rc != SQLITE_OK)
		return store_errno(rc);
	sqlite3_bind_int64(stmt, 1, oldest_ns);
	sqlite3_bind_int64(stmt, 2, (int64_t)kept);
	sqlite3_bind_int64(stmt, 3, (int64_t)bytes);
	r = each_row(stmt, each, data);
	sqlite3_finalize(stmt);
	return r;
}
