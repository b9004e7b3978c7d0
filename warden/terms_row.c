/* SPDX-License-Identifier: MIT */

#include "warden/terms_row.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/units.h"
#include "pty/vt.h"
#include "warden/jobs_row.h"
#include "warden/spool_dir.h"

/* A model that was saved is no larger. */
#define SCREEN_MAX (64u << 20)
#define CHUNK	   (64u << 10)

const struct segments_limits terms_raw_limits = { 1u << 20, 8u << 20 };

int
terms_id_parse(const char *text, uint64_t *ret_id)
{
	return units_id('t', text, ret_id);
}

void
terms_id_text(uint64_t id, char text[TERMS_ID_MAX])
{
	(void)snprintf(text, TERMS_ID_MAX, "t%llu", (unsigned long long)id);
}

bool
terms_name_is_valid(const char *name)
{
	size_t len = strlen(name);
	const char *digits = name + (*name == 't' ? 1 : 0);

	if (len == 0 || len > TERMS_NAME_MAX || *name == '-' || *name == '.')
		return false;
	if (*digits && strspn(digits, "0123456789") == strlen(digits))
		return false;
	for (size_t i = 0; i < len; i++)
		if (name[i] == '/' || iscntrl((unsigned char)name[i]))
			return false;
	return true;
}

/* ---- in words, as a job's ---- */

static struct store_job
as_job(const struct store_term *row)
{
	struct store_job job = {
		.id = row->id,
		.state = row->state,
		.value = row->value,
		.reason = row->reason,
		.pid = row->pid,
		.created_ns = row->created_ns,
		.started_ns = row->started_ns,
		.ended_ns = row->ended_ns,
	};

	if (row->flags & STORE_TERM_STOP_REQUESTED)
		job.flags |= STORE_JOB_STOP_REQUESTED;
	if (row->flags & STORE_TERM_OUTPUT_OPEN)
		job.flags |= STORE_JOB_OUTPUT_OPEN;
	if (row->flags & STORE_TERM_BY_EXEC)
		job.flags |= STORE_JOB_BY_EXEC;
	if (row->flags & STORE_TERM_MAY_EXECUTE)
		job.flags |= STORE_JOB_MAY_EXECUTE;
	return job;
}

void
terms_row_line(const struct store_term *row, char *text, size_t size)
{
	const struct store_job job = as_job(row);

	jobs_row_line(&job, text, size);
}

int
terms_row_exit(const struct store_term *row)
{
	const struct store_job job = as_job(row);

	return jobs_row_exit(&job);
}

void
terms_row_json(const struct store_term *row, struct buf *out)
{
	const struct store_job job = as_job(row);
	char id[TERMS_ID_MAX];

	terms_id_text(row->id, id);
	jsonw_begin(out, '{');
	jsonw_pair(out, "id", id);
	jsonw_pair(out, "name", row->name);
	jsonw_pair(out, "command", row->label);
	jsonw_pair(out, "title", row->title);
	jobs_row_put_state(&job, out);
	jsonw_pair_uint(out, "cols", row->cols);
	jsonw_pair_uint(out, "rows", row->rows);
	jsonw_pair_bool(out, "pinned", row->flags & STORE_TERM_PINNED);
	jsonw_pair(out, "world", row->world);
	jsonw_pair(out, "workspace", row->workspace);
	jsonw_pair(out, "session", row->session);
	jsonw_pair_uint(out, "bytes", row->bytes);
	jsonw_pair_uint(out, "stored_bytes", row->stored_bytes);
	jsonw_pair_uint(out, "user_ms", row->user_us / 1000);
	jsonw_pair_uint(out, "sys_ms", row->sys_us / 1000);
	jsonw_pair_uint(out, "max_rss_kib", row->max_rss_kib);
	jobs_row_put_spec(row->spec, out);
	jsonw_end(out, '}');
}

/* ---- files ---- */

