/* SPDX-License-Identifier: MIT */

/*
 * What an agent reads of a terminal, from hostile bytes: text (pty/plain.h) and
 * the window that is searched (pty/window.h, pty/waits.h) are well-formed and
 * the same however the bytes are split; a place in the window is one in the
 * output.  And what it types: names of keys, and pastes, which never
 * end themselves.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "pty/keys.h"
#include "pty/plain.h"
#include "pty/waits.h"
#include "pty/window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_text(const struct buf *text)
{
	for (size_t at = 0; at < text->len;) {
		size_t n = utf8_length(text->data + at, text->len - at);

		must(n > 0);
		at += n;
	}
}

static bool
is_equal(const struct buf *a, const struct buf *b)
{
	return a->len == b->len &&
	       (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static void
make_plain(const uint8_t *data, size_t size, unsigned int cols, size_t piece,
	   struct buf *out)
{
	_cleanup_(plain_freep) struct plain *plain = NULL;

	must(plain_new(cols, &plain) == 0);
	for (size_t at = 0; at < size; at += piece) {
		size_t len = size - at < piece ? size - at : piece;

		plain_feed(plain, data + at, len, out);
		must(plain_unfinished(plain) <= at + len);
	}
	plain_end(plain, out);
	must(buf_error(out) == 0);
	check_text(out);
}

static void
check_plain(const uint8_t *data, size_t size, unsigned int cols, size_t piece)
{
	_cleanup_(buf_fini) struct buf whole = { 0 }, parts = { 0 };

	make_plain(data, size, cols, size + 1, &whole);
	make_plain(data, size, cols, piece, &parts);
	must(is_equal(&whole, &parts));
}

static void
check_window(const uint8_t *data, size_t size, size_t piece)
{
	_cleanup_(window_fini) struct window window = { .offset = 7 };
	_cleanup_(window_fini) struct window parts = { .offset = 7 };

	must(window_feed(&window, data, size) == 0);
	for (size_t at = 0; at < size; at += piece)
		must(window_feed(&parts, data + at,
				 size - at < piece ? size - at : piece) == 0);
	check_text(&window.text);
	must(is_equal(&window.text, &parts.text));
	must(window.offset == 7 + size);
	for (size_t at = 0; at <= window.text.len; at++) {
		uint64_t end = window_end_of(&window, at);

		must(end >= 7 && end <= 7 + size);
		must(window_start_of(&window, at) ==
		     window_start_of(&parts, at));
	}
}

static bool
is_spent(void *data)
{
	return ++*(unsigned int *)data > 64;
}

static void
check_waits(const char *pattern, const uint8_t *data, size_t size, size_t piece)
{
	const struct wait_condition conditions[] = {
		{ WAIT_FOR_PATTERN, pattern, 0 },
		{ WAIT_FOR_PATTERN, "(a+)+$|word\\d+", 0 },
		{ WAIT_FOR_BYTES, NULL, 4000 },
	};
	_cleanup_(waits_freep) struct waits *waits = NULL;
	unsigned int spent = 0;
	const struct waits_start start = {
		.conditions = conditions,
		.n_conditions = 3,
		.spent = is_spent,
		.data = &spent,
	};
	struct errmsg why;
	int r = 0;

	if (waits_new(&start, &waits, &why) < 0)
		return;
	for (size_t at = 0; at < size && r == 0; at += piece) {
		spent = 0;
		r = waits_feed(waits, data + at,
			       size - at < piece ? size - at : piece, at);
	}
	if (r == 0)
		r = waits_exit(waits);
	if (r > 0)
		must(waits_result(waits)->to <= size &&
		     waits_result(waits)->from <= waits_result(waits)->to);
	must(waits_resume(waits) <= size);
}

static void
check_keys(const char *text)
{
	_cleanup_(buf_fini) struct buf out = { 0 }, paste = { 0 };
	const struct keys_modes modes = { .app_cursor = true };
	struct errmsg why;

	(void)keys_encode(text, &modes, &out, &why);
	keys_paste(text, strlen(text), true, &paste);
	must(buf_error(&paste) == 0);
	/* The one at the very end alone. */
	must(memmem(paste.data, paste.len - 1, "\033[201~", 6) == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *text = NULL;
	unsigned int cols;
	size_t piece;

	if (size < 3)
		return 0;
	cols = data[0] % 90;
	piece = data[1] % 31 + 1u;
	data += 2;
	size -= 2;
	text = strndup((const char *)data, size);
	must(text != NULL);
	check_plain(data, size, cols, piece);
	check_window(data, size, piece);
	check_keys(text);
	text[strcspn(text, "\n")] = '\0';
	check_waits(text, data, size, piece);
	return 0;
}
