/* SPDX-License-Identifier: MIT */

/*
 * The model of a terminal reads the log like any other reader, a slice at each
 * turn of the loop, so that it keeps up where there is a pause and holds nobody
 * up where there is none.  It may be SLACK behind; beyond that the terminal is
 * not read until it has caught up a little.
 *
 *	0 ───── saved ───────────── fed ───────── end of the log
 *	        `screen` on disk    the model
 *
 * What it says goes into the terminal's own input, ahead of all that waits:
 * nobody else answers, attached terminals are not shown the question (`cuts`),
 * and who reads old output, after a restart, is muted.
 *
 * A size is not in the log: after a change of it the model is saved at once, so
 * that nobody wraps the rest by an older one.
 */

#include "warden/terms_priv.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"

#define SLICE	   (64u << 10)
#define SLACK	   (4u << 20)
#define CATCH_UP   ((size_t)8 << 20)
#define SAVE_BYTES (4u << 20)
#define SAVE_NS	   5000000000LL /* of silence */
#define RESIZE_NS  200000000LL
#define CUTS_MAX   4096
/* Who is further behind repaints anyhow. */
#define CUTS_BYTES (1u << 20)

/* ---- what the model says ---- */

static void
on_reply(void *data, const void *bytes, size_t len)
{
	struct wterm *term = data;

	if (!term->screen.silent)
		(void)term_pty_write(term, bytes, len, true);
}

static void
forget_cuts(struct term_screen *screen, size_t n)
{
	if (n == 0)
		return;
	screen->cuts_from = screen->cuts[n - 1].to;
	screen->n_cuts -= n;
	memmove(screen->cuts, screen->cuts + n,
		screen->n_cuts * sizeof(*screen->cuts));
}

static void
on_cut(void *data, uint64_t from, uint64_t to, enum vt_cut why)
{
	struct term_screen *screen = &((struct wterm *)data)->screen;
	size_t old = 0;

	(void)why;
	while (old < screen->n_cuts && screen->cuts[old].to + CUTS_BYTES < from)
		old++;
	if (screen->n_cuts == CUTS_MAX && old < CUTS_MAX / 2)
		old = CUTS_MAX / 2;
	forget_cuts(screen, old);
	if (screen->n_cuts == screen->cuts_room) {
		size_t room = screen->cuts_room ? screen->cuts_room * 2 : 8;
		struct cut *cuts = realloc(screen->cuts, room * sizeof(*cuts));

		if (!cuts) {
			screen->cuts_from = to;
			return;
		}
		screen->cuts = cuts;
		screen->cuts_room = room;
	}
	screen->cuts[screen->n_cuts++] = (struct cut){ from, to };
}

static void
on_event(void *data, const struct vt_event *event)
{
	struct wterm *term = data;
	char *title;

	if (event->kind == VT_EVENT_TITLE) {
		title = strndup(event->text, event->len);
		if (title) {
			free(term->title);
			term->title = title;
			terms_store_mark(term);
		}
	}
	term_shell_note(&term->shell, event);
	terms_host_tell(term->host, term->core.id, TERMS_MODEL, event);
}

static const struct vt_ops ops = {
	.reply = on_reply,
	.cut = on_cut,
	.event = on_event,
};

/* ---- feeding ---- */

int
term_screen_open(struct wterm *term)
{
	return vt_new(term->cols, term->rows, NULL, &ops, term,
		      &term->screen.vt);
}

/*
 * Positions go on as if there had been something: what was cut short ends, and
 * then nothing is shown.
 */
static void
feed_gap(struct vt *vt, uint64_t len)
{
	static const unsigned char nothing[4096], cancel[] = { 0x18 };

	if (len > 0)
		vt_feed(vt, cancel, 1);
	for (uint64_t left = len - 1; len > 0 && left > 0;) {
		size_t n = left < sizeof(nothing) ? left : sizeof(nothing);

		vt_feed(vt, nothing, n);
		left -= n;
	}
}

