/* SPDX-License-Identifier: MIT */

/*
 * Each pattern remembers the first place of the text where a match may still
 * begin (`from`): no place is tried twice, unless what stood there could have
 * become a match with more text ("partial" in PCRE2's words).
 *
 * What a search costs is bounded three times: PCRE2 counts its steps at one
 * place; the places are tried in slices, after each of which the owner's clock
 * is asked, and a slice is twice the one before, so that it cannot be late by
 * more than what was spent; and the memory for going back has a limit.
 */

#include "pty/waits.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <pcre2.h>
#include <string.h>

#include "pty/window.h"

#define MATCH_STEPS 400000u
#define MATCH_KIB   (16u << 10)
/* How far back a line that was edited is searched again. */
#define LINE_BACK 4096

struct pattern {
	pcre2_code *code;
	pcre2_match_data *data;
	uint64_t from; /* in the text, with what is gone */
	bool hungry;   /* more text may make it match */
};

struct waits {
	struct wait_condition conditions[WAITS_MAX];
	struct pattern patterns[WAITS_MAX];
	size_t n;
	pcre2_match_context *context;
	struct window window;
	uint64_t offset, started_ms, fed_ms;
	void (*begin)(void *data);
	bool (*spent)(void *data);
	void *data;
	bool happened;
	struct waits_result result;
};

/* ---- patterns ---- */

/* The length of "\n", written as an escape or as itself, at `at`; or 0. */
static size_t
newline_at(const char *at)
{
	if (*at == '\n')
		return 1;
	return at[0] == '\\' && at[1] == 'n' ? 2 : 0;
}

/*
 * A carriage return of the pattern is a newline; before one, and with a
 * quantifier in between, it is nothing: "\r?\n".  \Q…\E stays as it is.
 */
static int
mend_line_ends(const char *pattern, struct buf *out)
{
	bool quoted = false;

	for (const char *at = pattern; *at;) {
		size_t len = *at == '\r' ? 1 : 0;

		if (*at == '\\' && at[1] == (quoted ? 'E' : 'Q'))
			quoted = !quoted;
		else if (!quoted && at[0] == '\\' && at[1] == 'r')
			len = 2;
		if (len > 0) {
			at += len;
			if (newline_at(at) == 0 &&
			    !(*at && strchr("?*+", *at) && newline_at(at + 1)))
				buf_puts(out, "\\n");
			else if (newline_at(at) == 0)
				at++;
			continue;
		}
		len = !quoted && *at == '\\' && at[1] ? 2 : 1;
		buf_put(out, at, len);
		at += len;
	}
	return buf_error(out);
}

static int
compile(const char *text, struct pattern *ret, struct errmsg *why)
{
	static const uint32_t options = PCRE2_UTF | PCRE2_MULTILINE |
					PCRE2_NEVER_BACKSLASH_C |
					PCRE2_USE_OFFSET_LIMIT;
	_cleanup_(buf_fini) struct buf mended = { 0 };
	pcre2_compile_context *context;
	PCRE2_UCHAR said[128] = "";
	PCRE2_SIZE at;
	int error;

	if (!*text || strlen(text) > WAITS_PATTERN)
		return errmsg_set(why, -EINVAL, "a pattern has 1 to %d bytes",
				  WAITS_PATTERN);
	context = pcre2_compile_context_create(NULL);
	if (!context || mend_line_ends(text, &mended) < 0) {
		pcre2_compile_context_free(context);
		return -ENOMEM;
	}
	(void)pcre2_set_newline(context, PCRE2_NEWLINE_LF);
	(void)pcre2_set_bsr(context, PCRE2_BSR_ANYCRLF);
	ret->code = pcre2_compile(mended.data, mended.len, options, &error, &at,
				  context);
	pcre2_compile_context_free(context);
	if (!ret->code && error == PCRE2_ERROR_HEAP_FAILED)
		return -ENOMEM;
	if (!ret->code) {
		(void)pcre2_get_error_message(error, said, sizeof(said));
		return errmsg_set(why, -EINVAL, "pattern '%.200s': %s, at %zu",
				  text, (const char *)said, (size_t)at);
	}
	ret->data = pcre2_match_data_create_from_pattern(ret->code, NULL);
	return ret->data ? 0 : -ENOMEM;
}

