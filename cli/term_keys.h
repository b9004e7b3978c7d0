/* SPDX-License-Identifier: MIT */
#ifndef CLI_TERM_KEYS_H
#define CLI_TERM_KEYS_H

/*
 * What a person types while attached, and the two keys that are for pale.
 *
 *	PREFIX KEY      detach          PREFIX PREFIX   the prefix itself
 *	PREFIX C-z      suspend         PREFIX other    both, as typed
 *
 * Keys come in any pieces.  What is pasted (between ESC[200~ and ESC[201~) is
 * not looked at.  Terminals that were asked to tell all keys apart send the
 * prefix as a sequence (ESC[92;5u, ESC[27;5;92~), and releases of keys as
 * well: these are known, and a sequence that has come in half is held for a
 * moment.
 *
 * Thread: the owner's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/errmsg.h"

/* How long the rest of a sequence, and of a paste, may be under way. */
#define KEYS_HOLD_MS  20
#define KEYS_PASTE_MS 2000

/* A sequence of more bytes is none of a key. */
#define KEYS_SEQUENCE 32

enum keys_found {
	KEYS_NONE,
	KEYS_DETACH,
	KEYS_SUSPEND,
};

struct keys {
	unsigned char prefix, key;	    /* both 0: no keys are for pale */
	bool has_prefix;		    /* and the second key is awaited */
	unsigned char first[KEYS_SEQUENCE]; /* the prefix as it was typed */
	size_t n_first;
	unsigned char held[KEYS_SEQUENCE]; /* of a sequence */
	size_t n_held;
	uint64_t last_ms;    /* when something was typed */
	unsigned int pasted; /* matched of the next begin or end of a paste */
	bool in_paste;
};

/*
 * "C-\ d", "^A d", "C-b C-d", "none"; "C-\ d" is also the default.  The first
 * key is a control character.  -EINVAL with a sentence.
 */
int keys_init(struct keys *keys, const char *detach_key, struct errmsg *why);

/*
 * Appends to `out` what goes to the terminal, and stops at a key for pale:
 * *ret_taken bytes were looked at.
 */
enum keys_found keys_feed(struct keys *keys, const void *bytes, size_t len,
			  uint64_t now_ms, struct buf *out, size_t *ret_taken);

/* Milliseconds until keys_tick() has something to do; -1: never. */
int keys_wait_ms(const struct keys *keys, uint64_t now_ms);
/* What was held long enough goes to the terminal. */
enum keys_found keys_tick(struct keys *keys, uint64_t now_ms, struct buf *out);

#endif
