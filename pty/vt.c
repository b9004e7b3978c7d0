/* SPDX-License-Identifier: MIT */

#include "pty/vt.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>

#include "pty/vt_priv.h"

#define HISTORY_LINES 10000
#define HISTORY_BYTES (8u << 20)

#define THEME_FG     0xe5e5e5
#define THEME_BG     0x000000
#define THEME_CURSOR 0xe5e5e5

static unsigned int
clamp(unsigned int n, unsigned int min, unsigned int max)
{
	return n < min ? min : n > max ? max : n;
}

void
vt_clamp_asked(unsigned int *cols, unsigned int *rows, unsigned int *ret_cols,
	       unsigned int *ret_rows)
{
	*ret_cols = clamp(*cols, 1, VT_COLS_MAX);
	*ret_rows = clamp(*rows, 1, VT_ROWS_MAX);
	*cols = clamp(*cols, 2, VT_COLS_MAX);
	*rows = *ret_rows;
}

int
vt_new(unsigned int cols, unsigned int rows, const struct vt_limits *limits,
       const struct vt_ops *ops, void *data, struct vt **ret_vt)
{
	static const struct vt_ops no_ops = { 0 };
	_cleanup_(vt_freep) struct vt *vt = calloc(1, sizeof(*vt));
	uint64_t seed = 0;
	int r;

	if (!vt)
		return -ENOMEM;
	/* Without it the tables can be aimed at, no more. */
	(void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK);
	vt_clamp_asked(&cols, &rows, &vt->asked_cols, &vt->asked_rows);
	if (limits)
		vt->limits = *limits;
	if (!vt->limits.history_lines)
		vt->limits.history_lines = HISTORY_LINES;
	if (!vt->limits.history_bytes)
		vt->limits.history_bytes = HISTORY_BYTES;
	vt->ops = ops ? ops : &no_ops;
	vt->data = data;
	lexicon_init(&vt->lex, seed);
	history_init(&vt->history, vt->limits.history_lines,
		     vt->limits.history_bytes);
	r = grid_init(&vt->screens[PRIMARY].grid, cols, rows);
	if (r < 0)
		return r;
	vt->grid = &vt->screens[PRIMARY].grid;
	vt_set_theme(vt, THEME_FG, THEME_BG, THEME_CURSOR);
	vt_reset(vt);
	*ret_vt = take_ptr(&vt);
	return 0;
}

struct vt *
vt_free(struct vt *vt)
{
	if (!vt)
		return NULL;
	grid_fini(&vt->screens[PRIMARY].grid);
	grid_fini(&vt->screens[ALTERNATE].grid);
	lexicon_fini(&vt->lex);
	history_fini(&vt->history);
	buf_fini(&vt->parser.text);
	free(vt->cwd);
	free(vt->palette);
	free(vt);
	return NULL;
}

void
vt_feed(struct vt *vt, const void *bytes, size_t len)
{
	vt->reply_left = VT_REPLY_MAX;
	parser_feed(vt, bytes, len);
}

/* ---- resets ---- */

struct cursor
vt_home_cursor(void)
{
	return (struct cursor){ 0 };
}

void
vt_default_tabs(struct vt *vt)
{
	memset(vt->tabs, 0x01, sizeof(vt->tabs));
}

void
vt_full_margins(struct vt *vt)
{
	vt->margins = (struct rect){ .right = vt->grid->cols,
				     .bottom = vt->grid->rows };
}

void
vt_soft_reset(struct vt *vt)
{
	struct screen *screen = &vt->screens[vt->active];
	const uint64_t gone =
		MODE_BIT(MODE_INSERT) | MODE_BIT(MODE_ORIGIN) |
		MODE_BIT(MODE_APP_CURSOR) | MODE_BIT(MODE_APP_KEYPAD) |
		MODE_BIT(MODE_MARGINS) | MODE_BIT(MODE_REVERSE_WRAP);

	vt->modes &= ~gone;
	vt->modes |= MODE_BIT(MODE_CURSOR) | MODE_BIT(MODE_WRAP);
	vt_full_margins(vt);
	vt->cursor = (struct cursor){ .x = vt->cursor.x,
				      .y = vt->cursor.y,
				      .pending = vt->cursor.pending };
	vt->pen_known = false;
	vt->single_shift = 0;
	screen->saved = vt_home_cursor();
}

void
vt_reset(struct vt *vt)
{
	if (vt->active != PRIMARY)
		vt_switch_screen(vt, PRIMARY);
	grid_fini(&vt->screens[ALTERNATE].grid);
	vt->screens[ALTERNATE].saved = vt_home_cursor();
	grid_clear(vt->grid, 0);
	vt_soft_reset(vt);
	vt->cursor = vt_home_cursor();
	vt->modes = MODES_DEFAULT;
	vt->saved_modes = MODES_DEFAULT;
	vt->cursor_shape = 0;
	vt->last_ch = 0;
	vt->sync_since = 0;
	vt_default_tabs(vt);
	free(vt->palette);
	vt->palette = NULL;
	memset(vt->dynamic, 0, sizeof(vt->dynamic));
	if (vt->limits.clear_history)
		history_clear(&vt->history);
}

