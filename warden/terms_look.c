/* SPDX-License-Identifier: MIT */

/* What others see of a terminal, and do to it. */

#include "warden/terms_priv.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>

#include "warden/spawn.h"

#define SIZE_MAX_CELLS 65535

static struct wterm *
find(const struct warden *warden, uint64_t id)
{
	return terms_host_find(warden->terms, id);
}

uint64_t
terms_next_id(const struct warden *warden, uint64_t after)
{
	const struct job *core =
		warden->terms ? jobs_after(warden->terms->core, after) : NULL;

	return core ? core->id : 0;
}

int
terms_find(const struct warden *warden, const char *id_or_name,
	   uint64_t *ret_id)
{
	const struct jobs *all = warden->terms ? warden->terms->core : NULL;

	if (terms_id_parse(id_or_name, ret_id) == 0)
		return find(warden, *ret_id) ? 0 : -ENOENT;
	for (size_t i = all ? jobs_count(all) : 0; i-- > 0;) {
		const struct job *core = jobs_at(all, i);
		const struct wterm *term = core->data;

		if (!term->name || strcmp(term->name, id_or_name) != 0)
			continue;
		*ret_id = core->id;
		return 0;
	}
	return -ENOENT;
}

int
terms_get_row(const struct warden *warden, uint64_t id,
	      struct store_term *ret_row)
{
	const struct wterm *term = find(warden, id);

	if (!term)
		return -ENOENT;
	wterm_row(term, ret_row);
	return 0;
}

int
terms_status_line(const struct warden *warden, uint64_t id, char *text,
		  size_t size)
{
	struct store_term row;
	int r = terms_get_row(warden, id, &row);

	if (r == 0)
		terms_row_line(&row, text, size);
	return r;
}

int
terms_state_json(const struct warden *warden, uint64_t id, struct buf *out)
{
	struct store_term row;
	int r = terms_get_row(warden, id, &row);

	if (r < 0)
		return r;
	terms_row_json(&row, out);
	return buf_error(out);
}

static int
copy_spec(const struct store_term *row, void *data)
{
	*(char **)data = strdup(row->spec);
	return 1;
}

int
terms_read_spec(const struct warden *warden, uint64_t id, char **ret_spec)
{
	struct terms_host *host = warden->terms;
	const struct store_terms_query query = { .id = id };
	struct errmsg why = { "" };
	char *spec = NULL;
	int r;

	if (!host)
		return -ENOENT;
	(void)pthread_mutex_lock(&host->store_lock);
	r = terms_store_open(host, &why);
	if (r == 0)
		r = store_each_term(host->store, &query, copy_spec, &spec);
	(void)pthread_mutex_unlock(&host->store_lock);
	if (r <= 0)
		return r < 0 ? r : -ENOENT;
	if (!spec)
		return -ENOMEM;
	*ret_spec = spec;
	return 0;
}

bool
terms_is_live(const struct warden *warden, uint64_t id)
{
	const struct wterm *term = find(warden, id);

	return term && !job_state_is_final(term->core.state);
}

bool
terms_is_told(const struct warden *warden, uint64_t id)
{
	const struct wterm *term = find(warden, id);

	return !term || term->told;
}

int
terms_is_over(const struct warden *warden, uint64_t id, bool *ret_over)
{
	const struct wterm *term = find(warden, id);

	if (!term)
		return -ENOENT;
	*ret_over = term->told && !term->core.tree_alive;
	return 0;
}

/* ---- output ---- */

int
terms_end(const struct warden *warden, uint64_t id, uint64_t *ret_end,
	  bool *ret_final)
{
	const struct wterm *term = find(warden, id);

	if (!term)
		return -ENOENT;
	*ret_end = term->raw ? segments_end(term->raw) : term->bytes;
	if (ret_final)
		*ret_final = !term->held;
	return 0;
}

static int
read_closed(const struct wterm *term, const struct terms_span *span,
	    struct segments_view *ret_view)
{
	_cleanup_(segments_freep) struct segments *raw = NULL;
	_cleanup_(freep) char *path =
		terms_dir_path(term->host->warden->places.state,
			       term->host->warden->opt.world, term->core.id);
	_cleanup_(closep) int dir = -1;
	int r;

	if (!path)
		return -ENOMEM;
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = dir < 0 ? -errno : segments_open(dir, "raw", NULL, &raw);
	return r < 0 ? r
		     : segments_read(raw, NULL, span->offset, span->buf,
				     span->size, ret_view);
}

int
terms_read(struct warden *warden, uint64_t id, struct segments_file *file,
	   const struct terms_span *span, struct segments_view *ret_view)
{
	struct wterm *term = find(warden, id);

	if (!term)
		return -ENOENT;
	if (!term->raw)
		return read_closed(term, span, ret_view);
	return segments_read(term->raw, file, span->offset, span->buf,
			     span->size, ret_view);
}

int
terms_get_size(const struct warden *warden, uint64_t id,
	       struct terms_size *ret_size)
{
	const struct wterm *term = find(warden, id);

