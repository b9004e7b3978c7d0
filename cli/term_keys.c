/* SPDX-License-Identifier: MIT */

/*
 * One unit at a time: a byte, or a sequence ESC [ … final.  A unit is a key
 * that pale knows, the release of one, or something else; which of them it is
 * decides, with whether the prefix was typed before, where it goes.
 *
 * An ESC by itself is held for nothing but a byte that is there already: the
 * key must not be late in an editor.  A sequence that is cut right behind it
 * goes to the terminal.
 */

#include "cli/term_keys.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#define ESC 0x1b

static const char paste_begin[] = "\033[200~";
static const char paste_end[] = "\033[201~";

/* ---- names of keys ---- */

/* One key; *at moves behind it. */
static int
parse_key(const char **at, unsigned char *ret_key)
{
	const char *text = *at;
	unsigned char c;

	if ((text[0] == 'C' || text[0] == 'c') && text[1] == '-')
		text += 2;
	else if (text[0] == '^' && text[1] != '\0' && text[1] != ' ')
		text += 1;
	c = (unsigned char)text[0];
	if (c <= ' ' || c > '~')
		return -EINVAL;
	if (text != *at) {
		c = (unsigned char)toupper(c);
		if (c < '@' || c > '_')
			return -EINVAL;
		c &= 0x1f;
	}
	*at = text + 1;
	*ret_key = c;
	return 0;
}

int
keys_init(struct keys *keys, const char *detach_key, struct errmsg *why)
{
	const char *at = detach_key ? detach_key : "C-\\ d";
	int r;

	*keys = (struct keys){ 0 };
	if (strcmp(at, "none") == 0)
		return 0;
	r = parse_key(&at, &keys->prefix);
	if (r == 0) {
		at += strspn(at, " ");
		r = parse_key(&at, &keys->key);
	}
	/* NUL stands for none, and ESC begins what other keys send. */
	if (r == 0 &&
	    (*at != '\0' || keys->prefix >= ' ' || keys->prefix == ESC ||
	     keys->prefix == 0 || keys->key == keys->prefix ||
	     keys->key == ESC || keys->key == 0))
		r = -EINVAL;
	if (r < 0)
		return errmsg_set(why, r,
				  "--detach-key takes two keys such as "
				  "'C-\\ d', the first with Control, or none; "
				  "not '%s'",
				  detach_key);
	return 0;
}

/* ---- which key a unit is ---- */

enum unit {
	UNIT_OTHER,
	UNIT_PREFIX,
	UNIT_KEY,
	UNIT_SUSPEND,
	UNIT_RELEASE, /* of any key: no key by itself */
};

static enum unit
unit_of_byte(const struct keys *keys, unsigned char c)
{
	if (c == keys->prefix)
		return UNIT_PREFIX;
	if (c == keys->key)
		return UNIT_KEY;
	return c == 0x1a ? UNIT_SUSPEND : UNIT_OTHER;
}

/* A number and what follows it; sub-parameters but the second are skipped. */
static const unsigned char *
take_number(const unsigned char *at, unsigned int *ret_number,
	    unsigned int *ret_second)
{
	unsigned int numbers[2] = { 0, 0 }, n = 0;

	for (; (*at >= '0' && *at <= '9') || *at == ':'; at++) {
		if (*at == ':')
			n++;
		else if (n < 2 && numbers[n] < 100000)
			numbers[n] = numbers[n] * 10 + (*at - '0');
	}
	*ret_number = numbers[0];
	if (ret_second)
		*ret_second = numbers[1];
	return *at == ';' ? at + 1 : at;
}

/* ESC [ code ; modifiers : event u, and ESC [ 27 ; modifiers ; code ~ */
static enum unit
unit_of_sequence(const struct keys *keys, const unsigned char *bytes,
		 size_t len)
{
	unsigned int code, mods = 1, event = 0;
	unsigned char final = bytes[len - 1], c;
	const unsigned char *at = bytes + 2;

	at = take_number(at, &code, NULL);
	at = take_number(at, &mods, &event);
	if (final == '~' && code == 27)
		(void)take_number(at, &code, NULL);
	else if (event == 3)
		return UNIT_RELEASE;
	else if (final != 'u')
		return UNIT_OTHER;
	/* Caps and num lock change nothing here. */
	mods = (mods > 0 ? mods - 1 : 0) & 0x3f;
	if (code >= 0x80 || mods > 5)
		return UNIT_OTHER;
	/* A modifier by itself is pressed on the way to a key. */
	c = (unsigned char)code;
	if (mods == 4 || mods == 5) {
		c = (unsigned char)toupper(c);
		if (c < '@' || c > '_')
			return UNIT_OTHER;
		c &= 0x1f;
	} else if (mods == 1) {
		c = (unsigned char)toupper(c);
	} else if (mods > 1) {
		return UNIT_OTHER;
	}
	return unit_of_byte(keys, c);
}

/* Keys of kitty's protocol that are modifiers have such codes. */
static bool
is_modifier(const unsigned char *bytes, size_t len)
{
	unsigned int code;

	if (bytes[len - 1] != 'u')
		return false;
	(void)take_number(bytes + 2, &code, NULL);
	return code >= 57441 && code <= 57454;
}