bool
term_screen_feed(struct wterm *term, size_t max)
{
	static unsigned char chunk[SLICE];
	struct term_screen *screen = &term->screen;
	struct segments_view view;
	uint64_t fed;

	if (!screen->vt || !term->raw)
		return false;
	fed = vt_offset(screen->vt);
	while (max > 0 && fed < segments_end(term->raw)) {
		if (segments_read(term->raw, &screen->file, fed, chunk,
				  max < SLICE ? max : SLICE, &view) < 0 ||
		    view.next == fed)
			break;
		if (view.reason != SEGMENTS_KEPT)
			feed_gap(screen->vt, view.lost_to - view.lost_from);
		vt_feed(screen->vt, chunk, view.len);
		fed = vt_offset(screen->vt);
		max -= view.len < max ? view.len : max;
	}
	screen->fed_ns = clock_mono_ns();
	/* The model has no clock: from here it counts an update that is open. */
	vt_tick(screen->vt, (uint64_t)(screen->fed_ns / 1000000));
	if (fed >= screen->saved + SAVE_BYTES)
		term_screen_save(term);
	return fed < segments_end(term->raw);
}

static void
set_behind(struct wterm *term, bool behind)
{
	struct terms_host *host = term->host;

	if (behind == term->screen.feeding)
		return;
	term->screen.feeding = behind;
	if (behind) {
		TAILQ_INSERT_TAIL(&host->behind, term, behind);
		host->n_behind++;
	} else {
		TAILQ_REMOVE(&host->behind, term, behind);
		host->n_behind--;
	}
	if (host->closed)
		return;
	if (host->n_behind == 0)
		(void)uv_idle_stop(&host->idle);
	else
		(void)uv_idle_start(&host->idle, term_screen_on_idle);
}

void
term_screen_grew(struct wterm *term)
{
	uint64_t id = term->core.id;
	struct terms_host *host = term->host;

	set_behind(term, true);
	if (term->screen.vt &&
	    segments_end(term->raw) > vt_offset(term->screen.vt) + SLACK)
		(void)term_screen_feed(term, SLACK / 4);
	terms_host_tell(host, id, TERMS_GREW, NULL);
}

void
term_screen_on_idle(uv_idle_t *idle)
{
	struct terms_host *host = idle->data;
	struct wterm *term;

	/* Whoever is told may change the list: always from its head. */
	for (size_t n = host->n_behind; n > 0; n--) {
		term = TAILQ_FIRST(&host->behind);
		if (!term)
			break;
		set_behind(term, false);
		if (term_screen_feed(term, SLICE))
			set_behind(term, true);
		terms_host_tell(host, term->core.id, TERMS_FED, NULL);
	}
	if (host->n_behind == 0)
		terms_host_rearm(host);
}

void
term_screen_catch_up(struct wterm *term)
{
	if (term->screen.feeding && !term_screen_feed(term, CATCH_UP))
		set_behind(term, false);
}

int
term_screen_resize(struct wterm *term, unsigned int cols, unsigned int rows)
{
	int r;

	if (!term->screen.vt)
		return 0;
	/* What was written before is of the old size. */
	term_screen_catch_up(term);
	r = vt_resize(term->screen.vt, cols, rows);
	if (r == 0) {
		term->screen.resized = true;
		term->screen.fed_ns = clock_mono_ns();
	}
	return r;
}

/* ---- checkpoints ---- */

/* A disk that is full keeps the one before: the rest is in the log. */
static int
write_file(int dir, const struct buf *bytes)
{
	_cleanup_(closep) int fd = openat(
		dir, "screen.new",
		O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, bytes->data, bytes->len);
	if (r == 0 && renameat(dir, "screen.new", dir, "screen") < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, "screen.new", 0);
	return r;
}

void
term_screen_save(struct wterm *term)
{
	struct term_screen *screen = &term->screen;
	_cleanup_(buf_fini) struct buf bytes = { 0 };

	if (!screen->vt || term->dir < 0)
		return;
	vt_save(screen->vt, &bytes);
	if (buf_error(&bytes) == 0)
		(void)write_file(term->dir, &bytes);
	screen->saved = vt_offset(screen->vt);
	screen->saved_ns = clock_mono_ns();
	screen->resized = false;
}

static bool
is_unsaved(const struct term_screen *screen)
{
	return screen->vt &&
	       (screen->resized || vt_offset(screen->vt) != screen->saved);
}