char *
terms_dir_path(const char *state, const char *world, uint64_t id)
{
	char name[TERMS_ID_MAX];

	terms_id_text(id, name);
	return spool_dir_path(state, world, "terminals", name);
}

int
terms_remove_row(struct store *store, const char *state,
		 const struct store_term *row)
{
	_cleanup_(freep) char *path =
		terms_dir_path(state, row->world, row->id);
	int r;

	if (!path)
		return -ENOMEM;
	r = spool_dir_remove(path);
	return r < 0 ? r : store_term_remove(store, row->id);
}

/* ---- the screen ---- */

int
terms_format_parse(const char *name, enum terms_format *ret_format)
{
	static const char *const names[] = {
		[TERMS_TEXT] = "text",
		[TERMS_ANSI] = "ansi",
		[TERMS_JSON] = "json",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		*ret_format = (enum terms_format)i;
		return 0;
	}
	return -EINVAL;
}

void
terms_put_screen(const struct vt *vt, enum terms_format format,
		 unsigned int scrollback, struct buf *out)
{
	if (format == TERMS_TEXT)
		vt_text(vt, scrollback, out);
	else if (format == TERMS_ANSI)
		vt_ansi(vt, scrollback, out);
	else
		vt_json(vt, scrollback, out);
}

/* What was saved, or a fresh one where nothing (that we know) was. */
static int
restore(int dir, const struct store_term *row, struct vt **ret_vt)
{
	_cleanup_(freep) char *bytes = NULL;
	size_t len;
	int r = fd_read_path(dir, "screen", SCREEN_MAX, &bytes, &len);

	if (r == 0)
		r = vt_restore(bytes, len, NULL, NULL, NULL, ret_vt);
	if (r == 0 || r == -ENOMEM)
		return r;
	return vt_new(row->cols, row->rows, NULL, NULL, NULL, ret_vt);
}

static int
feed_rest(struct vt *vt, struct segments *raw)
{
	_cleanup_(segments_file_fini) struct segments_file file = { 0 };
	_cleanup_(freep) char *chunk = malloc(CHUNK);
	struct segments_view view = { .next = vt_offset(vt) };
	int r = chunk ? 0 : -ENOMEM;

	while (r == 0 && view.next < segments_end(raw)) {
		r = segments_read(raw, &file, view.next, chunk, CHUNK, &view);
		if (r == 0)
			vt_feed(vt, chunk, view.len);
	}
	return r;
}

int
terms_load_screen(int dir, const struct store_term *row, struct vt **ret_vt)
{
	_cleanup_(segments_freep) struct segments *raw = NULL;
	_cleanup_(vt_freep) struct vt *vt = NULL;
	int r;

	if (dir < 0)
		return vt_new(row->cols, row->rows, NULL, NULL, NULL, ret_vt);
	r = segments_open(dir, "raw", NULL, &raw);
	if (r == 0)
		r = restore(dir, row, &vt);
	if (r < 0)
		return r;
	vt_set_mute(vt, true);
	r = feed_rest(vt, raw);
	if (r < 0)
		return r;
	*ret_vt = take_ptr(&vt);
	return 0;
}

int
terms_dump_screen(int dir, const struct store_term *row,
		  enum terms_format format, unsigned int scrollback,
		  struct buf *out)
{
	_cleanup_(vt_freep) struct vt *vt = NULL;
	int r = terms_load_screen(dir, row, &vt);

	if (r < 0)
		return r;
	terms_put_screen(vt, format, scrollback, out);
	return buf_error(out);
}

int
terms_dump_lines(int dir, const struct store_term *row, unsigned int offset,
		 unsigned int count, struct buf *out)
{
	_cleanup_(vt_freep) struct vt *vt = NULL;
	int r = terms_load_screen(dir, row, &vt);

	if (r < 0)
		return r;
	(void)vt_lines(vt, offset, count, out);
	return buf_error(out);
}
