/* SPDX-License-Identifier: MIT */
#ifndef PTY_VT_PRIV_H
#define PTY_VT_PRIV_H

/*
 * The model from inside.  Coordinates count from 0; `right` and `bottom` are
 * one past the last.  Invariant between any two calls: the cursor is in the
 * grid, margins are a rectangle of two rows (one if the screen has but one)
 * and two columns or more.
 */

#include <string.h>

#include "pty/grid.h"
#include "pty/history.h"
#include "pty/parser.h"
#include "pty/style.h"
#include "pty/vt.h"

#define CELL_PIXELS_X 8 /* what CSI 14 t and 16 t tell */
#define CELL_PIXELS_Y 16

/*
 * Modes: name, number, private, and what DECRQM says of it: 0 what it is, else
 * that it can only be set (3) or reset (4).  Order is not kept anywhere.
 */
#define VT_MODES(X)                   \
	X(KAM, 2, false, 4)           \
	X(INSERT, 4, false, 0)        \
	X(SRM, 12, false, 3)          \
	X(NEWLINE, 20, false, 0)      \
	X(APP_CURSOR, 1, true, 0)     \
	X(COLUMNS, 3, true, 4)        \
	X(SMOOTH, 4, true, 0)         \
	X(REVERSE, 5, true, 0)        \
	X(ORIGIN, 6, true, 0)         \
	X(WRAP, 7, true, 0)           \
	X(REPEAT, 8, true, 0)         \
	X(MOUSE_X10, 9, true, 0)      \
	X(BLINK, 12, true, 0)         \
	X(CURSOR, 25, true, 0)        \
	X(ALLOW_COLUMNS, 40, true, 4) \
	X(REVERSE_WRAP, 45, true, 0)  \
	X(ALT, 47, true, 0)           \
	X(APP_KEYPAD, 66, true, 0)    \
	X(MARGINS, 69, true, 0)       \
	X(MOUSE, 1000, true, 0)       \
	X(MOUSE_DRAG, 1002, true, 0)  \
	X(MOUSE_MOVE, 1003, true, 0)  \
	X(FOCUS, 1004, true, 0)       \
	X(MOUSE_UTF8, 1005, true, 0)  \
	X(MOUSE_SGR, 1006, true, 0)   \
	X(ALT_SCROLL, 1007, true, 0)  \
	X(MOUSE_URXVT, 1015, true, 0) \
	X(ALT_CLEAR, 1047, true, 0)   \
	X(SAVE_CURSOR, 1048, true, 0) \
	X(ALT_SAVE, 1049, true, 0)    \
	X(PASTE, 2004, true, 0)       \
	X(SYNC, 2026, true, 0)

enum vt_mode {
#define X(name, number, priv, fixed) MODE_##name,
	VT_MODES(X)
#undef X
	MODE_COUNT,
};

#define MODE_BIT(mode) (1ull << (mode))

/* As they are after a reset. */
#define MODES_DEFAULT \
	(MODE_BIT(MODE_WRAP) | MODE_BIT(MODE_REPEAT) | MODE_BIT(MODE_CURSOR))

#define MODES_MOUSE                                        \
	(MODE_BIT(MODE_MOUSE_X10) | MODE_BIT(MODE_MOUSE) | \
	 MODE_BIT(MODE_MOUSE_DRAG) | MODE_BIT(MODE_MOUSE_MOVE))
#define MODES_MOUSE_ENCODING                                    \
	(MODE_BIT(MODE_MOUSE_UTF8) | MODE_BIT(MODE_MOUSE_SGR) | \
	 MODE_BIT(MODE_MOUSE_URXVT))

struct vt_mode_row {
	uint16_t number;
	bool is_private;
	uint8_t fixed;
};

extern const struct vt_mode_row vt_modes[MODE_COUNT];

/* A sequence may go to attached people; else it is an enum vt_cut. */
#define PASS (-1)

enum charset {
	CHARSET_ASCII,
	CHARSET_GRAPHICS, /* DEC special graphics */
	CHARSET_UK,
	CHARSETS,
};

