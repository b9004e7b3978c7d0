/* SPDX-License-Identifier: MIT */

/*
 * One table says for each state and byte what to do and where to go; ground
 * and strings, where the bulk is, have loops of their own.  Everything that is
 * half done lives in struct parser, so where a feed ends does not matter.
 *
 * What attached people get is the stream without what was cut.  A sequence
 * that is not finished when the next begins must be cut with it: half of it
 * would join with what follows.
 */

#include "pty/parser.h"

#include "pty/vt_priv.h"

enum action {
	NONE,
	EXECUTE,
	COLLECT,
	PREFIX,
	PARAM,
	ESC_DISPATCH,
	CSI_DISPATCH,
	DCS_HOOK,
	OSC_BEGIN,
	STRING_BEGIN, /* that nobody hears */
	DROP,	      /* of a sequence that made no sense */
};

struct step {
	uint8_t action, next;
};

#define TO(action, state)              \
	{                              \
		action, PARSER_##state \
	}

/* C0 but for CAN, SUB and ESC, which are the same everywhere. */
#define CONTROLS(action, state)                                          \
	[0x00 ... 0x17] = TO(action, state), [0x19] = TO(action, state), \
		  [0x1c ... 0x1f] = TO(action, state),                   \
		  [0x7f] = TO(NONE, state)

static const struct step steps[PARSER_STATES][128] = {
	[PARSER_ESC] = {
		CONTROLS(EXECUTE, ESC),
		[0x20 ... 0x2f] = TO(COLLECT, ESC_INT),
		[0x30 ... 'O'] = TO(ESC_DISPATCH, GROUND),
		['P'] = TO(NONE, DCS_ENTRY),
		['Q' ... 'W'] = TO(ESC_DISPATCH, GROUND),
		['X'] = TO(STRING_BEGIN, STRING),
		['Y' ... 'Z'] = TO(ESC_DISPATCH, GROUND),
		['['] = TO(NONE, CSI_ENTRY),
		['\\'] = TO(ESC_DISPATCH, GROUND),
		[']'] = TO(OSC_BEGIN, STRING),
		['^' ... '_'] = TO(STRING_BEGIN, STRING),
		['`' ... 0x7e] = TO(ESC_DISPATCH, GROUND),
	},
	[PARSER_ESC_INT] = {
		CONTROLS(EXECUTE, ESC_INT),
		[0x20 ... 0x2f] = TO(COLLECT, ESC_INT),
		[0x30 ... 0x7e] = TO(ESC_DISPATCH, GROUND),
	},
	[PARSER_CSI_ENTRY] = {
		CONTROLS(EXECUTE, CSI_ENTRY),
		[0x20 ... 0x2f] = TO(COLLECT, CSI_INT),
		[0x30 ... 0x3b] = TO(PARAM, CSI_PARAM),
		[0x3c ... 0x3f] = TO(PREFIX, CSI_PARAM),
		[0x40 ... 0x7e] = TO(CSI_DISPATCH, GROUND),
	},
	[PARSER_CSI_PARAM] = {
		CONTROLS(EXECUTE, CSI_PARAM),
		[0x20 ... 0x2f] = TO(COLLECT, CSI_INT),
		[0x30 ... 0x3b] = TO(PARAM, CSI_PARAM),
		[0x3c ... 0x3f] = TO(NONE, CSI_IGNORE),
		[0x40 ... 0x7e] = TO(CSI_DISPATCH, GROUND),
	},
	[PARSER_CSI_INT] = {
		CONTROLS(EXECUTE, CSI_INT),
		[0x20 ... 0x2f] = TO(COLLECT, CSI_INT),
		[0x30 ... 0x3f] = TO(NONE, CSI_IGNORE),
		[0x40 ... 0x7e] = TO(CSI_DISPATCH, GROUND),
	},
	[PARSER_CSI_IGNORE] = {
		CONTROLS(EXECUTE, CSI_IGNORE),
		[0x20 ... 0x3f] = TO(NONE, CSI_IGNORE),
		[0x40 ... 0x7e] = TO(DROP, GROUND),
	},
	[PARSER_DCS_ENTRY] = {
		CONTROLS(NONE, DCS_ENTRY),
		[0x20 ... 0x2f] = TO(COLLECT, DCS_INT),
		[0x30 ... 0x3b] = TO(PARAM, DCS_PARAM),
		[0x3c ... 0x3f] = TO(PREFIX, DCS_PARAM),
		[0x40 ... 0x7e] = TO(DCS_HOOK, STRING),
	},
	[PARSER_DCS_PARAM] = {
		CONTROLS(NONE, DCS_PARAM),
		[0x20 ... 0x2f] = TO(COLLECT, DCS_INT),
		[0x30 ... 0x3b] = TO(PARAM, DCS_PARAM),
		[0x3c ... 0x3f] = TO(NONE, DCS_IGNORE),
		[0x40 ... 0x7e] = TO(DCS_HOOK, STRING),
	},
	[PARSER_DCS_INT] = {
		CONTROLS(NONE, DCS_INT),
		[0x20 ... 0x2f] = TO(COLLECT, DCS_INT),
		[0x30 ... 0x3f] = TO(NONE, DCS_IGNORE),
		[0x40 ... 0x7e] = TO(DCS_HOOK, STRING),
	},
	[PARSER_DCS_IGNORE] = {
		CONTROLS(NONE, DCS_IGNORE),
		[0x20 ... 0x3f] = TO(NONE, DCS_IGNORE),
		[0x40 ... 0x7e] = TO(STRING_BEGIN, STRING),
	},
};