/* ---- pastes ---- */

/* How much of `mark` has passed, with one byte more. */
static unsigned int
match(const char *mark, unsigned int matched, unsigned char c)
{
	if (c == (unsigned char)mark[matched])
		return matched + 1;
	return c == ESC ? 1 : 0;
}

/*
 * Only looks on: a paste that begins in two pieces, cut behind its ESC, is one
 * all the same.
 */
static void
look_for_paste(struct keys *keys, unsigned char c)
{
	const char *mark = keys->in_paste ? paste_end : paste_begin;

	keys->pasted = match(mark, keys->pasted, c);
	if (mark[keys->pasted] != '\0')
		return;
	keys->in_paste = !keys->in_paste;
	keys->pasted = 0;
}

/* ---- units ---- */

static void
put_first(struct keys *keys, struct buf *out)
{
	if (keys->n_first > 0)
		buf_put(out, keys->first, keys->n_first);
	keys->n_first = 0;
	keys->has_prefix = false;
}

static enum keys_found
put_unit(struct keys *keys, enum unit unit, const unsigned char *bytes,
	 size_t len, struct buf *out)
{
	if (!keys->has_prefix && unit == UNIT_PREFIX) {
		keys->has_prefix = true;
		memcpy(keys->first, bytes, len);
		keys->n_first = len;
		return KEYS_NONE;
	}
	if (keys->has_prefix && unit == UNIT_RELEASE)
		return KEYS_NONE;
	if (keys->has_prefix && unit == UNIT_PREFIX) {
		put_first(keys, out);
		return KEYS_NONE;
	}
	if (keys->has_prefix && (unit == UNIT_KEY || unit == UNIT_SUSPEND)) {
		keys->n_first = 0;
		keys->has_prefix = false;
		return unit == UNIT_KEY ? KEYS_DETACH : KEYS_SUSPEND;
	}
	put_first(keys, out);
	buf_put(out, bytes, len);
	return KEYS_NONE;
}

static enum keys_found
put_sequence(struct keys *keys, struct buf *out)
{
	size_t len = keys->n_held;
	enum unit unit;

	keys->n_held = 0;
	/* What a person needs to press for the second key is none. */
	unit = is_modifier(keys->held, len)
		       ? UNIT_RELEASE
		       : unit_of_sequence(keys, keys->held, len);
	return put_unit(keys, unit, keys->held, len, out);
}

/* It is none that we know, or the rest has not come. */
static enum keys_found
give_up(struct keys *keys, struct buf *out)
{
	size_t len = keys->n_held;

	keys->n_held = 0;
	return put_unit(keys, UNIT_OTHER, keys->held, len, out);
}

/* One more byte of a sequence that is held. */
static enum keys_found
go_on(struct keys *keys, unsigned char c, struct buf *out)
{
	keys->held[keys->n_held++] = c;
	if (keys->n_held == 2 && c != '[')
		return give_up(keys, out);
	if (keys->n_held > 2 && c >= '@' && c <= '~')
		return put_sequence(keys, out);
	if (keys->n_held == KEYS_SEQUENCE ||
	    (keys->n_held > 2 && !strchr("0123456789;:", c)))
		return give_up(keys, out);
	return KEYS_NONE;
}

static enum keys_found
put_byte(struct keys *keys, unsigned char c, bool is_last, struct buf *out)
{
	bool in_paste = keys->in_paste;

	look_for_paste(keys, c);
	if (in_paste) {
		buf_put(out, &c, 1);
		return KEYS_NONE;
	}
	if (keys->n_held > 0)
		return go_on(keys, c, out);
	if (c == ESC && !is_last) {
		keys->held[keys->n_held++] = c;
		return KEYS_NONE;
	}
	return put_unit(keys, unit_of_byte(keys, c), &c, 1, out);
}

enum keys_found
keys_feed(struct keys *keys, const void *bytes, size_t len, uint64_t now_ms,
	  struct buf *out, size_t *ret_taken)
{
	const unsigned char *at = bytes;
	enum keys_found found = KEYS_NONE;
	size_t i;

	/* One whose end is lost must not keep the keys from us for ever. */
	if (keys->in_paste && now_ms - keys->last_ms > KEYS_PASTE_MS)
		keys->in_paste = false;
	keys->last_ms = now_ms;
	*ret_taken = len;
	if (keys->prefix == 0) {
		buf_put(out, bytes, len);
		return KEYS_NONE;
	}
	for (i = 0; i < len && found == KEYS_NONE; i++)
		found = put_byte(keys, at[i], i + 1 == len, out);
	*ret_taken = i;
	return found;
}

int
keys_wait_ms(const struct keys *keys, uint64_t now_ms)
{
	uint64_t until = keys->last_ms + KEYS_HOLD_MS;

	if (keys->n_held == 0)
		return -1;
	return until > now_ms ? (int)(until - now_ms) : 0;
}

enum keys_found
keys_tick(struct keys *keys, uint64_t now_ms, struct buf *out)
{
	if (keys->n_held == 0 || keys_wait_ms(keys, now_ms) > 0)
		return KEYS_NONE;
	return give_up(keys, out);
}
