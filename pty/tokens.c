/* SPDX-License-Identifier: MIT */

#include "pty/tokens.h"

#define REPLACEMENT 0xfffdu
#define PARAM_MAX   65535u

enum state {
	GROUND,
	CHARACTER, /* inside of one of several bytes */
	ESCAPE,
	SEQUENCE, /* CSI */
	STRING,	  /* ends with ST */
	OSC,	  /* ends with BEL, too */
};

enum {
	BEL = 0x07,
	CAN = 0x18,
	SUB = 0x1a,
	ESC = 0x1b,
	DEL = 0x7f,
};

static void
token_set(struct token *token, enum token_kind kind, uint32_t code)
{
	*token = (struct token){ .kind = kind, .code = code };
}

static unsigned int
give_char(struct tokens *t, uint32_t code, struct token *ret)
{
	t->state = GROUND;
	/* C1 as characters are controls to no terminal that speaks UTF-8. */
	token_set(ret,
		  code < 0x20 || (code >= DEL && code < 0xa0) ? TOKEN_CONTROL
							      : TOKEN_CHAR,
		  code);
	return 1;
}

/* The first byte of a character, or one that can be none. */
static unsigned int
begin_char(struct tokens *t, unsigned char byte, struct token *ret)
{
	t->low = 0x80;
	t->high = 0xbf;
	if (byte >= 0xc2 && byte <= 0xdf) {
		t->need = 1;
		t->code = byte & 0x1f;
	} else if (byte >= 0xe0 && byte <= 0xef) {
		t->need = 2;
		t->code = byte & 0x0f;
		/* No overlong forms, no surrogates. */
		if (byte == 0xe0)
			t->low = 0xa0;
		if (byte == 0xed)
			t->high = 0x9f;
	} else if (byte >= 0xf0 && byte <= 0xf4) {
		t->need = 3;
		t->code = byte & 0x07;
		if (byte == 0xf0)
			t->low = 0x90;
		if (byte == 0xf4)
			t->high = 0x8f;
	} else {
		return give_char(t, REPLACEMENT, ret);
	}
	t->state = CHARACTER;
	t->pending = 1;
	return 0;
}

static unsigned int
put_ground(struct tokens *t, unsigned char byte, struct token *ret)
{
	t->pending = 0;
	if (byte == ESC) {
		t->state = ESCAPE;
		t->sequence = (struct token){ .kind = TOKEN_ESC };
		t->pending = 1;
		return 0;
	}
	if (byte < 0x80)
		return give_char(t, byte, ret);
	return begin_char(t, byte, ret);
}

static unsigned int
put_char(struct tokens *t, unsigned char byte, struct token *ret)
{
	if (byte < t->low || byte > t->high) {
		/* What was there is one; this byte begins anew. */
		(void)give_char(t, REPLACEMENT, ret);
		return 1 + put_ground(t, byte, ret + 1);
	}
	t->low = 0x80;
	t->high = 0xbf;
	t->code = t->code << 6 | (byte & 0x3f);
	t->pending++;
	if (--t->need > 0)
		return 0;
	t->pending = 0;
	return give_char(t, t->code, ret);
}

/* A control acts inside of a sequence as outside. */
static unsigned int
put_control(struct tokens *t, unsigned char byte, struct token *ret)
{
	if (byte == ESC)
		return put_ground(t, byte, ret);
	if (byte == CAN || byte == SUB) {
		t->state = GROUND;
		t->pending = 0;
		return 0;
	}
	token_set(ret, TOKEN_CONTROL, byte);
	return 1;
}

static unsigned int
finish(struct tokens *t, unsigned char byte, struct token *ret)
{
	*ret = t->sequence;
	ret->code = byte;
	t->state = GROUND;
	t->pending = 0;
	return 1;
}