static void
begin(struct parser *p, uint64_t at)
{
	p->state = PARSER_ESC;
	p->start = at;
	p->executed = p->torn_to == at && p->torn_from < at;
	if (p->executed)
		p->cut_from = p->torn_from;
	else if (p->cut_from < at)
		p->cut_from = at;
	p->prefix = p->inter_count = p->final = 0;
	p->count = 0;
	p->full = false;
	p->joined = p->given = 0;
	p->params[0] = 0;
	p->string = 0;
	p->dirty = p->overflow = p->by_bell = false;
}

/* The sequence ends before `to`; `pass` is what its handler said. */
static void
finish(struct vt *vt, int pass, uint64_t to)
{
	struct parser *p = &vt->parser;

	p->state = PARSER_GROUND;
	if (pass == PASS &&
	    (to - p->start > VT_SEQUENCE_MAX || p->cut_from > p->start))
		pass = VT_CUT_UNKNOWN;
	if (pass == PASS)
		return;
	vt_cut_range(vt, p->cut_from, to, (enum vt_cut)pass);
	if (p->executed)
		vt_event(vt, VT_EVENT_REPAINT, NULL, 0);
}

static void
add_param(struct parser *p, unsigned char c)
{
	uint32_t value;

	if (p->count == 0)
		p->count = 1;
	if (c >= '0' && c <= '9') {
		if (p->full)
			return;
		value = p->params[p->count - 1] * 10u + (c - '0');
		p->params[p->count - 1] =
			(uint16_t)(value < PARSER_PARAM_MAX ? value
							    : PARSER_PARAM_MAX);
		p->given |= 1u << (p->count - 1);
		return;
	}
	if (p->count == PARSER_PARAMS) {
		p->full = true;
		return;
	}
	p->params[p->count] = 0;
	if (c == ':')
		p->joined |= 1u << p->count;
	p->count++;
}

/* ---- strings ---- */

static void
string_add(struct parser *p, const unsigned char *bytes, size_t len)
{
	size_t max = VT_OSC_MAX;

	if (p->overflow || p->string == 0)
		return;
	if (p->string == ']' && p->text.len >= 3 &&
	    memcmp(p->text.data, "52;", 3) == 0)
		max = PARSER_TEXT_MAX;
	if (len <= max - p->text.len)
		buf_put(&p->text, bytes, len);
	if (len > max - p->text.len || buf_error(&p->text) < 0) {
		p->overflow = true;
		buf_fini(&p->text);
	}
}

