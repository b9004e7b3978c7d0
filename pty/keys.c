/* SPDX-License-Identifier: MIT */

#include "pty/keys.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/json.h"

#define WORD_MAX 64

enum {
	SHIFT = 1,
	ALT = 2,
	CONTROL = 4,
};

enum shape {
	CURSOR,	  /* CSI x, SS3 x when asked for, CSI 1;m x */
	FUNCTION, /* SS3 x, CSI 1;m x */
	TILDE,	  /* CSI n ~, CSI n;m ~ */
	KEYPAD,	  /* a character, SS3 x when asked for */
	CHARACTER,
	BACKTAB,
};

struct key {
	const char *name;
	enum shape shape;
	unsigned char code;
	char plain;	   /* KEYPAD: the character */
	unsigned int mods; /* it has these by itself */
};

static const struct key keys[] = {
	{ "Up", CURSOR, 'A', 0, 0 },
	{ "Down", CURSOR, 'B', 0, 0 },
	{ "Right", CURSOR, 'C', 0, 0 },
	{ "Left", CURSOR, 'D', 0, 0 },
	{ "Home", CURSOR, 'H', 0, 0 },
	{ "End", CURSOR, 'F', 0, 0 },
	{ "Insert", TILDE, 2, 0, 0 },
	{ "Ins", TILDE, 2, 0, 0 },
	{ "IC", TILDE, 2, 0, 0 },
	{ "Delete", TILDE, 3, 0, 0 },
	{ "Del", TILDE, 3, 0, 0 },
	{ "DC", TILDE, 3, 0, 0 },
	{ "PgUp", TILDE, 5, 0, 0 },
	{ "PageUp", TILDE, 5, 0, 0 },
	{ "PPage", TILDE, 5, 0, 0 },
	{ "PgDn", TILDE, 6, 0, 0 },
	{ "PageDown", TILDE, 6, 0, 0 },
	{ "NPage", TILDE, 6, 0, 0 },
	{ "F1", FUNCTION, 'P', 0, 0 },
	{ "F2", FUNCTION, 'Q', 0, 0 },
	{ "F3", FUNCTION, 'R', 0, 0 },
	{ "F4", FUNCTION, 'S', 0, 0 },
	{ "F5", TILDE, 15, 0, 0 },
	{ "F6", TILDE, 17, 0, 0 },
	{ "F7", TILDE, 18, 0, 0 },
	{ "F8", TILDE, 19, 0, 0 },
	{ "F9", TILDE, 20, 0, 0 },
	{ "F10", TILDE, 21, 0, 0 },
	{ "F11", TILDE, 23, 0, 0 },
	{ "F12", TILDE, 24, 0, 0 },
	/* A PC's keyboard has twelve: the others are these with Shift. */
	{ "F13", FUNCTION, 'P', 0, SHIFT },
	{ "F14", FUNCTION, 'Q', 0, SHIFT },
	{ "F15", FUNCTION, 'R', 0, SHIFT },
	{ "F16", FUNCTION, 'S', 0, SHIFT },
	{ "F17", TILDE, 15, 0, SHIFT },
	{ "F18", TILDE, 17, 0, SHIFT },
	{ "F19", TILDE, 18, 0, SHIFT },
	{ "F20", TILDE, 19, 0, SHIFT },
	{ "F21", TILDE, 20, 0, SHIFT },
	{ "F22", TILDE, 21, 0, SHIFT },
	{ "F23", TILDE, 23, 0, SHIFT },
	{ "F24", TILDE, 24, 0, SHIFT },
	{ "Enter", CHARACTER, '\r', 0, 0 },
	{ "Return", CHARACTER, '\r', 0, 0 },
	{ "CR", CHARACTER, '\r', 0, 0 },
	{ "Tab", CHARACTER, '\t', 0, 0 },
	{ "BTab", BACKTAB, 'Z', 0, 0 },
	{ "Space", CHARACTER, ' ', 0, 0 },
	{ "Escape", CHARACTER, 0x1b, 0, 0 },
	{ "Esc", CHARACTER, 0x1b, 0, 0 },
	{ "Backspace", CHARACTER, 0x7f, 0, 0 },
	{ "BSpace", CHARACTER, 0x7f, 0, 0 },
	{ "BS", CHARACTER, 0x7f, 0, 0 },
	{ "KPEnter", KEYPAD, 'M', '\r', 0 },
	{ "KP*", KEYPAD, 'j', '*', 0 },
	{ "KP+", KEYPAD, 'k', '+', 0 },
	{ "KP-", KEYPAD, 'm', '-', 0 },
	{ "KP.", KEYPAD, 'n', '.', 0 },
	{ "KP/", KEYPAD, 'o', '/', 0 },
	{ "KP0", KEYPAD, 'p', '0', 0 },
	{ "KP1", KEYPAD, 'q', '1', 0 },
	{ "KP2", KEYPAD, 'r', '2', 0 },
	{ "KP3", KEYPAD, 's', '3', 0 },
	{ "KP4", KEYPAD, 't', '4', 0 },
	{ "KP5", KEYPAD, 'u', '5', 0 },
	{ "KP6", KEYPAD, 'v', '6', 0 },
	{ "KP7", KEYPAD, 'w', '7', 0 },
	{ "KP8", KEYPAD, 'x', '8', 0 },
	{ "KP9", KEYPAD, 'y', '9', 0 },
};

