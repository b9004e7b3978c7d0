/* SPDX-License-Identifier: MIT */

/*
 * Operating system commands: titles, directories, links, marks, clipboard.
 * They come from whatever is printed, so each text is bounded and cleaned
 * before anyone sees it, and nothing here ever says what it was told.
 */

#include "base/json.h"
#include "pty/vt_priv.h"

#define CWD_MAX	   4096
#define NOTIFY_MAX 1024

/* UTF-8 without control characters, whole characters up to `max` bytes. */
static size_t
clean_text(char *out, size_t max, const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t n = 0;

	while (len > 0) {
		size_t one = utf8_length(at, len);
		bool control = one == 1 && (*at < 0x20 || *at == 0x7f);

		if (one == 2 && at[0] == 0xc2 && at[1] < 0xa0)
			control = true;
		if (one > 0 && n + one > max)
			break;
		if (one > 0 && !control) {
			memcpy(out + n, at, one);
			n += one;
		}
		at += one ? one : 1;
		len -= one ? one : 1;
	}
	out[n] = '\0';
	return n;
}

static int
osc_title(struct vt *vt, unsigned int code, const char *text)
{
	size_t len;

	/* 1 is the icon's name, which nobody has. */
	if (code == 1)
		return VT_CUT_TITLE;
	len = clean_text(vt->title, VT_TITLE_MAX, text, strlen(text));
	vt_event(vt, VT_EVENT_TITLE, vt->title, len);
	return VT_CUT_TITLE;
}

static int
hex_value(char c)
{
	const char *digits = "0123456789abcdef0123456789ABCDEF", *at;

	at = c ? strchr(digits, c) : NULL;
	return at ? (int)(at - digits) % 16 : -1;
}

static void
set_cwd(struct vt *vt, char *path)
{
	free(vt->cwd);
	vt->cwd = path;
	vt_event(vt, VT_EVENT_CWD, path, strlen(path));
}

/* "file://HOST/PATH" with %HH in it. */
static int
osc_cwd(struct vt *vt, const char *text)
{
	const char *at =
		strncmp(text, "file://", 7) == 0 ? strchr(text + 7, '/') : NULL;
	char *path, *from, *to;

	if (!at || strlen(at) > CWD_MAX)
		return VT_CUT_STATE;
	path = strdup(at);
	if (!path)
		return VT_CUT_STATE;
	for (from = to = path; *from; from++) {
		int high = *from == '%' ? hex_value(from[1]) : -1;
		int low = high >= 0 ? hex_value(from[2]) : -1;

		if (low < 0) {
			*to++ = *from;
			continue;
		}
		/* A path has no NUL. */
		if (high == 0 && low == 0) {
			free(path);
			return VT_CUT_STATE;
		}
		*to++ = (char)(high * 16 + low);
		from += 2;
	}
	*to = '\0';
	set_cwd(vt, path);
	return VT_CUT_STATE;
}

/* "PARAMS;URI", PARAMS being key=value joined by colons; no odd schemes. */
static int
osc_link(struct vt *vt, const char *text)
{
	char link[LINK_MAX];
	const char *uri = strchr(text, ';'), *id = NULL;
	size_t id_len = 0, len;

	if (!uri)
		return VT_CUT_UNKNOWN;
	uri++;
	len = strlen(uri);
	if (len == 0) {
		vt_set_link(vt, NULL, 0);
		return PASS;
	}
	for (const char *at = text; at < uri;) {
		size_t n = strcspn(at, ":;");

		if (n > 3 && strncmp(at, "id=", 3) == 0) {
			id = at + 3;
			id_len = n - 3;
		}
		at += n + 1;
	}
	if (id_len + 1 + len > sizeof(link) || vt->parser.dirty ||
	    strchr(text, 0x7f) || !uri_is_safe(uri, (uint32_t)len)) {
		/* People's terminals go on with the link before. */
		vt->parser.executed |= vt->cursor.pen.link != 0;
		vt_set_link(vt, NULL, 0);
		return VT_CUT_UNKNOWN;
	}
	if (id)
		memcpy(link, id, id_len);
	link[id_len] = ';';
	memcpy(link + id_len + 1, uri, len);
	vt_set_link(vt, link, id_len + 1 + len);
	return PASS;
}

static int
osc_notify(struct vt *vt, unsigned int code, const char *text)
{
	char clean[NOTIFY_MAX + 1];
	size_t len;

	/* 9;4;… is a progress bar of another terminal. */
	if (code == 9 && strncmp(text, "4;", 2) == 0)
		return VT_CUT_STATE;
	if (code == 777) {
		if (strncmp(text, "notify;", 7) != 0)
			return VT_CUT_UNKNOWN;
		text += 7;
	}
	len = clean_text(clean, NOTIFY_MAX, text, strlen(text));
	vt_event(vt, VT_EVENT_NOTIFY, clean, len);
	return VT_CUT_STATE;
}

/* ---- clipboard ---- */