	if (!term)
		return -ENOENT;
	*ret_size = (struct terms_size){ term->cols, term->rows, term->pinned };
	return 0;
}

/* ---- doing ---- */

int
terms_write(struct warden *warden, uint64_t id, const void *bytes, size_t len,
	    unsigned int flags, struct terms_written *ret_written)
{
	struct wterm *term = find(warden, id);
	struct terms_written written = { 0 };

	if (!term)
		return -ENOENT;
	if (!term->pty)
		return -EPIPE;
	written.cursor = segments_end(term->raw);
	if (!(flags & TERMS_WRITE_TYPED))
		written.too_long = term_pty_is_too_long(term, bytes, len);
	if (!written.too_long &&
	    !((flags & TERMS_WRITE_WHOLE) && len > term_pty_room(term)))
		written.taken = term_pty_write(term, bytes, len, false);
	terms_fault(term->host, "fed");
	*ret_written = written;
	return 0;
}

size_t
terms_input_waits(const struct warden *warden, uint64_t id)
{
	const struct wterm *term = find(warden, id);

	return term ? TERMS_INPUT - term_pty_room(term) : 0;
}

int
terms_resize(struct warden *warden, uint64_t id, unsigned int cols,
	     unsigned int rows, enum terms_sizer sizer)
{
	struct wterm *term = find(warden, id);
	bool pin = sizer == TERMS_SIZE_PIN, changed;
	int r;

	if (!term)
		return -ENOENT;
	if (!term->pty)
		return -EPIPE;
	if (sizer == TERMS_SIZE_UNPIN && cols == 0 && rows == 0) {
		cols = term->cols;
		rows = term->rows;
	}
	if (cols == 0 || rows == 0 || cols > SIZE_MAX_CELLS ||
	    rows > SIZE_MAX_CELLS)
		return -EINVAL;
	if (sizer == TERMS_SIZE_PERSON && term->pinned)
		return 0;
	/* The model has its own idea of what is too much. */
	cols = cols > VT_COLS_MAX ? VT_COLS_MAX : cols;
	rows = rows > VT_ROWS_MAX ? VT_ROWS_MAX : rows;
	changed = cols != term->cols || rows != term->rows;
	if (changed) {
		/* What was written before this belongs to the old size. */
		term_pty_drain(term);
		r = term_screen_resize(term, cols, rows);
		if (r == 0)
			r = term_pty_set_size(term, cols, rows);
		if (r < 0)
			return r;
		term->cols = cols;
		term->rows = rows;
	}
	if (sizer == TERMS_SIZE_PIN || sizer == TERMS_SIZE_UNPIN) {
		changed |= term->pinned != pin;
		term->pinned = pin;
	}
	if (!changed)
		return 0;
	terms_store_mark(term);
	terms_host_tell(term->host, id, TERMS_RESIZED, NULL);
	terms_host_rearm(term->host);
	return 0;
}

pid_t
terms_foreground(const struct warden *warden, uint64_t id)
{
	const struct wterm *term = find(warden, id);
	pid_t group = 0;

	if (!term || !term->pty ||
	    ioctl(term->pty->master, TIOCGPGRP, &group) < 0)
		return 0;
	return group > 0 ? group : 0;
}

int
terms_signal(struct warden *warden, uint64_t id, int signal, pid_t *ret_group)
{
	struct wterm *term = find(warden, id);
	int r;

	if (!term)
		return -ENOENT;
	if (signal < 1 || signal > SIGRTMAX)
		return -EINVAL;
	if (!term->pty || !term->spawned)
		return -EPIPE;
	*ret_group = terms_foreground(warden, id);
	if (signal != SIGINT && signal != SIGQUIT && signal != SIGTSTP) {
		r = spawn_signal_group(warden, term->spawn, signal);
		return r == -ESRCH ? -EPIPE : r;
	}
	/* By the terminal itself, as its key would. */
	return ioctl(term->pty->master, TIOCSIG, signal) < 0 ? -errno : 0;
}

int
terms_kill(struct warden *warden, uint64_t id, uint64_t grace_ms)
{
	struct wterm *term = find(warden, id);
	int r;

	if (!term)
		return -ENOENT;
	r = jobs_stop(term->host->core, &term->core, SIGHUP, grace_ms);
	terms_host_rearm(term->host);
	return r;
}

int
terms_rename(struct warden *warden, uint64_t id, const char *name)
{
	struct wterm *term = find(warden, id);
	char *copy = NULL;

	if (!term)
		return -ENOENT;
	if (name && !terms_name_is_valid(name))
		return -EINVAL;
	if (name && terms_name_is_taken(term->host, name, term))
		return -EEXIST;
	copy = name ? strdup(name) : NULL;
	if (name && !copy)
		return -ENOMEM;
	if (name)
		terms_free_name(term->host, name);
	free(term->name);
	term->name = copy;
	terms_store_mark(term);
	return 0;
}
