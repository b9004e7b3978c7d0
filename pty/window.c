/* SPDX-License-Identifier: MIT */

/*
 * The text and the output advance together for as long as plain characters
 * come: such a run is kept as one pair of places.  A run begins where something
 * was left out.  Who makes runs of one character each gets a smaller window.
 */

#include "pty/window.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_MAX   (128u << 10)
#define SLACK	   (WINDOW_BYTES / 2)
#define BLANKS_MAX 80

struct window_run {
	uint64_t at;   /* in the text, counted with what is gone */
	uint64_t from; /* in the output */
};

static uint64_t
text_end(const struct window *w)
{
	return w->gone + w->text.len;
}

static int
begin_run(struct window *w, uint64_t from)
{
	struct window_run *runs;
	size_t room;

	if (w->n_runs > 0) {
		struct window_run *last = &w->runs[w->n_runs - 1];

		if (from - last->from == text_end(w) - last->at)
			return 0;
	}
	if (w->n_runs == w->room) {
		room = w->room > 0 ? 2 * w->room : 64;
		runs = realloc(w->runs, room * sizeof(*runs));
		if (!runs)
			return -ENOMEM;
		w->runs = runs;
		w->room = room;
	}
	w->runs[w->n_runs++] =
		(struct window_run){ .at = text_end(w), .from = from };
	return 0;
}

static int
put(struct window *w, const void *text, size_t len, uint64_t from)
{
	int r = begin_run(w, from);

	if (r < 0)
		return r;
	buf_put(&w->text, text, len);
	return buf_error(&w->text);
}

static bool
is_fresh_line(const struct window *w)
{
	return w->text.len == 0 || w->text.data[w->text.len - 1] == '\n';
}

static int
new_line(struct window *w, uint64_t from)
{
	return is_fresh_line(w) ? 0 : put(w, "\n", 1, from);
}

/* The last character of the line, as long as there is one. */
static void
take_back(struct window *w, size_t count)
{
	for (; count > 0 && !is_fresh_line(w); count--) {
		do
			w->text.len--;
		while (w->text.len > 0 &&
		       (w->text.data[w->text.len] & 0xc0) == 0x80);
	}
	while (w->n_runs > 0 && w->runs[w->n_runs - 1].at >= text_end(w))
		w->n_runs--;
	if (w->same > text_end(w))
		w->same = text_end(w);
}

static int
put_blanks(struct window *w, size_t count, uint64_t from)
{
	char blanks[BLANKS_MAX];

	memset(blanks, ' ', sizeof(blanks));
	return put(w, blanks, count < sizeof(blanks) ? count : sizeof(blanks),
		   from);
}

static int
put_sequence(struct window *w, const struct token *token, uint64_t from)
{
	size_t count = token_count(token);

	if (token->marker)
		return 0;
	switch (token->code) {
	case 'A':
	case 'B':
	case 'E':
	case 'F':
	case 'H':
	case 'd':
	case 'f':
		return new_line(w, from);
	case 'G':
	case '`':
		if (count == 1)
			return new_line(w, from);
		return is_fresh_line(w) ? 0 : put_blanks(w, 1, from);
	case 'C':
	case 'a':
		return put_blanks(w, count, from);
	case 'D':
		take_back(w, count);
		return 0;
	default:
		return 0;
	}
}

static int
put_token(struct window *w, const struct token *token, uint64_t from)
{
	unsigned char c = (unsigned char)token->code;
	int r;

	switch (token->kind) {
	case TOKEN_CHAR:
		r = begin_run(w, from);
		if (r < 0)
			return r;
		text_put(&w->text, token->code);
		return buf_error(&w->text);
	case TOKEN_CONTROL:
		if (c == '\n' || c == '\v' || c == '\f')
			return put(w, "\n", 1, from);
		if (c == '\t')
			return put(w, "\t", 1, from);
		if (c == '\b')
			take_back(w, 1);
		return 0;
	case TOKEN_CSI:
		return put_sequence(w, token, from);
	case TOKEN_ESC:
		if (!token->marker && strchr("DEMc8", (int)token->code))
			return new_line(w, from);
		return 0;
	}
	return 0;
}

