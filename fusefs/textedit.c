/* SPDX-License-Identifier: MIT */

/*
 * The search runs over a copy of the text in which each CRLF is LF (the text
 * itself, when there is none), with memmem(3), whose time is linear whatever
 * the texts are.  A cursor walks the text beside the copy, so that a place in
 * the one is known in the other.
 */

#include "fusefs/textedit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

/* A text, and the same with LF for CRLF. */
struct plain {
	const char *text; /* borrowed */
	size_t len;
	char *own; /* NULL: it is the text itself */
	const char *lf;
	size_t lf_len;
};

/* The same place in both. */
struct cursor {
	size_t raw, lf;
};

static bool
is_crlf(const char *text, size_t len, size_t at)
{
	return at + 1 < len && text[at] == '\r' && text[at + 1] == '\n';
}

static void
plain_fini(struct plain *plain)
{
	free(plain->own);
}

static int
plain_init(struct plain *plain, const char *text, size_t len)
{
	size_t n = 0;

	*plain = (struct plain){
		.text = text, .len = len, .lf = text, .lf_len = len
	};
	if (len == 0 || !memmem(text, len, "\r\n", 2))
		return 0;
	plain->own = malloc(len);
	if (!plain->own)
		return -ENOMEM;
	for (size_t i = 0; i < len; i++)
		if (!is_crlf(text, len, i))
			plain->own[n++] = text[i];
	plain->lf = plain->own;
	plain->lf_len = n;
	return 0;
}

/* To a place in the copy; one before a line end is before its CR. */
static void
advance(const struct plain *plain, struct cursor *cursor, size_t lf)
{
	if (!plain->own) {
		cursor->raw = cursor->lf = lf;
		return;
	}
	while (cursor->lf < lf) {
		if (is_crlf(plain->text, plain->len, cursor->raw))
			cursor->raw++;
		cursor->raw++;
		cursor->lf++;
	}
}

/* Whether the place from `from` to `to` has CRLF as its line end. */
static bool
wants_cr(const struct plain *plain, size_t from, size_t to)
{
	const char *text = plain->text;
	const char *end;

	if (!plain->own)
		return false;
	end = memchr(text + from, '\n', plain->len - from);
	if (!end)
		end = memrchr(text, '\n', to);
	return end && end > text && end[-1] == '\r';
}

static void
put_new(const struct plain *plain, const struct plain *new, size_t from,
	size_t to, struct buf *out)
{
	const char *at = new->lf, *end = new->lf + new->lf_len, *line;
	bool cr;

	/* A text without line ends has none that could be kept. */
	if (!memchr(plain->text, '\n', plain->len)) {
		buf_put(out, new->text, new->len);
		return;
	}
	cr = wants_cr(plain, from, to);
	while (cr && at < end &&
	       (line = memchr(at, '\n', (size_t)(end - at)))) {
		buf_put(out, at, (size_t)(line - at));
		buf_put(out, "\r\n", 2);
		at = line + 1;
	}
	buf_put(out, at, (size_t)(end - at));
}

static size_t
count_matches(const struct plain *plain, const struct plain *old)
{
	const char *at = plain->lf, *end = plain->lf + plain->lf_len;
	size_t n = 0;

	while (at < end &&
	       (at = memmem(at, (size_t)(end - at), old->lf, old->lf_len))) {
		at += old->lf_len;
		n++;
	}
	return n;
}

static int
replace(const struct plain *plain, const struct plain *old,
	const struct plain *new, size_t max, struct buf *out)
{
	const char *at = plain->lf, *end = plain->lf + plain->lf_len;
	struct cursor cursor = { 0, 0 };
	size_t before = out->len, kept = 0, from;

	while (at < end &&
	       (at = memmem(at, (size_t)(end - at), old->lf, old->lf_len))) {
		advance(plain, &cursor, (size_t)(at - plain->lf));
		from = cursor.raw;
		at += old->lf_len;
		advance(plain, &cursor, (size_t)(at - plain->lf));
		buf_put(out, plain->text + kept, from - kept);
		put_new(plain, new, from, cursor.raw, out);
		kept = cursor.raw;
		if (out->len - before > max)
			return -EFBIG;
	}
	buf_put(out, plain->text + kept, plain->len - kept);
	return out->len - before > max ? -EFBIG : buf_error(out);
}

int
textedit_apply(const struct textedit *edit, const void *text, size_t len,
	       size_t max, struct buf *ret_text, size_t *ret_count)
{
	_cleanup_(plain_fini) struct plain plain = { 0 };
	_cleanup_(plain_fini) struct plain old = { 0 };
	_cleanup_(plain_fini) struct plain new = { 0 };
	size_t count;
	int r;

	*ret_count = 0;
	if (edit->old_len == 0)
		return -ENOENT;
	r = plain_init(&plain, text, len);
	if (r == 0)
		r = plain_init(&old, edit->old, edit->old_len);
	if (r == 0)
		r = plain_init(&new, edit->new, edit->new_len);
	if (r < 0)
		return r;

	count = count_matches(&plain, &old);
	*ret_count = count;
	if (count == 0)
		return -ENOENT;
	if (count > 1 && !edit->all)
		return -ENOTUNIQ;
	return replace(&plain, &old, &new, max, ret_text);
}

bool
textedit_is_text(const void *data, size_t len)
{
	const unsigned char *at = data;

	for (size_t i = 0; i < len;) {
		size_t n = at[i] < 0x80 ? 1 : utf8_length(at + i, len - i);

		if (n == 0 || at[i] == '\0')
			return false;
		i += n;
	}
	return true;
}
