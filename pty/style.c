/* SPDX-License-Identifier: MIT */

#include "pty/style.h"

#include <string.h>
#include <strings.h>

#define STYLES_MAX   0xffffu
#define CLUSTERS_MAX 0xffffu
#define LINKS_MAX    0xffffu
#define LINK_BYTES   (1u << 20)

void
lexicon_init(struct lexicon *lex, uint64_t seed)
{
	*lex = (struct lexicon){
		.styles = { .max = STYLES_MAX, .seed = seed },
		.clusters = { .max = CLUSTERS_MAX, .seed = seed },
		.links = { .max = LINKS_MAX,
			   .bytes_max = LINK_BYTES,
			   .seed = seed },
	};
}

void
lexicon_fini(struct lexicon *lex)
{
	intern_fini(&lex->styles);
	intern_fini(&lex->clusters);
	intern_fini(&lex->links);
}

struct style
lexicon_style(const struct lexicon *lex, unsigned int id)
{
	struct style style = { 0 };

	if (id != 0)
		memcpy(&style, intern_peek(&lex->styles, id, NULL),
		       sizeof(style));
	return style;
}

const char *
lexicon_uri(const struct lexicon *lex, const struct style *style,
	    uint32_t *ret_len)
{
	const char *link, *uri;
	uint32_t len;

	if (style->link == 0)
		return NULL;
	link = intern_peek(&lex->links, style->link, &len);
	uri = memchr(link, ';', len);
	if (!uri)
		return NULL;
	uri++;
	*ret_len = len - (uint32_t)(uri - link);
	return uri;
}