int
waits_new(const struct waits_start *start, struct waits **ret_waits,
	  struct errmsg *why)
{
	_cleanup_(waits_freep) struct waits *w = NULL;
	int r;

	if (start->n_conditions > WAITS_MAX)
		return errmsg_set(why, -E2BIG, "more than %d conditions",
				  WAITS_MAX);
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->window.offset = start->offset;
	w->offset = start->offset;
	w->started_ms = start->now_ms;
	w->fed_ms = start->now_ms;
	w->begin = start->begin;
	w->spent = start->spent;
	w->data = start->data;
	w->context = pcre2_match_context_create(NULL);
	if (!w->context)
		return -ENOMEM;
	(void)pcre2_set_match_limit(w->context, MATCH_STEPS);
	(void)pcre2_set_heap_limit(w->context, MATCH_KIB);
	for (w->n = 0; w->n < start->n_conditions; w->n++) {
		w->conditions[w->n] = start->conditions[w->n];
		if (w->conditions[w->n].what != WAIT_FOR_PATTERN)
			continue;
		r = compile(start->conditions[w->n].pattern, &w->patterns[w->n],
			    why);
		if (r < 0)
			return r;
		w->conditions[w->n].pattern = NULL;
	}
	*ret_waits = take_ptr(&w);
	return 0;
}

struct waits *
waits_free(struct waits *waits)
{
	if (!waits)
		return NULL;
	for (size_t i = 0; i < WAITS_MAX; i++) {
		pcre2_match_data_free(waits->patterns[i].data);
		pcre2_code_free(waits->patterns[i].code);
	}
	pcre2_match_context_free(waits->context);
	window_fini(&waits->window);
	buf_fini(&waits->result.text);
	strv_fini(&waits->result.groups);
	free(waits);
	return NULL;
}

/* ---- searching ---- */

static size_t
next_char(const struct window *window, size_t at)
{
	do
		at++;
	while (at < window->text.len && (window->text.data[at] & 0xc0) == 0x80);
	return at;
}

/* Whether there is a match that begins in [at, last]. */
static int
match_slice(struct waits *w, struct pattern *p, size_t at, size_t last,
	    uint32_t options)
{
	const struct buf *text = &w->window.text;
	int r;

	(void)pcre2_set_offset_limit(w->context, last);
	r = pcre2_match(p->code, text->data ? text->data : (PCRE2_SPTR) "",
			text->len, at,
			options | PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, p->data,
			w->context);
	if (r >= 0)
		return 1;
	if (r == PCRE2_ERROR_NOMATCH)
		return 0;
	if (r == PCRE2_ERROR_PARTIAL)
		return -EAGAIN;
	return r == PCRE2_ERROR_NOMEMORY ? -ENOMEM : -ELOOP;
}

/*
 * 1: there is a match; 0: none so far.  With `more`, text may follow: what it
 * could change is left for later.
 */
static int
search(struct waits *w, struct pattern *p, bool more)
{
	struct window *window = &w->window;
	size_t at =
		p->from > window->gone ? (size_t)(p->from - window->gone) : 0;
	size_t slice = 1;
	int r = 0;

	if (w->begin)
		w->begin(w->data);
	while (at <= window->text.len) {
		size_t left = window->text.len - at;
		size_t last = slice < left ? at + slice : window->text.len;

		r = match_slice(w, p, at, last, more ? PCRE2_PARTIAL_HARD : 0);
		if (r != 0)
			break;
		at = next_char(window, last);
		slice *= 2;
		if (at <= window->text.len && w->spent && w->spent(w->data))
			return -ELOOP;
	}
	/* At rest nothing is given up: more text may come nevertheless. */
	p->hungry = more && r == -EAGAIN;
	if (p->hungry)
		p->from = window->gone + pcre2_get_ovector_pointer(p->data)[0];
	else if (more && r == 0)
		p->from = window->gone + window->text.len;
	return r == -EAGAIN ? 0 : r;
}

