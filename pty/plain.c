/* SPDX-License-Identifier: MIT */

/*
 * The line is an array of cells, one for each column; a wide character or a
 * tab has its first column and leaves the others of it SPAN.  Rows of a wrapped
 * line follow each other, so that a column of the line is a row and a column of
 * the terminal: what goes to the left or the right stays in its row.
 *
 * After the last column of a row is written the cursor stays on it until the
 * next character (`wraps`), as with every terminal since the VT100; `at` is
 * then the first column of the next row, and unwrap() takes it back.
 */

#include "pty/plain.h"

#include <stdbool.h>
#include <string.h>

#include "pty/tokens.h"
#include "pty/width.h"

#define TAB_STOP 8
#define MARKS	 6 /* combining characters of one cell */
#define SPAN	 UINT32_MAX

/* How far right a line of unknown width can be left blank. */
#define FAR_COLUMN 500

struct cell {
	uint32_t code;
	uint32_t marks[MARKS];
};

struct plain {
	struct tokens tokens;
	unsigned int cols;
	size_t at; /* column of the next character */
	bool wraps;
	struct cell *cells;
	size_t len, room;
};

int
plain_new(unsigned int cols, struct plain **ret_plain)
{
	struct plain *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->cols = cols < PLAIN_LINE_MAX / 2 ? cols : 0;
	*ret_plain = p;
	return 0;
}

struct plain *
plain_free(struct plain *plain)
{
	if (plain)
		free(plain->cells);
	free(plain);
	return NULL;
}

/* ---- the line comes out ---- */

static void
write_cells(const struct plain *p, size_t count, struct buf *out)
{
	for (size_t i = 0; i < count; i++) {
		const struct cell *cell = &p->cells[i];

		if (cell->code == SPAN)
			continue;
		text_put(out, cell->code);
		for (size_t m = 0; m < MARKS && cell->marks[m]; m++)
			text_put(out, cell->marks[m]);
	}
}

static void
end_line(struct plain *p, struct buf *out)
{
	write_cells(p, p->len, out);
	buf_put(out, "\n", 1);
	p->len = 0;
	p->at = 0;
	p->wraps = false;
}

/* To a row that is not of this line. */
static void
leave_line(struct plain *p, struct buf *out)
{
	if (p->len > 0)
		end_line(p, out);
	p->at = 0;
	p->wraps = false;
}

/* The first half of a line without end, in whole rows. */
static void
shorten(struct plain *p, struct buf *out)
{
	size_t gone = PLAIN_LINE_MAX / 2;

	if (p->cols > 0)
		gone -= gone % p->cols;
	while (gone < p->len && p->cells[gone].code == SPAN)
		gone++;
	if (gone > p->len)
		gone = p->len;
	write_cells(p, gone, out);
	memmove(p->cells, p->cells + gone, (p->len - gone) * sizeof(*p->cells));
	p->len -= gone;
	p->at -= gone;
}

/* ---- cells ---- */

static bool
make_room(struct plain *p, size_t want, struct buf *out)
{
	size_t room = p->room > 0 ? p->room : 128;
	struct cell *cells;

	if (want <= p->room)
		return true;
	while (room < want)
		room *= 2;
	cells = realloc(p->cells, room * sizeof(*cells));
	if (!cells) {
		out->error = -ENOMEM;
		return false;
	}
	p->cells = cells;
	p->room = room;
	return true;
}

static void
blank(struct plain *p, size_t from, size_t to)
{
	for (; from < to; from++)
		p->cells[from] = (struct cell){ .code = ' ' };
}

/* Half of a wide character, or of a tab, is blank. */
static void
split_at(struct plain *p, size_t column)
{
	size_t first = column, end = column;

	if (column >= p->len || p->cells[column].code != SPAN)
		return;
	while (first > 0 && p->cells[first].code == SPAN)
		first--;
	while (end < p->len && p->cells[end].code == SPAN)
		end++;
	blank(p, first, end);
}

static void
erase(struct plain *p, size_t from, size_t to)
{
	if (to > p->len)
		to = p->len;
	if (from >= to)
		return;
	split_at(p, from);
	split_at(p, to);
	if (to == p->len)
		p->len = from;
	else
		blank(p, from, to);
}

static size_t
row_start(const struct plain *p)
{
	return p->cols > 0 ? p->at - p->at % p->cols : 0;
}