bool
style_same(const struct style *a, const struct style *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* ---- SGR read ---- */

struct sgr {
	const uint16_t *params;
	unsigned int count;
	uint32_t joined;
};

static bool
is_joined(const struct sgr *sgr, unsigned int at)
{
	return at < sgr->count && (sgr->joined >> at & 1) != 0;
}

static uint32_t
rgb(const uint16_t *p)
{
	if (p[0] > 255 || p[1] > 255 || p[2] > 255)
		return 0;
	return COLOR_RGB | (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

/*
 * 38;5;N  38;2;R;G;B  38:5:N  38:2:R:G:B  38:2:SPACE:R:G:B.  Returns how many
 * parameters after the first belong to it.
 */
static unsigned int
extended_color(const struct sgr *sgr, unsigned int at, uint32_t *color)
{
	const uint16_t *p = sgr->params + at + 1;
	unsigned int left = sgr->count - at - 1, group = 0;
	uint32_t found = 0;

	while (is_joined(sgr, at + 1 + group))
		group++;
	if (group > 0) {
		if (p[0] == 5 && group >= 2 && p[1] <= 255)
			found = COLOR_PALETTE | p[1];
		else if (p[0] == 2 && group >= 4)
			found = rgb(group >= 5 ? p + 2 : p + 1);
		if (found)
			*color = found;
		return group;
	}
	if (left >= 2 && p[0] == 5) {
		if (p[1] <= 255)
			*color = COLOR_PALETTE | p[1];
		return 2;
	}
	if (left >= 4 && p[0] == 2) {
		found = rgb(p + 1);
		if (found)
			*color = found;
		return 4;
	}
	return left;
}

static void
set_underline(struct style *style, unsigned int kind)
{
	style->attrs &= (uint16_t)~STYLE_UNDERLINE;
	style->attrs |= (uint16_t)(kind << STYLE_UNDERLINE_SHIFT);
}

/* SGR 1 to 9 and what undoes them: which bits go off, which on. */
static const struct {
	uint16_t off, on;
} attr_codes[] = {
	[1] = { 0, STYLE_BOLD },
	[2] = { 0, STYLE_DIM },
	[3] = { 0, STYLE_ITALIC },
	[5] = { 0, STYLE_BLINK },
	[6] = { 0, STYLE_BLINK },
	[7] = { 0, STYLE_INVERSE },
	[8] = { 0, STYLE_HIDDEN },
	[9] = { 0, STYLE_STRIKE },
	[21] = { STYLE_UNDERLINE, 2 << STYLE_UNDERLINE_SHIFT },
	[22] = { STYLE_BOLD | STYLE_DIM, 0 },
	[23] = { STYLE_ITALIC, 0 },
	[24] = { STYLE_UNDERLINE, 0 },
	[25] = { STYLE_BLINK, 0 },
	[27] = { STYLE_INVERSE, 0 },
	[28] = { STYLE_HIDDEN, 0 },
	[29] = { STYLE_STRIKE, 0 },
	[53] = { 0, STYLE_OVERLINE },
	[55] = { STYLE_OVERLINE, 0 },
};

static void
simple_code(struct style *style, unsigned int code)
{
	if (code >= 30 && code <= 37)
		style->fg = COLOR_PALETTE | (code - 30);
	else if (code >= 40 && code <= 47)
		style->bg = COLOR_PALETTE | (code - 40);
	else if (code >= 90 && code <= 97)
		style->fg = COLOR_PALETTE | (code - 90 + 8);
	else if (code >= 100 && code <= 107)
		style->bg = COLOR_PALETTE | (code - 100 + 8);
	else if (code == 39)
		style->fg = 0;
	else if (code == 49)
		style->bg = 0;
	else if (code == 59)
		style->underline = 0;
	else if (code < sizeof(attr_codes) / sizeof(*attr_codes)) {
		style->attrs &= (uint16_t)~attr_codes[code].off;
		style->attrs |= attr_codes[code].on;
	}
}

void
style_sgr(struct style *style, const uint16_t *params, unsigned int count,
	  uint32_t joined)
{
	struct sgr sgr = { params, count, joined };

	for (unsigned int i = 0; i < count; i++) {
		unsigned int code = params[i];

		if (code == 0) {
			*style = (struct style){ .link = style->link };
		} else if (code == 38) {
			i += extended_color(&sgr, i, &style->fg);
		} else if (code == 48) {
			i += extended_color(&sgr, i, &style->bg);
		} else if (code == 58) {
			i += extended_color(&sgr, i, &style->underline);
		} else if (code == 4) {
			unsigned int kind = 1;

			if (is_joined(&sgr, i + 1))
				kind = params[++i] <= 5 ? params[i] : 1;
			set_underline(style, kind);
		} else {
			simple_code(style, code);
		}
		/* Details that no code we know has. */
		while (is_joined(&sgr, i + 1))
			i++;
	}
}

/* ---- SGR written ---- */

static void
put_color(struct buf *out, uint32_t color, unsigned int base)
{
	unsigned int n = color & 0xff;

	if ((color & COLOR_KIND) == COLOR_RGB)
		buf_putf(out, ";%u;2;%u;%u;%u", base + 8, color >> 16 & 0xff,
			 color >> 8 & 0xff, n);
	else if (n < 8 && base < 58 - 8)
		buf_putf(out, ";%u", base + n);
	else if (n < 16 && base < 58 - 8)
		buf_putf(out, ";%u", base + 60 + n - 8);
	else
		buf_putf(out, ";%u;5;%u", base + 8, n);
}

void
style_put_params(struct buf *out, const struct style *style)
{
	static const struct {
		uint16_t bit;
		uint16_t code;
	} codes[] = {
		{ STYLE_BOLD, 1 },    { STYLE_DIM, 2 },
		{ STYLE_ITALIC, 3 },  { STYLE_BLINK, 5 },
		{ STYLE_INVERSE, 7 }, { STYLE_HIDDEN, 8 },
		{ STYLE_STRIKE, 9 },  { STYLE_OVERLINE, 53 },
	};
	unsigned int kind =
		(style->attrs & STYLE_UNDERLINE) >> STYLE_UNDERLINE_SHIFT;

	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (style->attrs & codes[i].bit)
			buf_putf(out, ";%u", codes[i].code);
	if (kind == 1)
		buf_puts(out, ";4");
	else if (kind > 1)
		buf_putf(out, ";4:%u", kind);
	if (style->fg)
		put_color(out, style->fg, 30);
	if (style->bg)
		put_color(out, style->bg, 40);
	if (style->underline)
		put_color(out, style->underline, 50);
}

void
style_put_sgr(struct buf *out, const struct style *from, const struct style *to)
{
	struct style a = *from, b = *to;

	a.link = b.link = 0;
	if (style_same(&a, &b))
		return;
	buf_puts(out, "\033[0");
	style_put_params(out, to);
	buf_puts(out, "m");
}

bool
uri_is_safe(const char *uri, uint32_t len)
{
	static const char *const schemes[] = { "http:", "https:", "file:",
					       "mailto:" };

	for (size_t i = 0; i < sizeof(schemes) / sizeof(*schemes); i++) {
		size_t n = strlen(schemes[i]);

		if (len >= n && strncasecmp(uri, schemes[i], n) == 0)
			return true;
	}
	return false;
}