int64_t
term_screen_deadline(const struct wterm *term)
{
	const struct term_screen *screen = &term->screen;
	int64_t at = JOBS_NEVER;

	if (is_unsaved(screen) && !screen->feeding)
		at = screen->fed_ns + (screen->resized ? RESIZE_NS : SAVE_NS);
	if (screen->vt && vt_in_sync(screen->vt)) {
		int64_t end = screen->fed_ns + VT_SYNC_MS * 1000000LL;

		at = end < at ? end : at;
	}
	return at;
}

void
term_screen_tick(struct wterm *term)
{
	struct term_screen *screen = &term->screen;
	int64_t now = clock_mono_ns();

	if (screen->vt && vt_in_sync(screen->vt) &&
	    screen->fed_ns + VT_SYNC_MS * 1000000LL <= now) {
		vt_tick(screen->vt, (uint64_t)(now / 1000000));
		terms_host_tell(term->host, term->core.id, TERMS_FED, NULL);
	}
	if (is_unsaved(screen) && !screen->feeding &&
	    screen->fed_ns + (screen->resized ? RESIZE_NS : SAVE_NS) <= now)
		term_screen_save(term);
}

void
term_screen_close(struct wterm *term)
{
	struct term_screen *screen = &term->screen;

	/* Whoever asked has gone; nothing is to be answered any more. */
	screen->silent = true;
	while (term_screen_feed(term, SLACK))
		;
	set_behind(term, false);
	if (is_unsaved(screen))
		term_screen_save(term);
	terms_host_tell(term->host, term->core.id, TERMS_FED, NULL);
	screen->vt = vt_free(screen->vt);
	segments_file_fini(&screen->file);
	free(screen->cuts);
	*screen = (struct term_screen){ .cuts_from = UINT64_MAX };
}

/* ---- for others ---- */

/* Of an ended one: the last that was looked at is kept. */
static struct vt *
past(struct terms_host *host, const struct wterm *term)
{
	_cleanup_(freep) char *path = NULL;
	_cleanup_(closep) int dir = -1;
	struct store_term row;
	struct vt *vt = NULL;

	if (host->past && host->past_id == term->core.id)
		return host->past;
	path = terms_dir_path(host->warden->places.state,
			      host->warden->opt.world, term->core.id);
	if (path)
		dir = open(path,
			   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	wterm_row(term, &row);
	if (dir < 0 || terms_load_screen(dir, &row, &vt) < 0)
		return NULL;
	host->past = vt_free(host->past);
	host->past = vt;
	host->past_id = term->core.id;
	return vt;
}

struct vt *
terms_vt(struct warden *warden, uint64_t id)
{
	const struct wterm *term = terms_host_find(warden->terms, id);

	if (!term)
		return NULL;
	return term->screen.vt ? term->screen.vt : past(warden->terms, term);
}

int
terms_catch_up(struct warden *warden, uint64_t id)
{
	struct wterm *term = terms_host_find(warden->terms, id);

	if (!term)
		return -ENOENT;
	/* What its program has written by now belongs to it, too. */
	term_pty_drain(term);
	term_screen_catch_up(term);
	return 0;
}

uint64_t
terms_fed(const struct warden *warden, uint64_t id)
{
	const struct wterm *term = terms_host_find(warden->terms, id);

	if (!term)
		return 0;
	return term->screen.vt ? vt_offset(term->screen.vt) : term->bytes;
}

bool
terms_next_cut(const struct warden *warden, uint64_t id, uint64_t offset,
	       uint64_t *ret_from, uint64_t *ret_to)
{
	const struct wterm *term = terms_host_find(warden->terms, id);
	size_t low = 0, high = term ? term->screen.n_cuts : 0;
	const struct cut *cuts = term ? term->screen.cuts : NULL;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (cuts[mid].to <= offset)
			low = mid + 1;
		else
			high = mid;
	}
	if (!term || low == term->screen.n_cuts)
		return false;
	*ret_from = cuts[low].from;
	*ret_to = cuts[low].to;
	return true;
}

uint64_t
terms_cuts_from(const struct warden *warden, uint64_t id)
{
	const struct wterm *term = terms_host_find(warden->terms, id);

	return term ? term->screen.cuts_from : UINT64_MAX;
}