/* ---- what a key sends ---- */

/* What Control makes of an ASCII character; −1: nothing. */
static int
control_of(unsigned char c)
{
	/* As on the keyboard of the VT220, where they were without letters. */
	static const char digits[] = "\0\033\034\035\036\037\177";

	if ((c >= '@' && c <= '_') || (c >= 'a' && c <= 'z'))
		return c & 0x1f;
	if (c >= '2' && c <= '8')
		return digits[c - '2'];
	switch (c) {
	case ' ':
	case '`':
		return 0;
	case '/':
		return 0x1f;
	case '?':
		return 0x7f;
	default:
		return -1;
	}
}

static void
put_function(struct buf *out, const struct key *key, unsigned int mods,
	     bool ss3)
{
	if (mods > 0)
		buf_putf(out, "\033[1;%u%c", mods + 1, key->code);
	else
		buf_putf(out, "\033%c%c", ss3 ? 'O' : '[', key->code);
}

static void
put_character(struct buf *out, unsigned char c, unsigned int mods)
{
	if (mods & ALT)
		buf_put(out, "\033", 1);
	if (c == '\t' && (mods & SHIFT)) {
		buf_puts(out, "\033[Z");
		return;
	}
	if (mods & CONTROL) {
		/* Others of these keys Control does not change. */
		if (c == ' ')
			c = 0;
		else if (c == 0x7f)
			c = '\b';
	}
	buf_put(out, &c, 1);
}

static void
put_key(struct buf *out, const struct key *key, unsigned int mods,
	const struct keys_modes *modes)
{
	mods |= key->mods;
	switch (key->shape) {
	case CURSOR:
		put_function(out, key, mods, modes->app_cursor);
		break;
	case FUNCTION:
		put_function(out, key, mods, true);
		break;
	case TILDE:
		if (mods > 0)
			buf_putf(out, "\033[%u;%u~", key->code, mods + 1);
		else
			buf_putf(out, "\033[%u~", key->code);
		break;
	case KEYPAD:
		if (modes->app_keypad)
			put_function(out, key, mods, true);
		else
			put_character(out, (unsigned char)key->plain, mods);
		break;
	case CHARACTER:
		put_character(out, key->code, mods);
		break;
	case BACKTAB:
		if (mods & ALT)
			buf_put(out, "\033", 1);
		buf_puts(out, "\033[Z");
		break;
	}
}

/* ---- names ---- */