/* The column after the row's last. */
static size_t
row_end(const struct plain *p)
{
	return p->cols > 0 ? row_start(p) + p->cols : PLAIN_LINE_MAX;
}

static void
unwrap(struct plain *p)
{
	if (p->wraps)
		p->at--;
	p->wraps = false;
}

/* ---- characters ---- */

static void
put_mark(struct plain *p, uint32_t code)
{
	size_t i = p->at;

	while (i > 0 && (i > p->len || p->cells[i - 1].code == SPAN))
		i--;
	if (i == 0)
		return;
	for (size_t m = 0; m < MARKS; m++) {
		if (p->cells[i - 1].marks[m])
			continue;
		p->cells[i - 1].marks[m] = code;
		return;
	}
}

static void
put_cell(struct plain *p, uint32_t code, size_t width, struct buf *out)
{
	p->wraps = false;
	if (p->cols > 0 && p->at + width > row_end(p))
		p->at = row_end(p);
	if (p->at + width > PLAIN_LINE_MAX)
		shorten(p, out);
	if (!make_room(p, p->at + width, out))
		return;
	split_at(p, p->at);
	split_at(p, p->at + width);
	if (p->at > p->len)
		blank(p, p->len, p->at);
	p->cells[p->at] = (struct cell){ .code = code };
	for (size_t i = 1; i < width; i++)
		p->cells[p->at + i] = (struct cell){ .code = SPAN };
	p->at += width;
	if (p->len < p->at)
		p->len = p->at;
	p->wraps = p->cols > 0 && p->at % p->cols == 0;
}

static void
put_character(struct plain *p, uint32_t code, struct buf *out)
{
	unsigned int width = width_of(code);

	if (width == 0)
		put_mark(p, code);
	else
		put_cell(p, code, width, out);
}

static void
put_tab(struct plain *p, struct buf *out)
{
	size_t end = row_end(p), next;

	if (p->wraps)
		return;
	next = row_start(p) + (p->at - row_start(p)) / TAB_STOP * TAB_STOP +
	       TAB_STOP;
	/* One that only moves over what is there writes nothing. */
	if (p->at >= p->len && next < end)
		put_cell(p, '\t', next - p->at, out);
	else
		p->at = next < end ? next : end - 1;
	p->wraps = false;
}

static void
put_shown(struct plain *p, uint32_t code, struct buf *out)
{
	if (code >= 0x80) {
		put_cell(p, 'M', 1, out);
		put_cell(p, '-', 1, out);
		code &= 0x1f;
	}
	put_cell(p, '^', 1, out);
	put_cell(p, code ^ 0x40, 1, out);
}

static void
put_control(struct plain *p, uint32_t code, struct buf *out)
{
	switch (code) {
	case '\a':
	case 0x0e:
	case 0x0f:
		return;
	case '\n':
	case '\v':
	case '\f':
		end_line(p, out);
		return;
	case '\r':
		unwrap(p);
		p->at = row_start(p);
		return;
	case '\b':
		unwrap(p);
		if (p->at > row_start(p))
			p->at--;
		return;
	case '\t':
		put_tab(p, out);
		return;
	default:
		put_shown(p, code, out);
	}
}

/* ---- sequences ---- */

static void
go_to_column(struct plain *p, size_t column)
{
	size_t start, last;

	unwrap(p);
	start = row_start(p);
	last = p->len > FAR_COLUMN ? p->len : FAR_COLUMN;
	if (p->cols > 0)
		last = p->cols - 1;
	p->at = start + (column < last ? column : last);
}

/* Up and down within the rows of a wrapped line. */
static void
go_to_row(struct plain *p, bool up, size_t count, struct buf *out)
{
	size_t by = count * p->cols;

	unwrap(p);
	if (up && by > 0 && by <= p->at)
		p->at -= by;
	else if (!up && by > 0 && p->at + by < p->len)
		p->at += by;
	else
		leave_line(p, out);
}

/* Blanks before what is on the row; over its edge it is lost. */
static void
insert_blanks(struct plain *p, size_t count, struct buf *out)
{
	size_t end = row_end(p);

	if (p->at >= p->len)
		return;
	if (count > end - p->at)
		count = end - p->at;
	if (p->len <= end && p->len + count < end)
		end = p->len + count;
	if (!make_room(p, end, out))
		return;
	if (end > p->len) {
		blank(p, p->len, end);
		p->len = end;
	}
	split_at(p, p->at);
	split_at(p, end - count);
	split_at(p, end);
	memmove(p->cells + p->at + count, p->cells + p->at,
		(end - count - p->at) * sizeof(*p->cells));
	blank(p, p->at, p->at + count);
}