/*
 * A match that may grow hides those behind it; one of these that is complete
 * counts, if it does not reach the end of the text.
 */
static int
search_behind(struct waits *w, struct pattern *p)
{
	int r = search(w, p, false);

	p->hungry = true;
	/* It was an attempt: at rest it will be told. */
	if (r == -ELOOP)
		return 0;
	if (r > 0 &&
	    pcre2_get_ovector_pointer(p->data)[1] >= w->window.text.len)
		return 0;
	return r;
}

static int
copy_match(struct waits *w, const struct pattern *p)
{
	const PCRE2_SIZE *at = pcre2_get_ovector_pointer(p->data);
	uint32_t count = pcre2_get_ovector_count(p->data);
	struct waits_result *result = &w->result;
	const unsigned char *text = w->window.text.data;

	for (size_t i = 0; i < count && i <= WAITS_GROUPS_MAX; i++) {
		size_t from = at[2 * i], to = at[2 * i + 1], len;

		/* \K can make an end come before its beginning. */
		if (from == PCRE2_UNSET || to < from)
			from = to = 0;
		len = to - from < WAITS_TEXT_MAX ? to - from : WAITS_TEXT_MAX;
		while (len > 0 && len < to - from &&
		       (text[from + len] & 0xc0) == 0x80)
			len--;
		if (i == 0)
			buf_put(&result->text, text + from, len);
		else if (strv_addf(&result->groups, "%.*s", (int)len,
				   (const char *)text + from) < 0)
			return -ENOMEM;
	}
	return buf_error(&result->text);
}

static void
happen(struct waits *w, size_t index, uint64_t from, uint64_t to)
{
	w->happened = true;
	w->result.index = index;
	w->result.from = from;
	w->result.to = to;
}

static int
try_pattern(struct waits *w, struct pattern *p, bool more)
{
	int r = search(w, p, more);

	return r == 0 && more && p->hungry ? search_behind(w, p) : r;
}

/* Of the patterns, and the count of bytes, the one that came first. */
static int
try_all(struct waits *w, bool more)
{
	uint64_t best = UINT64_MAX, end;
	const struct pattern *found = NULL;
	const PCRE2_SIZE *at;
	int r;

	for (size_t i = 0; i < w->n; i++) {
		struct pattern *p = &w->patterns[i];

		if (w->conditions[i].what == WAIT_FOR_BYTES) {
			end = w->offset + w->conditions[i].amount;
			if (w->conditions[i].amount <=
				    w->window.offset - w->offset &&
			    end < best) {
				best = end;
				found = NULL;
				happen(w, i, end, end);
			}
			continue;
		}
		if (!p->code || (!more && !p->hungry))
			continue;
		r = try_pattern(w, p, more);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		at = pcre2_get_ovector_pointer(p->data);
		end = window_end_of(&w->window, at[1]);
		if (end >= best)
			continue;
		best = end;
		found = p;
		happen(w, i, window_start_of(&w->window, at[0]), end);
	}
	if (!w->happened)
		return 0;
	r = found ? copy_match(w, found) : 0;
	return r < 0 ? r : 1;
}

/* Backspaces changed what was searched already: its line is, again. */
static void
search_again(struct waits *w)
{
	const struct window *window = &w->window;
	size_t at, back;

	if (window->same >= window->gone + window->text.len + 1)
		return;
	at = window->same > window->gone ? (size_t)(window->same - window->gone)
					 : 0;
	for (back = 0; back < LINE_BACK && at > 0; back++, at--)
		if (window->text.data[at - 1] == '\n')
			break;
	while (at > 0 && at < window->text.len &&
	       (window->text.data[at] & 0xc0) == 0x80)
		at--;
	for (size_t i = 0; i < w->n; i++)
		if (w->patterns[i].from > window->gone + at)
			w->patterns[i].from = window->gone + at;
}