/* Is there a C1 control in it, as UTF-8? */
static bool
has_c1(const struct buf *text)
{
	for (size_t i = 0; i + 1 < text->len; i++)
		if (text->data[i] == 0xc2 && text->data[i + 1] < 0xa0)
			return true;
	return false;
}

/* `clean`: by its own terminator. */
static void
string_end(struct vt *vt, bool clean, uint64_t to)
{
	struct parser *p = &vt->parser;
	int pass = VT_CUT_UNKNOWN;

	p->end = to;
	if (!p->overflow && p->string != 0) {
		p->dirty |= has_c1(&p->text);

		buf_put(&p->text, "", 1);
		if (buf_error(&p->text) == 0) {
			p->text.len--;
			pass = p->string == ']' ? vt_osc(vt) : vt_dcs(vt);
		}
		if (pass == PASS && (p->dirty || !clean))
			pass = VT_CUT_UNKNOWN;
	}
	p->text.len = 0;
	if (p->text.room > 1024)
		buf_fini(&p->text);
	finish(vt, pass, to);
}

static void
string_cancel(struct parser *p)
{
	p->text.len = 0;
	if (p->text.room > 1024)
		buf_fini(&p->text);
}

static void step(struct vt *vt, unsigned char c, uint64_t at);

static void
string_control(struct vt *vt, unsigned char c, uint64_t at)
{
	struct parser *p = &vt->parser;

	if (c == 0x1b) {
		p->state = PARSER_STRING_ESC;
		p->esc_at = at;
	} else if (c == 0x18 || c == 0x1a) {
		string_cancel(p);
		finish(vt, VT_CUT_UNKNOWN, at + 1);
	} else if (c == 0x07 && p->string == ']') {
		p->by_bell = true;
		string_end(vt, true, at + 1);
	} else {
		p->dirty = true;
	}
}

/* Returns the bytes it took: all up to the next control character. */
static size_t
string_run(struct vt *vt, const unsigned char *bytes, size_t len)
{
	size_t n = 0;

	while (n < len && bytes[n] >= 0x20)
		n++;
	string_add(&vt->parser, bytes, n);
	return n;
}

static void
after_string_esc(struct vt *vt, unsigned char c, uint64_t at)
{
	struct parser *p = &vt->parser;

	if (c == '\\') {
		string_end(vt, true, at + 1);
		return;
	}
	/* Another sequence ends the string, and what it said holds. */
	string_end(vt, false, p->esc_at);
	begin(p, p->esc_at);
	step(vt, c, at);
}

/* ---- sequences ---- */

static void
act(struct vt *vt, enum action action, unsigned char c, uint64_t at)
{
	struct parser *p = &vt->parser;

	switch (action) {
	case NONE:
		break;
	case EXECUTE:
		p->executed = true;
		vt_control(vt, c);
		break;
	case COLLECT:
		if (p->inter_count < sizeof(p->inter))
			p->inter[p->inter_count++] = c;
		else
			p->inter_count = sizeof(p->inter) + 1;
		break;
	case PREFIX:
		p->prefix = c;
		break;
	case PARAM:
		add_param(p, c);
		break;
	case ESC_DISPATCH:
		p->final = c;
		finish(vt, vt_esc(vt), at + 1);
		break;
	case CSI_DISPATCH:
		p->final = c;
		finish(vt, vt_csi(vt), at + 1);
		break;
	case DCS_HOOK:
		p->final = c;
		p->string = 'P';
		break;
	case OSC_BEGIN:
		p->string = ']';
		break;
	case STRING_BEGIN:
		p->string = 0;
		break;
	case DROP:
		finish(vt, VT_CUT_UNKNOWN, at + 1);
		break;
	}
}

