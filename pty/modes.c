/* SPDX-License-Identifier: MIT */

#include "pty/vt_priv.h"

const struct vt_mode_row vt_modes[MODE_COUNT] = {
#define X(name, number, priv, fixed) [MODE_##name] = { number, priv, fixed },
	VT_MODES(X)
#undef X
};

static int
find_mode(unsigned int number, bool is_private)
{
	for (int i = 0; i < MODE_COUNT; i++)
		if (vt_modes[i].number == number &&
		    vt_modes[i].is_private == is_private)
			return i;
	return -ENOENT;
}

/* ---- the alternate screen ---- */

void
vt_switch_screen(struct vt *vt, unsigned int which)
{
	struct grid *primary = &vt->screens[PRIMARY].grid;
	struct grid *to = &vt->screens[which].grid;

	if (which == vt->active)
		return;
	/* Without memory for it a program draws over the primary one. */
	if (!to->ring && grid_init(to, primary->cols, primary->rows) < 0)
		return;
	vt->active = which;
	vt->grid = to;
	vt_event(vt, VT_EVENT_ALT_SCREEN, NULL, 0);
}

/* All three begin with a blank screen; 1049 keeps the cursor besides. */
static void
change_screen(struct vt *vt, enum vt_mode mode, bool on)
{
	bool was_alt = vt->active == ALTERNATE;

	if (mode == MODE_ALT_SAVE && on)
		vt_save_cursor(vt);
	vt_switch_screen(vt, on ? ALTERNATE : PRIMARY);
	if (on && !was_alt && vt->active == ALTERNATE)
		grid_clear(vt->grid, vt_blank_style(vt));
	if (mode == MODE_ALT_SAVE && !on)
		vt_restore_cursor(vt);
	put_mode(vt, MODE_ALT, on);
	put_mode(vt, MODE_ALT_CLEAR, on);
	put_mode(vt, MODE_ALT_SAVE, on);
}

/* ---- one mode ---- */

static void
apply(struct vt *vt, enum vt_mode mode, bool on)
{
	switch ((int)mode) {
	case MODE_ORIGIN:
		put_mode(vt, mode, on);
		vt->cursor.origin = on;
		vt_goto_origin(vt, 0, 0);
		break;
	case MODE_MARGINS:
		put_mode(vt, mode, on);
		vt->margins.left = 0;
		vt->margins.right = vt->grid->cols;
		break;
	case MODE_ALT:
	case MODE_ALT_CLEAR:
	case MODE_ALT_SAVE:
		change_screen(vt, mode, on);
		break;
	case MODE_SAVE_CURSOR:
		put_mode(vt, mode, on);
		if (on)
			vt_save_cursor(vt);
		else
			vt_restore_cursor(vt);
		break;
	case MODE_MOUSE_X10:
	case MODE_MOUSE:
	case MODE_MOUSE_DRAG:
	case MODE_MOUSE_MOVE:
		vt->modes &= ~MODES_MOUSE;
		put_mode(vt, mode, on);
		break;
	case MODE_MOUSE_UTF8:
	case MODE_MOUSE_SGR:
	case MODE_MOUSE_URXVT:
		vt->modes &= ~MODES_MOUSE_ENCODING;
		put_mode(vt, mode, on);
		break;
	case MODE_SYNC:
		put_mode(vt, mode, on);
		vt->sync_since = 0;
		break;
	default:
		if (!vt_modes[mode].fixed)
			put_mode(vt, mode, on);
		break;
	}
}

/*
 * Does something with each mode of the parameters.  Known modes may go to
 * attached people.  With an unknown one among them they are cut, for it might
 * make their terminal report; then people are repainted for the others.
 */
static int
each_mode(struct vt *vt, void (*fn)(struct vt *, enum vt_mode, bool), bool on)
{
	struct parser *p = &vt->parser;
	bool known = false, unknown = p->full;

	for (unsigned int i = 0; i < p->count; i++) {
		int mode = find_mode(p->params[i], p->prefix == '?');

		if (mode >= 0)
			fn(vt, (enum vt_mode)mode, on);
		if (mode < 0 || vt_modes[mode].fixed)
			unknown = true;
		else
			known = true;
	}
	if (unknown && known)
		p->executed = true;
	return unknown ? VT_CUT_UNKNOWN : PASS;
}

int
vt_mode_change(struct vt *vt, bool on)
{
	return each_mode(vt, apply, on);
}

static void
save(struct vt *vt, enum vt_mode mode, bool unused)
{
	(void)unused;
	vt->saved_modes &= ~MODE_BIT(mode);
	vt->saved_modes |= vt->modes & MODE_BIT(mode);
}

static void
restore(struct vt *vt, enum vt_mode mode, bool unused)
{
	bool on = (vt->saved_modes & MODE_BIT(mode)) != 0;

	(void)unused;
	/* Of those that share a place, turning one off would end another. */
	if (on || has_mode(vt, mode))
		apply(vt, mode, on);
}

int
vt_mode_save(struct vt *vt)
{
	return each_mode(vt, save, true);
}

int
vt_mode_restore(struct vt *vt)
{
	return each_mode(vt, restore, true);
}

int
vt_mode_query(struct vt *vt)
{
	const struct parser *p = &vt->parser;
	unsigned int number = param(vt, 0, 0);
	int mode = find_mode(number, p->prefix == '?');
	unsigned int says = 0;

	if (mode >= 0 && vt_modes[mode].fixed)
		says = vt_modes[mode].fixed;
	else if (mode >= 0)
		says = has_mode(vt, (enum vt_mode)mode) ? 1 : 2;
	vt_replyf(vt, "\033[%s%u;%u$y", p->prefix ? "?" : "", number, says);
	return VT_CUT_QUERY;
}