struct cursor {
	unsigned int x, y;
	bool pending; /* at the last column, the next character wraps */
	bool is_protected;
	bool origin;
	uint8_t charset[4]; /* G0 to G3 */
	uint8_t gl;	    /* which of them */
	struct style pen;
};

struct screen {
	struct grid grid;
	struct cursor saved;
};

enum {
	PRIMARY,
	ALTERNATE
};

struct vt {
	struct vt_limits limits;
	const struct vt_ops *ops;
	void *data;
	bool muted;

	struct screen screens[2]; /* the alternate one is made on first use */
	unsigned int active;
	struct grid *grid; /* of the active one */
	unsigned int asked_cols, asked_rows;

	struct cursor cursor;
	struct rect margins;
	uint64_t modes;
	uint64_t saved_modes; /* XTSAVE */
	uint8_t cursor_shape;
	uint8_t tabs[(VT_COLS_MAX + 7) / 8];
	uint32_t last_ch;     /* for REP; 0 none */
	uint8_t single_shift; /* G2 or G3 for one character; 0 none */

	/* The pen as a number, found when first printed with. */
	uint16_t pen_id;
	bool pen_known;
	uint32_t collect_wait; /* see vt_collect() */

	struct parser parser;
	uint64_t offset;
	uint64_t sync_since; /* ms; 0 not seen by a tick yet */
	size_t reply_left;

	struct lexicon lex;
	struct history history;

	bool colors_touched; /* a program set one once */
	char title[VT_TITLE_MAX + 1];
	char *cwd;
	uint32_t *palette;   /* 256 of COLOR_RGB | rgb or 0; NULL: untouched */
	uint32_t dynamic[3]; /* OSC 10, 11, 12, the same way */
	uint32_t theme[3];
	char nonce[VT_NONCE_MAX + 1];
};

static inline bool
has_mode(const struct vt *vt, enum vt_mode mode)
{
	return (vt->modes & MODE_BIT(mode)) != 0;
}

static inline void
put_mode(struct vt *vt, enum vt_mode mode, bool on)
{
	if (on)
		vt->modes |= MODE_BIT(mode);
	else
		vt->modes &= ~MODE_BIT(mode);
}

/* Parameter i, or `otherwise` if it is missing or 0. */
static inline unsigned int
param(const struct vt *vt, unsigned int i, unsigned int otherwise)
{
	unsigned int n = i < vt->parser.count ? vt->parser.params[i] : 0;

	return n ? n : otherwise;
}

/* ---- vt.c ---- */

void vt_event(struct vt *vt, enum vt_event_kind kind, const char *text,
	      size_t len);