static void
step(struct vt *vt, unsigned char c, uint64_t at)
{
	struct parser *p = &vt->parser;
	const struct step *s;

	p->end = at + 1;
	if (p->state == PARSER_STRING) {
		string_control(vt, c, at);
		return;
	}
	if (p->state == PARSER_STRING_ESC) {
		after_string_esc(vt, c, at);
		return;
	}
	if (c == 0x1b) {
		finish(vt, VT_CUT_UNKNOWN, at);
		begin(p, at);
		return;
	}
	if (c == 0x18 || c == 0x1a) {
		finish(vt, VT_CUT_UNKNOWN, at + 1);
		return;
	}
	s = &steps[p->state][c & 0x7f];
	p->state = s->next;
	act(vt, (enum action)s->action, c, at);
}

/* ---- ground: text ---- */

/* Bytes of the character that `c` begins, after it; what they may be. */
static bool
utf8_begin(struct parser *p, unsigned char c)
{
	p->low = 0x80;
	p->high = 0xbf;
	if (c >= 0xc2 && c <= 0xdf) {
		p->need = 1;
		p->ch = c & 0x1f;
	} else if (c >= 0xe0 && c <= 0xef) {
		p->need = 2;
		p->ch = c & 0x0f;
		p->low = c == 0xe0 ? 0xa0 : 0x80;
		p->high = c == 0xed ? 0x9f : 0xbf;
	} else if (c >= 0xf0 && c <= 0xf4) {
		p->need = 3;
		p->ch = c & 0x07;
		p->low = c == 0xf0 ? 0x90 : 0x80;
		p->high = c == 0xf4 ? 0x8f : 0xbf;
	} else {
		return false;
	}
	return true;
}

bool
parser_utf8_is_sound(const struct parser *p)
{
	return p->low >= 0x80 && p->high <= 0xbf && p->low <= p->high &&
	       (uint64_t)p->ch << 6 * p->need < 0x110000;
}

/* A cut in text; with a torn character before it, of which a trace is shown. */
static void
cut_text(struct vt *vt, uint64_t from, uint64_t to, enum vt_cut why)
{
	struct parser *p = &vt->parser;
	bool torn = p->torn_to == from && p->torn_from < from;

	p->end = to;
	vt_cut_range(vt, torn ? p->torn_from : from, to, why);
	if (torn)
		vt_event(vt, VT_EVENT_REPAINT, NULL, 0);
}

static void
utf8_end(struct vt *vt, uint64_t to)
{
	struct parser *p = &vt->parser;

	if (p->ch < 0xa0)
		cut_text(vt, p->start, to, VT_CUT_UNKNOWN);
	else if ((p->ch >= 0xd800 && p->ch <= 0xdfff) || p->ch > 0x10ffff)
		vt_print(vt, 0xfffd); /* only a forged state leads here */
	else
		vt_print(vt, p->ch);
}

/* In ground; returns the bytes it took, at least 1. */
static size_t
utf8_run(struct vt *vt, const unsigned char *bytes, size_t len, uint64_t at)
{
	struct parser *p = &vt->parser;
	size_t n = 0;

	if (p->need == 0) {
		p->start = at;
		if (!utf8_begin(p, bytes[n++])) {
			vt_print(vt, 0xfffd);
			return n;
		}
	}
	for (; n < len; n++) {
		if (bytes[n] < p->low || bytes[n] > p->high) {
			/* It may begin something else. */
			p->need = 0;
			p->torn_from = p->start;
			p->torn_to = at + n;
			vt_print(vt, 0xfffd);
			return n;
		}
		p->low = 0x80;
		p->high = 0xbf;
		p->ch = p->ch << 6 | (bytes[n] & 0x3f);
		if (--p->need == 0) {
			utf8_end(vt, at + n + 1);
			return n + 1;
		}
	}
	return n;
}

