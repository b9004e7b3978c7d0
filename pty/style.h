/* SPDX-License-Identifier: MIT */
#ifndef PTY_STYLE_H
#define PTY_STYLE_H

/*
 * How a cell looks, and the tables in which a grid keeps what does not fit in
 * its cells.  A style is interned; the plain one is number 0.
 * Thread: the owner's.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "pty/intern.h"

/* A colour: 0 is the terminal's own, else a kind and a value. */
#define COLOR_PALETTE 0x01000000u /* | 0..255 */
#define COLOR_RGB     0x02000000u /* | 0xRRGGBB */
#define COLOR_KIND    0xff000000u

enum {
	STYLE_BOLD = 1 << 0,
	STYLE_DIM = 1 << 1,
	STYLE_ITALIC = 1 << 2,
	STYLE_BLINK = 1 << 3,
	STYLE_INVERSE = 1 << 4,
	STYLE_HIDDEN = 1 << 5,
	STYLE_STRIKE = 1 << 6,
	STYLE_OVERLINE = 1 << 7,
	STYLE_UNDERLINE = 7 << 8, /* 0 none; 1 to 5 as in SGR 4:n */
};
#define STYLE_UNDERLINE_SHIFT 8
#define STYLE_ATTRS	      0x7ffu

struct style {
	uint32_t fg, bg;
	uint32_t underline; /* colour */
	uint16_t attrs;
	uint16_t link; /* number in the table of links */
};

#define CLUSTER_MARKS 6			  /* combining characters of a cell */
#define CLUSTER_MAX   (1 + CLUSTER_MARKS) /* characters, the base first */
#define LINK_MAX      2048		  /* bytes of "ID;URI" */

struct lexicon {
	struct intern styles;	/* struct style */
	struct intern clusters; /* uint32_t[2..CLUSTER_MAX] */
	struct intern links;	/* "ID;URI" */
};

void lexicon_init(struct lexicon *lex, uint64_t seed);
void lexicon_fini(struct lexicon *lex);

/* Borrowed until the next number is given out. */
struct style lexicon_style(const struct lexicon *lex, unsigned int id);

/* The URI of a style with a link, NULL if it has none. */
const char *lexicon_uri(const struct lexicon *lex, const struct style *style,
			uint32_t *ret_len);

/*
 * The parameters of one SGR, as the parser left them: bit i of `joined` says
 * that parameter i stood behind a colon.
 */
void style_sgr(struct style *style, const uint16_t *params, unsigned int count,
	       uint32_t joined);

/*
 * SGR that turns `from` into `to`, nothing if they look alike.  Links are not
 * looked at.
 */
void style_put_sgr(struct buf *out, const struct style *from,
		   const struct style *to);

/* The parameters alone, after "0": what DECRQSS m answers. */
void style_put_params(struct buf *out, const struct style *style);

bool style_same(const struct style *a, const struct style *b);

/* May a link of this scheme be given to a person's terminal? */
bool uri_is_safe(const char *uri, uint32_t len);

#endif
