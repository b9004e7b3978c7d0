/* SPDX-License-Identifier: MIT */

#include "warden/terms_until.h"

#include <time.h>

#include "base/clock.h"
#include "warden/terms_priv.h"

#define CHUNK	   (64u << 10)
#define LOOK_BYTES (512u << 10) /* before others have their turn */
#define SEARCH_NS  20000000LL	/* of the processor, for one search */

static uint64_t
now_ms(void)
{
	return (uint64_t)(clock_mono_ns() / 1000000);
}

/* Our own work: on a busy machine others take their time meanwhile. */
static int64_t
cpu_ns(void)
{
	struct timespec used;

	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used) < 0)
		return clock_mono_ns();
	return used.tv_sec * 1000000000LL + used.tv_nsec;
}

/* To make text of what came is no search. */
static void
begin_search(void *data)
{
	struct until *until = data;

	until->began_ns = cpu_ns();
}

static bool
is_spent(void *data)
{
	const struct until *until = data;

	return cpu_ns() - until->began_ns > SEARCH_NS;
}

int
until_init(struct until *until, struct warden *warden, uint64_t id,
	   const struct until_start *start, struct errmsg *why)
{
	const struct wterm *term = terms_host_find(warden->terms, id);
	const struct waits_start begin = {
		.conditions = start->conditions,
		.n_conditions = start->n,
		.offset = start->offset,
		.now_ms = now_ms(),
		.begin = begin_search,
		.spent = is_spent,
		.data = until,
	};

	*until = (struct until){ .warden = warden,
				 .id = id,
				 .prompt_at = UINT64_MAX };
	if (!term)
		return -ENOENT;
	if (start->now && term_shell_is_idle(&term->shell))
		until->prompt_at = start->offset;
	else if (term_shell_at_prompt(&term->shell) &&
		 term->shell.from >= start->offset)
		until->prompt_at = term->shell.to;
	return waits_new(&begin, &until->waits, why);
}

void
until_fini(struct until *until)
{
	until->waits = waits_free(until->waits);
	segments_file_fini(&until->file);
}

void
until_note(struct until *until, const struct vt_event *event)
{
	if (event->kind == VT_EVENT_MARK && event->trusted &&
	    event->mark == 'B' && until->prompt_at == UINT64_MAX &&
	    event->to >= waits_offset(until->waits))
		until->prompt_at = event->to;
}

/* As far as there is something to look at; *ret_last: and no further, ever. */
static int
find_end(const struct until *until, uint64_t *ret_end, bool *ret_last)
{
	const struct wterm *term =
		terms_host_find(until->warden->terms, until->id);
	int r = terms_end(until->warden, until->id, ret_end, NULL);

	if (r < 0)
		return r;
	*ret_last = terms_is_told(until->warden, until->id);
	if (term && term->screen.vt)
		*ret_end = vt_offset(term->screen.vt);
	return 0;
}

static int
take_some(struct until *until, uint64_t to, size_t *ret_taken)
{
	static unsigned char chunk[CHUNK];
	struct segments_view view = { 0 };
	uint64_t offset = waits_offset(until->waits);
	size_t size = to - offset < CHUNK ? (size_t)(to - offset) : CHUNK;
	const struct terms_span span = { .offset = offset,
					 .buf = chunk,
					 .size = size };
	int r = terms_read(until->warden, until->id, &until->file, &span,
			   &view);

	if (r < 0)
		return r;
	if (view.reason != SEGMENTS_KEPT)
		r = waits_skip(until->waits, view.lost_to, now_ms());
	if (r == 0)
		r = waits_feed(until->waits, chunk, view.len, now_ms());
	*ret_taken = view.len;
	/* What cannot be read never will. */
	if (r == 0 && view.next == offset)
		r = waits_skip(until->waits, to, now_ms());
	return r;
}

/* Up to `end`, with the prompt at its place; 1: it happened. */
static int
take(struct until *until, uint64_t end)
{
	size_t taken = 0, some = 0;
	int r = 0;

	while (r == 0 && taken < LOOK_BYTES) {
		uint64_t at = waits_offset(until->waits);
		uint64_t to = until->prompt_at < end ? until->prompt_at : end;

		if (at >= until->prompt_at) {
			until->prompt_at = UINT64_MAX;
			r = waits_prompt(until->waits);
			continue;
		}
		if (at >= to)
			break;
		r = take_some(until, to, &some);
		taken += some;
	}
	return r;
}

int
until_look(struct until *until, uint64_t *ret_due_ms)
{
	uint64_t end = 0;
	bool last = false;
	int r = find_end(until, &end, &last);

	*ret_due_ms = UINT64_MAX;
	if (r < 0)
		return r;
	r = take(until, end);
	if (r == 0 && waits_offset(until->waits) < end)
		return UNTIL_BEHIND;
	if (r == 0)
		r = waits_tick(until->waits, now_ms());
	if (r == 0 && last)
		r = waits_exit(until->waits);
	if (r != 0)
		return r < 0 ? r : UNTIL_HAPPENED;
	*ret_due_ms = waits_due(until->waits);
	return last ? UNTIL_ENDED : UNTIL_WAITS;
}

uint64_t
until_resume(const struct until *until)
{
	return waits_resume(until->waits);
}
