/* SPDX-License-Identifier: MIT */
#ifndef PTY_PARSER_H
#define PTY_PARSER_H

/*
 * Control functions out of a stream of bytes, one byte at a time outside of
 * text: the state machine of the DEC terminals, with UTF-8 in its ground state.
 *
 * Bytes from 0x80 on are never controls: in text they are UTF-8, in a string
 * its content, and anywhere else they end the sequence, which does nothing.
 * U+0080 to U+009F are dropped.  Thread: the owner's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "pty/vt.h"

#define PARSER_PARAMS 32
/* What a string may hold: a clipboard comes in base64. */
#define PARSER_TEXT_MAX	 (VT_CLIPBOARD_MAX / 3 * 4 + 64)
#define PARSER_PARAM_MAX 65535u

enum parser_state {
	PARSER_GROUND,
	PARSER_ESC,
	PARSER_ESC_INT,
	PARSER_CSI_ENTRY,
	PARSER_CSI_PARAM,
	PARSER_CSI_INT,
	PARSER_CSI_IGNORE,
	PARSER_DCS_ENTRY,
	PARSER_DCS_PARAM,
	PARSER_DCS_INT,
	PARSER_DCS_IGNORE,
	PARSER_STRING,
	PARSER_STRING_ESC,
	PARSER_STATES,
};

struct parser {
	uint8_t state;

	/* The sequence in hand. */
	uint64_t start;	   /* where it began */
	uint64_t end;	   /* after its last byte so far */
	uint64_t cut_from; /* the part before is cut already */
	uint64_t esc_at;   /* STRING_ESC: where that ESC was */
	bool executed;	   /* a control character took effect inside */
	uint8_t prefix;	   /* '<' to '?' or 0 */
	uint8_t inter_count;
	uint8_t inter[2];
	uint8_t final;
	uint8_t count;	 /* of parameters */
	bool full;	 /* more than fit */
	uint32_t joined; /* bit i: a colon before parameter i */
	uint32_t given;	 /* bit i: it has digits */
	uint16_t params[PARSER_PARAMS];

	/* Strings: OSC, DCS, and those that nobody hears. */
	uint8_t string; /* ']', 'P' or 0 */
	bool dirty;	/* control characters in it */
	bool overflow;	/* longer than we keep */
	bool by_bell;	/* OSC: how it ended, which is how we answer */
	struct buf text;

	/* UTF-8: the character in hand. */
	uint8_t need;	   /* bytes to come */
	uint8_t low, high; /* what the next may be */
	uint32_t ch;
	/*
	 * One that was not finished.  What is cut right behind it takes it
	 * along: its bytes would join with what follows.
	 */
	uint64_t torn_from, torn_to;
};

/* Of a character in hand: can it be one? */
bool parser_utf8_is_sound(const struct parser *p);

void parser_feed(struct vt *vt, const unsigned char *bytes, size_t len);

#endif
