/* SPDX-License-Identifier: MIT */

/* The palette and the terminal's own colours: set, asked, set back. */

#include <stdio.h>

#include "pty/vt_priv.h"

/* The first 16, as xterm has them. */
static const uint32_t base_colors[16] = {
	0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd,
	0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
	0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
};

static uint32_t
cube(unsigned int level)
{
	return level ? level * 40 + 55 : 0;
}

uint32_t
vt_palette(const struct vt *vt, unsigned int index)
{
	if (vt->palette && vt->palette[index])
		return vt->palette[index] & 0xffffff;
	if (index < 16)
		return base_colors[index];
	if (index < 232) {
		index -= 16;
		return cube(index / 36) << 16 | cube(index / 6 % 6) << 8 |
		       cube(index % 6);
	}
	return ((index - 232) * 10 + 8) * 0x010101;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A component of 1 to 4 digits up to `end` as 0..255, or -EINVAL. */
static int
component(const char **at, char end, unsigned int exact)
{
	static const unsigned int full[] = { 0, 0xf, 0xff, 0xfff, 0xffff };
	unsigned int value = 0, digits = 0;
	int digit;

	while (digits < 4 && (!exact || digits < exact) &&
	       (digit = hex_digit(**at)) >= 0) {
		value = value * 16 + (unsigned int)digit;
		digits++;
		(*at)++;
	}
	if (digits == 0 || (exact && digits != exact))
		return -EINVAL;
	if (end) {
		if (**at != end)
			return -EINVAL;
		(*at)++;
	}
	return (int)(value * 255 / full[digits]);
}

/* "#RGB" to "#RRRRGGGGBBBB", "rgb:R/G/B"; COLOR_RGB | value, or 0. */
static uint32_t
parse_color(const char *spec, size_t len)
{
	char text[32];
	const char *at = text;
	unsigned int exact = 0;
	int r, g, b;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, spec, len);
	text[len] = '\0';
	if (text[0] == '#') {
		if (len != 4 && len != 7 && len != 10 && len != 13)
			return 0;
		exact = (unsigned int)(len - 1) / 3;
		at++;
	} else if (strncmp(text, "rgb:", 4) == 0) {
		at += 4;
	} else {
		return 0;
	}
	r = component(&at, exact ? '\0' : '/', exact);
	g = r < 0 ? r : component(&at, exact ? '\0' : '/', exact);
	b = g < 0 ? g : component(&at, '\0', exact);
	if (b < 0 || *at)
		return 0;
	return COLOR_RGB | (uint32_t)r << 16 | (uint32_t)g << 8 | (uint32_t)b;
}

static void
answer(struct vt *vt, const char *what, uint32_t color)
{
	unsigned int r = color >> 16 & 0xff, g = color >> 8 & 0xff;
	unsigned int b = color & 0xff;

	vt_replyf(vt, "\033]%s;rgb:%02x%02x/%02x%02x/%02x%02x%s", what, r, r, g,
		  g, b, b, vt->parser.by_bell ? "\a" : "\033\\");
}

/* The field at `text`, and where the next begins or NULL. */
static const char *
next_field(const char *text, size_t *ret_len)
{
	size_t len = strcspn(text, ";");

	*ret_len = len;
	return text[len] ? text + len + 1 : NULL;
}

/* A number of the palette, or -EINVAL. */
static int
index_of(const char *text, size_t len)
{
	unsigned int n = 0;

	if (len == 0 || len > 3)
		return -EINVAL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		n = n * 10 + (unsigned int)(text[i] - '0');
	}
	return n < 256 ? (int)n : -EINVAL;
}

static int
set_palette(struct vt *vt, int index, const char *spec, size_t len)
{
	uint32_t color;
	char what[16];

	if (index < 0)
		return VT_CUT_UNKNOWN;
	if (len == 1 && spec[0] == '?') {
		(void)snprintf(what, sizeof(what), "4;%d", index);
		answer(vt, what, vt_palette(vt, (unsigned int)index));
		return VT_CUT_QUERY;
	}
	color = parse_color(spec, len);
	if (!vt->palette)
		vt->palette = calloc(256, sizeof(*vt->palette));
	if (!color || !vt->palette)
		return VT_CUT_UNKNOWN;
	vt->palette[index] = color;
	vt->colors_touched = true;
	return PASS;
}

static int
osc_palette(struct vt *vt, const char *text)
{
	int pass = text ? PASS : VT_CUT_UNKNOWN;
	size_t len, spec_len;

	while (text) {
		const char *spec = next_field(text, &len);
		int r;

		if (!spec)
			return VT_CUT_UNKNOWN;
		r = set_palette(vt, index_of(text, len), spec,
				strcspn(spec, ";"));
		if (r != PASS)
			pass = r;
		text = next_field(spec, &spec_len);
	}
	return pass;
}

static int
osc_palette_back(struct vt *vt, const char *text)
{
	int pass = PASS;

	if (!text || !*text) {
		free(vt->palette);
		vt->palette = NULL;
		return PASS;
	}
	while (text) {
		size_t len;
		const char *next = next_field(text, &len);
		int index = index_of(text, len);

		if (index < 0)
			pass = VT_CUT_UNKNOWN;
		else if (vt->palette)
			vt->palette[index] = 0;
		text = next;
	}
	return pass;
}

/* OSC 10 with several colours goes on to 11 and 12. */
static int
osc_dynamic(struct vt *vt, unsigned int which, const char *text)
{
	static const char *const numbers[] = { "10", "11", "12" };
	int pass = text ? PASS : VT_CUT_UNKNOWN;

	for (; text && which < 3; which++) {
		size_t len;
		const char *next = next_field(text, &len);
		uint32_t color = parse_color(text, len);

		if (len == 1 && *text == '?') {
			answer(vt, numbers[which],
			       vt->dynamic[which] ? vt->dynamic[which]
						  : vt->theme[which]);
			pass = VT_CUT_QUERY;
		} else if (color) {
			vt->dynamic[which] = color;
			vt->colors_touched = true;
		} else {
			pass = VT_CUT_UNKNOWN;
		}
		text = next;
	}
	return text ? VT_CUT_UNKNOWN : pass;
}

int
vt_osc_color(struct vt *vt, unsigned int code, const char *text)
{
	if (code == 4)
		return osc_palette(vt, text);
	if (code == 104)
		return osc_palette_back(vt, text);
	if (code >= 110) {
		vt->dynamic[code - 110] = 0;
		return text && *text ? VT_CUT_UNKNOWN : PASS;
	}
	return osc_dynamic(vt, code - 10, text);
}