static int
base64_value(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* In place; the number of bytes, or -EINVAL. */
static ssize_t
base64_decode(char *text)
{
	uint32_t bits = 0;
	unsigned int count = 0;
	size_t len = 0;
	char *at = text;

	for (; *at && *at != '='; at++) {
		int value = base64_value((unsigned char)*at);

		if (value < 0)
			return -EINVAL;
		bits = bits << 6 | (uint32_t)value;
		count += 6;
		if (count >= 8) {
			count -= 8;
			text[len++] = (char)(bits >> count & 0xff);
		}
	}
	return at[strspn(at, "=")] ? -EINVAL : (ssize_t)len;
}

/* "WHERE;BASE64".  What is on it is never told. */
static int
osc_clipboard(struct vt *vt, char *text)
{
	char *data = strchr(text, ';');
	ssize_t len;

	if (!data)
		return VT_CUT_CLIPBOARD;
	if (strcmp(++data, "?") == 0)
		return VT_CUT_QUERY;
	len = base64_decode(data);
	if (len >= 0 && (size_t)len <= VT_CLIPBOARD_MAX)
		vt_event(vt, VT_EVENT_CLIPBOARD, data, (size_t)len);
	return VT_CUT_CLIPBOARD;
}

/* ---- marks ---- */

/* What VS Code's integration escapes: "\\" and "\xHH".  In place. */
static size_t
unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		int high = -1, low = -1;

		if (at[0] == '\\' && at[1] == 'x') {
			high = hex_value(at[2]);
			low = high >= 0 ? hex_value(at[3]) : -1;
		}
		if (low >= 0) {
			*to++ = (char)(high * 16 + low);
			at += 3;
		} else {
			at += at[0] == '\\' && at[1] == '\\';
			*to++ = *at;
		}
	}
	*to = '\0';
	return (size_t)(to - text);
}

static int
exit_code_of(const char *field)
{
	int code = 0;

	if (!*field || strlen(field) > 9)
		return -1;
	for (; *field; field++) {
		if (*field < '0' || *field > '9')
			return -1;
		code = code * 10 + (*field - '0');
	}
	return code;
}

/* "LETTER[;FIELD]…": KEY=VALUE fields, the first of D a number. */
static int
osc_mark(struct vt *vt, unsigned int code, char *text)
{
	struct vt_event event = { .kind = VT_EVENT_MARK,
				  .from = vt->parser.start,
				  .to = vt->parser.end,
				  .mark = text[0],
				  .exit_code = -1 };
	char *rest = text[0] && text[1] == ';' ? text + 2 : NULL;
	char *command = rest, *field;

	if (code == 633 && strncmp(text, "P;Cwd=", 6) == 0) {
		char *path;

		(void)unescape(text + 6);
		path = strlen(text + 6) <= CWD_MAX ? strdup(text + 6) : NULL;
		if (path)
			set_cwd(vt, path);
		return VT_CUT_STATE;
	}
	if (!text[0] || !strchr(code == 633 ? "ABCDE" : "ABCD", text[0]) ||
	    (text[1] && !rest))
		return VT_CUT_STATE;
	for (unsigned int i = 0; (field = strsep(&rest, ";")); i++) {
		if (i == 0 && event.mark == 'D')
			event.exit_code = exit_code_of(field);
		if (strncmp(field, "pale=", 5) == 0)
			event.trusted = vt->nonce[0] &&
					strcmp(field + 5, vt->nonce) == 0;
		if (strcmp(field, "k=s") == 0 || strcmp(field, "k=c") == 0)
			event.secondary = true;
	}
	if (event.mark == 'E' && command) {
		event.len = unescape(command);
		event.text = command;
	}
	if (vt->ops->event)
		vt->ops->event(vt->data, &event);
	return VT_CUT_STATE;
}

/* ---- all ---- */

/* The number in front, or -EINVAL; *ret_rest is what follows the ';'. */
static int
split_code(char *text, char **ret_rest)
{
	unsigned int n = 0;
	char *at = text;

	for (; *at >= '0' && *at <= '9' && n < 10000; at++)
		n = n * 10 + (unsigned int)(*at - '0');
	if (at == text || (*at && *at != ';'))
		return -EINVAL;
	*ret_rest = *at ? at + 1 : NULL;
	return (int)n;
}

int
vt_osc(struct vt *vt)
{
	char *rest = NULL, *text = (char *)vt->parser.text.data;
	int code = split_code(text, &rest);

	vt->last_ch = 0;
	switch (code) {
	case 4:
	case 10:
	case 11:
	case 12:
	case 104:
	case 110:
	case 111:
	case 112:
		return vt_osc_color(vt, (unsigned int)code, rest);
	default:
		break;
	}
	if (!rest)
		return VT_CUT_UNKNOWN;
	switch (code) {
	case 0:
	case 1:
	case 2:
		return osc_title(vt, (unsigned int)code, rest);
	case 7:
		return osc_cwd(vt, rest);
	case 8:
		return osc_link(vt, rest);
	case 9:
	case 777:
		return osc_notify(vt, (unsigned int)code, rest);
	case 52:
		return osc_clipboard(vt, rest);
	case 133:
	case 633:
		return osc_mark(vt, (unsigned int)code, rest);
	default:
		return VT_CUT_UNKNOWN;
	}
}