static unsigned int
put_escape(struct tokens *t, unsigned char byte, struct token *ret)
{
	if (byte < 0x30) {
		t->sequence.marker = byte;
		return 0;
	}
	if (t->sequence.marker)
		return finish(t, byte, ret);
	switch (byte) {
	case '[':
		t->state = SEQUENCE;
		t->sequence.kind = TOKEN_CSI;
		t->n_params = 0;
		return 0;
	case ']':
		t->state = OSC;
		return 0;
	case 'P':
	case 'X':
	case '^':
	case '_':
		t->state = STRING;
		return 0;
	default:
		return finish(t, byte, ret);
	}
}

static unsigned int
put_sequence(struct tokens *t, unsigned char byte, struct token *ret)
{
	struct token *s = &t->sequence;
	unsigned int *param;

	if (byte >= '@')
		return finish(t, byte, ret);
	if (byte < '0' || byte >= '<') {
		s->marker = byte;
		return 0;
	}
	if (byte >= ':') {
		if (t->n_params < TOKEN_PARAMS)
			t->n_params++;
		return 0;
	}
	if (t->n_params == TOKEN_PARAMS)
		return 0;
	param = &s->params[t->n_params];
	*param = *param * 10 + (byte - '0');
	if (*param > PARAM_MAX)
		*param = PARAM_MAX;
	return 0;
}

/* A terminal in UTF-8 takes no byte over 0x7f into a sequence. */
static unsigned int
put_inside(struct tokens *t, unsigned char byte, struct token *ret)
{
	if (byte < 0x20)
		return put_control(t, byte, ret);
	if (byte == DEL)
		return 0;
	if (byte > DEL) {
		t->state = GROUND;
		return put_ground(t, byte, ret);
	}
	return t->state == ESCAPE ? put_escape(t, byte, ret)
				  : put_sequence(t, byte, ret);
}

static unsigned int
put_string(struct tokens *t, unsigned char byte, struct token *ret)
{
	if (byte == ESC)
		return put_ground(t, byte, ret);
	if (byte == CAN || byte == SUB || (byte == BEL && t->state == OSC)) {
		t->state = GROUND;
		t->pending = 0;
	}
	return 0;
}

unsigned int
tokens_put(struct tokens *t, unsigned char byte,
	   struct token ret_tokens[TOKENS_A_BYTE])
{
	switch ((enum state)t->state) {
	case GROUND:
		return put_ground(t, byte, ret_tokens);
	case CHARACTER:
		return put_char(t, byte, ret_tokens);
	case ESCAPE:
	case SEQUENCE:
		t->pending++;
		return put_inside(t, byte, ret_tokens);
	case STRING:
	case OSC:
		t->pending++;
		return put_string(t, byte, ret_tokens);
	}
	return 0;
}

unsigned int
tokens_end(struct tokens *t, struct token *ret_token)
{
	unsigned int n = t->state == CHARACTER ? 1 : 0;

	if (n > 0)
		(void)give_char(t, REPLACEMENT, ret_token);
	*t = (struct tokens){ 0 };
	return n;
}

size_t
tokens_pending(const struct tokens *t)
{
	return t->pending;
}

unsigned int
token_count(const struct token *token)
{
	return token->params[0] > 0 ? token->params[0] : 1;
}

void
text_put(struct buf *out, uint32_t code)
{
	unsigned char c[4];
	size_t n = 0;

	if (code < 0x80) {
		c[n++] = (unsigned char)code;
	} else if (code < 0x800) {
		c[n++] = (unsigned char)(0xc0 | code >> 6);
		c[n++] = (unsigned char)(0x80 | (code & 0x3f));
	} else if (code < 0x10000) {
		c[n++] = (unsigned char)(0xe0 | code >> 12);
		c[n++] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
		c[n++] = (unsigned char)(0x80 | (code & 0x3f));
	} else {
		c[n++] = (unsigned char)(0xf0 | code >> 18);
		c[n++] = (unsigned char)(0x80 | (code >> 12 & 0x3f));
		c[n++] = (unsigned char)(0x80 | (code >> 6 & 0x3f));
		c[n++] = (unsigned char)(0x80 | (code & 0x3f));
	}
	buf_put(out, c, n);
}
