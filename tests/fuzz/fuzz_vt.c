/* SPDX-License-Identifier: MIT */

/*
 * The screen model on hostile bytes.  The input is a size and then steps: bytes
 * to feed, a piece of a sequence out of a table, another size, a save and
 * restore.  A twin gets the same bytes one by one.  After each step the model
 * is sound; at the end the twins are equal, what was cut is in order, all
 * dumps can be made, and another terminal that is painted shows the same.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/vt_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const pieces[] = {
	"\033[",
	"\033]",
	"\033P",
	"\033\\",
	"\033",
	";",
	":",
	"?",
	"\r\n",
	"\t",
	"\b",
	"\033[?1049h",
	"\033[?1049l",
	"\033[?69h",
	"\033[3;7s",
	"\033[2;4r",
	"\033[?6h",
	"\033[4h",
	"\033[999b",
	"\033[2J",
	"\033[L",
	"\033[M",
	"\033[3P",
	"\033[2@",
	"\033[5X",
	"\033[1K",
	"\033[S",
	"\033[T",
	"\033M",
	"\033D",
	"\033#8",
	"\0337",
	"\0338",
	"\033c",
	"\033[!p",
	"\xe4\xb8\xad",
	"\xf0\x9f\x98\x80",
	"\xcc\x81",
	"\xe2\x80\x8d",
	"\xc2\x9b",
	"\033[38;5;9m",
	"\033[48:2::1:2:3m",
	"\033[4:3m",
	"\033[m",
	"\033[?7l",
	"\033]8;;http://x\033\\",
	"\033]8;;\a",
	"\033]133;D;0\a",
	"\033[6n",
	"\033P$qm\033\\",
	"\033[99999;99999H",
	"\033[H",
	"\033[100C",
	"\033[?25l",
	"\033[1\"q",
	"\033[?2K",
	"\033[?2J",
	"\033[3 @",
	"\033[2'}",
	"\033[2'~",
	"\033(0",
	"\016",
	"\033[3g",
	"\033H",
	"\033[65535d",
	"wwwwwwwwwwwwwwwwwwww",
	"\033[?47h",
	"\033[?47l",
	"\033]4;1;#123456\a",
	"\033[?45h\b",
};

struct seen {
	uint64_t cut_to;
	bool bad;
};

static void
on_cut(void *data, uint64_t from, uint64_t to, enum vt_cut why)
{
	struct seen *seen = data;

	(void)why;
	if (from < seen->cut_to || to <= from)
		seen->bad = true;
	seen->cut_to = to;
}

static const struct vt_ops ops = { .cut = on_cut };
static const struct vt_limits limits = { .history_lines = 50,
					 .clear_history = true };

#define must(holds)                                                      \
	do {                                                             \
		if (!(holds)) {                                          \
			(void)fprintf(stderr, "line %d: %s\n", __LINE__, \
				      #holds);                           \
			abort();                                         \
		}                                                        \
	} while (0)

struct pair {
	struct vt *vt, *twin;
	struct seen seen, seen_twin;
};

static void
feed(struct pair *p, const void *bytes, size_t len)
{
	vt_feed(p->vt, bytes, len);
	for (size_t i = 0; i < len; i++)
		vt_feed(p->twin, (const uint8_t *)bytes + i, 1);
}

static void
swap(struct pair *p)
{
	struct buf saved = { 0 };
	struct vt *again = NULL;

	vt_save(p->vt, &saved);
	must(vt_restore(saved.data, saved.len, &limits, &ops, &p->seen,
			&again) == 0);
	must(vt_same(p->vt, again));
	(void)vt_free(p->vt);
	p->vt = again;
	buf_fini(&saved);
}

/* A blank that was written and one that was not look alike. */
static void
strip(struct buf *text)
{
	size_t to = 0;

	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i] == '\n')
			while (to > 0 && text->data[to - 1] == ' ')
				to--;
		text->data[to++] = text->data[i];
	}
	text->len = to;
}

static void
must_look_same(const struct vt *vt, const struct vt *shown)
{
	struct cursor saved = vt_saved_cursor(vt, vt->active);
	struct cursor other = vt_saved_cursor(shown, shown->active);
	struct buf out = { 0 }, text = { 0 };

	must(saved.x == other.x && saved.y == other.y);
	vt_ansi(vt, 0, &out);
	vt_ansi(shown, 0, &text);
	strip(&out);
	strip(&text);
	must(out.len == text.len && memcmp(out.data, text.data, out.len) == 0);
	buf_fini(&out);
	buf_fini(&text);
}

/* Leaves the model with the primary screen. */
static void
dump(struct vt *vt)
{
	struct buf out = { 0 };
	struct vt *shown = NULL;
	struct vt_state state, other;

	vt_ansi(vt, 10, &out);
	vt_json(vt, 10, &out);
	(void)vt_lines(vt, 1, 20, &out);
	vt_repaint(vt, 3, 2, &out);
	out.len = 0;
	vt_state(vt, &state);
	vt_repaint(vt, 0, 0, &out);
	must(vt_new(state.cols, state.rows, NULL, NULL, NULL, &shown) == 0);
	vt_feed(shown, out.data, out.len);
	vt_state(shown, &other);
	must(state.x == other.x && state.y == other.y &&
	     state.alt == other.alt && state.mouse == other.mouse &&
	     vt_safe(shown) == vt_offset(shown));
	must_look_same(vt, shown);
	vt_switch_screen(vt, PRIMARY);
	vt_switch_screen(shown, PRIMARY);
	must_look_same(vt, shown);
	(void)vt_free(shown);
	buf_fini(&out);
}

/* One step; the number of bytes of it. */
static size_t
step(struct pair *p, const uint8_t *data, size_t size)
{
	size_t n = size > 1 ? data[1] : 0;

	switch (data[0] & 7) {
	case 5:
		if (size < 3)
			return size;
		must(vt_resize(p->vt, 1 + data[1] % 50, 1 + data[2] % 30) == 0);
		must(vt_resize(p->twin, 1 + data[1] % 50, 1 + data[2] % 30) ==
		     0);
		return 3;
	case 6:
		swap(p);
		return 1;
	case 3:
	case 4:
	case 7:
		n %= sizeof(pieces) / sizeof(*pieces);
		feed(p, pieces[n], strlen(pieces[n]));
		return 2 < size ? 2 : size;
	default:
		n = data[0] >> 3;
		n = n < size - 1 ? n : size - 1;
		feed(p, data + 1, n);
		return n + 1;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pair p = { 0 };

	if (size < 2)
		return 0;
	must(vt_new(data[0] % 50, data[1] % 30, &limits, &ops, &p.seen,
		    &p.vt) == 0);
	must(vt_new(data[0] % 50, data[1] % 30, &limits, &ops, &p.seen_twin,
		    &p.twin) == 0);
	data += 2;
	size -= 2;
	while (size > 0) {
		size_t n = step(&p, data, size);

		data += n;
		size -= n;
		must(vt_is_sound(p.vt));
	}
	must(vt_same(p.vt, p.twin));
	must(!p.seen.bad && !p.seen_twin.bad);
	dump(p.vt);
	(void)vt_free(p.vt);
	(void)vt_free(p.twin);
	return 0;
}