static int
feed_some(struct waits *w, const void *bytes, size_t len)
{
	struct window *window = &w->window;
	uint64_t end = window->gone + window->text.len;
	int r;

	window->same = end;
	r = window_feed(window, bytes, len);
	if (r < 0)
		return r;
	if (window->same < end)
		search_again(w);
	return try_all(w, true);
}

int
waits_feed(struct waits *waits, const void *bytes, size_t len, uint64_t now_ms)
{
	const unsigned char *at = bytes;
	int r = waits->happened ? 1 : 0;

	if (len > 0)
		waits->fed_ms = now_ms;
	while (r == 0 && len > 0) {
		size_t some = len < WINDOW_FEED_MAX ? len : WINDOW_FEED_MAX;

		r = feed_some(waits, at, some);
		at += some;
		len -= some;
	}
	return r;
}

/* What is there now is all there will be for the patterns. */
static int
settle(struct waits *w)
{
	return w->happened ? 1 : try_all(w, false);
}

int
waits_skip(struct waits *waits, uint64_t offset, uint64_t now_ms)
{
	int r = settle(waits);

	if (r != 0)
		return r;
	waits->fed_ms = now_ms;
	window_skip(&waits->window, offset);
	for (size_t i = 0; i < waits->n; i++) {
		waits->patterns[i].from = waits->window.gone;
		waits->patterns[i].hungry = false;
	}
	return try_all(waits, true);
}

static int
happen_at_end(struct waits *w, enum wait_for what)
{
	int r = settle(w);

	for (size_t i = 0; i < w->n && r == 0; i++) {
		if (w->conditions[i].what != what)
			continue;
		happen(w, i, w->window.offset, w->window.offset);
		r = 1;
	}
	return r;
}

int
waits_prompt(struct waits *waits)
{
	return happen_at_end(waits, WAIT_FOR_PROMPT);
}

int
waits_exit(struct waits *waits)
{
	return happen_at_end(waits, WAIT_FOR_EXIT);
}

/* ---- time ---- */

static bool
is_hungry(const struct waits *w)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->patterns[i].hungry)
			return true;
	return false;
}

static uint64_t
idle_due(const struct waits *w, size_t i)
{
	if (w->conditions[i].what != WAIT_FOR_IDLE ||
	    w->conditions[i].amount > UINT64_MAX - w->fed_ms)
		return UINT64_MAX;
	return w->fed_ms + w->conditions[i].amount;
}

int
waits_tick(struct waits *waits, uint64_t now_ms)
{
	int r = waits->happened ? 1 : 0;

	if (r == 0 && is_hungry(waits) &&
	    now_ms >= waits->fed_ms + WAITS_SETTLE_MS)
		r = settle(waits);
	for (size_t i = 0; i < waits->n && r == 0; i++) {
		if (now_ms < idle_due(waits, i))
			continue;
		happen(waits, i, waits->window.offset, waits->window.offset);
		r = 1;
	}
	return r;
}

uint64_t
waits_due(const struct waits *waits)
{
	uint64_t due = UINT64_MAX;

	if (waits->happened)
		return due;
	if (is_hungry(waits))
		due = waits->fed_ms + WAITS_SETTLE_MS;
	for (size_t i = 0; i < waits->n; i++)
		if (idle_due(waits, i) < due)
			due = idle_due(waits, i);
	return due;
}

uint64_t
waits_offset(const struct waits *waits)
{
	return waits->window.offset;
}

uint64_t
waits_resume(const struct waits *waits)
{
	const struct window *window = &waits->window;
	uint64_t resume = window->offset, at;

	for (size_t i = 0; i < waits->n; i++) {
		at = waits->patterns[i].from;
		if (!waits->patterns[i].code || at < window->gone)
			continue;
		at = window_start_of(window, (size_t)(at - window->gone));
		if (at < resume)
			resume = at;
	}
	return resume;
}

const struct waits_result *
waits_result(const struct waits *waits)
{
	return &waits->result;
}