/* A carriage return is a newline, unless one follows it. */
static int
put_in_order(struct window *w, const struct token *token, uint64_t from)
{
	int r = 0;

	if (token->kind == TOKEN_CONTROL && token->code == '\r') {
		if (!w->pending)
			w->returned = from;
		w->pending = 1;
		return 0;
	}
	/* Colours and marks move nothing. */
	if (token->kind == TOKEN_CSI || token->kind == TOKEN_ESC)
		return put_token(w, token, from);
	if (w->pending &&
	    !(token->kind == TOKEN_CONTROL && token->code == '\n'))
		r = new_line(w, w->returned);
	w->pending = 0;
	return r < 0 ? r : put_token(w, token, from);
}

/* ---- bounds ---- */

static void
drop(struct window *w, size_t len)
{
	size_t run = 0;

	while (len < w->text.len && (w->text.data[len] & 0xc0) == 0x80)
		len++;
	buf_drop(&w->text, len);
	w->gone += len;
	while (run + 1 < w->n_runs && w->runs[run + 1].at <= w->gone)
		run++;
	if (run > 0) {
		w->n_runs -= run;
		memmove(w->runs, w->runs + run, w->n_runs * sizeof(*w->runs));
	}
}

static void
keep_bounds(struct window *w)
{
	if (w->n_runs > RUNS_MAX)
		drop(w, w->runs[w->n_runs / 2].at - w->gone);
	if (w->text.len > WINDOW_BYTES + SLACK)
		drop(w, w->text.len - WINDOW_BYTES);
}

/* How many bytes from here on are characters of one byte. */
static size_t
plain_run(const struct window *w, const unsigned char *bytes, size_t len)
{
	size_t n = 0;

	if (tokens_pending(&w->tokens) > 0 || w->pending)
		return 0;
	while (n < len && bytes[n] >= 0x20 && bytes[n] < 0x7f)
		n++;
	return n;
}

int
window_feed(struct window *window, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	struct token tokens[TOKENS_A_BYTE];
	int r = 0;

	for (size_t i = 0; i < len && r == 0;) {
		size_t run = plain_run(window, at + i, len - i);
		uint64_t from = window->offset + i;

		if (run > 0) {
			r = put(window, at + i, run, from);
			i += run;
			continue;
		}
		size_t before = tokens_pending(&window->tokens);
		unsigned int n = tokens_put(&window->tokens, at[i], tokens);

		for (unsigned int k = 0; k < n && r == 0; k++)
			r = put_in_order(window, &tokens[k],
					 k == 0 ? from - before : from);
		i++;
	}
	window->offset += len;
	window->text.error = 0;
	keep_bounds(window);
	return r;
}

void
window_skip(struct window *window, uint64_t offset)
{
	window->tokens = (struct tokens){ 0 };
	window->pending = 0;
	window->gone += window->text.len;
	window->text.len = 0;
	window->n_runs = 0;
	window->offset = offset;
}

/* ---- places ---- */

static size_t
run_of(const struct window *w, uint64_t at)
{
	size_t low = 0, high = w->n_runs;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (w->runs[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return low;
}

uint64_t
window_start_of(const struct window *window, size_t at)
{
	uint64_t place = window->gone + at;
	const struct window_run *run;

	if (at >= window->text.len || window->n_runs == 0)
		return window->offset;
	run = &window->runs[run_of(window, place)];
	return run->from + (place - run->at);
}

uint64_t
window_end_of(const struct window *window, size_t at)
{
	uint64_t place = window->gone + at, end;
	size_t run;

	if (at == 0 || window->n_runs == 0)
		return window_start_of(window, at);
	run = run_of(window, place - 1);
	end = window->runs[run].from + (place - window->runs[run].at);
	/* Of a byte that is none of a character, the text has three. */
	if (run + 1 < window->n_runs && end > window->runs[run + 1].from)
		end = window->runs[run + 1].from;
	return end < window->offset ? end : window->offset;
}

void
window_fini(struct window *window)
{
	buf_fini(&window->text);
	free(window->runs);
	window->runs = NULL;
	window->n_runs = 0;
	window->room = 0;
}