/* Drops the rest of what would go beyond the bound. */
void vt_reply(struct vt *vt, const void *bytes, size_t len);
void vt_replyf(struct vt *vt, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void vt_cut_range(struct vt *vt, uint64_t from, uint64_t to, enum vt_cut why);
/* The size to emulate, and the size that was meant, both in their bounds. */
void vt_clamp_asked(unsigned int *cols, unsigned int *rows,
		    unsigned int *ret_cols, unsigned int *ret_rows);
/* RIS, and how a model begins. */
void vt_reset(struct vt *vt);
void vt_soft_reset(struct vt *vt);
void vt_default_tabs(struct vt *vt);
void vt_full_margins(struct vt *vt);
struct cursor vt_home_cursor(void);

/* ---- lookup.c: numbers of styles and clusters ---- */

unsigned int vt_pen(struct vt *vt);
/* Erased cells keep the background alone. */
unsigned int vt_blank_style(struct vt *vt);
uint32_t vt_cluster(struct vt *vt, uint32_t ch, uint32_t mark);
void vt_set_link(struct vt *vt, const char *link, size_t len);
/* Forgets styles, clusters and links that nothing shows. */
void vt_collect(struct vt *vt);

/* ---- print.c ---- */

void vt_print(struct vt *vt, uint32_t ch);
void vt_print_ascii(struct vt *vt, const unsigned char *bytes, size_t len);
void vt_repeat(struct vt *vt, unsigned int count);

/* ---- move.c: cursor and scrolling ---- */

/* To a place on the screen, clamped; ends a pending wrap. */
void vt_goto(struct vt *vt, unsigned int x, unsigned int y);
/* The same relative to the margins in origin mode. */
void vt_goto_origin(struct vt *vt, unsigned int x, unsigned int y);
void vt_up(struct vt *vt, unsigned int n);
void vt_down(struct vt *vt, unsigned int n);
void vt_forward(struct vt *vt, unsigned int n);
void vt_back(struct vt *vt, unsigned int n);
void vt_carriage_return(struct vt *vt);
void vt_index(struct vt *vt);
void vt_reverse_index(struct vt *vt);
void vt_backspace(struct vt *vt);
void vt_tab(struct vt *vt, unsigned int n);
void vt_back_tab(struct vt *vt, unsigned int n);
/* The margins up by n rows or down, history taking what leaves the top. */
void vt_scroll_up(struct vt *vt, unsigned int n);
void vt_scroll_down(struct vt *vt, unsigned int n);
bool vt_in_margins(const struct vt *vt);
void vt_save_cursor(struct vt *vt);
void vt_restore_cursor(struct vt *vt);
/* What that screen would restore: in origin mode, within the margins. */
struct cursor vt_saved_cursor(const struct vt *vt, unsigned int which);

/* ---- csi.c, esc.c, osc.c, dcs.c: whole sequences ---- */

void vt_control(struct vt *vt, unsigned char c);
int vt_esc(struct vt *vt);
int vt_csi(struct vt *vt);
int vt_osc(struct vt *vt);
int vt_dcs(struct vt *vt);

/* ---- modes.c ---- */

int vt_mode_change(struct vt *vt, bool on);
int vt_mode_save(struct vt *vt);
int vt_mode_restore(struct vt *vt);
int vt_mode_query(struct vt *vt);
void vt_switch_screen(struct vt *vt, unsigned int which);

/* ---- colors.c ---- */

/* What a colour of the palette is, 0xRRGGBB. */
uint32_t vt_palette(const struct vt *vt, unsigned int index);
/* OSC 4, 10, 11, 12, 104, 110, 111, 112; `text` is what follows the number. */
int vt_osc_color(struct vt *vt, unsigned int code, const char *text);

/* ---- reports.c ---- */

int vt_report_device(struct vt *vt);
int vt_report_status(struct vt *vt);
int vt_report_window(struct vt *vt);
int vt_report_version(struct vt *vt);
int vt_report_keyboard(struct vt *vt);
int vt_report_setting(struct vt *vt, const char *text);
int vt_report_caps(struct vt *vt, const char *text);
int vt_report_checksum(struct vt *vt);

/* ---- rows.c: rows of history and screen, for whoever shows them ---- */

struct row_view {
	const struct cell *cells;
	size_t len;
	bool wrapped;
	const struct lexicon *lex; /* of these cells */
};

typedef void row_fn(void *data, const struct row_view *row);

/* Up to `scrollback` rows at the present width, then the screen. */
void vt_walk_rows(const struct vt *vt, unsigned int scrollback, row_fn *fn,
		  void *data);
/* Whole lines; see vt_lines(). */
unsigned int vt_walk_lines(const struct vt *vt, unsigned int offset,
			   unsigned int count, row_fn *fn, void *data);
/* Rows of a grid that are not blank at its end, the cursor's included. */
unsigned int vt_used_rows(const struct grid *g, unsigned int cursor_y);

/* A line has no more rows than this: what is longer is several. */
#define LINE_ROWS_MAX 1000

/* ---- dump.c ---- */

/* The character of a cell; nothing for the right half of a wide one. */
void vt_put_cell(struct buf *out, const struct cell *cell,
		 const struct lexicon *lex);
/* OSC 8 for the link of this style; the end of one if it has none. */
void vt_put_link(struct buf *out, const struct lexicon *lex,
		 const struct style *style);
/* The cells with SGR and links; `style` is the style before and after. */
void vt_put_styled(struct buf *out, const struct row_view *row,
		   struct style *style);

#endif