/* Most characters of three bytes come whole: 0 if this is none of those. */
static uint32_t
whole_char(const unsigned char *b, size_t len)
{
	if (len < 3 || b[0] < 0xe1 || b[0] > 0xef || b[0] == 0xed ||
	    (b[1] & 0xc0) != 0x80 || (b[2] & 0xc0) != 0x80)
		return 0;
	return (uint32_t)(b[0] & 0x0f) << 12 | (uint32_t)(b[1] & 0x3f) << 6 |
	       (b[2] & 0x3f);
}

static size_t
ascii_length(const unsigned char *bytes, size_t len)
{
	const uint64_t ones = 0x0101010101010101ull, tops = 0x80 * ones;
	size_t n = 0;
	uint64_t w;

	/* Eight at a time: none below 0x20, none of 0x7f, none above. */
	for (; n + sizeof(w) <= len; n += sizeof(w)) {
		uint64_t del;

		memcpy(&w, bytes + n, sizeof(w));
		del = w ^ (0x7f * ones);
		if (((w - 0x20 * ones) | w | ((del - ones) & ~del)) & tops)
			break;
	}
	while (n < len && bytes[n] >= 0x20 && bytes[n] < 0x7f)
		n++;
	return n;
}

static void
ground_control(struct vt *vt, unsigned char c, uint64_t at)
{
	if (c == 0x1b) {
		begin(&vt->parser, at);
		return;
	}
	/* ENQ makes terminals answer; CAN and SUB may show something there. */
	if (c == 0x05)
		cut_text(vt, at, at + 1, VT_CUT_QUERY);
	else if (c == 0x18 || c == 0x1a)
		cut_text(vt, at, at + 1, VT_CUT_UNKNOWN);
	else if (c != 0x7f)
		vt_control(vt, c);
}

static size_t
ground_run(struct vt *vt, const unsigned char *bytes, size_t len, uint64_t at)
{
	struct parser *p = &vt->parser;
	size_t n = 0;

	while (n < len && p->state == PARSER_GROUND) {
		unsigned char c = bytes[n];
		uint32_t ch;

		if (p->need == 0 && c >= 0x80 &&
		    (ch = whole_char(bytes + n, len - n)) != 0) {
			vt_print(vt, ch);
			n += 3;
		} else if (p->need > 0 || c >= 0x80) {
			n += utf8_run(vt, bytes + n, len - n, at + n);
		} else if (c >= 0x20 && c < 0x7f) {
			size_t run = ascii_length(bytes + n, len - n);

			vt_print_ascii(vt, bytes + n, run);
			n += run;
		} else {
			/* An event tells where it was. */
			p->start = at + n;
			p->end = at + n + 1;
			ground_control(vt, c, at + n);
			n++;
		}
	}
	return n;
}

/* What is longer than attached people are given is cut as it comes. */
static void
cut_what_is_long(struct vt *vt)
{
	struct parser *p = &vt->parser;

	if (p->state == PARSER_GROUND ||
	    vt->offset - p->start <= VT_SEQUENCE_MAX ||
	    vt->offset == p->cut_from)
		return;
	vt_cut_range(vt, p->cut_from, vt->offset, VT_CUT_UNKNOWN);
	p->cut_from = vt->offset;
}

void
parser_feed(struct vt *vt, const unsigned char *bytes, size_t len)
{
	struct parser *p = &vt->parser;
	uint64_t at = vt->offset;
	size_t n = 0;

	while (n < len) {
		if (p->state == PARSER_GROUND) {
			n += ground_run(vt, bytes + n, len - n, at + n);
		} else if (p->state == PARSER_STRING && bytes[n] >= 0x20) {
			n += string_run(vt, bytes + n, len - n);
		} else if (bytes[n] >= 0x80 && p->state < PARSER_STRING) {
			finish(vt, VT_CUT_UNKNOWN, at + n);
		} else {
			step(vt, bytes[n], at + n);
			n++;
		}
	}
	vt->offset = at + len;
	cut_what_is_long(vt);
}