/* ---- what goes out ---- */

void
vt_event(struct vt *vt, enum vt_event_kind kind, const char *text, size_t len)
{
	struct vt_event event = { .kind = kind,
				  .from = vt->parser.start,
				  .to = vt->parser.end,
				  .text = text,
				  .len = len,
				  .exit_code = -1 };

	if (vt->ops->event)
		vt->ops->event(vt->data, &event);
}

void
vt_cut_range(struct vt *vt, uint64_t from, uint64_t to, enum vt_cut why)
{
	if (vt->ops->cut && from < to)
		vt->ops->cut(vt->data, from, to, why);
}

void
vt_reply(struct vt *vt, const void *bytes, size_t len)
{
	if (vt->muted || !vt->ops->reply || len > vt->reply_left)
		return;
	vt->reply_left -= len;
	vt->ops->reply(vt->data, bytes, len);
}

void
vt_replyf(struct vt *vt, const char *format, ...)
{
	char text[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len > 0 && (size_t)len < sizeof(text))
		vt_reply(vt, text, (size_t)len);
}

/* ---- settings and state ---- */

void
vt_set_mute(struct vt *vt, bool muted)
{
	vt->muted = muted;
}

void
vt_set_nonce(struct vt *vt, const char *text)
{
	(void)snprintf(vt->nonce, sizeof(vt->nonce), "%s", text);
}

void
vt_set_theme(struct vt *vt, uint32_t fg, uint32_t bg, uint32_t cursor)
{
	vt->theme[0] = fg & 0xffffff;
	vt->theme[1] = bg & 0xffffff;
	vt->theme[2] = cursor & 0xffffff;
}

void
vt_tick(struct vt *vt, uint64_t now_ms)
{
	if (!has_mode(vt, MODE_SYNC))
		return;
	if (vt->sync_since == 0)
		vt->sync_since = now_ms ? now_ms : 1;
	else if (now_ms - vt->sync_since >= VT_SYNC_MS)
		put_mode(vt, MODE_SYNC, false);
}

uint64_t
vt_offset(const struct vt *vt)
{
	return vt->offset;
}

uint64_t
vt_safe(const struct vt *vt)
{
	const struct parser *p = &vt->parser;

	if (p->state != PARSER_GROUND)
		return p->cut_from;
	if (p->need == 0)
		return vt->offset;
	return p->torn_to == p->start ? p->torn_from : p->start;
}

void
vt_state(const struct vt *vt, struct vt_state *ret_state)
{
	static const struct {
		enum vt_mode mode;
		unsigned int number;
	} mouse[] = { { MODE_MOUSE_X10, 9 },
		      { MODE_MOUSE, 1000 },
		      { MODE_MOUSE_DRAG, 1002 },
		      { MODE_MOUSE_MOVE, 1003 } },
	  encoding[] = { { MODE_MOUSE_UTF8, 1005 },
			 { MODE_MOUSE_SGR, 1006 },
			 { MODE_MOUSE_URXVT, 1015 } };
	struct vt_state state = {
		.cols = vt->grid->cols,
		.rows = vt->grid->rows,
		.x = vt->cursor.x,
		.y = vt->cursor.y,
		.cursor_visible = has_mode(vt, MODE_CURSOR),
		.cursor_shape = vt->cursor_shape,
		.alt = vt->active == ALTERNATE,
		.app_cursor = has_mode(vt, MODE_APP_CURSOR),
		.app_keypad = has_mode(vt, MODE_APP_KEYPAD),
		.bracketed_paste = has_mode(vt, MODE_PASTE),
		.focus = has_mode(vt, MODE_FOCUS),
		.sync = has_mode(vt, MODE_SYNC),
		.history = vt->history.count,
	};

	for (size_t i = 0; i < sizeof(mouse) / sizeof(*mouse); i++)
		if (has_mode(vt, mouse[i].mode))
			state.mouse = mouse[i].number;
	for (size_t i = 0; i < sizeof(encoding) / sizeof(*encoding); i++)
		if (has_mode(vt, encoding[i].mode))
			state.mouse_encoding = encoding[i].number;
	*ret_state = state;
}

bool
vt_is_alt(const struct vt *vt)
{
	return vt->active == ALTERNATE;
}

bool
vt_bracketed_paste(const struct vt *vt)
{
	return has_mode(vt, MODE_PASTE);
}

bool
vt_in_sync(const struct vt *vt)
{
	return has_mode(vt, MODE_SYNC);
}

const char *
vt_title(const struct vt *vt)
{
	return vt->title;
}

const char *
vt_cwd(const struct vt *vt)
{
	return vt->cwd ? vt->cwd : "";
}