static void
delete_cells(struct plain *p, size_t count)
{
	size_t end = row_end(p) < p->len ? row_end(p) : p->len;

	if (p->at >= end)
		return;
	if (count > end - p->at)
		count = end - p->at;
	split_at(p, p->at);
	split_at(p, p->at + count);
	split_at(p, end);
	memmove(p->cells + p->at, p->cells + p->at + count,
		(end - count - p->at) * sizeof(*p->cells));
	if (end == p->len)
		p->len -= count;
	else
		blank(p, end - count, end);
}

static void
erase_row(struct plain *p, unsigned int how)
{
	unwrap(p);
	if (how == 0)
		erase(p, p->at, row_end(p));
	else if (how == 1)
		erase(p, row_start(p), p->at + 1);
	else if (how == 2)
		erase(p, row_start(p), row_end(p));
}

static void
erase_screen(struct plain *p, unsigned int how)
{
	unwrap(p);
	if (how == 0)
		erase(p, p->at, p->len);
	else if (how == 1)
		erase(p, 0, p->at + 1);
	else
		erase(p, 0, p->len);
}

static void
put_sequence(struct plain *p, const struct token *token, struct buf *out)
{
	size_t count = token_count(token);

	if (token->marker)
		return;
	switch (token->code) {
	case 'A':
	case 'B':
		go_to_row(p, token->code == 'A', count, out);
		break;
	case 'E':
	case 'F':
		go_to_row(p, token->code == 'F', count, out);
		go_to_column(p, 0);
		break;
	case 'C':
	case 'a':
		unwrap(p);
		go_to_column(p, p->at - row_start(p) + count);
		break;
	case 'D':
		unwrap(p);
		p->at -= count < p->at - row_start(p) ? count
						      : p->at - row_start(p);
		break;
	case 'G':
	case '`':
		go_to_column(p, count - 1);
		break;
	case 'd':
		leave_line(p, out);
		break;
	case 'H':
	case 'f':
		leave_line(p, out);
		go_to_column(p,
			     token->params[1] > 0 ? token->params[1] - 1 : 0);
		break;
	case 'J':
		erase_screen(p, token->params[0]);
		break;
	case 'K':
		erase_row(p, token->params[0]);
		break;
	case 'P':
	case '@':
		unwrap(p);
		if (token->code == 'P')
			delete_cells(p, count);
		else
			insert_blanks(p, count, out);
		break;
	case 'X':
		unwrap(p);
		erase(p, p->at,
		      p->at + count < row_end(p) ? p->at + count : row_end(p));
		break;
	default:
		break;
	}
}

static void
put_escape(struct plain *p, const struct token *token, struct buf *out)
{
	if (token->marker)
		return;
	switch (token->code) {
	case 'D':
	case 'E':
		end_line(p, out);
		break;
	case 'M':
	case '8':
	case 'c':
		leave_line(p, out);
		break;
	default:
		break;
	}
}

static void
put_token(struct plain *p, const struct token *token, struct buf *out)
{
	switch (token->kind) {
	case TOKEN_CHAR:
		put_character(p, token->code, out);
		break;
	case TOKEN_CONTROL:
		put_control(p, token->code, out);
		break;
	case TOKEN_CSI:
		put_sequence(p, token, out);
		break;
	case TOKEN_ESC:
		put_escape(p, token, out);
		break;
	}
}

void
plain_feed(struct plain *plain, const void *bytes, size_t len, struct buf *out)
{
	const unsigned char *at = bytes;
	struct token tokens[TOKENS_A_BYTE];

	for (size_t i = 0; i < len; i++) {
		unsigned int n = tokens_put(&plain->tokens, at[i], tokens);

		for (unsigned int k = 0; k < n; k++)
			put_token(plain, &tokens[k], out);
	}
}

void
plain_end(struct plain *plain, struct buf *out)
{
	struct token token;

	if (tokens_end(&plain->tokens, &token) > 0)
		put_token(plain, &token, out);
	write_cells(plain, plain->len, out);
	plain->len = 0;
	plain->at = 0;
	plain->wraps = false;
}

size_t
plain_unfinished(const struct plain *plain)
{
	size_t pending = tokens_pending(&plain->tokens);

	return pending <= PLAIN_UNFINISHED_MAX ? pending : 0;
}