static int
put_plain(struct buf *out, const char *text, size_t len, unsigned int mods)
{
	unsigned char c = (unsigned char)*text;

	if (mods & SHIFT) {
		if (c < 'a' || c > 'z')
			return -EINVAL;
		c = (unsigned char)(c - 'a' + 'A');
	}
	if (mods & CONTROL) {
		int control = len == 1 ? control_of(c) : -1;

		if (control < 0)
			return -EINVAL;
		c = (unsigned char)control;
	}
	if (mods & ALT)
		buf_put(out, "\033", 1);
	if (len == 1)
		buf_put(out, &c, 1);
	else
		buf_put(out, text, len);
	return 0;
}

static unsigned int
take_modifier(const char **word)
{
	static const char letters[] = "SMC";
	const char *at = *word, *letter;

	/* "^" alone, as "-", is a character. */
	if (at[0] == '^' && at[1]) {
		*word = at + 1;
		return CONTROL;
	}
	if (!at[0] || at[1] != '-' || !at[2])
		return 0;
	letter = strchr(letters, at[0]);
	if (!letter)
		return 0;
	*word = at + 2;
	return 1u << (letter - letters);
}

static int
put_word(struct buf *out, const char *word, const struct keys_modes *modes)
{
	unsigned int mods = 0, mod;
	size_t len;

	while ((mod = take_modifier(&word)))
		mods |= mod;
	len = strlen(word);
	if (len > 0 && utf8_length((const unsigned char *)word, len) == len)
		return put_plain(out, word, len, mods);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strcasecmp(keys[i].name, word) != 0)
			continue;
		put_key(out, &keys[i], mods, modes);
		return 0;
	}
	return -EINVAL;
}

int
keys_encode(const char *names, const struct keys_modes *modes, struct buf *out,
	    struct errmsg *why)
{
	static const char blanks[] = " \t\r\n";
	_cleanup_(buf_fini) struct buf bytes = { 0 };
	size_t count = 0;

	for (names += strspn(names, blanks); *names;
	     names += strspn(names, blanks)) {
		size_t len = strcspn(names, blanks);
		char word[WORD_MAX] = "";

		if (len < sizeof(word))
			memcpy(word, names, len);
		if (len >= sizeof(word) || put_word(&bytes, word, modes) < 0)
			return errmsg_set(why, -EINVAL,
					  "no key '%.*s': keys are named as in "
					  "'C-c Up F5 M-x Enter'",
					  (int)(len < 200 ? len : 200), names);
		names += len;
		count++;
	}
	if (count == 0)
		return errmsg_set(why, -EINVAL, "no key is named");
	if (bytes.error)
		out->error = bytes.error;
	buf_put(out, bytes.data, bytes.len);
	return 0;
}

/* ---- pasting ---- */

#define PASTE_BEGIN "\033[200~"
#define PASTE_END   "\033[201~"

static bool
drop_end(struct buf *out, size_t from, const char *mark)
{
	size_t len = strlen(mark);

	if (out->len < from + len ||
	    memcmp(out->data + out->len - len, mark, len) != 0)
		return false;
	out->len -= len;
	return true;
}

void
keys_paste(const void *text, size_t len, bool bracketed, struct buf *out)
{
	const char *at = text;
	size_t from;

	if (bracketed)
		buf_puts(out, PASTE_BEGIN);
	from = out->len;
	for (size_t i = 0; i < len; i++) {
		if (at[i] == '\n' && i > 0 && at[i - 1] == '\r')
			continue;
		buf_put(out, at[i] == '\n' ? "\r" : &at[i], 1);
		/*
		 * Looked for in what has come out: a mark that only the removal
		 * of another one makes goes as well.
		 */
		if (bracketed && at[i] == '~' && !out->error &&
		    !drop_end(out, from, PASTE_END))
			(void)drop_end(out, from, "\302\233201~");
	}
	if (bracketed)
		buf_puts(out, PASTE_END);
}
